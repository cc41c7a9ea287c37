"""Metrics: what is counted once stays right, whatever names and numbers come."""

import math
import re
from array import array
from collections.abc import Sequence
from math import exp, inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.parser import text_string_to_metric_families

from proxy import __version__
from proxy.core.figures import Figures
from proxy.core.problem import Problem
from proxy.core.report import ChoiceReport, Outcome, Report
from proxy.core.tokens import Alternative, Token
from proxy.metrics import METRICS, Metrics, markdown
from proxy.metrics import table as rows
from proxy.metrics.names import ROOM
from proxy.metrics.record import observe_all
from proxy.settings import Settings
from tests.promtool import promtool

PARTLY_SURE = [-0.1, -0.5, -2.0]


def a_report(logprobs: Sequence[float | None] = PARTLY_SURE, part: str = "answer", **changes: Any) -> Report:
    figures = Figures()
    report = Report(asked=True, id="1", model="m-2026", choices=[ChoiceReport((0,), figures)])
    for logprob in logprobs:
        status = figures.count(Token(b"", logprob))
        report.status_counts[part, status] = report.status_counts.get((part, status), 0) + 1
        if status == "scored" and logprob is not None:
            report.scored.setdefault(part, array("d")).append(logprob)
    for name, value in changes.items():
        setattr(report, name, value)
    return report


def an_outcome(**changes: Any) -> Outcome:
    values: dict[str, Any] = {
        "time": 0.0,
        "method": "POST",
        "api": "chat",
        "model": "m",
        "status": 200,
        "outcome": "scored",
        "stream": True,
        "duration": 1.5,
        "first_chunk": 0.2,
        "rewrite_seconds": 0.001,
        "report": a_report(),
    }
    return Outcome(**(values | changes))


