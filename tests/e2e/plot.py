"""The dashboard as pictures, for those who have no Grafana at hand: its own queries, drawn by matplotlib.

    python -m tests.e2e.plot --prometheus URL --start --end     what a Prometheus has; times in Unix seconds
    python -m tests.e2e.traffic                                 starts everything, and five minutes of traffic to be drawn

Writes overview.png and distributions.png into --out. Panels with no data or nothing but zeros are left out, and so are
those of recorded rules where less than an hour is drawn, which is little beside their windows; their titles are printed.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.ticker import NullFormatter
from PIL import Image

from tests.e2e.prometheus import Prometheus, substituted
from tests.e2e.running import ROOT

FOLDER = ROOT / "deploy" / "grafana"
PICTURES = {
    "overview": ("", "Traffic and health", "Confidence"),
    "distributions": ("Distributions", "Proxy overhead"),
}

# -- What Prometheus has ------------------------------------------------------------------------------------------


@dataclass
class Series:
    name: str
    labels: dict[str, str]
    values: np.ndarray


@dataclass
class Source:
    """A Prometheus, and the times at which it is asked."""

    prom: Prometheus
    start: float
    end: float
    step: float
    rate_interval: float
    times: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.times = np.arange(self.start, self.end + 1e-6, self.step)

    def ask(self, expr: str, legend: str) -> list[Series]:
        query = substituted(expr, f"{self.rate_interval:.0f}s")
        times = {"start": self.start, "end": self.end, "step": self.step}
        found = []
        for result in self.prom.api("query_range", query=query, **times)["result"]:
            values = np.full(len(self.times), np.nan)
            for moment, value in result["values"]:
                values[round((float(moment) - self.start) / self.step)] = float(value)
            labels = result["metric"]
            name = re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), legend)
            found.append(Series(name.strip(), labels, values))
        return found


# -- How it is drawn ----------------------------------------------------------------------------------------------

DPI, COLUMN, LINE, GAP, HEAD = 100, 66.0, 31.0, 8.0, 34.0  # pixels but the first
PAGE, BOX, EDGE, GRID, TEXT, FAINT = "#111217", "#181b1f", "#25282e", "#2b2f36", "#d8d9da", "#8e9097"
COLOURS = (
    "#73bf69 #f2cc0c #5794f2 #ff9830 #f2495c #b877d9 #56a64b #8ab8ff #e0b400 #ff7383 #ca95e5 #96d98d".split()
)
NAMED = {"green": "#73bf69", "yellow": "#f2cc0c", "red": "#f2495c", "text": TEXT}


def spoken(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return "+Inf" if value > 0 else "none"
    if unit == "percentunit":
        return f"{value * 100:.3g}%"
    if unit == "s":
        for factor, name in ((1, "s"), (1e3, "ms")):
            if value * factor >= 1 or value == 0:
                return f"{value * factor:.3g} {name}"
        return f"{value * 1e6:.3g} µs"
    if unit == "bytes":
        for factor, name in ((2**20, "MiB"), (2**10, "KiB")):
            if value >= factor:
                return f"{value / factor:.3g} {name}"
        return f"{value:.3g} B"
    if unit == "reqps":
        return f"{value:.3g} req/s"
    return f"{value:.4g}"


@dataclass
class Drawn:
    """A panel, its data, and its place in pixels from the top left."""

    panel: dict[str, Any]
    series: list[Series]
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0

    @property
    def unit(self) -> str:
        return str(self.panel["fieldConfig"]["defaults"]["unit"])


class Page:
    def __init__(self, height: float) -> None:
        self.width, self.height = WIDTH, height
        self.figure = Figure(figsize=(self.width / DPI, height / DPI), dpi=DPI, facecolor=PAGE)

    def text(self, x: float, y: float, text: str, size: float = 8.5, **more: Any) -> None:
        """From the top left, by its first line's middle."""
        more = {"color": TEXT, "va": "center", **more}
        self.figure.text(x / self.width, 1 - y / self.height, text, fontsize=size, **more)

    def axes(self, x: float, y: float, width: float, height: float) -> Axes:
        place = (x / self.width, 1 - (y + height) / self.height, width / self.width, height / self.height)
        axes = self.figure.add_axes(place, facecolor=BOX)
        axes.tick_params(colors=FAINT, labelsize=7, length=0, pad=3)
        for spine in axes.spines.values():
            spine.set_visible(False)
        return axes

    def box(self, drawn: Drawn) -> None:
        x, y = drawn.x / self.width, 1 - (drawn.y + drawn.height) / self.height
        self.figure.add_artist(
            FancyBboxPatch(
                (x, y),
                drawn.width / self.width,
                drawn.height / self.height,
                boxstyle="square,pad=0",
                facecolor=BOX,
                edgecolor=EDGE,
                linewidth=0.8,
                zorder=-1,  # axes are at 0
                transform=self.figure.transFigure,
            )
        )
        self.text(drawn.x + 10, drawn.y + 15, drawn.panel["title"], 8.5)

    def png(self) -> bytes:
        out = io.BytesIO()
        self.figure.savefig(out, format="png", dpi=DPI, facecolor=PAGE)
        # Few colours are in it: a palette makes it a third as large.
        small = io.BytesIO()
        Image.open(out).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
            small, "png", optimize=True
        )
        return small.getvalue()


