"""`python -m tests.bench`: measure and print."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from statistics import median
from typing import TypeVar

from tests.bench import measure, micro, peers

Row = TypeVar("Row")


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests/bench/run", description=measure.__doc__)
    plan = measure.Plan()
    parser.add_argument("--rounds", type=int, default=plan.rounds, help="turns of every peer")
    parser.add_argument("--events", type=int, default=plan.events, help="events of a stream, a round")
    parser.add_argument("--streams", type=int, nargs="+", default=plan.streams, help="streams at once")
    parser.add_argument("--micro", action="store_true", help="measure the rewriter alone")
    given = parser.parse_args()
    if given.micro:
        micro.show()
        return
    show(
        measure.measure(measure.Plan(rounds=given.rounds, streams=tuple(given.streams), events=given.events))
    )


def show(results: measure.Results) -> None:
    for why in results.missing:
        print(f"left out: {why}")
    core, other = peers.cores()
    print(f"Proxies on core {core}, upstream and load on core {other}" + (" TOO" if core == other else ""))
    print(
        f"Other processes took {results.others:.0%} of the proxies' core: over a few percent, ratios only count."
    )
    print("Medians of the rounds. CPU: all of the proxy's processes, user and system. Added: over direct.")
    for count, by_peer in results.streams.items():
        _table(
            f"{count} streams, {1 / measure.INTERVAL:.0f} events a second each, 1 token and 5 alternatives an event",
            ("events/s", "CPU us/event", "p50 ms", "p99 ms", "added p50 ms", "added p99 ms"),
            {name: _stream_cells(rounds, by_peer[peers.DIRECT]) for name, rounds in by_peer.items()},
        )
    for answer, whole in results.wholes.items():
        _table(
            f"Whole answer of {answer}",
            ("CPU ms/answer", "ms/answer", "added ms"),
            {name: _whole_cells(rounds, whole[peers.DIRECT]) for name, rounds in whole.items()},
        )
    _table(
        f"Metric calls, whole answer of {measure.LONG:,} tokens; in files: one of several workers",
        ("CPU us/answer", "of all its CPU"),
        {name: _metric_cells(rounds) for name, rounds in results.metrics.items()},
    )
    _table(
        "Most memory resident, all processes",
        ("MiB",),
        {name: [f"{size / 2**20:.1f}"] for name, size in results.peaks.items() if size},
    )
    if peers.NGINX in results.peaks:
        _ratios(results)


def _stream_cells(rounds: list[measure.Streams], direct: list[measure.Streams]) -> list[str]:
    return [
        f"{median(one.per_second for one in rounds):.0f}",
        f"{median(one.cpu for one in rounds) * 1e6:.1f}",
        f"{median(one.p50 for one in rounds) * 1e3:.3f}",
        f"{median(one.p99 for one in rounds) * 1e3:.3f}",
        f"{_added(rounds, direct, lambda one: one.p50) * 1e3:.3f}",
        f"{_added(rounds, direct, lambda one: one.p99) * 1e3:.3f}",
    ]


def _whole_cells(rounds: list[measure.Wholes], direct: list[measure.Wholes]) -> list[str]:
    return [
        f"{median(one.cpu for one in rounds) * 1e3:.2f}",
        f"{median(one.time for one in rounds) * 1e3:.2f}",
        f"{_added(rounds, direct, lambda one: one.time) * 1e3:.2f}",
    ]


def _metric_cells(rounds: list[measure.Metrics]) -> list[str]:
    return [
        f"{median(one.calls for one in rounds) * 1e6:.0f}",
        f"{median(one.calls / one.whole for one in rounds):.1%}",
    ]


def _added(rounds: list[Row], direct: list[Row], figure: Callable[[Row], float]) -> float:
    return median(figure(one) - figure(base) for one, base in zip(rounds, direct, strict=True))


def _ratios(results: measure.Results) -> None:
    """logprob-proxy over nginx, round by round."""

    def ratio(by_peer: dict[str, list[Row]], figure: Callable[[Row], float]) -> str:
        pairs = zip(by_peer[peers.PROXY], by_peer[peers.NGINX], strict=True)
        return f"{median(figure(ours) / figure(theirs) for ours, theirs in pairs):.2f}"

    parts = [
        f"{count} streams {ratio(rounds, lambda one: one.cpu)}" for count, rounds in results.streams.items()
    ]
    parts += [f"{name} {ratio(rounds, lambda one: one.cpu)}" for name, rounds in results.wholes.items()]
    print(f"\n{peers.PROXY} / {peers.NGINX}, CPU: {' | '.join(parts)}")


def _table(title: str, head: Sequence[str], rows: dict[str, list[str]]) -> None:
    print(f"\n{title}")
    print(f"  {'':<14}" + "".join(f"{name:>15}" for name in head))
    for name, cells in rows.items():
        print(f"  {name:<14}" + "".join(f"{cell:>15}" for cell in cells))


if __name__ == "__main__":
    main()
