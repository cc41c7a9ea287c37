"""The member `confidence`: what a client may ask for, and what it is told.

Law: a wrong wish is refused with the path of what is wrong; figures that are unknown are null, with a reason where
there are none at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from proxy.core.fields import describe, fields
from proxy.core.figures import Figures
from proxy.core.label_spec import LabelSpec
from proxy.core.labels import labels
from proxy.core.overlay import lay
from proxy.core.tokens import Token

MEMBER: Final = "confidence"
_MEMBERS: Final = frozenset({"fields", "labels", "threshold"})
PARAMS: Final = (MEMBER, *(f"{MEMBER}.{name}" for name in sorted(_MEMBERS)), "X-Confidence")
"""What a refusal can be about."""
MAX_HEADER: Final = 4096
"""Bytes of the answer's header; above it fields and labels are left out there."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a client asked for."""

    threshold: float = 0.5
    fields: bool = False
    labels: LabelSpec | None = None

    @property
    def keeps_tokens(self) -> bool:
        """Figures are sums; these two need the answer's tokens and text."""
        return self.fields or self.labels is not None


class WishError(ValueError):
    """The wish is wrong; `param` is the path of what is."""

    def __init__(self, param: str, message: str) -> None:
        super().__init__(message)
        self.param = param


def parse(value: object, param: str = MEMBER) -> Wanted | None:
    """From `true` or `{"fields": true, "labels": ..., "threshold": 0.6}`; None for false and null. Raises WishError."""
    if value is None or value is False:
        return None
    if value is True:
        return Wanted()
    if not isinstance(value, dict):
        raise WishError(param, f"Invalid type for '{param}': expected a boolean or an object.")
    unknown = sorted(set(value) - _MEMBERS)
    if unknown:
        raise WishError(
            param, f"Unknown member in '{param}': it may have 'fields', 'labels' and 'threshold'."
        )
    threshold = value.get("threshold", 0.5)
    if type(threshold) not in (int, float) or not 0 <= threshold <= 1:
        raise WishError(f"{param}.threshold", f"Invalid '{param}.threshold': expected a number from 0 to 1.")
    wants_fields = value.get("fields", False)
    if type(wants_fields) is not bool:
        raise WishError(f"{param}.fields", f"Invalid type for '{param}.fields': expected a boolean.")
    spec = None
    if value.get("labels") is not None:
        parsed = LabelSpec.parse(value["labels"])
        if isinstance(parsed, str):
            raise WishError(f"{param}.labels", f"Invalid '{param}.labels': it {parsed}.")
        spec = parsed
    return Wanted(float(threshold), wants_fields, spec)


def parse_header(value: bytes, name: str = "X-Confidence") -> Wanted | None:
    """The same from a header: ASCII JSON. Raises WishError."""
    try:
        wish = orjson.loads(value)
    except orjson.JSONDecodeError:
        raise WishError(name, f"Invalid header '{name}': expected true, or an object in JSON.") from None
    return parse(wish, name)


def tell(
    wanted: Wanted, figures: Figures, reason: str | None, tokens: list[Token] | None, text: bytes
) -> dict[str, object]:
    """The object that stands in the answer. `tokens` and `text` of the answer; no tokens where they were too many to be
    kept."""
    told = figures.describe()
    if not figures.tokens:
        told["reason"] = reason
    if wanted.fields:
        found = fields(tokens, text) if tokens is not None else None
        told["fields"] = None if found is None else describe(found)
    if wanted.labels is not None:
        told["labels"] = labels(tokens, text, wanted.labels) if tokens is not None else None
    for name in ("fields", "labels"):
        if name in told and told[name] is None:
            aligned = tokens is not None and lay(tokens, text) is not None
            told[f"{name}_reason"] = "too_large" if tokens is None or aligned else "not_aligned"
    return told


def tell_calls(tokens: Sequence[Token], calls: Sequence[bytes]) -> list[dict[str, object]]:
    """Fields of each tool call's arguments, where the API gives their tokens. The calls stand in the tokens in their
    order, so they are looked for from the last one on, each before the one behind it."""
    told: list[dict[str, object]] = []
    for arguments in reversed(calls):
        overlay = lay(tokens, arguments) if arguments else None
        found = fields(tokens, arguments) if overlay is not None else None
        told.append({"fields": None if found is None else describe(found)})
        if overlay is not None:
            tokens = tokens[: overlay.over(0, 1)[0]]
    return told[::-1]


def header(choices: list[dict[str, object]]) -> bytes:
    """The value of the answer's header: a JSON array, an object a choice, in ASCII."""
    value = _ascii(choices)
    if len(value) > MAX_HEADER:
        value = _ascii(
            [
                {k: v for k, v in choice.items() if k not in ("fields", "labels", "tool_calls")}
                for choice in choices
            ]
        )
    return value


def _ascii(value: object) -> bytes:
    text = orjson.dumps(value).decode()
    return "".join(c if c < "\x7f" else _escaped(c) for c in text).encode("ascii")


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
