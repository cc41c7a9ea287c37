"""How it ends: upstreams that die, clients that leave, clients that take nothing. No byte that came is lost."""

from __future__ import annotations

import asyncio
import time

import orjson
import pytest

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

EVENTS = event("one") + event("two")
PAD = b": " + b"x" * 2_000_000 + b"\n\n"
"""More than all buffers between upstream and client hold."""


@pytest.mark.parametrize("end", ["fin", "rst"])
@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
@pytest.mark.parametrize("slow", [False, True], ids=["quick", "slow"])
@pytest.mark.parametrize("media", [b"text/event-stream", b"text/plain"], ids=["edited", "raw"])
async def test_upstream_dies_after_two_events(end, version, slow, media):
    """Both events arrive, then the end is broken: never a last chunk, never a clean close without a length."""
    sent = asyncio.Event()

    async def behave(seen: Seen) -> None:
        await seen.send(SSE_HEAD.replace(b"text/event-stream", media))
        data = chunk(PAD) if slow else b""
        await seen.send(data + chunk(event("one")) + chunk(event("two")))
        if not slow:
            await asyncio.sleep(0.05)  # a reset may overtake what the peer has not read yet
        sent.set()
        if end == "rst":
            seen.reset()
        else:
            seen.writer.close()

    async with proxied(behave) as proxy, proxy.client(receive_buffer=8192 if slow else None) as client:
        await client.send(post(version=version))
        start, _ = await client.head()
        assert start.startswith(b"HTTP/1.1 200")
        if slow:
            await asyncio.sleep(0.3)
        body, clean = await (client.chunks() if version == b"1.1" else client.rest())
        assert not clean
        if not slow or end == "fin":
            assert erased(body) == (PAD if slow else b"") + EVENTS
        outcome = await proxy.outcome()
        assert outcome.outcome == "upstream_cut"
        assert outcome.upstream_error in ("cut", "reset")
        assert b"[DONE]" not in body
        if slow and end == "rst":
            # The upstream's kernel drops what it had not sent; all that reached this side must arrive.
            assert outcome.response_bytes > 0


async def test_reset_behind_a_slow_client_loses_nothing_that_arrived():
    """The upstream's bytes wait in this side's kernel while reading is paused, then a reset comes behind them."""
    small = b": " + b"x" * 400_000 + b"\n\n"

    async def behave(seen: Seen) -> None:
        await seen.send(SSE_HEAD + chunk(small) + chunk(event("one")) + chunk(event("two")))
        await asyncio.sleep(0.3)
        seen.reset()

    async with proxied(behave) as proxy, proxy.client(receive_buffer=4096) as client:
        await client.send(post())
        await client.head()
        await asyncio.sleep(0.6)
        body, clean = await client.chunks()
        assert (erased(body), clean) == (small + EVENTS, False)
        assert (await proxy.outcome()).outcome == "upstream_cut"


async def test_cut_inside_an_event_delivers_the_piece():
    async def behave(seen: Seen) -> None:
        await seen.send(SSE_HEAD + chunk(event("one")) + b"40\r\n" + event("two")[:20])
        seen.writer.close()

    async with proxied(behave) as proxy:
        answer = await proxy.ask(post())
        assert not answer.whole
        assert erased(answer.body) == event("one") + event("two")[:20]


async def test_malformed_chunk_breaks_behind_what_came():
    async with proxied(answering(SSE_HEAD + chunk(event("one")) + b"ZZ\r\nrubbish")) as proxy:
        answer = await proxy.ask(post())
        assert not answer.whole
        assert erased(answer.body) == event("one")
        assert (await proxy.outcome()).upstream_error == "protocol"


@pytest.mark.parametrize("length", [5000, 500_000], ids=["small", "large"])
@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
async def test_whole_answer_cut_leaves_raw(length, version):
    piece = b'{"id":"chatcmpl-t","choices":[{"index":0'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % length
    async with proxied(answering(head + piece, close=True)) as proxy:
        answer = await proxy.ask(post(version=version))
        assert (answer.status, answer.body, answer.whole) == (200, piece, False)
        assert (await proxy.outcome()).outcome == "upstream_cut"


