"""A real model server and, before it, the proxy as a user starts it: both once for all the tests here."""

from __future__ import annotations

import asyncio
import os
import queue
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import pytest

from proxy.demo import model

COMMAND = str(Path(sysconfig.get_path("scripts")) / "logprob-proxy")


@dataclass(frozen=True)
class Running:
    base_url: str  # what a client sets
    admin: str


class Lines:
    """What a child prints, a line at a time, with a deadline; the child never blocks on a full pipe."""

    def __init__(self, stream: IO[str]) -> None:
        self.seen: list[str] = []
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self.seen.append(line)
            self._queue.put(line)
        self._queue.put(None)

    def until(self, wanted: Callable[[str], bool], seconds: float = 30) -> None:
        """Reads on until what was printed so far satisfies `wanted`."""
        deadline = time.monotonic() + seconds
        while not wanted("".join(self.seen)):
            try:
                line = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None and not wanted("".join(self.seen)):
                raise AssertionError(f"not what was waited for: {''.join(self.seen)!r}")


def need(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


@pytest.fixture(scope="session")
def model_path() -> Path:
    if find_spec("xllamacpp") is None:
        pytest.skip("there is no prebuilt xllamacpp for this platform")
    try:
        return asyncio.run(model.provide(sys.stderr))
    except model.ModelError as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="session")
def model_server(model_path: Path) -> Iterator[str]:
    """The URL of llama.cpp's own server."""
    with subprocess.Popen(
        [sys.executable, "-m", "proxy.demo.llama", str(model_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = Lines(process.stdout)
        try:
            lines.until(lambda text: "\n" in text, seconds=60)
            yield lines.seen[0].strip()
        finally:
            process.kill()


@pytest.fixture(scope="session")
def proxy(model_server: str) -> Iterator[Running]:
    """`logprob-proxy serve` before it; the ports are read from what it says at its start."""
    address = re.compile(r"http://127\.0\.0\.1:[1-9]\d*")
    base_url = re.compile(rf"({address.pattern}/v1)\b")
    metrics = re.compile(rf"({address.pattern})/metrics\b")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LOGPROB_PROXY_")}
    command = [
        COMMAND,
        "serve",
        "--upstream",
        model_server,
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
    ]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stderr is not None
        lines = Lines(process.stderr)
        try:
            lines.until(lambda text: bool(base_url.search(text) and metrics.search(text)))
            text = "".join(lines.seen)
            base, admin = base_url.search(text), metrics.search(text)
            assert base is not None
            assert admin is not None
            yield Running(base_url=base[1], admin=admin[1])
        finally:
            process.kill()
