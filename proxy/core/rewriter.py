"""One answer's way through the core: bytes in, the same bytes with probabilities out.

Law: fail open. Whatever cannot be read passes as it came and is counted; no fault in here costs a byte.
"""

from collections.abc import Generator

import orjson

from proxy.core.confidence import MEMBER
from proxy.core.edits import Edit, apply
from proxy.core.format import Format
from proxy.core.frames import Frame
from proxy.core.framing import framer
from proxy.core.hiding import hider
from proxy.core.insertions import last_member
from proxy.core.places import Reading, Sighting
from proxy.core.reading import read, read_slices
from proxy.core.report import Report
from proxy.core.request import UNJUDGED, Ask
from proxy.core.scan import Obj, ScanError
from proxy.core.scan_fast import MAX_BYTES, fast, fast_hidden, fast_items
from proxy.core.tally import Tally


class Rewriter:
    """feed and end (or finish) of one answer.

    A payload too big for one C call makes the rewriter `busy`: it is read in slices of a few ms, one a `step`,
    and what is fed meanwhile waits behind it. `framing` is a name that `framing.choose` or `sniff` gave, or
    `raw`: everything passes.
    """

    def __init__(
        self,
        fmt: Format,
        framing: str,
        ask: Ask = UNJUDGED,
        *,
        max_event: int = 1 << 20,
        max_body: int = 8 << 20,
    ) -> None:
        self._format = fmt
        self._framer = (
            framer(framing, fmt, max_event=max_event, max_body=max_body) if framing != "raw" else None
        )
        self._flat = framing != "whole"
        self._tally = Tally(fmt, ask)
        self._ask = ask
        self._hide = hider(fmt, absent=ask.absent, own_top=ask.own_top) if ask.plain is not None else None
        self._told: dict[tuple[object, ...], dict[str, object]] = {}
        self._clean = True
        self._read = 0
        self._unread = 0
        self._work: Generator[Reading | None, None, None] | None = None
        self._frames: list[Frame] = []
        """The frame in work and what follows it."""
        self._queue: list[bytes] = []
        """Fed while busy."""

    @property
    def busy(self) -> bool:
        """A big payload is being read; call `step` until it is done."""
        return self._work is not None

    @property
    def held(self) -> int:
        """Bytes fed and not given back."""
        framed = self._framer.held if self._framer else 0
        return framed + sum(len(frame.raw) for frame in self._frames) + sum(map(len, self._queue))

    @property
    def told(self) -> dict[tuple[object, ...], dict[str, object]]:
        """The member `confidence` by choice, as it stands in the answer."""
        return self._told

    @property
    def report(self) -> Report:
        """What is known; tokens that wait for a part are settled, so read it when the answer is over."""
        report = self._tally.close()
        report.unreadable = self._unread > 0 and self._read == 0
        return report

    def feed(self, data: bytes) -> bytes:
        """What may leave now. An empty result means that more bytes, or steps, are needed."""
        if self._framer is None:
            return data
        if self._work is not None:
            self._queue.append(data)
            return b""
        return self._run(self._framer.feed(data))

    def step(self) -> bytes:
        """A few ms of work on a big payload; what may leave after it."""
        if self._work is None:
            return b""
        frame = self._frames[0]
        try:
            reading = next(self._work)
            if reading is None:
                return b""
            out = self._write(frame, reading)
        except Exception as fault:  # noqa: BLE001 - law 2
            out = self._refuse(frame, fault)
        self._work = None
        rest, self._frames = self._frames[1:], []
        out += self._run(rest)
        if self._queue and not self.busy:
            data, self._queue = b"".join(self._queue), []
            out += self.feed(data)
        return out

    def end(self, *, clean: bool = True) -> bytes:
        """The upstream has ended: what may leave now. Call it when not busy; if it is busy afterwards, `step` brings
        what is left. Where the end was not `clean`, a payload that cannot be read is no failure of the answer's."""
        self._clean = clean
        return self._run(self._framer.finish()) if self._framer is not None else b""

    def finish(self, *, clean: bool = True) -> bytes:
        """All that is left, however long it takes: `end` with all steps before and after it."""
        return b"".join([self._drain(), self.end(clean=clean), self._drain()])

    def _drain(self) -> bytes:
        out = []
        while self.busy:
            out.append(self.step())
        return b"".join(out)

    def _run(self, frames: list[Frame]) -> bytes:
        out = []
        for index, frame in enumerate(frames):
            if frame.payload is None:
                if frame.failure:
                    self._unread += 1
                    self._tally.report.fail(frame.failure)
                out.append(frame.raw)
            elif len(frame.payload) > MAX_BYTES:
                self._work = read_slices(
                    frame.payload, self._format, flat=self._flat, quick=fast_items, hide=self._hide
                )
                self._frames = frames[index:]
                break
            else:
                out.append(self._event(frame, frame.payload))
        return b"".join(out) if len(out) != 1 else out[0]

    def _event(self, frame: Frame, payload: bytes) -> bytes:
        if payload[:1] != b"{" and (not (bare := payload.strip()) or bare in self._format.terminators):
            self._tally.report.ended = self._tally.report.ended or bool(bare)
            return frame.raw
        try:
            if self._hide is not None:
                reading = fast_hidden(payload, self._format, self._hide)
            else:
                reading = fast(payload, self._format, flat=self._flat)
            if reading is None or (self._ask.confidence is not None and any(map(_tells, reading.sightings))):
                # To insert a member in an object its position is needed.
                reading = read(payload, self._format, flat=self._flat, hide=self._hide)
            return self._write(frame, reading)
        except Exception as fault:  # noqa: BLE001 - law 2
            return self._refuse(frame, fault)

    def _write(self, frame: Frame, reading: Reading) -> bytes:
        """The frame with the reading's edits."""
        report = self._tally.report
        whole = not self._flat and frame.lines == _UNMOVED
        for sighting in reading.sightings:
            self._tally.take(sighting, whole=whole)
        edits = reading.edits
        if self._ask.confidence is not None and frame.payload is not None:
            edits = edits + self._confidence(frame.payload, reading)
        if not edits:
            out = frame.raw
        elif len(frame.lines) == 1:
            out = apply(frame.raw, edits, frame.lines[0][1])
        else:
            out = apply(frame.raw, _moved(edits, frame.lines))
        report.annotated += reading.insertions
        if reading.loose:
            report.fail("invalid_json")
        report.model = report.model or reading.model
        report.id = report.id or reading.id
        report.in_band_error = report.in_band_error or reading.error
        self._read += 1
        return out

    def _confidence(self, payload: bytes, reading: Reading) -> list[Edit]:
        """The member `confidence` for each choice that this payload ends."""
        edits = []
        for sighting in reading.sightings:
            owner = sighting.owner
            if not isinstance(owner, Obj) or MEMBER in owner or not _tells(sighting):
                continue
            told = self._tally.confidence(sighting.key)
            if told is not None:
                self._told[sighting.key] = told
                edits.append(last_member(payload, owner, MEMBER, orjson.dumps(told), flat=self._flat))
        return edits

    def _refuse(self, frame: Frame, fault: Exception) -> bytes:
        if not isinstance(fault, ScanError):
            self._tally.report.fail("internal")
        elif self._clean:
            self._tally.report.fail("invalid_json")
        self._unread += 1
        return frame.raw


def _tells(sighting: Sighting) -> bool:
    """Here the member `confidence` stands: the choice has ended, or, where nothing says so, there is text."""
    place = sighting.place
    if not place.confidence:
        return False
    return sighting.ended if place.end else any(text for _, text in sighting.texts)


_UNMOVED = ((0, 0),)
"""A payload that is its frame; an element of a growing array never is, its bracket stands before it."""


def _moved(edits: list[Edit], lines: tuple[tuple[int, int], ...]) -> list[Edit]:
    """Edits on a payload of several lines as edits on the frame around it."""

    def offset(at: int) -> int:
        return next(raw - begin for begin, raw in reversed(lines) if begin <= at)

    # What is replaced may end in a later line; its last byte tells which.
    return [
        Edit(start + offset(start), end + offset(max(start, end - 1)), data) for start, end, data in edits
    ]
