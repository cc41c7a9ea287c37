"""The admin listener, and how the proxy ends."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

import pytest

from proxy.core.request import Profile
from proxy.exchange import ClientServer
from proxy.metrics import Metrics
from proxy.server import Server
from proxy.settings import Settings
from tests.shell.wire import (
    LAST,
    SSE_HEAD,
    WAIT,
    Proxy,
    Seen,
    answering,
    chunk,
    erased,
    event,
    get,
    post,
    proxied,
    sized,
)

OK = sized(b"{}")


async def admin(proxy: Proxy, request: bytes):
    return await proxy.ask(request, to=proxy.server.admin_address)


async def until(condition) -> None:
    async with asyncio.timeout(WAIT):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"GET /healthz", 200),
        (b"HEAD /healthz", 200),
        (b"GET /readyz?verbose", 200),
        (b"GET /metrics", 200),
        (b"GET /", 404),
        (b"GET /healthz/", 404),
        (b"GET /v1/chat/completions", 404),
        (b"POST /metrics", 405),
        (b"DELETE /healthz", 405),
        (b"TRACE /healthz", 405),
    ],
)
async def test_admin_pages(line, status):
    async with proxied(answering(OK)) as proxy:
        answer = await admin(proxy, line + b" HTTP/1.1\r\nHost: p\r\n\r\n")
        assert answer.status == status
        assert answer.get(b"server") is None
        assert not proxy.upstream.seen


async def test_metrics_are_there_after_a_request():
    async with proxied(answering(OK)) as proxy:
        await proxy.ask(get())
        await proxy.outcome()
        page = await admin(proxy, get(b"/metrics"))
        assert (
            b'logprob_proxy_requests_total{api="other",code="200",model="",origin="upstream"} 1.0'
            in page.body
        )


async def test_a_scrape_holds_up_nobody():
    async with proxied(answering(OK)) as proxy:
        expose, go = proxy.counters.expose, threading.Event()

        def slow():
            assert go.wait(WAIT)
            return expose()

        proxy.counters.expose = slow
        await proxy.server.close()
        again = Server(proxy.server.settings, Profile("openai"), proxy.counters)
        await again.start()
        try:
            scrape = asyncio.ensure_future(proxy.ask(get(b"/metrics"), to=again.admin_address))
            assert (await proxy.ask(get(), to=again.address)).status == 200
            assert not scrape.done()
            go.set()
            assert b"logprob_proxy_build_info" in (await scrape).body
        finally:
            go.set()
            await again.close()


async def test_rubbish_gets_no_echo():
    async with proxied(answering(OK)) as proxy:
        for ask in (proxy.ask, lambda data: admin(proxy, data)):
            answer = await ask(b"GET / HTTP/1.1\r\nHost: p\r\nX-Secret : CANARY\r\n\r\n")
            assert (answer.status, answer.get(b"x-logprob-proxy-error")) == (400, b"malformed")
            assert answer.get(b"server") is None
            assert b"CANARY" not in answer.body
            assert answer.get(b"connection") == b"close"
        assert (await proxy.outcome()).status == 400


async def test_the_drain_step_by_step():
    go = asyncio.Event()

    async def behave(seen: Seen) -> None:
        if b"slow" not in seen.start:
            await seen.send(OK)
            return
        await seen.send(SSE_HEAD + chunk(event("one")))
        await go.wait()
        await seen.send(chunk(event("two")) + LAST)

    async with proxied(behave, drain_delay=0.4) as proxy, proxy.client() as idle, proxy.client() as slow:
        await idle.send(get())
        assert (await idle.answer()).get(b"connection") is None
        await slow.send(post(path=b"/slow/v1/chat/completions"))
        await slow.head()
        proxy.server.begin_drain()
        assert (await admin(proxy, get(b"/readyz"))).status == 503
        assert (await admin(proxy, get(b"/healthz"))).status == 200
        late = await proxy.ask(get())  # balancers lag
        assert (late.status, late.get(b"connection")) == (200, b"close")
        await until(lambda: not proxy.server._listening[0].is_serving)
        with pytest.raises(ConnectionError):
            await proxy.ask(get())
        assert (await idle.more()) == b""
        assert (await admin(proxy, get(b"/metrics"))).status == 200
        go.set()
        body, clean = await slow.chunks()
        assert (erased(body), clean) == (event("one") + event("two"), True)
        await asyncio.wait_for(proxy.server.wait_closed(), WAIT)
        with pytest.raises(ConnectionError):
            await admin(proxy, get(b"/healthz"))


async def test_streams_that_take_too_long_are_broken_and_told():
    async def behave(seen: Seen) -> None:
        await seen.send(SSE_HEAD + chunk(event()))
        await seen.gone()

    async with proxied(behave, drain_timeout=0.2) as proxy, proxy.client() as client:
        await client.send(post())
        await client.head()
        proxy.server.begin_drain()
        body, clean = await client.chunks()
        assert (erased(body), clean) == (event(), False)
        await asyncio.wait_for(proxy.server.wait_closed(), WAIT)
        assert '"count":1' in proxy.log.getvalue()
        assert (await proxy.outcome()).error == "stopped"


async def test_an_answer_not_begun_is_503_at_the_end():
    async def behave(seen: Seen) -> None:
        await seen.gone()

    async with proxied(behave, drain_timeout=0.1) as proxy:
        asked = asyncio.ensure_future(proxy.ask(post()))
        await until(lambda: proxy.upstream.seen)
        proxy.server.begin_drain()
        answer = await asked
        assert (answer.status, answer.get(b"x-logprob-proxy-error")) == (503, b"stopping")


async def test_a_request_whose_body_never_came_does_not_hold_the_end():
    async with proxied(answering(OK), drain_timeout=0.1) as proxy, proxy.client() as client:
        await client.send(post()[:-5])
        await until(lambda: proxy.server._shared.running)
        proxy.server.begin_drain()
        assert (await client.answer()).status == 503
        await asyncio.wait_for(proxy.server.wait_closed(), WAIT)


async def test_a_connection_that_never_asks_does_not_hold_the_end(monkeypatch):
    """It was being accepted when idle ones were closed, so nobody has seen it."""
    monkeypatch.setattr(ClientServer, "retire", lambda _: None)
    async with proxied(answering(OK)) as proxy, proxy.client():
        await until(lambda: proxy.server._listening[0].connections.connections)
        proxy.server.begin_drain()
        await asyncio.wait_for(proxy.server.wait_closed(), WAIT)


async def test_signals_drain_and_the_second_one_ends_at_once():
    async def behave(seen: Seen) -> None:
        if seen.start.startswith(b"GET"):
            await seen.send(OK)
            return
        await seen.send(SSE_HEAD + chunk(event()))
        await seen.gone()

    async with proxied(behave, drain_delay=30.0, drain_timeout=30.0) as proxy, proxy.client() as client:
        running = asyncio.ensure_future(proxy.server.run())
        await client.send(post())
        await client.head()
        os.kill(os.getpid(), signal.SIGTERM)
        await until(lambda: proxy.server._shared.draining)
        assert (await proxy.ask(get())).status == 200
        began = time.monotonic()
        os.kill(os.getpid(), signal.SIGTERM)
        body, clean = await client.chunks()
        assert (erased(body), clean) == (event(), False)
        await asyncio.wait_for(running, WAIT)
        print(f"after the second signal it ended in {time.monotonic() - began:.2f} s")
        assert time.monotonic() - began < 3


async def test_the_end_leaves_nothing_open():
    async with proxied(answering(OK)) as proxy:
        for _ in range(5):
            await proxy.ask(get())
        assert proxy.pool.idle == 1
        await proxy.server.close()
        assert proxy.pool.connections == 0


async def test_a_port_that_is_taken_leaves_nothing_bound():
    async with proxied(answering(OK)) as proxy:
        taken = f"127.0.0.1:{proxy.server.address[1]}"
        settings = Settings(upstream=proxy.server.settings.upstream, listen="127.0.0.1:0", admin=taken)
        server = Server(settings, Profile("openai"), Metrics(settings))
        with pytest.raises(OSError, match="address already in use"):
            await server.start()
        assert not server._listening[0].is_serving


async def test_loop_lag_is_measured():
    async with proxied(answering(OK)) as proxy:
        time.sleep(0.6)
        await asyncio.sleep(0.05)
        page = (await admin(proxy, get(b"/metrics"))).body.decode()
        total = next(
            line for line in page.splitlines() if line.startswith("logprob_proxy_loop_lag_seconds_sum")
        )
        assert float(total.split()[1]) > 0.05
