"""One request in is one request out, or none: whatever two parsers could read differently is refused or re-framed.

The families are those of the public request-smuggling literature; the bytes are our own. Each payload carries a second
request that must never reach the upstream, be it as a request or as a part of a body that was not declared.
"""

from __future__ import annotations

import asyncio
import re

import pytest

from tests.shell.wire import Seen, proxied, sized

EVIL = b"GET /smuggled HTTP/1.1\r\nHost: p\r\n\r\n"
CHUNKED = b"3\r\nabc\r\n0\r\n\r\n"


def line(*headers: bytes, body: bytes = b"abc", start: bytes = b"POST /v1/x HTTP/1.1") -> bytes:
    return b"\r\n".join([start, b"Host: p", *headers, b"", b""]) + body


REFUSED = {
    "length and chunked": line(b"Content-Length: 3", b"Transfer-Encoding: chunked", body=CHUNKED + EVIL),
    "chunked and length": line(b"Transfer-Encoding: chunked", b"Content-Length: 3", body=CHUNKED + EVIL),
    "two lengths, alike": line(b"Content-Length: 3", b"Content-Length: 3"),
    "two lengths": line(b"Content-Length: 3", b"Content-Length: 40", body=b"abc" + EVIL),
    "a list of lengths": line(b"Content-Length: 3, 3"),
    "plus": line(b"Content-Length: +3"),
    "minus": line(b"Content-Length: -1"),
    "hexadecimal": line(b"Content-Length: 0x3"),
    "underscore in a number": line(b"Content-Length: 3_0"),
    "empty length": line(b"Content-Length: "),
    **{
        f"coding {value!r}": line(b"Transfer-Encoding: " + value, body=CHUNKED + EVIL)
        for value in (
            b"xchunked",
            b"chunked, identity",
            b"identity, chunked",
            b"gzip, chunked",
            b",chunked",
            b"chunked, chunked",
            b"identity",
            b"chunked\t",
            b"\x0bchunked",
            b"chunked;a=b",
            b'"chunked"',
            b"chunked,",
            b"chunked\xa0",
        )
    },
    "coding twice": line(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=CHUNKED),
    "space before the colon": line(b"Transfer-Encoding : chunked", body=CHUNKED),
    "folded": line(b"Transfer-Encoding:", b" chunked", body=CHUNKED),
    "leading space": line(b" Transfer-Encoding: chunked", body=CHUNKED),
    "behind a bare CR": line(b"X: a\rTransfer-Encoding: chunked", body=CHUNKED),
    "behind a bare LF": line(b"X: a\nTransfer-Encoding: chunked", body=CHUNKED),
    "NUL": line(b"X: a\0b", b"Content-Length: 3"),
    "chunked in HTTP/1.0": line(b"Transfer-Encoding: chunked", body=CHUNKED + EVIL, start=b"POST / HTTP/1.0"),
    "HTTP/0.9": line(b"Content-Length: 3", start=b"POST / HTTP/0.9"),
    "HTTP/1.2": line(b"Content-Length: 3", start=b"POST / HTTP/1.2"),
    "HTTP/2.0": line(b"Content-Length: 3", start=b"POST / HTTP/2.0"),
    "no Host": b"GET / HTTP/1.1\r\n\r\n",
    "two Hosts": line(b"Host: q", b"Content-Length: 3"),
    "bare LF lines": b"GET / HTTP/1.1\nHost: a\n\n",
    "space in the target": line(start=b"GET /a b HTTP/1.1", body=b""),
    "tab as separator": line(start=b"GET\t/a\tHTTP/1.1", body=b""),
    "raw UTF-8 target": line(start=b"GET /\xc3\xa9 HTTP/1.1", body=b""),
    "authority trick": line(start=b"GET @evil.test/v1 HTTP/1.1", body=b""),
}

BROKEN_CHUNKS = {
    "LF after the size": b"3\nabc\n0\n\n",
    "LF in an extension": b"3;a\nb\r\nabc\r\n0\r\n\r\n",
    "0x": b"0x3\r\nabc\r\n0\r\n\r\n",
    "plus": b"+3\r\nabc\r\n0\r\n\r\n",
    "minus": b"-3\r\nabc\r\n0\r\n\r\n",
    "space": b"3 \r\nabc\r\n0\r\n\r\n",
    "overflow": b"FFFFFFFFFFFFFFFF1\r\nabc\r\n0\r\n\r\n",
    "no line end after the data": b"3\r\nabcXX0\r\n\r\n",
    "a length as trailer": b"3\r\nabc\r\n0\r\nContent-Length: 9\r\n\r\n",
}

