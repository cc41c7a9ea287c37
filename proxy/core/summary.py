"""What the log says of an answer's confidence, to be set beside right or wrong later.

Law: numbers and the names of fields, never a value. The names are the model's words (a key of an object), so they are
there only where the client asked for fields; they are few, short and on one line.
"""

from collections.abc import Sequence
from math import exp
from typing import Final

from proxy.core.figures import Sum
from proxy.core.names import clean
from proxy.core.report import ChoiceReport

NAMES: Final = (
    "tokens",
    "perplexity",
    "geometric_mean_probability",
    "min_probability",
    "lowest_window_probability",
    "mean_margin",
    "low_confidence_tokens",
    "aligned",
)
"""Of Figures, under their own names."""
FIELD_NAMES: Final = ("geometric_mean_probability", "probability", "min_probability")
MAX_FIELDS: Final = 64
MAX_CHOICES: Final = 16
"""Each with its own figures; they are at most told together."""


def summary(choices: Sequence[ChoiceReport]) -> dict[str, object]:
    """Figures by name: those of the one choice. Of several, `tokens`, `perplexity` and the geometric mean of all their
    tokens together, and in `choices` the figures of each; None where there is nothing to say."""
    if len(choices) == 1:
        return _one(choices[0])
    together = Sum(
        sum(one.figures.tokens for one in choices), sum(one.figures.logprob_sum for one in choices)
    )
    told: dict[str, object] = dict.fromkeys(NAMES)
    told["tokens"] = together.tokens
    if together.tokens:
        told["perplexity"] = together.perplexity
        told["geometric_mean_probability"] = exp(together.logprob_sum / together.tokens)
    if choices:
        told["choices"] = [{"key": _key(one.key), **_one(one)} for one in choices[:MAX_CHOICES]]
    return told


def _one(choice: ChoiceReport) -> dict[str, object]:
    told: dict[str, object] = {name: getattr(choice.figures, name) for name in NAMES}
    if choice.told is not None and "fields" in choice.told:
        told["fields"], left_out = _fields(choice.told["fields"])
        if left_out:
            told["fields_left_out"] = left_out
    return told


def _fields(found: object) -> tuple[dict[str, object] | None, int]:
    """Probabilities by JSON Pointer, and how many had no room or a name that another has once it is cut."""
    if not isinstance(found, dict):
        return None, 0
    kept: dict[str, object] = {}
    for pointer, field in found.items():
        name = clean(pointer)
        if len(kept) < MAX_FIELDS and name not in kept:
            kept[name] = {figure: field[figure] for figure in FIELD_NAMES}
    return kept, len(found) - len(kept)


def _key(key: tuple[object, ...]) -> list[int | None]:
    """Its numbers; what else an upstream may count by is its own."""
    return [part if type(part) is int and abs(part) < 1 << 63 else None for part in key]