async def test_whole_answer_cut_before_its_body_is_502():
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n"
    async with proxied(answering(head, close=True)) as proxy:
        answer = await proxy.ask(post())
        assert (answer.status, answer.get(b"x-logprob-proxy-error")) == (502, b"cut")
        assert orjson.loads(answer.body)["error"]["type"] == "server_error"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", b"cut"),
        (b"HTTP/1.1 200 OK\r\nConte", b"cut"),
        (b"220 smtp.test ready\r\n", b"protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", b"protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", b"protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", b"protocol"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", b"protocol"),
        (b"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 0\r\n\r\n", b"protocol"),
        (b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n", b"protocol"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", b"protocol"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000 + b"\r\nContent-Length: 0\r\n\r\n", b"protocol"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 4000, b"protocol"),
    ],
)
async def test_upstreams_that_do_not_answer_are_502(raw, reason):
    async with proxied(answering(raw, close=True)) as proxy:
        answer = await proxy.ask(get())
        assert (answer.status, answer.get(b"x-logprob-proxy-error")) == (502, reason)
        outcome = await proxy.outcome()
        assert (outcome.origin, outcome.upstream_error) == ("proxy", reason.decode())


async def test_no_connection_is_502():
    async with proxied(answering(b""), upstream="http://127.0.0.1:1/v1") as proxy:
        answer = await proxy.ask(post())
        assert (answer.status, answer.get(b"x-logprob-proxy-error")) == (502, b"connect")
        assert (await proxy.outcome()).upstream_error == "connect"


async def test_unknown_name_is_502():
    async with proxied(answering(b""), upstream="http://nowhere.invalid") as proxy:
        answer = await proxy.ask(get())
        assert answer.status == 502
        assert answer.get(b"x-logprob-proxy-error") == b"dns"


async def test_silence_before_the_head_is_504():
    async def behave(seen: Seen) -> None:
        await seen.gone()

    async with proxied(behave, first_byte_timeout=0.2) as proxy:
        answer = await proxy.ask(post())
        assert (answer.status, answer.get(b"x-logprob-proxy-error")) == (504, b"timeout_first_byte")


async def test_silence_after_the_head_is_a_broken_end():
    async def behave(seen: Seen) -> None:
        await seen.send(SSE_HEAD + chunk(event()))
        await seen.gone()

    async with proxied(behave, idle_timeout=0.2) as proxy:
        answer = await proxy.ask(post())
        assert (erased(answer.body), answer.whole) == (event(), False)
        outcome = await proxy.outcome()
        assert (outcome.upstream_error, outcome.outcome) == ("timeout_idle", "upstream_cut")


async def test_a_slow_client_is_no_silent_upstream():
    async def behave(seen: Seen) -> None:
        await seen.send(SSE_HEAD + chunk(PAD) + chunk(event()) + LAST)

    async with proxied(behave, idle_timeout=0.2) as proxy, proxy.client(receive_buffer=4096) as client:
        await client.send(post())
        await client.head()
        await asyncio.sleep(0.7)
        body, clean = await client.chunks()
        assert (erased(body), clean) == (PAD + event(), True)


async def test_an_empty_stream_is_told():
    async with proxied(answering(SSE_HEAD + LAST)) as proxy:
        assert (await proxy.ask(post())).whole
        assert (await proxy.outcome()).upstream_error == "empty_stream"


@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize("stage", ["before the head", "in mid-stream", "whole answer held"])
async def test_a_client_that_leaves_ends_the_upstream(stage, how):
    at = asyncio.Event()
    gone: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def behave(seen: Seen) -> None:
        if stage == "in mid-stream":
            await seen.send(SSE_HEAD + chunk(event()))
        elif stage == "whole answer held":
            await seen.send(sized(whole())[:-10])
        at.set()
        gone.set_result(await seen.gone())

    async with proxied(behave) as proxy, proxy.client() as client:
        await client.send(post())
        await asyncio.wait_for(at.wait(), WAIT)
        if stage == "in mid-stream":
            await client.head()
        await asyncio.sleep(0.05)
        left = time.monotonic()
        if how == "rst":
            client.reset()
        else:
            client.close()
        took = await asyncio.wait_for(gone, 1.0) - left
        print(f"client left by {how} {stage}: upstream closed after {took * 1000:.1f} ms")
        outcome = await proxy.outcome()
        assert outcome.outcome == "client_closed"
        assert outcome.status == (200 if stage != "before the head" else 499)
        if stage == "in mid-stream":
            assert outcome.report is not None
            assert outcome.report.status_counts[("answer", "scored")] == 1


async def test_a_half_closed_client_has_left():
    gone: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def behave(seen: Seen) -> None:
        await seen.send(SSE_HEAD)
        gone.set_result(await seen.gone())

    async with proxied(behave) as proxy, proxy.client() as client:
        await client.send(post())
        await client.head()
        client.half_close()
        await asyncio.wait_for(gone, 1.0)


