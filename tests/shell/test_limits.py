"""Every size, time and number has a limit, and what happens beyond it."""

from __future__ import annotations

import asyncio
import time

import orjson
import pytest

from proxy.core import rewriter
from proxy.exchange import answer as answers
from tests.shell.wire import (
    LAST,
    SSE_HEAD,
    WAIT,
    Seen,
    answering,
    chunk,
    erased,
    event,
    get,
    post,
    proxied,
    sized,
    whole,
)

OK = sized(b'{"a":1}')


async def test_one_byte_over_the_limit_is_413():
    async with proxied(answering(OK), max_request_body=1000) as proxy:
        fits = await proxy.ask(post(b"{%b}" % (b" " * 998)))
        over = await proxy.ask(post(b"{%b}" % (b" " * 999)))
        assert (fits.status, over.status) == (200, 413)
        assert orjson.loads(over.body)["error"]["type"] == "invalid_request_error"
        assert over.get(b"x-logprob-proxy-error") == b"body_size"
        assert over.get(b"connection") == b"close"
        assert len(proxy.upstream.seen) == 1


async def test_a_declared_length_over_the_limit_is_refused_before_the_body():
    async with proxied(answering(OK), max_request_body=1000) as proxy, proxy.client() as client:
        await client.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\nContent-Length: 1001\r\n\r\n")
        assert (await client.answer()).status == 413


@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/files"], ids=["judged", "streamed"])
async def test_a_chunked_body_over_the_limit_is_413(path):
    async with proxied(answering(OK), max_request_body=1000) as proxy:
        head = b"POST %b HTTP/1.1\r\nHost: p\r\nTransfer-Encoding: chunked\r\n\r\n" % path
        answer = await proxy.ask(head + chunk(b"x" * 600) + chunk(b"x" * 600) + LAST)
        assert (answer.status, answer.get(b"connection")) == (413, b"close")
        await proxy.settle()


async def test_a_request_of_1_6_mb_passes():
    body = b'{"model":"m","image":"%b"}' % (b"A" * 1_600_000)
    async with proxied(answering(sized(whole()))) as proxy:
        answer = await proxy.ask(post(body))
        assert answer.status == 200
        assert proxy.upstream.seen[0].body == body


async def test_bodies_too_large_to_judge_are_streamed_and_counted():
    body = b'{"top_logprobs":99,"pad":"%b"}' % (b"x" * 5000)
    async with proxied(answering(sized(whole())), max_judged_body=4000) as proxy:
        answer = await proxy.ask(post(body))
        assert (answer.status, proxy.upstream.seen[0].body) == (200, body)
        assert erased(answer.body) == whole() != answer.body
        outcome = await proxy.outcome()
        assert outcome.report is not None
        assert outcome.report.failures == {"body_not_judged": 1}
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = await proxy.ask(head + chunk(body) + LAST)
        assert (answer.status, proxy.upstream.seen[1].body) == (200, body)


async def test_a_body_that_does_not_come_is_408():
    async with proxied(answering(OK), request_body_timeout=0.2) as proxy, proxy.client() as client:
        await client.send(post(b'{"model":"m"}')[:-3])
        answer = await client.answer()
        assert (answer.status, answer.get(b"connection")) == (408, b"close")
        assert not proxy.upstream.seen


async def test_an_upload_that_stops_is_408():
    async def behave(seen: Seen) -> None:
        await seen.gone()

    async with proxied(behave, eager=False, request_body_timeout=0.2) as proxy, proxy.client() as client:
        await client.send(b"PUT /files HTTP/1.1\r\nHost: p\r\nContent-Length: 100\r\n\r\nabc")
        assert (await client.answer()).status == 408


