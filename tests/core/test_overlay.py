"""Tokens laid over a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.overlay import lay
from proxy.core.tokens import Token


def _tokens(*data: bytes) -> list[Token]:
    return [Token(piece, -1.0) for piece in data]


@pytest.mark.parametrize(
    ("data", "text", "span", "over"),
    [
        pytest.param([b"ab", b"cd"], b"abcd", (0, 2), [0], id="one token"),
        pytest.param([b"ab", b"cd"], b"abcd", (1, 3), [0, 1], id="over a border"),
        pytest.param([b"ab", b"cd"], b"abcd", (2, 4), [1], id="behind the border"),
        pytest.param([b"ab", b"cd"], b"abcd", (0, 4), [0, 1], id="all"),
        pytest.param([b"xab", b"cdx"], b"abcd", (0, 2), [0], id="the first begins before the text"),
        pytest.param([b"ab", b"cdSTOP"], b"abcd", (3, 4), [1], id="the last ends behind it"),
        pytest.param([b"a", b"-", b"a"], b"a", (0, 1), [2], id="the last of several places"),
        pytest.param([b"a", b"b", b"</s>"], b"ab", (0, 2), [0, 1], id="an end token behind"),
        pytest.param([b"a", b"", b"", b"b"], b"ab", (1, 2), [1, 2, 3], id="without bytes: with the next"),
        pytest.param([b"a", b"", b"b"], b"ab", (0, 1), [0], id="without bytes: not with the one before"),
        pytest.param([b"ab", b""], b"ab", (1, 2), [0], id="without bytes, at the end"),
    ],
)
def test_over(data: list[bytes], text: bytes, span: tuple[int, int], over: list[int]) -> None:
    overlay = lay(_tokens(*data), text)
    assert overlay is not None
    assert list(overlay.over(*span)) == over


@pytest.mark.parametrize("data", [[], [b""], [b"a"], [b"ab", b"d"]])
def test_text_that_is_not_in_the_tokens(data: list[bytes]) -> None:
    assert lay(_tokens(*data), b"abc") is None


def test_no_text() -> None:
    assert lay([], b"") is not None


@given(st.lists(st.binary(max_size=4)), st.data())
def test_the_tokens_over_a_piece_hold_it(data: list[bytes], draw: st.DataObject) -> None:
    joined = b"".join(data)
    begin = draw.draw(st.integers(0, len(joined)))
    text = joined[begin : draw.draw(st.integers(begin, len(joined)))]
    overlay = lay(_tokens(*data), text)
    assert overlay is not None
    start = draw.draw(st.integers(0, len(text)))
    end = draw.draw(st.integers(start, len(text)))
    over = overlay.over(start, end)
    held = b"".join(data[index] for index in over)
    if start < end:
        before = start - overlay.start(over[0])
        assert held[before : before + end - start] == text[start:end]
        assert before < len(data[over[0]]) or not data[over[0]]
    inside = [index for index in over if overlay.within(index, start, end)]
    assert b"".join(data[index] for index in inside) in text[start:end]
