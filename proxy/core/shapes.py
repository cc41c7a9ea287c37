"""Families in which each logprob is a member: objects in lists, by id, in runs, and bare numbers.

Law: as in `shape`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, overload

from proxy.core.probability import probability
from proxy.core.scan import ITEMS, Plan
from proxy.core.shape import Linear, Mark, Shape, Value, is_logprob, number_of
from proxy.core.tokens import Alternative, Token, token_bytes


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
        return Token(data, number_of(value), None, alternatives)

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
                    (run, "logprobs", "probabilities", Linear([probability(number_of(x)) for x in logprobs]))
                )
            # How the text divides among the tokens is not told: the last one has it, those before take its part.
            tokens += [Token(b"", number_of(x)) for x in logprobs[:-1]]
            tokens += [Token(token_bytes(run.get("text")), number_of(x)) for x in logprobs[-1:]]
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
        return [Token(token_bytes(owner.get(self.text)), number_of(value))]


OBJECTS: Final = Objects()
SAMPLED: Final = Objects(logprobs=(("logprob", "probability"), ("sampling_logprob", "sampling_probability")))
"""With a second number beside the first: of the distribution that was sampled from (Fireworks)."""
RUNS: Final = Runs()
KEYED_BY_ID: Final = KeyedById()
