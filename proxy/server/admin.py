"""The pages of the admin listener.

Law: they only read, and never ask the upstream. A scrape holds up no stream: with a hundred models its text takes a
tenth of a second to write, so that is done in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from proxy import headers
from proxy.exchange import Sent

_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Pages:
    """/metrics, /healthz and /readyz."""

    expose: Callable[[], tuple[bytes, str]]
    """The text of all metrics, and its Content-Type."""
    unready: Callable[[], str | None]
    """Why clients should go elsewhere; None if they need not."""

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request of the admin listener."""
        status, body, media = await self._page(request.method, request.raw_path.partition("?")[0])
        fields = [(b"Content-Type", media.encode("ascii")), (b"Cache-Control", b"no-store")]
        if status == 405:
            fields.append((b"Allow", b"GET, HEAD"))
        keep = bool(request.keep_alive) and request.content.is_eof()
        if request.transport is not None:
            request.transport.write(
                headers.own_answer(status, body, fields, head_only=request.method == "HEAD", close=not keep)
            )
        return Sent(keep_alive=keep)

    async def _page(self, method: str, path: str) -> tuple[int, bytes, str]:
        if method not in ("GET", "HEAD"):
            return 405, b"only GET and HEAD\n", _TEXT
        match path:
            case "/metrics":
                return 200, *await asyncio.to_thread(self.expose)
            case "/healthz":
                return 200, b"ok\n", _TEXT
            case "/readyz":
                why = self.unready()
                return (200, b"ok\n", _TEXT) if why is None else (503, f"{why}\n".encode(), _TEXT)
            case _:
                return 404, b"only /metrics, /healthz and /readyz\n", _TEXT
