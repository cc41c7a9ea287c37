"""What crosses from one side to the other, and what is added: pure tables and functions on raw bytes.

Law: a head is made from the raw bytes of the head that came. Order, case, repeats, empty values and every byte from
0x80 to 0xFF survive; what is dropped and what is added stands in the tables below and nowhere else. Nothing that
holds CR, LF or NUL is ever written, and of Content-Length and Transfer-Encoding never both.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final, TypeAlias

from proxy.core.problem import Problem, render

RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]

PSEUDONYM: Final = b"logprob-proxy"
COERCED: Final = (b"X-Logprob-Proxy", b"coerced")
"""Says that the request was mended on its way."""
CONFIDENCE: Final = b"X-Confidence"
"""Asks for the member `confidence`, and carries it for clients that drop members they do not know."""
CHUNKED: Final = -1
"""A length that is not known when the head leaves."""

HOP_BY_HOP: Final = frozenset(
    {b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
)
"""RFC 9110, section 7.6.1. Everything that begins with `Proxy-` is dropped beside them."""

OF_THE_BODY: Final = frozenset(
    {b"etag", b"content-md5", b"digest", b"content-digest", b"repr-digest", b"accept-ranges"}
)
"""They describe the upstream's bytes, so they go where the body may be changed (RFC 9110, 8.8.3; RFC 9530)."""

_OURS: Final = frozenset({b"host", b"content-length", b"via", b"accept-encoding", b"date"})
"""A peer's Connection field cannot take these away: the message would lose its length or its way."""

_TOKEN: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_FORBIDDEN: Final = re.compile(rb"[\r\n\0]")
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class UnsafeHeaderError(ValueError):
    """A name or value that must not be written."""


def values(headers: RawHeaders, name: bytes) -> list[bytes]:
    """Every value of a field, as it came; `name` in lower case."""
    return [value for key, value in headers if key.lower() == name]


def first(headers: RawHeaders, name: bytes) -> bytes | None:
    for key, value in headers:
        if key.lower() == name:
            return value
    return None


def members(headers: RawHeaders, name: bytes) -> list[bytes]:
    """The members of a field that is a comma-separated list, in lower case and without white space."""
    found = (part.strip(b" \t").lower() for value in values(headers, name) for part in value.split(b","))
    return [part for part in found if part]


def media_type(value: bytes | None) -> bytes:
    """The media type in lower case, without its parameters."""
    return (value or b"").split(b";", 1)[0].strip().lower()


def hops(headers: RawHeaders) -> int:
    """How often this kind of proxy stands in the message's Via."""
    return sum(value.split()[1:2] == [PSEUDONYM] for value in members(headers, b"via"))


def keep_alive_seconds(headers: RawHeaders) -> float | None:
    """For how long the peer says that it keeps an idle connection: `Keep-Alive: timeout=5, max=100`."""
    for member in members(headers, b"keep-alive"):
        name, _, number = member.partition(b"=")
        if name == b"timeout" and number.isdigit():
            return float(number)
    return None


def head_size(headers: RawHeaders) -> int:
    return sum(len(name) + len(value) + 4 for name, value in headers)


def _crossing(headers: RawHeaders) -> Iterator[tuple[bytes, bytes, bytes]]:
    """What is not hop-by-hop, with its name in lower case first."""
    named = frozenset(members(headers, b"connection")) - _OURS
    for name, value in headers:
        low = name.lower()
        if low in HOP_BY_HOP or low in named or low.startswith(b"proxy-"):
            continue
        # Servers of the CGI family take Content_Length for Content-Length: a second, unchecked length.
        if b"_" in low and low.replace(b"_", b"-") in (b"content-length", b"transfer-encoding"):
            continue
        yield low, name, value


