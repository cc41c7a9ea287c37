"""Trace Context: what is not as the recommendation says is not there."""

from __future__ import annotations

import pytest

from proxy.core.trace import Trace, read

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
VALID = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("headers", "flags"),
    [
        ([VALID], "01"),
        ([f" 00-{TRACE}-{SPAN}-00\t"], "00"),
        ([f"cc-{TRACE}-{SPAN}-03-later"], "03"),
        ([f"cc-{TRACE}-{SPAN}-01."], None),
        ([f"00-{TRACE}-{SPAN}-01-later"], None),
        ([f"ff-{TRACE}-{SPAN}-01"], None),
        ([f"00-{TRACE.upper()}-{SPAN}-01"], None),
        ([f"00-{'0' * 32}-{SPAN}-01"], None),
        ([f"00-{TRACE}-{'0' * 16}-01"], None),
        ([f"00-{TRACE[1:]}-{SPAN}-01"], None),
        ([f"00-{TRACE}-{SPAN}"], None),
        ([""], None),
        ([], None),
        ([VALID] * 2, None),
    ],
)
def test_a_parent_is_valid_or_not_there(headers: list[str], flags: str | None) -> None:
    found = read([header.encode() for header in headers], [b"a=1"])
    assert found == (None if flags is None else Trace(TRACE, SPAN, flags, "a=1"))


@pytest.mark.parametrize(
    ("headers", "state"),
    [
        ([], None),
        ([""], None),
        (["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"], "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
        (["a=1", "b=2"], "a=1,b=2"),
        ([" a=1 ,, \tb=2,"], "a=1,b=2"),
        (["a= inner blank!"], "a= inner blank!"),
        (["t0@vendor=1,a_b-c*d/e=~"], "t0@vendor=1,a_b-c*d/e=~"),
        (["1a=1"], None),  # a key begins with a letter, unless it names a tenant
        (["1a@v=1"], "1a@v=1"),
        (["A=1"], None),
        (["a=1,a=2"], None),
        (["a"], None),
        (["a="], None),
        (["a=1=2"], None),
        (["a=\xe9"], None),
        (["a=\x01"], None),
        ([f"a={'x' * 256}"], f"a={'x' * 256}"),
        ([f"a={'x' * 257}"], None),
        ([f"{'k' * 256}=x"], f"{'k' * 256}=x"),
        ([f"{'k' * 257}=x"], None),
        (
            [",".join(f"k{number}=1" for number in range(32))],
            ",".join(f"k{number}=1" for number in range(32)),
        ),
        ([",".join(f"k{number}=1" for number in range(33))], None),
        ([f"a={'x' * 250},b={'x' * 256}"], f"a={'x' * 250},b={'x' * 256}"),
        ([f"a={'x' * 251},b={'x' * 256}"], f"a={'x' * 251},b={'x' * 256}"),
        ([f"a={'x' * 252},b={'x' * 256}"], None),  # 513 characters
    ],
)
def test_a_state_is_valid_or_not_there(headers: list[str], state: str | None) -> None:
    found = read([VALID.encode()], [header.encode("latin-1") for header in headers])
    assert found is not None
    assert found.state == state
