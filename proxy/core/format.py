"""What a wire format is: data, nothing else.

Law: a format says where things stand; it never says how they are read or written. A new endpoint is one value of
`Format`; if it needs more than that, the contract here is wrong.

Paths are tuples of member names from the named start; `"[]"` stands for every element of an array.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from proxy.core.tokens import Part

if TYPE_CHECKING:
    from proxy.core.shape import Shape

Path = tuple[str, ...]
EACH: Final = "[]"


def member_at(value: object, path: Path) -> object:
    """The member at a path through objects, None where there is none."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


class Counting(Enum):
    """How repeated sightings of one choice add up."""

    APPEND = "append"
    """Each sighting brings new tokens."""
    SNAPSHOT = "snapshot"
    """Each sighting brings all tokens so far; what was counted already adds nothing."""


class Kind(Enum):
    """JSON types that a request member may have, in the words of OpenAI's messages."""

    BOOLEAN = "a boolean"
    INTEGER = "an integer"
    ARRAY = "an array"


@dataclass(frozen=True, slots=True)
class Slot:
    """Where logprobs stand, seen from their place."""

    path: Path
    """Down to the member that holds them."""
    shapes: tuple["Shape", ...]
    """Tried in order; the value decides which one fits."""
    part: Part = Part.ANSWER


@dataclass(frozen=True, slots=True)
class Text:
    """Where visible text stands, seen from its place, and what part of the answer it is."""

    path: Path
    part: Part = Part.ANSWER


@dataclass(frozen=True, slots=True)
class Place:
    """Where a format keeps the tokens of one choice."""

    path: Path
    """From the payload's root to the choice's object."""
    slots: tuple[Slot, ...]
    texts: tuple[Text, ...] = ()
    key: tuple[str | int, ...] = ()
    """What tells choices apart: a member of the choice (else of the root), or the n-th array position of `path`.
    A member that is missing falls back to the position at its rank."""
    counting: Counting = Counting.APPEND
    when: tuple[str, str | None] | None = None
    """Member of the root and the value it must have (None: it must be absent), where events of several types share a
    stream."""
    of: tuple[str, str] | None = None
    """Member of the choice's object and the value it must have, where objects of several types stand side by side."""
    end: Path = ()
    """Member that says the choice ended: neither null nor false nor empty."""
    confidence: bool = False
    """The member `confidence` stands here: as the last one of the choice's object, once the choice has ended or, where
    nothing says so, once there is text."""
    arguments: tuple[Path, ...] = ()
    """Where the arguments of tool calls stand, pieces of JSON in strings; the array's objects may have an `index`."""
    late: bool = False
    """In a stream the text comes only at the end, all at once."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What one logprob parameter of a request may be."""

    param: Path
    kinds: tuple[Kind, ...]
    low: int | None = None
    high: int | None = None
    needs: Path = ()
    """Parameter that must be switched on for this one to be allowed at all."""


@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """One endpoint's way of writing answers, and what it takes to ask for logprobs there. Equal to itself only, so
    that what is derived from it can be cached."""

    name: str
    api: str
    """Metric label: chat, completions, responses, transcriptions, native or other."""
    routes: tuple[str, ...]
    """Segment patterns matched at the end of a URL's path: `chat/completions`, `models/{model}:generateContent`."""
    places: tuple[Place, ...]
    envelope: str = "openai"
    """Row of `problem.ENVELOPES`."""
    model: tuple[Path, ...] = (("model",),)
    """Where the answer names its model."""
    id: tuple[Path, ...] = (("id",),)
    """Where the answer names itself."""
    error: Path = ("error",)
    """In-band error: this member is present and not null, false or empty."""
    terminators: tuple[bytes, ...] = (b"[DONE]",)
    """Payloads that end a stream and are no JSON."""
    growing_array: bool = False
    """A stream may be one JSON array that grows by an element an event."""
    rules: tuple[Rule, ...] = ()
    asked: tuple[tuple[Path, Callable[[object], bool]], ...] = ()
    """The client asked for logprobs if any of these request members says so."""
    switch: Mapping[Path, object] = field(default_factory=dict)
    """Request members that turn logprobs on, with their values; `TOP` stands for how many alternatives, a tuple for
    members that a list must have."""
    hidden: tuple[tuple[Path, bytes], ...] = ()
    """What answers hold only because logprobs were asked for, from the root, and how "not asked" is written there:
    `null`, `[]`, or nothing where it is left out."""
    echoes: tuple[tuple[Path, bytes], ...] = ()
    """Where answers repeat how many alternatives were asked for, and what stands there where nobody asked."""
    legacy: tuple[Path, Path] | None = None
    """(switch, number): a number where the switch stands is the older spelling of both (`logprobs: 5`)."""
    echo: Path = ()
    """Request member that makes the answer repeat the prompt."""
    prompt: Path = ()


TOP: Final = "top"


def is_true(value: object) -> bool:
    """On only by JSON `true`, or by a number where a server takes one in its place."""
    return value is True or (type(value) is int and value > 0)


def has_true(value: object) -> bool:
    """On by a list with one switch for each of several prompts."""
    return isinstance(value, list) and True in value


def is_number(value: object) -> bool:
    """On by any integer: in legacy completions 0 asks for the chosen token alone."""
    return type(value) is int


def includes(name: str) -> Callable[[object], bool]:
    """On by a list that holds `name`."""

    def check(value: object) -> bool:
        return isinstance(value, list) and name in value

    return check


def one_of(*names: str) -> Callable[[object], bool]:
    """On by one of these words."""

    def check(value: object) -> bool:
        return value in names

    return check
