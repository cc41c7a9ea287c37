"""What must stand in an answer, told by the standard library's JSON reader and the tables alone.

Law: every slot has its insertion right behind its value, with exactly exp of that value, and nothing else was added
anywhere. Nothing here is imported from the proxy; trees keep number spelling, member order and duplicates.
"""

import json
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.laws.tables import TABLES, Row


class Pairs(list):
    """An object as its (name, value) pairs in order, duplicates included."""


class Number(str):
    """A number as it is spelled."""


class Added(NamedTuple):
    """A value that must have been inserted: float, None, a list of such or Pairs of such."""

    value: Any


def parse(payload: bytes) -> Any:
    """The tree of one payload. Raises ValueError or RecursionError where it is no JSON."""
    return json.loads(
        payload.decode("utf-8", "surrogateescape"),
        object_pairs_hook=Pairs,
        parse_float=Number,
        parse_int=Number,
        parse_constant=Number,
        strict=False,
    )


def expected(payload: bytes, fmt: str) -> Any:
    """The tree that the proxy must make of a payload, what it adds marked by Added."""
    tree = parse(payload)
    for root in tree if isinstance(tree, list) and not isinstance(tree, Pairs) else [tree]:
        for row in TABLES[fmt]:
            kind = _get(root, "type")
            if not row.when or kind in row.when:
                _fill(root, row)
    return tree


def _fill(root: Any, row: Row) -> None:
    for value in _at(root, row.path.split(".")):
        if row.kind == "objects":
            _objects([value] if isinstance(value, Pairs) else value, row)
        elif row.kind == "arrays" and _is_list(_get(value, "token_logprobs")):
            _add(value, "token_logprobs", "token_probabilities", _linear)
            if isinstance(_get(value, "top_logprobs"), list):
                _add(value, "top_logprobs", "top_probabilities", _texts)
        elif row.kind == "by-id" and _is_list(value):
            for position in value:
                for _, item in position if isinstance(position, Pairs) else ():
                    _number(item, "logprob", "probability")
        elif row.kind == "tuples" and _is_list(_get(value, row.member)):
            _add(value, row.member, row.inserted, lambda positions: [_tuples(item) for item in positions])
        elif row.kind in ("number", "bare"):
            _number(value, row.member, row.inserted, null=row.kind == "number")
        elif row.kind == "runs":
            _runs([value] if isinstance(value, Pairs) else value)
        elif row.kind == "by-text" and isinstance(_get(value, row.member), Pairs):
            _add(value, row.member, row.inserted, _texts)


def _objects(items: Any, row: Row) -> None:
    """Each element is a token's object, a list of the alternatives of one position, or something that is neither."""
    for item in items if _is_list(items) else ():
        more = _get(item, row.below) if isinstance(item, Pairs) else item
        for one in [item, *more] if _is_list(more) else [item]:
            for name, inserted in row.names:
                _number(one, name, inserted)


def _runs(items: Any) -> None:
    if _is_list(items) and all(isinstance(item, Pairs) for item in items):
        for item in items:
            if _is_list(_get(item, "logprobs")):
                _add(item, "logprobs", "probabilities", _linear)


def _number(owner: Any, name: str, inserted: str, *, null: bool = True) -> None:
    value = _get(owner, name, default="")
    if isinstance(value, Number) or (value is None and null):
        _add(owner, name, inserted, _linear)


def _add(owner: Any, name: str, inserted: str, linear: Callable[[Any], Any]) -> None:
    """Put the insertion behind the last member of that name, unless there is one of its name already."""
    assert isinstance(owner, Pairs)
    names = [key for key, _ in owner]
    if name not in names or inserted in names:
        return
    at = len(names) - 1 - names[::-1].index(name)
    value = owner[at][1]
    if value is not None or linear is _linear:
        owner.insert(at + 1, (inserted, Added(linear(value))))


def probability(spelling: Any) -> float | None:
    """The rules for one value, from its spelling."""
    if not isinstance(spelling, Number):
        return None
    x = float(spelling)
    if math.isnan(x) or x > 1e-3:
        return None
    if x <= -9999:
        return 0.0
    return math.exp(x) if x < 0 else 1.0


def _linear(value: Any) -> Any:
    return [probability(item) for item in value] if _is_list(value) else probability(value)


def _texts(value: Any) -> Any:
    if isinstance(value, Pairs):
        return Pairs((key, probability(item)) for key, item in value)
    return [_texts(item) for item in value] if isinstance(value, list) else None


def _tuples(value: Any) -> Any:
    if not _is_list(value):
        return None
    if not value or isinstance(value[0], list):
        return [_tuples(item) for item in value]
    return probability(value[0])  # logprob, id, perhaps text


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and not isinstance(value, Pairs)


def _get(owner: Any, name: str, default: Any = None) -> Any:
    found = default
    for key, value in owner if isinstance(owner, Pairs) else ():
        if key == name:
            found = value
    return found


def _at(value: Any, path: list[str]) -> Iterator:
    if not path:
        yield value
    elif path[0] == "[]":
        for item in value if _is_list(value) else ():
            yield from _at(item, path[1:])
    elif isinstance(value, Pairs):
        yield from _at(_get(value, path[0]), path[1:])


def differences(wanted: Any, got: Any, path: str = "") -> Iterator[str]:
    """Where a tree is not as it must be."""
    if isinstance(wanted, Added):
        yield from _spelled(wanted.value, got, path)
    elif type(wanted) is not type(got):
        yield f"{path}: wanted {wanted!r:.60}, got {got!r:.60}"
    elif isinstance(wanted, Pairs):
        names = [key for key, _ in wanted], [key for key, _ in got]
        if names[0] != names[1]:
            yield f"{path}: wanted members {names[0]}, got {names[1]}"
        else:
            for (key, one), (_, other) in zip(wanted, got):
                yield from differences(one, other, f"{path}.{key}")
    elif isinstance(wanted, list):
        if len(wanted) != len(got):
            yield f"{path}: wanted {len(wanted)} elements, got {len(got)}"
        for index, (one, other) in enumerate(zip(wanted, got)):
            yield from differences(one, other, f"{path}[{index}]")
    elif wanted != got:
        yield f"{path}: wanted {wanted!r:.60}, got {got!r:.60}"


def _spelled(wanted: Any, got: Any, path: str) -> Iterator[str]:
    """An inserted value: the same float, in the shortest form."""
    if isinstance(wanted, Pairs) and isinstance(got, Pairs) and [k for k, _ in wanted] == [k for k, _ in got]:
        for (key, one), (_, other) in zip(wanted, got):
            yield from _spelled(one, other, f"{path}.{key}")
    elif isinstance(wanted, list) and _is_list(got) and len(wanted) == len(got):
        for index, (one, other) in enumerate(zip(wanted, got)):
            yield from _spelled(one, other, f"{path}[{index}]")
    elif isinstance(wanted, float) and isinstance(got, Number):
        if float(got) != wanted or _digits(got) != _digits(repr(wanted)):
            yield f"{path}: wanted {wanted!r}, got {got}"
    elif wanted is not None or got is not None:
        yield f"{path}: wanted {wanted!r:.60}, got {got!r:.60}"


def _digits(spelling: str) -> str:
    return spelling.lower().partition("e")[0].replace(".", "").strip("0")


def added(tree: Any, at: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """The place of every insertion, as the positions that lead to it from the root."""
    if isinstance(tree, Pairs):
        for index, (_, value) in enumerate(tree):
            if isinstance(value, Added):
                yield (*at, index)
            else:
                yield from added(value, (*at, index))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from added(value, (*at, index))
