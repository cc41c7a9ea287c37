"""The exact reader: JSON text to plain values that know where their members stand.

Law: only what lies on a plan is read, everything else is stepped over, and every object that is read keeps the
positions of its members. It takes what servers really send and strict parsers refuse: NaN, Infinity, 1e400, lone
surrogates, bytes that are not UTF-8, duplicate members (the last one wins, as in every JSON library).
"""

import re
from collections.abc import Generator
from math import isfinite
from typing import Final, NamedTuple, Union

Plan = Union[dict[str, "Plan"], "All"]
"""What to read: members by name with the plan below each, `"[]"` for elements; `ALL` reads a whole subtree,
`ITEMS` an array whose elements are only located, so that a huge one is read element by element."""


class All:
    __slots__ = ()


ALL: Final = All()
ITEMS: Final = All()


class ScanError(ValueError):
    """The text is not JSON where the plan reads it; carries the position."""


class Span(NamedTuple):
    """Positions of one member: its key with quotes, its value."""

    key_start: int
    key_end: int
    start: int
    end: int


class Obj(dict[str, object]):
    """A JSON object; `spans` by member name, `pairs` every member as written, duplicates included."""

    __slots__ = ("end", "pairs", "spans")

    def __init__(self) -> None:
        super().__init__()
        self.end = 0
        """Where its closing brace stands."""
        self.spans: dict[str, Span] = {}
        self.pairs: list[tuple[Span, object]] = []


class Items:
    """An array of which only the places of its elements are known."""

    __slots__ = ("spans",)

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self.spans)


_MAX_DEPTH: Final = 64
"""Deepest subtree that is read; shapes need four levels."""
_SLICE: Final = 1 << 16
"""Bytes of a located array between two pauses, some hundred microseconds of work."""

_WS: Final = re.compile(rb"[ \t\n\r]*+")
_STRING: Final = re.compile(rb'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_SCALAR: Final = re.compile(rb"-?\d[0-9.eE+-]*+|-?Infinity|NaN|true|false|null")
_FLAT: Final = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+"){1,4096}+', re.DOTALL)
_WORDS: Final[dict[bytes, object]] = {
    b"true": True,
    b"false": False,
    b"null": None,
    b"NaN": float("nan"),
    b"Infinity": float("inf"),
    b"-Infinity": float("-inf"),
}


def _nested(depth: int) -> bytes:
    inner = rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+'
    for _ in range(depth):
        inner = rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+"|[\[{]' + inner + rb"[\]}])*+"
    return rb"[\[{]" + inner + rb"[\]}]"


_SHALLOW: Final = re.compile(_nested(4), re.DOTALL)
"""A container up to five levels deep, stepped over by one call; deeper ones by the loop in `_skip`."""


def scan(text: bytes, plan: Plan) -> object:
    """Read one JSON text along `plan`. Raises ScanError, also where something follows the value."""
    value: object = None
    for value in Scanner(text).slices(plan):  # noqa: B007 - the last one is the value
        pass
    return value


def text_of(raw: bytes) -> str:
    """The text of a JSON string's inside; bad bytes become lone surrogates, bad escapes stay as written."""
    if b"\\" not in raw:
        return raw.decode("utf-8", "surrogateescape")
    return _join_surrogates(_ESCAPE.sub(_unescape, raw.decode("utf-8", "surrogateescape")))


_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SIMPLE: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def _unescape(match: re.Match[str]) -> str:
    code, char = match.groups()
    return chr(int(code, 16)) if code else _SIMPLE.get(char, char)


