"""What the proxy inserted into JSON, found and taken out again with the json module alone.

Law: every number that has to have its probability has it, right by float64, and no other number has one. Shares
nothing with the proxy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

# What the upstream has, and what stands behind it. The value decides: it holds numbers, alone, in lists or in maps.
NAMES = (
    ("logprob", "probability"),
    ("logProbability", "probability"),
    ("token_logprobs", "token_probabilities"),
    ("top_logprobs", "top_probabilities"),
    ("logprobs", "probabilities"),
    ("avgLogprobs", "avgProbability"),
    ("avg_logprob", "avg_probability"),
)


@dataclass
class Found:
    """A value without the insertions, where they stood, and what lacked its own."""

    plain: Any = None
    where: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)

    @property
    def places(self) -> set[str]:
        return set(self.where)


def exp(logprob: Any) -> Any:
    """The value that stands beside it."""
    if isinstance(logprob, dict):
        return {key: exp(value) for key, value in logprob.items()}
    if isinstance(logprob, list):
        return [exp(value) for value in logprob]
    if logprob is None or math.isnan(logprob) or logprob > 1e-3:
        return None
    if logprob >= 0:
        return 1.0
    return 0.0 if logprob <= -9999 else math.exp(logprob)


def take_out(value: Any, *, beside: bool = False) -> Found:
    """`beside`: insertions must stand right behind, as they do in what leaves the proxy."""
    found = Found()
    found.plain = _walk(value, "", found, beside)
    return found


def _walk(value: Any, path: str, found: Found, beside: bool) -> Any:
    if isinstance(value, list):
        return [_walk(item, f"{path}[]", found, beside) for item in value]
    if not isinstance(value, dict):
        return value
    gone = set()
    for source, name in NAMES:
        leaves = list(_leaves(value.get(source, "none")))
        if not all(leaf is None or _is_number(leaf) for leaf in leaves):
            continue
        place = f"{path}.{name}".removeprefix(".")
        if name not in value:
            found.lacking += [place] * any(map(_is_number, leaves))
            continue
        # Exactly, not about: the shortest spelling of the double reads back as the same double.
        assert value[name] == exp(value[source]), (place, value[source], value[name])
        keys = list(value)
        assert not beside or keys.index(name) == keys.index(source) + 1, keys
        found.where.append(place)
        gone.add(name)
    return {
        key: _walk(item, f"{path}.{key}".removeprefix("."), found, beside)
        for key, item in value.items()
        if key not in gone
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    else:
        yield value
