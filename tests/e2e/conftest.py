"""A real model server and, before it, the proxy as a user starts it: both once for all the tests here."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from proxy.demo import model
from tests.e2e.running import Running, llama_server, proxy_before


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
    with llama_server(model_path) as url:
        yield url


@pytest.fixture(scope="session")
def proxy(model_server: str) -> Iterator[Running]:
    with proxy_before(model_server) as running:
        yield running
