"""Takes the insertions out of a body again, by positions alone.

Law: what is erased is exactly the named members with the comma before them; what is left must be the upstream's
bytes. A byte-level scanner of its own, that shares nothing with the proxy's.
"""

import re
from typing import NamedTuple

from tests.laws.pieces import Piece
from tests.laws.tables import INSERTED

_WHITE = b" \t\r\n"
_ATOM = re.compile(rb"[^\s,:\[\]{}\"]+")


class Member(NamedTuple):
    """Positions of one member or element; `key` is (0, 0) in an array."""

    name: bytes
    key: tuple[int, int]
    start: int
    end: int
    inside: "list[Member]"


def scan(text: bytes, pos: int = 0) -> Member:
    """The value at `pos`. Raises ValueError where there is none."""
    pos = _white(text, pos)
    return _value(text, pos, b"", (0, 0))


def _value(text: bytes, pos: int, name: bytes, key: tuple[int, int]) -> Member:
    head = text[pos : pos + 1]
    if head == b'"':
        return Member(name, key, pos, _string(text, pos), [])
    if head not in (b"{", b"["):
        match = _ATOM.match(text, pos)
        if not match:
            raise ValueError(f"no value at {pos}")
        return Member(name, key, pos, match.end(), [])
    inside: list[Member] = []
    close, start = b"}" if head == b"{" else b"]", pos
    pos = _white(text, pos + 1)
    while text[pos : pos + 1] != close:
        if inside:
            if text[pos : pos + 1] != b",":
                raise ValueError(f"no comma at {pos}")
            pos = _white(text, pos + 1)
        name_of, key_of = b"", (0, 0)
        if head == b"{":
            end = _string(text, pos)
            name_of, key_of = text[pos + 1 : end - 1], (pos, end)
            colon = _white(text, end)
            if text[colon : colon + 1] != b":":
                raise ValueError(f"no colon at {colon}")
            pos = _white(text, colon + 1)
        inside.append(_value(text, pos, name_of, key_of))
        pos = _white(text, inside[-1].end)
    return Member(name, key, start, pos + 1, inside)


def _string(text: bytes, pos: int) -> int:
    if text[pos : pos + 1] != b'"':
        raise ValueError(f"no string at {pos}")
    pos += 1
    while text[pos] != 34:
        pos += 2 if text[pos] == 92 else 1
    return pos + 1


def _white(text: bytes, pos: int) -> int:
    while pos < len(text) and text[pos] in _WHITE:
        pos += 1
    return pos


def erase(piece: Piece, places: list[tuple[int, ...]]) -> bytes:
    """The piece without the members at `places`, each a row of positions from the root."""
    if not places or piece.payload is None:
        return piece.raw
    root = scan(piece.payload)
    raw, text = piece.raw, piece.payload
    for place in sorted(places, reverse=True):
        siblings = root.inside
        for index in place[:-1]:
            siblings = siblings[index].inside
        before, member = siblings[place[-1] - 1], siblings[place[-1]]
        assert member.name.decode() in INSERTED, member.name
        after = siblings[place[-1] + 1] if place[-1] + 1 < len(siblings) else None
        _check_white_space(text, before, member, after, flat=piece.flat)
        start, end = piece.at[before.end], piece.at[member.end - 1] + 1
        assert end - start == member.end - before.end, "an insertion stands on one line"
        raw = raw[:start] + raw[end:]
    return raw


def _check_white_space(
    text: bytes, before: Member, member: Member, after: Member | None, *, flat: bool
) -> None:
    """The comma follows at once; the rest is spaced as the neighbour is."""
    assert text[before.end : before.end + 1] == b","
    gap = text[before.end + 1 : member.key[0]]
    colon = text[member.key[1] : member.start]
    if after:
        model = text[member.end : after.key[0]].partition(b",")[2]
    else:
        start = before.key[0]
        while text[start - 1] in _WHITE:
            start -= 1
        model = text[start : before.key[0]]
    colon_model = text[before.key[1] : before.start]
    if flat:
        model, colon_model = _on_one_line(model), _on_one_line(colon_model)
    assert gap == model, f"white space {gap!r} where the neighbour has {model!r}"
    assert colon == colon_model, f"colon {colon!r} where the neighbour has {colon_model!r}"


def _on_one_line(white: bytes) -> bytes:
    if not any(end in white for end in (b"\r", b"\n")):
        return white
    return b": " if b":" in white else b" "


_INSERTION = re.compile(
    rb",[ \t\r\n]*\"(?:" + b"|".join(sorted(name.encode() for name in INSERTED)) + rb")\"[ \t\r\n]*:"
)


def erase_by_comparing(upstream: bytes, out: bytes) -> bytes:
    """`out` without everything that has an insertion's form and does not stand in `upstream` at that point. For
    bodies that are broken, in which no tree tells what was inserted."""
    kept = bytearray()
    pos = 0
    for match in _INSERTION.finditer(out):
        start = match.start()
        if start < pos:
            continue
        end = scan(out, match.end()).end
        kept += out[pos:start]
        pos = start
        if upstream[len(kept) : len(kept) + end - start] != out[start:end]:
            pos = end
    return bytes(kept + out[pos:])
