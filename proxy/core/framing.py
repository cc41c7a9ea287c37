"""From a stream of bytes to payloads that can be read, whatever the cuts between reads.

Law: the answer decides its framing, not the request. What completes an event leaves at once, every byte leaves
in its order, and any cut of the stream into reads gives the same frames.
"""

import re
from typing import Final, NamedTuple, Protocol

from proxy.core.format import Format


class Frame(NamedTuple):
    """A run of bytes that may leave, with the JSON payload in it if there is one."""

    raw: bytes
    payload: bytes | None = None
    lines: tuple[tuple[int, int], ...] = ((0, 0),)
    """(position in payload, position in raw) where each line of the payload begins."""
    failure: str = ""
    """Why a payload passes unread."""


class Framer(Protocol):
    """One framing."""

    @property
    def held(self) -> int:
        """Bytes taken and not given back."""
        ...

    def feed(self, data: bytes) -> list[Frame]: ...

    def finish(self) -> list[Frame]: ...


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


_LINE_END: Final = re.compile(rb"[\r\n]")
_BOM: Final = b"\xef\xbb\xbf"


class Events:
    """Server-sent events (WHATWG HTML 9.2). Lines before an event's first `data:` leave at their line end; from it
    to the blank line all wait, in order. A CR ends a line at once: an LF that follows belongs to it (whatwg/html#4411).
    """

    def __init__(self, max_event: int) -> None:
        self._max = max_event
        self._buf = b""
        self._line = 0
        """Where the unfinished line begins."""
        self._seen = 0
        """Up to where that line was searched for its end."""
        self._data: list[tuple[int, int]] = []
        """Values of the event's data lines."""
        self._begun = False
        """The unfinished line began in bytes that have left."""
        self._after_cr = False
        self._first = True
        self._passing = False
        """An event over the limit passes raw until its blank line."""

    @property
    def held(self) -> int:
        return len(self._buf)

    def feed(self, data: bytes) -> list[Frame]:
        if not (self._buf or self._begun or self._after_cr or self._passing) and _one_event(data):
            self._first = False
            return [self._framed(data, [(6, len(data) - 2)])]
        frames: list[Frame] = []
        buf = self._buf + data if self._buf else data
        sent = 0
        line, seen = self._line, self._seen
        if self._after_cr and data:
            self._after_cr = False
            if buf[line : line + 1] == b"\n":
                line = seen = line + 1
                if not self._data:
                    sent = line
                    frames.append(Frame(buf[:line]))
        while match := _LINE_END.search(buf, seen):
            end = match.start()
            after = end + 1
            if buf[end] == 13:
                if after == len(buf):
                    self._after_cr = True
                elif buf[after] == 10:
                    after += 1
            if end == line and not self._begun:
                frames.append(self._event(buf[sent:after], sent))
                sent = after
            else:
                if not self._begun:
                    self._field(buf, line, end)
                self._begun = False
                if not self._data:
                    frames.append(Frame(buf[sent:after]))
                    sent = after
            line = seen = after
        seen = len(buf)
        if self._passing or seen - sent > self._max:
            failure = ""
            if not self._passing and (self._data or self._is_data(buf, line)):
                self._passing, self._data = True, []
                failure = "event_too_large"
            if sent < seen:
                frames.append(Frame(buf[sent:], failure=failure))
                sent = seen
        self._begun = self._begun or sent > line
        self._buf, self._line, self._seen = buf[sent:], max(line - sent, 0), seen - sent
        if sent:
            self._data = [(start - sent, end - sent) for start, end in self._data]
        return frames

    def finish(self) -> list[Frame]:
        buf, line = self._buf, self._line
        if not buf:
            return []
        if line < len(buf):
            self._field(buf, line, len(buf))
        self._buf = b""
        return [self._event(buf, 0)]

    def _field(self, buf: bytes, start: int, end: int) -> None:
        if self._first:
            self._first = False
            if buf.startswith(_BOM, start):
                start += 3
        if self._passing or not buf.startswith(b"data", start):
            return
        colon = start + 4
        if colon >= end:
            self._data.append((end, end))
        elif buf[colon] == 58:
            value = colon + 1
            if value < end and buf[value] == 32:
                value += 1
            self._data.append((value, end))

    def _is_data(self, buf: bytes, line: int) -> bool:
        return not self._begun and buf.startswith(
            b"data:", line + 3 if self._first and buf.startswith(_BOM, line) else line
        )

    def _event(self, raw: bytes, base: int) -> Frame:
        spans, self._data = self._data, []
        self._passing = False
        self._first = False
        return self._framed(raw, [(start - base, end - base) for start, end in spans])

    def _framed(self, raw: bytes, spans: list[tuple[int, int]]) -> Frame:
        if not spans:
            return Frame(raw)
        if len(raw) > self._max:
            return Frame(raw, failure="event_too_large")
        if len(spans) == 1:
            start, end = spans[0]
            return Frame(raw, raw[start:end], ((0, start),))
        lines, pieces, length = [], [], 0
        for start, end in spans:
            lines.append((length, start))
            pieces.append(raw[start:end])
            length += end - start + 1
        return Frame(raw, b"\n".join(pieces), tuple(lines))


def _one_event(data: bytes) -> bool:
    """The commonest read: one whole event of one line, as all big servers write it."""
    return (
        data.startswith(b"data: ")
        and data.endswith(b"\n\n")
        and data.find(b"\n") == len(data) - 2
        and b"\r" not in data
    )


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


_STRUCTURE: Final = re.compile(rb'["\[\]{}]')
_INSIDE: Final = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)


class Growing:
    """One JSON array that grows by an element an event (Gemini's stream without `alt=sse`): each element leaves as
    soon as its bracket closes."""

    def __init__(self, max_event: int) -> None:
        self._max = max_event
        self._buf = b""
        self._pos = 0
        self._depth = 0
        self._start = 0
        self._string = False
        self._passing = False

    @property
    def held(self) -> int:
        return len(self._buf)

    def feed(self, data: bytes) -> list[Frame]:
        buf = self._buf + data
        frames = []
        sent, pos = 0, self._pos
        while True:
            if self._string:
                match = _INSIDE.match(buf, pos)
                pos = match.end() if match else pos
                if buf[pos : pos + 1] != b'"':
                    break
                self._string = False
                pos += 1
            match = _STRUCTURE.search(buf, pos)
            if match is None:
                pos = len(buf)
                break
            pos = match.end()
            mark = buf[pos - 1]
            if mark == 34:
                self._string = True
            elif mark in b"[{":
                self._depth += 1
                if self._depth == 2:
                    self._start = pos - 1
            else:
                self._depth -= 1
                if self._depth == 1:
                    raw = buf[sent:pos]
                    start = self._start - sent
                    if self._passing:
                        frames.append(Frame(raw))
                    elif pos - self._start > self._max:
                        frames.append(Frame(raw, failure="event_too_large"))
                    else:
                        frames.append(Frame(raw, raw[start:], ((0, start),)))
                    self._passing = False
                    sent = pos
        idle = self._depth < 2 and not self._string
        if self._depth > 1 and not self._passing and len(buf) - self._start > self._max:
            self._passing = True
            frames.append(Frame(buf[sent:pos], failure="event_too_large"))
            sent = pos
        elif idle or self._passing:
            self._passing = not idle
            if sent < pos:
                frames.append(Frame(buf[sent:pos]))
                sent = pos
        self._buf = buf[sent:]
        self._pos = pos - sent
        self._start -= sent
        return frames

    def finish(self) -> list[Frame]:
        raw, self._buf = self._buf, b""
        return [Frame(raw)] if raw else []
