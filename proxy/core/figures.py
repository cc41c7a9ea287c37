"""Figures over the tokens of one choice, accumulated as they pass.

Law: sums are float64 in log space, so that long answers do not underflow; sentinels and nulls never enter them.
Memory does not grow with the answer.
"""

from collections import deque
from dataclasses import dataclass, field
from math import exp, inf
from typing import Final

from proxy.core.position import position
from proxy.core.probability import ROUNDING, SENTINEL
from proxy.core.tokens import Token

WINDOW: Final = 16
"""Tokens in a row whose geometric mean is watched."""
_MAX_EXPONENT: Final = 700.0
"""exp of more overflows a float64."""


def status_of(logprob: float | None) -> str:
    """scored, unscored or sentinel."""
    if logprob is None or not logprob <= ROUNDING:
        return "unscored"
    return "sentinel" if logprob <= SENTINEL else "scored"


@dataclass(slots=True)
class Sum:
    """Scored tokens of a part that is only summed up."""

    tokens: int = 0
    logprob_sum: float = 0.0

    def add(self, logprob: float | None) -> str:
        """Count one token; says its status."""
        status = status_of(logprob)
        if status == "scored" and logprob is not None:
            self.tokens += 1
            self.logprob_sum += min(logprob, 0.0)
        return status

    @property
    def perplexity(self) -> float | None:
        """exp(-S/n), at least 1."""
        return exp(min(-self.logprob_sum / self.tokens, _MAX_EXPONENT)) if self.tokens else None


@dataclass(slots=True)
class _Mean:
    count: int = 0
    total: float = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value

    @property
    def value(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass(slots=True)
class Figures(Sum):
    """Confidence over the answer tokens of one choice. Logprobs are natural logarithms, in nats.

    n is `tokens`, S is `logprob_sum`; every mean is over the scored tokens."""

    threshold: float = 0.5
    """A token of this probability or less is one of low confidence."""
    unscored_tokens: int = 0
    """null, NaN, or too positive for a logprob."""
    sentinel_tokens: int = 0
    """At or below SENTINEL: out of every sum, mean and window, but of low confidence."""
    low_confidence_tokens: int = 0
    min_probability_index: int | None = None
    """Among the answer tokens, from 0."""
    aligned: bool = True
    """False: the tokens do not join to the visible text, so all of them are counted."""
    alternatives_tokens: int = 0
    """Scored tokens that came with alternatives."""
    not_top1_tokens: int = 0
    """Of these, the ones for which an alternative was likelier."""
    min_margin: float | None = None
    """Least difference between the two best probabilities at a position."""
    last_margin: float | None = None
    """Of the token counted last."""
    reasoning: Sum = field(default_factory=Sum)
    _probability_sum: float = 0.0
    _least: float = inf
    _window: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))
    _worst: float = inf
    """Least sum of a full window."""
    _margins: _Mean = field(default_factory=_Mean)
    _entropies: _Mean = field(default_factory=_Mean)

    def count(self, token: Token) -> str:
        """Count one answer token; says whether it was scored, unscored or a sentinel."""
        logprob = token.logprob
        self.last_margin = None
        index = self.tokens + self.unscored_tokens + self.sentinel_tokens
        status = Sum.add(self, logprob)
        if status == "unscored" or logprob is None:
            self.unscored_tokens += 1
            return status
        if logprob < self._least:
            self._least, self.min_probability_index = logprob, index
        if status == "sentinel":
            self.sentinel_tokens += 1
            self.low_confidence_tokens += 1
            return status
        logprob = min(logprob, 0.0)
        probability = exp(logprob)
        self._probability_sum += probability
        self.low_confidence_tokens += probability <= self.threshold
        self._window.append(logprob)
        if len(self._window) == WINDOW:
            self._worst = min(self._worst, sum(self._window))
        if token.alternatives:
            self._compare(token)
        return status

    def _compare(self, token: Token) -> None:
        found = position(token)
        if found is None:
            return
        self.alternatives_tokens += 1
        self.not_top1_tokens += not found.top1
        self.last_margin = found.margin
        if found.margin is not None:
            self._margins.add(found.margin)
            if self.min_margin is None or found.margin < self.min_margin:
                self.min_margin = found.margin
        if found.entropy is not None:
            self._entropies.add(found.entropy)

    @property
    def sequence_probability(self) -> float | None:
        """exp(S); None where a sentinel makes it unknown."""
        return exp(self.logprob_sum) if self.tokens and not self.sentinel_tokens else None

    @property
    def geometric_mean_probability(self) -> float | None:
        """exp(S/n): the sequence probability made independent of length; 1/perplexity."""
        return exp(self.logprob_sum / self.tokens) if self.tokens else None

    @property
    def mean_probability(self) -> float | None:
        """Arithmetic mean of the tokens' probabilities."""
        return self._probability_sum / self.tokens if self.tokens else None

    @property
    def min_probability(self) -> float | None:
        """Of the least likely token; 0.0 where a sentinel stands."""
        if self.sentinel_tokens:
            return 0.0
        return exp(min(self._least, 0.0)) if self.tokens else None

    @property
    def lowest_window_probability(self) -> float | None:
        """Geometric mean of the worst WINDOW tokens in a row; of the whole answer where it is shorter. The chosen-token
        cousin of DeepConf's lowest group confidence (arXiv 2508.15260)."""
        if self.tokens < WINDOW:
            return self.geometric_mean_probability
        return exp(self._worst / WINDOW)

    @property
    def mean_margin(self) -> float | None:
        """Mean difference between the two best probabilities, over positions with two or more."""
        return self._margins.value

    @property
    def mean_entropy(self) -> float | None:
        """Mean of a lower bound on entropy in nats, over positions with five or more alternatives."""
        return self._entropies.value

    def describe(self) -> dict[str, object]:
        """The figures under their names, as they are shown to people; None where one is unknown."""
        return {
            **{name: getattr(self, name) for name in NAMES},
            "reasoning": {"tokens": self.reasoning.tokens, "perplexity": self.reasoning.perplexity},
            "aligned": self.aligned,
        }


NAMES: Final = (
    "tokens",
    "unscored_tokens",
    "sentinel_tokens",
    "logprob_sum",
    "sequence_probability",
    "perplexity",
    "geometric_mean_probability",
    "mean_probability",
    "min_probability",
    "min_probability_index",
    "low_confidence_tokens",
    "threshold",
    "lowest_window_probability",
    "mean_margin",
    "min_margin",
    "not_top1_tokens",
    "alternatives_tokens",
    "mean_entropy",
)
