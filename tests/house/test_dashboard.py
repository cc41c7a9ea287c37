"""The dashboard is what its script writes, and asks for what is exported."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from proxy.metrics import METRICS
from tests.e2e.prometheus import substituted
from tests.house.series import LABELS, SUFFIXES
from tests.promtool import promtool

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "grafana"
RULES = sorted((ROOT / "deploy" / "prometheus").glob("*.rules.yml"))
BOARD: dict[str, Any] = json.loads((FOLDER / "logprob-proxy.json").read_text())
PANELS: list[dict[str, Any]] = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
VARIABLES = {variable["name"]: variable for variable in BOARD["templating"]["list"]}
NAME = re.compile(r"\b(?:\w+:)?logprob_\w+(?::\w+)*")


def recorded() -> dict[str, str]:
    rules = [
        rule
        for file in RULES
        for group in yaml.safe_load(file.read_text())["groups"]
        for rule in group["rules"]
    ]
    return {rule["record"]: rule["expr"] for rule in rules if "record" in rule}


def labels_of(name: str) -> set[str]:
    """A rule may drop labels of what it is made of, but adds none."""
    if name in LABELS:
        return LABELS[name] | {"job"}
    return set().union(*(labels_of(source) for source, _ in matched(recorded()[name])))


def queries() -> Iterator[tuple[str, str]]:
    """Where it stands, and the expression; those of variables and annotations too."""
    for panel in PANELS:
        for target in panel["targets"]:
            yield f"{panel['id']} {panel['title']} {target['refId']}", target["expr"]
    for annotation in BOARD["annotations"]["list"]:
        if "expr" in annotation:
            yield annotation["name"], annotation["expr"]
    for name, variable in VARIABLES.items():
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
            assert asked is not None
            yield f"variable {name}", f"count by ({asked[2]}) ({asked[1]})"


QUERIES = dict(queries())


def matched(expr: str) -> Iterator[tuple[str, set[str]]]:
    """Each name in the expression, and the labels that its selector mentions."""
    for name, inside in re.findall(rf"({NAME.pattern})(?:\{{([^}}]*)\}})?", expr):
        yield name, set(re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', inside))


def grouped(expr: str) -> set[str]:
    groups = re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", expr)
    return {label.strip() for inside in groups for label in inside.split(",")}


def test_it_is_what_the_script_writes() -> None:
    spec = importlib.util.spec_from_file_location("dashboard", FOLDER / "dashboard.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.text() == module.FILE.read_text(), "run: python deploy/grafana/dashboard.py"


def test_it_can_be_linked_to() -> None:
    assert (BOARD["uid"], BOARD["title"], BOARD["id"]) == ("logprob-proxy", "logprob-proxy", None)
    assert list(VARIABLES) == ["datasource", "job", "model", "api"]
    for name in ("job", "model", "api"):
        variable = VARIABLES[name]
        assert (variable["multi"], variable["includeAll"], variable["allValue"]) == (True, True, ".*")
        assert not variable["skipUrlSync"]


@pytest.mark.parametrize("where", QUERIES)
def test_names_and_labels_exist(where: str) -> None:
    expr = QUERIES[where]
    found = list(matched(expr))
    assert found
    for name, labels in found:
        if ":" in name and not RULES:
            pytest.skip("there are no rules in deploy/prometheus")
        assert labels | grouped(expr) <= labels_of(name)


@pytest.mark.parametrize("row", METRICS, ids=lambda row: row.name)
def test_each_metric_is_on_a_panel(row: Any) -> None:
    names = {row.name, *(row.name + suffix for suffix in SUFFIXES)}
    exprs = [target["expr"] for panel in PANELS for target in panel["targets"]]
    assert any(names & set(NAME.findall(expr)) for expr in exprs)


def test_expressions_parse(tmp_path: Path) -> None:
    rules = [
        {"record": f"q{number}", "expr": substituted(expr, "5m")}
        for number, expr in enumerate(QUERIES.values())
    ]
    assert not any("$" in rule["expr"] for rule in rules)
    file = tmp_path / "queries.rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    promtool("check", "rules", file)


def test_rates_follow_the_resolution() -> None:
    for where, expr in QUERIES.items():
        assert set(re.findall(r"\[([^\]]*)\]", re.sub(r'"[^"]*"', "", expr))) <= {"$__rate_interval"}, where


def test_no_data_source_is_fixed() -> None:
    def sources(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if "datasource" in value:
                yield value["datasource"]["uid"]
            for member in value.values():
                yield from sources(member)
        elif isinstance(value, list):
            for member in value:
                yield from sources(member)

    assert set(sources(BOARD)) == {"${datasource}", "-- Grafana --"}
    for asking in (*PANELS, *(target for panel in PANELS for target in panel["targets"])):
        assert asking["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    for name in ("job", "model", "api"):
        assert VARIABLES[name]["datasource"]["uid"] == "${datasource}"


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: f"{panel['id']} {panel['title']}")
def test_a_panel_says_what_it_shows(panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert panel["description"].endswith(".")
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"]
    references = [target["refId"] for target in panel["targets"]]
    assert references
    assert len(set(references)) == len(references)
    if panel["type"] == "heatmap":
        assert panel["options"]["calculate"] is False
        assert panel["options"]["yAxis"]["unit"] == defaults["unit"]
        assert [target["format"] for target in panel["targets"]] == ["heatmap"]
    elif panel["type"] != "table":
        assert all(target["legendFormat"] for target in panel["targets"])


def test_panels_lie_beside_each_other() -> None:
    places: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        x, y, width, height = (panel["gridPos"][key] for key in "xywh")
        assert x + width <= 24
        cells = {(column, line) for column in range(x, x + width) for line in range(y, y + height)}
        assert not cells & places, panel["title"]
        places |= cells
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
