"""An answer on its way: from the upstream's callbacks through the rewriter to the client's transport.

Law: at once and all of it. What one read completes leaves in one write, before the loop waits again; what was received
before a fault is delivered, then the message ends visibly broken; an end is never invented.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from proxy import headers, logs
from proxy.core import confidence
from proxy.core import framing as framings
from proxy.core.format import Format
from proxy.core.problem import Problem
from proxy.core.report import Report
from proxy.core.request import UNJUDGED, Ask
from proxy.core.rewriter import Rewriter
from proxy.exchange import refusals
from proxy.exchange.client import ClientConnection
from proxy.exchange.fallback import Fallback
from proxy.exchange.message import Message
from proxy.exchange.shared import Shared
from proxy.exchange.silence import Silence
from proxy.upstream import Connection, Fault, Head

_CLEAN = "clean"
_REFUSED: Final = frozenset({400, 403, 422})
"""How upstreams refuse logprobs: OpenAI and most with 400, some deployments with 403 (deepeval#2184), TGI with 422."""


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
        self,
        shared: Shared,
        client: ClientConnection,
        wanted: Wanted,
        *,
        closing: Callable[[], bool],
        again: Callable[[], None],
    ) -> None:
        self._again: Callable[[], None] | None = again
        """Asks the upstream once more, without what only the proxy wanted."""
        self._shared = shared
        self._client = client
        self._wanted = wanted
        self._loop = loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = loop.create_future()
        self.message = Message(
            client, head_only=wanted.method == b"HEAD", http10=wanted.http10, closing=closing
        )
        self.silence = Silence(self._silent, lambda: bool(self._paused))
        self._upstream: Connection | None = None
        self._head: Head | None = None
        self._edit: Fallback | None = None
        self._end: str | None = None
        """How the upstream ended: _CLEAN, or the kind of its fault."""
        self._told_end = self._stepping = False
        self._paused: set[str] = set()
        self._counted = 0
        """What this answer has in the budget."""
        # The facts for the Outcome.
        self.status = 0
        self.problem: Problem | None = None
        self.fault: str | None = None
        """Kind of the upstream's fault."""
        self.gone = False
        """The client left before the end."""
        self.cut = False
        """The message ends broken."""
        self.stream = False
        self.bytes_in = 0
        self.head_at: float | None = None
        self.first_at: float | None = None

    def report(self) -> Report | None:
        """Asked for once, at the end."""
        return self._edit.report() if self._edit is not None else None

    @property
    def rewritten(self) -> bool:
        return self._edit is not None and not self._edit.raw

    @property
    def rewrite_seconds(self) -> float:
        return self._edit.seconds if self._edit is not None else 0.0

    @property
    def emptiness(self) -> str | None:
        """A stream that ended well without a byte in it is a fault all the same."""
        return "empty_stream" if self.stream and self._end == _CLEAN and not self.bytes_in else None

    # -- the exchange's side

    def attach(self, upstream: Connection) -> None:
        self._upstream = upstream
        upstream.begin(self, self._wanted.method)
        self.silence.watch(self._shared.settings.first_byte_timeout)

    def fail(self, problem: Problem) -> None:
        """Answer with a problem; where the head has left, the message can only break."""
        if self.done.done():
            return
        if self.message.begun:
            self._leave(broken=True)
        else:
            self._refuse(problem)

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
        self._head = head
        self.status = head.status
        self.head_at = self._loop.time()
        if self._wanted.ask.plain is not None and head.status in _REFUSED and self._again is not None:
            # Perhaps it is the logprobs, which only the proxy wanted: once more without, and that answer counts.
            again, self._again, self._upstream = self._again, None, None
            again()
            return
        if self._wanted.ask.coerced:
            self.message.added.append(headers.COERCED)
        self.silence.watch(self._shared.settings.idle_timeout)
        framing = self._framing(head)
        self._edit = self._rewriting(framing)
        media = headers.media_type(headers.first(head.headers, b"content-type"))
        self.stream = framing in ("sse", "ndjson") or media == b"text/event-stream"
        if framing == "whole" and self._edit is not None:
            self.message.defer(head)
        else:
            self.message.begin(head, edited=self._edit is not None)

    def read(self, data: bytes, *, end: bool) -> None:
        if self.done.done():
            return
        self.silence.note()
        self.bytes_in += len(data)
        self.message.came(data)
        if end:
            self._end = _CLEAN
        if self._edit is None:
            self._emit(data)
        else:
            self._emit_edited(self._edit, self._edit.feed(data) if data else b"")

    def broken(self, fault: Fault | str) -> None:
        if self.done.done():
            return
        self.fault = self._end = fault
        if not self.message.begun and not self.bytes_in:
            self._refuse(refusals.UPSTREAM[fault])
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

    def _rewriting(self, framing: str | None) -> Fallback | None:
        settings, wanted = self._shared.settings, self._wanted
        if framing is None or wanted.format is None:
            return None
        limits = {"max_event": settings.max_event, "max_body": settings.max_answer}
        try:
            return Fallback(Rewriter(wanted.format, framing, wanted.ask, **limits))
        except Exception as fault:  # noqa: BLE001  # law 2: no fault of the enrichment costs an answer
            logs.get().error("no rewriter, the answer passes unchanged", exc_info=fault)
            return None

    def _emit_edited(self, edit: Fallback, out: bytes) -> None:
        """Pass on what the rewriter gave; while it has a big piece to read, in slices, the upstream waits."""
        if self._end is not None and not (edit.busy or self._told_end):
            self._told_end = True
            out += edit.end(clean=self._end == _CLEAN)
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
        last = self._end is not None and not more
        whole = self._end == _CLEAN
        if last and not self.message.begun and self._edit is not None and (told := self._edit.told):
            self.message.added.append((headers.CONFIDENCE, confidence.header(told)))
        self.message.put(out, last=last, whole=whole)
        if self.first_at is None and self.bytes_in and self.message.begun:
            self.first_at = self._loop.time()
        if last:
            self._leave(broken=not whole)

    def _refuse(self, problem: Problem) -> None:
        fmt = self._wanted.format
        self.problem = problem
        self.status = problem.status
        self.message.own(problem, self._shared.profile.envelope or (fmt.envelope if fmt else "openai"))
        self._leave()

    def _leave(self, *, broken: bool = False) -> None:
        """The answer is over: nothing more comes in or goes out."""
        self.silence.stop()
        if self.done.done():
            return
        self.cut = broken
        self.message.closes = self.message.closes or broken
        if broken and self._upstream is not None:
            self._upstream.abort()
        self.done.set_result(None)

    def _pause(self, reason: str) -> None:
        self._paused.add(reason)
        if self._upstream is not None and not self.done.done():
            self._upstream.pause()

    def _resume(self, reason: str) -> None:
        self._paused.discard(reason)
        if not self._paused and self._upstream is not None and not self.done.done():
            self.silence.note()
            self._upstream.resume()

    def _silent(self) -> None:
        self.broken("timeout_first_byte" if self._head is None else "timeout_idle")
        if self._upstream is not None:
            self._upstream.abort()
