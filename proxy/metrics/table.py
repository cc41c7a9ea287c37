"""The table of metrics. Registration, the README and the tests follow from it.

Law: every label has a closed list of values or is bounded by `names`; none is a user, a key, an id or a
token's text, and none is called endpoint, pod, container, namespace, service, job or instance, which scrapers
set. Nothing negative goes into a histogram: surprisal stands in for logprobs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from proxy.core import confidence
from proxy.core.report import FAILURE_REASONS, PARTS, STATUSES
from proxy.formats import FORMATS

OTHER: Final = "other"

OPEN: Final = ()
"""In place of a list: values are not known beforehand, but bounded in number."""

APIS: Final = ("chat", "completions", "responses", "transcriptions", "native", OTHER)
OUTCOMES: Final = (
    "scored",
    "missing",
    "not_asked",
    "not_applicable",
    "unparsable",
    "passthrough",
    "client_closed",
    "upstream_cut",
)
ORIGINS: Final = ("upstream", "proxy")
UPSTREAM_ERRORS: Final = (
    "connect",
    "tls",
    "dns",
    "timeout_connect",
    "timeout_first_byte",
    "timeout_idle",
    "protocol",
    "reset",
    "cut",
    "empty_stream",
    OTHER,
)
PARAMS: Final = (
    *sorted({".".join(rule.param) for fmt in FORMATS for rule in fmt.rules}),
    *confidence.PARAMS,
    OTHER,
)
REASONS: Final = ("type", "range", "requires", "confidence", OTHER)

_SECONDS: Final = (*(round(0.01 * 2**power, 2) for power in range(14)), 160.0, 320.0, 640.0)
_PROBABILITY: Final = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0)
_NATS: Final = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0)
_PERPLEXITY: Final = (1.01, 1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0)
_LEAST: Final = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0)
_REWRITE: Final = (
    *(1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3),
    *(0.01, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
_LAG: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)

Labels = Mapping[str, tuple[str, ...]]
_WHERE: Final[Labels] = {"model": OPEN, "api": APIS}
_PART: Final[Labels] = {**_WHERE, "part": PARTS}


@dataclass(frozen=True, slots=True)
class Metric:
    """One row."""

    name: str
    kind: type[Counter] | type[Gauge] | type[Histogram]
    help: str
    """What the number means, and what it does not."""
    labels: Labels = field(default_factory=dict)
    buckets: tuple[float, ...] = ()
    starts: tuple[tuple[str, ...], ...] = ()
    """Where a label is open: values behind model and api that begin at 0 nevertheless."""
    across: str = ""
    """Of a gauge: how the values of several workers become one (prometheus_client's `multiprocess_mode`); counts add up.
    `live...` leaves those out that have ended."""


METRICS: Final = (
    Metric(
        "logprob_token_probability",
        Histogram,
        "Probability of each token that the upstream chose, as it reports it. It is confidence, not correctness:"
        " compare a model with its own past only.",
        _PART,
        _PROBABILITY,
    ),
    Metric(
        "logprob_token_surprisal_nats",
        Histogram,
        "Surprisal (-logprob) of each chosen token. Sum over count is the mean; exp of the mean is the perplexity of"
        " all these tokens together.",
        _PART,
        _NATS,
    ),
    Metric(
        "logprob_tokens_total",
        Counter,
        "Chosen tokens, each counted once. scored: has a logprob; unscored: null, NaN or no logprob; sentinel: a"
        " number that stands for 'not among those kept' (-9999 and below). Not the upstream's own usage count.",
        {**_PART, "status": STATUSES},
    ),
    Metric(
        "logprob_low_confidence_tokens_total",
        Counter,
        "Chosen tokens with a probability of logprob_low_confidence_threshold or less, sentinels among them.",
        _PART,
    ),
    Metric(
        "logprob_token_margin",
        Histogram,
        "Probability of the likeliest token at a position less that of the second, for answer tokens that came with"
        " alternatives. 0 is a tie, which is common and no error.",
        _WHERE,
        _PROBABILITY,
    ),
    Metric(
        "logprob_alternatives_tokens_total",
        Counter,
        "Scored answer tokens that came with alternatives: what logprob_token_margin and logprob_not_top1_tokens_total"
        " speak of.",
        _WHERE,
    ),
    Metric(
        "logprob_not_top1_tokens_total",
        Counter,
        "Answer tokens for which an alternative was likelier than the chosen one. Sampling does that: a change of"
        " temperature shows here.",
        _WHERE,
    ),
    Metric(
        "logprob_low_confidence_threshold",
        Gauge,
        "The probability up to which a token counts as one of low confidence: the setting, not a measurement.",
        across="max",
    ),
    Metric(
        "logprob_response_perplexity",
        Histogram,
        "Perplexity of the answer tokens of each choice, 1 being certain. Taken as 1e6 where it is more, so that one"
        " outlier does not drown the sum; still, use quantiles, not the mean.",
        _WHERE,
        _PERPLEXITY,
    ),
    Metric(
        "logprob_response_min_probability",
        Histogram,
        "Probability of the least likely answer token of each choice. Falls with length: compare answers alike.",
        _WHERE,
        _LEAST,
    ),
    Metric(
        "logprob_response_lowest_window_probability",
        Histogram,
        "Geometric mean probability of the worst 16 answer tokens in a row of each choice; of all of them where there are"
        " fewer. The worst spot of an answer, less shaken by one token than the least probability.",
        _WHERE,
        _PROBABILITY,
    ),
    Metric(
        "logprob_responses_total",
        Counter,
        "Answers by what became of their logprobs. missing: asked for, text came, no logprobs; not_applicable: tool"
        " calls, empty or refused content; passthrough: not an answer that is read; upstream_cut, client_closed: it"
        " ended early.",
        {**_WHERE, "outcome": OUTCOMES, "stream": ("false", "true")},
    ),
    Metric(
        "logprob_proxy_requests_total",
        Counter,
        "Requests by the status sent to the client and by who made it. 499: the client left before a status. The statuses"
        " 500, 502, 503 and 504 of the proxy begin at 0; any other begins at 1, and a rate does not see that 1.",
        {**_WHERE, "code": OPEN, "origin": ORIGINS},
        starts=tuple((code, "proxy") for code in ("500", "502", "503", "504")),
    ),
    Metric(
        "logprob_proxy_request_duration_seconds",
        Histogram,
        "From a request's head to the end of its answer, the upstream's time included.",
        _WHERE,
        _SECONDS,
    ),
    Metric(
        "logprob_proxy_time_to_first_chunk_seconds",
        Histogram,
        "From a request's head to the first byte of the answer's body that left for the client.",
        _WHERE,
        _SECONDS,
    ),
    Metric(
        "logprob_proxy_rewrite_seconds",
        Histogram,
        "Computing time that an answer's rewriting took, all its events together: the proxy's own share of latency.",
        buckets=_REWRITE,
    ),
    Metric(
        "logprob_proxy_loop_lag_seconds",
        Histogram,
        "How late the event loop ran what was due: what every stream waits when one of them takes long.",
        buckets=_LAG,
    ),
    Metric("logprob_proxy_inflight_requests", Gauge, "Requests being served now.", across="livesum"),
    Metric(
        "logprob_proxy_inflight_limit",
        Gauge,
        "Requests served at one time at most: the setting, less the share of workers that are not up.",
        across="livesum",
    ),
    Metric(
        "logprob_proxy_held_bytes",
        Gauge,
        "Bytes of bodies and events held now, all requests together.",
        across="livesum",
    ),
    Metric(
        "logprob_proxy_upstream_errors_total",
        Counter,
        "Faults of the upstream or of the way to it. An error status that it sent is no such fault.",
        {"kind": UPSTREAM_ERRORS},
    ),
    Metric(
        "logprob_validation_errors_total",
        Counter,
        "Requests refused for a logprob parameter or a wrong `confidence`, without calling the upstream.",
        {"param": PARAMS, "reason": REASONS},
    ),
    Metric(
        "logprob_rewrite_failures_total",
        Counter,
        "What passed unchanged or uncounted because it was not understood. The client got all bytes.",
        {"reason": (*FAILURE_REASONS, OTHER)},
    ),
    Metric(
        "logprob_observe_refused_total",
        Counter,
        "Requests for which the upstream refused the logprobs that only the proxy wanted, and was asked again without. The"
        " model is then left alone for an hour.",
        _WHERE,
    ),
    Metric(
        "logprob_model_info",
        Gauge,
        "Always 1: which model answered (response_model) when one was asked for (model).",
        {"model": OPEN, "response_model": OPEN},
        across="max",
    ),
    Metric(
        "logprob_model_label_overflow_total",
        Counter,
        "Answers whose model is counted under 'other' because the label was full.",
    ),
    Metric(
        "logprob_proxy_build_info",
        Gauge,
        "Always 1: the version that runs.",
        {"version": OPEN},
        across="max",
    ),
)


def markdown(metrics: Sequence[Metric] = METRICS) -> str:
    """The README's table."""
    lines = ["| Metric | Kind | Labels | Meaning |", "|---|---|---|---|"]
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels) or "none"
        lines.append(f"| `{metric.name}` | {metric.kind.__name__.lower()} | {labels} | {metric.help} |")
    return "\n".join(lines) + "\n"