WIDTH = 24 * COLUMN + 2 * GAP


def clock(axes: Axes, source: Source) -> None:
    span = source.end - source.start
    every = next((one for one in (60, 120, 300, 900, 3600, 7200) if span / one <= 6), 6 * 3600)
    first = source.start + 0.05 * span  # else it would touch the other axis's label
    ticks = np.arange(math.ceil(first / every) * every, source.end, every)
    axes.set_xlim(source.start, source.end)
    axes.set_xticks(ticks, [datetime.fromtimestamp(tick, UTC).strftime("%H:%M") for tick in ticks])


def draw_lines(page: Page, drawn: Drawn, source: Source) -> None:
    shown = sorted(drawn.series, key=lambda one: one.name)
    widest = max(len(one.name) for one in shown) * 5.4 + 30
    columns = max(1, min(len(shown), int((drawn.width - 20) // widest)))
    lines = math.ceil(len(shown) / columns)
    axes = page.axes(drawn.x + 58, drawn.y + 32, drawn.width - 74, drawn.height - 62 - 16 * lines)
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    defaults = drawn.panel["fieldConfig"]["defaults"]
    custom = defaults["custom"]
    stacked = custom.get("stacking", {}).get("mode") == "normal"
    below = np.zeros(len(source.times))
    for number, one in enumerate(shown):
        colour = COLOURS[number % len(COLOURS)]
        if stacked:
            above = below + np.nan_to_num(one.values)
            axes.fill_between(source.times, below, above, color=colour, alpha=0.35, linewidth=0)
            axes.plot(source.times, np.where(above > below, above, np.nan), color=colour, linewidth=1)
            below = above
        else:
            axes.plot(source.times, one.values, color=colour, linewidth=1.3)
        left = drawn.x + 12 + (number % columns) * widest
        top = drawn.y + drawn.height - 16 * lines - 2 + 16 * (number // columns)
        page.text(left, top, "▬", 8, color=colour)
        page.text(left + 14, top, one.name, 7.5)
    for step in defaults["thresholds"]["steps"][1:]:
        if custom.get("thresholdsStyle", {}).get("mode") == "dashed":
            axes.axhline(step["value"], color=NAMED[step["color"]], linewidth=0.9, linestyle="--")
    scale = custom.get("scaleDistribution", {}).get("type", "linear")
    axes.set_yscale(scale, **({"linthresh": 1} if scale == "symlog" else {}))
    axes.set_ylim(bottom=defaults.get("min", 0))
    if "max" in defaults:
        axes.set_ylim(top=defaults["max"])
    axes.yaxis.set_major_formatter(lambda value, _: spoken(value, drawn.unit))
    if scale == "linear":
        axes.locator_params(axis="y", nbins=5)
    else:
        axes.yaxis.set_minor_formatter(NullFormatter())
    clock(axes, source)


def draw_heatmap(page: Page, drawn: Drawn, source: Source) -> None:
    rows = sorted(drawn.series, key=lambda one: float(one.labels["le"]))
    if len(rows) > 1 and np.array_equal(rows[-1].values, rows[-2].values, equal_nan=True):
        rows.pop()  # nothing is above the last edge
    edges = [float(one.labels["le"]) for one in rows]
    counts = np.diff(np.nan_to_num([one.values for one in rows]), axis=0, prepend=0)
    axes = page.axes(drawn.x + 58, drawn.y + 32, drawn.width - 130, drawn.height - 62)
    moments = np.append(source.times - source.step / 2, source.times[-1] + source.step / 2)
    cells = np.ma.masked_less(counts, 1e-9)
    mesh = axes.pcolormesh(moments, np.arange(len(rows) + 1), cells, cmap="viridis", rasterized=True)
    # A bucket ends at its `le`, which stands at the cell's upper side.
    shown = range(len(rows) - 1, -1, -2)
    axes.set_yticks([one + 1 for one in shown], [spoken(edges[one], drawn.unit) for one in shown])
    scale = page.axes(drawn.x + drawn.width - 58, drawn.y + 32, 8, drawn.height - 62)
    bar = page.figure.colorbar(mesh, cax=scale)
    bar.outline.set_visible(False)
    scale.tick_params(colors=FAINT, labelsize=7, length=0, pad=3)
    scale.locator_params(axis="y", nbins=5)
    clock(axes, source)


def draw_stat(page: Page, drawn: Drawn, source: Source) -> None:
    steps = drawn.panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    several = len(drawn.series) > 1 or drawn.panel["options"]["textMode"] == "value_and_name"
    share = drawn.width / len(drawn.series)
    for number, one in enumerate(sorted(drawn.series, key=lambda one: one.name)):
        known = one.values[~np.isnan(one.values)]
        last = float(known[-1]) if len(known) else math.nan
        colour = [NAMED[step["color"]] for step in steps if step["value"] is None or last >= step["value"]][
            -1
        ]
        left = drawn.x + number * share
        middle = drawn.y + 30 + (drawn.height - 30) * (0.24 if several else 0.32)
        size = 19 if share > 200 else 14
        page.text(left + share / 2, middle, spoken(last, drawn.unit), size, color=colour, ha="center")
        if several:
            page.text(left + share / 2, middle + 22, one.name, 7.5, color=FAINT, ha="center")
        if drawn.panel["options"]["graphMode"] == "none":
            continue
        axes = page.axes(left + 1, drawn.y + drawn.height - 25, share - 2, 23)
        axes.fill_between(source.times, one.values, color=colour, alpha=0.2, linewidth=0)
        axes.plot(source.times, one.values, color=colour, linewidth=0.9)
        axes.set(xlim=(source.start, source.end), ylim=(0, max(1e-9, np.nanmax(one.values)) * 1.1))
        axes.set_axis_off()


def draw_table(page: Page, drawn: Drawn, source: Source) -> None:
    names = sorted({name for one in drawn.series for name in one.labels if name != "__name__"})
    for column, name in enumerate(names):
        left = drawn.x + 14 + column * (drawn.width - 20) / len(names)
        page.text(left, drawn.y + 46, name.replace("_", " "), 8, color="#6e9fff")
        for line, one in enumerate(sorted(drawn.series, key=lambda one: sorted(one.labels.items()))):
            page.text(left, drawn.y + 74 + 25 * line, one.labels.get(name, ""), 8)


DRAW = {"timeseries": draw_lines, "heatmap": draw_heatmap, "stat": draw_stat, "table": draw_table}


def rows_of(board: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = {"": []}
    for panel in board["panels"]:
        if panel["type"] == "row":
            rows[panel["title"]] = []
        else:
            list(rows.values())[-1].append(panel)
    return rows


def fetched(panel: dict[str, Any], source: Source) -> Drawn | None:
    exprs = [target["expr"] for target in panel["targets"]]
    if source.end - source.start < 3600 and any(":logprob_" in expr for expr in exprs):
        return None
    series = [
        one
        for target in panel["targets"]
        for one in source.ask(target["expr"], target.get("legendFormat", ""))
    ]
    zeros = panel["type"] == "timeseries" and not any(np.nan_to_num(one.values).any() for one in series)
    series = [one for one in series if not zeros and not np.isnan(one.values).all()]
    return Drawn(panel, series) if series else None


def laid(panels: list[Drawn], top: float) -> float:
    """Side by side in lines of 24 columns, each line stretched to the right edge; how far down they reach."""
    lines: list[list[Drawn]] = [[]]
    for one in panels:
        if sum(other.panel["gridPos"]["w"] for other in lines[-1]) + one.panel["gridPos"]["w"] > 24:
            lines.append([])
        lines[-1].append(one)
    for line in lines:
        columns = sum(one.panel["gridPos"]["w"] for one in line)
        height = max(one.panel["gridPos"]["h"] for one in line) * LINE
        x = GAP
        for one in line:
            width = one.panel["gridPos"]["w"] / columns * (WIDTH - GAP)
            one.x, one.y, one.width, one.height = x, top, width - GAP, height - GAP
            x += width
        top += height
    return top


def picture(name: str, source: Source) -> bytes:
    rows = rows_of(json.loads((FOLDER / "logprob-proxy.json").read_text()))
    heads: list[tuple[float, str]] = []
    everything: list[Drawn] = []
    top = GAP
    for title in PICTURES[name]:
        if title:
            heads.append((top + HEAD / 2 - 4, title))
            top += HEAD
        found = [(panel, fetched(panel, source)) for panel in rows[title]]
        for panel, drawn in found:
            if drawn is None:
                print(f"{name}: left out: {panel['title']}")
        kept = [drawn for _, drawn in found if drawn is not None]
        top = laid(kept, top)
        everything += kept
    with mpl.rc_context({"font.family": "sans-serif", "text.parse_math": False}):
        page = Page(top)
        for y, title in heads:
            page.text(GAP + 4, y, title, 10.5)
        for drawn in everything:
            page.box(drawn)
            DRAW[drawn.panel["type"]](page, drawn, source)
        return page.png()


# -- The command


def write(folder: Path, source: Source) -> None:
    for name in PICTURES:
        file = folder / f"{name}.png"
        file.write_bytes(picture(name, source))
        print(f"{file}: {file.stat().st_size / 1000:.0f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.plot", description=__doc__)
    now = time.time()
    parser.add_argument("--prometheus", metavar="URL", required=True)
    parser.add_argument("--start", type=float, default=now - 6 * 3600)
    parser.add_argument("--end", type=float, default=now)
    parser.add_argument("--step", type=float, help="seconds; by default a 200th of the time")
    parser.add_argument(
        "--rate-interval", type=float, help="seconds; by default as Grafana at a scrape of 15 s"
    )
    parser.add_argument("--out", type=Path, default=FOLDER)
    told = parser.parse_args()
    step = told.step or max(15.0, (told.end - told.start) / 200)
    interval = told.rate_interval or max(step + 15, 60)
    write(told.out, Source(Prometheus(told.prometheus.rstrip("/")), told.start, told.end, step, interval))


if __name__ == "__main__":
    main()
