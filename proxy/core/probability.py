"""From a log-probability to the probability that stands beside it, and its spelling.

Law: p = exp(x) in float64, written in the shortest form that reads back the same. The logprob is never touched.
"""

from collections.abc import Sequence
from math import exp
from typing import Final

import orjson

SENTINEL: Final = -9999.0
"""At or below this a server means "not among the tokens I kept" (OpenAI's docs, vLLM's clamp, llama.cpp's
lowest float, -inf), not a measured value."""

ROUNDING: Final = 1e-3
"""Up to this a positive value is float noise around ln 1; above it the number is no logprob (vLLM's logits
modes, a probability in the wrong member)."""


def probability(logprob: float | None) -> float | None:
    """exp(logprob) in [0, 1]; None where the value is no log-probability (null, NaN, above ROUNDING)."""
    if logprob is None or not logprob <= ROUNDING:
        return None
    return exp(logprob) if logprob <= 0 else 1.0


def spell(values: Sequence[float | None]) -> list[bytes]:
    """JSON text of each value, by one C call: shortest round-trip floats, `null` for None."""
    return orjson.dumps(values)[1:-1].split(b",") if values else []
