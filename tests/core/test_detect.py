"""A body whose format nobody named.

Law: a format is taken only if it is the only one; until then nothing leaves, and what cannot be told comes back as it
came, with the candidates.
"""

import pytest

from proxy.core.detect import Detector
from proxy.formats import FORMATS
from tests.laws.harness import Capture, capture, captures, in_reads

TELLING = [row for row in captures() if row.expected_path.exists() and row.facts["status"] == 200]
AMBIGUOUS = {
    "openai-chat/number-overflow",  # no text beside its tokens
    "openai-chat/T16",  # nor here: only tool calls
}
TWINS = {"sglang-generate", "lmdeploy-generate", "vllm-generate"}
"""Formats whose slots stand in another one too: SGLang and LMDeploy share one, vLLM's are chat's."""


def _detect(body: bytes, size: int | None = None) -> tuple[bytes, Detector]:
    detector = Detector(FORMATS)
    out = b"".join(detector.feed(chunk) for chunk in ([body] if size is None else in_reads(body, size)))
    return out + detector.finish(), detector


def _name(detector: Detector) -> str | None:
    """The format found; Rewriter keeps it to itself, the candidates do not."""
    return detector.candidates[0].name if detector.rewriter and len(detector.candidates) == 1 else None


@pytest.mark.parametrize("row", TELLING, ids=lambda row: row.id)
def test_right_or_not_at_all(row: Capture):
    out, detector = _detect(row.body)
    if detector.rewriter is None:
        assert row.id in AMBIGUOUS or row.format.name in TWINS, [fmt.name for fmt in detector.candidates]
        assert row.format in detector.candidates
        assert out == row.body
        return
    assert _name(detector) == row.format.name
    assert out == row.expected


@pytest.mark.parametrize(
    "name",
    [
        "openai-chat/T00",
        "openai-chat/T00-stream",
        "openai-chat/T36a",
        "openai-chat/T36b",
        "openai-chat/T38",
        "openai-chat/T39",
        "openai-chat/T41",
        "openai-chat/deepseek-chat-leading-blank-lines",
        "openai-completions/openai-completions",
        "openai-completions/openai-completions-echo",
        "openai-responses/openai-responses",
        "openai-responses/openai-responses-stream",
        "gemini/gemini-generate",
        "gemini/gemini-stream-array",
        "gemini/gemini-stream-crlf",
        "ollama/ollama-chat",
        "ollama/ollama-chat-stream",
        "ollama/ollama-generate",
        "sglang-generate/sglang-generate",
        "sglang-generate/sglang-generate-cumulative",
        "sglang-generate/sglang-generate-noids-text",
    ],
)
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_any_cut_tells_the_same(name: str, size: int):
    row = capture(name)
    out, detector = _detect(row.body, size)
    assert _name(detector) == row.format.name
    assert out == row.expected


def test_a_stream_flows_once_its_format_is_known():
    row = capture("openai-chat/T00-stream")
    detector = Detector(FORMATS)
    first, second, *rest = [event + b"\n\n" for event in row.body.split(b"\n\n") if event]
    assert detector.feed(first) == b""
    assert detector.rewriter is None
    assert detector.feed(second).startswith(first + second[:9])
    assert detector.rewriter is not None
    for event in rest:
        assert detector.feed(event)
        assert detector.rewriter.held == 0
    assert detector.finish() == b""
    assert detector.report.outcome == "scored"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n",
        b"{}",
        b"[]",
        b"hello",
        b"data: [DONE]\n\n",
        b'{"choices":[]}',
        b'{"logprob":-1}',
        b"{",
        b"\xff\xfe",
        b": x",
    ],
)
def test_nothing_to_tell_by(body: bytes):
    for size in (1, None):
        out, detector = _detect(body, size)
        assert out == body
        assert detector.rewriter is None
        assert detector.candidates == []
        assert detector.report.annotated == 0


def test_two_formats_that_match_are_named():
    body = b'{"choices":[{"logprobs":{"content":[{"token":"a","logprob":-0.5}]}}]}'
    out, detector = _detect(body)
    assert out == body
    assert {"openai-chat", "openai-completions"} <= {fmt.name for fmt in detector.candidates}


def test_the_text_beside_them_tells():
    for member, name in (
        (b'"message":{"content":"a"}', "openai-chat"),
        (b'"text":"a"', "openai-completions"),
    ):
        body = b'{"choices":[{' + member + b',"logprobs":{"content":[{"token":"a","logprob":-0.5}]}}]}'
        out, detector = _detect(body)
        assert _name(detector) == name
        assert out == body.replace(b"-0.5", b'-0.5,"probability":0.6065306597126334')
