"""Confidence of the values of a structured answer.

Law: a value's figures are those of the tokens that hold its bytes; whatever the bytes, nothing is raised.
"""

import json
from math import exp, inf, log, nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.fields import Field, describe, fields
from proxy.core.tokens import Token, token_bytes
from tests.core.golden_fields import LLM_STRUCTURED_CONFIDENCE, STRUCTURED_LOGPROBS, TOKENS

CAPTURES = Path(__file__).parents[1] / "captures"

Row = tuple[str | bytes, float | None]


def _tokens(*rows: Row) -> list[Token]:
    return [Token(text if isinstance(text, bytes) else text.encode(), logprob) for text, logprob in rows]


def _fields(*rows: Row, text: str | None = None) -> dict[str, Field]:
    tokens = _tokens(*rows)
    found = fields(tokens, text.encode() if text is not None else b"".join(token.data for token in tokens))
    assert found is not None
    return found


def _counts(*rows: Row, text: str | None = None) -> dict[str, tuple[float, int, int]]:
    """Sum of logprobs, to two places, tokens, shared tokens."""
    return {
        pointer: (round(_sum(field), 2), field.tokens, field.shared_tokens)
        for pointer, field in _fields(*rows, text=text).items()
    }


def _sum(field: Field) -> float:
    assert field.probability is not None
    return log(field.probability)


@pytest.mark.parametrize("name", TOKENS)
def test_equal_to_llm_structured_confidence(name: str) -> None:
    found = _fields(*TOKENS[name])
    said = LLM_STRUCTURED_CONFIDENCE[name]
    # It leaves out what is empty.
    assert found.keys() - said.keys() <= {"/results/1/tags"}
    for pointer, (count, joint, mean) in said.items():
        field = found[pointer]
        assert field.tokens == count
        assert field.probability == pytest.approx(joint, rel=1e-12)
        assert field.geometric_mean_probability == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("name", STRUCTURED_LOGPROBS)
def test_equal_to_structured_logprobs(name: str) -> None:
    found = _fields(*TOKENS[name])
    for pointer, total in STRUCTURED_LOGPROBS[name].items():
        assert found[pointer].probability == pytest.approx(exp(total), rel=1e-12)


