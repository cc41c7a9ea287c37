"""From an Outcome to the metrics, in one flush.

Law: no metric call per token: tokens are counted in plain lists and added once. Only finite values are
observed: a NaN or an infinity would stay in a sum for ever. What is in no closed list counts as `other`,
never as a new value.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import product
from math import exp, isfinite
from pathlib import Path
from typing import Any, Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from proxy import __version__
from proxy.core.names import clean
from proxy.core.report import FAILURE_REASONS, Outcome, Report
from proxy.metrics import table
from proxy.metrics.names import Names
from proxy.metrics.table import METRICS, OPEN, OTHER
from proxy.settings import Settings

_MOST_PERPLEXITY: Final = 1e6

_Where = tuple[str, str]
"""model, api"""


class Metrics:
    """All metrics of one proxy, in a registry of their own."""

    def __init__(
        self, settings: Settings, registry: CollectorRegistry | None = None, *, together: Path | None = None
    ) -> None:
        """`together` is the directory in which several workers keep theirs (see `workers`)."""
        # A time stamp beside every series doubles what is scraped, and Prometheus does not need it.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = registry or CollectorRegistry()
        self._metrics: dict[str, Any] = {}
        for row in METRICS:
            options: dict[str, Any] = {}
            if row.kind is Histogram:
                options["buckets"] = row.buckets
            elif row.kind is Gauge:
                options["multiprocess_mode"] = row.across
            self._metrics[row.name] = row.kind(
                row.name, row.help, tuple(row.labels), registry=self._registry, **options
            )
            if OPEN not in row.labels.values():
                _start(self._metrics[row.name], *row.labels.values())
        self._models = Names(file=together and together / "models")
        self._pairs = Names(file=together and together / "model-pairs")
        self._started: set[_Where] = set()
        self._named_by_answer = settings.model_label == "response"
        self._threshold = settings.low_confidence_threshold
        self._metrics["logprob_low_confidence_threshold"].set(self._threshold)
        self._metrics["logprob_proxy_inflight_limit"].set(settings.max_in_flight)
        self._metrics["logprob_proxy_build_info"].labels(__version__).set(1)

    def inflight_inc(self) -> None:
        self._metrics["logprob_proxy_inflight_requests"].inc()

    def inflight_dec(self) -> None:
        self._metrics["logprob_proxy_inflight_requests"].dec()

    def held(self, size: int) -> None:
        """Bytes held now by all requests together."""
        self._metrics["logprob_proxy_held_bytes"].set(size)

    def loop_lag(self, seconds: float) -> None:
        """How late the loop was, once."""
        self._metrics["logprob_proxy_loop_lag_seconds"].observe(max(seconds, 0.0))

    def expose(self) -> tuple[bytes, str]:
        """The text that a scrape gets, and its Content-Type."""
        return generate_latest(self._registry), CONTENT_TYPE_PLAIN_0_0_4

    def record(self, outcome: Outcome) -> None:
        """Count one exchange that is over."""
        where = self._where(outcome)
        self._record_exchange(outcome, where)
        if outcome.origin == "upstream" or outcome.outcome == "client_closed":
            ended = closed(outcome.outcome, table.OUTCOMES)
            self._metrics["logprob_responses_total"].labels(*where, ended, str(outcome.stream).lower()).inc()
        if outcome.observed and outcome.refused:
            self._metrics["logprob_observe_refused_total"].labels(*where).inc()
        if outcome.report is not None:
            self._observe("logprob_proxy_rewrite_seconds", outcome.rewrite_seconds)
            self._record_report(outcome.report, where)

    def _where(self, outcome: Outcome) -> _Where:
        """The labels model and api, whose counters then have begun."""
        where = self._model(outcome), closed(outcome.api, table.APIS)
        if where not in self._started:
            self._begin(where)
        return where

    def _model(self, outcome: Outcome) -> str:
        """The label model. A name nobody served yet is empty; its first 2xx makes it known."""
        answered = clean((outcome.report and outcome.report.model) or "")
        model = answered if self._named_by_answer else clean(outcome.model or "")
        if not model:
            return ""
        if outcome.origin != "upstream" or not 200 <= outcome.status < 300:
            return model if (model,) in self._models else ""
        (admitted,) = self._models.admit(model)
        if admitted != model:
            self._metrics["logprob_model_label_overflow_total"].inc()
        if answered:
            self._metrics["logprob_model_info"].labels(*self._pairs.admit(admitted, answered)).set(1)
        return admitted

    def _begin(self, where: _Where) -> None:
        """Start the counters of a model and api that are new."""
        self._started.add(where)
        for row in METRICS:
            if row.kind is not Counter or "model" not in row.labels:
                continue
            rest = [values for label, values in row.labels.items() if label not in ("model", "api")]
            for values in row.starts if OPEN in rest else product(*rest):
                self._metrics[row.name].labels(*where, *values)

    def _record_exchange(self, outcome: Outcome, where: _Where) -> None:
        code = str(outcome.status) if 100 <= outcome.status < 600 else OTHER
        origin = closed(outcome.origin, table.ORIGINS)
        self._metrics["logprob_proxy_requests_total"].labels(*where, code, origin).inc()
        self._observe("logprob_proxy_request_duration_seconds", outcome.duration, *where)
        self._observe("logprob_proxy_time_to_first_chunk_seconds", outcome.first_chunk, *where)
        if outcome.upstream_error:
            kind = closed(outcome.upstream_error, table.UPSTREAM_ERRORS)
            self._metrics["logprob_proxy_upstream_errors_total"].labels(kind).inc()
        problem = outcome.problem
        if problem is not None and problem.param is not None:
            param, reason = closed(problem.param, table.PARAMS), closed(problem.reason, table.REASONS)
            self._metrics["logprob_validation_errors_total"].labels(param, reason).inc()

    def _record_report(self, report: Report, where: _Where) -> None:
        for reason, count in report.failures.items():
            reason = closed(reason, FAILURE_REASONS)
            self._metrics["logprob_rewrite_failures_total"].labels(reason).inc(count)
        for (part, status), count in report.status_counts.items():
            self._metrics["logprob_tokens_total"].labels(*where, part, status).inc(count)
            if status == "sentinel":
                self._metrics["logprob_low_confidence_tokens_total"].labels(*where, part).inc(count)
        for part, logprobs in report.scored.items():
            probabilities = [exp(logprob) for logprob in logprobs]
            low = sum(probability <= self._threshold for probability in probabilities)
            self._metrics["logprob_low_confidence_tokens_total"].labels(*where, part).inc(low)
            observe_all(self._metrics["logprob_token_probability"].labels(*where, part), probabilities)
            surprisals = [0.0 - logprob for logprob in logprobs]
            observe_all(self._metrics["logprob_token_surprisal_nats"].labels(*where, part), surprisals)
        if report.margins:
            observe_all(self._metrics["logprob_token_margin"].labels(*where), report.margins)
        for choice in report.choices:
            figures = choice.figures
            for name in ("alternatives_tokens", "not_top1_tokens"):
                self._metrics[f"logprob_{name}_total"].labels(*where).inc(getattr(figures, name))
            self._observe(
                "logprob_response_lowest_window_probability", figures.lowest_window_probability, *where
            )
            perplexity = figures.perplexity
            if perplexity is not None:
                self._observe("logprob_response_perplexity", min(perplexity, _MOST_PERPLEXITY), *where)
            self._observe("logprob_response_min_probability", figures.min_probability, *where)

    def _observe(self, name: str, value: float | None, *labels: str) -> None:
        if value is not None and isfinite(value):
            metric = self._metrics[name]
            (metric.labels(*labels) if labels else metric).observe(value)


def closed(value: str, values: Sequence[str]) -> str:
    """The value if it is one of the list, else `other`."""
    return value if value in values else OTHER


def observe_all(histogram: Histogram, values: Sequence[float]) -> None:
    """What `observe` in a loop does, at a tenth of the cost; values must be finite.

    prometheus_client has no public call for this. A collector of our own would be public, but such do not work
    when several processes share their metrics. The test that compares this with `observe` guards against upgrades.
    """
    counts = [0] * len(histogram._upper_bounds)
    for value in values:
        counts[bisect_left(histogram._upper_bounds, value)] += 1
    for bucket, count in zip(histogram._buckets, counts, strict=True):
        if count:
            bucket.inc(count)
    histogram._sum.inc(sum(values))


def _start(metric: Any, *values: tuple[str, ...]) -> None:
    """Every series of these label values, at 0: a rate over a series that is born at 1 never shows that 1."""
    if values:
        for labels in product(*values):
            metric.labels(*labels)
