"""What the alternatives of one position say.

Law: chosen and alternatives together, each once. A server may leave the chosen token out of its list (LMDeploy always,
Gemini and OpenAI when it was unlikely), put it first (vLLM), repeat an entry, or send fewer than were asked for; two
entries that print alike may be different pieces of a character, so only bytes and logprob together make them one.
"""

from math import exp, log
from typing import Final, NamedTuple

from proxy.core.probability import ROUNDING, SENTINEL
from proxy.core.tokens import Token

MIN_FOR_ENTROPY: Final = 5
"""Alternatives below which a bound on entropy says little."""


class Position(NamedTuple):
    """One position with alternatives."""

    margin: float | None
    """Probability of the best token less that of the second; None with one token."""
    top1: bool
    """No other token is likelier than the chosen one; ties count."""
    entropy: float | None
    """Lower bound in nats; None with fewer than MIN_FOR_ENTROPY alternatives."""


def position(token: Token) -> Position | None:
    """Of a scored token with alternatives; None without them."""
    chosen = token.logprob
    if chosen is None:
        return None
    listed = {row for row in token.alternatives if row[1] is not None and row[1] <= ROUNDING}
    if not listed:
        return None
    logprobs = [min(x, 0.0) for _, x in listed if x is not None]
    least = min(logprobs)
    # An id or a bare number has no bytes to compare, but its logprob.
    if (token.data, chosen) not in listed and (token.data or chosen not in logprobs):
        logprobs.append(min(chosen, 0.0))
    logprobs.sort(reverse=True)
    return Position(
        exp(logprobs[0]) - exp(logprobs[1]) if len(logprobs) > 1 else None,
        chosen >= logprobs[0],
        _entropy(logprobs, least) if len(listed) >= MIN_FOR_ENTROPY else None,
    )


def _entropy(logprobs: list[float], least: float) -> float:
    """Least entropy in nats that fits what is known.

    h = -sum p ln p over the known tokens; the rest mass r is spread over unseen tokens, each of probability q at most,
    q being the least of the listed ones: H >= h - m q ln q - e ln e with m = floor(r/q), e = r - m q. Entropy is
    concave, so full portions of q are the least even way to spread r.
    """
    entropy, rest = 0.0, 1.0
    for logprob in logprobs:
        if logprob > SENTINEL:
            p = exp(logprob)
            entropy -= p * logprob
            rest -= p
    q = exp(least) if least > SENTINEL else 0.0
    # Behind a sentinel nothing is left to spread: what is missing is rounding.
    if rest > 0.0 and q > 0.0:
        portions = rest // q
        remainder = rest - portions * q
        entropy -= portions * q * least
        if remainder > 0.0:
            entropy -= remainder * log(remainder)
    return max(0.0, entropy)