def samples(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    body, _ = metrics.expose()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return samples(metrics).get((name, frozenset(labels.items())))


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(Settings())


WHERE = {"model": "m", "api": "chat"}
ANSWER = {**WHERE, "part": "answer"}


def test_an_answer_is_counted(metrics: Metrics) -> None:
    metrics.record(an_outcome())
    assert value(metrics, "logprob_tokens_total", **ANSWER, status="scored") == 3
    assert value(metrics, "logprob_tokens_total", **ANSWER, status="sentinel") == 0
    assert value(metrics, "logprob_token_probability_count", **ANSWER) == 3
    assert value(metrics, "logprob_token_probability_sum", **ANSWER) == sum(map(exp, PARTLY_SURE))
    assert value(metrics, "logprob_token_probability_bucket", **ANSWER, le="0.5") == 1
    assert value(metrics, "logprob_token_surprisal_nats_sum", **ANSWER) == 2.6
    assert value(metrics, "logprob_token_surprisal_nats_bucket", **ANSWER, le="0.5") == 2
    assert value(metrics, "logprob_low_confidence_tokens_total", **ANSWER) == 1
    assert value(metrics, "logprob_response_perplexity_sum", **WHERE) == exp(2.6 / 3)
    assert value(metrics, "logprob_response_min_probability_sum", **WHERE) == exp(-2.0)
    assert value(metrics, "logprob_responses_total", **WHERE, outcome="scored", stream="true") == 1
    assert value(metrics, "logprob_responses_total", **WHERE, outcome="missing", stream="true") == 0
    assert value(metrics, "logprob_proxy_requests_total", **WHERE, code="200", origin="upstream") == 1
    assert value(metrics, "logprob_proxy_request_duration_seconds_sum", **WHERE) == 1.5
    assert value(metrics, "logprob_proxy_time_to_first_chunk_seconds_sum", **WHERE) == 0.2
    assert value(metrics, "logprob_proxy_rewrite_seconds_sum") == 0.001
    assert value(metrics, "logprob_model_info", model="m", response_model="m-2026") == 1


@pytest.mark.parametrize(("probability", "low"), [(0.5, 1), (0.5000000000000002, 0)])
def test_the_edge_of_half_belongs_to_low_confidence(metrics: Metrics, probability: float, low: int) -> None:
    """Recording rules read the bucket of 0.5 as the share of low confidence: both must agree on the edge."""
    logprob = {0.5: -0.6931471805599453, 0.5000000000000002: -0.693147180559945}[probability]
    assert exp(logprob) == probability
    metrics.record(an_outcome(report=a_report([logprob])))
    assert value(metrics, "logprob_token_probability_bucket", **ANSWER, le="0.5") == low
    assert value(metrics, "logprob_low_confidence_tokens_total", **ANSWER) == low


def test_the_threshold_is_the_settings() -> None:
    metrics = Metrics(Settings(low_confidence_threshold=0.95, max_in_flight=7))
    metrics.record(an_outcome())
    assert value(metrics, "logprob_low_confidence_tokens_total", **ANSWER) == 3
    assert value(metrics, "logprob_low_confidence_threshold") == 0.95
    assert value(metrics, "logprob_proxy_inflight_limit") == 7
    assert value(metrics, "logprob_proxy_build_info", version=__version__) == 1


def test_sentinels_count_as_low_confidence_and_enter_no_sum(metrics: Metrics) -> None:
    metrics.record(an_outcome(report=a_report([-0.5, -9999.0, -inf, None, 3.0])))
    assert value(metrics, "logprob_tokens_total", **ANSWER, status="sentinel") == 2
    assert value(metrics, "logprob_tokens_total", **ANSWER, status="unscored") == 2
    assert value(metrics, "logprob_low_confidence_tokens_total", **ANSWER) == 2
    assert value(metrics, "logprob_token_surprisal_nats_sum", **ANSWER) == 0.5
    assert value(metrics, "logprob_response_perplexity_sum", **WHERE) == exp(0.5)
    assert value(metrics, "logprob_response_min_probability_sum", **WHERE) == 0.0


def test_reasoning_is_counted_apart(metrics: Metrics) -> None:
    metrics.record(an_outcome(report=a_report([-0.5], part="reasoning", choices=[])))
    assert value(metrics, "logprob_token_probability_count", **WHERE, part="reasoning") == 1
    assert value(metrics, "logprob_token_probability_count", **ANSWER) is None
    assert value(metrics, "logprob_tokens_total", **ANSWER, status="scored") == 0


@given(st.lists(st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]) | st.floats(0, 1e6), max_size=50))
def test_observing_all_at_once_is_observing_each(values: list[float]) -> None:
    """Guards the use of prometheus_client's private names: an upgrade that moves them fails here."""
    bounds = (0.0, 0.3, 0.5, 1.0, 100.0)
    at_once, each = (
        Histogram("h", "h", ["label"], buckets=bounds, registry=CollectorRegistry()).labels("x")
        for _ in range(2)
    )
    observe_all(at_once, values)
    for one in values:
        each.observe(one)
    got, wanted = list(at_once._child_samples()), list(each._child_samples())
    assert [s for s in got if s.name != "_sum"] == [s for s in wanted if s.name != "_sum"]
    (got_sum,) = (s.value for s in got if s.name == "_sum")
    (wanted_sum,) = (s.value for s in wanted if s.name == "_sum")
    assert got_sum == pytest.approx(wanted_sum)


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_only_finite_values_are_observed(metrics: Metrics, bad: float) -> None:
    metrics.record(an_outcome(duration=bad, first_chunk=bad, rewrite_seconds=bad))
    assert all(abs(one) < inf for one in samples(metrics).values())
    assert value(metrics, "logprob_proxy_request_duration_seconds_count", **WHERE) is None


def test_one_hopeless_answer_does_not_drown_the_sum(metrics: Metrics) -> None:
    metrics.record(an_outcome(report=a_report([-5000.0])))
    assert value(metrics, "logprob_response_perplexity_sum", **WHERE) == 1e6


def test_a_model_is_known_after_its_first_2xx_and_not_before(metrics: Metrics) -> None:
    def code(status: int, model: str) -> float | None:
        return value(
            metrics,
            "logprob_proxy_requests_total",
            model=model,
            api="chat",
            code=str(status),
            origin="upstream",
        )

    metrics.record(an_outcome(status=404, outcome="passthrough", report=None))
    assert (code(404, ""), code(404, "m")) == (1, None)
    metrics.record(an_outcome())
    metrics.record(an_outcome(status=500, outcome="passthrough", report=None))
    assert (code(200, "m"), code(500, "m")) == (1, 1)
    metrics.record(an_outcome(status=200, origin="proxy", model="made-up", report=None))
    assert not any(("model", "made-up") in labels for _, labels in samples(metrics))


