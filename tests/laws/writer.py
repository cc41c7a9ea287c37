"""Writes the answer that the proxy must give, from the upstream's bytes and the oracle alone.

Law: nothing here is imported from the proxy, so an expected file is never the output of the code that it tests. The
spacing is section by section the rule that the eraser checks; numbers are spelled by orjson, which is a library.
"""

from typing import Any

import orjson

from tests.laws import oracle, pieces
from tests.laws.eraser import _WHITE, Member, _on_one_line, scan
from tests.laws.oracle import Added, Pairs


def write(upstream: bytes, fmt: str, framing: str | None) -> bytes:
    """The whole body with its insertions; a piece that is no JSON stays as it is."""
    return b"".join(_piece(piece, fmt) for piece in pieces.cut(upstream, framing))


def _piece(piece: pieces.Piece, fmt: str) -> bytes:
    if piece.payload is None:
        return piece.raw
    try:
        wanted = oracle.expected(piece.payload, fmt)
    except (ValueError, RecursionError):
        return piece.raw
    raw = piece.raw
    for at, inserted in sorted(
        _insertions(piece.payload, wanted, scan(piece.payload), flat=piece.flat), reverse=True
    ):
        start = piece.at[at - 1] + 1
        raw = raw[:start] + inserted + raw[start:]
    return raw


def _insertions(text: bytes, wanted: Any, there: Member, *, flat: bool) -> list[tuple[int, bytes]]:
    """(position in the payload, what is inserted there), for a tree and the members it has in the upstream's text."""
    found: list[tuple[int, bytes]] = []
    members = iter(there.inside)
    before: Member | None = None
    for index, item in enumerate(wanted if isinstance(wanted, list) else ()):
        value = item[1] if isinstance(wanted, Pairs) else item
        if not isinstance(value, Added):
            before = next(members)
            found += _insertions(text, value, before, flat=flat)
            continue
        assert before is not None
        following = len([1 for _, other in wanted[index + 1 :] if not isinstance(other, Added)])
        after = there.inside[len(there.inside) - following] if following else None
        found.append((before.end, _member(text, item[0], value.value, before, after, flat=flat)))
    return found


def _member(text: bytes, name: str, value: Any, before: Member, after: Member | None, *, flat: bool) -> bytes:
    """One new member behind `before`, spaced as its neighbours are."""
    if after:
        gap = text[before.end : after.key[0]].partition(b",")[2]
    else:
        start = before.key[0]
        while text[start - 1] in _WHITE:
            start -= 1
        gap = text[start : before.key[0]]
    colon = text[before.key[1] : before.start]
    comma, inner = (b", ", b": ") if colon.endswith(b" ") else (b",", b":")
    spelled = _spell(text, value, before, comma, inner)
    if flat:
        gap, colon = _on_one_line(gap), _on_one_line(colon)
    return b',%b"%b"%b%b' % (gap, name.encode(), colon, spelled)


def _spell(text: bytes, value: Any, source: Member, comma: bytes, colon: bytes) -> bytes:
    """A probability, or a container that mirrors the one it is made of; keys as they are written there."""
    if isinstance(value, Pairs):
        keys = (text[member.key[0] : member.key[1]] for member in source.inside)
        rows = (key + colon + orjson.dumps(number) for key, (_, number) in zip(keys, value, strict=True))
        return b"{" + comma.join(rows) + b"}"
    if isinstance(value, list):
        sources = source.inside if len(source.inside) == len(value) else [source] * len(value)
        return (
            b"["
            + comma.join(_spell(text, v, m, comma, colon) for v, m in zip(value, sources, strict=True))
            + b"]"
        )
    return orjson.dumps(value)
