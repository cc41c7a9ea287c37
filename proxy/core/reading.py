"""From one payload to what it means: the edits to make and the tokens it brings.

Law: only slots of the format are touched. The exact reader here defines the meaning; `scan_fast` may only be
quicker. Both walk the same places with the same shapes.
"""

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from typing import Final, NamedTuple

from proxy.core.edits import Edit
from proxy.core.format import EACH, Format, Path, Place, Slot
from proxy.core.probability import probability, spell
from proxy.core.scan import ALL, Items, Obj, Plan, scan_item, scan_slices
from proxy.core.shapes import Keyed, Linear, Mark, Objects, Value
from proxy.core.tokens import Part, Token


@dataclass(slots=True)
class Sighting:
    """One choice as one payload shows it."""

    place: Place
    key: tuple[object, ...]
    tokens: list[tuple[Part, list[Token]]] = field(default_factory=list)
    texts: list[tuple[Part, str | None]] = field(default_factory=list)
    """Text by part; None where something stands there that is no text (tool calls)."""
    blind: bool = True
    """Nothing stands where the format keeps text."""
    ended: bool = False
    unknown: int = 0
    """Slots that held something no shape fits."""


@dataclass(slots=True)
class Reading:
    """What one payload holds."""

    edits: list[Edit] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)
    model: str | None = None
    id: str | None = None
    error: bool = False
    loose: bool = False
    """It holds numbers that are no JSON (NaN, Infinity) or no float64 (1e400)."""


class Visit(NamedTuple):
    """A slot that holds something, with the sighting it belongs to."""

    sighting: Sighting
    slot: Slot
    owner: Value
    member: str


_PAUSE: Final = 32
"""Located elements read between two pauses: a millisecond or so at 20 alternatives each."""


def read(text: bytes, fmt: Format, *, flat: bool = False) -> Reading:
    """Read one payload exactly. `flat`: what is inserted may hold no line end. Raises ScanError."""
    result = None
    for result in read_slices(text, fmt, flat=flat):  # noqa: B007 - the last one is the reading
        pass
    assert result is not None
    return result


def read_slices(text: bytes, fmt: Format, *, flat: bool = False) -> Generator[Reading | None, None, None]:
    """`read` with pauses: yields None between slices of a few ms, the Reading last."""
    root: object = None
    for root in scan_slices(text, plan(fmt)):
        if root is None:
            yield None
    reading = Reading()
    marks: list[Mark] = []

    def settle() -> None:
        reading.loose = reading.loose or any(
            isinstance(mark.value, float) and not isfinite(mark.value) for mark in marks
        )
        reading.edits += edits_of(text, marks, flat=flat)
        marks.clear()

    for visit in walk(root, fmt, reading):
        value = visit.owner[visit.member]
        if not isinstance(value, Items):
            take(visit, marks)
            continue
        shape = next((shape for shape in visit.slot.shapes if isinstance(shape, Objects)), None)
        if shape is None:
            visit.sighting.unknown += 1
            continue
        tokens = []
        for count, (start, _) in enumerate(value.spans, 1):
            token = shape.item(scan_item(text, start), marks)
            if token is not None:
                tokens.append(token)
            if count % _PAUSE == 0:
                settle()
                yield None
        visit.sighting.tokens.append((visit.slot.part, tokens))
    settle()
    yield reading


def take(visit: Visit, marks: list[Mark]) -> None:
    """Let the first shape that fits read the slot."""
    for shape in visit.slot.shapes:
        tokens = shape(visit.owner, visit.member, marks)
        if tokens is not None:
            visit.sighting.tokens.append((visit.slot.part, tokens))
            return
    if visit.owner[visit.member] not in (None, [], {}, False):
        visit.sighting.unknown += 1


def walk(root: object, fmt: Format, reading: Reading) -> Iterator[Visit]:
    """Every slot of the format that is there, in order; fills the facts of `reading` and its sightings.

    A root array holds one answer an element (SGLang's list prompts, TGI's `/`)."""
    roots = list(enumerate(root)) if isinstance(root, list) else [(0, root)]
    for rank, top in roots:
        if not isinstance(top, dict):
            continue
        reading.model = reading.model or _first_text(top, fmt.model)
        reading.id = reading.id or _first_text(top, fmt.id)
        reading.error = reading.error or bool(_at(top, fmt.error))
        for place in fmt.places:
            if place.when and top.get(place.when[0]) != place.when[1]:
                continue
            for owner, positions in _resolve(top, place.path, (rank,)):
                sighting = Sighting(place, _key(place, owner, top, positions))
                reading.sightings.append(sighting)
                sighting.ended = bool(place.end) and bool(_at(owner, place.end))
                for text in place.texts:
                    for holder, _ in _resolve(owner, text.path[:-1], ()):
                        value = holder.get(text.path[-1])
                        if len(text.path) > 1 or value is not None:
                            sighting.blind = False
                        if value:
                            sighting.texts.append((text.part, value if isinstance(value, str) else None))
                for slot in place.slots:
                    for holder, _ in _resolve(owner, slot.path[:-1], ()):
                        if slot.path[-1] in holder:
                            yield Visit(sighting, slot, holder, slot.path[-1])


