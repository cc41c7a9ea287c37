"""Families of values in which logprobs stand.

Law: the value decides which shape it has, never the route. A shape looks at `owner[member]`; if the value is not
its kind it answers None and leaves no mark, else it marks every logprob in it and gives the chosen tokens.
It works on plain values and on `scan.Obj` alike, so both readers share one meaning.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, overload

from proxy.core.probability import probability
from proxy.core.scan import ALL, ITEMS, Obj, Plan, Span
from proxy.core.tokens import Alternative, Token, token_bytes

Value = dict[str, object]


Mark = tuple[Value, str, str, object]
"""(owner, member, name, value): insert member `name` behind `owner[member]`, with the probabilities of `value`, which
is a logprob or None; or, behind a container, a `Linear` ready to be spelled. A plain tuple: one is made a number."""


class Linear(NamedTuple):
    """A container of probabilities that mirrors a container of logprobs.

    `value` is a list of floats, None, lists and `Keyed`."""

    value: object


class Keyed(NamedTuple):
    """An object of probabilities under the same keys, which are positions in the text: spelled as they stand."""

    members: list[tuple[Span, float | None]]


class Shape:
    """One family. Called on a slot, it gives the chosen tokens in it, or None where the value is not its kind."""

    plan: ClassVar[Plan] = ALL
    """How much of the slot's value the exact reader must read."""

    @property
    def numbers(self) -> tuple[tuple[str, str], ...]:
        """(logprob member, inserted member) pairs that are single numbers, for the fast reader's pattern."""
        return ()

    def beside(self, member: str) -> tuple[str, ...]:
        """Members beside the slot that belong to it, those that may have been inserted before among them."""
        return ()

    def __call__(self, owner: Value, member: str, marks: list[Mark]) -> list[Token] | None:
        raise NotImplementedError

    def positions(self, owner: Value, member: str, marks: list[Mark]) -> list[Sequence[Alternative]] | None:
        """The same for a slot that holds alternatives only: those of each position in it."""
        return None if self(owner, member, marks) is None else []


def is_logprob(value: object) -> bool:
    """A JSON number or null; `true` is no number."""
    return value is None or type(value) is float or type(value) is int


def _number(value: object) -> float | None:
    return value if type(value) is float or type(value) is int else None


@dataclass(frozen=True)
class Objects(Shape):
    """A, E, F, G: a list of objects with a logprob each, or one such object; their alternatives in a list below each, or
    by themselves in lists of lists."""

    text: str = "token"
    raw: str = "bytes"
    logprobs: tuple[tuple[str, str], ...] = (("logprob", "probability"),)
    """(logprob member, inserted member); the first is the token's own."""
    alternatives: str = "top_logprobs"
    plan: ClassVar[Plan] = ITEMS

    @property
    def numbers(self) -> tuple[tuple[str, str], ...]:
        return self.logprobs

    def __call__(self, owner: Value, member: str, marks: list[Mark]) -> list[Token] | None:
        value = owner[member]
        if isinstance(value, dict):
            value = [value]
        if not isinstance(value, list) or (
            value and not any(isinstance(item, dict | list) for item in value)
        ):
            return None
        tokens = (self.item(item, marks) for item in value)
        return [token for token in tokens if token is not None]

    def item(self, item: object, marks: list[Mark]) -> Token | None:
        """One token's object; None where it holds no logprob (`{}`, or a `prob` that is linear already)."""
        if not isinstance(item, dict):
            if isinstance(item, list):
                self._alternatives(item, marks)
            return None
        self._mark(item, marks)
        more = item.get(self.alternatives)
        alternatives = self._alternatives(more, marks) if more and isinstance(more, list) else ()
        value = item.get(self.logprobs[0][0], self)
        if not is_logprob(value):
            return None
        data = token_bytes(item.get(self.text), item.get(self.raw))
        return Token(data, _number(value), None, alternatives)

    def positions(self, owner: Value, member: str, marks: list[Mark]) -> list[Sequence[Alternative]] | None:
        value = owner[member]
        if not isinstance(value, list):
            return None
        if all(isinstance(item, dict) for item in value):
            return [self._alternatives(value, marks)]
        return [self._alternatives(item if isinstance(item, list) else [], marks) for item in value]

    def _alternatives(self, items: list[object], marks: list[Mark]) -> "Listed":
        found: list[Value] = []
        logprobs: list[float | None] = []
        own = self.logprobs[0][0]
        for item in items:
            if isinstance(item, dict):
                self._mark(item, marks)
                value = item.get(own, self)
                if value is None or type(value) is float or type(value) is int:
                    found.append(item)
                    logprobs.append(value)
        return Listed(self, found, logprobs)

    def _mark(self, item: Value, marks: list[Mark]) -> None:
        for member, name in self.logprobs:
            if member in item and name not in item:
                value = item[member]
                if type(value) is float or value is None or type(value) is int:
                    marks.append((item, member, name, value))


