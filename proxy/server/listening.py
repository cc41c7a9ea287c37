"""Listeners: sockets, and behind them the connections that aiohttp reads.

Law: where several processes serve one address, they share its sockets: what is in the kernel's queue is nobody's yet, and
outlives each of them.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from proxy.core.problem import Problem
from proxy.exchange import ClientServer
from proxy.settings import Settings

_BACKLOG: Final = 1024
_AT_ONCE: Final = 16
"""Connections that a worker takes in a row before another one may."""

_ROUNDS: Final = 1000

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Listener:
    """Sockets that listen, and their connections."""

    servers: tuple[asyncio.Server, ...]
    connections: ClientServer

    @property
    def address(self) -> tuple[str, int]:
        """Where it really is."""
        return address(self.servers[0].sockets[0])

    @property
    def is_serving(self) -> bool:
        return any(server.is_serving() for server in self.servers)

    def stop(self) -> None:
        """Take no more connections."""
        for server in self.servers:
            server.close()

    def close(self) -> None:
        """End now, connections too."""
        self.stop()
        for connection in self.connections.connections:
            connection.force_close()


async def until_closed(remaining: Callable[[], object]) -> None:
    """Wait until nothing remains: closed sockets are let go by the loop, in rounds to come."""
    rounds = 0
    while remaining() and rounds < _ROUNDS:
        rounds += 1
        await asyncio.sleep(0.001)


async def listen(
    handler: Handler,
    where: tuple[str, int] | Sequence[socket.socket],
    settings: Settings,
    *,
    envelope: str,
    refused: Callable[[Problem], None],
) -> Listener:
    """Listen on an address, or on sockets that others listen on as well. Raises OSError."""
    connections = ClientServer(
        handler,
        envelope=envelope,
        max_head=settings.max_head,
        max_connections=settings.max_connections,
        write_timeout=settings.write_timeout,
        refused=refused,
    )
    loop = asyncio.get_running_loop()
    if isinstance(where, tuple):
        host, port = where
        servers = [await loop.create_server(connections, host or None, port, backlog=_BACKLOG)]
    else:
        # asyncio accepts `backlog` connections in a row: one worker would take a whole burst of them.
        servers = [await loop.create_server(connections, sock=sock, backlog=_AT_ONCE) for sock in where]
        _queue(where)
    return Listener(tuple(servers), connections)


async def bind(where: tuple[str, int]) -> list[socket.socket]:
    """The sockets of an address, for workers to inherit. They listen already: nobody is refused before a worker is up.
    Raises OSError."""
    host, port = where
    # asyncio knows how to bind all of a host's addresses; what it binds to serve is not wanted, only the sockets.
    server = await asyncio.get_running_loop().create_server(
        asyncio.Protocol, host or None, port, start_serving=False
    )
    sockets = [socket.socket(fileno=os.dup(one.fileno())) for one in server.sockets]
    server.close()
    _queue(sockets)
    return sockets


def address(sock: socket.socket) -> tuple[str, int]:
    """Host and port of a socket."""
    bound: tuple[Any, ...] = sock.getsockname()
    return bound[0], bound[1]


def _queue(sockets: Iterable[socket.socket]) -> None:
    for sock in sockets:
        sock.listen(_BACKLOG)
