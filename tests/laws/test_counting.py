"""What is counted, against counts made by hand and against the same request in its other mode.

Law: an answer token counts once, in its choice; what is no answer token never does.
"""

import json
import math
from collections.abc import Iterator

import pytest

from proxy.core.figures import Figures
from proxy.core.rewriter import Rewriter
from tests.laws.harness import Capture, capture, captures, drive, rewrite
from tests.laws.pieces import cut

BY_HAND = [row for row in captures() if "counts" in row.facts]
PAIRS = [
    (row, capture(row.id.replace("_stream_", "_")))
    for row in captures()
    if "_stream_" in row.id and any(other.id == row.id.replace("_stream_", "_") for other in captures())
]
TOLD_APART = {
    "openai-chat/llamacpp-b11549-chat_stream_lp_stop": "the server leaves the last token out of the whole answer",
}
"""Pairs in which the server itself sends other tokens in the two modes."""


OTHER_TEXT = {
    "openai-chat/llamacpp-python-0336-chat_stream_lp_unicode": "the server streams no text for pieces of a character",
}
"""Pairs with equal tokens in which the server shows other text, so that only one of them aligns."""


def _by_key(row: Capture) -> dict[object, Figures]:
    return {choice.key: choice.figures for choice in rewrite(row)[1].choices}


def _numbers(figures: Figures) -> tuple[object, ...]:
    return (
        figures.tokens,
        figures.unscored_tokens,
        figures.sentinel_tokens,
        figures.min_probability_index,
    )


@pytest.mark.parametrize("row", BY_HAND, ids=lambda row: row.id)
def test_counted_by_hand(row: Capture):
    counts = row.facts["counts"]
    _, report = rewrite(row)
    figures = [choice.figures for choice in sorted(report.choices, key=lambda choice: choice.key)]
    assert [row.tokens for row in figures] == counts["tokens"]
    assert [row.unscored_tokens for row in figures] == counts.get("unscored", [0] * len(figures))
    assert [row.sentinel_tokens for row in figures] == counts.get("sentinel", [0] * len(figures))
    assert len(report.scored.get("reasoning", ())) == counts.get("reasoning", 0)
    assert all(row.aligned for row in figures) == counts.get("aligned", True)
    assert len(report.scored.get("answer", ())) == sum(counts["tokens"])


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("openai-responses/openai-responses-stream", [2]),
        ("openai-responses/vllm-responses", [1]),
        ("openai-chat/openai-chat-n2-interleaved", [2, 2]),
        ("openai-completions/openai-completions-echo", [1]),
        ("openai-chat/openai-chat-refusal", [0]),
        ("openai-chat/openai-chat-refusal-stream", [0]),
    ],
)
def test_the_counts_that_started_it(name: str, tokens: list[int]):
    assert [choice.figures.tokens for choice in rewrite(capture(name))[1].choices] == tokens


def test_refusals_are_other_tokens_than_answers():
    _, report = rewrite(capture("openai-chat/openai-chat-refusal"))
    assert report.status_counts == {("other", "scored"): 3}
    assert report.outcome == "not_applicable"


def test_echoed_prompt_of_unknown_length_is_not_counted():
    row = capture("openai-completions/openai-completions-echo")
    ask = row.ask
    blind = type(ask)(asked=True, echo=True, prompt_chars=None)
    rewriter = Rewriter(row.format, "whole", blind)
    drive(rewriter, [row.body])
    assert rewriter.report.status_counts == {}
    assert rewriter.report.failures == {"prompt_unknown": 1}


def test_there_are_pairs_from_every_server():
    assert len(PAIRS) >= 30
    for server in ("llamacpp-b11549", "llamacpp-python-0336", "vllm-0320"):
        assert any(server in row.id for row, _ in PAIRS)


@pytest.mark.parametrize(
    ("streamed", "whole"), [pair for pair in PAIRS if pair[0].id not in TOLD_APART], ids=lambda row: row.id
)
def test_whole_and_streamed_say_the_same(streamed: Capture, whole: Capture):
    one, other = _by_key(streamed), _by_key(whole)
    assert set(one) == set(other)
    for key, figures in one.items():
        assert _numbers(figures) == _numbers(other[key])
        assert streamed.id in OTHER_TEXT or figures.aligned == other[key].aligned
        # The two runs of one server may differ in the last bits of a float32.
        assert figures.logprob_sum == pytest.approx(other[key].logprob_sum, rel=1e-3, abs=1e-4)
        assert (figures.perplexity is None) == (other[key].perplexity is None)
        if figures.perplexity is not None:
            assert figures.perplexity == pytest.approx(other[key].perplexity, rel=1e-3)


@pytest.mark.parametrize("name", TOLD_APART)
def test_where_the_server_sends_other_tokens(name: str):
    """The lists of tokens differ in the bodies themselves, read here by the standard library."""
    streamed, whole = capture(name), capture(name.replace("_stream_", "_"))
    one, other = _texts(streamed), _texts(whole)
    assert one != other
    assert one[: len(other)] == other
    assert _by_key(streamed)[0, 0].tokens == len(one)
    assert _by_key(whole)[0, 0].tokens == len(other)


@pytest.mark.parametrize("name", OTHER_TEXT)
def test_where_the_server_shows_other_text(name: str):
    streamed, whole = capture(name), capture(name.replace("_stream_", "_"))
    assert _texts(streamed) == _texts(whole)
    assert _shown(streamed) != _shown(whole)
    assert _by_key(streamed)[0, 0].aligned
    assert not _by_key(whole)[0, 0].aligned


