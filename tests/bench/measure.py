"""What is measured, and in which order.

Law: peers take turns in every round, in turned order, and are compared within the round: what else the machine does
then hits all of them. A peer's figure is the median of its rounds.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Final

from tests.bench import bodies, load, peers

INTERVAL: Final = 0.02
"""Seconds between two events of a stream."""
PER_EVENT: Final = 1 + bodies.ALTERNATIVES
LONG: Final = 1000
"""Tokens of the answer whose metric calls are timed."""


@dataclass(frozen=True)
class Plan:
    """How much of everything."""

    rounds: int = 5
    streams: tuple[int, ...] = (10, 40)
    events: int = 200
    """Of a stream, a round."""
    tokens_read: int = 10_000
    """Tokens of whole answers that are read in a round: a hundred small ones or ten large ones."""


SHORT: Final = Plan(rounds=1, streams=(2,), events=10, tokens_read=1000)


@dataclass(frozen=True)
class Streams:
    """One round of one peer. Seconds."""

    events: int
    cpu: float
    p50: float
    p99: float
    per_second: float
    probabilities: int


@dataclass(frozen=True)
class Wholes:
    """One round of one peer. Seconds an answer."""

    cpu: float
    time: float
    probabilities: int


@dataclass(frozen=True)
class Metrics:
    """One round. Seconds of CPU an answer."""

    calls: float
    """In metric calls."""
    whole: float


@dataclass
class Results:
    """By scenario and peer, a figure a round."""

    streams: dict[int, dict[str, list[Streams]]]
    wholes: dict[str, dict[str, list[Wholes]]]
    peaks: dict[str, float]
    """Bytes."""
    missing: list[str]
    """Why a peer is not there."""
    metrics: dict[str, list[Metrics]]
    """Metric calls of answers of 1,000 tokens, by where is counted."""
    others: float = 0.0
    """Share of the peers' core that was taken by what is no peer."""


class Bench:
    """The peers, up and ready."""

    def __init__(self, stack: ExitStack) -> None:
        self._core, other = peers.cores()
        stack.enter_context(peers.on_core(other))
        self._upstream = stack.enter_context(peers.upstream(other))
        self._stack = stack
        self.peers: list[peers.Peer] = []
        self.missing: list[str] = []
        self.metered: dict[str, peers.Metered] = {}

    def start(self) -> None:
        """All that are installed."""
        for begin in peers.ALL:
            try:
                self.peers.append(self._stack.enter_context(begin(self._upstream, self._core)))
            except peers.NotInstalledError as error:
                self.missing.append(str(error))
        for name, files in (("in memory", False), ("in files", True)):
            self.metered[name] = self._stack.enter_context(
                peers.metered(self._upstream, self._core, files=files)
            )

    def run(self, plan: Plan) -> Results:
        began, busy, own = time.monotonic(), peers.busy_seconds(self._core), self._cpu_seconds()
        gc.disable()
        try:
            results = self._run(plan)
        finally:
            gc.enable()
        others = peers.busy_seconds(self._core) - busy - (self._cpu_seconds() - own)
        results.others = max(0.0, others / (time.monotonic() - began))
        return results

    def _cpu_seconds(self) -> float:
        return sum(peer.cpu_seconds() for peer in self.peers)

    def _run(self, plan: Plan) -> Results:
        names = [peer.name for peer in self.peers]
        answers = bodies.answers()
        results = Results(
            {count: {name: [] for name in names} for count in plan.streams},
            {answer.name: {name: [] for name in names} for answer in answers},
            {},
            self.missing,
            {name: [] for name in self.metered},
        )
        for peer in self.peers:  # imports, compiled patterns, first connections: not what is measured
            self._streams(peer, 2, 10)
        for number in range(plan.rounds):
            for count in plan.streams:
                for peer in self._turned(number):
                    results.streams[count][peer.name].append(self._streams(peer, count, plan.events))
            for index, answer in enumerate(answers):
                repeats = max(1, plan.tokens_read * PER_EVENT // answer.logprobs)
                for peer in self._turned(number):
                    results.wholes[answer.name][peer.name].append(
                        self._wholes(peer, index, answer.logprobs, repeats)
                    )
            for name, one in self.metered.items():
                results.metrics[name].append(self._metrics(one, max(1, plan.tokens_read // LONG)))
        results.peaks = {peer.name: peer.peak_bytes() for peer in self.peers}
        return results

    def _turned(self, number: int) -> Iterator[peers.Peer]:
        for index in range(len(self.peers)):
            yield self.peers[(index + number) % len(self.peers)]

    def _streams(self, peer: peers.Peer, count: int, events: int) -> Streams:
        before = peer.cpu_seconds()
        wanted = PER_EVENT if peer.annotates else 0
        run = asyncio.run(
            load.streams(peer.port, count=count, events=events, interval=INTERVAL, wanted=wanted)
        )
        cpu = peer.cpu_seconds() - before
        latencies = sorted(run.latencies)
        seen = len(latencies)
        return Streams(
            events=seen,
            cpu=cpu / seen,
            p50=latencies[seen // 2] / 1e9,
            p99=latencies[min(seen - 1, seen * 99 // 100)] / 1e9,
            per_second=seen / run.seconds,
            probabilities=run.probabilities,
        )

    def _wholes(self, peer: peers.Peer, number: int, logprobs: int, repeats: int) -> Wholes:
        before = peer.cpu_seconds()
        wanted = logprobs if peer.annotates else 0
        times = asyncio.run(load.wholes(peer.port, number=number, count=repeats, wanted=wanted))
        cpu = peer.cpu_seconds() - before
        return Wholes(cpu / repeats, median(times) / 1e9, wanted * repeats)

    def _metrics(self, one: peers.Metered, repeats: int) -> Metrics:
        number, answer = next(
            (number, answer)
            for number, answer in enumerate(bodies.answers())
            if answer.logprobs == LONG * PER_EVENT
        )
        calls, whole = one.spent()
        asyncio.run(load.wholes(one.port, number=number, count=repeats, wanted=answer.logprobs))
        calls, whole = (after - before for after, before in zip(one.spent(), (calls, whole), strict=True))
        return Metrics(calls / repeats, whole / repeats)


def measure(plan: Plan) -> Results:
    """Start all, measure, end all."""
    with ExitStack() as stack:
        bench = Bench(stack)
        bench.start()
        return bench.run(plan)
