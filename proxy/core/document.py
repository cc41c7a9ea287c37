"""Where the scalars of the JSON document in a text stand.

Law: linear time, no recursion, no exception but LimitError on any bytes; nothing is guessed. What the end of the text cuts is left out and all
that is complete before it kept; a document that is no JSON gives nothing, not a part of itself under a wrong name.
"""

import re
from typing import Final, NamedTuple, Union

from proxy.core.scan import text_of

MAX_DEPTH: Final = 64
"""Containers inside one another."""
_MAX_TRIES: Final = 1000
"""Brackets tried: a text with more that begin no JSON is prose or a program."""


class Scalar(NamedTuple):
    """The bytes of a value, the quotes of a string excluded; of `""`, `[]` and `{}` those of the delimiters."""

    start: int
    end: int
    string: bool


class LimitError(ValueError):
    """The document is deeper, or has more scalars or longer names, than is allowed."""


_Node = Union[Scalar, "_Items"]
_Items = dict[str, _Node]
"""Members by name; elements by index."""


# What may come next. Plain numbers: they are compared for every lexeme, and an Enum hashes in Python.
_VALUE: Final = 0
_FIRST_VALUE: Final = 1
"""Or the end of the array."""
_KEY: Final = 2
_FIRST_KEY: Final = 3
"""Or the end of the object."""
_COLON: Final = 4
_NEXT: Final = 5
"""A comma or the end."""
_VALUES: Final = frozenset({_VALUE, _FIRST_VALUE})
_KEYS: Final = frozenset({_KEY, _FIRST_KEY})
_STRINGS: Final = _VALUES | _KEYS
_ENDS: Final = frozenset({_FIRST_VALUE, _FIRST_KEY, _NEXT})

_WORDS: Final = (b"true", b"false", b"null", b"NaN", b"Infinity", b"-Infinity")
"""The last three are no JSON, but what models write and most parsers take."""
_WS: Final = rb"[ \t\n\r]*+"
_SCALAR: Final = rb'"(?:[^"\\]++|\\.)*+"|-?[0-9][0-9.eE+-]*+|' + b"|".join(_WORDS)
_LEXEME: Final = re.compile(_WS + rb"(" + _SCALAR + rb"|[\[\]{}:,])", re.DOTALL)
_WHOLE: Final = re.compile(_WS + rb"(" + _SCALAR + rb")" + _WS, re.DOTALL)
_OPEN_STRING: Final = re.compile(_WS + rb'"(?:[^"\\]++|\\.)*+\\?', re.DOTALL)
_NUMBER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
"""RFC 8259, section 6."""
_OPEN: Final = re.compile(rb"[\[{]")
_SPACE: Final = re.compile(_WS)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def scalars(text: bytes, limit: int, budget: int) -> dict[str, Scalar]:
    """JSON Pointer (RFC 6901) -> Scalar, of the document in a text: the text itself if it is one scalar, else the first
    `{` or `[` from which JSON can be read to its end or to that of the text; prose and fences around it do not matter.

    Of duplicate members the last one wins. Raises LimitError beyond `limit` scalars or `budget` characters of names.
    """
    found: dict[str, Scalar] = {}
    todo = list(_document(text, limit).items())
    while todo:
        pointer, node = todo.pop()
        if isinstance(node, Scalar):
            found[pointer] = node
            continue
        for name, child in reversed(node.items()):
            below = f"{pointer}/{_escape(name)}"
            budget -= len(below)
            if budget < 0:
                raise LimitError
            todo.append((below, child))
    return found


def _escape(name: str) -> str:
    # A lone surrogate could not be written into the answer.
    return _SURROGATE.sub("\ufffd", name.replace("~", "~0").replace("/", "~1"))


def _document(text: bytes, limit: int) -> _Items:
    """The root under the name "", or nothing."""
    if (whole := _WHOLE.fullmatch(text)) and (scalar := _scalar(text, *whole.span(1))):
        return {"": scalar}
    if _OPEN_STRING.fullmatch(text):
        return {}
    at = 0
    for _ in range(_MAX_TRIES):
        match = _OPEN.search(text, at)
        if match is None:
            break
        root, at = _container(text, match.start(), limit)
        if root is not None:
            return root
    return {}


def _scalar(text: bytes, start: int, end: int) -> Scalar | None:
    """The scalar lexeme at `start`; None for a number that is none."""
    if text[start] == ord('"'):
        return Scalar(start + 1, end - 1, True) if end - start > 2 else Scalar(start, end, True)
    if _is_number(text[start:end]) and not _NUMBER.fullmatch(text, start, end):
        return None
    return Scalar(start, end, False)


def _is_number(lexeme: bytes) -> bool:
    return lexeme[0] in b"-0123456789" and not lexeme.endswith(b"y")


def _container(text: bytes, pos: int, limit: int) -> tuple[_Items | None, int]:
    """The container at `pos` under the name "", or None and where it stops being JSON."""
    root: _Items = {}
    items, name, close = root, "", b""
    outer: list[tuple[_Items, str, bytes, int]] = []
    want = _VALUE
    count = 0
    while count <= limit:
        match = _LEXEME.match(text, pos)
        if match is None:
            space = _SPACE.match(text, pos)
            rest = space.end() if space else pos
            return (root if _is_cut(text, rest, want) else None), rest
        lexeme, start, pos = match[1], match.start(1), match.end()
        if want in _VALUES and lexeme in (b"{", b"["):
            if len(outer) >= MAX_DEPTH:
                raise LimitError
            outer.append((items, name, close, start))
            inner: _Items = {}
            items[name] = inner
            items, name, close, want = (
                (inner, "", b"}", _FIRST_KEY) if lexeme == b"{" else (inner, "0", b"]", _FIRST_VALUE)
            )
        elif want in _ENDS and lexeme == close:
            hollow = not items
            items, name, close, opened = outer.pop()
            if hollow:
                items[name] = Scalar(opened, pos, False)
                count += 1
            if not outer:
                return root, pos
            want = _NEXT
        elif want is _NEXT and lexeme == b",":
            want, name = (_KEY, "") if close == b"}" else (_VALUE, str(len(items)))
        elif want is _COLON and lexeme == b":":
            want = _VALUE
        elif want in _KEYS and lexeme[:1] == b'"':
            name, want = text_of(lexeme[1:-1]), _COLON
            items.pop(name, None)
        elif want in _VALUES and lexeme not in b"]}:,":
            if pos == len(text) and _is_number(lexeme):
                return root, pos  # more digits may have been to come
            scalar = _scalar(text, start, pos)
            if scalar is None:
                return None, start
            items[name] = scalar
            count += 1
            want = _NEXT
        else:
            return None, start
    raise LimitError


def _is_cut(text: bytes, pos: int, want: int) -> bool:
    """At `pos` the text ends, or what may come next is begun and cut."""
    rest = text[pos : pos + 10]
    if not rest:
        return True
    if want in _VALUES and any(word.startswith(rest) for word in _WORDS):
        return True
    return want in _STRINGS and _OPEN_STRING.fullmatch(text, pos) is not None
