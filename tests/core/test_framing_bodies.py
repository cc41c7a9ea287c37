"""NDJSON, one growing array and whole answers in every way that they may be written and cut.

Law: what is complete leaves at once, what is over a limit leaves raw, and what follows it is read again.
"""

import pytest

from proxy.core.rewriter import Rewriter
from tests.core.ways import CHAT, GEMINI, OLLAMA, ONE, ONE_OUT, through, through_limited

# NDJSON

LINE = b'{"response":"a","logprobs":[{"token":"a","logprob":-0.5}]}'
LINE_OUT = LINE.replace(b"-0.5", b'-0.5,"probability":0.6065306597126334')


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_lines(end: bytes):
    body = LINE + end + end + b" " + LINE + b" " + end + b"no json" + end + LINE
    out, failures = through(body, "ndjson", OLLAMA)
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
    out, failures = through_limited(body, "ndjson", OLLAMA, max_event=150)
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
    out, failures = through(body, "whole", GEMINI)
    assert out == body.replace(ELEMENT, ELEMENT_OUT)
    assert failures == {}


@pytest.mark.parametrize(
    "text", [b"a]b}c", b'\\"]}', b"\\\\", b'\\\\\\"}', b'{\\"[', b"\\u005d\\u007d", b"\xf0\x9f\xa6\x86"]
)
def test_growing_array_with_strings_full_of_brackets(text: bytes):
    element = b'{"x":"' + text + b'","candidates":[{"avgLogprobs":-0.5}]}'
    body = b"[" + element + b",\n" + element + b"]"
    out, failures = through(body, "whole", GEMINI)
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
    out, failures = through_limited(body, "whole", GEMINI, max_event=150)
    assert out == body.replace(ELEMENT, ELEMENT_OUT)
    assert failures == {"event_too_large": 2}


@pytest.mark.parametrize("tail", [b"", b"[", b"]]]]", b"}{", b'"', b"{\\", b"[1"])
def test_a_growing_array_that_is_none_passes(tail: bytes):
    body = b"[" + ELEMENT + tail
    out, _ = through(body, "whole", GEMINI)
    assert out == b"[" + ELEMENT_OUT + tail


# Whole answers


@pytest.mark.parametrize("white", [b"\n", b"\n\n\n", b" \t\r\n", b"\r\n" * 100])
def test_blank_lines_before_an_answer_pass_at_once(white: bytes):
    rewriter = Rewriter(CHAT, "whole")
    assert b"".join(rewriter.feed(white[at : at + 1]) for at in range(len(white))) == white
    assert rewriter.feed(ONE[:9]) == b""
    assert rewriter.held == 9
    assert rewriter.feed(ONE[9:]) + rewriter.finish() == ONE_OUT
    assert through(white[:4] + ONE + white[:4], "whole") == (white[:4] + ONE_OUT + white[:4], {})


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
    assert through_limited(body, "whole", max_body=100) == (body, {"body_too_large": 1})


def test_an_answer_at_the_limit_is_read():
    rewriter = Rewriter(CHAT, "whole", max_body=len(ONE))
    assert rewriter.feed(ONE) + rewriter.finish() == ONE_OUT
