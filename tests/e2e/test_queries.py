"""Every query of the dashboard and of the rules, asked of a real Prometheus that scraped the real proxy before the real
model: each finds something. A label that one side of a rule lacks, a name that is no more, a status that is never written
shows here.

Rules look back hours, so a past is written before: the series that the proxy really exposes, as if they had grown evenly
for three hours, and what the rules would have recorded of them then (promtool makes the blocks of both).
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.posting import page, post
from tests.e2e.prometheus import TARGET_LABELS, Prometheus, prometheus, substituted
from tests.e2e.running import ROOT, Running, proxy_before
from tests.promtool import promtool

DASHBOARD = json.loads((ROOT / "deploy/grafana/logprob-proxy.json").read_text())
RULE_FILES = sorted((ROOT / "deploy/prometheus").glob("*.rules.yml"))
RULES = [
    (rule.get("record") or rule["alert"], rule)
    for file in RULE_FILES
    for group in yaml.safe_load(file.read_text())["groups"]
    for rule in group["rules"]
]
PANELS = [
    (panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel.get("targets", ())
]
PAST = 3 * 3600
STEP = 60
DEPTH = 3
"""A rule may read what another one recorded, and that what a third one did."""

CHAT: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "Name three rivers."}],
    "max_tokens": 12,
    "logprobs": True,
    "top_logprobs": 3,
}


@pytest.fixture(scope="module")
def proxy(model_server: str) -> Iterator[Running]:
    # Limits that a few requests reach, so that each kind of trouble is there to be seen.
    flags = ("--max-in-flight", "6", "--first-byte-timeout", "4s", "--max-judged-body", "64KiB")
    with proxy_before(model_server, "--workers", "2", *flags) as running:
        yield running


def traffic(proxy: Running) -> None:
    """Answers of several kinds, and one of each trouble."""

    def ask(path: str, **body: Any) -> int:
        return post(f"{proxy.base_url}/{path}", body).status

    for _ in range(4):
        assert ask("chat/completions", **CHAT) == 200
        assert ask("chat/completions", **CHAT, stream=True) == 200
    assert ask("completions", model="m", prompt="One, two,", max_tokens=8, logprobs=3) == 200
    assert ask("chat/completions", **CHAT | {"top_logprobs": 99}) == 400
    assert ask("embeddings", input="a") == 501  # llama.cpp was not started for that
    assert ask("chat/completions", **CHAT, user="x" * 70_000) == 200
    endless = CHAT | {"max_tokens": 1900, "ignore_eos": True}
    with ThreadPoolExecutor(16) as many:
        statuses = list(many.map(lambda _: ask("chat/completions", **endless), range(16)))
    assert 503 in statuses, statuses  # more at a time than may be
    assert 504 in statuses, statuses  # the upstream's first byte came too late


@pytest.fixture(scope="module")
def prom(proxy: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("queries")
    data = folder / "data"
    traffic(proxy)
    now = int(time.time())
    past = folder / "past"
    past.write_text(history(page(f"{proxy.admin}/metrics").decode(), proxy.admin, now))
    promtool("tsdb", "create-blocks-from", "openmetrics", past, data)
    for _ in range(DEPTH):
        with prometheus(folder, proxy.admin, data=data) as bare:
            span = (f"--start={now - PAST}", f"--end={now}")
            promtool(
                *("tsdb", "create-blocks-from", "rules", *span, f"--url={bare.url}", f"--output-dir={data}"),
                *RULE_FILES,
            )
    rules = []
    for file in RULE_FILES:
        rules.append(folder / file.name)
        rules[-1].write_text(re.sub(r"interval: 1m", "interval: 1s", file.read_text()))
    with prometheus(folder, proxy.admin, rules=rules, data=data) as running:
        traffic(proxy)
        running.scrapes(10)
        yield running


def history(text: str, admin: str, now: int) -> str:
    """The page's samples in OpenMetrics, from nothing `PAST` seconds ago to what they are now; gauges as they are."""
    target = {"job": "logprob-proxy", "instance": admin.removeprefix("http://"), **TARGET_LABELS}
    lines = []
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(
                f"{name}={json.dumps(value)}" for name, value in (sample.labels | target).items()
            )
            for when in range(now - PAST, now, STEP):
                share = 1.0 if family.type == "gauge" else (when - now + PAST) / PAST
                lines.append(f"{sample.name}{{{labels}}} {sample.value * share!r} {when}\n")
    return "".join([*lines, "# EOF\n"])


def finds(prom: Prometheus, expression: str) -> bool:
    return any(math.isfinite(float(found["value"][1])) for found in prom.query(expression))


@pytest.mark.parametrize(("panel", "expression"), PANELS)
def test_each_panel_shows_something(prom: Prometheus, panel: str, expression: str) -> None:
    assert finds(prom, substituted(expression, "1m"))


@pytest.mark.parametrize(
    "variable", [row for row in DASHBOARD["templating"]["list"] if row["type"] == "query"]
)
def test_each_variable_has_values(prom: Prometheus, variable: dict[str, Any]) -> None:
    match = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
    assert match is not None
    series, label = match.groups()
    values = prom.api(f"label/{label}/values", **{"match[]": substituted(series, "1m")})
    assert [value for value in values if value]


@pytest.mark.parametrize(("name", "rule"), RULES, ids=[name for name, _ in RULES])
def test_each_rule_finds_something(prom: Prometheus, name: str, rule: dict[str, Any]) -> None:
    if "record" in rule:
        assert finds(prom, rule["expr"])
        assert finds(prom, name)
    else:
        assert finds(prom, whether(rule["expr"]))


def whether(expression: str) -> str:
    """An alert's expression that tells whether, by 0 or 1, and not only when."""
    outside = re.split(r"(\{[^}]*\})", expression)
    outside[::2] = [
        re.sub(r"(>=|<=|==|!=|>|<)", r"\1 bool", part).replace("unless", "or") for part in outside[::2]
    ]
    return "".join(outside)


def test_rules_are_evaluated_without_a_fault(prom: Prometheus) -> None:
    rules = [rule for group in prom.api("rules")["groups"] for rule in group["rules"]]
    assert {rule["name"] for rule in rules} == {name for name, _ in RULES}
    assert [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"] == []
