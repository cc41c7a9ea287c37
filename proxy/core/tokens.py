"""What carries a logprob: a token and the part of the answer that it belongs to.

Law: token texts are bytes, since servers split characters over tokens; nothing here is ever written back.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple


class Part(StrEnum):
    """Which part of an exchange a token speaks of."""

    ANSWER = "answer"
    """Its bytes make the visible text."""
    REASONING = "reasoning"
    REFUSAL = "refusal"
    TOOL = "tool"
    PROMPT = "prompt"
    """Of the request, echoed; never counted."""
    CONTROL = "control"
    """End token, fence, text cut by a stop string."""
    ALTERNATIVES = "alternatives"
    """Of the answer's tokens, position by position, where they stand in a list of their own. Not counted."""
    AGGREGATE = "aggregate"
    """Not one token (a mean), or tokens that are counted elsewhere. Never counted."""


class Alternative(NamedTuple):
    """One of the tokens that could have stood at a position; the chosen one is usually among them."""

    data: bytes
    logprob: float | None


class Token(NamedTuple):
    """One chosen token."""

    data: bytes
    """Its bytes; empty where the server gave none (a piece of a character, an id only)."""
    logprob: float | None
    """Natural logarithm; None where the server wrote null."""
    offset: int | None = None
    """Characters before it in the text (legacy `text_offset`)."""
    alternatives: Sequence[Alternative] = ()
    """As the server listed them: maybe unsorted, with duplicates, with or without the chosen one."""


_ESCAPED: Final = re.compile(r"(?:bytes:)?((?:\\x[0-9a-fA-F]{2})+)")


def token_bytes(text: object, raw: object = None) -> bytes:
    r"""The bytes of a token from its `bytes` array if there is one, else from its text.

    A partial character has no text of its own: OpenAI spells it `bytes:\xe2\x80` in legacy answers, DeepSeek
    `\xf0\x9f` (standardcompletions/rfcs#2); both are read back to the bytes they stand for.
    """
    if type(raw) is list:
        try:
            return bytes(raw)
        except (TypeError, ValueError):
            pass
    if type(text) is not str:
        return b""
    if text.startswith(("bytes:", "\\x")) and (match := _ESCAPED.fullmatch(text)):
        return bytes.fromhex(match[1].replace("\\x", ""))
    return text_bytes(text)


def text_bytes(text: str) -> bytes:
    """UTF-8, in which a lone surrogate (half of an escaped pair) keeps its place."""
    return text.encode("utf-8", "surrogatepass")
