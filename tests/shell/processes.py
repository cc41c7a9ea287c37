"""`logprob-proxy serve` as a process of its own, before an upstream in this one."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.shell.wire import WAIT, Answer, Client, get

ROOT = Path(__file__).parents[2]
MAIN = "from proxy.cli import main; main()"
COMMAND = (sys.executable, "-c", MAIN)
_ADDRESS = r"http://127\.0\.0\.1:(\d+)"


def environment(**more: str) -> dict[str, str]:
    """This process's, without settings of the proxy's."""
    ours = {name: text for name, text in os.environ.items() if not name.startswith("LOGPROB_PROXY_")}
    return ours | {"PYTHONPATH": str(ROOT)} | more


@dataclass
class Served:
    """A proxy that runs, with one or several workers."""

    process: asyncio.subprocess.Process
    address: tuple[str, int]
    admin: tuple[str, int]

    @property
    def workers(self) -> list[int]:
        """Their process ids, as the kernel knows them."""
        return children(self.process.pid)

    @asynccontextmanager
    async def client(self, to: tuple[str, int] | None = None) -> AsyncIterator[Client]:
        import socket

        with socket.socket() as sock:
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, to or self.address)
            yield Client(sock)

    async def ask(self, request: bytes, to: tuple[str, int] | None = None) -> Answer:
        """One request on its own connection."""
        async with self.client(to) as client:
            await client.send(request)
            return await client.answer(request.split(b" ", 1)[0])

    async def page(self, path: str) -> Answer:
        return await self.ask(get(path.encode()), self.admin)

    async def metrics(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        body = (await self.page("/metrics")).body.decode()
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(body)
            for sample in family.samples
        }

    async def total(self, name: str) -> float:
        """Over all labels."""
        return sum(value for (one, _), value in (await self.metrics()).items() if one == name)

    async def counted(self, wanted: float) -> bool:
        """Whether so many answers are in the metrics: that comes a moment after the client has them."""
        return await self.total("logprob_responses_total") == wanted

    async def ready(self) -> bool:
        return (await self.page("/readyz")).status == 200

    async def unready(self) -> bool:
        return (await self.page("/readyz")).status == 503


def children(pid: int) -> list[int]:
    """Process ids of a process's children (of all its threads: asyncio may start them from any)."""
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return sorted(found)


@asynccontextmanager
async def served(
    upstream: int,
    *flags: str,
    prefix: Sequence[str] = (),
    before: str = "",
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Served]:
    """The proxy before an upstream's port. `prefix` is a command that runs it, `before` a statement that comes first; it
    is ended by force at the end."""
    places = ("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    process = await asyncio.create_subprocess_exec(
        *(
            *prefix,
            sys.executable,
            "-c",
            before + MAIN,
            "serve",
            "--upstream",
            f"http://127.0.0.1:{upstream}",
            *places,
            *flags,
        ),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=environment() if env is None else dict(env),
        start_new_session=True,
    )
    try:
        yield Served(process, *await _said(process))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _said(process: asyncio.subprocess.Process) -> tuple[tuple[str, int], tuple[str, int]]:
    assert process.stderr is not None
    text = ""
    async with asyncio.timeout(4 * WAIT):
        while "base_url" not in text:
            line = (await process.stderr.readline()).decode()
            assert line, text
            text += line
    listen, metrics = (re.search(word + r"\s+" + _ADDRESS, text) for word in ("listening on", "metrics"))
    assert listen is not None, text
    assert metrics is not None, text
    return ("127.0.0.1", int(listen[1])), ("127.0.0.1", int(metrics[1]))