ONE_REQUEST = {
    "length": (line(b"Content-Length: 3"), b"abc"),
    "chunked": (line(b"Transfer-Encoding: chunked", body=CHUNKED), b"abc"),
    "Chunked": (line(b"Transfer-Encoding: Chunked", body=CHUNKED), b"abc"),
    "tab before": (line(b"Transfer-Encoding:\tchunked", body=CHUNKED), b"abc"),
    "chunk extension": (line(b"Transfer-Encoding: chunked", body=b"3;a=b\r\nabc\r\n0\r\n\r\n"), b"abc"),
    "underscore coding": (line(b"Transfer_Encoding: chunked", b"Content-Length: 0", body=b""), b""),
    "underscore length": (line(b"Content_Length: 5", b"Content-Length: 0", body=b""), b""),
    "GET with a body": (line(b"Content-Length: 3", start=b"GET /v1/x HTTP/1.1"), b"abc"),
    "request as body": (line(b"Content-Length: %d" % len(EVIL), body=EVIL), EVIL),
    "length named in Connection": (line(b"Connection: Content-Length", b"Content-Length: 3"), b"abc"),
    "coding named in Connection": (
        line(b"Connection: Transfer-Encoding", b"Transfer-Encoding: chunked", body=CHUNKED),
        b"abc",
    ),
    "upgrade to h2c": (
        line(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk", body=b""),
        b"",
    ),
    "leading line end": (b"\r\n" + line(b"Content-Length: 3"), b"abc"),
}


async def echo(seen: Seen) -> None:
    await seen.send(sized(seen.body or b"-", b"text/plain"))


def answers(got: bytes) -> int:
    return len(re.findall(rb"HTTP/1\.1 \d", got))


async def everything(proxy, payload: bytes) -> bytes:
    async with proxy.client() as client:
        await client.send(payload)
        client.sock.setblocking(False)
        got = b""
        try:
            async with asyncio.timeout(0.15):
                while part := await client.more():
                    got += part
        except (TimeoutError, ConnectionError):
            pass
        return got


@pytest.mark.parametrize("payload", REFUSED.values(), ids=REFUSED)
async def test_ambiguous_heads_reach_nobody(payload):
    async with proxied(echo) as proxy:
        got = await everything(proxy, payload)
        assert not proxy.upstream.seen
        assert got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 ", b"HTTP/1.1 505 "))
        assert answers(got) == 1  # nothing behind it was taken for a request
        assert b"Connection: close\r\n" in got
        assert b"X-Logprob-Proxy-Error: " in got
        assert b"Server:" not in got


@pytest.mark.parametrize("path", [b"/v1/x", b"/v1/chat/completions"], ids=["streamed", "judged"])
@pytest.mark.parametrize("body", BROKEN_CHUNKS.values(), ids=BROKEN_CHUNKS)
async def test_broken_chunks_never_become_a_whole_request(body, path):
    payload = line(b"Transfer-Encoding: chunked", body=body + EVIL, start=b"POST %b HTTP/1.1" % path)
    whole: list[bytes] = []

    async def behave(seen: Seen) -> None:
        whole.append(seen.start)
        await echo(seen)

    async with proxied(behave) as proxy:
        got = await everything(proxy, payload)
        assert not whole  # a head may have come, but no end
        assert got.startswith(b"HTTP/1.1 400 ")
        assert answers(got) == 1
        await proxy.settle()


@pytest.mark.parametrize(("payload", "body"), ONE_REQUEST.values(), ids=ONE_REQUEST)
async def test_one_request_stays_one_request(payload, body):
    async with proxied(echo) as proxy:
        got = await everything(proxy, payload)
        assert got.startswith(b"HTTP/1.1 200 ")
        assert answers(got) == 1
        (seen,) = proxy.upstream.seen
        assert seen.body == body
        framing = [name.lower().replace(b"_", b"-") for name, _ in seen.headers]
        framing = [name for name in framing if name in (b"content-length", b"transfer-encoding")]
        assert len(framing) == (
            0 if payload.startswith(b"POST /v1/x HTTP/1.1\r\nHost: p\r\nConnection: Upgr") else 1
        )
        assert seen.get(b"upgrade") is seen.get(b"http2-settings") is None


async def test_a_second_request_is_answered_as_one():
    """Not smuggled but pipelined: both are seen, checked and forwarded on their own."""
    async with proxied(echo) as proxy:
        got = await everything(proxy, line(b"Content-Length: 3") + EVIL)
        assert answers(got) == 2
        assert [seen.start.split()[1] for seen in proxy.upstream.seen] == [b"/v1/x", b"/smuggled"]


async def test_a_body_behind_an_upgrade_is_no_request():
    upgrade = (b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
    async with proxied(echo) as proxy:
        got = await everything(proxy, line(*upgrade, b"Content-Length: %d" % len(EVIL), body=EVIL + EVIL))
        assert got.startswith(b"HTTP/1.1 501 ")
        assert answers(got) == 1
        assert not proxy.upstream.seen


async def test_a_body_that_was_not_read_is_no_request():
    """The pause-based family: an early answer, then the rest of the declared body spelled as a request."""

    async def behave(seen: Seen) -> None:
        await seen.send(sized(b"no", status=b"401 Unauthorized"))

    async with proxied(behave, eager=False) as proxy, proxy.client() as client:
        await client.send(line(b"Content-Length: 1000", body=b""))
        answer = await client.answer()
        assert (answer.status, answer.get(b"connection")) == (401, b"close")
        try:
            await client.send(EVIL)
            assert await client.more() == b""
        except ConnectionError:
            pass
        assert len(proxy.upstream.seen) == 1


async def test_an_unasked_answer_is_given_to_nobody():
    """Response-queue poisoning: what an idle upstream connection says must not answer the next request."""

    async def behave(seen: Seen) -> None:
        await seen.send(sized(b"good"))
        if b"first" in seen.start:
            await asyncio.sleep(0.05)
            await seen.send(sized(b"poison"))

    async with proxied(behave) as proxy, proxy.client() as client:
        await client.send(b"GET /first HTTP/1.1\r\nHost: p\r\n\r\n")
        assert (await client.answer()).body == b"good"
        await asyncio.sleep(0.15)
        assert proxy.pool.idle == 0
        await client.send(b"GET /second HTTP/1.1\r\nHost: p\r\n\r\n")
        assert (await client.answer()).body == b"good"