def _serialise(start: bytes, fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    lines = [start]
    for name, value in fields:
        if not _TOKEN.fullmatch(name) or _FORBIDDEN.search(value):
            raise UnsafeHeaderError("a header holds a byte that must not be written")
        lines.append(b"%b: %b" % (name, value))
    lines.append(b"\r\n")
    return b"\r\n".join(lines)


def request_head(
    method: bytes,
    target: bytes,
    headers: RawHeaders,
    *,
    host: bytes,
    length: int | None,
    identity: bool,
    version: bytes = b"1.1",
) -> bytes:
    """The head for the upstream. `length`: of the body, CHUNKED, or None for no body at all.

    `identity`: the answer is to be edited, so it is asked for without content coding, and what asks the proxy for
    something stays here.
    """
    fields: list[tuple[bytes, bytes]] = []
    hosted = measured = coded = False
    for low, name, value in _crossing(headers):
        if low == b"host":
            if not hosted:
                fields.append((name, host))
            hosted = True
        elif low == b"content-length":
            # It keeps its place only where it still says the truth.
            if length is not None and length >= 0 and not measured:
                fields.append((name, b"%d" % length))
                measured = True
        elif low == b"accept-encoding" and identity:
            if not coded:
                fields.append((name, b"identity"))
            coded = True
        elif low != b"expect" and not (identity and low == b"x-confidence"):
            fields.append((name, value))
    if not hosted:
        fields.insert(0, (b"Host", host))
    if length == CHUNKED:
        fields.append((b"Transfer-Encoding", b"chunked"))
    elif length is not None and not measured:
        fields.append((b"Content-Length", b"%d" % length))
    if identity and not coded:
        fields.append((b"Accept-Encoding", b"identity"))
    fields.append((b"Via", b"%b %b" % (version, PSEUDONYM)))
    return _serialise(b"%b %b HTTP/1.1" % (method, target), fields)


def answer_head(
    status: int,
    reason: bytes,
    headers: RawHeaders,
    *,
    length: int | None,
    changed: bool,
    close: bool,
    own_length: bool = True,
    added: RawHeaders = (),
) -> bytes:
    """The head for the client. `length` as above, None where the connection's end is the body's.

    `changed`: the body may differ from the upstream's. `own_length` False keeps the upstream's Content-Length as it
    came, for answers without a body (RFC 9110, 8.6: it tells what a GET would have brought).
    """
    fields: list[tuple[bytes, bytes]] = []
    dated = measured = buffered = False
    stream = False
    for low, name, value in _crossing(headers):
        if low == b"content-length" and own_length:
            if length is not None and length >= 0 and not measured:
                fields.append((name, b"%d" % length))
                measured = True
            continue
        if changed and low in OF_THE_BODY:
            continue
        dated = dated or low == b"date"
        buffered = buffered or low == b"x-accel-buffering"
        stream = stream or (low == b"content-type" and media_type(value) == b"text/event-stream")
        fields.append((name, value))
    if length == CHUNKED:
        fields.append((b"Transfer-Encoding", b"chunked"))
    elif length is not None and not measured:
        fields.append((b"Content-Length", b"%d" % length))
    if stream and not buffered:
        fields.append((b"X-Accel-Buffering", b"no"))
    if not dated:
        fields.append((b"Date", _date(int(time.time()))))
    fields += added
    if close:
        fields.append((b"Connection", b"close"))
    # A reason phrase is free text for people: one that is not plain is left out rather than answered with an error.
    return _serialise(b"HTTP/1.1 %d %b" % (status, b"" if _CONTROL.search(reason) else reason), fields)


def own_answer(
    status: int, body: bytes, fields: RawHeaders, *, head_only: bool = False, close: bool = False
) -> bytes:
    """A whole answer of the proxy's own."""
    head = answer_head(status, phrase(status), fields, length=len(body), changed=False, close=close)
    return head if head_only else head + body


def own_error(problem: Problem, envelope: str, *, head_only: bool = False, close: bool = False) -> bytes:
    """A fault in the API's shape, marked as the proxy's own so that nobody blames the upstream."""
    fields = [
        (b"Content-Type", b"application/json"),
        (b"X-Logprob-Proxy-Error", (problem.reason or "internal").encode("ascii", "replace")),
    ]
    if problem.status == 503:
        fields.append((b"Retry-After", b"1"))
    elif problem.status == 405:
        fields.append((b"Allow", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"))
    return own_answer(problem.status, render(problem, envelope), fields, head_only=head_only, close=close)


def phrase(status: int) -> bytes:
    try:
        return HTTPStatus(status).phrase.encode("ascii")
    except ValueError:
        return b""


@lru_cache(maxsize=2)
def _date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode("ascii")
