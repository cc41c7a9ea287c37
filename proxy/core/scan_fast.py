"""The fast reader: orjson for the values, one pattern pass for their positions, and proof that both agree.

Law: `fast(payload, format)` is the exact reader's result, or None. Deleting this file changes nothing but time.

Why agreement is proof: inside a JSON string a quote always follows a backslash, so in a text that orjson took
the pattern finds real members only, and all of them that are spelled without escapes. Values on the slots are
a subset of those. If no escape can spell an ASCII letter and both lists are equal, value by value in document
order, then they are the same members. Decoys and duplicate members make the lists differ: then None.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

import orjson

from proxy.core.edits import Edit
from proxy.core.format import Format
from proxy.core.probability import probability, spell
from proxy.core.reading import Reading, take, walk
from proxy.core.shapes import Mark, Objects
from proxy.core.tokens import Token

MAX_BYTES: Final = 64 * 1024
"""Read in one go; more would hold up every other stream for tens of ms, so it is read element by element."""

_LETTER_ESCAPE: Final = re.compile(rb"\\u00[4-7]")


_NUMBER: Final = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|null"
_WS: Final = rb"[ \t\n\r]*+"


class _Finder(NamedTuple):
    """What finds the number members of one format's shapes."""

    names: dict[bytes, tuple[str, bytes]]
    """Member and inserted name by found name."""
    compact: re.Pattern[bytes]
    spaced: re.Pattern[bytes]


@lru_cache(maxsize=256)
def _finder(fmt: Format) -> _Finder:
    names = {
        member.encode(): (member, name.encode())
        for place in fmt.places
        for slot in place.slots
        for shape in slot.shapes
        for member, name in shape.numbers
    }
    found = rb"|".join(re.escape(name) for name in sorted(names, reverse=True)) or rb"(?!)"
    return _Finder(
        names,
        re.compile(rb'[{,]"(%b)":(%b)(?=[,}])' % (found, _NUMBER)),
        re.compile(
            rb'[{,](%b)"(%b)"(%b:%b)(%b)(?=%b(?:,(%b)|\}))' % (_WS, found, _WS, _WS, _NUMBER, _WS, _WS)
        ),
    )


def fast(text: bytes, fmt: Format, *, flat: bool = False) -> Reading | None:
    """The Reading of one payload, or None where only the exact reader can tell."""
    if len(text) > MAX_BYTES:
        return None
    root = _load(text, flat=flat)
    if root is None:
        return None
    reading = Reading()
    marks: list[Mark] = []
    for visit in walk(root, fmt, reading):
        take(visit, marks)
    edits = _located(text, 0, len(text), marks, fmt)
    if edits is None:
        return None
    reading.edits = edits
    reading.insertions = len(edits)
    return reading


def fast_item(
    text: bytes, start: int, end: int, shape: Objects, fmt: Format, *, flat: bool = False
) -> tuple[Token | None, list[Edit]] | None:
    """The same for one element of an array that was only located: its token and the edits in it."""
    item = _load(text[start:end], flat=flat)
    if item is None:
        return None
    marks: list[Mark] = []
    token = shape.item(item, marks)
    edits = _located(text, start, end, marks, fmt)
    return None if edits is None else (token, edits)


def _load(text: bytes, *, flat: bool) -> object:
    """The value of a text from which positions can be told, else None."""
    if b"\\u00" in text and _LETTER_ESCAPE.search(text):
        return None
    if flat and (b"\n" in text or b"\r" in text):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _located(text: bytes, start: int, end: int, marks: list[Mark], fmt: Format) -> list[Edit] | None:
    """The insertions for the marks of `text[start:end]`; None where members and marks are not proved to be the same."""
    finder = _finder(fmt)
    written = sum([text.count(b'"%b"' % name, start, end) for name in finder.names])
    if not written:
        return None if marks else []
    if written == len(marks):
        # As many members as names in the text: if all are spelled without white space, none is elsewhere.
        matches = list(finder.compact.finditer(text, start, end))
        if len(matches) == written:
            return _agreed(marks, finder, [(match[1], match[2], match.end()) for match in matches])
    matches = list(finder.spaced.finditer(text, start, end))
    if len(matches) != len(marks):
        return None
    edits = _agreed(marks, finder, [(match[2], match[4], match.end(4)) for match in matches])
    if edits is None:
        return None
    return [Edit(at, at, _spaced(match, data)) for match, (at, _, data) in zip(matches, edits, strict=True)]


def _agreed(marks: list[Mark], finder: _Finder, found: list[tuple[bytes, bytes, int]]) -> list[Edit] | None:
    """The insertions, without white space, if marks and members found are the same ones."""
    values = orjson.loads(b"[" + b",".join([number for _, number, _ in found]) + b"]")
    if [value for _, _, _, value in marks] != values:
        return None
    names = finder.names
    if len(names) > 1 and [member for _, member, _, _ in marks] != [names[name][0] for name, _, _ in found]:
        return None
    numbers = spell([probability(value) for value in values])
    return [
        Edit(end, end, b',"%b":%b' % (names[name][1], number))
        for (name, _, end), number in zip(found, numbers, strict=True)
    ]


def _spaced(match: re.Match[bytes], data: bytes) -> bytes:
    """The insertion with the white space of its neighbours: that before the next key, or before its own."""
    before, _, colon, _, gap = match.groups()
    name, number = data[1:].rsplit(b":", 1)
    return b",%b%b%b%b" % (before if gap is None else gap, name, colon, number)
