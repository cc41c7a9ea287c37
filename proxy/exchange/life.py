"""One exchange's life: a request is checked, judged and forwarded, its answer delivered, and an Outcome made.

Law: whatever happens, the client gets one answer or one broken end, the upstream's connection is let go, nothing
stays held, and exactly one Outcome is recorded.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import cast

from aiohttp import web

from proxy import headers, logs
from proxy.core import request as rules
from proxy.core import trace
from proxy.core.problem import Problem
from proxy.core.report import Outcome, Report
from proxy.core.request import UNJUDGED, Ask
from proxy.exchange import refusals, target, tasks
from proxy.exchange.answer import Answer, Wanted
from proxy.exchange.client import ClientConnection, Sent
from proxy.exchange.message import chunk
from proxy.exchange.request import BodyError, Request, Route
from proxy.exchange.shared import Shared
from proxy.upstream import ConnectError, Connection

_LEFT: int = 499
"""No status was sent: the client left before."""


class Exchange:
    """One request and its answer."""

    def __init__(self, shared: Shared, request: web.BaseRequest) -> None:
        self._shared = shared
        self._client = cast(ClientConnection, request.protocol)
        self._request = Request(request, shared.settings, shared.profile.formats)
        self._loop = asyncio.get_running_loop()
        self._time = time.time()
        self._began = self._loop.time()
        self._route = Route(b"", None, {})
        self._wanted = Wanted(self._request.method, self._request.http10)
        self._unjudged = False
        self._answer = Answer(shared, self._client, self._wanted, closing=self._closing, again=self._again)
        self._task: asyncio.Task[None] | None = None
        self._upstream: Connection | None = None
        self._sent = False
        """The whole request is with the upstream."""
        self._body_held = 0
        self._upload: asyncio.Task[None] | None = None
        """Sends the body, or everything once more."""
        self._error: str | None = None

    async def run(self) -> Sent:
        """Serve the request; what to tell aiohttp."""
        entered = self._shared.enter(self)
        self._client.listener = self._answer
        try:
            self._task = asyncio.current_task()
            problem = await self._forward(entered)
            self._task = None
            if problem is not None:
                self._answer.fail(problem)
            await self._answer.deliver()
        except asyncio.CancelledError:
            self._answer.client_gone()
            raise
        except Exception as fault:  # noqa: BLE001  # an exchange that fails must not take others or the log with it
            self._error = type(fault).__name__
            logs.get().error("exchange failed", exc_info=fault)
            self._answer.fail(refusals.INTERNAL)
        finally:
            self._let_go()
            if entered:
                self._shared.leave(self)
            self._shared.record(self._outcome())
        if self._answer.message.closes and not self._request.complete:
            self._client.half_close()
        return Sent(keep_alive=not (self._answer.message.closes or self._shared.draining))

    def stop(self) -> None:
        """End now, however far it is: the time to drain is over."""
        self._error = self._error or "stopped"
        self._answer.fail(refusals.STOPPING)
        if self._task is not None:
            self._task.cancel()

    # -- the way there

    async def _forward(self, entered: bool) -> Problem | None:
        """Send the request on its way; a Problem where the proxy itself has to answer."""
        checked = self._request.check()
        if isinstance(checked, Problem):
            return checked
        self._route = checked
        self._wanted.format = checked.format
        if not entered:
            return refusals.OVERLOADED
        try:
            begun, whole = await self._judged_body()
        except BodyError as fault:
            return fault.problem
        if isinstance(begun, Problem):
            return begun
        try:
            self._upstream = await self._shared.pool.acquire()
        except ConnectError as fault:
            self._answer.fault = fault.kind
            return refusals.UPSTREAM[fault.kind]
        try:
            self._send(self._upstream, begun, whole=whole)
        except headers.UnsafeHeaderError:
            return refusals.MALFORMED
        return None

    async def _judged_body(self) -> tuple[bytes | Problem, bool]:
        """What of the body was held (or the Problem in it), and whether that is all of it."""
        request, settings = self._request, self._shared.settings
        fmt = self._route.format
        if fmt is None or not request.judgeable:
            self._unjudged = fmt is not None and request.method == b"POST"
            return b"", not request.has_body
        held: list[bytes] = []
        while part := await request.part():
            held.append(part)
            self._hold(len(part))
            if self._body_held > settings.max_judged_body or self._shared.budget.spent:
                self._unjudged = True
                return b"".join(held), False
        body = b"".join(held)
        verdict = self._judge(body)
        if isinstance(verdict, Problem):
            return verdict, True
        self._wanted.ask = verdict
        return body if verdict.forward is None else verdict.forward, True

    def _judge(self, body: bytes) -> Problem | Ask:
        assert self._route.format is not None
        validation = self._shared.settings.validation
        try:
            return rules.judge(
                body,
                self._route.format,
                self._shared.profile,
                self._route.variables,
                validation=validation,
                header=headers.first(self._request.headers, b"x-confidence"),
                observe=self._shared.observer.wants,
            )
        except Exception as fault:  # noqa: BLE001  # law 2: what cannot be judged goes upstream as it came
            logs.get().error("judging failed, the request passes unjudged", exc_info=fault)
            self._unjudged = True
            return UNJUDGED

    def _send(self, upstream: Connection, begun: bytes, *, whole: bool) -> None:
        request = self._request
        if whole:
            length = len(begun) if request.chunked or request.length is not None else None
        else:
            length = headers.CHUNKED if request.chunked else request.length
        head = headers.request_head(
            request.method,
            target.join(self._shared.pool.origin.path, self._route.target),
            request.headers,
            host=self._shared.pool.origin.authority,
            length=length,
            identity=self._route.format is not None,
            version=b"1.0" if request.http10 else b"1.1",
        )
        self._answer.attach(upstream)
        if whole:
            upstream.send(head + begun)
            self._sent = True
            self._hold(-self._body_held)
        else:
            self._upload = tasks.spawn(self._stream(upstream, head, begun), "upload")

    async def _stream(self, upstream: Connection, head: bytes, begun: bytes) -> None:
        """Pass the body on as it comes, no faster than the upstream takes it."""
        chunked = self._request.chunked
        upstream.send(head + (chunk(begun) if chunked else begun))
        self._hold(-self._body_held)
        try:
            while part := await self._request.part():
                upstream.send(chunk(part) if chunked else part)
                self._answer.silence.note()
                await upstream.drained()
            if chunked:
                upstream.send(b"0\r\n\r\n")
            self._sent = True
        except BodyError as fault:
            self._answer.fail(fault.problem)
        except ConnectionError:
            pass  # the answer hears of it by itself, and may have come before

    def _again(self) -> None:
        """The upstream refused what only the proxy asked for: ask as the client did."""
        ask = self._wanted.ask
        assert ask.plain is not None
        self._wanted.ask = replace(ask, plain=None, refused=True)
        if ask.observed and self._route.format is not None:
            self._shared.observer.refused(self._route.format.name, ask.model)
        if self._upstream is not None:
            self._shared.pool.release(self._upstream, reusable=False)
            self._upstream = None
        self._upload = tasks.spawn(self._ask_again(ask.plain), "asked again")

    async def _ask_again(self, body: bytes) -> None:
        try:
            self._upstream = await self._shared.pool.acquire()
        except ConnectError as fault:
            self._answer.fault = fault.kind
            self._answer.fail(refusals.UPSTREAM[fault.kind])
            return
        self._send(self._upstream, body, whole=True)

    def _hold(self, by: int) -> None:
        self._body_held += by
        self._shared.budget.change(by)

    # -- the way back

    def _closing(self) -> bool:
        """Whether the client's connection ends with this answer."""
        return (
            not self._request.keep_alive
            or not self._request.complete
            or self._request.wants_websocket
            or self._shared.draining
        )

    def _let_go(self) -> None:
        self._client.listener = None
        self._answer.close()
        self._hold(-self._body_held)
        if self._upload is not None:
            self._upload.cancel()
        if self._upstream is not None:
            self._shared.pool.release(self._upstream, reusable=self._sent and not self._answer.cut)

    def _outcome(self) -> Outcome:
        answer, fmt = self._answer, self._route.format
        report = answer.report()
        if self._unjudged:
            report = report or Report()
            report.fail("body_not_judged")
        model = self._wanted.ask.model or self._route.variables.get("model")
        return Outcome(
            time=self._time,
            method=self._request.method.decode("ascii"),
            api=fmt.api if fmt else "other",
            format=fmt.name if fmt else None,
            model=model,
            status=answer.status or _LEFT,
            origin="upstream" if answer.status and answer.problem is None else "proxy",
            outcome=self._kind(report),
            stream=answer.stream,
            problem=answer.problem,
            upstream_error=answer.fault or answer.emptiness,
            duration=self._loop.time() - self._began,
            upstream_head=self._since(answer.head_at),
            first_chunk=self._since(answer.first_at),
            rewrite_seconds=answer.rewrite_seconds,
            request_bytes=self._request.bytes_in,
            response_bytes=answer.message.size,
            report=report,
            observed=self._wanted.ask.observed,
            refused=self._wanted.ask.refused,
            error=self._error,
            trace=trace.read(
                headers.values(self._request.headers, b"traceparent"),
                headers.values(self._request.headers, b"tracestate"),
            ),
        )

    def _kind(self, report: Report | None) -> str:
        answer = self._answer
        if answer.gone:
            return "client_closed"
        if answer.cut and answer.fault is not None:
            return "upstream_cut"
        if report is None or answer.problem is not None or not answer.rewritten:
            return "passthrough"
        return report.outcome

    def _since(self, moment: float | None) -> float | None:
        return None if moment is None else moment - self._began