def _join_surrogates(text: str) -> str:
    return _PAIR.sub(lambda m: m[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)


def _ws(text: bytes, pos: int) -> int:
    match = _WS.match(text, pos)
    return match.end() if match else pos


class Scanner:
    """Reads one text."""

    __slots__ = ("loose", "text")

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.loose = False
        """A number was read that is no JSON (NaN, Infinity) or no float64 (1e400)."""

    def slices(self, plan: Plan) -> Generator[object, None, None]:
        """`scan` with pauses: yields None between slices of work, the value last."""
        value, end = yield from self.value(_ws(self.text, 0), plan)
        if _ws(self.text, end) != len(self.text):
            raise ScanError(f"something follows the value at byte {end}")
        yield value

    def item(self, start: int) -> object:
        """The whole value that begins at `start`."""
        return self.all(start, 0)[0]

    def value(self, pos: int, plan: Plan | None) -> Generator[object, None, tuple[object, int]]:
        """The value at `pos` along `plan`, and where it ends; None as plan steps over it."""
        head = self.text[pos : pos + 1]
        if head == b"{" and plan and isinstance(plan, dict):
            return (yield from self._object(pos, plan))
        if head == b"[" and (plan is ITEMS or (isinstance(plan, dict) and "[]" in plan)):
            return (yield from self._array(pos, plan))
        if plan is ALL or (plan is ITEMS and head == b"{"):
            return self.all(pos, 0)
        if head in (b"{", b"["):
            end = self.skip(pos)
            hollow = self.text[_ws(self.text, pos + 1)] in b"]}"
            if head == b"{":
                return ({} if hollow else {"": ...}), end
            return ([] if hollow else [...]), end
        return self.scalar(pos)

    def _object(self, pos: int, plan: dict[str, Plan]) -> Generator[object, None, tuple[object, int]]:
        found = Obj()
        pos = _ws(self.text, pos + 1)
        if self.text[pos : pos + 1] == b"}":
            found.end = pos
            return found, pos + 1
        while True:
            name, key_start, key_end, start = self._key(pos)
            below = plan.get(name)
            if below is None:
                end = self.skip(start)
            else:
                value, end = yield from self.value(start, below)
                found[name] = value
                found.spans[name] = Span(key_start, key_end, start, end)
            pos = _ws(self.text, end)
            mark = self.text[pos : pos + 1]
            if mark == b"}":
                found.end = pos
                if not found:
                    found[
                        ""
                    ] = ...  # members that the plan steps over: not empty, as it is to the fast reader
                return found, pos + 1
            if mark != b",":
                raise ScanError(f"expected ',' or '}}' at byte {pos}")
            pos = _ws(self.text, pos + 1)

    def _array(self, pos: int, plan: Plan) -> Generator[object, None, tuple[object, int]]:
        items = Items()
        found: list[object] = []
        pos = _ws(self.text, pos + 1)
        pause = pos + _SLICE
        if self.text[pos : pos + 1] == b"]":
            return found, pos + 1
        while True:
            if isinstance(plan, dict):
                value, end = yield from self.value(pos, plan["[]"])
                found.append(value)
            else:
                end = self.skip(pos)
                items.spans.append((pos, end))
                if end > pause:
                    pause = end + _SLICE
                    yield None
            pos = _ws(self.text, end)
            mark = self.text[pos : pos + 1]
            if mark == b"]":
                return (found if isinstance(plan, dict) else items), pos + 1
            if mark != b",":
                raise ScanError(f"expected ',' or ']' at byte {pos}")
            pos = _ws(self.text, pos + 1)

    def all(self, pos: int, depth: int) -> tuple[object, int]:
        """The whole subtree at `pos`, and where it ends."""
        text = self.text
        head = text[pos : pos + 1]
        if head not in (b"{", b"["):
            return self.scalar(pos)
        if depth >= _MAX_DEPTH:
            raise ScanError(f"nested deeper than {_MAX_DEPTH} at byte {pos}")
        obj, array = Obj(), list[object]()
        close = b"}" if head == b"{" else b"]"
        pos = _ws(text, pos + 1)
        if text[pos : pos + 1] == close:
            obj.end = pos
            return (obj if head == b"{" else array), pos + 1
        while True:
            if head == b"{":
                name, key_start, key_end, start = self._key(pos)
                value, end = self.all(start, depth + 1)
                obj[name] = value
                obj.spans[name] = span = Span(key_start, key_end, start, end)
                obj.pairs.append((span, value))
            else:
                value, end = self.all(pos, depth + 1)
                array.append(value)
            pos = _ws(text, end)
            mark = text[pos : pos + 1]
            if mark == close:
                obj.end = pos
                return (obj if head == b"{" else array), pos + 1
            if mark != b",":
                raise ScanError(f"expected ',' or '{close.decode()}' at byte {pos}")
            pos = _ws(text, pos + 1)

    def _key(self, pos: int) -> tuple[str, int, int, int]:
        match = _STRING.match(self.text, pos)
        if match is None:
            raise ScanError(f"expected a member name at byte {pos}")
        colon = _ws(self.text, match.end())
        if self.text[colon : colon + 1] != b":":
            raise ScanError(f"expected ':' at byte {colon}")
        return text_of(match[1]), pos, match.end(), _ws(self.text, colon + 1)

    def scalar(self, pos: int) -> tuple[object, int]:
        if match := _STRING.match(self.text, pos):
            return text_of(match[1]), match.end()
        match = _SCALAR.match(self.text, pos)
        if match is None:
            raise ScanError(f"expected a value at byte {pos}")
        word = match[0]
        if word in _WORDS:
            self.loose = self.loose or word.endswith((b"N", b"y"))
            return _WORDS[word], match.end()
        try:
            number = int(word) if word.lstrip(b"-").isdigit() and len(word) < 19 else float(word)
        except ValueError:
            raise ScanError(f"bad number at byte {pos}") from None
        self.loose = self.loose or not isfinite(number)
        return number, match.end()

    def skip(self, pos: int) -> int:
        """Where the value at `pos` ends."""
        if match := _STRING.match(self.text, pos):
            return match.end()
        if self.text[pos : pos + 1] not in (b"{", b"["):
            return self.scalar(pos)[1]
        if match := _SHALLOW.match(self.text, pos):
            return match.end()
        depth = 0
        while True:
            if match := _FLAT.match(self.text, pos):
                pos = match.end()
                continue
            mark = self.text[pos : pos + 1]
            if mark in (b"{", b"["):
                depth += 1
            elif mark in (b"}", b"]"):
                depth -= 1
            else:
                raise ScanError(f"the text ends inside a value at byte {pos}")
            pos += 1
            if depth == 0:
                return pos
