"""Erase law, completeness, any cut, at once, idempotence, fail open: every capture x every law.

Law: a capture needs no line here; lying under tests/captures makes it a case of all of these.
"""

import random
from itertools import pairwise
from zlib import crc32

import pytest

from proxy.core.rewriter import Rewriter
from tests.laws import pieces
from tests.laws.check import check
from tests.laws.eraser import erase_by_comparing
from tests.laws.harness import Capture, captures, digest, drive, in_reads, rewrite, rewriter_of
from tests.laws.writer import write

SMALL = {"sse": 2000, "ndjson": 2000}
"""Bodies up to this are cut at every byte, bigger ones at random: whole answers sooner, since they wait for their end
wherever they are cut."""

ALL = pytest.mark.parametrize("row", captures(), ids=lambda row: row.id)
STREAMS = pytest.mark.parametrize(
    "row", [row for row in captures() if row.framing in ("sse", "ndjson")], ids=lambda row: row.id
)


def _random(row: Capture) -> random.Random:
    return random.Random(crc32(row.id.encode()))


def test_there_are_captures_of_every_format():
    from proxy.formats import FORMATS

    assert {row.format for row in captures()} == set(FORMATS)
    assert len(captures()) >= 380


@ALL
def test_complete_and_erasable(row: Capture):
    out, report = rewrite(row)
    count = check(row.body, out, row.format.name, row.framing)
    assert report.annotated == count
    assert erase_by_comparing(row.body, out) == row.body


@ALL
def test_as_recorded(row: Capture):
    assert rewrite(row)[0] == row.expected


@ALL
@pytest.mark.parametrize("size", [1, 2, 3, 7, 4096])
def test_in_reads(row: Capture, size: int):
    out, report = rewrite(row, in_reads(row.body, size))
    whole, reference = rewrite(row)
    assert out == whole
    assert digest(report) == digest(reference)


@ALL
def test_any_single_cut(row: Capture):
    body = row.body
    whole, reference = rewrite(row)
    wanted = digest(reference)
    cuts = (
        range(len(body) + 1)
        if len(body) <= SMALL.get(row.framing or "", 500)
        else _random(row).sample(range(len(body)), 50)
    )
    for number, at in enumerate(cuts):
        rewriter = rewriter_of(row)
        assert drive(rewriter, [body[:at], body[at:]]) == whole, f"cut at byte {at}"
        if number % 5 == 0:
            assert digest(rewriter.report) == wanted, f"cut at byte {at}"


@ALL
def test_random_cuts(row: Capture):
    body, dice = row.body, _random(row)
    whole, _ = rewrite(row)
    for _ in range(5):
        cuts = sorted({0, len(body), *(dice.randrange(len(body) + 1) for _ in range(9))})
        assert rewrite(row, [body[a:b] for a, b in pairwise(cuts)])[0] == whole, cuts


@ALL
def test_two_proxies_in_a_row_change_nothing(row: Capture):
    once, first = rewrite(row)
    again = rewriter_of(row)
    assert drive(again, [once]) == once
    assert again.report.annotated == 0
    # The second one has the same figures: they come from the logprobs, which nobody touched.
    assert digest(again.report)[2:] == digest(first)[2:]


@STREAMS
def test_at_once(row: Capture):
    """Whatever completes an event leaves with the event's last byte: nothing waits for the next one."""
    rewriter = rewriter_of(row)
    events = pieces.cut(row.body, row.framing)
    ended = row.body.endswith((b"\n", b"\r"))
    for number, event in enumerate(events, 1):
        out = rewriter.feed(event.raw)
        if number == len(events) and not (ended and _is_complete(event.raw, row.framing)):
            break
        assert rewriter.held == 0
        assert out.startswith(event.raw[:1])
        assert erase_by_comparing(event.raw, out) == event.raw


@STREAMS
def test_at_once_byte_by_byte(row: Capture):
    """The last byte of an event's end sets it free. Of CR LF that is the CR: the LF follows by itself. A line of NDJSON
    ends with LF only."""
    rewriter = rewriter_of(row)
    ends = (b"\n", b"\r\n", b"\r") if row.framing == "sse" else (b"\n",)
    for event in pieces.cut(row.body, row.framing):
        for at in range(len(event.raw)):
            rewriter.feed(event.raw[at : at + 1])
            if event.raw[at:] in ends and _is_complete(event.raw, row.framing):
                assert rewriter.held == 0


def _is_complete(event: bytes, framing: str | None) -> bool:
    ends = (b"\n\n", b"\r\r", b"\n\r", b"\r\n\r", b"\n\r\n") if framing == "sse" else (b"\n",)
    return event.endswith(ends) or not event.strip()


def _broken(body: bytes, dice: random.Random) -> bytes:
    """A body with one thing wrong."""
    if not body:
        return b"{"
    at = dice.randrange(len(body))
    match dice.randrange(5):
        case 0:
            return body[:at]
        case 1:
            return body[:at] + bytes([body[at] ^ (1 << dice.randrange(8))]) + body[at + 1 :]
        case 2:
            return (
                body[:at]
                + dice.choice([b'"', b"{", b"}", b"[", b"]", b",", b"\\", b"\n\n", b"\0"])
                + body[at:]
            )
        case 3:
            return body[:at] + body[at + dice.randrange(1, 40) :]
        case _:
            return body[:at] + body[at // 2 : at] + body[at:]


@ALL
def test_broken_bodies_pass(row: Capture):
    dice = _random(row)
    for _ in range(25 if len(row.body) <= 3000 else 8):
        body = _broken(row.body, dice)
        rewriter = Rewriter(row.format, row.framing or "raw", row.ask)
        out = drive(rewriter, [body], clean=dice.random() < 0.5)
        assert erase_by_comparing(body, out) == body
        assert "internal" not in rewriter.report.failures, body
        assert rewriter.held == 0
        cut = dice.randrange(len(body) + 1)
        assert rewrite(row, [body[:cut], body[cut:]])[0] == out, "another cut, another answer"
        assert drive(rewriter_of(row), [out]) == out, "the second proxy changed something"


@ALL
def test_the_expected_file_is_the_oracles(row: Capture):
    """What the proxy is compared with was not made by the proxy."""
    assert write(row.body, row.format.name, row.framing) == row.expected
