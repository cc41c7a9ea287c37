"""An answer on its way: from the upstream's callbacks through the rewriter to the client's transport.

Law: at once and all of it. What one read completes leaves in one write, before the loop waits again; what was received
before a fault is delivered, then the message ends visibly broken; an end is never invented.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from proxy import headers
from proxy.core import framing as framings
from proxy.core.format import Format
from proxy.core.problem import Problem
from proxy.core.report import Report
from proxy.core.request import UNJUDGED, Ask
from proxy.core.rewriter import Rewriter
from proxy.exchange import refusals
from proxy.exchange.client import ClientConnection
from proxy.exchange.fallback import Fallback
from proxy.exchange.shared import Shared
from proxy.upstream import Connection, Fault, Head

SMALL: Final = 256 * 1024
"""A whole answer of at most this many bytes gets a new Content-Length; larger ones leave chunked."""

_LAST_CHUNK: Final = b"0\r\n\r\n"


@dataclass(slots=True)
class Wanted:
    """What an answer must know of its request; route and ask come to be known on the way."""

    method: bytes
    http10: bool
    format: Format | None = None
    ask: Ask = UNJUDGED


class Answer:
    """Takes the upstream's answer (Sink) and the client's moods (Listener)."""

    def __init__(
        self, shared: Shared, client: ClientConnection, wanted: Wanted, *, closing: Callable[[], bool]
    ) -> None:
        self._shared = shared
        self._client = client
        self._wanted = wanted
        self._closing = closing
        self._loop = loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = loop.create_future()
        self._upstream: Connection | None = None
        self._head: Head | None = None
        self._edit: Fallback | None = None
        self._small = False
        self._original: list[bytes] = []
        self._parked: list[bytes] = []
        self._chunked = False
        self._end: Fault | str | None = None
        self._stepping = self._finished = False
        self._paused: set[str] = set()
        self._counted = 0
        self._touched = loop.time()
        self._timer: asyncio.TimerHandle | None = None
        # The facts for the Outcome.
        self.status = 0
        self.sent_head = False
        self.problem: Problem | None = None
        self.fault: str | None = None
        """Kind of the upstream's fault."""
        self.gone = False
        """The client left before the end."""
        self.cut = False
        """The message ends broken."""
        self.stream = False
        self.closes = False
        """The client's connection cannot be used again."""
        self.bytes_in = self.bytes_out = 0
        self.head_at: float | None = None
        self.first_at: float | None = None

    def report(self) -> Report | None:
        """Asked for once, at the end."""
        return self._edit.report() if self._edit is not None else None

    @property
    def rewritten(self) -> bool:
        return self._edit is not None and not self._edit.raw

    @property
    def emptiness(self) -> str | None:
        """A stream that ended well without a byte in it is a fault all the same."""
        return "empty_stream" if self.stream and self._end == "end" and not self.bytes_in else None

    @property
    def rewrite_seconds(self) -> float:
        return self._edit.seconds if self._edit is not None else 0.0

    # -- the exchange's side

    def attach(self, upstream: Connection) -> None:
        self._upstream = upstream
        upstream.begin(self, self._wanted.method)
        self.touch()
        self._arm(self._shared.settings.first_byte_timeout)

    def touch(self) -> None:
        """Something moved: the time-outs begin anew."""
        self._touched = self._loop.time()

    def fail(self, problem: Problem) -> None:
        """Answer with a problem; where the head has left, the message can only break."""
        if self.done.done():
            return
        if self.sent_head:
            self._leave(broken=True)
        else:
            self.refuse(problem)

    def refuse(self, problem: Problem) -> None:
        """An answer of the proxy's own."""
        wanted = self._wanted
        envelope = self._shared.profile.envelope or (wanted.format.envelope if wanted.format else "openai")
        self.problem = problem
        self.status = problem.status
        self.closes = self.closes or self._closing() or problem.status in refusals.CLOSING
        self.sent_head = True
        head_only = wanted.method == b"HEAD"
        self._write(headers.own_error(problem, envelope, head_only=head_only, close=self.closes))
        self._leave()

    async def deliver(self) -> None:
        """Wait until the answer is over and has left."""
        await self.done
        if self.gone:
            return
        await self._client.flush()
        if self.cut and self._wanted.http10:
            # Chunks and lengths tell that they are not fulfilled; here the connection's end is the body's.
            await self._client.reset()

    def close(self) -> None:
        """Nothing is held, timed or awaited any more."""
        self._leave()
        self._shared.budget.change(-self._counted)
        self._counted = 0

    # -- the upstream's side

    def head(self, head: Head) -> None:
        self.touch()
        self._head = head
        self.status = head.status
        self.head_at = self._loop.time()
        self._arm(self._shared.settings.idle_timeout)
        framing = self._framing(head)
        if framing is not None and self._wanted.format is not None:
            settings = self._shared.settings
            self._edit = Fallback(
                Rewriter(
                    self._wanted.format,
                    framing,
                    self._wanted.ask,
                    max_event=settings.max_event,
                    max_body=settings.max_answer,
                )
            )
            self.stream = framing != "whole"
            if framing == "whole":
                # The head of a whole answer waits for what becomes of its body.
                self._small = head.length is not None and 0 <= head.length <= SMALL
                return
        else:
            self.stream = _media_type(head) in (b"text/event-stream", b"application/x-ndjson")
        self._write(self._head_bytes(changed=self._edit is not None))

    def read(self, data: bytes, *, end: bool) -> None:
        if self.done.done():
            return
        self.touch()
        self.bytes_in += len(data)
        if end:
            self._end = "end"
        if self._edit is None:
            self._emit(data)
        else:
            if self._small:
                self._original.append(data)
            self._emit_edited(self._edit, self._edit.feed(data) if data else b"")

    def broken(self, fault: Fault | str) -> None:
        if self.done.done():
            return
        self.fault = self._end = fault
        if self._head is None or not (self.sent_head or self.bytes_in):
            self.refuse(refusals.UPSTREAM[fault])
        elif self._edit is None:
            self._emit(b"")
        else:
            self._emit_edited(self._edit, b"")

    # -- the client's side

    def client_paused(self) -> None:
        self._pause("client")

    def client_resumed(self) -> None:
        self._resume("client")

    def client_gone(self) -> None:
        if not self.done.done():
            self.gone = True
            self._leave(broken=True)

    # -- between the two

    def _framing(self, head: Head) -> str | None:
        """How the body is to be read; None where it passes as it is."""
        if self._wanted.format is None or head.bodyless or not 200 <= head.status < 300 or head.status == 206:
            return None
        if any(coding != b"identity" for coding in headers.members(head.headers, b"content-encoding")):
            return None
        if self._shared.settings.honour_no_transform:
            if b"no-transform" in headers.members(head.headers, b"cache-control"):
                return None
        media = headers.first(head.headers, b"content-type") or b""
        return framings.choose(media.decode("latin-1"))

    def _emit_edited(self, edit: Fallback, out: bytes) -> None:
        """Pass on what the rewriter gave; while it has a big piece to read, in slices, the upstream waits."""
        if self._end is not None and not (edit.busy or self._finished):
            self._finished = True
            out += edit.finish(clean=self._end == "end")
        if edit.busy:
            self._pause("rewriter")
            if not self._stepping:
                self._stepping = True
                self._loop.call_soon(self._step, edit)
        out += self._account(edit)
        if out or (self._end is not None and not edit.busy):
            self._emit(out, more=edit.busy)

    def _step(self, edit: Fallback) -> None:
        self._stepping = False
        if self.done.done():
            return
        self.touch()
        out = edit.step()
        if not edit.busy:
            self._resume("rewriter")
        self._emit_edited(edit, out)

    def _account(self, edit: Fallback) -> bytes:
        budget = self._shared.budget
        budget.change(edit.held - self._counted)
        self._counted = edit.held
        # Those within their fair share go on: all together they fit.
        if not budget.spent or edit.held <= budget.limit // self._shared.settings.max_in_flight:
            return b""
        out = edit.give_up("held_budget")
        budget.change(-self._counted)
        self._counted = 0
        self._resume("rewriter")
        return out

    def _emit(self, out: bytes, *, more: bool = False) -> None:
        """Write what may leave now, with what belongs around it, at once."""
        last = self._end is not None and not more
        whole = last and self._end == "end"
        if self._head is not None and self._head.bodyless:
            self._leave()
            return
        start = b""
        if not self.sent_head:
            if self._small:
                self._parked.append(out)
                if not last:
                    return
                start, out = self._small_answer(whole)
            else:
                start = self._head_bytes(changed=True)
        if self._chunked:
            out = _chunk(out) + (_LAST_CHUNK if whole else b"")
        self._write(start + out)
        if last:
            self._leave(broken=not whole)

    def _small_answer(self, whole: bool) -> tuple[bytes, bytes]:
        """Head and body of an answer that was held with its head; unchanged ones keep their head as it came."""
        original = b"".join(self._original)
        if not whole:
            return self._head_bytes(changed=False), original
        body = b"".join(self._parked)
        return self._head_bytes(changed=body != original, length=len(body)), body

    def _head_bytes(self, *, changed: bool, length: int | None = None) -> bytes:
        head = self._head
        assert head is not None
        if length is None and not (changed or head.length == headers.CHUNKED):
            length = head.length
        if length is None and not head.bodyless and not self._wanted.http10:
            length = headers.CHUNKED
        self._chunked = length == headers.CHUNKED
        unframed = length is None and not head.bodyless
        self.closes = self.closes or unframed or self._closing()
        self.sent_head = True
        return headers.answer_head(
            head.status,
            head.reason,
            head.headers,
            length=None if head.bodyless else length,
            changed=changed,
            close=self.closes,
            own_length=not head.bodyless or head.status == 204,
        )

    def _write(self, data: bytes) -> None:
        transport = self._client.transport
        if data and transport is not None and not transport.is_closing():
            if self.first_at is None and self.bytes_in:
                self.first_at = self._loop.time()
            self.bytes_out += len(data)
            transport.write(data)

    def _leave(self, *, broken: bool = False) -> None:
        """The answer is over: nothing more comes in or goes out."""
        self.closes = self.closes or broken
        self.cut = self.cut or broken
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if broken and self._upstream is not None:
            self._upstream.abort()
        if not self.done.done():
            self.done.set_result(None)

    def _pause(self, reason: str) -> None:
        self._paused.add(reason)
        if self._upstream is not None and not self.done.done():
            self._upstream.pause()

    def _resume(self, reason: str) -> None:
        self._paused.discard(reason)
        if not self._paused and self._upstream is not None and not self.done.done():
            self.touch()
            self._upstream.resume()

    def _arm(self, limit: float) -> None:
        """One timer an answer, moved only when it fires: the data path sets none."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(limit, self._expired, limit)

    def _expired(self, limit: float) -> None:
        if self._paused:
            self.touch()  # the silence is ours
        left = self._touched + limit - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._expired, limit)
            return
        self._timer = None
        kind = "timeout_first_byte" if self._head is None else "timeout_idle"
        self.broken(kind)
        if self._upstream is not None:
            self._upstream.abort()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def _media_type(head: Head) -> bytes:
    return headers.media_type(headers.first(head.headers, b"content-type"))
