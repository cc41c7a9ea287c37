"""What the upstream sends: OpenAI's chat bodies, built once from a fixed seed.

Law: every event is as OpenAI sends it, token bytes included; its `obfuscation`, a member of meaningless text, carries
the time of sending, so that the clock disturbs nothing that is read or rewritten.
"""

from __future__ import annotations

import json
import random
from typing import Final, NamedTuple

ALTERNATIVES: Final = 5
VARIETY: Final = 64
"""Different events; then they repeat."""
STAMP_DIGITS: Final = 16

# fmt: off
_WORDS: Final = (
    " the", " of", " a", " sky", " blue", " is", " because", " light", " scatters", " shorter", " wavelengths", ",",
    ".", "\n\n", " été", " naïve", " 東京", " 🦆", " “quoted”", " 42", "ing", "ed", " and", " we", " therefore",
    " air", " molecules", " sun", " red", "\\", ' {"a": 1}',
)
# fmt: on
_HEAD: Final = {
    "id": "chatcmpl-CfR4mWn8VtK2sYp0ZQe7LdXo1Bu3G",
    "created": 1790000001,
    "model": "gpt-4o-mini-2024-07-18",
    "service_tier": "default",
    "system_fingerprint": "fp_3267753c5d",
}
_NOTHING: Final[dict] = {"content": [], "refusal": None}


class Event(NamedTuple):
    """One event around the place of its time stamp."""

    before: bytes
    after: bytes

    def stamped(self, nanoseconds: int) -> bytes:
        return b"%b%0*d%b" % (self.before, STAMP_DIGITS, nanoseconds, self.after)


class Answer(NamedTuple):
    """A whole answer."""

    name: str
    body: bytes
    logprobs: int


def tokens(count: int, alternatives: int = ALTERNATIVES) -> list[dict]:
    """Chosen tokens, each with its alternatives, the first of which it is."""
    source = random.Random(20)
    return [_token(source, alternatives) for _ in range(count)]


def _token(source: random.Random, alternatives: int) -> dict:
    words = source.sample(_WORDS, max(1, alternatives))
    # Mostly sure, and then a tail: as the logprobs of a chat model fall.
    logprobs = sorted((-source.expovariate(1.0) * 10 ** source.uniform(-6, 1) for _ in words), reverse=True)
    top = [_spelled(word, float(f"{logprob:.8g}")) for word, logprob in zip(words, logprobs, strict=True)]
    return {**top[0], "top_logprobs": top[:alternatives]}


def _spelled(word: str, logprob: float) -> dict:
    return {"token": word, "logprob": logprob, "bytes": list(word.encode())}


def _chunk(delta: dict, logprobs: dict | None, finish: str | None) -> Event:
    chunk = {
        "id": _HEAD["id"],
        "object": "chat.completion.chunk",
        **{key: value for key, value in _HEAD.items() if key != "id"},
        "choices": [{"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}],
        "usage": None,
        "obfuscation": "@",
    }
    text = json.dumps(chunk, ensure_ascii=False, separators=(",", ":"))
    before, _, after = f"data: {text}\n\n".rpartition("@")
    return Event(before.encode(), after.encode())


def events(alternatives: int = ALTERNATIVES) -> list[Event]:
    """One token each."""
    return [
        _chunk({"content": token["token"]}, {"content": [token], "refusal": None}, None)
        for token in tokens(VARIETY, alternatives)
    ]


def opening() -> bytes:
    """The event before the tokens."""
    return _chunk({"role": "assistant", "content": "", "refusal": None}, _NOTHING, None).stamped(0)


def ending() -> bytes:
    """What comes after the tokens."""
    return _chunk({}, None, "stop").stamped(0) + b"data: [DONE]\n\n"


def answer(count: int, *, indented: bool, alternatives: int = ALTERNATIVES) -> Answer:
    """A whole answer: OpenAI indents it, a number of token bytes a line; other servers write no white space."""
    content = tokens(count, alternatives)
    document = {
        "id": _HEAD["id"],
        "object": "chat.completion",
        "created": _HEAD["created"],
        "model": _HEAD["model"],
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "".join(token["token"] for token in content),
                    "refusal": None,
                    "annotations": [],
                },
                "logprobs": {"content": content, "refusal": None},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 12, "completion_tokens": count, "total_tokens": 12 + count},
        "service_tier": _HEAD["service_tier"],
        "system_fingerprint": _HEAD["system_fingerprint"],
    }
    text = json.dumps(
        document,
        ensure_ascii=False,
        indent=2 if indented else None,
        separators=None if indented else (",", ":"),
    )
    name = f"{count:,} tokens, {'indented' if indented else 'compact'}"
    return Answer(name, text.encode() + (b"\n" if indented else b""), count * (1 + alternatives))


def answers() -> list[Answer]:
    """The whole answers of the bench."""
    return [answer(count, indented=indented) for count in (100, 1000) for indented in (False, True)]
