"""Connections to the upstream: which are kept, for how long, and that none leaks."""

from __future__ import annotations

import asyncio

import pytest

from proxy.upstream import ConnectError, Origin, Pool
from tests.shell.wire import WAIT, Seen, answering, get, post, proxied, sized

OK = sized(b"{}")


async def settled(condition) -> None:
    async with asyncio.timeout(WAIT):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://u", ("http", "u", 80, b"u", b"")),
        ("HTTPS://U.test/v1", ("https", "u.test", 443, b"u.test", b"/v1")),
        ("http://u:8000/a/", ("http", "u", 8000, b"u:8000", b"/a/")),
        ("https://u:443", ("https", "u", 443, b"u", b"")),
        ("http://[::1]:80/x", ("http", "::1", 80, b"[::1]", b"/x")),
        ("http://key:secret@u:81", ("http", "u", 81, b"u:81", b"")),
    ],
)
def test_origin(url, expected):
    origin = Origin.parse(url)
    assert (origin.scheme, origin.host, origin.port, origin.authority, origin.path) == expected


async def test_an_idle_connection_goes_after_its_time():
    async with proxied(answering(OK), upstream_keepalive=0.1) as proxy:
        await proxy.ask(get())
        await settled(lambda: proxy.pool.idle == 1)
        await settled(lambda: proxy.pool.connections == 0)
        await proxy.ask(get())
        assert proxy.upstream.connections == 2


@pytest.mark.parametrize(("said", "kept"), [(b"timeout=1", 0), (b"max=5, timeout=3", 1), (b"timeout=x", 1)])
async def test_the_advertised_time_counts_less_a_second(said, kept):
    async with proxied(answering(sized(b"{}", extra=b"Keep-Alive: %b\r\n" % said))) as proxy:
        await proxy.ask(get())
        await proxy.settle()
        assert proxy.pool.idle == kept


async def test_a_connection_that_the_upstream_closes_is_forgotten():
    async def behave(seen: Seen) -> None:
        await seen.send(OK)
        await asyncio.sleep(0.05)
        seen.writer.close()

    async with proxied(behave) as proxy:
        await proxy.ask(get())
        await settled(lambda: proxy.pool.connections == 0)
        assert proxy.pool.idle == 0
        assert (await proxy.ask(get())).status == 200


async def test_the_newest_idle_connection_goes_first():
    async with proxied(answering(OK)) as proxy:
        one, two = await proxy.pool.acquire(), await proxy.pool.acquire()
        for connection in (one, two):
            connection._ended = connection._keep_alive = True
            proxy.pool.release(connection, reusable=True)
        again = await proxy.pool.acquire()
        assert again is two
        proxy.pool.release(again, reusable=False)


async def test_nothing_leaks_over_many_ends():
    async def behave(seen: Seen) -> None:
        number = len(proxy.upstream.seen) % 5
        if number == 0:
            seen.reset()
        elif number == 1:
            await seen.send(OK[:-1])
            seen.writer.close()
        elif number == 2:
            await seen.send(b"rubbish\r\n\r\n")
        elif number == 3:
            await seen.gone()
        else:
            await seen.send(OK)

    async with proxied(behave, first_byte_timeout=0.1) as proxy:
        await asyncio.gather(*(proxy.ask(post()) for _ in range(60)), return_exceptions=True)
        await proxy.settle()
        assert proxy.pool.connections == proxy.pool.idle <= 60
        assert len(proxy.outcomes) == 60


@pytest.mark.parametrize(
    ("url", "kind"),
    [("http://127.0.0.1:1", "connect"), ("http://nowhere.invalid", "dns")],
)
async def test_why_there_is_no_connection(url, kind):
    pool = Pool(Origin.parse(url), max_head=1000, connect_timeout=5.0)
    with pytest.raises(ConnectError) as caught:
        await pool.acquire()
    assert caught.value.kind == kind
    assert pool.connections == 0


async def test_a_connection_that_takes_too_long():
    async def silent(seen: Seen) -> None: ...

    async with proxied(silent) as proxy:
        # A peer that accepts and says nothing never ends the TLS handshake.
        url = f"https://127.0.0.1:{proxy.upstream.port}"
        pool = Pool(Origin.parse(url), max_head=1000, connect_timeout=0.2)
        with pytest.raises(ConnectError) as caught:
            await pool.acquire()
        assert caught.value.kind == "timeout_connect"


async def test_no_tls_where_it_was_promised():
    async def rude(reader, writer):
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(rude, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with proxied(answering(b""), upstream=f"https://127.0.0.1:{port}") as proxy:
        answer = await proxy.ask(get())
        assert (answer.status, answer.get(b"x-logprob-proxy-error")) == (502, b"tls")
    server.close()
    await server.wait_closed()


async def test_one_look_up_serves_all_that_start_together(monkeypatch):
    from proxy.upstream import pool as pools

    calls = 0
    real = pools._look_up

    def counted(host, port):
        nonlocal calls
        calls += 1
        return real("127.0.0.1", port)

    monkeypatch.setattr(pools, "_look_up", counted)
    async with proxied(answering(OK)) as proxy:
        origin = Origin.parse(f"http://upstream.test:{proxy.upstream.port}")
        pool = Pool(origin, max_head=1000, connect_timeout=5.0)
        found = await asyncio.gather(*(pool.acquire() for _ in range(50)))
        assert calls == 1
        assert pool.busy == 50
        for connection in found:
            pool.release(connection, reusable=False)
        monkeypatch.setattr(pools, "_RESOLVED_FOR", 0.0)
        pool.release(await pool.acquire(), reusable=False)
        assert calls == 2
        pool.close()
        await settled(lambda: pool.connections == 0)
