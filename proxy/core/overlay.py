"""Tokens laid over a text: which of them make a piece of it.

Law: the bytes decide. The first and the last token may reach beyond the text (a stop string or a fence cuts inside a
token); a token without bytes (a piece of a character) stands where the next one that has some does.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from proxy.core.tokens import Token


class Overlay:
    """Tokens of one choice with their places, in bytes from the start of the text."""

    __slots__ = ("_ends", "_starts", "tokens")

    def __init__(self, tokens: Sequence[Token], shift: int) -> None:
        self.tokens = tokens
        ends = [shift + end for end in accumulate(len(token.data) for token in tokens)]
        starts = [end - len(token.data) for token, end in zip(tokens, ends)]
        for index in range(len(tokens) - 2, -1, -1):
            if not tokens[index].data:
                starts[index], ends[index] = starts[index + 1], ends[index + 1]
        self._starts, self._ends = starts, ends

    def over(self, start: int, end: int) -> range:
        """Indices of the tokens that hold one of the bytes `start` to `end` (exclusive) of the text."""
        first = last = bisect_right(self._ends, start)
        while last < len(self._starts) and self._starts[last] < end:
            last += 1
        return range(first, last)

    def start(self, index: int) -> int:
        """Where a token begins; negative where that is before the text."""
        return self._starts[index]

    def within(self, index: int, start: int, end: int) -> bool:
        """A token has no byte outside `start` to `end`."""
        return start <= self._starts[index] and self._ends[index] <= end


def lay(tokens: Sequence[Token], text: bytes) -> Overlay | None:
    """The tokens over the last place where their joined bytes hold the text; None where they do not."""
    joined = b"".join([token.data for token in tokens])
    if joined.endswith(text):
        at = len(joined) - len(text)
    else:
        # Backwards by `find`: it takes linear time on any bytes, `rfind` does not.
        back = joined[::-1].find(text[::-1])
        if back < 0:
            return None
        at = len(joined) - back - len(text)
    return Overlay(tokens, -at)