def _choices(row: Capture) -> Iterator[dict]:
    for piece in cut(row.body, row.framing):
        if piece.payload and piece.payload != b"[DONE]":
            yield from json.loads(piece.payload)["choices"]


def _texts(row: Capture) -> list[str]:
    logprobs = [choice.get("logprobs") or {} for choice in _choices(row)]
    return [token["token"] for one in logprobs for token in one.get("content") or ()]


def _shown(row: Capture) -> str:
    holders = [choice.get("delta") or choice.get("message") or {} for choice in _choices(row)]
    return "".join(holder.get("content") or "" for holder in holders)


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        *((f"openai-chat/T06{letter}", "missing") for letter in "abcdef"),
        ("openai-chat/xai-chat-dropped", "missing"),
        ("openai-chat/llamacpp-python-0336-chat_lp_notop", "missing"),
        ("openai-chat/llamacpp-python-0336-chat_stream_lp_notop", "missing"),
        ("openai-responses/T22b", "missing"),
        ("openai-chat/llamacpp-b11549-chat_plain", "not_asked"),
        ("openai-chat/vllm-0320-chat_stream_plain", "not_asked"),
        ("openai-completions/llamacpp-python-0336-comp_plain", "not_asked"),
        ("openai-responses/vllm-0320-resp_plain", "not_asked"),
        ("openai-chat/openai-chat-toolcall", "not_applicable"),
        ("openai-chat/T17", "not_applicable"),
        ("openai-chat/T33", "not_applicable"),
        ("openai-chat/T00", "scored"),
        ("openai-chat/T43c", "scored"),
        ("openai-chat/T45a", "scored"),
        ("openai-chat/T16", "not_applicable"),
        ("openai-chat/T46c", "unparsable"),
    ],
)
def test_outcome(name: str, outcome: str):
    assert rewrite(capture(name))[1].outcome == outcome


def test_done_is_no_failure():
    for name in (
        "openai-chat/openai-chat-stream",
        "openai-chat/T43d",
        "openai-chat/split-utf8-crlf-id-retry",
    ):
        _, report = rewrite(capture(name))
        assert report.failures == {}, name
        assert report.ended, name


def test_no_capture_fails_for_another_reason_than_its_own():
    """Bodies that are broken or no strict JSON, values of no known shape, an echo without offsets: each says so."""
    failing = {row.id: reasons for row in captures() if (reasons := rewrite(row)[1].failures)}
    assert failing == {row.id: row.facts["failures"] for row in captures() if "failures" in row.facts}


@pytest.mark.parametrize("name", ["T01a", "T01b", "T01c", "T01e"])
def test_numbers_that_are_no_json_are_annotated_and_counted(name: str):
    out, report = rewrite(capture(f"openai-chat/{name}"))
    assert report.failures == {"invalid_json": 1}
    assert report.annotated == 3
    assert b'"probability":' + (b"null" if name == "T01b" else b"0.0") in out
    assert report.choices[0].figures.perplexity == pytest.approx(math.exp(0.5))


def test_a_null_among_alternatives_is_plain_json():
    out, report = rewrite(capture("openai-chat/T01d"))
    assert report.failures == {}
    assert b'"logprob":null,"probability":null' in out


def test_numbers_that_are_no_json_in_lists_are_counted_too():
    _, report = rewrite(capture("openai-completions/llama-cpp-python-completions-crlf"))
    assert report.failures == {"invalid_json": 1}


def test_sentinels_stay_out_of_sums():
    figures = rewrite(capture("openai-chat/T02"))[1].choices[0].figures
    assert (figures.tokens, figures.sentinel_tokens) == (3, 1)
    assert figures.logprob_sum == -1100.25
    assert figures.min_probability == 0.0
    assert figures.min_probability_index == 0
    assert figures.sequence_probability is None
    assert figures.perplexity == pytest.approx(math.exp(1100.25 / 3))
    assert figures.perplexity is not None
    assert math.isfinite(figures.perplexity)
    assert figures.mean_probability == pytest.approx((math.exp(-100) + math.exp(-0.25)) / 3)


def test_probabilities_of_odd_numbers():
    out, _ = rewrite(capture("openai-chat/numbers"))
    for spelled, probability in [
        (b"0", b"1.0"),
        (b"-0.0", b"1.0"),
        (b"-9999.0", b"0.0"),
        (b"-3.4028234663852886e+38", b"0.0"),
        (b"1.1920928955078125e-07", b"1.0"),
        (b"null", b"null"),
    ]:
        assert b'"logprob":' + spelled + b',"probability":' + probability + b"," in out
    assert b'"logprob":"-0.5","bytes"' in out


def test_certain_tokens_have_perplexity_one():
    figures = rewrite(capture("openai-chat/T05"))[1].choices[0].figures
    assert figures.perplexity == pytest.approx(1.0, abs=1e-6)
    assert figures.min_probability == pytest.approx(1.0)


def test_logits_are_no_logprobs():
    out, report = rewrite(capture("openai-chat/vllm-chat-raw-logits"))
    assert b'"logprob":23.875,"probability":null' in out
    assert report.choices[0].figures.perplexity is None


@pytest.mark.parametrize("name", ["T45a", "T45b", "openrouter-chat-crlf", "tgi-chat"])
def test_error_inside_a_stream(name: str):
    assert rewrite(capture(f"openai-chat/{name}"))[1].in_band_error


def test_ordinary_answers_hold_no_error():
    assert not rewrite(capture("openai-responses/openai-responses"))[1].in_band_error
