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
from proxy.core.shapes import Mark

MAX_BYTES: Final = 512 * 1024
"""No single C call over more: it would hold up every other stream."""

_LETTER_ESCAPE: Final = re.compile(rb"\\u00[4-7]")


_NUMBER: Final = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|null"
_WS: Final = rb"[ \t\n\r]*+"


class _Finder(NamedTuple):
    """What finds the number members of one format's shapes."""

    names: dict[bytes, bytes]
    """Inserted name by found name."""
    compact: re.Pattern[bytes]
    spaced: re.Pattern[bytes]


@lru_cache(maxsize=256)
def _finder(fmt: Format) -> _Finder:
    names = {
        member.encode(): name.encode()
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
    if len(text) > MAX_BYTES or (b"\\u00" in text and _LETTER_ESCAPE.search(text)):
        return None
    if flat and (b"\n" in text or b"\r" in text):
        return None
    try:
        root = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    reading = Reading()
    marks: list[Mark] = []
    for visit in walk(root, fmt, reading):
        take(visit, marks)
    finder = _finder(fmt)
    written = sum([text.count(b'"%b"' % name) for name in finder.names])
    if not written:
        return None if marks else reading
    if written == len(marks):
        # As many members as names in the text: if all are spelled without white space, none is elsewhere.
        matches = list(finder.compact.finditer(text))
        if len(matches) == written:
            return _agreed(reading, marks, finder, [(match[1], match[2], match.end()) for match in matches])
    matches = list(finder.spaced.finditer(text))
    if len(matches) != len(marks):
        return None
    spaced = [(match[2], match[4], match.end(4)) for match in matches]
    if _agreed(reading, marks, finder, spaced) is None:
        return None
    reading.edits = [
        Edit(start, end, _spaced(match, data))
        for match, (start, end, data) in zip(matches, reading.edits, strict=True)
    ]
    return reading


def _agreed(
    reading: Reading, marks: list[Mark], finder: _Finder, found: list[tuple[bytes, bytes, int]]
) -> Reading | None:
    """The reading with its edits, without white space, if marks and members found are the same ones."""
    values = orjson.loads(b"[" + b",".join([number for _, number, _ in found]) + b"]")
    if [value for _, _, _, value in marks] != values:
        return None
    names = finder.names
    if len(names) > 1 and [member.encode() for _, member, _, _ in marks] != [name for name, _, _ in found]:
        return None
    numbers = spell([probability(value) for value in values])
    reading.edits = [
        Edit(end, end, b',"%b":%b' % (names[name], number))
        for (name, _, end), number in zip(found, numbers, strict=True)
    ]
    return reading


def _spaced(match: re.Match[bytes], data: bytes) -> bytes:
    """The insertion with the white space of its neighbours: that before the next key, or before its own."""
    before, _, colon, _, gap = match.groups()
    name, number = data[1:].rsplit(b":", 1)
    return b",%b%b%b%b" % (before if gap is None else gap, name, colon, number)
