"""Tokens laid over the text that is seen: whole, and as a stream brings them.

Law: the bytes decide; no token is lost, counted twice or put out of its order.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.alignment import Aligner, Placed, over_whole
from proxy.core.tokens import Part, Token

A, R, C, T = Part.ANSWER, Part.REASONING, Part.CONTROL, Part.TOOL

Step = tuple[list[str | bytes], list[tuple[Part, str | None]]]
"""Tokens that came in one event, and the text beside them."""


def _token(text: str | bytes, index: int = 0) -> Token:
    return Token(text if isinstance(text, bytes) else text.encode(), -float(index))


def _stream(steps: list[Step]) -> tuple[list[Part], bool]:
    """The part of each token, in order."""
    aligner, placed, count = Aligner(), Placed(), 0
    for texts, shown in steps:
        tokens = [_token(text, count + index) for index, text in enumerate(texts)]
        count += len(tokens)
        placed += aligner.feed(tokens, shown)
    placed += aligner.close()
    assert [-(token.logprob or 0) for token, _ in placed] == list(range(count))
    return [part for _, part in placed], aligner.aligned


def _says(*texts: str) -> list[Step]:
    """Each token with its own text."""
    return [([text], [(A, text)]) for text in texts]


STREAMS: list = [
    pytest.param(_says("Hi", " there"), [A, A], id="each with its text"),
    pytest.param([(["Hi", "!"], [(A, "Hi!")])], [A, A], id="several in one event"),
    pytest.param([(["He"], [(A, "")]), (["llo"], [(A, "Hello")])], [A, A], id="text held back"),
    pytest.param([(["a"], []), (["b"], []), (["c"], [(A, "abc")])], [A, A, A], id="text held back for long"),
    pytest.param([(["a", "b"], [(A, "a")]), ([], [(A, "b")])], [A, A], id="half of the text later"),
    pytest.param([([], [(A, "Hello")]), (["Hel", "lo"], [])], [A, A], id="tokens after their text"),
    pytest.param([*_says("Hi"), (["ST"], []), (["OP"], [(A, "")])], [A, C, C], id="a stop string"),
    pytest.param([*_says("a"), (["b"], [(A, "")]), (["c"], [(A, "bc")]), (["d"], [])], [A, A, A, C], id="not a stop"),
    pytest.param([(["Hi!"], [(A, "Hi")])], [A], id="a token of which only the start is shown"),
    pytest.param([*_says("a"), (["b."], [(A, "b")]), (["<end>"], [])], [A, A, C], id="the same, then the end"),
    pytest.param([*_says("Hi"), (["</s>"], [])], [A, C], id="end token without text"),
    pytest.param([*_says("Hi"), (["</s>"], [(A, "")])], [A, C], id="end token with empty text"),
    pytest.param([*_says("Hi"), ([""], [])], [A, C], id="end token without bytes"),
    pytest.param([([""], [(A, "")]), (["é"], [(A, "é")])], [A, A], id="a piece without bytes, then its character"),
    pytest.param([(["", "é"], [(A, "é")])], [A, A], id="both in one event"),
    pytest.param([([b"\xf0\x9f"], [(A, "")]), ([b"\xa6\x86"], [(A, "🦆")])], [A, A], id="pieces of a character"),
    pytest.param([([b"\xf0", b"\x9f", b"\xa6", b"\x86"], [(A, "🦆")])], [A] * 4, id="four pieces at once"),
    pytest.param(
        [(["hm"], [(R, "hm")]), (["</think>"], []), *_says("Blue")], [R, C, A], id="reasoning, fence, answer"
    ),
    pytest.param(
        [(["hm", "</think>", "Blue"], [(R, "hm"), (A, "Blue")])], [R, C, A], id="all of that in one event"
    ),
    pytest.param(
        [(["hm"], [(R, "")]), (["so"], [(R, "hmso")]), *_says("Blue")], [R, R, A], id="reasoning held back"
    ),
    pytest.param([(["hm"], [(R, "hm")]), (["hm"], [(A, "hm")])], [R, A], id="the same word in both"),
    pytest.param([(["<think>"], []), (["a"], [(R, "a")]), *_says("a")], [C, R, A], id="a fence before"),
    pytest.param([(["<tool>"], [(T, None)]), (["{}"], [(T, None)])], [T, T], id="tool calls"),
    pytest.param([*_says("Hi"), (["<tool>"], [(T, None)])], [A, T], id="text, then a tool call"),
    pytest.param([(["a"], [])], [C], id="never any text"),
    pytest.param([([], [(A, "Hi")])], [], id="never any token"),
    pytest.param([], [], id="nothing"),
    pytest.param([(["<|x|>", "Hi"], [(A, "Hi")])], [C, A], id="a control token before the text"),
    pytest.param([(["\n\n"], [(A, "")]), *_says("Hi")], [C, A], id="white space that the server strips"),
    pytest.param([([" Hi"], [(A, "Hi")]), *_says("!")], [A, A], id="a token whose start is stripped"),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "parts"), STREAMS)
def test_stream(steps: list[Step], parts: list[Part]):
    assert _stream(steps) == (parts, True)


@pytest.mark.parametrize(
    "steps",
    [
        [(["�"], [(A, "")]), (["�"], [(A, "😊")])],
        [(["@@"], [(A, "x")])],
        [([""], [(A, "x")])],
        [*_says("a"), (["id"], [(A, "b")]), *_says("c")],
    ],
)
def test_what_does_not_join_counts_as_answer_and_says_so(steps: list[Step]):
    parts, aligned = _stream(steps)
    assert set(parts) == {A}
    assert not aligned


WHOLE = [
    pytest.param(["Hi", "!"], [(A, "Hi!")], [A, A], id="all of it"),
    pytest.param(["Hi", "</s>"], [(A, "Hi")], [A, C], id="end token"),
    pytest.param(["Hi", ""], [(A, "Hi")], [A, C], id="end token without bytes"),
    pytest.param(["Hi", "ST", "OP"], [(A, "Hi")], [A, C, C], id="stop string"),
    pytest.param(["Hi!"], [(A, "Hi")], [A], id="half a token"),
    pytest.param([" Hi"], [(A, "Hi")], [A], id="stripped start"),
    pytest.param(["\n", "Hi"], [(A, "Hi")], [C, A], id="stripped white space"),
    pytest.param(["", "é"], [(A, "é")], [A, A], id="a piece without bytes"),
    pytest.param([b"\xf0\x9f", b"\xa6\x86"], [(A, "🦆")], [A, A], id="pieces of a character"),
    pytest.param(["hm", "</think>", "Blue"], [(A, "Blue"), (R, "hm")], [R, R, A], id="reasoning"),
    pytest.param(
        ["a", "b", "a"], [(A, "a"), (R, "a")], [R, R, A], id="the answer is looked for from the end"
    ),
    pytest.param(["<x>", "Hi"], [(A, "Hi")], [C, A], id="a control token before"),
    pytest.param(["Hi", "<tool>", "{}"], [(A, "Hi"), (T, None)], [A, T, T], id="text and a tool call"),
    pytest.param(["<tool>", "{}"], [(T, None)], [T, T], id="only a tool call"),
    pytest.param(["<tool>", "{}"], [(A, ""), (T, None)], [T, T], id="a tool call beside empty content"),
    pytest.param(["hm"], [(R, "hm")], [R], id="only reasoning"),
    pytest.param(["</s>"], [], [C], id="no text at all"),
    pytest.param([], [(A, "Hi")], [], id="no tokens"),
    pytest.param(["A", "B"], [(A, "A"), (A, "B")], [A, A], id="text in two parts"),
]


@pytest.mark.parametrize(("texts", "shown", "parts"), WHOLE)
def test_whole(texts: list[str | bytes], shown: list[tuple[Part, str | None]], parts: list[Part]):
    placed, aligned = over_whole([_token(text) for text in texts], shown)
    assert [part for _, part in placed] == parts
    assert aligned


@pytest.mark.parametrize(("texts", "shown"), [(["�", "�"], "😊"), (["a"], "b"), (["", ""], "x")])
def test_whole_that_does_not_join(texts: list[str | bytes], shown: str):
    placed, aligned = over_whole([_token(text) for text in texts], [(A, shown)])
    assert [part for _, part in placed] == [A] * len(texts)
    assert not aligned


pieces = st.text(alphabet="ab🦆 ", max_size=3) | st.sampled_from([b"\xf0\x9f", b"\xa6\x86", b"\xff"])
shown_texts = st.lists(
    st.tuples(st.sampled_from([A, R]), st.text(alphabet="ab🦆 ", max_size=4)) | st.just((T, None)), max_size=3
)


@given(st.lists(st.tuples(st.lists(pieces, max_size=4), shown_texts), max_size=12))
def test_every_token_comes_out_once_and_in_order(steps: list[Step]):
    _stream(steps)  # it asserts that


@given(st.lists(pieces, max_size=8), shown_texts)
def test_every_token_of_a_whole_answer_comes_out_once(texts: list[str | bytes], shown):
    tokens = [_token(text, index) for index, text in enumerate(texts)]
    placed, _ = over_whole(tokens, shown)
    assert [token for token, _ in placed] == tokens


@given(st.lists(st.text(alphabet="abc🦆", min_size=1, max_size=4), min_size=1, max_size=10), st.data())
def test_text_however_late_in_pieces(texts: list[str], data: st.DataObject):
    """A server may show any prefix of what its tokens make, as long as all is shown in the end."""
    joined, shown = "".join(texts), 0
    steps: list[Step] = []
    for index, text in enumerate(texts):
        made = len("".join(texts[: index + 1]))
        upto = data.draw(st.integers(shown, made)) if index < len(texts) - 1 else made
        steps.append(([text], [(A, joined[shown:upto])]))
        shown = upto
    assert _stream(steps) == ([A] * len(texts), True)
    placed, aligned = over_whole([_token(text) for text in texts], [(A, joined)])
    assert ([part for _, part in placed], aligned) == ([A] * len(texts), True)


def test_what_waits_is_bounded():
    """Tokens without text, and text without tokens, are let go in the end; none is lost."""
    aligner, placed = Aligner(), Placed()
    for index in range(20_000):
        placed += aligner.feed([_token("x", index)], [])
    assert len(placed) > 10_000
    placed += aligner.close()
    assert len(placed) == 20_000
    aligner = Aligner()
    for _ in range(5_000):
        assert aligner.feed([], [(A, "y" * 100)]) == []
    assert aligner.close() == []