def test_the_figures_of_one_value() -> None:
    (field,) = _fields(('{"a":"', -9.0), ("x", -0.5), (" y", -1.5), ('"}', -9.0)).values()
    assert field == Field(exp(-1.0), exp(-2.0), exp(-1.5), 2, 0)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        pytest.param([('{"a":', -1.0), ("12", -0.1), ("3", -0.2), ("}", -1.0)], {"/a": (-0.3, 2, 0)}, id="number"),
        pytest.param([('{"a":', -1.0), (" true", -0.1), ("}", -1.0)], {"/a": (-0.1, 1, 1)}, id="a blank before"),
        pytest.param([('{"a":"', -1.0), ('x"', -0.1), ("}", -1.0)], {"/a": (-0.1, 1, 1)}, id="the closing quote"),
        pytest.param([('{"a":"x"}', -0.1)], {"/a": (-0.1, 1, 1)}, id="all in one token"),
        pytest.param([('{"a":"x","b":"y"}', -0.1)], {"/a": (-0.1, 1, 1), "/b": (-0.1, 1, 1)}, id="two in one token"),
        pytest.param([('{"a":', -1.0), ('"', -0.1), ('"', -0.2), ("}", -1.0)], {"/a": (-0.3, 2, 0)}, id="empty string"),
        pytest.param([('{"a":"', -0.1), ('"}', -0.2)], {"/a": (-0.3, 2, 2)}, id="empty string, shared"),
        pytest.param([("[[", -0.1), ("],", -0.2), ("{}", -0.3), ("]", -1.0)], {"/0": (-0.3, 2, 2), "/1": (-0.3, 1, 0)}, id="empty array, empty object"),
        pytest.param([("[", -1.0), ("null", -0.1), (",", -1.0), ("false", -0.2), ("]", -1.0)], {"/0": (-0.1, 1, 0), "/1": (-0.2, 1, 0)}, id="words"),
        pytest.param([("Par", -0.1), ("is", -0.2)], {}, id="no document"),
        pytest.param([('"', -1.0), ("Par", -0.1), ("is", -0.2), ('"', -1.0)], {"": (-0.3, 2, 0)}, id="root string"),
        pytest.param([("4", -0.1), ("2", -0.2), ("\n", -1.0)], {"": (-0.3, 2, 0)}, id="root number"),
        pytest.param([('["', -1.0), (b"\xf0\x9f", -0.1), (b"\xa6", -0.2), (b"\x86", -0.3), ('"]', -1.0)], {"/0": (-0.6, 3, 0)}, id="emoji cut over tokens"),
        pytest.param([('["', -1.0), (b"\xf0\x9f", -0.1), (b"\xa6\x86x", -0.2), ('","y"]', -0.3)], {"/0": (-0.3, 2, 0), "/1": (-0.3, 1, 1)}, id="and the next value"),
        pytest.param([('["', -1.0), ("", -0.1), ("é", -0.2), ('"', -1.0), ("", -5.0), ("]", -1.0)], {"/0": (-0.3, 2, 0)}, id="a piece without bytes"),
        pytest.param([('["', -1.0), ("\\u00", -0.1), ("e9", -0.2), ('"]', -1.0)], {"/0": (-0.3, 2, 0)}, id="an escape cut over tokens"),
        pytest.param([('{"a":', -1.0), ("1", -0.1), (',"a":', -1.0), ("2", -0.2), ("}", -1.0)], {"/a": (-0.2, 1, 0)}, id="the last of two members"),
        pytest.param([('{"a":', -1.0), ("1", -0.1), (',"b":"', -1.0), ("tru", -0.2)], {"/a": (-0.1, 1, 0)}, id="truncated"),
        pytest.param([("```json\n[", -1.0), ("1", -0.1), ("]\n```", -1.0)], {"/0": (-0.1, 1, 0)}, id="fence"),
    ],
)  # fmt: skip
def test_the_tokens_of_a_value(rows: list[Row], found: dict[str, tuple[float, int, int]]) -> None:
    assert _counts(*rows) == found


def test_the_text_is_a_part_of_the_tokens() -> None:
    rows: list[Row] = [("```", -1.0), ("json\n[", -1.0), ("1", -0.1), ("]\n", -1.0), ("```", -1.0)]
    assert _counts(*rows, text="[1]") == {"/0": (-0.1, 1, 0)}
    assert _counts(("x4", -0.1), ("2.", -0.2), text="42") == {"": (-0.3, 2, 2)}
    # Reasoning that quotes the answer comes first.
    assert _counts(("[1]", -1.0), ("</think>", -1.0), ("[1]", -0.1), text="[1]") == {"/0": (-0.1, 1, 1)}


def test_a_real_answer_under_a_schema() -> None:
    # llama.cpp's tokens have a fence before the document that the content does not show.
    capture = CAPTURES / "openai-chat" / "llamacpp-b11549-chat_lp_schema.upstream.json"
    (choice,) = json.loads(capture.read_bytes())["choices"]
    tokens = [
        Token(token_bytes(row["token"], row["bytes"]), row["logprob"])
        for row in choice["logprobs"]["content"]
    ]
    found = fields(tokens, choice["message"]["content"].encode())
    (paris,) = [token.logprob for token in tokens if token.data == b"Paris"]
    assert found is not None
    assert paris is not None
    assert found == {"/city": Field(exp(paris), exp(paris), exp(paris), 1, 0)}


def test_not_aligned() -> None:
    assert fields(_tokens(("[1", -1.0), ("]", -1.0)), b"[2]") is None
    assert fields([], b"[2]") is None
    assert fields(_tokens(("", -1.0)), b"[2]") is None
    assert fields([], b"") == {}


