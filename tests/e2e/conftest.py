"""A real model server and, before it, the proxy as a user starts it: both once for all the tests here."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from proxy.demo import model
from tests.e2e.running import Lines, Running, proxy_before

# The demo's server with one thread: its threads wait for each other by spinning, and where other processes want the
# same cores (the proxy, the clients, this one) two take many times as long as one.
ONE_THREAD = "import os, sys; os.cpu_count = lambda: 1; from proxy.demo.llama import main; main(sys.argv[1])"


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
        [sys.executable, "-c", ONE_THREAD, str(model_path)],
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
    with proxy_before(model_server) as running:
        yield running
