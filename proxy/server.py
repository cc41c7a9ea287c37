"""The two listeners, what is answered on the second, and how it all ends.

Law: the admin listener only reads, and never asks the upstream. An end is announced before it comes: first readiness
goes, then new connections, then answers that took too long; a second signal skips what is left.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from proxy import headers, logs
from proxy.core.problem import Problem
from proxy.core.report import Outcome
from proxy.core.request import Profile
from proxy.exchange import Budget, ClientServer, Exchange, Sent, Shared, tasks
from proxy.metrics import Metrics
from proxy.observe import Observer
from proxy.settings import Settings
from proxy.upstream import Origin, Pool

_LAG_INTERVAL: Final = 0.5
_BREAK_GRACE: Final = 2.0
"""Seconds for broken ends to leave before connections are dropped."""
_LAST_ROUNDS: Final = 1000
_BACKLOG: Final = 1024
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Server:
    """The proxy as a whole: `start`, then `run` or `begin_drain` and `wait_closed`."""

    def __init__(self, settings: Settings, profile: Profile, metrics: Metrics) -> None:
        self.settings = settings
        self._profile = profile
        self._metrics = metrics
        self.address: tuple[str, int] = ("", 0)
        self.admin_address: tuple[str, int] | None = None
        self._listening: list[asyncio.Server] = []
        self._protocols: list[ClientServer] = []
        self._lag: asyncio.TimerHandle | None = None
        self._drain: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._closed = asyncio.Event()

    # -- begin

    async def start(self) -> None:
        """Bind both listeners; the addresses then say where they really are."""
        settings = self.settings
        origin = Origin.parse(settings.upstream)
        pool = Pool(
            origin,
            max_head=settings.max_head,
            connect_timeout=settings.connect_timeout,
            keep_alive=settings.upstream_keepalive,
            assumed=self._profile.keep_alive,
        )
        observer = Observer(settings.observe_rate if settings.observe else 0.0)
        budget = Budget(settings.max_held)
        self._shared = Shared(settings, self._profile, pool, self._record, budget, observer)
        try:
            self.address = await self._listen(self._serve, settings.listen_address)
            if settings.admin_address is not None:
                self.admin_address = await self._listen(self._admin, settings.admin_address)
        except OSError:
            for server in self._listening:
                server.close()
            raise
        self._beat(asyncio.get_running_loop().time())

    async def _listen(
        self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], address: tuple[str, int]
    ) -> tuple[str, int]:
        protocols = ClientServer(
            handler,
            envelope=self._profile.envelope or "openai",
            max_head=self.settings.max_head,
            max_connections=self.settings.max_connections,
            write_timeout=self.settings.write_timeout,
            refused=self._refused,
        )
        host, port = address
        server = await asyncio.get_running_loop().create_server(
            protocols, host or None, port, backlog=_BACKLOG
        )
        self._protocols.append(protocols)
        self._listening.append(server)
        bound: tuple[Any, ...] = server.sockets[0].getsockname()
        return bound[0], bound[1]

    def _beat(self, due: float) -> None:
        """How late the loop comes is how long everything waits."""
        loop = asyncio.get_running_loop()
        self._metrics.loop_lag(max(0.0, loop.time() - due))
        self._metrics.held(self._shared.budget.held)
        due = loop.time() + _LAG_INTERVAL
        self._lag = loop.call_at(due, self._beat, due)

    # -- serve

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        self._metrics.inflight_inc()
        try:
            return await Exchange(self._shared, request).run()
        finally:
            self._metrics.inflight_dec()

    def _record(self, outcome: Outcome) -> None:
        try:
            self._metrics.record(outcome)
            logs.log_outcome(outcome)
        except Exception as fault:  # noqa: BLE001  # what is told about an exchange must not cost the exchange
            logs.get().error("an outcome was not recorded", exc_info=fault)

    def _refused(self, problem: Problem) -> None:
        """A request that could not be read: no exchange came of it, but it is counted."""
        self._record(
            Outcome(time=time.time(), method="", status=problem.status, origin="proxy", problem=problem)
        )

    # -- admin

    async def _admin(self, request: web.BaseRequest) -> web.StreamResponse:
        status, body, media = self._page(request.method, request.raw_path.partition("?")[0])
        fields = [(b"Content-Type", media.encode("ascii")), (b"Cache-Control", b"no-store")]
        if status == 405:
            fields.append((b"Allow", b"GET, HEAD"))
        keep = bool(request.keep_alive) and request.content.is_eof()
        if request.transport is not None:
            request.transport.write(
                headers.own_answer(status, body, fields, head_only=request.method == "HEAD", close=not keep)
            )
        return Sent(keep_alive=keep)

    def _page(self, method: str, path: str) -> tuple[int, bytes, str]:
        text = "text/plain; charset=utf-8"
        if method not in ("GET", "HEAD"):
            return 405, b"only GET and HEAD\n", text
        match path:
            case "/metrics":
                return 200, *self._metrics.expose()
            case "/healthz":
                return 200, b"ok\n", text
            case "/readyz":
                return (503, b"draining\n", text) if self._shared.draining else (200, b"ok\n", text)
            case _:
                return 404, b"only /metrics, /healthz and /readyz\n", text

    # -- end

    async def run(self) -> None:
        """Serve until a signal has ended it: SIGTERM and SIGINT drain, the second one ends at once."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._signalled)
        try:
            await self.wait_closed()
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def _signalled(self) -> None:
        if self._drain is None:
            self.begin_drain()
        else:
            self._hurry.set()

    def begin_drain(self) -> None:
        """Stop being ready, and end when what runs has ended."""
        if self._drain is None:
            self._shared.draining = True
            self._drain = tasks.spawn(self._end(), "drain")

    async def wait_closed(self) -> None:
        await self._closed.wait()

    async def close(self) -> None:
        """End now."""
        self._hurry.set()
        self.begin_drain()
        await self.wait_closed()

    async def _end(self) -> None:
        settings, shared = self.settings, self._shared
        logs.get().info("draining", in_flight=len(shared.running))
        try:
            await self._until(settings.drain_delay)
            listening, clients = self._listening[0], self._protocols[0]
            listening.close()
            clients.retire()
            if shared.running:
                await self._until(settings.drain_timeout, shared.idle)
            await self._break_off()
            await clients.shutdown(timeout=0.0)
        finally:
            await self._release()

    async def _until(self, seconds: float, *events: asyncio.Event) -> None:
        """Wait for the first of the events, a second signal, or the time."""
        waiting = [tasks.spawn(event.wait(), "drain") for event in (self._hurry, *events)]
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for one in waiting:
            one.cancel()

    async def _break_off(self) -> None:
        """Break what still runs, so that its clients see that it is not whole."""
        shared = self._shared
        if not shared.running:
            return
        logs.get().warning("answers broken off at the end of the drain", count=len(shared.running))
        for exchange in tuple(shared.running):
            exchange.stop()
        waiting = tasks.spawn(shared.idle.wait(), "drain")
        await asyncio.wait([waiting], timeout=_BREAK_GRACE)
        waiting.cancel()

    async def _release(self) -> None:
        if self._lag is not None:
            self._lag.cancel()
        self._shared.pool.close()
        for server in self._listening:
            server.close()
        for protocols in self._protocols:
            for connection in protocols.connections:
                connection.force_close()
        # Sockets are closed by the loop, in rounds to come.
        rounds = 0
        while rounds < _LAST_ROUNDS and (
            self._shared.pool.connections or any(protocols.connections for protocols in self._protocols)
        ):
            rounds += 1
            await asyncio.sleep(0.001)
        self._closed.set()
