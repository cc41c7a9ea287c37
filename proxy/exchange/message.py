"""An answer as the client gets it: one head, one body, in one framing.

Law: what is given leaves in one write with all that belongs around it. A body that may change leaves in chunks, or
with a length that was counted; HTTP/1.0 clients get neither, and their connection ends with the body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from proxy import headers
from proxy.core.problem import Problem
from proxy.exchange import refusals
from proxy.exchange.client import ClientConnection
from proxy.upstream import Head

SMALL: Final = 256 * 1024
"""A whole answer of at most this many bytes waits with its head, and gets a new Content-Length."""

_LAST_CHUNK: Final = b"0\r\n\r\n"


class Message:
    """Written once: `own`, or `begin` or `defer` and then `put`."""

    def __init__(
        self, client: ClientConnection, *, head_only: bool, http10: bool, closing: Callable[[], bool]
    ) -> None:
        self._client = client
        self._head_only = head_only
        self._http10 = http10
        self._closing = closing
        self._head: Head | None = None
        self._small = False
        self._original: list[bytes] = []
        self._parked: list[bytes] = []
        self._chunked = False
        self.added: list[tuple[bytes, bytes]] = []
        """What the head gets besides the upstream's."""
        self.begun = False
        """The head has left."""
        self.closes = False
        """The client's connection ends with it."""
        self.size = 0
        """Bytes written."""

    def own(self, problem: Problem, envelope: str) -> None:
        """An answer of the proxy's own."""
        self.closes = self.closes or self._closing() or problem.status in refusals.CLOSING
        self.begun = True
        self._write(headers.own_error(problem, envelope, head_only=self._head_only, close=self.closes))

    def begin(self, head: Head, *, edited: bool) -> None:
        """The head leaves at once."""
        self._head = head
        self._write(self._start(changed=edited))

    def defer(self, head: Head) -> None:
        """The head waits: with the whole body where that is small, else for its first byte."""
        self._head = head
        self._small = head.length is not None and 0 <= head.length <= SMALL

    def came(self, data: bytes) -> None:
        """The upstream's bytes, before they are edited."""
        if self._small:
            self._original.append(data)

    def put(self, data: bytes, *, last: bool, whole: bool) -> None:
        """Write what may leave now. At the `last` call `whole` says whether the upstream's end was clean."""
        assert self._head is not None
        if self._head.bodyless:
            return
        start = b""
        if not self.begun:
            if not self._small:
                start = self._start(changed=True)
            else:
                self._parked.append(data)
                if not last:
                    return
                start, data = self._small_answer(whole)
        if self._chunked:
            data = chunk(data) + (_LAST_CHUNK if last and whole else b"")
        self._write(start + data)

    def _small_answer(self, whole: bool) -> tuple[bytes, bytes]:
        """One that is not changed keeps its head as it came."""
        original = b"".join(self._original)
        if not whole:
            return self._start(changed=False), original
        body = b"".join(self._parked)
        return self._start(changed=body != original, length=len(body)), body

    def _start(self, *, changed: bool, length: int | None = None) -> bytes:
        head = self._head
        assert head is not None
        if length is None and not changed and head.length != headers.CHUNKED:
            length = head.length
        if length is None and not head.bodyless and not self._http10:
            length = headers.CHUNKED
        self._chunked = length == headers.CHUNKED
        self.closes = self.closes or (length is None and not head.bodyless) or self._closing()
        self.begun = True
        return headers.answer_head(
            head.status,
            head.reason,
            head.headers,
            length=None if head.bodyless else length,
            changed=changed,
            close=self.closes,
            own_length=not head.bodyless or head.status == 204,
            added=self.added,
        )

    def _write(self, data: bytes) -> None:
        transport = self._client.transport
        if data and transport is not None and not transport.is_closing():
            self.size += len(data)
            transport.write(data)


def chunk(data: bytes) -> bytes:
    """One chunk; nothing for nothing, since an empty chunk is the end."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""
