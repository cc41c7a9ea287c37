"""The client's side of a connection: aiohttp reads the requests, the proxy itself writes the answers.

Law: an exchange learns at once when its client stops reading, reads on, or leaves (a FIN counts); no byte that was
written is lost by closing; no page of aiohttp's is ever sent (it repeats the offending bytes and names its version).
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import termios
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler

from proxy import headers, logs
from proxy.core.problem import Problem
from proxy.exchange import refusals

_LINGER: Final = 2.0
"""Seconds for which the rest of an unwanted upload is taken in, so that the answer is not lost to a reset."""
_POLL: Final = 0.02
_AT_ONCE: Final = struct.pack("ii", 1, 0)


class Listener(Protocol):
    """Who wants to know what the client does."""

    def client_paused(self) -> None: ...
    def client_resumed(self) -> None: ...
    def client_gone(self) -> None: ...


class Sent(web.StreamResponse):
    """An answer that is already on its way: for aiohttp only whether the connection stays open."""

    def __init__(self, *, keep_alive: bool) -> None:
        # Nothing of a real response is wanted, so the parent is not initialised.
        self._stays = keep_alive

    @property
    def keep_alive(self) -> bool | None:
        return self._stays

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        return None


class ClientConnection(RequestHandler):
    """One client's connection."""

    __slots__ = ("_emptied", "_server", "_stall", "_stall_size", "listener")

    def __init__(self, server: ClientServer, **options: Any) -> None:
        super().__init__(server, **options)
        self._server = server
        self.listener: Listener | None = None
        self._emptied: asyncio.Future[None] | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._stall_size = 0

    # -- what asyncio tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if len(self._server.connections) > self._server.max_connections and self.transport is not None:
            self.transport.write(headers.own_error(refusals.OVERLOADED, self._server.envelope, close=True))
            self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._watch(False)
        self._tell_gone()
        super().connection_lost(exc)
        self._wake()

    def eof_received(self) -> None:
        # asyncio closes now, but tells so only when what was written has left, which a client that is gone prevents.
        self._tell_gone()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch(True)
        if self.listener is not None:
            self.listener.client_paused()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch(False)
        if self.listener is not None:
            self.listener.client_resumed()
        self._wake()

    def _tell_gone(self) -> None:
        listener, self.listener = self.listener, None
        if listener is not None:
            listener.client_gone()

    def _wake(self) -> None:
        if self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    # -- a client that takes nothing

    def _watch(self, on: bool) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        if on and self.transport is not None:
            self._stall_size = self.transport.get_write_buffer_size()
            self._stall = self._loop.call_later(self._server.write_timeout, self._stalled)

    def _stalled(self) -> None:
        self._stall = None
        if self.transport is None:
            return
        if self.transport.get_write_buffer_size() < self._stall_size:
            self._watch(True)  # slow, but alive
        else:
            self.transport.abort()

    # -- what the exchange wants

    async def flush(self) -> None:
        """Wait until all that was written is with the kernel, or the client is gone or stalled."""
        transport = self.transport
        if transport is None or not transport.get_write_buffer_size():
            return
        self._emptied = self._loop.create_future()
        transport.set_write_buffer_limits(high=0)  # paused from here until the buffer is empty
        try:
            if transport.get_write_buffer_size():
                await self._emptied
        finally:
            self._emptied = None
            if self.transport is not None:
                transport.set_write_buffer_limits()

    async def reset(self) -> None:
        """End with a reset, the only sign that a body without length or chunks is not whole.

        It drops what the kernel has not sent, so that is waited for.
        """
        transport = self.transport
        if transport is None:
            return
        sock = transport.get_extra_info("socket")
        await self._acknowledged(sock)
        if not transport.is_closing():
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            transport.abort()

    async def _acknowledged(self, sock: socket.socket) -> None:
        """Wait until the peer's kernel has everything. Linux and the BSDs tell; elsewhere one short wait must do."""
        pending = self._server.write_timeout
        while pending > 0 and self.transport is not None and not self.transport.is_closing():
            try:
                unsent = struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0\0\0\0"))[0]
            except OSError:
                unsent, pending = 1, 0.0
            if not unsent:
                return
            await asyncio.sleep(_POLL)
            pending -= _POLL

    def retire(self) -> None:
        """Close if no request is being served. aiohttp's own `close` would leave idle connections open, and drop
        the rest of an upload on busy ones."""
        if self._waiter is not None and not self._waiter.done():
            self.force_close()

    def half_close(self) -> None:
        """Say that nothing more comes, while the rest of the client's upload is still taken in (RFC 9112, 9.6)."""
        if self.transport is not None and self.transport.can_write_eof() and not self.transport.is_closing():
            self.transport.write_eof()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What aiohttp could not read; its own page would name its version and repeat the bytes."""
        if status != 400:
            # A handler failed, who knows how far it had come: a second answer must not follow.
            logs.get().error("a request was not handled", exc_info=exc)
            return Sent(keep_alive=False)
        problem = refusals.HEAD_TOO_LARGE if isinstance(exc, LineTooLong) else refusals.MALFORMED
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(headers.own_error(problem, self._server.envelope, close=True))
        self._server.refused(problem)
        return Sent(keep_alive=False)


class ClientServer(web.Server):
    """aiohttp's low-level server with the proxy's own connections."""

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        *,
        envelope: str,
        max_head: int,
        max_connections: int,
        write_timeout: float,
        refused: Callable[[Problem], None],
    ) -> None:
        super().__init__(handler, handler_cancellation=True)
        self.envelope = envelope
        self.max_connections = max_connections
        self.write_timeout = write_timeout
        self.refused = refused
        self._options: dict[str, Any] = {
            "access_log": None,
            "auto_decompress": False,
            "keepalive_timeout": 75.0,
            "lingering_time": _LINGER,
            "max_field_size": max_head,
            "max_line_size": max_head,
        }

    def retire(self) -> None:
        """Close the idle connections; the busy ones close after their answer."""
        for connection in self.connections:
            if isinstance(connection, ClientConnection):
                connection.retire()

    def __call__(self) -> RequestHandler:
        return ClientConnection(self, loop=self._loop, **self._options)