@pytest.mark.parametrize("size", [5_000, 70_000])
async def test_a_head_over_the_limit_is_431(size):
    async with proxied(answering(OK), max_head=4096) as proxy:
        answer = await proxy.ask(get(extra=b"X: %b\r\nY: %b\r\n" % (b"a" * (size // 2), b"b" * (size // 2))))
        assert (answer.status, answer.get(b"x-logprob-proxy-error")) == (431, b"head_size")


async def test_300_streams_start_at_once():
    began = asyncio.Event()
    waiting = 0

    async def behave(seen: Seen) -> None:
        nonlocal waiting
        waiting += 1
        if waiting == 300:
            began.set()
        await asyncio.wait_for(began.wait(), WAIT)
        await seen.send(SSE_HEAD + chunk(event()) + LAST)

    async with proxied(behave) as proxy:
        start = time.monotonic()
        found = await asyncio.gather(*(proxy.ask(post()) for _ in range(300)))
        print(f"300 streams began and ended after {time.monotonic() - start:.2f} s")
        assert all(one.whole and erased(one.body) == event() for one in found)
        assert proxy.upstream.connections == 300


async def test_over_the_most_in_flight_is_503():
    ready, go = asyncio.Event(), asyncio.Event()

    async def behave(seen: Seen) -> None:
        ready.set()
        await go.wait()
        await seen.send(OK)

    async with proxied(behave, max_in_flight=1) as proxy:
        first = asyncio.ensure_future(proxy.ask(get()))
        await ready.wait()
        second = await proxy.ask(post())
        assert (second.status, second.get(b"retry-after")) == (503, b"1")
        assert second.get(b"x-logprob-proxy-error") == b"overloaded"
        go.set()
        assert (await first).status == 200
        assert (await proxy.ask(get())).status == 200


async def test_over_the_most_connections_is_503():
    async with proxied(answering(OK), max_connections=2) as proxy:
        async with proxy.client() as one, proxy.client() as two, proxy.client() as three:
            await one.send(get())
            await two.send(get())
            assert (await one.answer()).status == (await two.answer()).status == 200
            assert (await three.answer()).status == 503


async def test_no_room_to_hold_lets_pass_raw():
    async def behave(seen: Seen) -> None:
        await seen.send(sized(whole())[:-20])
        await asyncio.sleep(0.05)
        await seen.send(whole()[-20:])

    async with proxied(behave, max_held=50, max_in_flight=1) as proxy:
        answer = await proxy.ask(post(b"{}"))
        assert answer.body == whole()
        outcome = await proxy.outcome()
        assert outcome.report is not None
        assert outcome.report.failures["held_budget"] == 1
        assert outcome.outcome == "passthrough"


async def test_no_room_in_the_middle_of_a_stream():
    first, second = event("a"), event("b")

    async def behave(seen: Seen) -> None:
        await seen.send(SSE_HEAD + chunk(first + second[:100]))
        await asyncio.sleep(0.05)
        await seen.send(chunk(second[100:]) + chunk(first) + LAST)

    async with proxied(behave, max_held=50, max_in_flight=1) as proxy:
        answer = await proxy.ask(post(b"{}"))
        assert answer.whole
        assert answer.body.endswith(second + first)
        assert erased(answer.body) == first + second + first != answer.body


async def test_an_answer_over_its_limit_passes_raw():
    body = whole(pad=20_000)
    async with proxied(answering(sized(body)), max_answer=10_000) as proxy:
        assert (await proxy.ask(post())).body == body
        outcome = await proxy.outcome()
        assert outcome.report is not None
        assert outcome.report.failures == {"body_too_large": 1}


class Faulty(rewriter.Rewriter):
    """A Rewriter with a fault at the third call of feed, or at the end."""

    where = "feed"
    calls = 0

    def feed(self, data: bytes) -> bytes:
        self.calls += 1
        if self.where == "feed" and self.calls == 3:
            raise RuntimeError("SECRET")
        return super().feed(data)

    def end(self, *, clean: bool = True) -> bytes:
        if self.where == "end":
            raise RuntimeError("SECRET")
        return super().end(clean=clean)


@pytest.mark.parametrize("where", ["feed", "end"])
@pytest.mark.parametrize("size", [1, 7, 100, 4096])
@pytest.mark.parametrize("kind", ["stream", "whole"])
async def test_a_fault_in_the_rewriting_costs_no_byte(monkeypatch, where, size, kind):
    monkeypatch.setattr(answers, "Rewriter", Faulty)
    monkeypatch.setattr(Faulty, "where", where)
    data = event("a") + event("b") if kind == "stream" else whole()
    head = SSE_HEAD if kind == "stream" else SSE_HEAD.replace(b"text/event-stream", b"application/json")

    async def behave(seen: Seen) -> None:
        await seen.send(head)
        for start in range(0, len(data), size):
            await seen.send(chunk(data[start : start + size]))
            await asyncio.sleep(0.0005)
        await seen.send(LAST)

    async with proxied(behave) as proxy:
        answer = await proxy.ask(post())
        assert (erased(answer.body), answer.whole) == (data, True)
        outcome = await proxy.outcome()
        assert outcome.report is not None
        if where == "end" or len(data) > 3 * size:
            assert outcome.report.failures["internal"] == 1
            assert "RuntimeError" in proxy.log.getvalue()
        assert "SECRET" not in proxy.log.getvalue()


async def test_a_big_answer_does_not_stop_the_others():
    """While a large answer is read in slices, another stream's events keep coming."""
    big = whole()[:-2] + b',"x":[' + b",".join([event()[6:-2]] * 40_000) + b"]}"
    asked = asyncio.Event()

    async def behave(seen: Seen) -> None:
        if b"big" in seen.body:
            await seen.send(sized(big))
            return
        await seen.send(SSE_HEAD)
        asked.set()
        for _ in range(60):
            await seen.send(chunk(event()))
            await asyncio.sleep(0.01)
        await seen.send(LAST)

    async with proxied(behave) as proxy, proxy.client() as client:
        await client.send(post())
        await client.head()
        await asked.wait()
        large = asyncio.ensure_future(proxy.ask(post(b'{"model":"big"}')))
        gaps, last = [], time.monotonic()
        while await client.chunk():
            now = time.monotonic()
            gaps.append(now - last)
            last = now
        answer = await large
        assert answer.whole
        print(f"beside {len(big) / 1e6:.1f} MB in one answer the longest gap was {max(gaps) * 1000:.0f} ms")
