"""Framing against every way a stream may be written and cut.

Law: each case whole, byte by byte and at every cut gives the same bytes, and the same payloads. A case is a body, the
payloads in it, and the body that leaves.
"""

import pytest

from proxy.core.framing import Frame, Framer, choose, framer, sniff
from proxy.core.report import FAILURE_REASONS
from proxy.core.request import Ask
from proxy.core.rewriter import Rewriter
from proxy.formats import BY_NAME

CHAT, GEMINI, OLLAMA = BY_NAME["openai-chat"], BY_NAME["gemini"], BY_NAME["ollama"]
BIG = 1 << 20

ONE = b'{"choices":[{"index":0,"logprobs":{"content":[{"token":"a","logprob":-0.5}]}}]}'
ONE_OUT = ONE.replace(b"-0.5", b'-0.5,"probability":0.6065306597126334')


def _framer(framing: str, limit: int = BIG) -> Framer:
    fmt = GEMINI if framing == "growing" else CHAT
    return framer("whole" if framing == "growing" else framing, fmt, max_event=limit, max_body=limit)


def _frames(framing: str, chunks: list[bytes], limit: int = BIG) -> list[Frame]:
    one = _framer(framing, limit)
    frames = [frame for chunk in chunks for frame in one.feed(chunk)]
    frames += one.finish()
    assert one.held == 0
    return frames


def _ways(body: bytes) -> list[list[bytes]]:
    """Whole, byte by byte, and cut once at each place."""
    return [
        [body],
        [body[at : at + 1] for at in range(len(body))],
        *([body[:at], body[at:]] for at in range(1, len(body))),
    ]


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
    for chunks in _ways(body):
        frames = _frames("sse", chunks)
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
    one = _framer("sse")
    assert [len(one.feed(chunk)) for chunk in chunks] == counts
    assert one.held == 0


def test_a_line_feed_of_its_own_read_keeps_its_place():
    one = _framer("sse")
    assert [frame.raw for frame in one.feed(b"data: a\r\n\r")] == [b"data: a\r\n\r"]
    assert [frame.raw for frame in one.feed(b"\nevent: x\n")] == [b"\n", b"event: x\n"]
    assert _payloads(one.feed(b"data: b\n\n")) == [b"b"]


def _through(body: bytes, framing: str = "sse", fmt=CHAT, **limits: int) -> tuple[bytes, dict[str, int]]:
    """What leaves, the same for every way of cutting."""
    outs = set()
    failures: list[dict[str, int]] = []
    for chunks in _ways(body):
        rewriter = Rewriter(fmt, framing, Ask(asked=True), **limits)
        out = b"".join(rewriter.feed(chunk) for chunk in chunks)
        outs.add(out + rewriter.finish())
        failures.append(rewriter.report.failures)
        assert set(rewriter.report.failures) <= set(FAILURE_REASONS)
    assert len(outs) == 1, outs
    return outs.pop(), failures[0]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_data_split_over_lines(end: bytes):
    """A text cut between members into data lines; what is inserted brings no line end along."""
    body = end.join(
        [b'data: {"choices":[{"logprobs":{"content":[{', b'data: "token":"a",', b'data:   "logprob":-0.5}]}}]}', b"", b""]
    )  # fmt: skip
    out, failures = _through(body)
    assert failures == {}
    assert out == body.replace(b"-0.5", b'-0.5, "probability":0.6065306597126334')


def test_a_value_on_the_next_line():
    body = b'data: {"choices":[{"logprobs":{"content":[{"logprob":\ndata: -0.5\ndata: ,"token":"a"}]}}]}\n\n'
    out, _ = _through(body)
    assert out == body.replace(b"-0.5", b'-0.5,"probability": 0.6065306597126334')


def test_a_number_split_over_lines_is_no_number():
    body = (
        b'data: {"choices":[{"logprobs":{"content":[{"logprob":-0.\ndata: 5}]}}]}\n\ndata: ' + ONE + b"\n\n"
    )
    out, failures = _through(body)
    assert out == body.replace(ONE, ONE_OUT)
    assert failures == {"invalid_json": 1}


