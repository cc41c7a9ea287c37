"""What every client has to see, however it reads the answer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

MODEL = "smollm2-135m"
QUESTION: dict[str, Any] = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "Say hello."}],
    "max_tokens": 8,
    "temperature": 0,
    "logprobs": True,
    "top_logprobs": 2,
}


def check_pair(logprob: float, probability: float | None) -> None:
    # Exactly, not about: the shortest spelling of the double reads back as the same double.
    assert probability == math.exp(logprob), (logprob, probability)


def check_tokens(tokens: Iterable[Any], *, alternatives: int = 2) -> int:
    """Checks token objects (of the client's own classes) and their alternatives; returns how many there were."""
    count = 0
    for token in tokens:
        check_pair(token.logprob, token.probability)
        assert len(token.top_logprobs) == alternatives
        for other in token.top_logprobs:
            check_pair(other.logprob, other.probability)
        count += 1
    return count


def check_json_tokens(tokens: Iterable[dict[str, Any]], *, alternatives: int = 2) -> int:
    """The same for plain JSON, where the place of the new member can be seen too: right behind the logprob."""
    count = 0
    for token in tokens:
        assert len(token["top_logprobs"]) == alternatives
        for entry in (token, *token["top_logprobs"]):
            check_pair(entry["logprob"], entry["probability"])
            names = list(entry)
            assert names.index("probability") == names.index("logprob") + 1, names
        count += 1
    return count
