"""One of several workers: a proxy on inherited sockets that does what the process above it says.

Law: a worker is led by its standard input alone, a socket to the process above; a signal only begins a drain, however
often it comes. A terminal and systemd send theirs to all processes at once, and one such must not count as a second. When
the process above is gone, the worker drains too: it serves nobody forgotten.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import orjson

from proxy import logs
from proxy.exchange import tasks
from proxy.metrics import Metrics, workers
from proxy.server.ending import SIGNALS
from proxy.server.server import Server, started
from proxy.settings import Settings

READY: Final = b"ready\n"
ALIVE: Final = b"alive\n"
SIGN_INTERVAL: Final = 5.0
"""Seconds between two signs of life."""
DRAIN: Final = b"drain\n"
END: Final = b"end\n"


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker is told at its start. Not by its arguments, which everybody on the machine can read."""

    settings: Settings
    place: int
    """1, 2, ...: one worker at a time has it."""
    sockets: tuple[int, ...]
    """File descriptors that it inherits."""
    together: str
    """The directory in which the workers keep their metrics."""

    def line(self) -> bytes:
        return orjson.dumps(asdict(self)) + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Orders:
        given = orjson.loads(line)
        return cls(**given | {"settings": Settings(**given["settings"])})


def main() -> None:
    """Started by the supervisor, and by nobody else."""
    try:
        asyncio.run(_work(socket.socket(fileno=sys.stdin.fileno())))
    except OSError as error:
        sys.exit(f"error: a worker cannot go on: {error.strerror}")


async def _work(above: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=above)
    orders = Orders.read(await reader.readline())
    settings = orders.settings
    together = Path(orders.together)
    logs.configure(settings.log_level, lock=together / "log")
    workers.keep_under(orders.place)
    sockets = [socket.socket(fileno=number) for number in orders.sockets]
    server = await started(settings, Metrics(settings, together=together), sockets)
    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, server.begin_drain)
    writer.write(READY)
    living = tasks.spawn(_live(writer), "live")
    obeying = tasks.spawn(_obey(reader, server), "obey")
    obeying.add_done_callback(lambda _: living.cancel())
    await server.wait_closed()
    obeying.cancel()
    writer.close()


async def _live(writer: asyncio.StreamWriter) -> None:
    while True:
        await asyncio.sleep(SIGN_INTERVAL)
        writer.write(ALIVE)


async def _obey(reader: asyncio.StreamReader, server: Server) -> None:
    with suppress(ConnectionError):
        while order := await reader.readline():
            if order == DRAIN:
                server.begin_drain()
            elif order == END:
                await server.close()
    server.begin_drain()