def _resolve(
    value: object, path: Path, positions: tuple[int, ...]
) -> Iterator[tuple[Value, tuple[int, ...]]]:
    """The objects at `path`, each with its array positions."""
    for depth, name in enumerate(path):
        if name == EACH:
            if isinstance(value, list):
                for index, item in enumerate(value):
                    yield from _resolve(item, path[depth + 1 :], (*positions, index))
            return
        if not isinstance(value, dict):
            return
        value = value.get(name)
    if isinstance(value, dict):
        yield value, positions


def _key(place: Place, owner: Value, top: Value, positions: tuple[int, ...]) -> tuple[object, ...]:
    rank, places = positions[0], positions[1:]
    key: list[object] = [rank]
    for index, part in enumerate(place.key):
        value: object = None
        if isinstance(part, int):
            value = places[part]
        else:
            value = owner.get(part, top.get(part))
        if type(value) is not int:
            value = places[index] if index < len(places) else 0
        key.append(value)
    return tuple(key)


def _at(value: object, path: Path) -> object:
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _first_text(top: Value, paths: tuple[Path, ...]) -> str | None:
    for path in paths:
        value = _at(top, path)
        if isinstance(value, str) and value:
            return value
    return None


@lru_cache(maxsize=256)
def plan(fmt: Format) -> Plan:
    """What the exact reader must look at, from the paths of the format. A plan for objects and root arrays."""
    tree: dict[str, Plan] = {}
    for path in (*fmt.model, *fmt.id, fmt.error):
        _grow(tree, path, {})
    for place in fmt.places:
        if place.when:
            _grow(tree, place.when[:1], {})
        if place.end:
            _grow(tree, place.path + place.end, {})
        for part in place.key:
            if isinstance(part, str):
                _grow(tree, (*place.path, part), {})
                _grow(tree, (part,), {})
        for text in place.texts:
            _grow(tree, place.path + text.path, {})
        for slot in place.slots:
            for shape in slot.shapes:
                _grow(tree, place.path + slot.path, shape.plan)
                for sibling in shape.siblings:
                    _grow(tree, (*place.path, *slot.path[:-1], sibling), ALL)
    return {**tree, EACH: tree}


def _grow(tree: dict[str, Plan], path: Path, leaf: Plan) -> None:
    """Add a path; a leaf that reads more wins over one that reads less."""
    for name in path[:-1]:
        below = tree.setdefault(name, {})
        if not isinstance(below, dict):
            return
        tree = below
    there = tree.get(path[-1])
    if there is None or (there == {} and leaf is not there):
        tree[path[-1]] = {} if isinstance(leaf, dict) else leaf


_GAP: Final = re.compile(rb"[ \t\n\r]*+,([ \t\n\r]*+)")


def edits_of(text: bytes, marks: list[Mark], *, flat: bool) -> list[Edit]:
    """The insertions for marks on `scan.Obj`: a new member right behind each value, spaced as its neighbours."""
    numbers = iter(spell([probability(mark.value) for mark in marks if not isinstance(mark.value, Linear)]))  # type: ignore[arg-type]
    edits = []
    for owner, member, name, value in marks:
        assert isinstance(owner, Obj)
        span = owner.spans[member]
        colon = text[span.key_end : span.start]
        if isinstance(value, Linear):
            written = _spell(text, value.value, b", " if colon.endswith(b" ") else b",", colon)
        else:
            written = next(numbers)
        edits.append(insertion(text, span.key_start, span.end, name, colon, written, flat=flat))
    return edits


def insertion(
    text: bytes, key_start: int, end: int, name: str, colon: bytes, written: bytes, *, flat: bool
) -> Edit:
    """One member behind the value that ends at `end`: white space as before the next key, or, for a last member,
    as before its own."""
    if match := _GAP.match(text, end):
        gap = match[1]
    else:
        before = text[max(0, key_start - 256) : key_start]
        gap = before[len(before.rstrip(b" \t\n\r")) :]
    if flat:
        gap, colon = _flatten(gap), _flatten(colon)
    return Edit(end, end, b"," + gap + b'"' + name.encode() + b'"' + colon + written)


def _flatten(white: bytes) -> bytes:
    """White space that may hold no line end: one space stands for it."""
    return white if b"\n" not in white and b"\r" not in white else (b": " if b":" in white else b" ")


def _spell(text: bytes, value: object, comma: bytes, colon: bytes) -> bytes:
    if isinstance(value, list):
        return b"[" + comma.join(_spell(text, item, comma, colon) for item in value) + b"]"
    if isinstance(value, Keyed):
        colon = b": " if colon.endswith(b" ") else b":"
        numbers = spell([number for _, number in value.members])
        keys = (text[span.key_start : span.key_end] for span, _ in value.members)
        return (
            b"{" + comma.join(key + colon + number for key, number in zip(keys, numbers, strict=True)) + b"}"
        )
    return spell([value])[0]  # type: ignore[list-item]
