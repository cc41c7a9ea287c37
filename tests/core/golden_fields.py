"""Answers with the tokens they are made of, and what other libraries say of their fields.

The numbers were computed once by llm-structured-confidence 0.4.5 and structured-logprobs 0.1.5 (both from PyPI) on
Python 3.11; tests/oracles computes them anew where these are installed. Left out is what they get wrong:

- structured-logprobs counts the quotes of a string and leaves out a last token that holds what follows the value, so
  here it is asked only about values that begin and end with a token, between quotes of logprob 0; it gives booleans
  and null no number;
- both count characters, not bytes, so that a character cut over tokens shifts every value behind it; both refuse
  truncated JSON and text around it, and read no escapes in names.
"""

from typing import Final

Rows = list[tuple[str, float]]

TOKENS: Final[dict[str, Rows]] = {
    "classifier": [
        ('{"', -0.0021), ("category", -1.3e-05), ('":"', -0.00034), ("health", -0.16802), (" and", -3.1e-06),
        (" wellness", -7.4e-05), ('"}', -0.0119),
    ],
    "prices and colours": [
        ("{", 0.0), ('"', 0.0), ("total", -0.01), ('":', 0.0), (" ", -0.002), ("12", -0.31), (".", -0.0007),
        ("50", -1.25), (",", -0.003), (' "', 0.0), ("colour", -0.02), ('":', 0.0), (' "', 0.0), ("dark", -0.9),
        (" blue", -0.4), (".", -0.05), ('"', 0.0), (",", -0.06), (' "', 0.0), ("lines", -0.11), ('":', 0.0), (" [", -0.2),
        ("1", -0.7), (",", -0.01), (" ", -0.01), ("-", -0.6), ("2", -0.08), ("]}", -0.4),
    ],
    "nested": [
        ('{"results":[{"', -0.5), ("id", -0.01), ('":', -0.01), ("1", -0.2), (',"', -0.03), ("tags", -0.04),
        ('":["', -0.05), ("new", -0.6), ('","', -0.07), ("old", -0.8), ('"]},{"', -0.09), ("id", -0.1), ('":', -0.11),
        ("2", -0.12), (',"', -0.13), ("tags", -0.14), ('":[', -0.15), ("]}],", -0.16), ('"ok', -0.17), ('":', -0.18),
        (" true", -0.19), (',"', -0.2), ("none", -0.21), ('":', -0.22), ("null", -0.23), ("}", -0.24),
    ],
    "shared tokens": [('{"a":"', -0.3), ("x", -0.7), ('y","b', -0.2), ('":"z"', -0.6), (',"c":4', -0.05), ("2}", -0.4)],
    "one token": [('{"a":"x"}', -0.25)],
    "not ASCII": [('{"', -0.1), ("größe", -0.2), ('":"', -0.3), ("klein", -0.4), (" 🦆", -0.5), ("é", -0.6), ('"}', -0.7)],
    "escapes in a value": [('{"a":"', -0.1), ('say \\"', -0.2), ("hi", -0.3), ('\\"', -0.4), ("\\n", -0.5), ('"}', -0.6)],
}  # fmt: skip

Joint = dict[str, tuple[int, float, float]]
"""By JSON Pointer: tokens, joint probability, its geometric mean."""

LLM_STRUCTURED_CONFIDENCE: Final[dict[str, Joint]] = {
    "classifier": {"/category": (3, 0.8452717548123532, 0.9455085324356332)},
    "prices and colours": {
        "/total": (3, 0.20998902742225098, 0.5943818426919131),
        "/colour": (3, 0.2592402606458915, 0.6376281516217733),
        "/lines/0": (1, 0.4965853037914095, 0.4965853037914095),
        "/lines/1": (2, 0.5066169923655897, 0.7117703227626098),
    },
    "nested": {
        "/results/0/id": (1, 0.8187307530779818, 0.8187307530779818),
        "/results/0/tags/0": (1, 0.5488116360940264, 0.5488116360940264),
        "/results/0/tags/1": (1, 0.44932896411722156, 0.44932896411722156),
        "/results/1/id": (1, 0.8869204367171575, 0.8869204367171575),
        "/ok": (1, 0.8269591339433623, 0.8269591339433623),
        "/none": (1, 0.794533602503334, 0.794533602503334),
    },
    "shared tokens": {
        "/a": (2, 0.40656965974059917, 0.6376281516217733),
        "/b": (1, 0.5488116360940264, 0.5488116360940264),
        "/c": (2, 0.6376281516217733, 0.7985162187593771),
    },
    "one token": {"/a": (1, 0.7788007830714049, 0.7788007830714049)},
    "not ASCII": {"/größe": (3, 0.22313016014842982, 0.6065306597126334)},
    "escapes in a value": {"/a": (4, 0.2465969639416065, 0.7046880897187134)},
}

STRUCTURED_LOGPROBS: Final[dict[str, dict[str, float]]] = {
    "prices and colours": {
        "/total": -1.5607,
        "/colour": -1.35,
        "/lines/0": -0.7,
        "/lines/1": -0.6799999999999999,
    },
    "nested": {"/results/0/id": -0.2, "/results/1/id": -0.12},
}
"""By JSON Pointer: sum of logprobs."""
