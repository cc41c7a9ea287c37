"""What the exact reader must look at, derived from a format.

Law: what no path of the format leads to is stepped over.
"""

from functools import lru_cache

from proxy.core.format import EACH, Format, Path
from proxy.core.scan import ALL, Plan
from proxy.core.tokens import Part


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
        for path in place.arguments:
            _grow(tree, place.path + path, {})
            _grow(tree, (*place.path, *path[: path.index(EACH) + 1], "index"), {})
        for slot in place.slots:
            for shape in slot.shapes:
                whole = slot.part is Part.ALTERNATIVES
                _grow(tree, place.path + slot.path, ALL if whole else shape.plan)
                for member in shape.beside(slot.path[-1]):
                    _grow(tree, (*place.path, *slot.path[:-1], member), ALL)
    for path, _ in fmt.hidden + fmt.echoes:
        _grow(tree, path, {})
    return {**tree, EACH: tree}


@lru_cache(maxsize=256)
def hidden_plan(fmt: Format) -> Plan:
    """What must be looked at to hide."""
    tree: dict[str, Plan] = {}
    for path, _ in fmt.hidden + fmt.echoes:
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
