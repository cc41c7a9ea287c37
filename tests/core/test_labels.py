"""Probability of labels, from the alternatives of one token."""

import json
from math import exp, fsum, inf, log, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.labels import LabelSpec, labels
from proxy.core.tokens import Alternative, Token

Row = str | bytes | tuple[str | bytes, dict[str | bytes, float]]
"""A token, or one with the probabilities of its alternatives; the chosen one must be among them."""


def _data(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def _tokens(*rows: Row) -> list[Token]:
    tokens = []
    for row in rows:
        if isinstance(row, str | bytes):
            tokens.append(Token(_data(row), -9.0))
            continue
        text, listed = row
        alternatives = [Alternative(_data(other), log(p)) for other, p in listed.items()]
        tokens.append(Token(_data(text), log(listed[text]), None, alternatives))
    return tokens


def _spec(*names: str, at: str | None = None) -> LabelSpec:
    spec = LabelSpec.parse(list(names) if at is None else {"at": at, "values": list(names)})
    assert isinstance(spec, LabelSpec), spec
    return spec


def _labels(spec: LabelSpec, *rows: Row, text: str | None = None) -> dict[str, Any]:
    tokens = _tokens(*rows)
    joined = b"".join(token.data for token in tokens)
    found = labels(tokens, joined if text is None else text.encode(), spec)
    assert found is not None
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(child) for name, child in value.items()}
    return round(value, 12) if isinstance(value, float) else value


def test_one_label_in_several_spellings() -> None:
    # As in OpenAI's cookbook: `Technology` and ` Technology` are different tokens.
    listed: dict[str | bytes, float] = {
        "Technology": 0.5,
        " Technology": 0.2,
        " technology": 0.1,
        "Sports": 0.1,
        "The": 0.05,
    }
    found = _labels(_spec("Technology", "Sports"), ("Technology", listed))
    assert _rounded(found) == {
        "token_index": 0,
        "labels": {
            "Technology": {"probability": 0.8, "normalized": round(0.8 / 0.9, 12)},
            "Sports": {"probability": 0.1, "normalized": round(0.1 / 0.9, 12)},
        },
        "ambiguous": 0.0,
        "rest": 0.1,
    }  # fmt: skip


def _probabilities(found: dict[str, Any]) -> dict[str, Any]:
    """By label; a pair where there are two bounds."""
    return {
        name: (entry["probability"], entry["probability_upper"])
        if "probability_upper" in entry
        else entry["probability"]
        for name, entry in _rounded(found)["labels"].items()
    }


SPAM: dict[str | bytes, float] = {"spam": 0.7, "ham": 0.2}


@pytest.mark.parametrize(
    ("rows", "index"),
    [
        pytest.param([("spam", SPAM)], 0, id="alone"),
        pytest.param(["\n", "\n\n", ("spam", SPAM)], 2, id="leading line ends"),
        pytest.param([' "', ("spam", SPAM), '"'], 1, id="a quote"),
        pytest.param(["“", ("spam", SPAM), "”"], 1, id="a typographic quote"),
        pytest.param([b"\xe2\x80", b"\x9c", ("spam", SPAM), "”"], 2, id="the same, cut over tokens"),
        pytest.param(["**", "`", ("spam", SPAM), "`**"], 2, id="emphasis and code"),
        pytest.param([("\n\nspam", {"\n\nspam": 0.7, "\nham": 0.2})], 0, id="blanks in the token"),
        pytest.param([('"spam', {'"spam': 0.7, "ham": 0.2})], 0, id="the quote in the token"),
        pytest.param([("**spam", {"**spam": 0.7, "*ham": 0.2})], 0, id="emphasis in the token"),
        pytest.param([("SPAM", {"SPAM": 0.7, "Ham": 0.2})], 0, id="another case"),
        pytest.param([("sp", {"sp": 0.7, "h": 0.2}), "am"], 0, id="several tokens: the first decides"),
        pytest.param(["", ("spam", SPAM)], 1, id="a token without bytes"),
        pytest.param([("spam", SPAM), " because it is no ham"], 0, id="more behind it"),
    ],
)
def test_the_token_where_the_label_begins(rows: list[Row], index: int) -> None:
    found = _labels(_spec("spam", "ham"), *rows)
    assert found["token_index"] == index
    assert _probabilities(found) == {"spam": 0.7, "ham": 0.2}


