"""The rules for Prometheus: they do what they say, over metrics that exist, and each alert leads to its runbook."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from proxy.metrics import METRICS
from tests.house.series import LABELS
from tests.promtool import promtool

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "prometheus"
CONFIG = FOLDER / "prometheus.yml"
RULES = sorted(FOLDER.glob("*.rules.yml"))
TESTS = sorted((FOLDER / "tests").glob("*.test.yml"))

INSTANCE = {"instance", "pod", "container", "endpoint", "service"}
"""What tells the instances of one job apart."""
TARGET = INSTANCE | {"job", "namespace", "cluster"}

_MATCHERS = re.compile(r"([a-zA-Z_:][\w:]*)\{([^}]*)\}")
_GROUPING = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_STRING = re.compile(r'"[^"]*"')
_NAME = re.compile(r"(?<![\w.])[a-zA-Z_:][\w:]*\b(?!\s*\()")
_WORDS = {*"and or unless bool offset by without on ignoring group_left group_right inf nan".split()}


def rules(kind: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for file in RULES:
        for group in yaml.safe_load(file.read_text())["groups"]:
            for rule in group["rules"]:
                if kind in rule:
                    yield group, rule


ALERTS = {rule["alert"]: rule for _, rule in rules("alert")}
RECORDS = {rule["record"]: rule["expr"] for _, rule in rules("record")}
EXPRS = {**RECORDS, **{name: rule["expr"] for name, rule in ALERTS.items()}}


def without_strings(expr: str) -> str:
    return _STRING.sub('""', expr)


def names(expr: str) -> set[str]:
    """The series that it reads."""
    bare = _GROUPING.sub(" ", re.sub(r"\{[^}]*\}|\[[^]]*\]", " ", without_strings(expr)))
    return {name for name in _NAME.findall(bare) if name.lower() not in _WORDS}


def lists(expr: str, *words: str) -> list[set[str]]:
    found = _GROUPING.findall(expr)
    return [{label.strip() for label in inside.split(",")} - {""} for word, inside in found if word in words]


@cache
def labels(series: str) -> frozenset[str]:
    """The labels that it may have, target labels left out."""
    if series in LABELS:
        return frozenset(LABELS[series])
    # Those of what it is made of, less those that every aggregation in it takes away.
    expr = RECORDS[series]
    inside = {label for name in names(expr) for label in labels(name)}
    gone = lists(expr, "without")
    return frozenset(label for label in inside if not gone or any(label not in group for group in gone))


def test_rules_are_valid() -> None:
    assert RULES
    promtool("check", "rules", *RULES)


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.name)
def test_rules_do_what_their_tests_say(file: Path) -> None:
    promtool("test", "rules", file)


def test_config_is_valid_and_loads_all_rules() -> None:
    promtool("check", "config", CONFIG)
    assert yaml.safe_load(CONFIG.read_text())["rule_files"] == [file.name for file in RULES]


def uncommented(text: str, key: str) -> str:
    """With the commented block `key` put to use."""
    lines, within = [], False
    for line in text.splitlines():
        bare = re.sub(r"^( *)# ?", r"\1", line)
        within = bare != line and (within or bare.strip() == f"{key}:")
        lines.append(bare if within else line)
    return "\n".join(lines)


# Debian's promtool is built without discovery in Kubernetes: only what stands beside it can be asked about.
@pytest.mark.parametrize("key", ["metric_relabel_configs", "relabel_configs"])
def test_what_is_commented_in_the_config_is_valid_too(key: str, tmp_path: Path) -> None:
    text = uncommented(CONFIG.read_text(), key)
    assert key in yaml.safe_load(text)["scrape_configs"][0]
    file = tmp_path / "prometheus.yml"
    file.write_text(text)
    for rule_file in RULES:
        shutil.copy(rule_file, tmp_path)
    promtool("check", "config", file)


def test_what_the_config_drops_is_used_by_no_alert() -> None:
    config = yaml.safe_load(uncommented(CONFIG.read_text(), "metric_relabel_configs"))
    drops = config["scrape_configs"][0]["metric_relabel_configs"]
    assert {drop["action"] for drop in drops} == {"drop"}
    used: set[str] = set()
    for expr in EXPRS.values():
        used |= names(expr) & set(LABELS)
    for drop in drops:
        suffix = {"__name__": "", "__name__;part": ";answer"}[";".join(drop["source_labels"])]
        assert not [name for name in used if re.fullmatch(drop["regex"], name + suffix)]
        assert [name for name in LABELS for end in ("", ";other") if re.fullmatch(drop["regex"], name + end)]


@pytest.mark.parametrize("rule", EXPRS)
def test_series_and_labels_exist(rule: str) -> None:
    expr = EXPRS[rule]
    read = names(expr)
    assert read
    assert read <= set(LABELS) | set(RECORDS), read - set(LABELS) - set(RECORDS)
    for name, inside in _MATCHERS.findall(expr):
        for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", without_strings(inside)):
            assert label in labels(name), f"{name} has no label {label}"
    known = TARGET.union(*(labels(name) for name in read))
    for group in lists(expr, "by", "without", "on", "ignoring", "group_left", "group_right"):
        assert group <= known, group - known


@pytest.mark.parametrize("rule", EXPRS)
def test_values_exist(rule: str) -> None:
    closed = {label: set(values) for row in METRICS for label, values in row.labels.items() if values}
    edges = {f"{edge:g}" for row in METRICS for edge in row.buckets} | {"+Inf"}
    for label, values in re.findall(r'(\w+)\s*=~?\s*"([^"]*)"', EXPRS[rule]):
        if label in closed or label == "le":
            assert set(values.split("|")) <= (edges if label == "le" else closed[label])


@pytest.mark.parametrize("rule", EXPRS)
def test_instances_are_summed_and_jobs_kept_apart(rule: str) -> None:
    expr = EXPRS[rule]
    assert not lists(expr, "by", "on"), "these lose what the scrape adds: namespace, cluster"
    if names(expr) & set(LABELS):
        assert any(group >= INSTANCE for group in lists(expr, "without"))
    assert not [group for group in lists(expr, "without") if group & (TARGET - INSTANCE)]


@pytest.mark.parametrize("record", RECORDS)
def test_recorded_names_follow_the_convention(record: str) -> None:
    level, metric, operations = record.split(":")
    assert level in {"model", "job"}
    assert "_total" not in metric
    assert re.fullmatch(r"(rate|ratio_rate|mean|increase)\d+[mhd]|p\d+_rate\d+m|ks30m_vs_1d|max", operations)
    assert ("model" in labels(record)) == (level == "model")


def test_minutes_are_counted_where_they_are_recorded() -> None:
    """`60 * sum_over_time(...)` takes each sample for a minute."""
    for file in RULES:
        for group in yaml.safe_load(file.read_text())["groups"]:
            assert group["interval"] == "1m"


def test_recording_rules_are_used_or_documented() -> None:
    used = set().union(*(names(rule["expr"]) for rule in ALERTS.values()))
    while more := {name for record in used & set(RECORDS) for name in names(RECORDS[record])} - used:
        used |= more
    readme = (ROOT / "README.md").read_text()
    assert not [record for record in RECORDS if record not in used and f"`{record}`" not in readme]


def slug(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("name", ALERTS)
def test_alert_says_what_to_do(name: str) -> None:
    alert = ALERTS[name]
    assert re.fullmatch(r"(LLM|LogprobProxy)([A-Z][a-z]+)+", name)
    assert re.fullmatch(r"[1-9]\d*[mh]", alert["for"])
    assert alert["labels"].keys() == {"severity"}
    assert alert["labels"]["severity"] in {"critical", "warning", "info"}
    notes = alert["annotations"]
    assert notes.keys() == {"summary", "description", "runbook", "dashboard"}
    assert all(notes.values())
    assert notes["runbook"] == f"README.md#{slug(name)}"
    has_model = any("model" in labels(series) for series in names(alert["expr"]))
    variable = "?var-model={{ $labels.model | urlquery }}" if has_model else ""
    assert notes["dashboard"] == "/d/logprob-proxy/logprob-proxy" + variable
    used = set(re.findall(r"\$labels\.(\w+)", " ".join(notes.values())))
    assert used <= {"job"}.union(*(labels(series) for series in names(alert["expr"])))


@pytest.mark.parametrize("name", ALERTS)
def test_alert_has_a_runbook(name: str) -> None:
    text = re.sub(r"^```.*?^```$", "", (ROOT / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#{1,6} +(.+)$", text, re.MULTILINE)
    assert ALERTS[name]["annotations"]["runbook"].partition("#")[2] in map(slug, headings)


@pytest.mark.parametrize("name", ALERTS)
def test_alert_has_a_volume_guard(name: str) -> None:
    """Its last condition counts tokens, answers, requests or measurements, and asks for more than a few."""
    guard = re.split(r"^\s*and\b", ALERTS[name]["expr"], flags=re.MULTILINE)[-1]
    assert re.search(r"\bincrease\(|:increase\d+[mhd]\b|60 \* sum_over_time\(", guard)
    least = re.search(r">= (\d+)\s*$", guard)
    assert least
    assert int(least[1]) >= 5


def expectations() -> Iterator[tuple[str, bool]]:
    """Alert, and whether a test expects it to fire."""
    for file in TESTS:
        for test in yaml.safe_load(file.read_text())["tests"]:
            for case in test.get("alert_rule_test", ()):
                yield case["alertname"], bool(case.get("exp_alerts"))


@pytest.mark.parametrize("name", ALERTS)
def test_alert_is_tested_both_ways(name: str) -> None:
    assert {fires for alert, fires in expectations() if alert == name} == {True, False}


def test_tests_name_alerts_that_exist() -> None:
    assert {alert for alert, _ in expectations()} == set(ALERTS)
