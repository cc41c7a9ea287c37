"""The only writer.

Law: a body is edited, never re-serialised. Every change is an `Edit` on the upstream's own bytes, so that
deleting what was inserted gives those bytes back.
"""

from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple


class Edit(NamedTuple):
    """Replace `raw[start:end]` by `data`; an insertion where `start == end`."""

    start: int
    end: int
    data: bytes


def apply(raw: bytes, edits: Iterable[Edit], shift: int = 0) -> bytes:
    """`raw` with every edit made, each moved by `shift`; they may come in any order but must not overlap.

    Insertions at one position keep the order in which they were given. Raises ValueError on an overlap, since
    writing one would lose bytes.
    """
    pieces = []
    done = 0
    for start, end, data in sorted(edits, key=itemgetter(0)):
        start += shift
        end += shift
        if start < done or end < start:
            raise ValueError(f"edit {start}:{end} overlaps what was written up to {done}")
        pieces.append(raw[done:start])
        pieces.append(data)
        done = end
    pieces.append(raw[done:])
    return b"".join(pieces)


def joined(raw: bytes, edits: Iterable[Edit]) -> Edit:
    """Several edits as one over the bytes from the first to the last of them."""
    rows = sorted(edits, key=itemgetter(0))
    start, end = rows[0].start, rows[-1].end
    return Edit(start, end, apply(raw[start:end], rows, -start))
