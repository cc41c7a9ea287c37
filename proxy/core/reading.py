"""From one payload to what it means: the edits to make and the tokens it brings.

Law: only slots of the format are touched. The exact reader here defines the meaning; `scan_fast` may only be
quicker. Both walk the same places with the same shapes.
"""

from collections.abc import Callable, Generator
from typing import Final, Protocol

from proxy.core.edits import Edit, joined
from proxy.core.format import Format
from proxy.core.insertions import edits_of
from proxy.core.places import Reading, Visit, walk
from proxy.core.plans import plan
from proxy.core.scan import Items, Scanner
from proxy.core.shape import Mark
from proxy.core.shapes import Objects
from proxy.core.tokens import Part, Token


class Quick(Protocol):
    """`scan_fast.fast_items`: tokens and edits of a run of elements, with the number of insertions, or None where only
    the exact reader can tell."""

    def __call__(
        self, text: bytes, start: int, end: int, shape: Objects, fmt: Format, *, flat: bool
    ) -> tuple[list[Token], list[Edit], int] | None: ...


Hide = Callable[[bytes, object], list[Edit]]
"""`hiding.hider`: the edits that take out of an answer what only the proxy asked for."""
_RUN: Final = 16
"""Located elements read between two pauses: a millisecond or so at 20 alternatives each."""


def read(text: bytes, fmt: Format, *, flat: bool = False, hide: Hide | None = None) -> Reading:
    """Read one payload exactly. `flat`: what is inserted may hold no line end. `hide`: in place of inserting, the edits
    write "not asked". Raises ScanError."""
    result = None
    for result in read_slices(text, fmt, flat=flat, hide=hide):  # noqa: B007 - the last one is the reading
        pass
    assert result is not None
    return result


def read_slices(
    text: bytes,
    fmt: Format,
    *,
    flat: bool = False,
    quick: Quick | None = None,
    hide: Hide | None = None,
) -> Generator[Reading | None, None, None]:
    """`read` with pauses: yields None between slices of a few ms, the Reading last. `quick` is tried on each located
    element first."""
    scanner = Scanner(text)
    root: object = None
    for root in scanner.slices(plan(fmt)):
        if root is None:
            yield None
    reading = Reading()
    marks: list[Mark] = []
    for visit in walk(root, fmt, reading):
        _, _, owner, member = visit
        value = owner[member]
        if isinstance(value, Items):
            yield from _take_items(scanner, fmt, visit, value, reading, flat, quick)
        else:
            take(visit, marks)
    edits = edits_of(text, marks, flat=flat)
    reading.edits += edits
    reading.insertions += len(edits)
    if hide is not None:
        reading.edits, reading.insertions = hide(text, root), 0
    reading.loose = scanner.loose
    yield reading


def _take_items(
    scanner: Scanner,
    fmt: Format,
    visit: Visit,
    items: Items,
    reading: Reading,
    flat: bool,
    quick: Quick | None,
) -> Generator[None, None, None]:
    """Read a located array run by run; the edits of a run are joined, so that no step is long."""
    sighting, slot, _, _ = visit
    shape = next((shape for shape in slot.shapes if isinstance(shape, Objects)), None)
    if shape is None:
        sighting.unknown += 1
        return
    text = scanner.text
    if not any(text[start] in b"{[" for start, _ in items.spans):
        sighting.unknown += 1
        return
    in_lines = flat and b"\n" in text
    """Edits over several lines of an event are moved one by one."""
    tokens: list[Token] = []
    sighting.tokens.append((slot.part, tokens))
    for first in range(0, len(items.spans), _RUN):
        run = items.spans[first : first + _RUN]
        found = quick(text, run[0][0], run[-1][1], shape, fmt, flat=flat) if quick is not None else None
        if found is None:
            marks: list[Mark] = []
            read_ones = [shape.item(scanner.item(start), marks) for start, _ in run]
            edits = edits_of(text, marks, flat=flat)
            found = [token for token in read_ones if token is not None], edits, len(edits)
        more, edits, insertions = found
        tokens += more
        reading.insertions += insertions
        reading.edits += edits if in_lines or not edits else [joined(text, edits)]
        if first + _RUN < len(items.spans):
            yield None


def take(visit: Visit, marks: list[Mark]) -> None:
    """Let the first shape that fits read the slot."""
    sighting, slot, owner, member = visit
    for shape in slot.shapes:
        if slot.part is Part.ALTERNATIVES:
            positions = shape.positions(owner, member, marks)
            if positions is not None:
                sighting.alternatives += positions
                return
            continue
        tokens = shape(owner, member, marks)
        if tokens is not None:
            sighting.tokens.append((slot.part, tokens))
            return
    if owner[member] not in (None, [], {}, False):
        sighting.unknown += 1
