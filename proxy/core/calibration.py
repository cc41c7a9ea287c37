"""How well confidence tells right from wrong, over pairs of a confidence in [0, 1] and whether it was right.

Law: pure and deterministic. Ties count as ties: half in the AUROC, by their share where a coverage cuts them, together
in bins and above a threshold. Numbers in come from the caller, chance for the intervals too; what cannot be computed
is None.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, floor
from typing import Final, NamedTuple

Pair = tuple[float, bool]
Interval = tuple[float, float]

BINS: Final = 10
COVERAGES: Final = tuple(share / 10 for share in range(10, 0, -1))
MAX_GROUPS: Final = 2000
"""Distinct confidences that a resample tells apart; of more, neighbours are taken together."""
LEVEL: Final = 0.95
_PIECE: Final = 500
"""Largest mean of a Poisson number that is drawn at once."""


class Bin(NamedTuple):
    """One bar of a reliability diagram."""

    low: float
    """Left edge of a bin of equal width."""
    pairs: float
    confidence: float
    """Mean of its pairs."""
    accuracy: float
    """Share of its pairs that are right."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What is computed of one sample. Weights of a resample are counts, like the sample's own."""

    auroc: float | None
    """Probability that a right answer has more confidence than a wrong one, ties half: Mann-Whitney's U over the number
    of pairs of both (Hanley and McNeil 1982, doi:10.1148/radiology.143.1.7063747). None with one class only."""
    ece: float
    """Expected calibration error, sum over bins of share x |accuracy - mean confidence|, over BINS bins of equal width,
    each closed on its right (Guo et al. 2017, arXiv 1706.04599, equation 3)."""
    ece_mass: float
    """The same over bins of equal mass, between the sample's quantiles (Naeini et al. 2015, doi:10.1609/aaai.v29i1.9602;
    Nixon et al. 2019, arXiv 1904.01685). Ties share a bin."""
    brier: float
    """Mean of (confidence - right)^2 (Brier 1950, Monthly Weather Review 78(1), 1-3)."""
    risks: tuple[float, ...]
    """Error rate among the most confident share of answers, for each of COVERAGES (El-Yaniv and Wiener 2010, JMLR 11,
    1605-1641)."""
    threshold: float | None
    """Least confidence from which on, taken together, the wanted share of answers is right; None if there is none."""
    coverage: float
    """Share of answers at or above it."""
    precision: float | None
    """Share right at or above the threshold; in a resample at or above the sample's threshold, not its own."""


class _Group(NamedTuple):
    """Pairs that a resample does not tell apart. Means are over the right and over the wrong ones."""

    least: float
    """Confidence."""
    right: int
    wrong: int
    mean_right: float
    mean_wrong: float
    loss_right: float
    """Mean of (1 - confidence)^2."""
    loss_wrong: float
    """Mean of confidence^2."""
    width: int
    """Bin of equal width."""
    mass: int
    """Bin of equal mass."""


