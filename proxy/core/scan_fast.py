"""The fast reader: orjson for the values, one pattern pass for their positions, and proof that both agree.

Law: `fast(payload, format)` is the exact reader's result, or None. Deleting this file changes nothing but time.

Why agreement is proof: in a text that orjson took, a quoted name that follows no backslash is a whole string, and
before a colon it is a member's, so the pattern finds real members only, and all of them that are spelled without
escapes. Values on the slots are a subset of those. If no escape can spell an ASCII letter and both lists are equal,
value by value in document order, then they are the same members. Decoys and duplicate members make the lists
differ: then None.
"""

import re
from functools import lru_cache
from typing import Final

import orjson

from proxy.core.edits import Edit
from proxy.core.format import Format
from proxy.core.places import Reading, walk
from proxy.core.plans import hidden_plan
from proxy.core.probability import probability, spell
from proxy.core.reading import Hide, take
from proxy.core.scan import scan
from proxy.core.shape import Mark
from proxy.core.shapes import Objects
from proxy.core.tokens import Token

MAX_BYTES: Final = 64 * 1024
"""Read in one go; more would hold up every other stream for tens of ms, so it is read element by element."""

_LETTER_ESCAPE: Final = re.compile(rb"\\u00[4-7]")


_NUMBER: Final = rb"[-+0-9.eEnul]++"
"""Enough to find a number or null: that it is one, orjson says when it reads all those found."""
_WS: Final = rb"[ \t\n\r]*+"


@lru_cache(maxsize=256)
def _inserted(fmt: Format) -> dict[bytes, tuple[str, bytes, bytes]]:
    """(member, inserted name, the same as it stands without white space) of every single number of the format's shapes,
    by the member as it is spelled."""
    return {
        b'"%b"' % member.encode(): (member, b'"%b"' % name.encode(), b',"%b":' % name.encode())
        for place in fmt.places
        for slot in place.slots
        for shape in slot.shapes
        for member, name in shape.numbers
    }


@lru_cache(maxsize=256)
def _patterns(names: tuple[bytes, ...]) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """What finds members of these names, without white space and with it. They begin with what is rare."""
    found = b"(" + b"|".join(re.escape(name) for name in names) + b")"
    return (
        re.compile(b"%b:(%b)(?=[,}])" % (found, _NUMBER)),
        re.compile(rb"%b(%b:%b)(%b)(?=%b(?:,(%b)|\}))" % (found, _WS, _WS, _NUMBER, _WS, _WS)),
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
    reading.insertions = len(marks)
    return reading


def fast_hidden(text: bytes, fmt: Format, hide: Hide) -> Reading | None:
    """The same where nothing is inserted: values by orjson, positions only of what is hidden."""
    if len(text) > MAX_BYTES:
        return None
    try:
        root = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    reading = Reading()
    for visit in walk(root, fmt, reading):
        take(visit, [])
    reading.edits = hide(text, scan(text, hidden_plan(fmt)))
    return reading


def fast_items(
    text: bytes, start: int, end: int, shape: Objects, fmt: Format, *, flat: bool = False
) -> tuple[list[Token], list[Edit], int] | None:
    """The same for a run of elements of an array that was only located: tokens, edits and how many insertions."""
    items = _load(b"[" + text[start:end] + b"]", flat=flat)
    if not isinstance(items, list):
        return None
    marks: list[Mark] = []
    tokens = [shape.item(item, marks) for item in items]
    edits = _located(text, start, end, marks, fmt)
    if edits is None:
        return None
    return [token for token in tokens if token is not None], edits, len(marks)


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
    """The insertions for the marks of `text[start:end]` as one edit; None where members and marks are not proved to be
    the same."""
    inserted = _inserted(fmt)
    names = [name for name in inserted if text.find(name, start, end) >= 0]
    if not names:
        return None if marks else []
    # A name behind a backslash ends a longer string; everywhere else it is one whole string.
    if any(text.find(b"\\" + name, start, end) >= 0 for name in names):
        return None
    compact, spaced = _patterns(tuple(names))
    found: list[re.Match[bytes]] = []
    # As many members as names in the text: if all are spelled without white space, none is elsewhere.
    if sum([text.count(name, start, end) for name in names]) == len(marks):
        found = list(compact.finditer(text, start, end))
    if found and len(found) == len(marks):
        written = [match[2] for match in found]
        places = [(match.end(), inserted[match[1]][2]) for match in found]
    else:
        found = list(spaced.finditer(text, start, end))
        written = [match[3] for match in found]
        places = [_spacing(text, match, inserted) for match in found]
    if len(found) != len(marks):
        return None
    if not marks:
        return []
    numbers = _agreed(marks, names, inserted, [match[1] for match in found], written)
    return None if numbers is None else [_joined(text, places, numbers)]


def _agreed(
    marks: list[Mark],
    names: list[bytes],
    inserted: dict[bytes, tuple[str, bytes, bytes]],
    found: list[bytes],
    written: list[bytes],
) -> list[bytes] | None:
    """The probabilities as they are to be written, if marks and members found are the same ones."""
    try:
        values = orjson.loads(b"[" + b",".join(written) + b"]")
    except orjson.JSONDecodeError:
        return None
    if [value for _, _, _, value in marks] != values:
        return None
    # With one name in the text it is every mark's.
    if len(names) > 1 and [member for _, member, _, _ in marks] != [inserted[name][0] for name in found]:
        return None
    return spell([probability(value) for value in values])


def _spacing(
    text: bytes, match: re.Match[bytes], inserted: dict[bytes, tuple[str, bytes, bytes]]
) -> tuple[int, bytes]:
    """Where to insert behind a member, and what before the number: spaced as before the next name, or, behind the last
    member, as before its own."""
    name, colon, _, gap = match.groups()
    if gap is None:
        before = text[max(0, match.start() - 256) : match.start()]
        gap = before[len(before.rstrip(b" \t\n\r")) :]
    return match.end(3), b",%b%b%b" % (gap, inserted[name][1], colon)


def _joined(text: bytes, places: list[tuple[int, bytes]], numbers: list[bytes]) -> Edit:
    """All insertions as one edit."""
    at = first = places[0][0]
    pieces: list[bytes] = []
    for (end, name), number in zip(places, numbers, strict=True):
        pieces += (text[at:end], name, number)
        at = end
    return Edit(first, at, b"".join(pieces))