def test_white_space_in_an_event_is_copied():
    body = b'data: {"choices":[{"logprobs":{"content":[{\t"logprob" :  -0.5 ,  "token":"a"}]}}]}\n\n'
    out, _ = _through(body)
    assert out == body.replace(b"-0.5", b'-0.5,  "probability" :  0.6065306597126334')


@pytest.mark.parametrize("tail", [b'data: {"choices":[', b"data: {", b"data: [DONE", b'data: "'])
def test_half_an_event_at_the_end_passes(tail: bytes):
    out, failures = _through(b"data: " + ONE + b"\n\n" + tail)
    assert out == b"data: " + ONE_OUT + b"\n\n" + tail
    assert failures == {"invalid_json": 1}


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_whole_event_without_its_blank_line(end: bytes):
    assert _through(b"data: " + ONE + end) == (b"data: " + ONE_OUT + end, {})


def test_an_event_over_the_limit_passes_and_the_next_one_is_read():
    long = b'data: {"choices":[{"x":"' + b"x" * 300 + b'","logprobs":{"content":[{"logprob":-1}]}}]}\n\n'
    body = long + b"data: " + ONE + b"\n\n" + long + b": hi\n\ndata: " + ONE + b"\n\n"
    out, failures = _through_limited(body, "sse", max_event=200)
    assert out == body.replace(ONE, ONE_OUT)
    assert failures == {"event_too_large": 2}


def test_many_data_lines_over_the_limit():
    body = b"data: [1,\n" * 30 + b"data: 2]\n\ndata: " + ONE + b"\n\n"
    out, failures = _through_limited(body, "sse", max_event=150)
    assert out == body.replace(ONE, ONE_OUT)
    assert failures == {"event_too_large": 1}


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_passing_event_ends_at_its_blank_line_only(end: bytes):
    """A line end alone in its read ends the line that passed before, not the event."""
    rewriter = Rewriter(CHAT, "sse", max_event=10)
    event = b"data: " + ONE + end + end
    for chunk in (b"data: 0123456789", end, event):
        assert rewriter.feed(chunk) == chunk
    assert rewriter.feed(b": hi" + end) == b": hi" + end
    assert rewriter.feed(event) == b"data: " + ONE_OUT + end + end


def _through_limited(body: bytes, framing: str, fmt=CHAT, **limits: int) -> tuple[bytes, dict[str, int]]:
    """As `_through`, where a limit is what a read leaves waiting: reads of up to 64 bytes, so that it is passed."""
    outs, failures = set(), []
    for size in range(1, 65):
        rewriter = Rewriter(fmt, framing, Ask(asked=True), **limits)
        out = b""
        for at in range(0, len(body), size):
            out += rewriter.feed(body[at : at + size])
            assert rewriter.held <= max(limits.values()) + size
        outs.add(out + rewriter.finish())
        failures.append(rewriter.report.failures)
    assert len(outs) == 1
    assert all(one == failures[0] for one in failures)
    return outs.pop(), failures[0]


# NDJSON

LINE = b'{"response":"a","logprobs":[{"token":"a","logprob":-0.5}]}'
LINE_OUT = LINE.replace(b"-0.5", b'-0.5,"probability":0.6065306597126334')


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_lines(end: bytes):
    body = LINE + end + end + b" " + LINE + b" " + end + b"no json" + end + LINE
    out, failures = _through(body, "ndjson", OLLAMA)
    assert out == body.replace(LINE, LINE_OUT)
    assert failures == {"invalid_json": 1}


def test_a_line_leaves_with_its_end():
    rewriter = Rewriter(OLLAMA, "ndjson")
    assert rewriter.feed(LINE) == b""
    assert rewriter.held == len(LINE)
    assert rewriter.feed(b"\n" + LINE[:5]) == LINE_OUT + b"\n"
    assert rewriter.finish() == LINE[:5]


