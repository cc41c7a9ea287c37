"""`calibrate`: pairs of a confidence and right or wrong from a file, and what they say of the confidence.

Law: a line that cannot be read is told by its number and what is wrong with it, never by what stands in it, and is left
out; what cannot be computed is said. The same file and seed print the same.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, Final

import click
import orjson

from proxy.core.calibration import BINS, COVERAGES, Figures, Interval, Pair, Sample, interval, reflected

_MAX_TOLD: Final = 10
"""Bad lines of which each is told."""
_INSTALL: Final = "error: --plot needs matplotlib: pip install 'logprob-proxy[calibrate]'"

Row = tuple[str, ...]


class LineError(ValueError):
    """What is wrong with a line."""


def calibrate(
    file: BinaryIO,
    *,
    confidence: str,
    correct: str,
    precision: float,
    plot: str | None,
    bootstrap: int,
    seed: int,
) -> int:
    """Read, compute, print; the exit code."""
    draw: Callable[[Sample, str, str], None] | None = None
    if plot is not None:
        if not plot.lower().endswith((".png", ".svg")):
            return _fail("error: --plot: expected a name that ends in .png or .svg")
        try:
            from proxy.cli.diagram import draw
        except ImportError:
            return _fail(_INSTALL)
    pairs, bad = read(file, confidence, correct)
    if not pairs:
        return _fail("error: no pair is left: nothing can be computed")
    sample = Sample(pairs, precision=precision)
    if sample.right in (0, sample.count):
        word = "right" if sample.right else "wrong"
        what = "no AUROC, and no threshold or risk that tells them apart, can be computed"
        return _fail(f"error: all {sample.count} answers are {word}: {what}")
    # Not for secrets: the same seed gives the same intervals.
    resamples = sample.resample(bootstrap, random.Random(seed).random)  # noqa: S311
    for line in report(sample, resamples, precision, bad, seed):
        click.echo(line)
    if plot is not None and draw is not None:
        try:
            draw(sample, plot, confidence)
        except OSError as error:
            click.echo(f"error: --plot: {error.strerror or type(error).__name__}", err=True)
            return 1
    return 0


def read(lines: Iterable[bytes], confidence: str, correct: str) -> tuple[list[Pair], int]:
    """The pairs, and the number of lines that hold none; the first of these are told on standard error."""
    pairs, bad = [], 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            pairs.append(pair(line, confidence, correct))
        except LineError as error:
            bad += 1
            if bad <= _MAX_TOLD:
                click.echo(f"line {number}: left out: {error}", err=True)
    if bad > _MAX_TOLD:
        click.echo(f"and {bad - _MAX_TOLD} more left out", err=True)
    return pairs, bad


def pair(line: bytes, confidence: str, correct: str) -> Pair:
    """What one line holds. Raises LineError."""
    try:
        document = orjson.loads(line.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        raise LineError("it is no JSON") from None
    if not isinstance(document, dict):
        raise LineError("it is no JSON object")
    value, right = _at(document, confidence), _at(document, correct)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise LineError(f"{confidence} is {_kind(value)}, not a number")
    if not 0 <= value <= 1:
        raise LineError(f"{confidence} is {value:.6g}, not from 0 to 1")
    if not isinstance(right, int | float) or right not in (0, 1):
        raise LineError(f"{correct} is {_kind(right)}, not true, false, 1 or 0")
    return float(value), bool(right)


def _at(document: dict[str, object], path: str) -> object:
    """By the member's own name, else along a JSON Pointer (RFC 6901) or names with dots between them."""
    if path in document:
        return document[path]
    if path.startswith("/"):
        names = [name.replace("~1", "/").replace("~0", "~") for name in path[1:].split("/")]
    else:
        names = path.split(".")
    found: object = document
    for name in names:
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isascii() and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            raise LineError(f"it has no {path}")
    return found


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "a boolean"
    names: dict[type, str] = {str: "a string", list: "an array", dict: "an object"}
    return names.get(type(value), "another number")


def report(
    sample: Sample, resamples: Sequence[Figures], precision: float, bad: int, seed: int
) -> Iterator[str]:
    """The lines that are printed."""
    figures, coarse = sample.figures, sample.coarse_figures

    def row(name: str, get: Callable[[Figures], float | None]) -> Row:
        figure, seen = get(figures), get(coarse)
        moved = figure - seen if figure is not None and seen is not None else 0.0
        return name, _number(figure), _interval(interval(map(get, resamples), moved))

    def error(name: str, get: Callable[[Figures], float]) -> Row:
        moved = get(figures) - get(coarse)
        return name, _number(get(figures)), _interval(reflected(map(get, resamples), get(figures), moved))

    count, right = sample.count, sample.right
    left_out = f"; {bad} line{'s' if bad > 1 else ''} left out" if bad else ""
    yield f"{count} pairs: {right} right ({right / count:.1%}), {count - right} wrong{left_out}"
    yield ""
    yield from _table(
        [
            ("figure", "value", "95 % interval"),
            row("AUROC", lambda f: f.auroc),
            error(f"expected calibration error, {BINS} bins of equal width", lambda f: f.ece),
            error(f"expected calibration error, {BINS} bins of equal mass", lambda f: f.ece_mass),
            row("Brier score", lambda f: f.brier),
        ]
    )
    yield ""
    yield from _table(
        [
            ("coverage", "error rate", "95 % interval"),
            *(
                row(f"{share:.0%}", lambda f, place=place: f.risks[place])  # type: ignore[misc]
                for place, share in enumerate(COVERAGES)
            ),
        ]
    )
    yield ""
    if figures.threshold is None:
        yield f"no threshold has a precision of {precision:g}"
    else:
        yield from _table(
            [
                (f"for a precision of {precision:g}", "value", "95 % interval"),
                row("threshold", lambda f: f.threshold),
                row("coverage at it", lambda f: f.coverage),
                row("precision at it", lambda f: f.precision),
            ]
        )
        if missing := sum(one.threshold is None for one in resamples):
            yield f"({missing} of {len(resamples)} resamples have no such threshold: coverage 0)"
    yield ""
    if resamples:
        yield f"Intervals: {len(resamples)} bootstrap resamples, seed {seed}."
        yield "Chance makes a calibration error larger, most with few pairs: its interval is corrected for that and"
        yield "rough, and may lie below the value."
    yield "A threshold is chosen on these pairs: test it on others before it decides anything."


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _interval(found: Interval | None) -> str:
    return "-" if found is None else f"{found[0]:.4f} to {found[1]:.4f}"


def _table(rows: Sequence[Row]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(others, widths[1:]))]
        yield "  ".join(cells)


def _fail(line: str) -> int:
    click.echo(line, err=True)
    return 2
