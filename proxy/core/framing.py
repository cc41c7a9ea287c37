"""From a stream of bytes to payloads that can be read, whatever the cuts between reads.

Law: the answer decides its framing, not the request. What completes an event leaves at once, every byte leaves
in its order, and any cut of the stream into reads gives the same frames.
"""

import re
from typing import Final

from proxy.core.events import Events
from proxy.core.format import Format
from proxy.core.frames import Frame, Framer
from proxy.core.growing import Growing

_JSON: Final = frozenset({"application/json", "text/json"})
_LINES: Final = frozenset(
    {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"}
)
_CHARSETS: Final = frozenset({"utf-8", "utf8", "us-ascii", ""})


def choose(content_type: str) -> str | None:
    """Name of the framing for a Content-Type: `sse`, `ndjson` or `whole`; None where the body must pass raw."""
    media, _, parameters = content_type.partition(";")
    media = media.strip().lower()
    charset = ""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip('"').lower()
    if charset not in _CHARSETS:
        return None
    if media == "text/event-stream":
        return "sse"
    if media in _LINES:
        return "ndjson"
    return (
        "whole" if media in _JSON or (media.startswith("application/") and media.endswith("+json")) else None
    )


_SSE_STARTS: Final = tuple(
    bom + name for bom in (b"", b"\xef\xbb\xbf") for name in (b"data:", b"event:", b"id:", b"retry:")
)
_SSE_START: Final = re.compile(rb"(?:\xef\xbb\xbf)?(?:data|event|id|retry)?:|(?:\xef\xbb\xbf)")


def sniff(first: bytes) -> str | None:
    """Name of the framing by a body's first bytes, for a body without a Content-Type. None: more bytes are needed.

    A first line that is a whole JSON object is NDJSON; one document on one line reads the same that way."""
    start = first.lstrip(b" \t\r\n")
    if not start:
        return None
    if start[:1] == b"[":
        return "whole"
    if start[:1] == b"{":
        line, newline, _ = start.partition(b"\n")
        if not newline:
            return None
        return "ndjson" if line.rstrip().endswith(b"}") else "whole"
    if _SSE_START.match(start):
        return "sse"
    return None if any(whole.startswith(start) for whole in _SSE_STARTS) else "raw"


def framer(name: str, fmt: Format, *, max_event: int, max_body: int) -> Framer:
    """The framer of that name. `max_event` and `max_body` bound what it holds; passing one, bytes leave raw."""
    if name == "sse":
        return Events(max_event)
    if name == "ndjson":
        return Lines(max_event)
    if name == "whole":
        return Whole(max_body, max_event, growing=fmt.growing_array)
    raise ValueError(f"no framing named {name!r}")


class Lines:
    """NDJSON: one JSON text a line."""

    def __init__(self, max_event: int) -> None:
        self._max = max_event
        self._buf = b""
        self._passing = False

    @property
    def held(self) -> int:
        return len(self._buf)

    def feed(self, data: bytes) -> list[Frame]:
        frames = []
        *lines, rest = data.split(b"\n")
        for line in lines:
            raw = self._buf + line + b"\n"
            self._buf = b""
            if self._passing or not raw.strip():
                frames.append(Frame(raw))
            elif len(raw) > self._max:
                frames.append(Frame(raw, failure="event_too_large"))
            else:
                frames.append(Frame(raw, raw))
            self._passing = False
        self._buf += rest
        if self._buf and (self._passing or len(self._buf) > self._max):
            frames.append(Frame(self._buf, failure="" if self._passing else "event_too_large"))
            self._passing = True
            self._buf = b""
        return frames

    def finish(self) -> list[Frame]:
        raw, self._buf = self._buf, b""
        return [Frame(raw, raw)] if raw else []


_BODY_START: Final = re.compile(rb"[ \t\r\n]*+")


class Whole:
    """One JSON text. White space before it passes at once (DeepSeek keeps connections alive with blank lines); what
    is no object or array passes raw; a growing array of events is handed to `Growing`."""

    def __init__(self, max_body: int, max_event: int, *, growing: bool) -> None:
        self._max = max_body
        self._growing = Growing(max_event) if growing else None
        self._pieces: list[bytes] = []
        self._held = 0
        self._started = False
        self._passing = False
        self._refused = False

    @property
    def held(self) -> int:
        return self._growing.held if self._started and self._growing else self._held

    def feed(self, data: bytes) -> list[Frame]:
        frames = []
        if not self._started:
            match = _BODY_START.match(data)
            start = match.end() if match else 0
            if start:
                frames.append(Frame(data[:start]))
                data = data[start:]
            if not data:
                return frames
            self._started = True
            self._passing = data[0] not in b"{["
            if data[0] != 91:
                self._growing = None
        if self._growing:
            return frames + self._growing.feed(data)
        if self._passing:
            # Events under a JSON label, or an error page: it streams on, but somebody should know.
            first, self._refused = not self._refused, True
            return [*frames, Frame(data, failure="invalid_json" if first else "")]
        self._pieces.append(data)
        self._held += len(data)
        if self._held > self._max:
            self._passing = self._refused = True
            frames.append(Frame(self._take(), failure="body_too_large"))
        return frames

    def finish(self) -> list[Frame]:
        if self._started and self._growing:
            return self._growing.finish()
        raw = self._take()
        return [Frame(raw, raw)] if raw else []

    def _take(self) -> bytes:
        raw = b"".join(self._pieces)
        self._pieces, self._held = [], 0
        return raw
