"""A client's request: what is refused before anything is read, and its body, held or streamed.

Law: a body is held only to be judged, and only up to the limit of judging; every other one passes through as it
comes. Nothing here looks into the bytes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from aiohttp.http import HttpVersion10, HttpVersion11

from proxy import formats, headers
from proxy.core.format import Format
from proxy.core.problem import Problem
from proxy.exchange import refusals, target
from proxy.settings import Settings

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_REFUSED_METHODS: Final = frozenset({"CONNECT", "TRACE"})
_NOT_JSON: Final = (b"multipart/", b"audio/", b"image/", b"video/", b"application/octet-stream")


class BodyError(Exception):
    """The body cannot be read to its end."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.reason)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request goes and what is known there."""

    target: bytes
    format: Format | None
    variables: dict[str, str]


class Request:
    """One request with its body still on the wire."""

    def __init__(self, request: web.BaseRequest, settings: Settings, preferred: tuple[str, ...] = ()) -> None:
        self._request = request
        self._preferred = preferred
        self._settings = settings
        self.method = request.method.encode("ascii")
        self.headers: headers.RawHeaders = request.raw_headers
        self.http10 = request.version == HttpVersion10
        self.bytes_in = 0
        length = headers.first(self.headers, b"content-length")
        self.length = int(length) if length is not None and length.isdigit() else None
        self.chunked = headers.first(self.headers, b"transfer-encoding") is not None
        self._continue = headers.first(self.headers, b"expect") is not None and not self.http10

    def check(self) -> Problem | Route:
        """What must hold before a byte of the body is read, in the order in which it is cheap to know."""
        request = self._request
        if request.version not in (HttpVersion10, HttpVersion11):
            return refusals.VERSION
        codings = headers.values(self.headers, b"transfer-encoding")
        if codings and (self.http10 or [coding.lower() for coding in codings] != [b"chunked"]):
            return refusals.TRANSFER_ENCODING
        if headers.head_size(self.headers) + len(request.raw_path) > self._settings.max_head:
            return refusals.HEAD_TOO_LARGE
        if request.method in _REFUSED_METHODS:
            return refusals.METHOD
        # aiohttp decodes with surrogateescape, so encoding gives back the bytes that came.
        path = target.origin_form(request.raw_path.encode("utf-8", "surrogateescape"))
        if path is None:
            return refusals.TARGET
        if headers.hops(self.headers) >= 2:
            return refusals.LOOP
        if self.wants_websocket:
            return refusals.UPGRADE
        if self._continue and headers.members(self.headers, b"expect") != [b"100-continue"]:
            return refusals.EXPECTATION
        if self.length is not None and self.length > self._settings.max_request_body:
            return refusals.BODY_TOO_LARGE
        found = formats.match(path.partition(b"?")[0].decode("latin-1"), self._preferred)
        return Route(path, *found) if found else Route(path, None, {})

    @property
    def wants_websocket(self) -> bool:
        return b"websocket" in headers.members(self.headers, b"upgrade")

    @property
    def has_body(self) -> bool:
        return self.chunked or bool(self.length)

    @property
    def complete(self) -> bool:
        """The whole body has arrived."""
        return self._request.content.is_eof()

    @property
    def keep_alive(self) -> bool:
        return not self.http10 and bool(self._request.keep_alive)

    @property
    def judgeable(self) -> bool:
        """A body that may be JSON for a format's rules. Media types are not trusted: curl says form."""
        if self.method != b"POST" or not self.has_body:
            return False
        if any(coding != b"identity" for coding in headers.members(self.headers, b"content-encoding")):
            return False
        if self.length is not None and self.length > self._settings.max_judged_body:
            return False
        return not headers.media_type(headers.first(self.headers, b"content-type")).startswith(_NOT_JSON)

    async def part(self) -> bytes:
        """The next bytes of the body, empty at its end. Raises BodyError."""
        self._proceed()
        try:
            async with asyncio.timeout(self._settings.request_body_timeout):
                part = await self._request.content.readany()
        except TimeoutError:
            raise BodyError(refusals.BODY_TIMEOUT) from None
        except (web.RequestPayloadError, ConnectionError):
            raise BodyError(refusals.MALFORMED) from None
        self.bytes_in += len(part)
        if self.bytes_in > self._settings.max_request_body:
            raise BodyError(refusals.BODY_TOO_LARGE)
        return part

    def _proceed(self) -> None:
        """Answer `Expect: 100-continue`: keys and limits have been looked at, so the body is wanted."""
        transport = self._request.transport
        if self._continue and transport is not None:
            self._continue = False
            transport.write(_CONTINUE)