def test_the_answer_may_name_the_model() -> None:
    metrics = Metrics(Settings(model_label="response"))
    metrics.record(an_outcome())
    metrics.record(an_outcome(model="alias"))
    metrics.record(an_outcome(model="made-up", report=a_report(model=None)))
    metrics.record(an_outcome(status=500, outcome="passthrough", report=None))
    where = {"api": "chat", "origin": "upstream"}
    assert value(metrics, "logprob_proxy_requests_total", **where, model="m-2026", code="200") == 2
    assert value(metrics, "logprob_proxy_requests_total", **where, model="", code="200") == 1
    assert value(metrics, "logprob_proxy_requests_total", **where, model="", code="500") == 1
    assert value(metrics, "logprob_model_info", model="m-2026", response_model="m-2026") == 1
    assert "made-up" not in metrics.expose()[0].decode()


def test_the_proxys_own_errors_begin_at_0(metrics: Metrics) -> None:
    """Else the first of them would be in no rate."""
    metrics.record(an_outcome())
    for code in ("500", "503"):
        assert value(metrics, "logprob_proxy_requests_total", **WHERE, code=code, origin="proxy") == 0


def test_names_nobody_serves_make_no_series(metrics: Metrics) -> None:
    metrics.record(an_outcome(status=404, model="x", outcome="passthrough", report=None))
    before = len(samples(metrics))
    for number in range(1000):
        metrics.record(an_outcome(status=404, model=f"x{number}", outcome="passthrough", report=None))
    assert len(samples(metrics)) == before


def test_there_is_room_for_so_many_models_then_all_are_other(metrics: Metrics) -> None:
    for number in range(ROOM + 20):
        metrics.record(an_outcome(model=f"m{number}", report=a_report([], model=f"r{number}")))
    found = samples(metrics)
    models = {dict(labels).get("model") for name, labels in found if name == "logprob_proxy_requests_total"}
    assert len(models) == ROOM + 1
    assert "other" in models
    pairs = [labels for name, labels in found if name == "logprob_model_info"]
    assert len(pairs) == ROOM + 1
    assert value(metrics, "logprob_model_label_overflow_total") == 20
    metrics.record(an_outcome(model="m5"))
    assert value(metrics, "logprob_model_label_overflow_total") == 20


@given(st.lists(st.text(st.characters(codec=None), max_size=200), max_size=5))
def test_no_name_makes_the_page_unreadable(names: list[str]) -> None:
    metrics = Metrics(Settings())
    for name in names:
        metrics.record(an_outcome(model=name, report=a_report(model=name)))
    for _, labels in samples(metrics):
        for _, label in labels:
            assert len(label) <= 128


def test_unknown_words_make_no_new_values(metrics: Metrics) -> None:
    report = a_report(failures={"made-up": 2, "invalid_json": 1})
    problem = Problem(400, "no", param="made.up", reason="made-up")
    metrics.record(
        an_outcome(
            api="made-up", upstream_error="made-up", problem=problem, report=report, status=1000, origin="x"
        )
    )
    assert value(metrics, "logprob_rewrite_failures_total", reason="other") == 2
    assert value(metrics, "logprob_rewrite_failures_total", reason="invalid_json") == 1
    assert value(metrics, "logprob_proxy_upstream_errors_total", kind="other") == 1
    assert "made-up" not in metrics.expose()[0].decode()


def test_refusals_are_counted_by_parameter_and_reason(metrics: Metrics) -> None:
    problem = Problem(400, "no", param="top_logprobs", reason="range")
    metrics.record(
        an_outcome(status=400, origin="proxy", outcome="passthrough", problem=problem, report=None)
    )
    assert value(metrics, "logprob_validation_errors_total", param="top_logprobs", reason="range") == 1
    where = {"model": "", "api": "chat"}
    assert value(metrics, "logprob_proxy_requests_total", **where, code="400", origin="proxy") == 1
    assert not any(
        number for (name, _), number in samples(metrics).items() if name == "logprob_responses_total"
    )


def test_counters_begin_at_0_also_where_no_model_is_named(metrics: Metrics) -> None:
    metrics.record(an_outcome(model=None, report=a_report(model=None)))
    where = {"model": "", "api": "chat", "stream": "true"}
    assert value(metrics, "logprob_responses_total", **where, outcome="scored") == 1
    assert value(metrics, "logprob_responses_total", **where, outcome="missing") == 0


def test_a_body_too_large_is_no_validation_error(metrics: Metrics) -> None:
    metrics.record(
        an_outcome(status=413, origin="proxy", problem=Problem(413, "no", reason="size"), report=None)
    )
    counts = [v for (name, _), v in samples(metrics).items() if name == "logprob_validation_errors_total"]
    assert sum(counts) == 0


