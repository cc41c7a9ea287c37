"""The bench runs and counts right. Its figures are printed elsewhere and judged nowhere."""

from __future__ import annotations

import pytest

from proxy.core.rewriter import Rewriter
from tests.bench import __main__ as printing
from tests.bench import bodies, load, measure, micro, peers

PLAN = measure.SHORT
EVENTS = PLAN.streams[0] * PLAN.events


@pytest.fixture(scope="module")
def results() -> measure.Results:
    return measure.measure(PLAN)


def need(results: measure.Results, name: str) -> None:
    if name not in results.peaks:
        pytest.skip("; ".join(results.missing))


@pytest.mark.parametrize(("name", "annotated"), [(peers.DIRECT, 0), (peers.NGINX, 1), (peers.PROXY, 1)])
def test_each_peer_passed_every_event_annotated(results: measure.Results, name: str, annotated: int) -> None:
    need(results, name)
    (streams,) = results.streams[PLAN.streams[0]][name]
    assert (streams.events, streams.probabilities) == (EVENTS, EVENTS * measure.PER_EVENT * annotated)
    for answer in bodies.answers():
        (wholes,) = results.wholes[answer.name][name]
        repeats = PLAN.tokens_read * measure.PER_EVENT // answer.logprobs
        assert wholes.probabilities == repeats * answer.logprobs * annotated


@pytest.mark.parametrize("name", [peers.NGINX, peers.PROXY])
def test_its_processes_are_charged(results: measure.Results, name: str) -> None:
    need(results, name)
    assert results.streams[PLAN.streams[0]][name][0].cpu > 0
    assert results.peaks[name] > 2**20


@pytest.mark.parametrize("where", ["in memory", "in files"])
def test_metric_calls_are_a_part_of_the_whole(results: measure.Results, where: str) -> None:
    (one,) = results.metrics[where]
    assert 0 < one.calls < one.whole


def test_prints_what_it_measured(results: measure.Results, capsys: pytest.CaptureFixture[str]) -> None:
    need(results, peers.NGINX)
    printing.show(results)
    printed = capsys.readouterr().out
    assert f"{peers.PROXY} / {peers.NGINX}, CPU: " in printed
    assert all(name in printed for name in (peers.DIRECT, peers.NGINX, peers.PROXY))


@pytest.mark.parametrize("alternatives", micro.ALTERNATIVES)
def test_events_of_the_bench_are_annotated_by_both_readers(alternatives: int) -> None:
    event = bodies.events(alternatives)[0].stamped(1)
    fast = Rewriter(micro.FORMAT, "sse").feed(event)
    with micro.exact_only():
        assert Rewriter(micro.FORMAT, "sse").feed(event) == fast
    load.check(fast.removeprefix(b"data: "), 1 + alternatives)


@pytest.mark.parametrize("answer", bodies.answers(), ids=lambda answer: answer.name)
def test_answers_of_the_bench_are_annotated(answer: bodies.Answer) -> None:
    load.check(micro.whole(answer), answer.logprobs)


def test_wrong_answers_are_noticed() -> None:
    answer = bodies.answer(2, indented=False)
    with pytest.raises(load.BenchError, match="a wrong probability"):
        load.check(answer.body, answer.logprobs)
    with pytest.raises(load.BenchError, match="12 probabilities instead of 13"):
        load.check(micro.whole(answer), answer.logprobs + 1)
