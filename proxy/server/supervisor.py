"""The process above several workers: it opens the sockets, keeps the workers running, and has the admin listener.

Law: clients notice neither a worker's death nor its restart, except those that it was serving: the sockets are opened
once, here, and inherited. This process counts nothing, forwards nothing and is never busy, so the admin listener
answers while the workers are. A signal ends all of it in the same order as one proxy alone.

gunicorn (27), uvicorn (0.54) and circus (0.19) were read for this. The first two end workers in a loop of their own that
waits without asyncio, so this process could not answer /readyz and /metrics meanwhile, and a second SIGTERM is not
handed on. circus runs on tornado and is led over ZeroMQ, from a socket that would have to be guarded.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from proxy import logs
from proxy.core.request import Profile
from proxy.exchange import tasks
from proxy.metrics import workers
from proxy.server.admin import Pages
from proxy.server.ending import on_signals, until
from proxy.server.listening import Listener, address, bind, listen, until_closed
from proxy.server.worker import DRAIN, END, READY, Orders
from proxy.settings import Settings

_START_TIMEOUT: Final = 60.0
_SOON: Final = 10.0
"""Seconds: who ends sooner after its start is not started again at once."""
_PAUSES: Final = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_SILENCE: Final = 60.0
"""Seconds without a sign of life after which a worker hangs."""
_GRACE: Final = 10.0
"""Seconds for a worker to end by itself after the time to drain."""

# The worker finds its modules where this process found them, whatever the working directory holds.
_PROGRAM: Final = "import os, sys; sys.path[:] = sys.argv[1].split(os.pathsep); from proxy.server.worker import main; main()"


class StartError(Exception):
    """A worker ended before it was ready."""


@dataclass(slots=True)
class _Worker:
    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    began: float
    """By the loop's clock."""
    ready: bool = False

    def tell(self, order: bytes) -> None:
        if not self.writer.is_closing():
            self.writer.write(order)

    def kill(self) -> None:
        # `process.kill` looks first whether the process has ended, and by that takes the end from the loop, which waits for
        # it (python/cpython#87744): nobody would know how it ended.
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)


