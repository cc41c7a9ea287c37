"""The proxy before an upstream that replays, and every client's answers from it: each script runs once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest

from tests.e2e.clients.cases import Client
from tests.e2e.clients.replay import replaying
from tests.e2e.clients.running_clients import Job, Said, run
from tests.e2e.running import Running, proxy_before

Asked = Callable[[Client, str, str], tuple[Said, Said]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-clients", action="store_true", help="write the README's table of clients")


@pytest.fixture(scope="session")
def replay() -> Iterator[str]:
    with replaying() as url:
        yield url


@pytest.fixture(scope="session")
def replay_proxy(replay: str) -> Iterator[Running]:
    with proxy_before(replay) as running:
        yield running


@pytest.fixture(scope="session")
def asked(replay: str, replay_proxy: Running) -> Asked:
    """What a client made of a recorded answer: directly, and through the proxy."""

    @cache
    def everything(client_id: str) -> dict[Job, Said]:
        client = by_id[client_id]
        jobs = [
            job(root, client, api, mode)
            for api in client.captures
            for mode in ("whole", "stream")
            for root in (replay, replay_proxy.root)
        ]
        return run(client, jobs)

    by_id: dict[str, Client] = {}

    def one(client: Client, api: str, mode: str) -> tuple[Said, Said]:
        by_id[client.id] = client
        said = everything(client.id)
        return said[job(replay, client, api, mode)], said[job(replay_proxy.root, client, api, mode)]

    return one


def job(root: str, client: Client, api: str, mode: str) -> Job:
    capture = client.captures[api][mode == "stream"]
    return f"{root}/{capture}", api.partition(" ")[0], mode
