"""The exact reader: what it takes, where it says that things stand, and how it refuses."""

import json

import pytest
from hypothesis import given

from proxy.core.scan import ALL, ITEMS, Items, Obj, Plan, ScanError, Scanner, scan, text_of
from tests.core import bodies


@given(body=bodies.anything)
def test_reads_the_same_value_as_the_standard_library(body: str) -> None:
    assert scan(body.encode(), ALL) == json.loads(body)


@given(body=bodies.anything)
def test_stepping_over_a_value_ends_where_the_value_ends(body: str) -> None:
    text = ('{"skipped":' + body + ',"wanted":1}').encode()
    found = scan(text, {"wanted": {}})
    assert isinstance(found, Obj)
    assert found["wanted"] == 1
    span = found.spans["wanted"]
    assert text[span.start : span.end] == b"1"
    assert text[span.key_start : span.key_end] == b'"wanted"'


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_truncated_text_is_refused(cut: int) -> None:
    text = b'{"a":[{"b":-0.5,"c":"\\ud83d"},null],"d":1}'
    with pytest.raises(ScanError):
        scan(text[:cut], ALL)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"-Infinity", float("-inf")),
        (b"Infinity", float("inf")),
        (b"1e400", float("inf")),
        (b"-1e400", float("-inf")),
        (b"18446744073709551616", 18446744073709551616.0),
        (b"-0", 0),
        (b" \n\t\r 5 \n", 5),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\ud83d"', "\ud83d"),
        (b'"\\q\\/"', "q/"),
        (b'"\xf0\x9f"', "\udcf0\udc9f"),
    ],
)
def test_what_servers_send_though_strict_parsers_refuse_it(text: bytes, value: object) -> None:
    assert scan(text, ALL) == value


@pytest.mark.parametrize(
    ("text", "loose"),
    [(b"[NaN]", True), (b"[-Infinity]", True), (b"[-1e400]", True), (b"[1,null,true]", False)],
)
def test_numbers_that_are_none_are_noticed(text: bytes, loose: bool) -> None:
    scanner = Scanner(text)
    list(scanner.slices(ALL))
    assert scanner.loose is loose


def test_nan() -> None:
    value = scan(b"NaN", ALL)
    assert value != value


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"tru",
        b"[1 2]",
        b'{"a" 1}',
        b'{"a":1 "b":2}',
        b"{,}",
        b"[1],",
        b"--1",
        b"1.2.3",
        b'{"a":}',
        b"'a'",
        b"[DONE]",
    ],
)
def test_what_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(ScanError):
        scan(text, ALL)


def test_depth_is_bounded_on_the_plan_and_free_beside_it() -> None:
    deep = b"[" * 3000 + b"]" * 3000
    with pytest.raises(ScanError, match="deeper"):
        scan(deep, ALL)
    assert scan(b'{"skip":' + deep + b',"a":1}', {"a": {}}) == {"a": 1}
    with pytest.raises(ScanError):
        scan(b'{"skip":' + deep[:-1] + b',"a":1}', {"a": {}})


def test_the_last_duplicate_wins_and_both_are_kept() -> None:
    found = scan(b'{"a":1,"a":2}', ALL)
    assert isinstance(found, Obj)
    assert found == {"a": 2}
    assert [value for _, value in found.pairs] == [1, 2]
    assert found.spans["a"].start == 11


def test_what_is_stepped_over_is_still_seen_as_empty_or_not() -> None:
    plan: Plan = {"a": {}, "b": {}, "c": {}, "d": {}}
    found = scan(b'{"a":[],"b":{ },"c":[{}],"d":{"x":[]}}', plan)
    assert isinstance(found, Obj)
    assert [bool(found[name]) for name in "abcd"] == [False, False, True, True]


def test_items_are_located_not_read() -> None:
    text = b'{"list": [ {"a":[1,{"b":"]"}]} , 2,"x" ] }'
    found = scan(text, {"list": ITEMS})
    assert isinstance(found, Obj)
    items = found["list"]
    assert isinstance(items, Items)
    assert [text[start:end] for start, end in items.spans] == [b'{"a":[1,{"b":"]"}]}', b"2", b'"x"']


def test_a_big_array_is_located_in_slices() -> None:
    text = b'{"list":[' + b",".join([b'{"a":"' + b"x" * 1000 + b'"}'] * 1000) + b"]}"
    steps = list(Scanner(text).slices({"list": ITEMS}))
    assert len(steps) > 10
    assert all(step is None for step in steps[:-1])


def test_strings() -> None:
    assert text_of(rb"a\"b\\c\u00e9") == 'a"b\\cé'
