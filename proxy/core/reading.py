"""From one payload to what it means: the edits to make and the tokens it brings.

Law: only slots of the format are touched. The exact reader here defines the meaning; `scan_fast` may only be
quicker. Both walk the same places with the same shapes.
"""

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Protocol

from proxy.core.edits import Edit, joined
from proxy.core.format import EACH, Format, Path, Place, Slot
from proxy.core.probability import probability, spell
from proxy.core.scan import ALL, Items, Obj, Plan, Scanner
from proxy.core.shapes import Keyed, Linear, Mark, Objects, Value
from proxy.core.tokens import Alternative, Part, Token


@dataclass(slots=True)
class Sighting:
    """One choice as one payload shows it."""

    place: Place
    key: tuple[object, ...]
    tokens: list[tuple[Part, list[Token]]] = field(default_factory=list)
    alternatives: list[Sequence[Alternative]] = field(default_factory=list)
    """Of each position, from slots that hold nothing else."""
    texts: list[tuple[Part, str | None]] = field(default_factory=list)
    """Text by part; None where something stands there that is no text (tool calls)."""
    blind: bool = True
    """Nothing stands where the format keeps text."""
    ended: bool = False
    owner: Value | None = field(default=None, compare=False)
    """The choice's object."""
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


Visit = tuple[Sighting, Slot, Value, str]
"""(sighting, slot, owner, member): a slot that holds something, with the sighting it belongs to."""


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


def walk(root: object, fmt: Format, reading: Reading) -> list[Visit]:
    """Every slot of the format that is there, in order; fills the facts of `reading` and its sightings.

    A root array holds one answer an element (SGLang's list prompts, TGI's `/`)."""
    visits: list[Visit] = []
    sightings = reading.sightings
    silent = not any(place.texts for place in fmt.places)
    for rank, top in enumerate(root) if isinstance(root, list) else ((0, root),):
        if not isinstance(top, dict):
            continue
        if reading.model is None:
            reading.model = _first_text(top, fmt.model)
        if reading.id is None:
            reading.id = _first_text(top, fmt.id)
        reading.error = reading.error or bool(_at(top, fmt.error))
        for place, branches in _trees(fmt):
            if place.when and top.get(place.when[0]) != place.when[1]:
                continue
            for owner, positions in objects_at(top, place.path):
                if place.of and owner.get(place.of[0]) != place.of[1]:
                    continue
                ended = bool(place.end) and bool(_at(owner, place.end))
                if not ended and branches.keys().isdisjoint(owner):
                    continue
                sighting = Sighting(place, (rank, *_key(place, owner, top, positions)), ended=ended)
                sighting.blind = bool(place.texts) or silent
                if place.confidence:
                    sighting.owner = owner
                before = len(visits)
                _look(owner, branches, sighting, visits)
                if ended or place.texts or len(visits) > before:
                    sightings.append(sighting)
    return visits


@dataclass(slots=True)
class _Branch:
    """What a member means below a place."""

    text: Part | None = None
    slot: Slot | None = None
    below: dict[str, "_Branch"] = field(default_factory=dict)
    """Members of the object, or `"[]"` with those of an array's objects."""
    speaks: bool = False
    """The object below holds text, if only by its being there."""


def _look(owner: Value, branches: dict[str, _Branch], sighting: Sighting, visits: list[Visit]) -> None:
    """Go through the members that are there; most of what a format could have is not."""
    for member, value in owner.items():
        branch = branches.get(member)
        if branch is None:
            continue
        if branch.text is not None:
            sighting.blind = False
            if value:
                sighting.texts.append((branch.text, value if isinstance(value, str) else None))
        if branch.slot is not None:
            visits.append((sighting, branch.slot, owner, member))
        if branch.below:
            _go_below(value, branch, sighting, visits)


def _go_below(value: object, branch: _Branch, sighting: Sighting, visits: list[Visit]) -> None:
    if isinstance(value, dict):
        if branch.speaks:
            sighting.blind = False
        _look(value, branch.below, sighting, visits)
    elif isinstance(value, list) and (each := branch.below.get(EACH)):
        for item in value:
            _go_below(item, each, sighting, visits)


@lru_cache(maxsize=256)
def _trees(fmt: Format) -> tuple[tuple[Place, dict[str, _Branch]], ...]:
    """The places with their texts and slots as trees of members."""
    return tuple((place, _tree(place)) for place in fmt.places)


def _tree(place: Place) -> dict[str, _Branch]:
    root = _Branch()
    for text in place.texts:
        holder = _branch(root, text.path[:-1])
        holder.speaks = True
        _branch(holder, text.path[-1:]).text = text.part
    for slot in place.slots:
        _branch(root, slot.path).slot = slot
    return root.below


def _branch(root: _Branch, path: Path) -> _Branch:
    for name in path:
        root = root.below.setdefault(name, _Branch())
    return root


def objects_at(
    value: object, path: Path, positions: tuple[int, ...] = ()
) -> Iterable[tuple[Value, tuple[int, ...]]]:
    """The objects at `path`, each with its array positions."""
    for depth, name in enumerate(path):
        if name == EACH:
            items = value if isinstance(value, list) else ()
            return [
                found
                for index, item in enumerate(items)
                for found in objects_at(item, path[depth + 1 :], (*positions, index))
            ]
        if not isinstance(value, dict):
            return ()
        value = value.get(name)
    return ((value, positions),) if isinstance(value, dict) else ()


def _key(place: Place, owner: Value, top: Value, positions: tuple[int, ...]) -> tuple[object, ...]:
    key: list[object] = []
    for index, part in enumerate(place.key):
        value = positions[part] if isinstance(part, int) else owner.get(part, top.get(part))
        if type(value) is not int and type(value) is not str:
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
        if place.confidence:
            _grow(tree, (*place.path, "confidence"), {})
        if place.of:
            _grow(tree, (*place.path, place.of[0]), {})
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
                whole = slot.part is Part.ALTERNATIVES
                _grow(tree, place.path + slot.path, ALL if whole else shape.plan)
                for member in shape.beside(slot.path[-1]):
                    _grow(tree, (*place.path, *slot.path[:-1], member), ALL)
    for path, _ in fmt.hidden:
        _grow(tree, path, {})
    return {**tree, EACH: tree}


@lru_cache(maxsize=256)
def hidden_plan(fmt: Format) -> Plan:
    """What must be looked at to hide."""
    tree: dict[str, Plan] = {}
    for path, _ in fmt.hidden:
        _grow(tree, path, {})
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


def last_member(text: bytes, owner: Obj, name: str, written: bytes, *, flat: bool) -> Edit:
    """One member behind the last one of an object that has members, spaced as its first."""
    first = min(owner.spans.values())
    before = text[max(0, first.key_start - 256) : first.key_start]
    gap = before[len(before.rstrip(_WHITE)) :]
    colon = text[first.key_end : first.start]
    if flat:
        gap, colon = _flatten(gap), _flatten(colon)
    at = len(text[: owner.end].rstrip(_WHITE))
    return Edit(at, at, b'%b%b"%b"%b%b' % (b",", gap, name.encode(), colon, written))


_WHITE: Final = b" \t\n\r"


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
