"""Edits on requests: switch logprobs on, mend a legacy spelling, take a member out.

Law: every other byte of the request stays. Each function reads the whole body exactly, so they are used only where a
request really is changed.
"""

from collections.abc import Mapping
from typing import cast

import orjson

from proxy.core.edits import Edit
from proxy.core.format import TOP, Format, member_at
from proxy.core.scan import ALL, Obj, ScanError, scan, text_of


def switch_on(body: bytes, fmt: Format, overrides: Mapping[tuple[str, str], object], top: int) -> list[Edit]:
    """The edits that make a request ask for logprobs with `top` alternatives. `overrides`: a profile's `switch`.

    Members that are there get the value, missing ones come first; a number of alternatives that the client gave stays. Raises ScanError where the body is no JSON object.
    """
    request = _object(body)
    wanted: dict[str, object] = {}
    for path, default in fmt.switch.items():
        value = overrides.get((fmt.name, ".".join(path)), default)
        if value is None or (value is TOP and type(member_at(request, path)) is int):
            continue
        level = wanted
        for name in path[:-1]:
            level = cast("dict[str, object]", level.setdefault(name, {}))
        level[path[-1]] = top if value is TOP else value
    edits: list[Edit] = []
    _set(body.index(b"{") + 1, request, wanted, edits)
    return edits


def coerced(body: bytes, switch: str, number: str, value: int) -> list[Edit]:
    """The edits that spell a legacy `switch: value` as `switch: true, number: value`. Raises ScanError."""
    there = _object(body)
    span = there.spans[switch]
    edits = [Edit(span.start, span.end, b"true")]
    if number in there:
        old = there.spans[number]
        edits.append(Edit(old.start, old.end, orjson.dumps(value)))
    else:
        colon = body[span.key_end : span.start]
        comma = b", " if colon.endswith(b" ") else b","
        edits.append(Edit(span.end, span.end, b'%b"%b"%b%d' % (comma, number.encode(), colon, value)))
    return edits


def without(body: bytes, member: str) -> list[Edit]:
    """The edits that take a member of the request out, every time it is there. Raises ScanError."""
    spans = [span for span, _ in _object(body).pairs]
    if not spans:
        return []
    edits = []
    at, end = spans[0].key_start, spans[-1].end
    last = at
    for span, following in zip(spans, [*(other.key_start for other in spans[1:]), end]):
        if text_of(body[span.key_start + 1 : span.key_end - 1]) == member:
            continue
        # What stands before a kept member up to the one before it: commas, and members that go.
        if span.key_start > at:
            edits.append(Edit(at, span.key_start, b""))
        at, last = following, span.end
    if last < end:
        edits.append(Edit(last, end, b""))
    return edits


def _object(body: bytes) -> Obj:
    request = scan(body, ALL)
    if not isinstance(request, Obj):
        raise ScanError("the request is no JSON object")
    return request


def _set(inside: int, there: Obj, wanted: dict[str, object], edits: list[Edit]) -> None:
    """Edits that give an object, whose inside begins at `inside`, the members wanted."""
    missing = []
    for name, value in wanted.items():
        if name not in there:
            missing.append(orjson.dumps(name) + b":" + orjson.dumps(value))
            continue
        span, old = there.spans[name], there[name]
        if isinstance(value, dict) and isinstance(old, Obj):
            _set(span.start + 1, old, value, edits)
        elif isinstance(value, tuple) and isinstance(old, list):
            more = [orjson.dumps(item) for item in value if item not in old]
            if more:
                comma = b"," if old else b""
                edits.append(Edit(span.start + 1, span.start + 1, b",".join(more) + comma))
        elif old is not value and (type(old) is not type(value) or old != value):
            edits.append(Edit(span.start, span.end, orjson.dumps(value)))
    if missing:
        edits.append(Edit(inside, inside, b",".join(missing) + (b"," if there else b"")))
