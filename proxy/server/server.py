"""A proxy in this process: its listeners, and how it ends.

Law: an end is announced before it comes: first readiness goes, then new connections, then answers that took too long; a
second signal skips what is left.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import time
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from proxy import logs
from proxy.core.problem import Problem
from proxy.core.report import Outcome
from proxy.core.request import Profile
from proxy.exchange import Budget, Exchange, Shared, tasks
from proxy.metrics import Metrics
from proxy.observe import Observer
from proxy.profiles import pick
from proxy.server.admin import Pages
from proxy.server.ending import on_signals, until
from proxy.server.listening import Handler, Listener, listen, until_closed
from proxy.settings import Settings
from proxy.upstream import Origin, Pool

_LAG_INTERVAL: Final = 0.5
_BREAK_GRACE: Final = 2.0
"""Seconds for broken ends to leave before connections are dropped."""
_LAST_GRACE: Final = 0.5
"""Seconds for what aiohttp still does on them. Not 0: to aiohttp that is for ever."""


class Server:
    """The proxy as a whole: `start`, then `run` or `begin_drain` and `wait_closed`."""

    def __init__(
        self,
        settings: Settings,
        profile: Profile,
        metrics: Metrics,
        sockets: Sequence[socket.socket] | None = None,
    ) -> None:
        """With `sockets`, which others may listen on as well, the setting `listen` is not looked at."""
        self.settings = settings
        self._profile = profile
        self._metrics = metrics
        self._sockets = sockets
        self.address: tuple[str, int] = ("", 0)
        self.admin_address: tuple[str, int] | None = None
        self._listening: list[Listener] = []
        """The one for clients, then the one for admin."""
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
        pages = Pages(self._metrics.expose, lambda: "draining" if self._shared.draining else None)
        try:
            self.address = await self._listen(self._serve, self._sockets or settings.listen_address)
            if settings.admin_address is not None:
                self.admin_address = await self._listen(pages.serve, settings.admin_address)
        except OSError:
            for listener in self._listening:
                listener.stop()
            raise
        self._beat(asyncio.get_running_loop().time())

    async def _listen(
        self, handler: Handler, where: tuple[str, int] | Sequence[socket.socket]
    ) -> tuple[str, int]:
        listener = await listen(
            handler,
            where,
            self.settings,
            envelope=self._profile.envelope or "openai",
            refused=self._refused,
        )
        self._listening.append(listener)
        return listener.address

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
        for record in (self._metrics.record, logs.log_outcome):
            try:
                record(outcome)
            except Exception as fault:  # noqa: BLE001  # what is told about an exchange must not cost the exchange
                logs.get().error("an outcome was not recorded", exc_info=fault)

    def _refused(self, problem: Problem) -> None:
        """A request that could not be read: no exchange came of it, but it is counted."""
        self._record(
            Outcome(time=time.time(), method="", status=problem.status, origin="proxy", problem=problem)
        )

    # -- end

    async def run(self) -> None:
        """Serve until a signal has ended it: SIGTERM and SIGINT drain, the second one ends at once."""
        with on_signals(self._signalled):
            await self.wait_closed()

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
            await until(settings.drain_delay, self._hurry)
            clients = self._listening[0]
            clients.stop()
            clients.connections.retire()
            if shared.running:
                await until(settings.drain_timeout, self._hurry, shared.idle)
            await self._break_off()
            clients.connections.retire()  # those that were being accepted the first time
            await clients.connections.shutdown(timeout=_LAST_GRACE)
        finally:
            await self._release()

    async def _break_off(self) -> None:
        """Break what still runs, so that its clients see that it is not whole."""
        shared = self._shared
        if not shared.running:
            return
        logs.get().warning("answers broken off at the end of the drain", count=len(shared.running))
        for exchange in tuple(shared.running):
            exchange.stop()
        await until(_BREAK_GRACE, shared.idle)

    async def _release(self) -> None:
        if self._lag is not None:
            self._lag.cancel()
        self._shared.pool.close()
        for listener in self._listening:
            listener.close()
        await until_closed(
            lambda: (
                self._shared.pool.connections
                or any(listener.connections.connections for listener in self._listening)
            )
        )
        self._closed.set()


async def started(
    settings: Settings, metrics: Metrics, sockets: Sequence[socket.socket] | None = None
) -> Server:
    """A proxy that serves, in a process that is there for it. Raises OSError."""
    profile, _ = pick(settings.profile, settings.upstream)
    server = Server(settings, profile, metrics, sockets)
    await server.start()
    # What exists now stays: a collection that went over all of it would hold up every stream for tens of ms.
    gc.collect()
    gc.freeze()
    return server
