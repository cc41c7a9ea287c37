"""Observing: measured without anybody asking, and nothing of it to be seen."""

import json

from proxy.observe import MAX_REMEMBERED, REMEMBERED_FOR, Observer
from tests.shell.wire import Seen, post, proxied

ASKED = (
    b'{"id":"x","choices":[{"index":0,"message":{"content":"a"},'
    b'"logprobs":{"content":[{"token":"a","logprob":-0.5}]},"finish_reason":"stop"}]}'
)
PLAIN = b'{"id":"x","choices":[{"index":0,"message":{"content":"a"},"logprobs":null,"finish_reason":"stop"}]}'


def whole(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        status,
        len(body),
        body,
    )


async def model(seen: Seen) -> None:
    await seen.send(whole(ASKED if json.loads(seen.body).get("logprobs") else PLAIN))


async def stubborn(seen: Seen) -> None:
    refused = whole(b'{"error":{"message":"no logprobs here"}}', b"400 Bad Request")
    await seen.send(refused if b"logprobs" in seen.body else whole(PLAIN))


async def test_the_client_sees_nothing_of_it_and_the_metrics_do():
    async with proxied(model, observe=True) as proxy:
        answer = await proxy.ask(post(b'{"model":"m"}'))
        assert answer.body == PLAIN
        assert proxy.upstream.seen[0].body == b'{"logprobs":true,"top_logprobs":0,"model":"m"}'
        outcome = await proxy.outcome()
        assert (outcome.outcome, outcome.observed, outcome.refused) == ("scored", True, False)
        assert answer.get(b"x-confidence") is None


async def test_who_asks_is_served_as_ever():
    async with proxied(model, observe=True) as proxy:
        answer = await proxy.ask(post(b'{"model":"m","logprobs":true}'))
        assert b'"probability":' in answer.body
        assert not (await proxy.outcome()).observed


async def test_off_by_default():
    async with proxied(model) as proxy:
        await proxy.ask(post(b'{"model":"m"}'))
        assert proxy.upstream.seen[0].body == b'{"model":"m"}'


async def test_a_refusal_is_met_once():
    async with proxied(stubborn, observe=True) as proxy:
        for _ in range(3):
            answer = await proxy.ask(post(b'{"model":"m"}'))
            assert (answer.status, answer.body) == (200, PLAIN)
        assert [b"logprobs" in seen.body for seen in proxy.upstream.seen] == [True, False, False, False]
        await proxy.ask(post(b'{"model":"other"}'))
        assert b"logprobs" in proxy.upstream.seen[4].body
        text = proxy.counters.expose()[0].decode()
        assert 'logprob_observe_refused_total{api="chat",model="m"} 1.0' in text


def test_the_rate_is_a_share():
    draws = iter([0.1, 0.3, 0.24, 0.25])
    observer = Observer(0.25, draw=lambda: next(draws))
    assert [observer.wants("f", "m") for _ in range(4)] == [True, False, True, False]
    assert not Observer(0.0).wants("f", "m")
    assert Observer(1.0).wants("f", None)


def test_refusals_are_forgotten_after_a_while_and_bounded():
    now = [0.0]
    observer = Observer(1.0, clock=lambda: now[0])
    observer.refused("f", "m")
    assert not observer.wants("f", "m")
    assert observer.wants("g", "m")
    now[0] = REMEMBERED_FOR
    assert observer.wants("f", "m")
    for number in range(MAX_REMEMBERED + 1):
        observer.refused("f", str(number))
    assert observer.wants("f", "0")
    assert not observer.wants("f", "1")