def test_a_line_over_the_limit_passes_and_the_next_one_is_read():
    long = LINE.replace(b'"a"', b'"' + b"a" * 300 + b'"', 1)
    body = long + b"\n" + LINE + b"\n" + long + b"\n" + LINE
    out, failures = _through_limited(body, "ndjson", OLLAMA, max_event=150)
    assert out == body.replace(LINE, LINE_OUT)
    assert failures == {"event_too_large": 2}


# One growing array

ELEMENT = b'{"candidates":[{"index":0,"avgLogprobs":-0.5}]}'
ELEMENT_OUT = ELEMENT.replace(b"-0.5", b'-0.5,"avgProbability":0.6065306597126334')


@pytest.mark.parametrize(
    ("before", "between", "after"),
    [
        (b"[", b",", b"]"),
        (b"[\n", b"\n,\r\n", b"\n]\n"),
        (b" \n[ ", b" , ", b" ] "),
        (b"[1,", b',"]",', b"]"),
        (b'["[{", ', b',"\\"}]\\\\", ', b',"x"]'),
        (b"[[1,[2]],", b",[{}],", b",{}]"),
    ],
)
def test_growing(before: bytes, between: bytes, after: bytes):
    body = before + ELEMENT + between + ELEMENT + after
    out, failures = _through(body, "whole", GEMINI)
    assert out == body.replace(ELEMENT, ELEMENT_OUT)
    assert failures == {}


@pytest.mark.parametrize(
    "text", [b"a]b}c", b'\\"]}', b"\\\\", b'\\\\\\"}', b'{\\"[', b"\\u005d\\u007d", b"\xf0\x9f\xa6\x86"]
)
def test_growing_array_with_strings_full_of_brackets(text: bytes):
    element = b'{"x":"' + text + b'","candidates":[{"avgLogprobs":-0.5}]}'
    body = b"[" + element + b",\n" + element + b"]"
    out, failures = _through(body, "whole", GEMINI)
    assert out == body.replace(b"-0.5", b'-0.5,"avgProbability":0.6065306597126334')
    assert failures == {}


def test_an_element_leaves_with_its_bracket():
    rewriter = Rewriter(GEMINI, "whole")
    assert rewriter.feed(b"[" + ELEMENT[:-1]) == b""
    assert rewriter.feed(b"}") == b"[" + ELEMENT_OUT
    assert rewriter.held == 0
    assert rewriter.feed(b"\n,") == b"\n,"
    assert rewriter.feed(ELEMENT) == ELEMENT_OUT
    assert rewriter.feed(b"]") == b"]"
    assert rewriter.finish() == b""


def test_an_element_over_the_limit_passes_and_the_next_one_is_read():
    long = b'{"x":"]' + b"x" * 300 + b'","candidates":[{"avgLogprobs":-1}]}'
    body = b"[" + long + b"," + ELEMENT + b",\n" + long + b"," + ELEMENT + b"]"
    out, failures = _through_limited(body, "whole", GEMINI, max_event=150)
    assert out == body.replace(ELEMENT, ELEMENT_OUT)
    assert failures == {"event_too_large": 2}


@pytest.mark.parametrize("tail", [b"", b"[", b"]]]]", b"}{", b'"', b"{\\", b"[1"])
def test_a_growing_array_that_is_none_passes(tail: bytes):
    body = b"[" + ELEMENT + tail
    out, _ = _through(body, "whole", GEMINI)
    assert out == b"[" + ELEMENT_OUT + tail


# Whole answers


@pytest.mark.parametrize("white", [b"\n", b"\n\n\n", b" \t\r\n", b"\r\n" * 100])
def test_blank_lines_before_an_answer_pass_at_once(white: bytes):
    rewriter = Rewriter(CHAT, "whole")
    assert b"".join(rewriter.feed(white[at : at + 1]) for at in range(len(white))) == white
    assert rewriter.feed(ONE[:9]) == b""
    assert rewriter.held == 9
    assert rewriter.feed(ONE[9:]) + rewriter.finish() == ONE_OUT
    assert _through(white[:4] + ONE + white[:4], "whole") == (white[:4] + ONE_OUT + white[:4], {})


