"""Connections to the one upstream: opened, kept while idle, forgotten in time.

Law: a connection is given to one exchange at a time and only while its peer can be expected to keep it: the time that
the peer advertised less a second, else less than the shortest time that common servers keep one. The newest idle
connection goes first, so that the others can age and go.

aiohttp's connector could own this, but it knows one keep-alive time for all connections, gives the oldest first, parks
unasked bytes of an idle peer instead of closing, and would need its protocol exchanged twice per request.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

import aiohappyeyeballs
from aiohappyeyeballs import AddrInfoType

from proxy.upstream.connection import Connection

ConnectFault: TypeAlias = Literal["connect", "tls", "dns", "timeout_connect"]

KEPT: Final = {"http": 4.0, "https": 55.0}
"""Seconds. Model servers close after 5 (uvicorn, cpp-httplib), load balancers of hosted APIs after 60."""
MAX_IDLE: Final = 256
_RESOLVED_FOR: Final = 10.0
_HAPPY_EYEBALLS_DELAY: Final = 0.25  # RFC 8305, section 8


class ConnectError(Exception):
    """No connection. `kind` says why; there is no text, since addresses and names may be private."""

    def __init__(self, kind: ConnectFault) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Origin:
    """The one upstream, taken apart."""

    scheme: str
    host: str
    port: int
    authority: bytes
    """What Host says."""
    path: bytes

    @classmethod
    def parse(cls, url: str) -> Origin:
        parts = urlsplit(url)
        scheme = parts.scheme.lower()
        host = (parts.hostname or "").encode("idna").decode("ascii")
        standard = 443 if scheme == "https" else 80
        port = parts.port or standard
        name = f"[{host}]" if ":" in host else host
        authority = name if port == standard else f"{name}:{port}"
        return cls(scheme, host, port, authority.encode("ascii"), parts.path.encode("ascii"))


class Pool:
    """All connections to the upstream, busy and idle."""

    def __init__(
        self,
        origin: Origin,
        *,
        max_head: int,
        connect_timeout: float,
        keep_alive: float | None = None,
        assumed: float | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.origin = origin
        self._max_head = max_head
        self._connect_timeout = connect_timeout
        self._keep_alive = keep_alive
        self._assumed = KEPT[origin.scheme] if assumed is None else assumed
        self._context = context
        if origin.scheme == "https" and context is None:
            self._context = ssl.create_default_context()
            self._context.set_alpn_protocols(["http/1.1"])
        self._idle: dict[Connection, asyncio.TimerHandle] = {}
        self._busy: set[Connection] = set()
        self._open_ones: set[Connection] = set()
        self._closed = False
        self._resolving: asyncio.Future[Sequence[AddrInfoType]] | None = None
        self._resolved_at = 0.0

    @property
    def connections(self) -> int:
        """All that are open, or not yet closed."""
        return len(self._open_ones)

    @property
    def idle(self) -> int:
        return len(self._idle)

    @property
    def busy(self) -> int:
        return len(self._busy)

    async def acquire(self) -> Connection:
        """An idle connection, or a new one. Raises ConnectError."""
        while self._idle:
            connection, timer = self._idle.popitem()
            timer.cancel()
            if connection.open:
                self._busy.add(connection)
                return connection
        try:
            async with asyncio.timeout(self._connect_timeout):
                connection = await self._open()
        except TimeoutError:
            raise ConnectError("timeout_connect") from None
        except ssl.SSLError:
            raise ConnectError("tls") from None
        except socket.gaierror:
            raise ConnectError("dns") from None
        except OSError:
            raise ConnectError("connect") from None
        self._busy.add(connection)
        return connection

    def release(self, connection: Connection, *, reusable: bool) -> None:
        """Take a connection back after its exchange; it is kept only where everything about it is known."""
        self._busy.discard(connection)
        clean = connection.finish()
        kept = self._kept(connection)
        if not (reusable and clean and kept > 0) or self._closed or len(self._idle) >= MAX_IDLE:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        self._idle[connection] = loop.call_later(kept, self._expire, connection)

    def close(self) -> None:
        self._closed = True
        for timer in self._idle.values():
            timer.cancel()
        self._idle.clear()
        for connection in self._open_ones:
            connection.abort()

    def _kept(self, connection: Connection) -> float:
        if self._keep_alive is not None:
            return self._keep_alive
        if connection.idle_for is not None:
            return connection.idle_for - 1.0
        return self._assumed

    def _expire(self, connection: Connection) -> None:
        self._idle.pop(connection, None)
        connection.abort()

    def _opened(self, connection: Connection) -> None:
        self._open_ones.add(connection)

    def _forget(self, connection: Connection) -> None:
        self._open_ones.discard(connection)
        timer = self._idle.pop(connection, None)
        if timer is not None:
            timer.cancel()

    async def _open(self) -> Connection:
        loop = asyncio.get_running_loop()
        addresses = await self._resolve()
        sock = await aiohappyeyeballs.start_connection(
            addresses,
            happy_eyeballs_delay=_HAPPY_EYEBALLS_DELAY,
            interleave=1,
            loop=loop,
        )
        try:
            _, connection = await loop.create_connection(
                lambda: _Pooled(self, max_head=self._max_head),
                sock=sock,
                ssl=self._context,
                server_hostname=self.origin.host if self._context is not None else None,
            )
        except BaseException:
            sock.close()
            raise
        return connection

    async def _resolve(self) -> Sequence[AddrInfoType]:
        """The upstream's addresses; many exchanges that start at once share one look-up."""
        loop = asyncio.get_running_loop()
        known = self._resolving
        failed = known is not None and known.done() and (known.cancelled() or known.exception() is not None)
        if known is None or failed or (known.done() and loop.time() - self._resolved_at > _RESOLVED_FOR):
            self._resolved_at = loop.time()
            known = self._resolving = loop.run_in_executor(None, _look_up, self.origin.host, self.origin.port)
        return await asyncio.shield(known)


def _look_up(host: str, port: int) -> Sequence[AddrInfoType]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


class _Pooled(Connection):
    """A connection that tells its pool when it opens and closes."""

    def __init__(self, pool: Pool, *, max_head: int) -> None:
        super().__init__(max_head=max_head)
        self._pool = pool

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._pool._opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._pool._forget(self)
