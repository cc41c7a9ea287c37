"""The README's tables are the code's: each stands there as its table renders it."""

import re
from pathlib import Path

import pytest

from proxy import Rewriter, metrics, profiles, settings
from proxy.formats import FORMATS

README = (Path(__file__).parents[2] / "README.md").read_text()


def between(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- /{name} -->", README, re.DOTALL)
    assert found, f"no <!-- {name} --> in README.md"
    return found[1].strip()


@pytest.mark.parametrize(
    ("name", "table"),
    [("settings", settings.markdown), ("metrics", metrics.markdown), ("profiles", profiles.markdown)],
)
def test_table(name: str, table) -> None:
    """To mend it: `python -c 'from proxy import settings, metrics, profiles; print(settings.markdown(), metrics.markdown(), profiles.markdown())'`."""
    assert between(name) == table().strip()


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
def test_each_parameter_that_is_checked_is_named(fmt) -> None:
    section = README.partition("## What is validated")[2].partition("\n## ")[0]
    for rule in fmt.rules:
        assert rule.param[-1] in section


@pytest.mark.parametrize(
    "name",
    sorted(
        {
            name
            for fmt in FORMATS
            for p in fmt.places
            for s in p.slots
            for sh in s.shapes
            for _, name in sh.numbers
        }
    ),
)
def test_each_inserted_member_is_named(name: str) -> None:
    section = README.partition("## What is inserted")[2].partition("\n## ")[0]
    assert f'"{name}"' in section


def test_before_and_after_are_what_the_proxy_does() -> None:
    before, after = re.findall(r"^```\n(data: .*?)^```$", README, re.MULTILINE | re.DOTALL)
    rewriter = Rewriter(FORMATS[0], "sse")
    assert (rewriter.feed(before.encode() + b"\n") + rewriter.finish()).decode() == after + "\n"
