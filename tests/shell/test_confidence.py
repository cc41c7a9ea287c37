"""`confidence` over the wire: asked for by member or header, told in the body and the answer's header, and the upstream
asked once more where it refuses what only the proxy wanted."""

import json

import pytest

from tests.shell.wire import Seen, answering, post, proxied

ANSWER = (
    b'{"id":"x","choices":[{"index":0,"message":{"content":"a"},'
    b'"logprobs":{"content":[{"token":"a","logprob":-0.5}]},"finish_reason":"stop"}]}'
)
PLAIN = b'{"id":"x","choices":[{"index":0,"message":{"content":"a"},"logprobs":null,"finish_reason":"stop"}]}'
REFUSAL = b'{"error":{"message":"logprobs are not supported with this model","param":"logprobs"}}'


def whole(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        status,
        len(body),
        body,
    )


async def test_by_member():
    async with proxied(answering(whole(ANSWER))) as proxy:
        answer = await proxy.ask(post(b'{"model":"m","confidence":true}'))
        assert proxy.upstream.seen[0].body == b'{"logprobs":true,"top_logprobs":5,"model":"m"}'
        choice = json.loads(answer.body)["choices"][0]
        assert choice["logprobs"] is None
        assert choice["confidence"]["tokens"] == 1
        assert answer.get(b"x-confidence") is not None
        assert json.loads(answer.get(b"x-confidence")) == [choice["confidence"]]
        outcome = await proxy.outcome()
        assert outcome.outcome == "scored"


async def test_by_header_which_stays_here():
    async with proxied(answering(whole(ANSWER))) as proxy:
        answer = await proxy.ask(post(b'{"logprobs":true}', extra=b'X-Confidence: {"threshold":0.7}\r\n'))
        assert proxy.upstream.seen[0].body == b'{"logprobs":true}'
        assert proxy.upstream.seen[0].get(b"x-confidence") is None
        choice = json.loads(answer.body)["choices"][0]
        assert choice["confidence"]["threshold"] == 0.7
        assert "probability" in choice["logprobs"]["content"][0]


@pytest.mark.parametrize(
    ("request_bytes", "param"),
    [
        (post(b'{"confidence":{"labels":["a"]}}'), "confidence.labels"),
        (post(b"{}", extra=b"X-Confidence: maybe\r\n"), "X-Confidence"),
    ],
)
async def test_a_wrong_wish_is_refused_here(request_bytes, param):
    async with proxied(answering(whole(ANSWER))) as proxy:
        answer = await proxy.ask(request_bytes)
        assert (answer.status, json.loads(answer.body)["error"]["param"]) == (400, param)
        assert not proxy.upstream.seen


@pytest.mark.parametrize("status", [b"400 Bad Request", b"403 Forbidden", b"422 Unprocessable"])
async def test_a_refusal_is_asked_again_without(status):
    async def behave(seen: Seen) -> None:
        await seen.send(whole(REFUSAL, status) if b"logprobs" in seen.body else whole(PLAIN))

    async with proxied(behave) as proxy, proxy.client() as client:
        for _ in range(2):  # the client's connection goes on
            await client.send(post(b'{"model":"m","confidence":true}'))
            answer = await client.answer()
            told = json.loads(answer.body)["choices"][0]["confidence"]
            assert (answer.status, told["tokens"], told["reason"]) == (200, 0, "refused_by_upstream")
        assert [seen.body for seen in proxy.upstream.seen][:2] == [
            b'{"logprobs":true,"top_logprobs":5,"model":"m"}',
            b'{"model":"m"}',
        ]


async def test_what_is_refused_twice_is_the_clients_own():
    async with proxied(answering(whole(REFUSAL, b"400 Bad Request"))) as proxy:
        answer = await proxy.ask(post(b'{"model":"m","confidence":true}'))
        assert (answer.status, answer.body) == (400, REFUSAL)
        assert len(proxy.upstream.seen) == 2
        again = await proxy.ask(post(b'{"model":"m","logprobs":true,"confidence":true}'))
        assert again.status == 400
        assert len(proxy.upstream.seen) == 3  # the client's own logprobs are not taken away


async def test_in_a_stream():
    events = (
        b'data: {"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-0.5}]}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}\n\n',
        b"data: [DONE]\n\n",
    )
    raw = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + b"".join(
        events
    )
    async with proxied(answering(raw, close=True)) as proxy:
        answer = await proxy.ask(post(b'{"stream":true,"confidence":true}'))
        first, last, done = answer.body.strip().split(b"\n\n")
        assert json.loads(first[6:])["choices"][0]["logprobs"] is None
        assert json.loads(last[6:])["choices"][0]["confidence"]["tokens"] == 1
        assert done == b"data: [DONE]"
        assert answer.get(b"x-confidence") is None
