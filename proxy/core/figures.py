"""Figures over the tokens of one choice, accumulated as they pass.

Law: sums are float64 in log space, so that long answers do not underflow; sentinels and nulls never enter them.
"""

from dataclasses import dataclass
from math import exp, inf

from proxy.core.probability import ROUNDING, SENTINEL

_MAX_EXPONENT = 700.0
"""exp of more overflows a float64."""


def status_of(logprob: float | None) -> str:
    """scored, unscored or sentinel."""
    if logprob is None or not logprob <= ROUNDING:
        return "unscored"
    return "sentinel" if logprob <= SENTINEL else "scored"


@dataclass(slots=True)
class Figures:
    """Confidence over the answer tokens of one choice. Logprobs are natural logarithms, in nats."""

    tokens: int = 0
    """n: scored tokens."""
    unscored_tokens: int = 0
    """null, NaN, or too positive for a logprob."""
    sentinel_tokens: int = 0
    """At or below SENTINEL; out of every sum and mean."""
    logprob_sum: float = 0.0
    min_probability_index: int | None = None
    """Among the answer tokens, from 0."""
    aligned: bool = True
    """False: the tokens do not join to the visible text, so all of them are counted."""
    probability_sum: float = 0.0
    _least: float = inf

    def add(self, logprob: float | None) -> str:
        """Count one token; says whether it was scored, unscored or a sentinel."""
        status = status_of(logprob)
        if status == "unscored" or logprob is None:
            self.unscored_tokens += 1
            return status
        if logprob < self._least:
            index = self.tokens + self.unscored_tokens + self.sentinel_tokens
            self._least, self.min_probability_index = logprob, index
        if status == "sentinel":
            self.sentinel_tokens += 1
        else:
            self.tokens += 1
            self.logprob_sum += min(logprob, 0.0)
            self.probability_sum += exp(min(logprob, 0.0))
        return status

    @property
    def mean_probability(self) -> float | None:
        """Arithmetic mean of the tokens' probabilities."""
        return self.probability_sum / self.tokens if self.tokens else None

    @property
    def geometric_mean_probability(self) -> float | None:
        """exp(S/n): the sequence probability made independent of length."""
        return exp(self.logprob_sum / self.tokens) if self.tokens else None

    @property
    def perplexity(self) -> float | None:
        """exp(-S/n), at least 1."""
        return exp(min(-self.logprob_sum / self.tokens, _MAX_EXPONENT)) if self.tokens else None

    @property
    def sequence_probability(self) -> float | None:
        """exp(S); None where a sentinel makes it unknown."""
        return exp(self.logprob_sum) if self.tokens and not self.sentinel_tokens else None

    @property
    def min_probability(self) -> float | None:
        """Of the least likely token; 0.0 where a sentinel stands."""
        if self.sentinel_tokens:
            return 0.0
        return exp(min(self._least, 0.0)) if self.tokens else None
