"""Other people's clients behind the proxy: each reads what was inserted, or loses nothing that it had."""

from __future__ import annotations

import pytest

from tests.e2e.clients import readme
from tests.e2e.clients.cases import CLIENTS, Client
from tests.e2e.clients.conftest import Asked
from tests.e2e.clients.running_clients import run
from tests.e2e.inserted import exp, take_out
from tests.e2e.running import Running

ROWS = [(client, api) for client in CLIENTS for api in client.captures]
MODES = ("whole", "stream")
CASES = pytest.mark.parametrize(
    ("client", "api", "mode"),
    [
        pytest.param(client, api, mode, id=f"{client.id}-{api}-{mode}")
        for client, api in ROWS
        for mode in MODES
    ],
)


@CASES
def test_nothing_is_lost_and_what_is_kept_is_right(asked: Asked, client: Client, api: str, mode: str) -> None:
    plain, enriched = asked(client, api, mode)
    found = take_out(enriched.answer)
    assert take_out(plain.answer).where == []
    assert found.plain == plain.answer
    assert plain.answer
    assert bool(found.where) == client.keeps


@CASES
def test_the_users_code_reads_it(asked: Asked, client: Client, api: str, mode: str) -> None:
    plain, enriched = asked(client, api, mode)
    assert enriched.read
    assert [pair[0] for pair in enriched.read] == [pair[0] for pair in plain.read]
    assert [pair[1] for pair in plain.read] == [None] * len(plain.read)
    assert [pair[1] for pair in enriched.read] == [
        exp(pair[0]) if client.keeps else None for pair in enriched.read
    ]


@pytest.mark.parametrize("client", [row for row in CLIENTS if row.serves_llamacpp], ids=lambda row: row.id)
def test_real_server(proxy: Running, client: Client) -> None:
    """The same scripts before llama.cpp's own server."""
    for said in run(client, [(proxy.root, "chat", mode) for mode in MODES]).values():
        assert len(said.read) >= 4
        for logprob, probability in said.read:
            assert probability == exp(logprob)


def test_readme_tells_what_was_seen(asked: Asked, request: pytest.FixtureRequest) -> None:
    rows: dict[tuple[str, ...], readme.Row] = {}
    for client, api in ROWS:
        both = [asked(client, api, mode)[1] for mode in MODES]
        whole, streamed = (readme.spell(take_out(said.answer).places) for said in both)
        key = (client.name, api, whole, streamed)
        row = rows.setdefault(key, readme.Row(client.name, api, (whole, streamed)))
        row.versions.append(both[0].version)
    made = readme.table(list(rows.values()))
    if request.config.getoption("--write-clients"):
        readme.write(made)
    assert made == readme.written(), "tests/run tests/e2e/clients --write-clients writes it again"
