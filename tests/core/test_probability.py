"""The number and its spelling."""

import json
from math import exp, inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.probability import probability, spell


@pytest.mark.parametrize(
    ("logprob", "expected"),
    [
        (0, 1.0),
        (-0.0, 1.0),
        (0.0, 1.0),
        (1.1920929e-07, 1.0),
        (1e-3, 1.0),
        (1.0000001e-3, None),
        (23.9, None),
        (710.0, None),
        (inf, None),
        (nan, None),
        (None, None),
        (-9999.0, 0.0),
        (-3.4028234663852886e38, 0.0),
        (-inf, 0.0),
        (-745.13, 5e-324),
        (-100.0, 3.720075976020836e-44),
        (-0.5, 0.6065306597126334),
    ],
)
def test_probability(logprob: float | None, expected: float | None) -> None:
    assert probability(logprob) == expected


@given(st.lists(st.floats(-800, 0)))
def test_the_spelling_reads_back_the_same(logprobs: list[float]) -> None:
    values = [probability(x) for x in logprobs]
    assert values == [exp(x) for x in logprobs]
    assert [json.loads(text) for text in spell(values)] == values


@given(st.floats(1e-300, 1.0))
def test_the_spelling_has_no_digit_too_many(value: float) -> None:
    digits = spell([value])[0].split(b"e")[0].replace(b".", b"").strip(b"0")
    assert len(digits) <= len(repr(value).split("e")[0].replace(".", "").strip("0"))


def test_null() -> None:
    assert spell([None, 1.0]) == [b"null", b"1.0"]
    assert spell([]) == []