class Sample:
    """Pairs, sorted once."""

    def __init__(self, pairs: Iterable[Pair], *, precision: float = 0.9) -> None:
        """`precision` is the share of right answers that a threshold is wanted for. Raises ValueError without pairs."""
        self._pairs = sorted(pairs, reverse=True)
        if not self._pairs:
            raise ValueError("no pairs")
        self._wanted = precision
        self.count = len(self._pairs)
        self.right = sum(right for _, right in self._pairs)
        self._width = width_edges()
        self._mass = mass_edges([confidence for confidence, _ in reversed(self._pairs)])
        self._threshold: float | None = None
        self._groups = self._grouped(1)
        self._threshold = self._figures(self._groups).threshold
        self.figures = self._figures(self._groups)
        self._coarse = self._groups
        if len(self._groups) > MAX_GROUPS:
            self._coarse = self._grouped(-(-self.count // MAX_GROUPS))
        self.coarse_figures = self._figures(self._coarse)
        """As resamples see the sample; equal to `figures` up to MAX_GROUPS distinct confidences."""

    def bins(self) -> list[Bin]:
        """The bins of equal width that hold a pair, as a reliability diagram shows them."""
        totals = [[0.0, 0.0, 0.0] for _ in range(BINS)]
        for g in self._groups:
            total = totals[g.width]
            total[0] += g.right + g.wrong
            total[1] += g.right * g.mean_right + g.wrong * g.mean_wrong
            total[2] += g.right
        return [
            Bin(index / BINS, n, confidence / n, right / n)
            for index, (n, confidence, right) in enumerate(totals)
            if n
        ]

    def resample(self, times: int, uniform: Callable[[], float]) -> list[Figures]:
        """Figures of `times` resamples, by the bootstrap with Poisson frequencies: every pair counts as often as an
        independent Poisson(1) says (Hanley and MacGibbon 2006, Computer Methods and Programs in Biomedicine 83), so pairs that are alike
        are drawn at once, as Poisson of their number. `uniform` gives numbers in [0, 1).

        With more than MAX_GROUPS distinct confidences, neighbours are taken together in the resamples; what that moves
        is moved back by `interval`. Bins keep the edges of the sample. A resample without any pair is left out.
        """
        groups = self._coarse
        found = []
        for _ in range(times):
            right = [_poisson(g.right, uniform) for g in groups]
            wrong = [_poisson(g.wrong, uniform) for g in groups]
            if any(right) or any(wrong):
                found.append(_measure(groups, right, wrong, self._wanted, self._threshold))
        return found

    def _figures(self, groups: Sequence[_Group]) -> Figures:
        rights, wrongs = [g.right for g in groups], [g.wrong for g in groups]
        return _measure(groups, rights, wrongs, self._wanted, self._threshold)

    def _grouped(self, size: int) -> list[_Group]:
        """Neighbours of one bin and one side of the threshold, until there are `size` of them; ties never part."""
        groups: list[_Group] = []
        held: list[Pair] = []
        for pair in self._pairs:
            if (
                held
                and pair[0] != held[-1][0]
                and (len(held) >= size or self._at(pair[0]) != self._at(held[0][0]))
            ):
                groups.append(self._group(held))
                held = []
            held.append(pair)
        return [*groups, self._group(held)]

    def _at(self, confidence: float) -> tuple[int, int, bool]:
        above = self._threshold is not None and confidence >= self._threshold
        return bisect_left(self._width, confidence), bisect_left(self._mass, confidence), above

    def _group(self, pairs: Sequence[Pair]) -> _Group:
        right = [confidence for confidence, is_right in pairs if is_right]
        wrong = [confidence for confidence, is_right in pairs if not is_right]
        return _Group(
            pairs[-1][0],
            len(right),
            len(wrong),
            _mean(right),
            _mean(wrong),
            _mean([(1 - c) ** 2 for c in right]),
            _mean([c**2 for c in wrong]),
            *self._at(pairs[0][0])[:2],
        )


def width_edges() -> list[float]:
    """Inner edges of BINS bins of equal width."""
    return [edge / BINS for edge in range(1, BINS)]


def mass_edges(ascending: Sequence[float]) -> list[float]:
    """Inner edges of BINS bins of equal mass: quantiles, between two values by interpolation."""
    return [quantile(ascending, edge / BINS) for edge in range(1, BINS)]


def quantile(ascending: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie, interpolated (definition 7 of Hyndman and Fan 1996)."""
    place = share * (len(ascending) - 1)
    low = floor(place)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (ascending[high] - ascending[low]) * (place - low)


def interval(found: Iterable[float | None], moved: float = 0.0) -> Interval | None:
    """The middle LEVEL of the resampled values (Efron 1979, the percentile interval), moved by `moved` (the sample's
    figure less its coarse one) and kept within [0, 1]. None if there are no values."""
    values = sorted(value for value in found if value is not None)
    if not values:
        return None
    tail = (1 - LEVEL) / 2
    low, high = quantile(values, tail) + moved, quantile(values, 1 - tail) + moved
    return min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)


def reflected(found: Iterable[float | None], figure: float, moved: float = 0.0) -> Interval | None:
    """The same, reflected at the figure (the basic interval of Davison and Hinkley 1997, section 5.2): for a calibration
    error. Chance in the bins makes every ECE too large, and a resample's by as much again (Kumar et al. 2019, arXiv
    1909.10155), so the percentiles lie above the truth and their reflection around it; perhaps below the figure."""
    straight = interval(found, moved)
    return straight and (max(2 * figure - straight[1], 0.0), max(2 * figure - straight[0], 0.0))


def _measure(
    groups: Sequence[_Group], rights: Sequence[int], wrongs: Sequence[int], wanted: float, kept: float | None
) -> Figures:
    """One pass from the most confident group to the least. `kept`: the threshold whose precision is told."""
    total_right, total_wrong = sum(rights), sum(wrongs)
    total = total_right + total_wrong
    seen_right = seen_wrong = 0
    concordant = squares = 0.0
    width, mass = [0.0] * BINS, [0.0] * BINS
    """By bin: sum of confidence less number of right ones."""
    needs = [share * total for share in COVERAGES]
    risks: list[float] = []
    threshold, above = None, 0
    kept_right = kept_count = 0
    for group, right, wrong in zip(groups, rights, wrongs):
        count = right + wrong
        if not count:
            continue
        concordant += wrong * (seen_right + right / 2)
        squares += right * group.loss_right + wrong * group.loss_wrong
        excess = right * (group.mean_right - 1) + wrong * group.mean_wrong
        width[group.width] += excess
        mass[group.mass] += excess
        seen = seen_right + seen_wrong
        while needs and needs[-1] <= seen + count:
            need = needs.pop()
            risks.append((seen_wrong + wrong * (need - seen) / count) / need)
        seen_right += right
        seen_wrong += wrong
        if seen_right / (seen + count) >= wanted:
            threshold, above = group.least, seen + count
        if kept is not None and group.least >= kept:
            kept_right, kept_count = seen_right, seen + count
    return Figures(
        auroc=concordant / (total_right * total_wrong) if total_right and total_wrong else None,
        ece=sum(map(abs, width)) / total,
        ece_mass=sum(map(abs, mass)) / total,
        brier=squares / total,
        risks=tuple(reversed(risks)),
        threshold=threshold,
        coverage=above / total,
        precision=kept_right / kept_count if kept_count else None,
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _poisson(mean: int, uniform: Callable[[], float]) -> int:
    """A Poisson number by inversion; a large mean in pieces, since exp(-mean) must not vanish."""
    drawn = 0
    while mean > _PIECE:
        drawn += bisect_right(_poisson_table(_PIECE), uniform())
        mean -= _PIECE
    return drawn + bisect_right(_poisson_table(mean), uniform()) if mean else drawn


@lru_cache(maxsize=_PIECE + 1)
def _poisson_table(mean: int) -> list[float]:
    """Chance of at most 0, 1, 2, ...: as far as float64 tells one from the next."""
    number, share = 0, exp(-mean)
    table = [share]
    while number < mean or share > 1e-18:
        number += 1
        share *= mean / number
        table.append(table[-1] + share)
    return table