def test_a_client_that_left_before_a_head_is_an_answer_that_ended_early(metrics: Metrics) -> None:
    metrics.record(
        an_outcome(status=499, origin="proxy", outcome="client_closed", report=None, first_chunk=None)
    )
    labels = {"model": "", "api": "chat", "outcome": "client_closed", "stream": "true"}
    assert value(metrics, "logprob_responses_total", **labels) == 1


def test_gauges_follow(metrics: Metrics) -> None:
    metrics.inflight_inc()
    metrics.inflight_inc()
    metrics.inflight_dec()
    metrics.held(12)
    metrics.loop_lag(0.02)
    metrics.loop_lag(-0.001)
    assert value(metrics, "logprob_proxy_inflight_requests") == 1
    assert value(metrics, "logprob_proxy_held_bytes") == 12
    assert value(metrics, "logprob_proxy_loop_lag_seconds_sum") == 0.02
    assert value(metrics, "logprob_proxy_loop_lag_seconds_count") == 2


def test_two_in_one_process_do_not_meet() -> None:
    first, second = Metrics(Settings()), Metrics(Settings())
    first.record(an_outcome())
    assert value(second, "logprob_proxy_requests_total", **WHERE, code="200", origin="upstream") is None


def test_closed_labels_start_at_zero(metrics: Metrics) -> None:
    found = samples(metrics)
    for row in METRICS:
        if row.labels and rows.OPEN not in row.labels.values():
            expected = 1
            for values in row.labels.values():
                expected *= len(values)
            assert sum(name == row.name for name, _ in found) == expected, row.name
    assert set(found.values()) <= {0.0, 0.5, 1.0, float(Settings().max_in_flight)}


def test_rows_keep_the_law() -> None:
    forbidden = {"endpoint", "pod", "container", "namespace", "service", "job", "instance", "user", "le"}
    names = [row.name for row in METRICS]
    assert len(set(names)) == len(names)
    for row in METRICS:
        kind = row.kind.__name__
        assert row.name.startswith("logprob_")
        assert row.name.endswith("_total") == (kind == "Counter")
        assert not forbidden & row.labels.keys()
        assert row.help.endswith(".")
        assert "|" not in row.help
        assert bool(row.buckets) == (kind == "Histogram")
        assert bool(row.across) == (kind == "Gauge")
        assert list(row.buckets) == sorted(set(row.buckets))
        assert all(bound > 0 for bound in row.buckets)
        for values in row.labels.values():
            assert len(set(values)) == len(values)
    assert 0.5 in next(row.buckets for row in METRICS if row.name == "logprob_token_probability")


def test_the_page_is_prometheus_text(metrics: Metrics) -> None:
    metrics.record(an_outcome())
    body, content_type = metrics.expose()
    assert content_type.startswith("text/plain; version=0.0.4")
    text = body.decode()
    assert "_created" not in text
    for line in text.splitlines():
        assert line.startswith("#") or re.fullmatch(r"\w+(\{.*\})? [-+0-9.e]+(Inf)?", line), line


def test_promtool_has_nothing_to_say(metrics: Metrics) -> None:
    metrics.record(an_outcome())
    page, _ = metrics.expose()
    assert promtool("check", "metrics", page=page) == ""


def test_the_markdown_table_has_a_row_for_each_metric() -> None:
    lines = markdown().splitlines()
    assert len(lines) == len(METRICS) + 2
    for row, line in zip(METRICS, lines[2:], strict=True):
        assert f"`{row.name}`" in line
        assert line.count("|") == 5


def test_what_alternatives_say() -> None:
    """Two tokens with alternatives, one of them not the likeliest, and one without."""
    listed = [Alternative(b"a", -0.5), Alternative(b"b", -1.5)]
    figures = Figures()
    report = Report(choices=[ChoiceReport((0,), figures)])
    for chosen in (Token(b"a", -0.5, None, listed), Token(b"b", -1.5, None, listed), Token(b"c", -0.25)):
        figures.count(chosen)
        if figures.last_margin is not None:
            report.margins.append(figures.last_margin)
    metrics = Metrics(Settings(upstream="http://u"))
    metrics.record(Outcome(0.0, "POST", api="chat", model="m", status=200, outcome="scored", report=report))
    text = metrics.expose()[0].decode()
    where = '{api="chat",model="m"}'
    assert f"logprob_alternatives_tokens_total{where} 2.0" in text
    assert f"logprob_not_top1_tokens_total{where} 1.0" in text
    assert f"logprob_token_margin_count{where} 2.0" in text
    assert f"logprob_response_lowest_window_probability_sum{where} {math.exp(-0.75)}" in text
