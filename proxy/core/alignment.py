"""Which part of the answer each token makes: tokens laid over the text that is seen.

Law: the bytes decide. A server may send text later than its tokens (vLLM holds back what could become a stop
string) or tokens without text (end tokens, fences, pieces of a character); a token without bytes takes the part
of the next token that has some.
"""

from collections.abc import Sequence
from typing import Final

from proxy.core.tokens import Part, Token, text_bytes

Texts = Sequence[tuple[Part, str | None]]
"""Text by part; None where something stands there that is no text (tool calls)."""
Placed = list[tuple[Token, Part]]

_MAX_TOKENS: Final = 4096
_MAX_TEXT: Final = 8192
"""Tokens and bytes of text that wait for their counterpart; beyond it they are let go."""


def over_whole(tokens: Sequence[Token], texts: Texts) -> tuple[Placed, bool]:
    """Parts of all tokens of an answer, and whether they align.

    The visible text is looked for in the joined bytes from the end: tokens over it make the answer, tokens before it
    are reasoning or control, tokens after it control. Where it is not found every token counts as answer."""
    visible = text_bytes("".join(text for part, text in texts if part is Part.ANSWER and text))
    others = [part for part, text in texts if part is not Part.ANSWER and text != ""]
    joined = b"".join([token.data for token in tokens])
    if not visible:
        hidden = others[0] if others else Part.CONTROL
        return [(token, hidden if token.data else Part.CONTROL) for token in tokens], True
    start = joined.rfind(visible)
    if start < 0:
        return [(token, Part.ANSWER) for token in tokens], not tokens
    end = start + len(visible)
    before = Part.REASONING if Part.REASONING in others else Part.CONTROL
    after = Part.TOOL if Part.TOOL in others else Part.CONTROL
    placed: Placed = []
    empty: list[Token] = []
    at = 0
    for token in tokens:
        if not token.data:
            empty.append(token)
            continue
        following = at + len(token.data)
        part = before if following <= start else after if at >= end else Part.ANSWER
        placed += [(piece, part) for piece in empty]
        placed.append((token, part))
        empty.clear()
        at = following
    return placed + [(piece, Part.CONTROL) for piece in empty], True


class Aligner:
    """The same for a stream, as it comes."""

    __slots__ = ("_joined", "_late", "_seen", "_segments", "_tokens")

    def __init__(self, *, late: bool = False) -> None:
        self._late = late
        """The text is still to come, all of it."""
        self._joined = True
        """False: somewhere tokens and text did not fit."""
        self._seen = False
        """Tokens came at all."""
        self._tokens: list[Token] = []
        """Waiting for their text."""
        self._segments: list[tuple[Part, bytes]] = []
        """Text that waits for its tokens, neighbours of one part joined."""

    @property
    def aligned(self) -> bool:
        """All text had its tokens; asked for at the end."""
        return not self._seen or (self._joined and not self._segments)

    def feed(self, tokens: Sequence[Token], texts: Texts) -> Placed:
        """Tokens whose part is known now, in their order."""
        self._seen = self._seen or bool(tokens)
        if len(tokens) == 1 == len(texts) and not self._tokens and not self._segments:
            part, text = texts[0]
            if text is None or (tokens[0].data and text_bytes(text) == tokens[0].data):
                return [(tokens[0], part)]
        self._tokens += tokens
        for part, text in texts:
            if text:
                self._late = False
                self._add(part, text_bytes(text))
        if not self._segments and any(text is None for _, text in texts):
            return self._place(len(self._tokens), texts[0][0])
        if tokens and self._segments and not any(token.data for token in self._tokens):
            # Ids, bare numbers, pieces of a character: nothing to lay over the text that came with them.
            self._joined = False
            return self._place(len(self._tokens), self._take_part())
        return self._settle()

    def close(self) -> Placed:
        """The rest: a token that reaches beyond the text seen belongs to it, all others are control."""
        placed: Placed = []
        if self._late and self._tokens:
            # A stream that was cut: what clients show came token by token.
            self._joined = False
            return self._place(len(self._tokens), Part.ANSWER)
        if self._segments and (first := self._first()) is not None:
            part, text = self._segments[0]
            if self._tokens[first].data.startswith(text):
                placed = self._place(first + 1, part)
                self._shorten(len(text))
        return placed + self._place(len(self._tokens), Part.CONTROL)

    def _add(self, part: Part, text: bytes) -> None:
        if self._segments and self._segments[-1][0] is part:
            text = self._segments.pop()[1] + text
        self._segments.append((part, text))

    def _take_part(self) -> Part:
        part = self._segments[-1][0]
        self._segments.clear()
        return part

    def _first(self) -> int | None:
        """The first waiting token that has bytes."""
        return next((index for index, token in enumerate(self._tokens) if token.data), None)

    def _place(self, count: int, part: Part) -> Placed:
        placed = [(token, part) for token in self._tokens[:count]]
        del self._tokens[:count]
        return placed

    def _settle(self) -> Placed:
        placed: Placed = []
        while self._segments and (first := self._first()) is not None:
            part, text = self._segments[0]
            data = self._tokens[first].data
            if text.startswith(data):
                placed += self._place(first + 1, part)
                self._shorten(len(data))
            elif data.startswith(text):
                if len(self._segments) == 1:
                    break
                placed += self._place(first + 1, part)
                self._shorten(len(text))
            elif later := self._later(data):
                self._joined = False
                del self._segments[:later]
            elif (at := b"".join([token.data for token in self._tokens]).find(text)) >= 0:
                placed += self._skip_to(at, part)
            elif (at := text.find(data)) > 0:
                self._joined = False
                self._shorten(at)
            else:
                self._joined = False
                placed += self._place(len(self._tokens), part)
                self._segments.clear()
        if len(self._tokens) > _MAX_TOKENS or sum([len(text) for _, text in self._segments]) > _MAX_TEXT:
            self._joined = False
            placed += self._place(len(self._tokens), Part.ANSWER)
            self._segments.clear()
        return placed

    def _later(self, data: bytes) -> int:
        """The next segment that a token begins, where the text before it has no tokens; 0 for none."""
        for index, (_, text) in enumerate(self._segments[1:], 1):
            if text.startswith(data) or data.startswith(text):
                return index
        return 0

    def _skip_to(self, at: int, part: Part) -> Placed:
        """Tokens before byte `at` of the joined ones show nothing; the one over it begins the segment."""
        count = passed = 0
        while passed + len(self._tokens[count].data) <= at:
            passed += len(self._tokens[count].data)
            count += 1
        placed = self._place(count, Part.CONTROL)
        shown = len(self._tokens[0].data) - (at - passed)
        placed += self._place(1, part)
        self._shorten(shown)
        return placed

    def _shorten(self, count: int) -> None:
        part, text = self._segments[0]
        if len(text) > count:
            self._segments[0] = part, text[count:]
        else:
            del self._segments[0]
