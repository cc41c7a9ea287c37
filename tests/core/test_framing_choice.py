"""Which framing an answer has: by its media type, or by its first bytes where nobody tells.

Law: a look-alike of a media type is none; what is not known passes raw; a cut in the first bytes decides nothing.
"""

import pytest

from proxy.core.framing import choose, sniff


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
