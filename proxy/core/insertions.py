"""The members that are inserted: where, how spaced, how spelled.

Law: a new member stands right behind the value it speaks of, spaced as its neighbours; inside an event of one line it
holds no line end.
"""

import re
from typing import Final

from proxy.core.edits import Edit
from proxy.core.probability import probability, spell
from proxy.core.scan import Obj
from proxy.core.shape import Keyed, Linear, Mark

_GAP: Final = re.compile(rb"[ \t\n\r]*+,([ \t\n\r]*+)")


def edits_of(text: bytes, marks: list[Mark], *, flat: bool) -> list[Edit]:
    """The insertions for marks on `scan.Obj`: a new member right behind each value, spaced as its neighbours."""
    numbers = iter(spell([probability(value) for _, _, _, value in marks if not isinstance(value, Linear)]))  # type: ignore[arg-type]
    edits = []
    for owner, member, name, value in marks:
        assert isinstance(owner, Obj)
        span = owner.spans[member]
        colon = text[span.key_end : span.start]
        if isinstance(value, Linear):
            written = _spell(text, value.value, b", " if colon.endswith(b" ") else b",", colon)
        else:
            written = next(numbers)
        edits.append(insertion(text, span.key_start, span.end, name, colon, written, flat=flat))
    return edits


def insertion(
    text: bytes, key_start: int, end: int, name: str, colon: bytes, written: bytes, *, flat: bool
) -> Edit:
    """One member behind the value that ends at `end`: white space as before the next key, or, for a last member,
    as before its own."""
    if match := _GAP.match(text, end):
        gap = match[1]
    else:
        before = text[max(0, key_start - 256) : key_start]
        gap = before[len(before.rstrip(b" \t\n\r")) :]
    if flat:
        gap, colon = _flatten(gap), _flatten(colon)
    return Edit(end, end, b"," + gap + b'"' + name.encode() + b'"' + colon + written)


def last_member(text: bytes, owner: Obj, name: str, written: bytes, *, flat: bool) -> Edit:
    """One member behind the last one of an object that has members, spaced as its first."""
    first = min(owner.spans.values())
    before = text[max(0, first.key_start - 256) : first.key_start]
    gap = before[len(before.rstrip(_WHITE)) :]
    colon = text[first.key_end : first.start]
    if flat:
        gap, colon = _flatten(gap), _flatten(colon)
    at = len(text[: owner.end].rstrip(_WHITE))
    return Edit(at, at, b'%b%b"%b"%b%b' % (b",", gap, name.encode(), colon, written))


_WHITE: Final = b" \t\n\r"


def _flatten(white: bytes) -> bytes:
    """White space that may hold no line end: one space stands for it."""
    return white if b"\n" not in white and b"\r" not in white else (b": " if b":" in white else b" ")


def _spell(text: bytes, value: object, comma: bytes, colon: bytes) -> bytes:
    if isinstance(value, list):
        return b"[" + comma.join(_spell(text, item, comma, colon) for item in value) + b"]"
    if isinstance(value, Keyed):
        colon = b": " if colon.endswith(b" ") else b":"
        numbers = spell([number for _, number in value.members])
        keys = (text[span.key_start : span.key_end] for span, _ in value.members)
        return (
            b"{" + comma.join(key + colon + number for key, number in zip(keys, numbers, strict=True)) + b"}"
        )
    return spell([value])[0]  # type: ignore[list-item]
