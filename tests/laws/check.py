"""The two oracles over one answer: what must be there is there, and without it the upstream's bytes are back.

Law: both are asked piece by piece, so that one event that is no JSON hides nothing in the others.
"""

from tests.laws import eraser, oracle, pieces


def check(upstream: bytes, out: bytes, fmt: str, framing: str | None) -> int:
    """Assert completeness and the erase law; the number of insertions."""
    before, after = pieces.cut(upstream, framing), pieces.cut(out, framing)
    assert len(before) == len(after), "the answer has other events than the upstream's"
    count = 0
    for one, other in zip(before, after):
        try:
            wanted = None if one.payload is None else oracle.expected(one.payload, fmt)
        except (ValueError, RecursionError):
            wanted = None
        if wanted is None:
            assert other.raw == one.raw, "what is no JSON was changed"
            continue
        wrong = list(oracle.differences(wanted, oracle.parse(other.payload or b"")))
        assert not wrong, "\n".join(wrong[:5])
        places = list(oracle.added(wanted))
        assert eraser.erase(other, places) == one.raw, "erasing does not give the upstream's bytes"
        count += len(places)
    return count
