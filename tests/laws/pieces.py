"""Cuts a body into the pieces in which JSON texts stand, without the proxy's help.

Law: the pieces joined are the body. Written after WHATWG HTML 9.2 (server-sent events), NDJSON and RFC 8259.
"""

import re
from typing import NamedTuple

_LINES = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|\Z)")


class Piece(NamedTuple):
    """A run of bytes and the JSON text in it, if there may be one."""

    raw: bytes
    payload: bytes | None
    at: tuple[int, ...]
    """Position in `raw` of each byte of the payload; a line end between two data lines has the first one's end."""
    flat: bool
    """What is inserted here may hold no line end."""


def cut(body: bytes, framing: str | None) -> list[Piece]:
    """The pieces of a body in a framing (`whole`, `sse`, `ndjson`; None: it passes raw)."""
    if framing == "sse":
        return _events(body)
    if framing == "ndjson":
        return [_all(line, flat=True) for line in re.findall(rb"[^\n]*\n|[^\n]+\Z", body)]
    if framing == "whole":
        return [_all(body, flat=False)]
    return [Piece(body, None, (), False)]


def _all(raw: bytes, *, flat: bool) -> Piece:
    return Piece(raw, raw if raw.strip() else None, tuple(range(len(raw))), flat)


def _events(body: bytes) -> list[Piece]:
    pieces: list[Piece] = []
    raw, payload = b"", b""
    at: list[int] = []
    has_data = False
    for match in _LINES.finditer(body):
        line = match[0]
        if not line:
            continue
        content = line.rstrip(b"\r\n")
        start = len(raw) + (3 if match.start() == 0 and line.startswith(b"\xef\xbb\xbf") else 0)
        field, colon, value = content[start - len(raw) :].partition(b":")
        raw += line
        if field == b"data":
            start += 4 + len(colon)
            if value.startswith(b" "):
                value, start = value[1:], start + 1
            if has_data:
                payload += b"\n"
                at.append(at[-1] + 1 if at else start)
            payload += value
            at += range(start, start + len(value))
            has_data = True
        if not content:
            pieces.append(Piece(raw, payload if has_data else None, tuple(at), True))
            raw, payload, at, has_data = b"", b"", [], False
    if raw:
        pieces.append(Piece(raw, payload if has_data else None, tuple(at), True))
    return pieces
