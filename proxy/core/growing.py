"""One JSON array that grows by an element an event.

Law: an element leaves as soon as its bracket closes; what stands between elements leaves as it comes.
"""

import re
from typing import Final

from proxy.core.frames import Frame

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
