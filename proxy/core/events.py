"""Server-sent events (WHATWG HTML 9.2), cut anywhere.

Law: a CR ends a line at once, and an LF that follows belongs to it; what completes an event leaves at once, and every
line leaves in its order.
"""

import re
from typing import Final

from proxy.core.frames import Frame

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