async def test_a_client_that_leaves_while_the_upload_waits():
    gone: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def behave(seen: Seen) -> None:
        gone.set_result(await seen.gone())

    async with proxied(behave, eager=False) as proxy, proxy.client() as client:
        await client.send(b"PUT /files HTTP/1.1\r\nHost: p\r\nContent-Length: 1000\r\n\r\nabc")
        await asyncio.sleep(0.1)
        client.close()
        await asyncio.wait_for(gone, 1.0)
        assert (await proxy.outcome()).outcome == "client_closed"


async def test_a_client_that_takes_nothing_pauses_the_upstream():
    sent = 0
    block = chunk(b": " + b"x" * 65530 + b"\n\n")

    async def behave(seen: Seen) -> None:
        nonlocal sent
        await seen.send(SSE_HEAD)
        for _ in range(1000):
            await seen.send(block)
            sent += len(block)
        await seen.send(LAST)

    async with proxied(behave) as proxy, proxy.client(receive_buffer=65536) as client:
        await client.send(post())
        await client.head()
        last = -1
        while sent != last:
            last = sent
            await asyncio.sleep(0.2)
        print(f"upstream was stopped after {sent / 1e6:.1f} MB of {1000 * len(block) / 1e6:.1f} MB")
        connection = next(iter(proxy.server._listening[0].connections.connections))
        assert connection.transport.get_write_buffer_size() < 1_000_000
        assert sent < 16_000_000  # the kernel's buffers on both sides
        body, clean = await client.chunks()
        assert (len(body), clean) == (1000 * 65534, True)


async def test_a_client_that_stalls_is_dropped():
    gone: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def behave(seen: Seen) -> None:
        try:
            await seen.send(SSE_HEAD + chunk(PAD) * 5)
        except ConnectionError:
            pass
        gone.set_result(await seen.gone())

    async with proxied(behave, write_timeout=0.3) as proxy, proxy.client(receive_buffer=4096) as client:
        await client.send(post())
        await client.head()
        await asyncio.wait_for(gone, 3.0)
        assert (await proxy.outcome()).outcome == "client_closed"


async def test_a_stalled_client_behind_a_whole_answer_is_dropped():
    async with proxied(answering(sized(b"x" * 9_000_000, b"text/plain")), write_timeout=0.3) as proxy:
        async with proxy.client(receive_buffer=4096) as client:
            await client.send(get())
            await client.head()
            await proxy.outcome()
            await asyncio.sleep(0.5)
            assert not proxy.server._listening[0].connections.connections


async def test_a_slow_but_living_client_is_kept():
    body = b"x" * 600_000
    async with proxied(answering(sized(body, b"text/plain")), write_timeout=0.3) as proxy:
        async with proxy.client(receive_buffer=4096) as client:
            await client.send(get())
            await client.head()
            got = b""
            while len(got) < len(body):
                got += await client.more(30_000)
                await asyncio.sleep(0.02)
            assert got == body


async def test_an_early_answer_does_not_wait_for_the_upload():
    raw = sized(b'{"error":"too big"}', status=b"413 Payload Too Large")

    async def behave(seen: Seen) -> None:
        await seen.send(raw)
        seen.writer.close()

    async with proxied(behave, eager=False) as proxy, proxy.client() as client:
        await client.send(
            b"POST /files HTTP/1.1\r\nHost: p\r\nContent-Length: 30000000\r\n\r\n" + b"x" * 10_000
        )
        answer = await client.answer()
        assert (answer.status, answer.get(b"connection")) == (413, b"close")
        assert answer.body == b'{"error":"too big"}'
        assert await client.more() == b""


async def test_the_upstream_keeps_its_connection_only_after_clean_ends():
    async def behave(seen: Seen) -> None:
        path = seen.start.split()[1]
        if path == b"/surplus":
            await seen.send(sized(b"a") + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        elif path == b"/close":
            await seen.send(sized(b"a", extra=b"Connection: close\r\n"))
        elif path == b"/short":
            await seen.send(sized(b"a", extra=b"Keep-Alive: timeout=1\r\n"))
        else:
            await seen.send(sized(b"good"))

    async with proxied(behave) as proxy, proxy.client() as client:
        for number, path in enumerate([b"/a", b"/surplus", b"/a", b"/close", b"/a", b"/short", b"/a", b"/a"]):
            await client.send(get(path))
            answer = await client.answer()
            assert answer.body == (b"good" if path == b"/a" else b"a"), number
        assert proxy.upstream.connections == 4
