"""The README's table of clients, made of what the tests saw.

`tests/run tests/e2e/clients --write-clients` writes it; without that option the tests compare.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.e2e.running import ROOT

README = ROOT / "README.md"
_BLOCK = re.compile(r"(?<=<!-- clients -->\n).*?(?=<!-- /clients -->)", re.DOTALL)
_HEAD = ("Client", "Version", "API", "`probability` in a whole answer", "streamed")


@dataclass
class Row:
    """One client at one API, in the versions that saw the same."""

    client: str
    api: str
    places: tuple[str, str]
    versions: list[str] = field(default_factory=list)


def spell(places: set[str]) -> str:
    """Where it was seen beside chosen tokens; alternatives have it in the same way."""
    shown = sorted(place.removeprefix("[].") for place in places if ".top_" not in place)
    return "<br>".join(f"`{place}`" for place in shown) or "dropped, all else is as without the proxy"


def table(rows: list[Row]) -> str:
    lines: list[tuple[str, ...]] = [_HEAD, ("---",) * len(_HEAD)]
    for row in rows:
        whole, streamed = row.places
        same = "the same" if streamed == whole else streamed
        lines.append((row.client, " and ".join(row.versions), row.api, whole, same))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def written() -> str:
    found = _BLOCK.search(README.read_text())
    assert found is not None, "the README has no table of clients"
    return found[0]


def write(text: str) -> None:
    README.write_text(_BLOCK.sub(lambda _: text, README.read_text()))
