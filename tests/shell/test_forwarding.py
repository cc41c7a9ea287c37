"""What crosses: heads, targets, bodies, both ways."""

from __future__ import annotations

import pytest

from tests.shell.wire import answering, chunk, erased, event, get, post, proxied, sized, whole, SSE_HEAD, LAST


async def test_whole_answer_is_annotated_and_gets_its_new_length():
    async with proxied(answering(sized(whole()))) as proxy:
        answer = await proxy.ask(post())
        assert answer.status == 200
        assert b'"logprob":-0.5,"probability":0.6065306597126334' in answer.body
        assert erased(answer.body) == whole()
        assert answer.get(b"content-length") == b"%d" % len(answer.body)
        outcome = await proxy.outcome()
        assert (outcome.status, outcome.origin, outcome.outcome) == (200, "upstream", "scored")
        assert outcome.response_bytes > len(answer.body)


async def test_stream_is_annotated():
    async with proxied(answering(SSE_HEAD + chunk(event()) + chunk(b"data: [DONE]\n\n") + LAST)) as proxy:
        answer = await proxy.ask(post())
        assert answer.whole
        assert erased(answer.body) == event() + b"data: [DONE]\n\n"
        assert answer.get(b"x-accel-buffering") == b"no"
        assert (await proxy.outcome()).stream
