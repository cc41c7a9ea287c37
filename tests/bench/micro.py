"""The rewriter alone: CPU time of an event and of a whole answer, without a socket.

Law: an event is timed twice, in a tight loop and after a pause. Between two events of a real stream the processor
sleeps and its caches are lost to others, so the second figure is the one that a stream pays.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from statistics import median
from types import SimpleNamespace
from typing import Final
from unittest.mock import patch

import orjson

from proxy.core.confidence import Wanted
from proxy.core.request import UNJUDGED, Ask
from proxy.core.rewriter import Rewriter
from proxy.formats import BY_NAME
from tests.bench import bodies

FORMAT: Final = BY_NAME["openai-chat"]
ALTERNATIVES: Final = (0, 5, 20)
PAUSE: Final = 0.0005
WANTED: Final = (
    ("probabilities alone", Ask(asked=True), False),
    ("with figures", Ask(asked=True), True),
    ("with confidence", Ask(asked=True, confidence=Wanted()), True),
    ("observed and hidden", Ask(plain=b"{}", observed=True), True),
)
"""(what, the ask, whether tokens are counted)"""
_ASKED_ALTERNATIVES: Final = 5
_REPEATS: Final = 9
_PAUSED_EVENTS: Final = 500


def show() -> None:
    """Print both readers' figures."""
    print(f"CPU us an event, median of {_REPEATS}; in brackets after a pause of {PAUSE * 1e3:.1f} ms")
    print(f"  {'alternatives':<24}{'fast reader':>18}{'exact reader':>18}")
    for alternatives in ALTERNATIVES:
        stamped = [event.stamped(1) for event in bodies.events(alternatives)]
        cells = []
        for reader in (nullcontext(), exact_only()):
            with reader:
                hot = median(_tight(stamped) for _ in range(_REPEATS))
                cells.append(f"{hot * 1e6:.1f} ({_paused(stamped) * 1e6:.1f})")
        print(f"  {alternatives:<24}" + "".join(f"{cell:>18}" for cell in cells))
    print(f"CPU us an event of {_ASKED_ALTERNATIVES} alternatives, by what is wanted of it")
    stamped = [event.stamped(1) for event in bodies.events(_ASKED_ALTERNATIVES)]
    for name, ask, figures in WANTED:
        with nullcontext() if figures else patch("proxy.core.tally.Tally.take"):
            hot = median(_tight(stamped, ask) for _ in range(_REPEATS))
        print(f"  {name:<24}{hot * 1e6:>18.1f}")
    print("CPU ms a whole answer")
    for answer in bodies.answers():
        cells = []
        for reader in (nullcontext(), exact_only()):
            with reader:
                spent = median(_timed(partial(whole, answer)) for _ in range(_REPEATS))
                cells.append(f"{spent * 1e3:.2f}")
        print(f"  {answer.name:<24}" + "".join(f"{cell:>18}" for cell in cells))


def exact_only() -> AbstractContextManager[object]:
    """The fast reader never knows: nothing that it reads is JSON to it."""

    def loads(_: object) -> object:
        raise orjson.JSONDecodeError("", "", 0)

    return patch(
        "proxy.core.scan_fast.orjson", SimpleNamespace(loads=loads, JSONDecodeError=orjson.JSONDecodeError)
    )


def _tight(stamped: list[bytes], ask: Ask = UNJUDGED) -> float:
    rewriter = Rewriter(FORMAT, "sse", ask)
    return _timed(lambda: [rewriter.feed(event) for event in stamped]) / len(stamped)


def _paused(stamped: list[bytes]) -> float:
    rewriter = Rewriter(FORMAT, "sse")
    times = []
    for number in range(_PAUSED_EVENTS):
        event = stamped[number % len(stamped)]
        time.sleep(PAUSE)
        began = time.thread_time()
        rewriter.feed(event)
        times.append(time.thread_time() - began)
    return median(times)


def whole(answer: bodies.Answer) -> bytes:
    """A whole answer through the rewriter, steps included."""
    rewriter = Rewriter(FORMAT, "whole")
    return rewriter.feed(answer.body) + rewriter.finish()


def _timed(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began