@pytest.mark.parametrize("logprob", [None, nan, 0.5])
def test_unscored_tokens_are_left_out(logprob: float | None) -> None:
    (field,) = _fields(('["', -9.0), ("x", -0.5), ("y", logprob), ('"]', -9.0)).values()
    assert field == Field(exp(-0.5), exp(-0.5), exp(-0.5), 1, 0)
    (field,) = _fields(('["', -9.0), ("y", logprob), ('"]', -9.0)).values()
    assert field == Field(None, None, None, 0, 0)


@pytest.mark.parametrize("logprob", [-9999.0, -inf, -3.4028234663852886e38])
def test_a_sentinel_makes_the_value_unlikely(logprob: float) -> None:
    (field,) = _fields(('["', -9.0), ("x", -0.5), ("y", logprob), ('"]', -9.0)).values()
    assert field == Field(exp(-0.5), 0.0, 0.0, 1, 0)
    (field,) = _fields(('["', -9.0), ("y", logprob), ('"]', -9.0)).values()
    assert field == Field(None, 0.0, 0.0, 0, 0)


def test_rounding_over_ln_1() -> None:
    (field,) = _fields(("[", -9.0), ("1", 1e-4), ("]", -9.0)).values()
    assert field == Field(1.0, 1.0, 1.0, 1, 0)


def test_a_long_value_does_not_underflow() -> None:
    rows: list[Row] = [('["', -9.0), *[("x", -0.7)] * 10_000, ('"]', -9.0)]
    (field,) = _fields(*rows).values()
    assert field.probability == 0.0
    assert field.geometric_mean_probability == pytest.approx(exp(-0.7), rel=1e-12)


def test_limits() -> None:
    text = b"[" + b",".join([b"1"] * 11) + b"]"
    tokens = [Token(text, -0.5)]
    assert len(fields(tokens, text, max_fields=11) or {}) == 11
    assert fields(tokens, text, max_fields=10) is None
    assert fields(tokens, text, max_bytes=len(text) - 1) is None
    deep = b"[" * 1000
    assert fields([Token(deep, -0.5)], deep) is None


def test_plain_values() -> None:
    found = describe(_fields(('["', -9.0), ("x", 0.0), ('", 1]', None)))
    assert json.loads(json.dumps(found)) == {
        "/0": {
            "geometric_mean_probability": 1.0,
            "probability": 1.0,
            "min_probability": 1.0,
            "tokens": 1,
            "shared_tokens": 0,
        },
        "/1": {
            "geometric_mean_probability": None,
            "probability": None,
            "min_probability": None,
            "tokens": 0,
            "shared_tokens": 0,
        },
    }


_LOGPROBS = st.none() | st.floats()
_PIECES = st.binary(max_size=4) | st.text('{}[]:,"\\ 1-.etruaé', max_size=4).map(str.encode)


@given(st.lists(st.tuples(_PIECES, _LOGPROBS)), st.data())
def test_any_tokens(rows: list[tuple[bytes, float | None]], data: st.DataObject) -> None:
    tokens = [Token(piece, logprob) for piece, logprob in rows]
    joined = b"".join(token.data for token in tokens)
    begin = data.draw(st.integers(0, len(joined)))
    found = fields(tokens, joined[begin : data.draw(st.integers(begin, len(joined)))])
    assert found is not None
    json.dumps(describe(found), allow_nan=False).encode()
    for field in found.values():
        assert field.shared_tokens <= field.tokens <= len(tokens)
        for value in (field.geometric_mean_probability, field.probability, field.min_probability):
            assert value is None or 0.0 <= value <= 1.0
        if field.tokens and field.probability:
            assert field.min_probability is not None
            assert field.geometric_mean_probability is not None
            assert field.probability <= field.min_probability * (1 + 1e-12)
            assert field.min_probability <= field.geometric_mean_probability * (1 + 1e-12)