@pytest.mark.parametrize(
    ("rows", "index"),
    [
        pytest.param(['{"', "label", '":"', ("spam", SPAM), '"}'], 3, id="of its own"),
        pytest.param(['{"why":"ham","label":', (' "spam', {' "spam': 0.7, ' "ham': 0.2}), '"}'], 1, id="with the quote"),
        pytest.param(['{"label":"', ('spam"}', {'spam"}': 0.7, 'ham","': 0.1, 'ham"': 0.1})], 1, id="with the end"),
        pytest.param(['{"label', ('":"spam', {'":"spam': 0.7, '":"ham': 0.2}), '"}'], 1, id="with the name's end"),
        pytest.param(['{"label":"', " ", ("spam", SPAM), '"}'], 2, id="a blank in the value"),
        pytest.param(['{"label":"', '\\"', ("spam", SPAM), '\\""}'], 2, id="quotes in the value"),
        pytest.param(['```json\n{"label":"', ("spam", SPAM), '"}\n```'], 1, id="fence"),
        pytest.param(['{"label":"ham","label":"', ("spam", SPAM), '"}'], 1, id="the last of two members"),
    ],
)  # fmt: skip
def test_the_value_where_the_label_is(rows: list[Row], index: int) -> None:
    found = _labels(_spec("spam", "ham", at="/label"), *rows)
    assert found["token_index"] == index
    assert _probabilities(found) == {"spam": 0.7, "ham": 0.2}


def test_values_that_are_no_strings() -> None:
    rows: list[Row] = ['{"ok":', (" true", {" true": 0.7, "false": 0.1, " false,": 0.1, ' "': 0.1}), "}"]
    assert _probabilities(_labels(_spec("true", "false", at="/ok"), *rows)) == {"true": 0.7, "false": 0.2}
    rows = ['{"stars":', ("1", {"1": 0.5, "10": 0.2, "1}": 0.1, "2": 0.1}), "}"]
    found = _labels(_spec("1", "2", "10", at="/stars"), *rows)
    assert _probabilities(found) == {"1": (0.1, 0.6), "2": 0.1, "10": (0.2, 0.7)}
    rows = ['{"a":["x","', ("spam", SPAM), '"]}']
    assert _probabilities(_labels(_spec("spam", "ham", at="/a/1"), *rows)) == {"spam": 0.7, "ham": 0.2}


def test_labels_that_begin_alike() -> None:
    found = _labels(_spec("A", "AB", "C"), ("A", {"A": 0.6, "AB": 0.1, "a ": 0.05, "C": 0.05, "D": 0.1}))
    assert _rounded(found) == {
        "token_index": 0,
        "labels": {
            # `A` may become "AB"; `a ` may not.
            "A": {"probability": 0.05, "probability_upper": 0.65, "normalized": 0.0625},
            "AB": {"probability": 0.1, "probability_upper": 0.7, "normalized": 0.125},
            "C": {"probability": 0.05, "normalized": 0.0625},
        },
        "ambiguous": 0.6,
        "rest": 0.2,
    }
    found = _labels(_spec("positive", "possible"), ("pos", {"pos": 0.9, "posi": 0.05}))
    assert _probabilities(found) == {"positive": (0.05, 0.95), "possible": (0.0, 0.9)}
    found = _labels(_spec("A", "A B"), ("A ", {"A ": 0.6, "A\n": 0.3}))
    assert _probabilities(found) == {"A": (0.3, 0.9), "A B": (0.0, 0.6)}
    found = _labels(_spec("A", "AB", at="/x"), '{"x":"', ('A"}', {'A"}': 0.6, "A": 0.3}))
    assert _probabilities(found) == {"A": (0.6, 0.9), "AB": (0.0, 0.3)}
    found = _labels(_spec("A", "A*"), ("A", {"A": 0.6, "A*": 0.3}))
    assert _probabilities(found) == {"A": (0.0, 0.6), "A*": (0.3, 0.9)}


def test_only_what_is_ambiguous() -> None:
    found = _labels(_spec("A", "AB"), ("A", {"A": 0.6}))
    assert {name: entry["normalized"] for name, entry in found["labels"].items()} == {"A": None, "AB": None}
    assert found["ambiguous"] == pytest.approx(0.6)


