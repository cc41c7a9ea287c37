"""What a family of values is, and how it marks the logprobs in one.

Law: the value decides which shape it has, never the route. A shape looks at `owner[member]`; if the value is not its
kind it answers None and leaves no mark, else it marks every logprob in it and gives the chosen tokens.
It works on plain values and on `scan.Obj` alike, so both readers share one meaning.
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from proxy.core.scan import ALL, Plan, Span
from proxy.core.tokens import Alternative, Token

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


def number_of(value: object) -> float | None:
    return value if type(value) is float or type(value) is int else None
