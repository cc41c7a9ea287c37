"""Probability of each label of a classifier, from the token where the label begins.

Law: an alternative counts for a label only if it can become that label and no other; what could become several is
ambiguous and widens their bounds, what fits none or was not sent is rest. Nothing is shared out by guessing.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from math import exp, expm1, fsum, inf, log
from typing import Final, NamedTuple

from proxy.core.document import LimitError, scalars
from proxy.core.fields import MAX_BYTES, MAX_FIELDS
from proxy.core.figures import status_of
from proxy.core.label_spec import LEAD, QUOTES, LabelSpec, decode, encode
from proxy.core.overlay import lay
from proxy.core.probability import SENTINEL
from proxy.core.tokens import Token

__all__ = ["LabelSpec", "labels"]

_MAX_ALTERNATIVES: Final = 4096
"""Looked at, the others are rest: a vLLM without a limit sends its whole vocabulary."""

_LEAD_IN_STRING: Final = re.compile(rf"(?:[\s*`{QUOTES}]|\\[\"nrt])*+")
"""LEAD in a JSON string."""
_STRING_END: Final = re.compile(r'(?<!\\)"')
_WORD_END: Final = re.compile(r"[,\]}\s]")
"""Behind a JSON number, true, false or null."""


class _Place(NamedTuple):
    """Where the label begins, and what may stand around it in a token."""

    start: int
    """Byte of the text."""
    lead: re.Pattern[str]
    end: re.Pattern[str] | None


def labels(tokens: Sequence[Token], text: bytes, spec: LabelSpec) -> dict[str, object] | None:
    """Probabilities in [0, 1] by label, as they are written into the answer; None where the tokens do not join to the
    visible text.

    `token_index` counts the given tokens from 0. `probability` is a lower bound of what the model gave a label;
    `probability_upper` stands beside it where tokens fit that label and another one. `normalized` is the label's share
    of what fits any label. `rest` fits none or was not sent. Where no label begins, or without logprobs where it does,
    the numbers are None and `reason` says `no_label` or `upstream_sent_none`.
    """
    overlay = lay(tokens, text)
    if overlay is None:
        return None
    place = _place(text, spec.at)
    if place is None:
        return _nothing(spec, None, "no_label")
    index = overlay.over(place.start, place.start + 1)[-1]
    token = tokens[index]
    # The chosen token is usually among the alternatives; two that print alike may still be different tokens.
    candidates = {(token.data, token.logprob), *islice(token.alternatives, _MAX_ALTERNATIVES)}
    scored = [
        (data, -inf if logprob <= SENTINEL else min(logprob, 0.0))
        for data, logprob in candidates
        if logprob is not None and status_of(logprob) != "unscored"
    ]
    if not scored:
        return _nothing(spec, index, "upstream_sent_none")
    before = token.data[: max(0, place.start - overlay.start(index))]
    fitting = [(_fits(data.removeprefix(before), place, spec), logprob) for data, logprob in scored]
    return {"token_index": index, **_summed(fitting, spec)}


def _place(text: bytes, at: str | None) -> _Place | None:
    start, end, lead, stop = 0, len(text), LEAD, None
    if at is not None:
        try:
            scalar = scalars(text, MAX_FIELDS, MAX_BYTES).get(at) if len(text) <= MAX_BYTES else None
        except LimitError:
            return None
        if scalar is None:
            return None
        start, end = scalar.start, scalar.end
        lead, stop = (_LEAD_IN_STRING, _STRING_END) if scalar.string else (LEAD, _WORD_END)
    value = decode(text[start:end])
    match = lead.match(value)
    before = match[0] if match else ""
    return None if before == value else _Place(start + len(encode(before)), lead, stop)


def _fits(data: bytes, place: _Place, spec: LabelSpec) -> list[int]:
    """Labels that a token at the place can be, or become."""
    text = decode(data)
    if lead := place.lead.match(text):
        text = text[lead.end() :]
    end = place.end.search(text) if place.end else None
    return spec.fits(text[: end.start()] if end else text, ended=end is not None)


def _summed(fitting: Iterable[tuple[list[int], float]], spec: LabelSpec) -> dict[str, object]:
    sure: list[list[float]] = [[] for _ in spec.labels]
    shared: list[list[float]] = [[] for _ in spec.labels]
    ambiguous: list[float] = []
    for fits, logprob in fitting:
        if len(fits) == 1:
            sure[fits[0]].append(logprob)
        elif fits:
            ambiguous.append(logprob)
            for label in fits:
                shared[label].append(logprob)
    known = [_log_sum(logprobs) for logprobs in sure]
    total = _log_sum([*known, *ambiguous])
    entries: dict[str, dict[str, float | None]] = {}
    for label, name in enumerate(spec.labels):
        entry = entries[name] = {"probability": _probability(known[label])}
        if shared[label]:
            entry["probability_upper"] = _probability(_log_sum([known[label], *shared[label]]))
        # What is ambiguous is in the denominator: a share is never told larger than it is.
        entry["normalized"] = _probability(known[label] - total) if max(known) > -inf else None
    return {
        "labels": entries,
        "ambiguous": _probability(_log_sum(ambiguous)),
        "rest": -expm1(min(total, 0.0)) + 0.0,
    }


def _nothing(spec: LabelSpec, index: int | None, reason: str) -> dict[str, object]:
    entries = {name: {"probability": None, "normalized": None} for name in spec.labels}
    return {"token_index": index, "labels": entries, "ambiguous": None, "rest": None, "reason": reason}


def _log_sum(logprobs: Sequence[float]) -> float:
    """ln of the sum of the exponentials, in any order the same."""
    top = max(logprobs, default=-inf)
    return top if top == -inf else top + log(fsum([exp(x - top) for x in logprobs]))


def _probability(logprob: float) -> float:
    """Rounding may have lifted a sum a little over 1."""
    return exp(min(logprob, 0.0))