def test_pieces_of_characters() -> None:
    found = _labels(
        _spec("👍", "👎", "🙂"), (b"\xf0\x9f\x91", {b"\xf0\x9f\x91": 0.8, b"\xf0\x9f\x99": 0.1}), b"\x8d"
    )
    assert _probabilities(found) == {"👍": (0.0, 0.8), "👎": (0.0, 0.8), "🙂": 0.1}
    found = _labels(_spec("élevé", "bas"), (b"\xc3", {b"\xc3": 0.8, "bas": 0.1}), b"\xa9lev\xc3\xa9")
    assert _probabilities(found) == {"élevé": 0.8, "bas": 0.1}


def test_folding() -> None:
    found = _labels(_spec("Straße", "Weg"), ("STRASSE", {"STRASSE": 0.5, "Straß": 0.2, "weg": 0.1}))
    assert _probabilities(found) == {"Straße": 0.7, "Weg": 0.1}


def test_without_alternatives_only_the_chosen_one_counts() -> None:
    found = _labels(_spec("spam", "ham"), ("spam", {"spam": 0.7}))
    found_none = labels([Token(b"spam", log(0.7))], b"spam", _spec("spam", "ham"))
    assert found == found_none
    assert _probabilities(found) == {"spam": 0.7, "ham": 0.0}
    assert found["rest"] == pytest.approx(0.3)
    assert found["labels"]["spam"]["normalized"] == 1.0


def test_the_chosen_one_outside_the_list_and_duplicates() -> None:
    ham, spam = Alternative(b"ham", log(0.2)), Alternative(b"spam", log(0.5))
    other = Alternative(b"spam", log(0.1))
    token = Token(b"spam", log(0.1), None, [ham, ham, spam])
    found = labels([token], b"spam", _spec("spam", "ham"))
    assert found is not None
    assert _probabilities(found) == {"spam": 0.6, "ham": 0.2}
    assert labels([token._replace(alternatives=[spam, other, ham])], b"spam", _spec("spam", "ham")) == found


def test_nothing_matches() -> None:
    found = _labels(_spec("spam", "ham"), ("Sure", {"Sure": 0.7, "": 0.1, "**": 0.1}))
    assert _rounded(found) == {
        "token_index": 0,
        "labels": {"spam": {"probability": 0.0, "normalized": None}, "ham": {"probability": 0.0, "normalized": None}},
        "ambiguous": 0.0,
        "rest": 1.0,
    }  # fmt: skip


def test_sums_never_pass_1() -> None:
    found = _labels(_spec("spam", "ham"), ("spam", {"spam": 0.75, "ham": 0.75}))
    assert found["rest"] == 0.0
    assert _rounded(found["labels"]["spam"]) == {"probability": 0.75, "normalized": 0.5}
    token = Token(b"spam", 1e-4, None, [Alternative(b" spam", 0.0)])
    capped = labels([token], b"spam", _spec("spam", "ham"))
    assert capped is not None
    assert _probabilities(capped) == {"spam": 1.0, "ham": 0.0}
    assert capped["rest"] == 0.0


def test_sentinels_and_nulls() -> None:
    listed = [
        Alternative(b"spam", None),
        Alternative(b"spam", nan),
        Alternative(b"spam", 7.0),
        Alternative(b"ham", -inf),
    ]
    found = labels([Token(b"spam", -9999.0, None, listed)], b"spam", _spec("spam", "ham"))
    assert found is not None
    assert _probabilities(found) == {"spam": 0.0, "ham": 0.0}
    assert found["rest"] == 1.0
    nothing = labels([Token(b"spam", None, None, listed[:3])], b"spam", _spec("spam", "ham"))
    entries = {name: {"probability": None, "normalized": None} for name in ("spam", "ham")}
    assert nothing == {
        "token_index": 0,
        "labels": entries,
        "ambiguous": None,
        "rest": None,
        "reason": "upstream_sent_none",
    }


@pytest.mark.parametrize(
    ("text", "at"),
    [("", None), (" \n", None), ('"**"', None), ("spam", "/label"), ('{"a":1}', "/label"), ('{"label":""}', "/label"),
     ('{"label":"sp', "/label"), ("[" * 100, "/label"), ('{"label":{"a":1}}', "/label")],
)  # fmt: skip
def test_no_place_for_a_label(text: str, at: str | None) -> None:
    found = _labels(_spec("spam", "ham", at=at), text)
    assert found["reason"] == "no_label"
    assert found["token_index"] is None
    assert found["labels"]["spam"] == {"probability": None, "normalized": None}


