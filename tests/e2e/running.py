"""Programs that the tests start, and what they say at their start."""

from __future__ import annotations

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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from tests.shell.processes import children

ROOT = Path(__file__).parents[2]
COMMAND = str(Path(sysconfig.get_path("scripts")) / "logprob-proxy")


# The demo's server with one thread: its threads wait for each other by spinning, and where other processes want the
# same cores (the proxy, the clients, this one) two take many times as long as one.
ONE_THREAD = "import os, sys; os.cpu_count = lambda: 1; from proxy.demo.llama import main; main(sys.argv[1])"


@dataclass(frozen=True)
class Running:
    base_url: str  # what a client sets
    admin: str
    pid: int

    @property
    def workers(self) -> list[int]:
        """Process ids of its workers, where it has several."""
        return children(self.pid)

    @property
    def root(self) -> str:
        return self.base_url.removesuffix("/v1")


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


def clients_python() -> str:
    """The interpreter of the environment in which other people's clients are installed."""
    python = ROOT / ".venv-clients" / "bin" / "python"
    if not python.exists():
        pytest.skip("there is no .venv-clients: tests/run makes it")
    return str(python)


@contextmanager
def llama_server(path: Path) -> Iterator[str]:
    """llama.cpp's own server with the model of this file; its URL."""
    with subprocess.Popen(
        [sys.executable, "-c", ONE_THREAD, str(path)],
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


@contextmanager
def proxy_before(upstream: str, *flags: str) -> Iterator[Running]:
    """`logprob-proxy serve` with these flags, as a user starts it; the ports are read from what it says."""
    address = re.compile(r"http://127\.0\.0\.1:[1-9]\d*")
    base_url = re.compile(rf"({address.pattern}/v1)\b")
    metrics = re.compile(rf"({address.pattern})/metrics\b")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LOGPROB_PROXY_")}
    places = ("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    with subprocess.Popen(
        [COMMAND, "serve", "--upstream", upstream, *places, *flags],
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
            yield Running(base_url=base[1], admin=admin[1], pid=process.pid)
        finally:
            process.kill()
