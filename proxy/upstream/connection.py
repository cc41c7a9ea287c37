"""One connection to the upstream: bytes out, and the answer's parts in by callback.

Law: what was received is delivered. From `data_received` the parsed parts go straight to the sink, in the order head,
body, end or break; no task, queue or stream stands between (an awaited StreamReader drops what it holds when the peer
errs). One read gives one call with all of its body bytes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias, cast

import httptools

from proxy import headers

Fault: TypeAlias = Literal["protocol", "reset", "cut"]
"""How an answer can break: it is not HTTP, the connection was reset, or it ended too early."""

_BODYLESS: Final = frozenset({204, 304})


@dataclass(frozen=True, slots=True)
class Head:
    """The head of an answer as it came."""

    status: int
    reason: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    length: int | None
    """Content-Length, CHUNKED, or None where the connection's end is the body's."""
    bodyless: bool
    """A blank line ends it, whatever the head says (RFC 9112, 6.3)."""


class Sink(Protocol):
    """Who takes an answer. After `read(..., end=True)` or `broken` no further call comes."""

    def head(self, head: Head) -> None: ...
    def read(self, data: bytes, *, end: bool) -> None: ...
    def broken(self, fault: Fault) -> None: ...


class _MalformedError(Exception):
    """The parser's callbacks found what the parser lets through."""


class Connection(asyncio.Protocol):
    """A connection that serves one exchange after the other; the pool owns it in between."""

    def __init__(self, *, max_head: int) -> None:
        self._max_head = max_head
        self._transport: asyncio.Transport | None = None
        self._sink: Sink | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._method = b""
        self._writable: asyncio.Future[None] | None = None
        self._write_paused = False
        self._read_paused = False
        self.used = False
        """It has served an exchange before."""
        self.idle_for: float | None = None
        """For how long the peer said that it keeps an idle connection."""
        self._reset()

    def _reset(self) -> None:
        self._reason = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head: Head | None = None
        self._head_told = False
        self._head_bytes = 0
        self._interim = False
        self._parts: list[bytes] = []
        self._ended = False
        self._surplus = False
        self._keep_alive = False

    # -- the exchange's side

    def begin(self, sink: Sink, method: bytes) -> None:
        """From now on what comes belongs to this sink."""
        self._reset()
        self._sink = sink
        self._method = method
        self._parser = httptools.HttpResponseParser(self)

    def send(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    async def drained(self) -> None:
        """Wait while the peer takes nothing. Raises ConnectionError when the connection is gone."""
        if self._transport is None:
            raise ConnectionResetError("the upstream closed the connection")
        if self._write_paused:
            self._writable = asyncio.get_running_loop().create_future()
            await self._writable

    def pause(self) -> None:
        if not self._read_paused and self._transport is not None:
            self._read_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._read_paused and self._transport is not None:
            self._read_paused = False
            self._transport.resume_reading()

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def finish(self) -> bool:
        """Let go of the sink. True where the next exchange may use this connection."""
        clean = self.open and self._ended and self._keep_alive and not self._surplus
        if self._head is not None and self._head.length is None and not self._head.bodyless:
            clean = False
        if self._head is not None:
            self.idle_for = headers.keep_alive_seconds(self._head.headers)
        self._sink = self._parser = None  # the parser holds this object's methods: a cycle
        self.resume()
        self.used = True
        return clean

    def abort(self) -> None:
        self._sink = self._parser = None
        if self._transport is not None:
            self._transport.abort()

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        parser = self._parser
        if parser is None or self._sink is None:
            # A peer that speaks unasked: its next answer would be taken for another request's.
            self.abort()
            return
        if self._head is None:
            self._head_bytes += len(data)
        malformed = False
        try:
            parser.feed_data(data)
            malformed = self._head is None and self._head_bytes > self._max_head
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, _MalformedError):
            malformed = not self._ended
            self._surplus = True
        parts, self._parts = self._parts, []
        self._deliver(b"".join(parts), malformed=malformed)

    def _deliver(self, body: bytes, *, malformed: bool) -> None:
        # A head that arrived whole is told even where the body behind it is malformed: bytes came.
        if self._head is not None and not self._head_told:
            self._head_told = True
            if self._sink is not None:
                self._sink.head(self._head)
        if (body or self._ended) and self._sink is not None:
            self._sink.read(body, end=self._ended)
        if malformed and self._sink is not None:
            self._break("protocol")

    def _break(self, fault: Fault) -> None:
        sink, self._sink = self._sink, None
        if sink is not None and not self._ended:
            sink.broken(fault)
        self.abort()

    def eof_received(self) -> None:
        if (
            self._head is not None
            and self._head.length is None
            and not self._ended
            and self._sink is not None
        ):
            # The only end that such a body has (RFC 9112, 6.3, rule 8).
            self._ended = True
            self._sink.read(b"", end=True)
        else:
            self._break("cut")

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._write_paused = False
        if self._writable is not None and not self._writable.done():
            self._writable.set_exception(ConnectionResetError("the upstream closed the connection"))
            self._writable.exception()  # looked at: nobody may be waiting any more
        self._break("reset" if exc is not None else "cut")

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    # -- the parser's side

    def on_message_begin(self) -> None:
        if self._head is not None:
            self._surplus = True

    def on_status(self, part: bytes) -> None:
        if self._head is None:
            self._reason += part

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is None:  # behind it come trailers, which may be dropped (RFC 9110, 6.5.2)
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        if self._head is not None:
            return
        status = self._parser.get_status_code()
        if status == 101:
            raise _MalformedError  # nobody asked for another protocol
        if status < 200:
            self._interim = True
            self._reason, self._headers = b"", []
            return
        if headers.head_size(self._headers) > self._max_head:
            raise _MalformedError
        length = self._length()
        bodyless = status in _BODYLESS or self._method == b"HEAD"
        self._keep_alive = self._parser.should_keep_alive()
        self._head = Head(status, self._reason, tuple(self._headers), length, bodyless)
        # The parser is not told about HEAD: it would wait for a body, so it is left behind here.
        self._ended = self._method == b"HEAD"

    def _length(self) -> int | None:
        """The body's length by RFC 9112, 6.3. The parser refuses lengths that are doubled, signed or beside a coding."""
        codings = headers.values(self._headers, b"transfer-encoding")
        lengths = headers.values(self._headers, b"content-length")
        if codings:
            # No other coding was asked for (no TE was sent), so none can be undone.
            if lengths or len(codings) > 1 or codings[0].strip().lower() != b"chunked":
                raise _MalformedError
            return headers.CHUNKED
        if not lengths:
            return None
        if not lengths[0].strip().isdigit():
            raise _MalformedError
        return int(lengths[0])

    def on_body(self, part: bytes) -> None:
        if self._ended or self._surplus:
            self._surplus = True
        else:
            self._parts.append(part)

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
        elif self._head is not None:
            self._ended = True