@pytest.mark.parametrize(
    "body", [b"data: x\n\n", b": hi\n\n", b"Internal Server Error", b"<html>", b'"x"', b"\xef\xbb\xbf{}"]
)
def test_what_is_no_object_passes_at_once(body: bytes):
    rewriter = Rewriter(CHAT, "whole")
    for at in range(len(body)):
        assert rewriter.feed(body[at : at + 1]) == body[at : at + 1]
    assert rewriter.finish() == b""


def test_an_answer_over_the_limit_leaves_raw_from_there_on():
    body = b'{"x":"' + b"x" * 200 + b'",' + ONE[1:]
    rewriter = Rewriter(CHAT, "whole", max_body=100)
    assert rewriter.feed(body[:100]) == b""
    assert rewriter.feed(body[100:101]) == body[:101]
    assert rewriter.feed(body[101:]) == body[101:]
    assert rewriter.finish() == b""
    assert rewriter.report.failures == {"body_too_large": 1}
    assert _through_limited(body, "whole", max_body=100) == (body, {"body_too_large": 1})


def test_an_answer_at_the_limit_is_read():
    rewriter = Rewriter(CHAT, "whole", max_body=len(ONE))
    assert rewriter.feed(ONE) + rewriter.finish() == ONE_OUT


# Which framing


@pytest.mark.parametrize(
    ("content_type", "framing"),
    [
        ("text/event-stream", "sse"),
        ("text/event-stream; charset=utf-8", "sse"),
        ("Text/Event-Stream;charset=UTF-8", "sse"),
        (' text/event-stream ; charset="utf-8"', "sse"),
        ("text/event-stream;charset=utf8", "sse"),
        ("application/x-ndjson", "ndjson"),
        ("application/x-ndjson; charset=utf-8", "ndjson"),
        ("application/jsonl", "ndjson"),
        ("application/json", "whole"),
        ("application/json;charset=us-ascii", "whole"),
        ("APPLICATION/JSON; CHARSET=utf-8", "whole"),
        ("application/problem+json", "whole"),
        ("application/vnd.api+json; v=1", "whole"),
        ("application/json; profile=x; charset=utf-8", "whole"),
        ("text/event-stream-extra", None),
        ("text/event-streamx", None),
        ("application/json; charset=utf-16", None),
        ("text/event-stream; charset=latin-1", None),
        ("text/plain", None),
        ("text/html", None),
        ("application/jsonx", None),
        ("application/octet-stream", None),
        ("multipart/form-data; boundary=application/json", None),
        ("image/svg+xml", None),
        ("json", None),
        ("", None),
        (";", None),
    ],
)
def test_choose(content_type: str, framing: str | None):
    assert choose(content_type) == framing


@pytest.mark.parametrize(
    ("first", "framing"),
    [
        (b"", None),
        (b" \r\n", None),
        (b"data: x", "sse"),
        (b": hi", "sse"),
        (b"event: x", "sse"),
        (b"\xef\xbb\xbfdata: x", "sse"),
        (b"[", "whole"),
        (b'\n\n{"a":\n', "whole"),
        (b'{"a":1', None),
        (b'{"a":1}\n', "ndjson"),
        (b'{"a":1}\r\n{"', "ndjson"),
        (b"hello", "raw"),
    ],
)
def test_sniff(first: bytes, framing: str | None):
    assert sniff(first) == framing


@pytest.mark.parametrize(
    "start", [b"d", b"dat", b"even", b"\xef", b"\xef\xbb", b"\xef\xbb\xbf", b"i", b"retr"]
)
def test_sniffing_waits_for_the_rest_of_a_field(start: bytes):
    """Reads may be cut anywhere, so the start of a field's name is not yet `raw`."""
    assert sniff(start) in (None, "sse")