class Supervisor:
    """Several proxies as one: `start`, then `run`."""

    def __init__(self, settings: Settings, profile: Profile, together: Path) -> None:
        """`together` is where the workers keep their metrics (`metrics.workers.directory`)."""
        self.settings = settings
        self._profile = profile
        self._together = together
        self._gathered = workers.Gathered(together)
        self.address: tuple[str, int] = ("", 0)
        self.admin_address: tuple[str, int] | None = None
        self._sockets: list[socket.socket] = []
        self._admin: Listener | None = None
        self._workers: dict[int, _Worker] = {}
        """Those that run, by place."""
        self._keepers: set[asyncio.Task[None]] = set()
        self._draining = asyncio.Event()
        self._hurry = asyncio.Event()

    async def start(self) -> None:
        """Open the sockets and start the workers. Raises OSError (an address), StartError (a worker)."""
        settings = self.settings
        try:
            self._sockets = await bind(settings.listen_address)
            self.address = address(self._sockets[0])
            if settings.admin_address is not None:
                self._admin = await listen(
                    Pages(self._gathered.expose, self._unready).serve,
                    settings.admin_address,
                    settings,
                    envelope=self._profile.envelope or "openai",
                    refused=lambda _: None,
                )
                self.admin_address = self._admin.address
            started = await asyncio.gather(
                *(self._begin(place) for place in range(1, settings.workers + 1)), return_exceptions=True
            )
            for fault in started:
                if isinstance(fault, BaseException):
                    raise fault
        except BaseException:
            self._close()
            for worker in self._workers.values():
                worker.kill()
                await worker.process.wait()
            raise
        self._keepers = {tasks.spawn(self._keep(place), f"worker {place}") for place in self._workers}

    async def run(self) -> None:
        """Keep the workers running until a signal has ended them: SIGTERM and SIGINT drain, the second one ends at once."""
        draining = tasks.spawn(self._drain(), "drain")
        try:
            with on_signals(self._signalled):
                await asyncio.wait(self._keepers)
        finally:
            draining.cancel()
            self._close()
            if (admin := self._admin) is not None:
                await until_closed(lambda: admin.connections.connections)

    # -- one worker

    async def _begin(self, place: int) -> None:
        """Start a worker and wait until it is ready. Raises StartError."""
        above, below = socket.socketpair()
        with below:
            descriptors = tuple(sock.fileno() for sock in self._sockets)
            try:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-c", _PROGRAM, os.pathsep.join(sys.path)),
                    stdin=below.fileno(),
                    pass_fds=descriptors,
                    env={**os.environ, workers.VARIABLE: str(self._together)},
                )
            except OSError as error:
                above.close()
                raise StartError(f"worker {place} did not start ({error.strerror})") from None
        reader, writer = await asyncio.open_connection(sock=above)
        worker = self._workers[place] = _Worker(process, reader, writer, asyncio.get_running_loop().time())
        writer.write(Orders(self._share(), place, descriptors, str(self._together)).line())
        try:
            async with asyncio.timeout(_START_TIMEOUT):
                worker.ready = await reader.readline() == READY
        except (TimeoutError, ConnectionError):
            worker.kill()
        if not worker.ready:
            raise StartError(f"worker {place} did not start ({_ending(await process.wait())})")
        if self._draining.is_set():
            worker.tell(END if self._hurry.is_set() else DRAIN)

    def _share(self) -> Settings:
        """A worker's settings: what is a limit for all together, it gets its share of."""
        settings, count = self.settings, self.settings.workers
        return replace(
            settings,
            admin="",
            **{
                name: max(1, getattr(settings, name) // count)
                for name in ("max_held", "max_in_flight", "max_connections")
            },
        )

    async def _keep(self, place: int) -> None:
        """Wait for the end of the worker in this place and start another one, until all shall end."""
        soon = 0
        while True:
            lived = 0.0
            if place in self._workers:
                lived = await self._ended(place)
            soon = soon + 1 if lived < _SOON else 0
            await until(_PAUSES[min(soon, len(_PAUSES) - 1)], self._draining)
            if self._draining.is_set():
                return
            try:
                await self._begin(place)
            except StartError as fault:
                logs.get().error("worker not started", worker=place, exc_info=fault)

    async def _ended(self, place: int) -> float:
        """Wait for the end of a worker; how many seconds it lived."""
        worker = self._workers[place]
        watching = tasks.spawn(self._watch(place, worker), f"watch {place}")
        code = await worker.process.wait()
        watching.cancel()
        worker.writer.close()
        del self._workers[place]
        self._gathered.ended(place)
        if code or not self._draining.is_set():
            pid, ending = worker.process.pid, _ending(code)
            logs.get().log(40 if code else 20, "worker ended", worker=place, pid=pid, ending=ending)
        return asyncio.get_running_loop().time() - worker.began

    async def _watch(self, place: int, worker: _Worker) -> None:
        """Kill a worker that hangs: it would keep its clients, and take new ones, for ever."""
        with suppress(ConnectionError):
            while True:
                try:
                    async with asyncio.timeout(_SILENCE):
                        if not await worker.reader.readline():
                            return
                except TimeoutError:
                    logs.get().error("worker killed: it hangs", worker=place, pid=worker.process.pid)
                    worker.kill()
                    return

    def _unready(self) -> str | None:
        if self._draining.is_set():
            return "draining"
        return None if any(worker.ready for worker in self._workers.values()) else "no worker is up"

    # -- end

    def _signalled(self) -> None:
        if self._draining.is_set():
            self._hurry.set()
        else:
            logs.get().info("draining", workers=len(self._workers))
            self._draining.set()
        for worker in self._workers.values():
            worker.tell(END if self._hurry.is_set() else DRAIN)

    async def _drain(self) -> None:
        """What the workers do by themselves, this process does with its own sockets; who does not end is ended."""
        await self._draining.wait()
        await until(self.settings.drain_delay, self._hurry)
        self._stop_listening()
        await until(self.settings.drain_timeout, self._hurry)
        await asyncio.sleep(_GRACE)
        for place, worker in self._workers.items():
            logs.get().error("worker killed: it did not end", worker=place, pid=worker.process.pid)
            worker.kill()

    def _stop_listening(self) -> None:
        # The kernel refuses connections when the last copy of a socket is closed: until then they would wait in its queue.
        for sock in self._sockets:
            sock.close()

    def _close(self) -> None:
        self._stop_listening()
        if self._admin is not None:
            self._admin.close()


def _ending(code: int) -> str:
    """How a process ended, for people."""
    if code >= 0:
        return f"status {code}"
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"
