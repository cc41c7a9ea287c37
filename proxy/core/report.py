"""What is known when an answer has passed: pure values for metrics, logs and people.

Law: numbers, names and counts only; never a token's text, a prompt or a completion.
"""

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from proxy.core.figures import Figures
    from proxy.core.problem import Problem
    from proxy.core.trace import Trace

FAILURE_REASONS: Final = (
    "invalid_json",
    "unknown_shape",
    "event_too_large",
    "body_too_large",
    "held_budget",
    "snapshot_mismatch",
    "prompt_unknown",
    "too_many_choices",
    "body_not_judged",
    "internal",
)
"""Why something passed unread or uncounted; label values of the metric."""

PARTS: Final = ("answer", "reasoning", "other")
STATUSES: Final = ("scored", "unscored", "sentinel")


@dataclass(slots=True)
class ChoiceReport:
    """One choice: its key within the answer, and figures over its answer tokens."""

    key: tuple[object, ...]
    figures: "Figures"
    text: bool = False
    """Visible text came, as content that logprobs could speak of."""
    ended: bool = False
    told: dict[str, object] | None = None
    """The member `confidence`, where the client was told one."""


@dataclass(slots=True)
class Report:
    """What the core knows of one answer."""

    asked: bool = False
    id: str | None = None
    model: str | None = None
    annotated: int = 0
    """Insertions made."""
    failures: dict[str, int] = field(default_factory=dict)
    """How often something passed unread, by FAILURE_REASONS."""
    choices: list[ChoiceReport] = field(default_factory=list)
    scored: dict[str, "array[float]"] = field(default_factory=dict)
    """Logprobs (natural log) of scored tokens by PARTS, each token once."""
    margins: "array[float]" = field(default_factory=lambda: array("d"))
    """Of answer tokens with two or more known tokens at their position: best probability less the second."""
    status_counts: dict[tuple[str, str], int] = field(default_factory=dict)
    """Tokens by (part, status)."""
    in_band_error: bool = False
    ended: bool = False
    """The protocol's own end was seen."""
    unreadable: bool = False
    """No payload could be read."""

    @property
    def outcome(self) -> str:
        """scored, missing, not_asked, not_applicable or unparsable."""
        if any(choice.figures.tokens or choice.figures.sentinel_tokens for choice in self.choices):
            return "scored"
        if self.unreadable:
            return "unparsable"
        if not self.asked:
            return "not_asked"
        return "missing" if any(choice.text for choice in self.choices) else "not_applicable"

    def fail(self, reason: str, count: int = 1) -> None:
        self.failures[reason] = self.failures.get(reason, 0) + count


@dataclass(slots=True)
class Outcome:
    """One exchange when it is over: the Report plus what only the shell knows. Times in seconds, sizes in bytes."""

    time: float
    """When the request came, seconds since the epoch."""
    method: str
    api: str = "other"
    format: str | None = None
    model: str | None = None
    """As requested."""
    status: int = 0
    """Sent to the client; 499 where it left before a head."""
    origin: str = "upstream"
    """Who made the status: upstream or proxy."""
    outcome: str = "passthrough"
    """The Report's, or passthrough, client_closed, upstream_cut."""
    stream: bool = False
    """The answer was a stream of events."""
    problem: "Problem | None" = None
    upstream_error: str | None = None
    duration: float = 0.0
    upstream_head: float | None = None
    first_chunk: float | None = None
    rewrite_seconds: float = 0.0
    request_bytes: int = 0
    response_bytes: int = 0
    report: Report | None = None
    observed: bool = False
    """The proxy asked for logprobs that nobody else wanted."""
    refused: bool = False
    """The upstream refused them, so it was asked again without."""
    error: str | None = None
    trace: "Trace | None" = None
    """The caller's."""
