"""The labels that a client asks for, and how texts are compared with them.

Law: a label is refused if no token could tell it from another one. What is wrong is said without repeating the value.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

MIN_LABELS: Final = 2
MAX_LABELS: Final = 100
MAX_CHARACTERS: Final = 256
"""Of one label."""

QUOTES: Final = "\"'‘’‚‛“”„‟‹›«»「」『』＂＇"
LEAD: Final = re.compile(rf"[\s*`{QUOTES}]*+")
"""What may stand before a label: white space, quotes, emphasis, code marks."""
_POINTER: Final = re.compile(r"(?:/(?:[^~/]|~[01])*+)*+")
"""RFC 6901, section 3."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class LabelSpec:
    """Two or more labels, no two of them equal once stripped and case-folded."""

    labels: tuple[str, ...]
    """As the client wrote them."""
    at: str | None
    """JSON Pointer of the value that is the label; None: the answer itself is."""
    keys: tuple[bytes, ...]
    """The labels stripped and folded, sorted."""
    order: tuple[int, ...]
    """Index in `labels` of each key."""

    @classmethod
    def parse(cls, value: object) -> "LabelSpec | str":
        """From `["spam", "ham"]` or `{"at": "/label", "values": ["spam", "ham"]}`; a string says what it must be."""
        at = None
        if isinstance(value, dict):
            if set(value) != {"at", "values"}:
                return "must have the members 'at' and 'values' and no others"
            at, value = value["at"], value["values"]
            if not isinstance(at, str) or not _POINTER.fullmatch(at):
                return "must have a JSON Pointer in 'at', such as '/label'"
        if not isinstance(value, list) or not all(isinstance(label, str) for label in value):
            return "must be a list of strings, or an object with such a list in 'values' and a JSON Pointer in 'at'"
        if not MIN_LABELS <= len(value) <= MAX_LABELS:
            return f"must have {MIN_LABELS} to {MAX_LABELS} labels"
        seen: dict[bytes, int] = {}
        for index, label in enumerate(value):
            if len(label) > MAX_CHARACTERS:
                return f"must have labels of {MAX_CHARACTERS} characters at most: see number {index + 1}"
            if _SURROGATE.search(label):
                return f"must have labels of whole characters: see number {index + 1}"
            key = fold(strip(label)[0])
            if not key:
                return f"must have labels that are more than blanks and quotes: see number {index + 1}"
            if (other := seen.setdefault(key, index)) != index:
                return f"must have labels that differ in more than case, blanks and quotes: see {other + 1} and {index + 1}"
        keys = sorted(seen)
        return cls(tuple(value), at, tuple(keys), tuple([seen[key] for key in keys]))

    def fits(self, text: str, *, ended: bool) -> list[int]:
        """Indices of the labels that a text is, or can become when more follows; `ended`: nothing follows."""
        stripped, tail = strip(text)
        key, longer = fold(stripped), fold(stripped + tail)
        found: list[int] = []
        exact = False
        if not key:
            return found
        for at in range(bisect_left(self.keys, key), len(self.keys)):
            candidate = self.keys[at]
            if not candidate.startswith(key):
                break
            if candidate == key:
                exact = True
            elif ended or (exact and not candidate.startswith(longer)):
                # A blank or a quote behind "A" says that it will not become "AB".
                continue
            found.append(self.order[at])
        return found


def strip(text: str) -> tuple[str, str]:
    """A text without what may stand around a label, and what stood behind it."""
    lead = LEAD.match(text)
    text = text[lead.end() :] if lead else text
    # Not `*`: "A*" is a grade.
    stripped = text.rstrip().rstrip(QUOTES).rstrip()
    return stripped, text[len(stripped) :]


def fold(text: str) -> bytes:
    """Without case, as bytes, so that a piece of a character is a prefix of the whole."""
    return encode(text.casefold())


def decode(data: bytes) -> str:
    """Any bytes as text, pieces of characters as lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Back again."""
    return text.encode("utf-8", "surrogateescape")
