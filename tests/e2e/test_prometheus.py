"""Prometheus before a proxy of two workers before a real model: what it sees stays true."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.posting import page, post
from tests.e2e.prometheus import INTERVAL, TARGET_LABELS, Prometheus, prometheus
from tests.e2e.running import Running, proxy_before
from tests.promtool import promtool

ANSWERS = 500
SCRAPES = 20
CLIENTS = 8
SHORT: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}],
    "max_tokens": 1,
    "logprobs": True,
}
COUNTED = 'logprob_responses_total{model="m",api="chat",outcome="scored",stream="false"}'


@pytest.fixture(scope="module")
def proxy(model_server: str) -> Iterator[Running]:
    with proxy_before(model_server, "--workers", "2", "--drain-delay", "0s") as running:
        yield running


@pytest.fixture(scope="module")
def prom(proxy: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with prometheus(tmp_path_factory.mktemp("prometheus"), proxy.admin) as running:
        yield running


def ask(proxy: Running, _: object = None) -> int:
    try:
        return post(f"{proxy.base_url}/chat/completions", SHORT).status
    except OSError:
        return 0  # its worker was killed


def raw(prom: Prometheus, selector: str, seconds: float) -> list[float]:
    """The samples of one series in the last seconds, as they were scraped."""
    (series,) = prom.query(f"{selector}[{seconds * 1000:.0f}ms]")
    return [float(value) for _, value in series["values"]]


def test_what_was_counted_is_what_every_scrape_says(proxy: Running, prom: Prometheus) -> None:
    began = time.monotonic()
    with ThreadPoolExecutor(CLIENTS) as clients:
        statuses = list(clients.map(lambda n: ask(proxy, n), range(ANSWERS)))
    print(f"{ANSWERS} answers in {time.monotonic() - began:.1f} s")
    assert statuses == [200] * ANSWERS
    prom.until(COUNTED, ANSWERS)
    prom.scrapes(SCRAPES + 5)
    samples = raw(prom, COUNTED, (SCRAPES + 4) * INTERVAL)
    assert len(samples) >= SCRAPES
    assert set(samples) == {ANSWERS}
    per_worker = prom.query('count by (__name__) ({__name__=~".+",pid=~".+"})')
    assert per_worker == []


def test_labels_of_the_target_and_of_the_metrics_do_not_meet(prom: Prometheus) -> None:
    labels = prom.api("labels")
    assert not [label for label in labels if label.startswith("exported_")]
    assert set(labels) >= TARGET_LABELS.keys()
    assert prom.value("count(logprob_proxy_build_info{pod='llm-0'})") == 1


def test_a_worker_is_killed_and_no_total_falls(proxy: Running, prom: Prometheus) -> None:
    before = prom.value(COUNTED)
    assert before is not None
    went_on = threading.Event()
    asked: list[int] = []

    def some() -> None:
        while not went_on.is_set():
            asked.append(ask(proxy))

    with ThreadPoolExecutor(CLIENTS) as clients:
        for _ in range(CLIENTS):
            clients.submit(some)
        try:
            for round_ in range(3):
                time.sleep(1)
                os.kill(proxy.workers[round_ % 2], signal.SIGKILL)
                so_far = len(asked)
                time.sleep(2)
                assert asked[so_far:].count(200) > CLIENTS, "traffic goes on"
        finally:
            went_on.set()
    answered, lost = asked.count(200), len(asked) - asked.count(200)
    print(f"{answered} answers, {lost} lost to three killed workers")
    prom.scrapes(5)
    counted = prom.value(COUNTED)
    assert counted is not None
    # A worker that is killed may have answered and not counted yet: one answer a connection that it had.
    assert before + answered - 3 * CLIENTS <= counted <= before + answered + lost
    for series in prom.query('{__name__=~"logprob_.+_(total|count|sum|bucket)"}[1m]'):
        values = [float(value) for _, value in series["values"]]
        assert values == sorted(values), series["metric"]
    assert prom.value("max_over_time(logprob_proxy_inflight_limit[1m])") == 1024
    assert prom.value("logprob_proxy_inflight_requests") == 0
    assert prom.value("logprob_proxy_inflight_limit") == 1024


def test_metrics_are_as_promtool_wants_them(proxy: Running) -> None:
    assert promtool("check", "metrics", page=page(f"{proxy.admin}/metrics")) == ""
