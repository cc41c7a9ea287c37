"""What the alternatives of one position say.

Law: chosen and alternatives together, each once. A server may leave the chosen token out of its list (LMDeploy always,
Gemini and OpenAI when it was unlikely), put it first (vLLM), repeat an entry, or send fewer than were asked for; two
entries that print alike may be different pieces of a character, so only bytes and logprob together make them one.
"""

from math import exp, log
from typing import Final, NamedTuple

from proxy.core.probability import ROUNDING, SENTINEL
from proxy.core.shapes import Listed
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
    logprobs = _distinct(token)
    if not logprobs:
        return None
    least, count = min(logprobs), len(logprobs)
    if not _holds(token, chosen):
        logprobs.append(min(chosen, 0.0))
    logprobs.sort(reverse=True)
    return Position(
        exp(logprobs[0]) - exp(logprobs[1]) if len(logprobs) > 1 else None,
        chosen >= logprobs[0],
        entropy_bound(logprobs, least) if count >= MIN_FOR_ENTROPY else None,
    )


def _distinct(token: Token) -> list[float]:
    """The logprobs of the listed tokens, each token once. Bytes are looked at only where logprobs are equal."""
    listed = token.alternatives
    logprobs = listed.logprobs if isinstance(listed, Listed) else [row.logprob for row in listed]
    kept = [min(x, 0.0) for x in logprobs if x is not None and x <= ROUNDING]
    if len(set(kept)) == len(kept):
        return kept
    return [min(x, 0.0) for _, x in set(listed) if x is not None and x <= ROUNDING]


def _holds(token: Token, chosen: float) -> bool:
    """Whether the chosen token is among the listed ones. An id or a bare number has no bytes to compare."""
    listed = token.alternatives
    logprobs = listed.logprobs if isinstance(listed, Listed) else [row.logprob for row in listed]
    return any(
        logprob == chosen and (not token.data or listed[index].data == token.data)
        for index, logprob in enumerate(logprobs)
    )


def entropy_bound(logprobs: list[float], least: float) -> float:
    """Least entropy in nats that fits what is known: the logprobs of known tokens, and the least of the listed ones.

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
