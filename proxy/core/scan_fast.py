"""The fast reader: orjson for the values, one pattern pass for their positions, and proof that both agree.

Law: `fast(payload, format)` is the exact reader's result, or None. Deleting this file changes nothing but time.

Why agreement is proof: inside a JSON string a quote always follows a backslash, so in a text that orjson took
the pattern finds real members only, and all of them that are spelled without escapes. Values on the slots are
a subset of those. If no escape can spell an ASCII letter and both lists are equal, value by value in document
order, then they are the same members. Decoys and duplicate members make the lists differ: then None.
"""

import re
from functools import lru_cache
from typing import Final

import orjson

from proxy.core.edits import Edit
from proxy.core.format import Format
from proxy.core.probability import probability, spell
from proxy.core.reading import Reading, take, walk
from proxy.core.shapes import Linear, Mark

MAX_BYTES: Final = 512 * 1024
"""No single C call over more: it would hold up every other stream."""

_LETTER_ESCAPE: Final = re.compile(rb"\\u00[4-7]")


@lru_cache(maxsize=256)
def _pattern(fmt: Format) -> tuple[re.Pattern[bytes], dict[bytes, tuple[str, bytes]]]:
    """What finds every number member of the format's shapes, and the inserted name by found name."""
    names = {
        member.encode(): (member, name.encode())
        for place in fmt.places
        for slot in place.slots
        for shape in slot.shapes
        for member, name in shape.numbers
    }
    found = rb"|".join(re.escape(name) for name in sorted(names, reverse=True)) or rb"(?!)"
    pattern = (
        rb'[{,]([ \t\n\r]*+)"(' + found + rb')"([ \t\n\r]*+:[ \t\n\r]*+)'
        rb"(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|null)(?=[ \t\n\r]*+(?:,([ \t\n\r]*+)|\}))"
    )
    return re.compile(pattern), names


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
    pattern, names = _pattern(fmt)
    found = list(pattern.finditer(text))
    if len(found) != len(marks):
        return None
    if not marks:
        return reading
    values = orjson.loads(b"[" + b",".join([match[4] for match in found]) + b"]")
    probabilities = []
    for match, mark, value in zip(found, marks, values, strict=True):
        if isinstance(mark.value, Linear) or mark.value != value or names[match[2]][0] != mark.member:
            return None
        probabilities.append(probability(value))
    for match, number in zip(found, spell(probabilities), strict=True):
        before, member, colon, _, gap = match.groups()
        if gap is None:
            gap = before
        end = match.end(4)
        reading.edits.append(Edit(end, end, b'%b%b"%b"%b%b' % (b",", gap, names[member][1], colon, number)))
    return reading
