"""The fast reader is the exact reader or None: the law that lets it exist."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.edits import Edit, apply
from proxy.core.format import Format
from proxy.core.hiding import hider
from proxy.core.places import Reading
from proxy.core.reading import read
from proxy.core.scan_fast import MAX_BYTES, fast, fast_hidden
from proxy.formats import BY_NAME, FORMATS
from tests.core import bodies

CHAT = BY_NAME["openai-chat"]


def assert_same(text: bytes, fmt: Format) -> Reading | None:
    """Both readers on one text; the fast one's result."""
    quick = fast(text, fmt)
    if quick is None:
        return None
    exact = read(text, fmt)
    assert apply(text, quick.edits) == apply(text, exact.edits)
    assert quick.insertions == exact.insertions
    assert quick.sightings == exact.sightings
    assert (quick.model, quick.id, quick.error) == (exact.model, exact.id, exact.error)
    return quick


@given(body=bodies.chat)
def test_chat(body: str) -> None:
    assert_same(body.encode(), CHAT)


@given(body=bodies.gemini)
def test_gemini(body: str) -> None:
    assert_same(body.encode(), BY_NAME["gemini"])


@given(
    body=bodies.chat | bodies.gemini | bodies.legacy,
    fmt=st.sampled_from([fmt for fmt in FORMATS if fmt.hidden]),
)
def test_hiding(body: str, fmt: Format) -> None:
    text = body.encode()
    hide = hider(fmt, absent=False)
    quick = fast_hidden(text, fmt, hide)
    assert quick is not None
    exact = read(text, fmt, hide=hide)
    assert apply(text, quick.edits) == apply(text, exact.edits)
    assert quick.sightings == exact.sightings


@given(body=bodies.legacy | bodies.anything, fmt=st.sampled_from(FORMATS))
def test_any_body_in_any_format(body: str, fmt: Format) -> None:
    assert_same(body.encode(), fmt)


@pytest.mark.parametrize(
    "value", ["{}", '{"a":1}', '{"function":1}', "[]", "[0]", "[{}]", "null", "0", '"x"', "true"]
)
def test_what_fits_no_slot_is_the_same_to_both(value: str) -> None:
    for fmt, body in (
        ("gemini", '{"candidates":[{"avgLogprobs":%s,"logprobsResult":{"chosenCandidates":%s}}]}'),
        ("openai-chat", '{"choices":[{"delta":{"content":%s,"tool_calls":%s},"logprobs":{"content":%s}}]}'),
        ("openai-chat", '{"choices":[{"logprobs":%s,"top_logprobs":%s}]}'),
        ("openai-transcriptions", '{"logprobs":%s,"text":%s}'),
    ):
        assert_same(body.replace("%s", value).encode(), BY_NAME[fmt])


@pytest.mark.parametrize("colon", [b'":', b'": ', b'" : '])
@pytest.mark.parametrize("text", ["x", 'a "logprob": -1.5 in a string', "\u00e9\U0001f600"])
def test_it_reads_what_servers_write(text: str, colon: bytes) -> None:
    """A reader that always answers None keeps the law as well."""
    value = {"choices": [{"index": 0, "delta": {"content": text}, "logprobs": {"content": [_token(3)]}}]}
    quick = assert_same(orjson.dumps(value).replace(b'":', colon), CHAT)
    assert quick is not None
    assert quick.insertions == 4


def _token(alternatives: int) -> dict[str, object]:
    more = [{"token": str(i), "logprob": -1.5 - i} for i in range(alternatives)]
    return {"token": " sky", "logprob": -0.5, "bytes": [32, 115, 107, 121], "top_logprobs": more}


@pytest.mark.parametrize(
    "text",
    [
        # An escaped slot beside a decoy with the same value: one member in the text, one on the slots, two places.
        b'{"metadata":{"logprob":-0.5},"choices":[{"logprobs":{"content":[{"token":"a","logpro\\u0062":-0.5}]}}]}',
        b'{"choices":[{"logprobs":{"content":[{"token":"a","logpro\\u0062":-0.5}]}}],"metadata":{"logprob":-0.5}}',
        # A decoy without white space beside a slot with it.
        b'{"metadata":{"logprob":-0.5},"choices":[{"logprobs":{"content":[{"token":"a","logprob" : -0.5}]}}]}',
        # Duplicates: the last one is the slot.
        b'{"choices":[{"logprobs":{"content":[{"token":"a","logprob":-0.5,"logprob":-0.5}]}}]}',
        b'{"choices":[{"logprobs":{"content":[{"logprob":-0.5}]}}],"choices":[{"logprobs":{"content":[{"logprob":-0.5}]}}]}',
        # Already there.
        b'{"choices":[{"logprobs":{"content":[{"token":"a","logprob":-0.5,"probability":0.1}]}}]}',
    ],
)
def test_decoys_are_left_to_the_exact_reader(text: bytes) -> None:
    orjson.loads(text)
    assert fast(text, CHAT) is None


def test_the_escaped_slot_is_annotated_and_the_decoy_is_not() -> None:
    text = b'{"metadata":{"logprob":-0.5},"choices":[{"logprobs":{"content":[{"token":"a","logpro\\u0062":-0.5}]}}]}'
    end = text.rindex(b"-0.5") + 4
    assert read(text, CHAT).edits == [Edit(end, end, b',"probability":0.6065306597126334')]


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b'{"a":NaN}',
        b'{"a":"\\ud83d"}',
        b'{"a":"\xf0"}',
        b"",
        b"[DONE]",
        b'{"a":-Infinity}',
        b'{"a":1e400}',
    ],
)
def test_what_a_strict_parser_refuses_is_left_to_the_exact_reader(text: bytes) -> None:
    assert fast(text, CHAT) is None


def test_too_big_for_one_call() -> None:
    assert fast(b" " * MAX_BYTES + b"{}", CHAT) is None
