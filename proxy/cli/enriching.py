"""`enrich`: the core between standard input and standard output.

Law: what comes goes on at once, unbuffered; what is not understood passes unchanged, with a line on standard
error.
"""

import os
from typing import Final

import click
import orjson

from proxy.core.detect import Detector
from proxy.core.format import Format
from proxy.core.framing import sniff
from proxy.core.report import Report
from proxy.core.rewriter import Rewriter
from proxy.formats import FORMATS

_READ: Final = 1 << 16
_ROOM: Final = 1 << 30
"""One person's file, not a server's hundreds: what fits into memory is rewritten."""


class Named:
    """feed and finish for a format that is known: only its framing must be seen from the first bytes."""

    def __init__(self, fmt: Format) -> None:
        self._format = fmt
        self._waiting = b""
        self.rewriter: Rewriter | None = None

    @property
    def report(self) -> Report:
        return self.rewriter.report if self.rewriter else Report()

    def feed(self, data: bytes) -> bytes:
        if self.rewriter is None:
            data = self._waiting = self._waiting + data
            framing = sniff(data)
            if framing is None:
                return b""
            self.rewriter = self._begin(framing)
        return self.rewriter.feed(data)

    def finish(self) -> bytes:
        if self.rewriter is not None:
            return self.rewriter.finish()
        # The first bytes never told: a document on one line, or white space.
        self.rewriter = self._begin("whole")
        return self.rewriter.feed(self._waiting) + self.rewriter.finish()

    def _begin(self, framing: str) -> Rewriter:
        return Rewriter(self._format, framing, max_event=_ROOM, max_body=_ROOM)


def enrich(name: str | None, *, report: bool) -> int:
    """Pass standard input through; the exit code."""
    named = {fmt.name: fmt for fmt in FORMATS}
    if name is not None and name not in named:
        click.echo(f"error: --format: there is no {name!r}; there are {', '.join(named)}", err=True)
        return 2
    enricher = Detector(FORMATS) if name is None else Named(named[name])
    try:
        _pass_through(enricher)
    except BrokenPipeError:
        return 1  # who read is gone, as `head` after its lines
    except OSError as error:
        click.echo(f"error: {error.strerror}", err=True)
        return 1
    if isinstance(enricher, Detector) and enricher.rewriter is None:
        fitting = ", ".join(fmt.name for fmt in enricher.candidates)
        what = f"several formats fit: {fitting}" if fitting else f"no format fits, of {', '.join(named)}"
        click.echo(f"error: passed unchanged: {what}; --format chooses", err=True)
        return 2
    found = enricher.report
    for reason, count in found.failures.items():
        click.echo(f"warning: passed unchanged or uncounted: {reason} ({count})", err=True)
    if report:
        click.echo(orjson.dumps(describe(found), option=orjson.OPT_INDENT_2), err=True)
    return 0


def _pass_through(enricher: Named | Detector) -> None:
    while data := os.read(0, _READ):
        _write(enricher.feed(data))
        while enricher.rewriter and enricher.rewriter.busy:
            _write(enricher.rewriter.step())
    _write(enricher.finish())


def describe(report: Report) -> dict[str, object]:
    """A Report as JSON shows it."""
    return {
        "id": report.id,
        "model": report.model,
        "outcome": report.outcome,
        "annotated": report.annotated,
        "ended": report.ended,
        "in_band_error": report.in_band_error,
        "failures": report.failures,
        "tokens": {f"{part}.{status}": count for (part, status), count in report.status_counts.items()},
        "choices": [{"key": choice.key, **choice.figures.describe()} for choice in report.choices],
    }


def _write(data: bytes) -> None:
    """All of it: a pipe may take less than it is given."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]
