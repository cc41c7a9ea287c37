"""Fields against two libraries that read the same from the same answers, where they are right."""

import json
import re
from importlib import import_module
from math import exp
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.fields import fields
from proxy.core.tokens import Token
from tests.core.golden_fields import (
    LLM_STRUCTURED_CONFIDENCE,
    STRUCTURED_LOGPROBS,
    TOKENS,
    Joint,
    Rows,
)


def _text(rows: Rows) -> str:
    return "".join(text for text, _ in rows)


def llm_structured_confidence(rows: Rows) -> Joint:
    """By JSON Pointer: tokens, joint probability, geometric mean."""
    content = [{"token": text, "logprob": logprob, "top_logprobs": []} for text, logprob in rows]
    response = {"choices": [{"message": {"content": _text(rows)}, "logprobs": {"content": content}}]}
    found = import_module("llm_structured_confidence").extract_logprobs(response)
    return {
        "/" + entry.path.replace("[", ".").replace("]", "").lstrip(".").replace(".", "/"): (
            len(entry.field_logprob.tokens),
            entry.field_logprob.joint_probability,
            entry.field_logprob.mean_probability,
        )
        for entry in found
    }


def structured_logprobs(rows: Rows) -> dict[str, float]:
    """By JSON Pointer: sum of logprobs, of strings and numbers."""
    tokens = [SimpleNamespace(token=text, logprob=logprob) for text, logprob in rows]
    message = SimpleNamespace(content=_text(rows))
    choice = SimpleNamespace(message=message, logprobs=SimpleNamespace(content=tokens))
    main = import_module("structured_logprobs.main")
    indices = main.map_characters_to_token_indices(tokens)
    found: dict[str, float] = {}

    def walk(pointer: str, node: Any) -> None:
        if isinstance(node, dict):
            for name, child in node.items():
                walk(f"{pointer}/{name}", child)
        elif isinstance(node, list):
            for index, child in enumerate(node):
                walk(f"{pointer}/{index}", child)
        elif isinstance(node, float | int):
            found[pointer] = node

    walk("", main.extract_json_data(choice.message.content, tokens, indices))
    return found


def ours(rows: Rows) -> Joint:
    tokens = [Token(text.encode(), logprob) for text, logprob in rows]
    found = fields(tokens, _text(rows).encode())
    assert found is not None
    return {
        pointer: (field.tokens, field.probability or 0.0, field.geometric_mean_probability or 0.0)
        for pointer, field in found.items()
    }


@pytest.mark.parametrize("name", TOKENS)
def test_the_golden_values_are_what_the_library_says(name: str) -> None:
    said = llm_structured_confidence(TOKENS[name])
    assert said.keys() == LLM_STRUCTURED_CONFIDENCE[name].keys()
    for pointer, values in said.items():
        assert values == pytest.approx(LLM_STRUCTURED_CONFIDENCE[name][pointer], rel=1e-12), pointer


@pytest.mark.parametrize("name", STRUCTURED_LOGPROBS)
def test_the_golden_sums_are_what_the_library_says(name: str) -> None:
    said = structured_logprobs(TOKENS[name])
    for pointer, total in STRUCTURED_LOGPROBS[name].items():
        assert said[pointer] == pytest.approx(total, rel=1e-12), pointer


# What the oracles read rightly: names without the characters of their paths, no empty values, strings without
# characters that json.dumps escapes.
_WORDS = st.text("abcdefghij äß🦆,:{}[]", min_size=1, max_size=12)
_SCALARS = st.one_of(
    _WORDS,
    st.integers(-(10**9), 10**9),
    st.floats(-1e6, 1e6).map(lambda x: round(x, 3)),
    st.booleans(),
    st.none(),
)
_NAMES = st.text("abcdefgh", min_size=1, max_size=6)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=4) | st.dictionaries(_NAMES, inner, min_size=1, max_size=4)
    ),
    max_leaves=12,
)
_DOCUMENTS = st.dictionaries(_NAMES, _VALUES, min_size=1, max_size=4)


@st.composite
def _answers(draw: st.DrawFn) -> Rows:
    """A document cut into tokens between any two characters."""
    text = json.dumps(
        draw(_DOCUMENTS), ensure_ascii=False, separators=draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    )
    rows: Rows = []
    while text:
        length = draw(st.integers(1, 8))
        rows.append((text[:length], -draw(st.floats(0, 8, allow_subnormal=False))))
        text = text[length:]
    return rows


@given(_answers())
def test_any_document_in_any_tokens(rows: Rows) -> None:
    said = llm_structured_confidence(rows)
    found = ours(rows)
    assert found.keys() == said.keys()
    for pointer, values in said.items():
        assert found[pointer] == pytest.approx(values, rel=1e-12), pointer


@given(_answers(), st.data())
def test_any_document_whose_values_are_tokens_of_their_own(rows: Rows, data: st.DataObject) -> None:
    pieces = re.findall(r'"|[\[\]{},: ]|[^"\[\]{},: ]+', _text(rows))
    cut = [(piece, 0.0 if piece == '"' else -data.draw(st.floats(0, 8))) for piece in pieces]
    found = ours(cut)
    for pointer, total in structured_logprobs(cut).items():
        assert found[pointer][1] == pytest.approx(exp(total), rel=1e-12), pointer
