"""Where a payload's choices stand: their tokens' slots, their texts, and the facts of the answer.

Law: only places of the format are gone to, and each object on the way once. Both readers walk here, on plain values and
on `scan.Obj` alike.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from proxy.core.edits import Edit
from proxy.core.format import EACH, Format, Path, Place, Slot, member_at
from proxy.core.shape import Value
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
    arguments: list[tuple[int, str]] = field(default_factory=list)
    """(index of the tool call, piece of its arguments)"""
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
        reading.error = reading.error or bool(member_at(top, fmt.error))
        for place, branches in _trees(fmt):
            if place.when and top.get(place.when[0]) != place.when[1]:
                continue
            for owner, positions in objects_at(top, place.path):
                if place.of and owner.get(place.of[0]) != place.of[1]:
                    continue
                ended = bool(place.end) and bool(member_at(owner, place.end))
                if not ended and branches.keys().isdisjoint(owner):
                    continue
                sighting = Sighting(place, (rank, *_key(place, owner, top, positions)), ended=ended)
                sighting.blind = bool(place.texts) or silent
                if place.confidence:
                    sighting.owner = owner
                before = len(visits)
                _look(owner, branches, sighting, visits)
                if place.arguments and any(part is Part.TOOL for part, _ in sighting.texts):
                    sighting.arguments = _arguments(owner, place.arguments)
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


def _arguments(owner: Value, paths: tuple[Path, ...]) -> list[tuple[int, str]]:
    found = []
    for path in paths:
        depth = path.index(EACH) + 1
        for call, positions in objects_at(owner, path[:depth]):
            index, piece = call.get("index"), member_at(call, path[depth:])
            if isinstance(piece, str):
                found.append((index if type(index) is int else positions[-1], piece))
    return found


def _key(place: Place, owner: Value, top: Value, positions: tuple[int, ...]) -> tuple[object, ...]:
    key: list[object] = []
    for index, part in enumerate(place.key):
        value = positions[part] if isinstance(part, int) else owner.get(part, top.get(part))
        if type(value) is not int and type(value) is not str:
            value = positions[index] if index < len(positions) else 0
        key.append(value)
    return tuple(key)


def _first_text(top: Value, paths: tuple[Path, ...]) -> str | None:
    for path in paths:
        value = member_at(top, path)
        if isinstance(value, str) and value:
            return value
    return None