class Listed(Sequence[Alternative]):
    """Alternatives whose bytes are read when somebody asks: most figures need the logprobs alone."""

    __slots__ = ("_items", "_shape", "logprobs")

    def __init__(self, shape: Objects, items: list[Value], logprobs: list[float | None]) -> None:
        self._shape = shape
        self._items = items
        self.logprobs = logprobs
        """One an alternative, in order."""

    @overload
    def __getitem__(self, index: int) -> Alternative: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Alternative]: ...
    def __getitem__(self, index: int | slice) -> Alternative | Sequence[Alternative]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        item = self._items[index]
        return Alternative(
            token_bytes(item.get(self._shape.text), item.get(self._shape.raw)), self.logprobs[index]
        )

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # a sequence that may still be read is no key


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
            linear = Linear([probability(_number(x)) for x in chosen])
            marks.append((owner, member, "token_probabilities", linear))
        top = owner.get("top_logprobs")
        if isinstance(top, list | dict) and "top_probabilities" not in owner:
            mirrored = [_keyed(x) for x in top] if isinstance(top, list) else _keyed(top)
            marks.append((owner, "top_logprobs", "top_probabilities", Linear(mirrored)))
        texts, offsets, tops = _list(owner.get("tokens")), _list(owner.get("text_offset")), _list(top)
        return [
            Token(
                token_bytes(texts[i] if i < len(texts) else None),
                _number(x),
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
    return [Alternative(token_bytes(text), _number(x)) for text, x in value.items()]


def _keyed(value: object) -> Keyed | None:
    """The same keys as written, duplicates included, since a token's text may be any string."""
    if not isinstance(value, dict):
        return None
    pairs: Iterable[tuple[Span, object]] = value.pairs if isinstance(value, Obj) else ()
    return Keyed([(span, probability(_number(x))) for span, x in pairs])


@dataclass(frozen=True)
class Runs(Shape):
    """H: runs of text with the logprobs of their tokens (Cohere v2), in a list or, streamed, one by itself."""

    def __call__(self, owner: Value, member: str, marks: list[Mark]) -> list[Token] | None:
        value = owner[member]
        listed = value if isinstance(value, list) else [value]
        runs = [run for run in listed if isinstance(run, dict)]
        if len(runs) < len(listed):
            return None
        tokens: list[Token] = []
        for run in runs:
            logprobs = run.get("logprobs")
            if not isinstance(logprobs, list):
                continue
            if "probabilities" not in run:
                marks.append(
                    (run, "logprobs", "probabilities", Linear([probability(_number(x)) for x in logprobs]))
                )
            # How the text divides among the tokens is not told: the last one has it, those before take its part.
            tokens += [Token(b"", _number(x)) for x in logprobs[:-1]]
            tokens += [Token(token_bytes(run.get("text")), _number(x)) for x in logprobs[-1:]]
        return tokens


@dataclass(frozen=True)
class KeyedById(Shape):
    """C: vLLM's `prompt_logprobs`, a list of null or of objects by token id."""

    @property
    def numbers(self) -> tuple[tuple[str, str], ...]:
        return (("logprob", "probability"),)

    def __call__(self, owner: Value, member: str, marks: list[Mark]) -> list[Token] | None:
        value = owner[member]
        if not isinstance(value, list) or not all(x is None or isinstance(x, dict) for x in value):
            return None
        marks.extend(
            (item, "logprob", "probability", item["logprob"])
            for position in value
            for item in (position or {}).values()
            if isinstance(item, dict) and is_logprob(item.get("logprob", item)) and "probability" not in item
        )
        return []


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
            Token(token_bytes(x[2] if len(x) > 2 else None), _number(x[0]))
            for x in value
            if isinstance(x, list) and x and is_logprob(x[0])
        ]

    def positions(self, owner: Value, member: str, marks: list[Mark]) -> list[Sequence[Alternative]] | None:
        if self(owner, member, marks) is None:
            return None
        return [
            [
                Alternative(token_bytes(row[2] if len(row) > 2 else None), _number(row[0]))
                for row in _list(place)
                if isinstance(row, list) and row and is_logprob(row[0])
            ]
            for place in _list(owner[member])
        ]


def _linear(value: object) -> object:
    if not isinstance(value, list) or not value:
        return [] if value == [] else None
    return probability(_number(value[0])) if is_logprob(value[0]) else [_linear(x) for x in value]


@dataclass(frozen=True)
class Number(Shape):
    """I: one bare number."""

    member: str
    """The slot's own member."""
    name: str
    """The member to insert."""
    plan: ClassVar[Plan] = {}

    @property
    def numbers(self) -> tuple[tuple[str, str], ...]:
        return ((self.member, self.name),)

    def beside(self, member: str) -> tuple[str, ...]:
        return (self.name,)

    def __call__(self, owner: Value, member: str, marks: list[Mark]) -> list[Token] | None:
        value = owner[member]
        if not is_logprob(value):
            return [] if isinstance(value, dict) else None
        if self.name not in owner:
            marks.append((owner, member, self.name, value))
        return []


@dataclass(frozen=True)
class Bare(Number):
    """I: one token's number by itself, as Together streams it. It is left to the exact reader: the fast one would have
    to look at a member that every chunk of every server has."""

    text: str = ""
    """Member beside the number with the token's text."""
    null: bool = False
    """null stands for a token without a logprob, not for "not asked"."""

    @property
    def numbers(self) -> tuple[tuple[str, str], ...]:
        return ()

    def beside(self, member: str) -> tuple[str, ...]:
        return (self.name, self.text)

    def __call__(self, owner: Value, member: str, marks: list[Mark]) -> list[Token] | None:
        value = owner[member]
        if not is_logprob(value) or (value is None and not self.null):
            return [] if value is None or isinstance(value, dict) else None
        Number.__call__(self, owner, member, marks)
        return [Token(token_bytes(owner.get(self.text)), _number(value))]


OBJECTS: Final = Objects()
PARALLEL: Final = Parallel()
RUNS: Final = Runs()
KEYED_BY_ID: Final = KeyedById()
KEYED_BY_TEXT: Final = KeyedByText()
TUPLES: Final = Tuples()
