"""Where the scalars of a document stand.

Law: whatever the text, an answer or LimitError; what strict parsers read is read the same.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.document import MAX_DEPTH, LimitError, scalars


def _read(text: str | bytes, limit: int = 1000, budget: int = 1 << 20) -> dict[str, str]:
    """The bytes of each scalar."""
    raw = text.encode() if isinstance(text, str) else text
    return {
        pointer: raw[scalar.start : scalar.end].decode("utf-8", "surrogateescape")
        for pointer, scalar in scalars(raw, limit, budget).items()
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param('{"a":"x","b":-1.5e3}', {"/a": "x", "/b": "-1.5e3"}, id="string and number"),
        pytest.param('{"a":true,"b":false,"c":null}', {"/a": "true", "/b": "false", "/c": "null"}, id="words"),
        pytest.param('{"a":[1,[2,{"b":3}],4]}', {"/a/0": "1", "/a/1/0": "2", "/a/1/1/b": "3", "/a/2": "4"}, id="nested"),
        pytest.param('{"a":"","b":[],"c":{},"d":[ ]}', {"/a": '""', "/b": "[]", "/c": "{}", "/d": "[ ]"}, id="empty"),
        pytest.param(' {\n"a" : [ 1 , 2 ]\r\n}\t', {"/a/0": "1", "/a/1": "2"}, id="white space"),
        pytest.param(r'{"a\"/~\u00e9":"\"\\"}', {'/a"~1~0é': r"\"\\"}, id="escapes"),
        pytest.param(r'{"\ud83e\udd86":1,"\ud83e":2}', {"/🦆": "1", "/\ufffd": "2"}, id="surrogates in names"),
        pytest.param('{"":1}', {"/": "1"}, id="empty name"),
        pytest.param('{"a":1,"a":2}', {"/a": "2"}, id="the last of two members"),
        pytest.param('{"a":{"b":1},"a":{"c":2}}', {"/a/c": "2"}, id="nothing of the first is left"),
        pytest.param(r'{"a":1,"\u0061":[]}', {"/a": "[]"}, id="the same name spelled otherwise"),
        pytest.param('"x"', {"": "x"}, id="root string"),
        pytest.param(' 42\n', {"": "42"}, id="root number"),
        pytest.param("true", {"": "true"}, id="root word"),
        pytest.param('""', {"": '""'}, id="empty root string"),
        pytest.param("[]", {"": "[]"}, id="empty root array"),
        pytest.param('"use {} and [1]"', {"": "use {} and [1]"}, id="brackets in a root string"),
        pytest.param('[NaN,-Infinity]', {"/0": "NaN", "/1": "-Infinity"}, id="words that are no JSON"),
        pytest.param('{"a":"two\nlines"}', {"/a": "two\nlines"}, id="a raw line end"),
    ],
)  # fmt: skip
def test_documents(text: str, found: dict[str, str]) -> None:
    assert _read(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param('```json\n{"a":1}\n```', {"/a": "1"}, id="fence"),
        pytest.param('Here it is: {"a":1}. Done {x}.', {"/a": "1"}, id="sentences"),
        pytest.param('Fill [see below] {name}: {"a":1}', {"/a": "1"}, id="brackets in prose"),
        pytest.param('{{"a":1}}', {"/a": "1"}, id="doubled braces"),
        pytest.param('{"a":1}{"b":2}', {"/a": "1"}, id="the first of two"),
        pytest.param("spam", {}, id="prose"),
        pytest.param("", {}, id="nothing"),
        pytest.param("1 2", {}, id="two numbers"),
        pytest.param('"a" "b"', {}, id="two strings"),
        pytest.param("[1-2] [01] [1.] [.5] [+1]", {}, id="no numbers"),
        pytest.param('{"a":{"b":1},}', {}, id="a comma too many: not the part inside"),
        pytest.param("{'a':1}", {}, id="single quotes"),
        pytest.param("{a:1} [1 2] [,] [1}", {}, id="broken"),
    ],
)  # fmt: skip
def test_text_around_and_instead(text: str, found: dict[str, str]) -> None:
    assert _read(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a":1,"b":"x', {"/a": "1"}),
        ('{"a":1,"b":"x\\', {"/a": "1"}),
        ('{"a":1,"b":2', {"/a": "1"}),
        ('{"a":1,"b":2.', {"/a": "1"}),
        ('{"a":1,"b":-', {"/a": "1"}),
        ('{"a":1,"b":tru', {"/a": "1"}),
        ('{"a":1,"b":true', {"/a": "1", "/b": "true"}),
        ('{"a":1,"b":', {"/a": "1"}),
        ('{"a":1,"b"', {"/a": "1"}),
        ('{"a":1,"b', {"/a": "1"}),
        ('{"a":1, ', {"/a": "1"}),
        ('{"a":[1,{"b":[', {"/a/0": "1"}),
        ('{"a":[1,{"b":[]', {"/a/0": "1", "/a/1/b": "[]"}),
        ('{"a":1,"a":2', {}),
        ('```json\n[{"a":"x"},{"a":"y', {"/0/a": "x"}),
        ("{", {}),
        ('"use {} he', {}),
    ],
)
def test_truncated(text: str, found: dict[str, str]) -> None:
    assert _read(text) == found


def test_limits() -> None:
    assert len(_read("[" + "1," * 9 + "1]", limit=10)) == 10
    deep = "[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH
    assert _read(deep) == {"/0" * MAX_DEPTH: "1"}
    for text in (
        "[" + "1," * 10 + "1]",
        "[" + "[]," * 10 + "[]]",
        "[" + deep + "]",
        '{"' + "a" * 40 + '":1}',
    ):
        with pytest.raises(LimitError):
            scalars(text.encode(), 10, 40)
    # Names are written once for each container below them: few bytes could make many.
    with pytest.raises(LimitError):
        scalars(('{"' + "a" * 1000 + '":[' + ",".join(["[1]"] * 900) + "]}").encode(), 1000, 1 << 18)


def _pointers(value: Any, pointer: str = "") -> dict[str, Any]:
    if isinstance(value, dict) and value:
        below = {name.replace("~", "~0").replace("/", "~1"): child for name, child in value.items()}
    elif isinstance(value, list) and value:
        below = {str(index): child for index, child in enumerate(value)}
    else:
        return {pointer: value}
    return {
        key: leaf
        for name, child in below.items()
        for key, leaf in _pointers(child, f"{pointer}/{name}").items()
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("ab\"\\/~\n é🦆{}[]:,", max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab/~\"é", max_size=3), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_the_same_as_a_parser(value: Any, ascii_only: bool, indent: int | None) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    expected = _pointers(value)
    found = scalars(raw, 1000, 1 << 20)
    assert list(found) == list(expected)
    for pointer, scalar in found.items():
        inside = raw[scalar.start : scalar.end]
        spelled = b'"' + inside + b'"' if scalar.string and inside != b'""' else inside
        assert json.loads(spelled) == expected[pointer]


@given(JSON, st.data())
def test_a_cut_only_leaves_out(value: Any, data: st.DataObject) -> None:
    raw = json.dumps({"a": value}).encode()
    cut = raw[: data.draw(st.integers(0, len(raw) - 1))]
    assert scalars(cut, 1000, 1 << 20).items() <= scalars(raw, 1000, 1 << 20).items()


def test_brackets_without_end_are_given_up() -> None:
    assert _read("{x} " * 999 + "[1]") == {"/0": "1"}
    assert _read("{x} " * 1000 + "[1]") == {}


@given(st.binary() | st.text('{}[]:,"\\ 1-.etrufalsn').map(str.encode))
def test_any_bytes(text: bytes) -> None:
    for scalar in scalars(text, 1000, 1 << 20).values():
        assert 0 <= scalar.start < scalar.end <= len(text)


@pytest.mark.parametrize(
    "piece", ["{", '{"a', '["', "[1", '[1"', '[1"\\"', '["a]\\', "[{", '{"a":{"b', "[[1],", '[1,"', "}", '"']
)
def test_linear_time_on_what_looks_like_many_documents(piece: str) -> None:
    # Read again to the end from each bracket this would take hours.
    text = (piece * ((1 << 20) // len(piece))).encode()
    for raw in (text, text + b"x", b"[0 " + text, text + b'"]x'):
        try:
            scalars(raw, 1 << 20, 1 << 20)
        except LimitError:
            pass
