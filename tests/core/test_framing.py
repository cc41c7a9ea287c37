"""Server-sent events in every way that they may be written and cut.

Law: each case whole, byte by byte and at every cut gives the same bytes, and the same payloads.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.frames import Frame, Framer
from proxy.core.framing import framer
from proxy.core.rewriter import Rewriter
from tests.core.ways import CHAT, ONE, ONE_OUT, through, through_limited, ways

BIG = 1 << 20


def _framer(limit: int = BIG) -> Framer:
    return framer("sse", CHAT, max_event=limit, max_body=limit)


def _frames(chunks: list[bytes]) -> list[Frame]:
    one = _framer()
    frames = [frame for chunk in chunks for frame in one.feed(chunk)]
    frames += one.finish()
    assert one.held == 0
    return frames


def _payloads(frames: list[Frame]) -> list[bytes]:
    return [frame.payload for frame in frames if frame.payload is not None]


SSE = [
    pytest.param(b"data: x\n\n", [b"x"], id="plain"),
    pytest.param(b"data:x\n\n", [b"x"], id="no space"),
    pytest.param(b"data:  x\n\n", [b" x"], id="two spaces"),
    pytest.param(b"data:\tx\n\n", [b"\tx"], id="a tab is no space"),
    pytest.param(b"data: x \n\n", [b"x "], id="trailing space"),
    pytest.param(b"data\n\n", [b""], id="no colon"),
    pytest.param(b"data:\n\n", [b""], id="empty"),
    pytest.param(b"data: \n\n", [b""], id="only a space"),
    pytest.param(b"data:a:b\n\n", [b"a:b"], id="colons in the value"),
    pytest.param(b"data: a\r\n\r\n", [b"a"], id="CRLF"),
    pytest.param(b"data: a\r\r", [b"a"], id="CR"),
    pytest.param(b"data: a\r\n\rdata: b\r\n\n", [b"a", b"b"], id="mixed"),
    pytest.param(b"data: a\n\r\ndata: b\r\r\n", [b"a", b"b"], id="mixed the other way"),
    pytest.param(b"data: a\r\rdata: b\r\r", [b"a", b"b"], id="CR twice"),
    pytest.param(b"data: a\n\ndata: b\n\n", [b"a", b"b"], id="two events"),
    pytest.param(b"\n\n\ndata: a\n\n\n\n", [b"a"], id="blank lines"),
    pytest.param(b"\r\n\r\ndata: a\r\n\r\n\r\n", [b"a"], id="blank lines CRLF"),
    pytest.param(b"\xef\xbb\xbfdata: a\n\ndata: b\n\n", [b"a", b"b"], id="BOM"),
    pytest.param(b"\xef\xbb\xbf\ndata: a\n\n", [b"a"], id="BOM, then a blank line"),
    pytest.param(b"\xef\xbb\xbf: hi\ndata: a\n\n", [b"a"], id="BOM before a comment"),
    pytest.param(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", [], id="only one BOM"),
    pytest.param(b"data: b\n\n\xef\xbb\xbfdata: a\n\n", [b"b"], id="BOM only at the start"),
    pytest.param(b": hi\n\n:\n\ndata: a\n\n", [b"a"], id="comments"),
    pytest.param(b"data: a\n: hi\ndata: b\n\n", [b"a\nb"], id="a comment inside"),
    pytest.param(b": hi\nevent: x\nid: 7\nretry: 3\nx-y: z\ndata: a\nid: 8\n\n", [b"a"], id="other fields"),
    pytest.param(b"event: ping\n\nid\nretry\n\ndata: a\n\n", [b"a"], id="events without data"),
    pytest.param(b"database: no\ndat: no\n data: no\nDATA: no\ndata : no\n\n", [], id="look-alikes"),
    pytest.param(b"data: a\ndata\ndata: b\n\n", [b"a\n\nb"], id="an empty line of data"),
    pytest.param(b"data: 1\r\ndata: 2\rdata: 3\ndata: 4\r\n\r\n", [b"1\n2\n3\n4"], id="four lines"),
    pytest.param(b"data: a\n\ndata: b", [b"a", b"b"], id="no end of line"),
    pytest.param(b"data: a\n\ndata: b\n", [b"a", b"b"], id="no blank line"),
    pytest.param(b"data: a\n\ndata: b\r", [b"a", b"b"], id="a CR at the end"),
    pytest.param(b"data: a\n\ndat", [b"a"], id="half a field"),
    pytest.param(b"data: a\n\nevent: x\nda", [b"a"], id="half a field after a whole one"),
    pytest.param(b"data: a\0b\n\n", [b"a\0b"], id="NUL"),
    pytest.param(b"data: a\xc2\x85b\xe2\x80\xa8c\x0b\x0cd\n\n", [b"a\xc2\x85b\xe2\x80\xa8c\x0b\x0cd"], id="no line ends"),
    pytest.param(b"", [], id="nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "payloads"), SSE)
def test_events(body: bytes, payloads: list[bytes]):
    for chunks in ways(body):
        frames = _frames(chunks)
        assert b"".join(frame.raw for frame in frames) == body
        assert _payloads(frames) == payloads, chunks
        for frame in frames:
            _lines_lead_back(frame)


def _lines_lead_back(frame: Frame) -> None:
    """Each line of a payload stands where `lines` says."""
    if frame.payload is None:
        return
    ends = [start for start, _ in frame.lines[1:]] + [len(frame.payload) + 1]
    for (start, raw), end in zip(frame.lines, ends):
        line = frame.payload[start : end - 1]
        assert frame.raw[raw : raw + len(line)] == line


@pytest.mark.parametrize(
    ("chunks", "counts"),
    [
        ([b"data: a\n", b"\n"], [0, 1]),
        ([b"data: a\r\n", b"\r", b"\n"], [0, 1, 1]),  # the CR ends it; its LF follows by itself
        ([b"data: a\r", b"\r", b"data: b\r\r"], [0, 1, 1]),
        ([b": hi\n", b"event: x\n", b"id: 1\r", b"\n"], [1, 1, 1, 1]),
        ([b"data: a\n\nda", b"ta: b\n", b"\n"], [1, 0, 1]),
    ],
)
def test_what_is_complete_leaves_at_once(chunks: list[bytes], counts: list[int]):
    one = _framer()
    assert [len(one.feed(chunk)) for chunk in chunks] == counts
    assert one.held == 0


def test_a_line_feed_of_its_own_read_keeps_its_place():
    one = _framer()
    assert [frame.raw for frame in one.feed(b"data: a\r\n\r")] == [b"data: a\r\n\r"]
    assert [frame.raw for frame in one.feed(b"\nevent: x\n")] == [b"\n", b"event: x\n"]
    assert _payloads(one.feed(b"data: b\n\n")) == [b"b"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_data_split_over_lines(end: bytes):
    """A text cut between members into data lines; what is inserted brings no line end along."""
    body = end.join(
        [b'data: {"choices":[{"logprobs":{"content":[{', b'data: "token":"a",', b'data:   "logprob":-0.5}]}}]}', b"", b""]
    )  # fmt: skip
    out, failures = through(body)
    assert failures == {}
    assert out == body.replace(b"-0.5", b'-0.5, "probability":0.6065306597126334')


def test_a_value_on_the_next_line():
    body = b'data: {"choices":[{"logprobs":{"content":[{"logprob":\ndata: -0.5\ndata: ,"token":"a"}]}}]}\n\n'
    out, _ = through(body)
    assert out == body.replace(b"-0.5", b'-0.5,"probability": 0.6065306597126334')


def test_a_number_split_over_lines_is_no_number():
    body = (
        b'data: {"choices":[{"logprobs":{"content":[{"logprob":-0.\ndata: 5}]}}]}\n\ndata: ' + ONE + b"\n\n"
    )
    out, failures = through(body)
    assert out == body.replace(ONE, ONE_OUT)
    assert failures == {"invalid_json": 1}


def test_white_space_in_an_event_is_copied():
    body = b'data: {"choices":[{"logprobs":{"content":[{\t"logprob" :  -0.5 ,  "token":"a"}]}}]}\n\n'
    out, _ = through(body)
    assert out == body.replace(b"-0.5", b'-0.5,  "probability" :  0.6065306597126334')


@pytest.mark.parametrize("tail", [b'data: {"choices":[', b"data: {", b"data: [DONE", b'data: "'])
def test_half_an_event_at_the_end_passes(tail: bytes):
    out, failures = through(b"data: " + ONE + b"\n\n" + tail)
    assert out == b"data: " + ONE_OUT + b"\n\n" + tail
    assert failures == {"invalid_json": 1}


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_whole_event_without_its_blank_line(end: bytes):
    assert through(b"data: " + ONE + end) == (b"data: " + ONE_OUT + end, {})


def test_an_event_over_the_limit_passes_and_the_next_one_is_read():
    long = b'data: {"choices":[{"x":"' + b"x" * 300 + b'","logprobs":{"content":[{"logprob":-1}]}}]}\n\n'
    body = long + b"data: " + ONE + b"\n\n" + long + b": hi\n\ndata: " + ONE + b"\n\n"
    out, failures = through_limited(body, "sse", max_event=200)
    assert out == body.replace(ONE, ONE_OUT)
    assert failures == {"event_too_large": 2}


def test_many_data_lines_over_the_limit():
    body = b"data: [1,\n" * 30 + b"data: 2]\n\ndata: " + ONE + b"\n\n"
    out, failures = through_limited(body, "sse", max_event=150)
    assert out == body.replace(ONE, ONE_OUT)
    assert failures == {"event_too_large": 1}


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_passing_event_ends_at_its_blank_line_only(end: bytes):
    """A line end alone in its read ends the line that passed before, not the event."""
    rewriter = Rewriter(CHAT, "sse", max_event=150)
    event = b"data: " + ONE + end + end
    for chunk in (b"data: " + b"0" * 150, end, event):
        assert rewriter.feed(chunk) == chunk
    assert rewriter.feed(b": hi" + end) == b": hi" + end
    assert rewriter.feed(event) == b"data: " + ONE_OUT + end + end


@given(
    st.lists(
        st.sampled_from([b"data: ", b"data:", b"data", b"\n", b"\r", b"\r\n", b"\n\n", b": hi", b"id: 1"])
        | st.sampled_from([ONE, ONE[:40], ONE[40:], b"[DONE]", b"\xef\xbb\xbf", b"x" * 120]),
        max_size=12,
    ).map(b"".join),
    st.lists(st.integers(1, 100), max_size=30),
    st.sampled_from([20, 90, 100, 1000]),
)
def test_any_stream_in_any_reads(body: bytes, sizes: list[int], limit: int):
    whole = Rewriter(CHAT, "sse", max_event=limit)
    wanted = whole.feed(body) + whole.finish()
    rewriter, at, out = Rewriter(CHAT, "sse", max_event=limit), 0, b""
    for size in sizes:
        out += rewriter.feed(body[at : at + size])
        at += size
    assert out + rewriter.feed(body[at:]) + rewriter.finish() == wanted
    assert wanted.replace(ONE_OUT, ONE) == body
