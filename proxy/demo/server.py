"""The model server as a child process: started, waited for, ended."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TextIO

import aiohttp

_PATIENCE = 120.0  # seconds to be ready in; one is usual
_POLL = 0.1


class ServerError(Exception):
    """The server did not come up; the text says why, as far as it is known."""


@contextlib.asynccontextmanager
async def running(path: Path, out: TextIO) -> AsyncIterator[str]:
    """The URL of a server that is ready; it ends with the block."""
    started = time.monotonic()
    print("model server: llama.cpp is loading the model ...", file=out, end="", flush=True)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "proxy.demo.llama", str(path)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        # Ctrl-C in the terminal is the parent's to answer.
        start_new_session=True,
    )
    try:
        try:
            async with asyncio.timeout(_PATIENCE):
                url = await _address(process)
                await _healthy(url)
        except TimeoutError:
            raise ServerError(f"the model server was not ready within {_PATIENCE:.0f} s") from None
        print(f" ready after {time.monotonic() - started:.1f} s at {url}", file=out, flush=True)
        yield url
    finally:
        await _end(process)


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line:
        raise ServerError(f"the model server ended at its start, with code {await process.wait()}")
    return line.decode().strip()


async def _healthy(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(f"{url}/health") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(_POLL)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        # Nothing of it is worth a polite end, and its own takes as long as the answer it is writing.
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    await process.wait()
