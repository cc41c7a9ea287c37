"""The only writer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.edits import Edit, apply


def test_insert_replace_remove() -> None:
    raw = b"0123456789"
    assert apply(raw, [Edit(2, 2, b"ab"), Edit(4, 6, b"X"), Edit(9, 10, b"")]) == b"01ab23X678"


def test_any_order_and_insertions_at_one_place_keep_theirs() -> None:
    assert apply(b"xy", [Edit(2, 2, b"c"), Edit(1, 1, b"a"), Edit(1, 1, b"b")]) == b"xabyc"


def test_shift() -> None:
    assert apply(b"data: 1", [Edit(1, 1, b"!")], 6) == b"data: 1!"


def test_an_overlap_is_refused() -> None:
    with pytest.raises(ValueError, match="overlaps"):
        apply(b"0123", [Edit(0, 3, b""), Edit(2, 4, b"")])


@given(raw=st.binary(max_size=40), places=st.lists(st.tuples(st.integers(0, 40), st.binary(max_size=4))))
def test_taking_the_insertions_out_gives_the_bytes_back(raw: bytes, places: list[tuple[int, bytes]]) -> None:
    edits = [Edit(min(at, len(raw)), min(at, len(raw)), data) for at, data in places]
    out = apply(raw, edits)
    for at, _, data in sorted(edits, key=lambda edit: edit.start):
        assert out[at : at + len(data)] == data
        out = out[:at] + out[at + len(data) :]
    assert out == raw
