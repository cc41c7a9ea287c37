"""From one payload to what it means: the edits to make and the tokens it brings.

Law: only slots of the format are touched. The exact reader here defines the meaning; `scan_fast` may only be
quicker. Both walk the same places with the same shapes.
"""

import re
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, TypeVar

from proxy.core.edits import Edit, joined
from proxy.core.format import EACH, Format, Path, Place, Slot
from proxy.core.probability import probability, spell
from proxy.core.scan import ALL, Items, Obj, Plan, Scanner
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
    insertions: int = 0
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


class Quick(Protocol):
    """`scan_fast.fast_item`: one element's token and edits, or None where only the exact reader can tell."""

    def __call__(
        self, text: bytes, start: int, end: int, shape: Objects, fmt: Format, *, flat: bool
    ) -> tuple[Token | None, list[Edit]] | None: ...


_T = TypeVar("_T")
_PAUSE: Final = 32
"""Located elements read between two pauses: a millisecond or so at 20 alternatives each."""


def read(text: bytes, fmt: Format, *, flat: bool = False) -> Reading:
    """Read one payload exactly. `flat`: what is inserted may hold no line end. Raises ScanError."""
    result = None
    for result in read_slices(text, fmt, flat=flat):  # noqa: B007 - the last one is the reading
        pass
    assert result is not None
    return result


def read_slices(
    text: bytes, fmt: Format, *, flat: bool = False, quick: Quick | None = None
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
        value = visit.owner[visit.member]
        if isinstance(value, Items):
            yield from _take_items(scanner, fmt, visit, value, reading, flat, quick)
        else:
            take(visit, marks)
    edits = edits_of(text, marks, flat=flat)
    reading.edits += edits
    reading.insertions += len(edits)
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
    """Read a located array element by element; the edits of each slice are joined, so that no step is long."""
    shape = next((shape for shape in visit.slot.shapes if isinstance(shape, Objects)), None)
    if shape is None:
        visit.sighting.unknown += 1
        return
    text = scanner.text
    tokens: list[Token] = []
    visit.sighting.tokens.append((visit.slot.part, tokens))
    for first in range(0, len(items.spans), _PAUSE):
        edits: list[Edit] = []
        for start, end in items.spans[first : first + _PAUSE]:
            found = quick(text, start, end, shape, fmt, flat=flat) if quick is not None else None
            if found is None:
                marks: list[Mark] = []
                found = shape.item(scanner.item(start), marks), edits_of(text, marks, flat=flat)
            token, more = found
            edits += more
            if token is not None:
                tokens.append(token)
        if edits:
            reading.edits.append(joined(text, edits))
            reading.insertions += len(edits)
        if first + _PAUSE < len(items.spans):
            yield None


def take(visit: Visit, marks: list[Mark]) -> None:
    """Let the first shape that fits read the slot."""
    for shape in visit.slot.shapes:
        tokens = shape(visit.owner, visit.member, marks)
        if tokens is not None:
            visit.sighting.tokens.append((visit.slot.part, tokens))
            return
    if visit.owner[visit.member] not in (None, [], {}, False):
        visit.sighting.unknown += 1


def walk(root: object, fmt: Format, reading: Reading) -> list[Visit]:
    """Every slot of the format that is there, in order; fills the facts of `reading` and its sightings.

    A root array holds one answer an element (SGLang's list prompts, TGI's `/`)."""
    visits: list[Visit] = []
    sightings = reading.sightings
    for rank, top in enumerate(root) if isinstance(root, list) else ((0, root),):
        if not isinstance(top, dict):
            continue
        if reading.model is None:
            reading.model = _first_text(top, fmt.model)
        if reading.id is None:
            reading.id = _first_text(top, fmt.id)
        reading.error = reading.error or bool(_at(top, fmt.error))
        for place, texts, slots in _routes(fmt):
            if place.when and top.get(place.when[0]) != place.when[1]:
                continue
            for owner, positions in _choices(top, place.path):
                sighting = Sighting(place, (rank, *_key(place, owner, top, positions)))
                if place.end:
                    sighting.ended = bool(_at(owner, place.end))
                for path, members in texts:
                    for holder in _objects(owner, path):
                        for member, part in members:
                            value = holder.get(member)
                            if value:
                                sighting.texts.append((part, value if isinstance(value, str) else None))
                                sighting.blind = False
                            elif path or value is not None:
                                sighting.blind = False
                for path, found in slots:
                    for holder in _objects(owner, path):
                        for member, slot in found:
                            if member in holder:
                                visits.append(Visit(sighting, slot, holder, member))
                if texts or (visits and visits[-1].sighting is sighting):
                    sightings.append(sighting)
    return visits


_Texts = tuple[tuple[Path, tuple[tuple[str, Part], ...]], ...]
_Slots = tuple[tuple[Path, tuple[tuple[str, Slot], ...]], ...]


@lru_cache(maxsize=256)
def _routes(fmt: Format) -> tuple[tuple[Place, _Texts, _Slots], ...]:
    """Places with their texts and slots by the object that holds them, so that each is gone to once."""
    return tuple(
        (
            place,
            _by_holder((text.path, text.part) for text in place.texts),
            _by_holder((slot.path, slot) for slot in place.slots),
        )
        for place in fmt.places
    )


def _by_holder(rows: Iterable[tuple[Path, _T]]) -> tuple[tuple[Path, tuple[tuple[str, _T], ...]], ...]:
    holders: dict[Path, list[tuple[str, _T]]] = {}
    for path, what in rows:
        holders.setdefault(path[:-1], []).append((path[-1], what))
    return tuple((path, tuple(found)) for path, found in holders.items())


def _objects(value: object, path: Path) -> Iterable[Value]:
    """The objects at `path`."""
    for depth, name in enumerate(path):
        if name == EACH:
            items = value if isinstance(value, list) else ()
            return [found for item in items for found in _objects(item, path[depth + 1 :])]
        if not isinstance(value, dict):
            return ()
        value = value.get(name)
    return (value,) if isinstance(value, dict) else ()


def _choices(
    value: object, path: Path, positions: tuple[int, ...] = ()
) -> Iterable[tuple[Value, tuple[int, ...]]]:
    """The objects at `path`, each with its array positions."""
    for depth, name in enumerate(path):
        if name == EACH:
            items = value if isinstance(value, list) else ()
            return [
                found
                for index, item in enumerate(items)
                for found in _choices(item, path[depth + 1 :], (*positions, index))
            ]
        if not isinstance(value, dict):
            return ()
        value = value.get(name)
    return ((value, positions),) if isinstance(value, dict) else ()


def _key(place: Place, owner: Value, top: Value, positions: tuple[int, ...]) -> tuple[object, ...]:
    key: list[object] = []
    for index, part in enumerate(place.key):
        value = positions[part] if isinstance(part, int) else owner.get(part, top.get(part))
        if type(value) is not int:
            value = positions[index] if index < len(positions) else 0
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
                for member in shape.beside(slot.path[-1]):
                    _grow(tree, (*place.path, *slot.path[:-1], member), ALL)
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
    numbers = iter(spell([probability(value) for _, _, _, value in marks if not isinstance(value, Linear)]))  # type: ignore[arg-type]
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
