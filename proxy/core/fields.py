"""Confidence of each scalar of a structured answer.

Law: a value is judged by the tokens that hold its bytes and by no others, the quotes of a string excluded; a token that
holds structure too is in and is counted as shared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, inf
from typing import Final

from proxy.core.document import LimitError, scalars
from proxy.core.figures import status_of
from proxy.core.overlay import Overlay, lay
from proxy.core.tokens import Token

MAX_FIELDS: Final = 1000
MAX_BYTES: Final = 1 << 20
"""Of text, and of the JSON Pointers together."""


@dataclass(frozen=True, slots=True)
class Field:
    """Figures over the tokens of one value. n counts the scored tokens, S sums their logprobs (natural, in nats).

    Without scored tokens and sentinels there is nothing to say: None. A sentinel ("not among the tokens I kept") is in
    no sum; it makes both probabilities 0.0, as a value that the model hardly meant should look."""

    geometric_mean_probability: float | None
    """exp(S/n): independent of the value's length."""
    probability: float | None
    """exp(S): of the whole value."""
    min_probability: float | None
    """Of the least likely token."""
    tokens: int
    """n."""
    shared_tokens: int
    """Those of n with bytes outside the value: quotes, commas, names."""


def fields(
    tokens: Sequence[Token], text: bytes, *, max_fields: int = MAX_FIELDS, max_bytes: int = MAX_BYTES
) -> dict[str, Field] | None:
    """JSON Pointer (RFC 6901) -> Field of each scalar of the JSON document in the visible text; empty without one.

    None where the tokens do not join to the text, and beyond a limit (`overlay.lay` tells which). What counts as the
    document and as a scalar's bytes: `document.scalars`.
    """
    if len(text) > max_bytes:
        return None
    overlay = lay(tokens, text)
    if overlay is None:
        return None
    try:
        found = scalars(text, max_fields, max_bytes)
    except LimitError:
        return None
    return {pointer: _field(overlay, scalar.start, scalar.end) for pointer, scalar in found.items()}


def describe(found: Mapping[str, Field]) -> dict[str, dict[str, float | None]]:
    """The same in plain values, as they are written into the answer."""
    return {pointer: asdict(field) for pointer, field in found.items()}


def _field(overlay: Overlay, start: int, end: int) -> Field:
    count = shared = 0
    total, least = 0.0, inf
    sentinel = False
    for index in overlay.over(start, end):
        logprob = overlay.tokens[index].logprob
        status = status_of(logprob)
        if status == "sentinel":
            sentinel = True
        elif status == "scored" and logprob is not None:
            logprob = min(logprob, 0.0)
            count += 1
            total += logprob
            least = min(least, logprob)
            shared += not overlay.within(index, start, end)
    if sentinel:
        return Field(exp(total / count) if count else None, 0.0, 0.0, count, shared)
    if not count:
        return Field(None, None, None, 0, 0)
    return Field(exp(total / count), exp(total), exp(least), count, shared)
