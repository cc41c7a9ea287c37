"""Families in which logprobs stand without a member of their own: parallel arrays, objects by text, tuples.

Law: what is inserted mirrors the container, its length, keys and order; keys are spelled as they stand, since a token's
text may be any string.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from proxy.core.probability import probability
from proxy.core.scan import Obj, Span
from proxy.core.shape import Keyed, Linear, Mark, Shape, Value, is_logprob, number_of
from proxy.core.tokens import Alternative, Token, token_bytes


@dataclass(frozen=True)
class Parallel(Shape):
    """B: the parallel arrays of legacy completions; the slot is `token_logprobs`."""

    def beside(self, member: str) -> tuple[str, ...]:
        return ("tokens", "top_logprobs", "text_offset", "token_probabilities", "top_probabilities")

    def __call__(self, owner: Value, member: str, marks: list[Mark]) -> list[Token] | None:
        chosen = owner[member]
        if not isinstance(chosen, list):
            return None
        if "token_probabilities" not in owner:
            linear = Linear([probability(number_of(x)) for x in chosen])
            marks.append((owner, member, "token_probabilities", linear))
        top = owner.get("top_logprobs")
        if isinstance(top, list | dict) and "top_probabilities" not in owner:
            mirrored = [_keyed(x) for x in top] if isinstance(top, list) else _keyed(top)
            marks.append((owner, "top_logprobs", "top_probabilities", Linear(mirrored)))
        texts, offsets, tops = _list(owner.get("tokens")), _list(owner.get("text_offset")), _list(top)
        return [
            Token(
                token_bytes(texts[i] if i < len(texts) else None),
                number_of(x),
                offset if i < len(offsets) and type(offset := offsets[i]) is int else None,
                _by_text(tops[i]) if i < len(tops) else (),
            )
            for i, x in enumerate(chosen)
        ]


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _by_text(value: object) -> Sequence[Alternative]:
    if not isinstance(value, dict):
        return ()
    return [Alternative(token_bytes(text), number_of(x)) for text, x in value.items()]


def _keyed(value: object) -> Keyed | None:
    """The same keys as written, duplicates included, since a token's text may be any string."""
    if not isinstance(value, dict):
        return None
    pairs: Iterable[tuple[Span, object]] = value.pairs if isinstance(value, Obj) else ()
    return Keyed([(span, probability(number_of(x))) for span, x in pairs])


@dataclass(frozen=True)
class KeyedByText(Shape):
    """B without its arrays: alternatives of one token by their texts, as Together streams them."""

    def beside(self, member: str) -> tuple[str, ...]:
        return ("top_probabilities",)

    def __call__(self, owner: Value, member: str, marks: list[Mark]) -> list[Token] | None:
        value = owner[member]
        if not isinstance(value, dict):
            return None
        if "top_probabilities" not in owner:
            marks.append((owner, member, "top_probabilities", Linear(_keyed(value))))
        return []

    def positions(self, owner: Value, member: str, marks: list[Mark]) -> list[Sequence[Alternative]] | None:
        return None if self(owner, member, marks) is None else [list(_by_text(owner[member]))]


@dataclass(frozen=True)
class Tuples(Shape):
    """D: `X_logprobs`, a list of `[logprob, id, text]`, or such lists nested."""

    def beside(self, member: str) -> tuple[str, ...]:
        return (member.removesuffix("_logprobs") + "_probabilities",)

    def __call__(self, owner: Value, member: str, marks: list[Mark]) -> list[Token] | None:
        value = owner[member]
        if not isinstance(value, list) or not all(x is None or isinstance(x, list) for x in value):
            return None
        (name,) = self.beside(member)
        if name not in owner:
            marks.append((owner, member, name, Linear([_linear(x) for x in value])))
        return [
            Token(token_bytes(x[2] if len(x) > 2 else None), number_of(x[0]))
            for x in value
            if isinstance(x, list) and x and is_logprob(x[0])
        ]

    def positions(self, owner: Value, member: str, marks: list[Mark]) -> list[Sequence[Alternative]] | None:
        if self(owner, member, marks) is None:
            return None
        return [
            [
                Alternative(token_bytes(row[2] if len(row) > 2 else None), number_of(row[0]))
                for row in _list(place)
                if isinstance(row, list) and row and is_logprob(row[0])
            ]
            for place in _list(owner[member])
        ]


def _linear(value: object) -> object:
    if not isinstance(value, list) or not value:
        return [] if value == [] else None
    return probability(number_of(value[0])) if is_logprob(value[0]) else [_linear(x) for x in value]


PARALLEL: Final = Parallel()
KEYED_BY_TEXT: Final = KeyedByText()
TUPLES: Final = Tuples()