def test_tokens_and_text() -> None:
    spec = _spec("spam", "ham")
    assert labels(_tokens(("spam", SPAM)), b"other", spec) is None
    # Of a reasoning model's tokens the last that show the text.
    found = _labels(spec, "spam", "</think>", "\n", ("spam", SPAM), "<end>", text="spam")
    assert found["token_index"] == 3
    assert _probabilities(found) == {"spam": 0.7, "ham": 0.2}
    found = _labels(spec, ("</think>spam", {"</think>spam": 0.7, "</think>ham": 0.2}), text="spam")
    assert _probabilities(found) == {"spam": 0.7, "ham": 0.2}


def test_spec() -> None:
    spec = LabelSpec.parse([" Spam", "ham"])
    assert isinstance(spec, LabelSpec)
    assert (spec.labels, spec.at) == ((" Spam", "ham"), None)
    assert _spec("a", "b", at="").at == ""
    assert _spec("a", "b", at="/a~0~1/é").at == "/a~0~1/é"
    assert list(_labels(spec, ("spam", SPAM))["labels"]) == [" Spam", "ham"]
    assert len(_spec(*[f"label {index}" for index in range(100)]).labels) == 100


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (None, "a list of strings"),
        ("spam", "a list of strings"),
        (["spam", 1], "a list of strings"),
        (["spam", None], "a list of strings"),
        ({"at": "/label", "values": "spam"}, "a list of strings"),
        ({"at": "/label"}, "'values'"),
        ({"values": ["spam", "ham"]}, "'at'"),
        ({"at": "/label", "values": ["spam", "ham"], "top": 1}, "no others"),
        ({"at": "label", "values": ["spam", "ham"]}, "JSON Pointer"),
        ({"at": "/~2", "values": ["spam", "ham"]}, "JSON Pointer"),
        ({"at": 1, "values": ["spam", "ham"]}, "JSON Pointer"),
        ([], "2 to 100"),
        (["spam"], "2 to 100"),
        ([f"label {index}" for index in range(101)], "2 to 100"),
        (["spam", " "], "number 2"),
        (["", "spam"], "number 1"),
        (["spam", '"**'], "number 2"),
        (["spam", "x" * 257], "256 characters at most: see number 2"),
        (["spam", "\ud83e"], "whole characters: see number 2"),
        (["spam", "ham", "Spam "], "see 1 and 3"),
        (["Straße", "STRASSE"], "see 1 and 2"),
        (["spam", "'spam'"], "see 1 and 2"),
    ],
)
def test_wrong_specs(value: object, wrong: str) -> None:
    said = LabelSpec.parse(value)
    assert isinstance(said, str)
    assert said.startswith("must ")
    assert wrong in said
    assert "spam" not in said.lower()


_TEXTS = st.text("ab \"*'“A\n{}:", max_size=4)
_ALTERNATIVES = st.lists(
    st.builds(Alternative, _TEXTS.map(str.encode) | st.binary(max_size=3), st.none() | st.floats())
)


@given(
    st.lists(st.builds(Token, _TEXTS.map(str.encode), st.none() | st.floats(), st.none(), _ALTERNATIVES)),
    st.booleans(),
)
def test_any_tokens(tokens: list[Token], value: bool) -> None:
    spec = _spec("a", "ab", "b a", at="" if value else None)
    found = labels(tokens, b"".join(token.data for token in tokens), spec)
    assert found is not None
    json.dumps(found, allow_nan=False).encode()


@given(
    st.dictionaries(st.sampled_from(["a", "ab", "abc", "b", " b", "c", "A ", '"a', "x"]), st.floats(1e-9, 1))
)
def test_the_masses_add_up(weights: dict[str, float]) -> None:
    whole = fsum(weights.values()) + 0.5
    listed = [Alternative(text.encode(), log(weight / whole)) for text, weight in weights.items()]
    found: Any = labels([Token(b"x", -inf, None, listed)], b"x", _spec("a", "abc", "b"))
    sure = fsum(entry["probability"] for entry in found["labels"].values())
    assert sure + found["ambiguous"] + found["rest"] == pytest.approx(1, rel=1e-12)
    seen = fsum(exp(logprob or 0) for text, logprob in listed if text not in (b"c", b"x"))
    assert sure + found["ambiguous"] == pytest.approx(seen, rel=1e-12, abs=1e-15)
    for entry in found["labels"].values():
        assert entry["probability"] <= entry.get("probability_upper", 1.0)
        assert entry["normalized"] is None or 0 <= entry["normalized"] <= 1
