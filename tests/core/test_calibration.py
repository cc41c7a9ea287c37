"""Calibration: equal to scikit-learn where it says something, and to plain counting where it does not."""

import math
from random import Random
from statistics import fmean, variance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core import calibration
from proxy.core.calibration import COVERAGES, Pair, Sample, interval, quantile, reflected
from tests.core.golden_calibration import SAID, Said, pairs

PAIRS = st.lists(
    st.tuples(st.floats(0, 1) | st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 1.0]), st.booleans()), min_size=1
)


def near(value: object) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-12)


# -- scikit-learn's numbers


@pytest.mark.parametrize("said", SAID, ids=lambda said: f"{said.size} of seed {said.seed}")
def test_as_scikit_learn_says(said: Said) -> None:
    sample = Sample(pairs(said.size, said.seed, said.digits))
    figures = sample.figures
    assert (sample.count, sample.right) == (said.size, said.right)
    assert (figures.auroc, figures.brier) == (near(said.auroc), near(said.brier))
    assert (figures.ece, figures.ece_mass) == (near(said.ece), near(said.ece_mass))
    bins = sample.bins()
    assert [one.accuracy for one in bins] == near(said.accuracies)
    assert [one.confidence for one in bins] == near(said.confidences)
    assert sum(one.pairs for one in bins) == said.size


@pytest.mark.parametrize("said", [said for said in SAID if said.auroc_interval], ids=lambda said: said.seed)
def test_intervals_are_those_of_resamples_with_replacement(said: Said) -> None:
    sample = Sample(pairs(said.size, said.seed, said.digits))
    found = sample.resample(2000, Random(1).random)
    assert interval(one.auroc for one in found) == pytest.approx(said.auroc_interval, abs=0.005)
    assert interval(one.brier for one in found) == pytest.approx(said.brier_interval, abs=0.003)


# -- plain counting


@given(PAIRS)
def test_auroc_is_the_share_of_pairs_in_order(found: list[Pair]) -> None:
    right, wrong = [c for c, is_right in found if is_right], [c for c, is_right in found if not is_right]
    auroc = Sample(found).figures.auroc
    if not right or not wrong:
        assert auroc is None
    else:
        assert auroc == near(fmean((r > w) + (r == w) / 2 for r in right for w in wrong))


@given(PAIRS)
def test_auroc_knows_only_the_order(found: list[Pair]) -> None:
    ranks = {c: rank for rank, c in enumerate(sorted({c for c, _ in found}))}
    as_ranks = [(ranks[c] / len(ranks), is_right) for c, is_right in found]
    assert Sample(as_ranks).figures.auroc == Sample(found).figures.auroc
    swapped = Sample([(1 - ranks[c] / len(ranks), is_right) for c, is_right in found]).figures.auroc
    auroc = Sample(found).figures.auroc
    assert swapped == (None if auroc is None else near(1 - auroc))


@given(PAIRS)
def test_figures_are_shares_and_the_order_of_lines_is_nothing(found: list[Pair]) -> None:
    figures = Sample(found).figures
    assert Sample(found[::-1]).figures == figures
    for value in (figures.ece, figures.ece_mass, figures.brier, figures.coverage, *figures.risks):
        assert -1e-12 <= value <= 1 + 1e-12
    assert figures.brier == near(fmean((c - is_right) ** 2 for c, is_right in found))


@given(st.integers(1, 50), st.sets(st.integers(0, 20), min_size=1))
def test_what_is_calibrated_has_no_error(times: int, twentieths: set[int]) -> None:
    found = [(part / 20, index < part) for part in twentieths for index in range(20)] * times
    figures = Sample(found).figures
    assert (figures.ece, figures.ece_mass) == (near(0.0), near(0.0))


def test_the_error_of_one_that_is_always_sure() -> None:
    figures = Sample([(1.0, True)] * 3 + [(1.0, False)]).figures
    assert (figures.ece, figures.ece_mass, figures.brier, figures.auroc) == (0.25, 0.25, 0.25, 0.5)


def test_bins_are_closed_on_their_right() -> None:
    sample = Sample([(c, True) for c in (0.0, 0.1, math.nextafter(0.1, 1), 0.3, 0.9, 1.0)])
    assert [(one.low, one.pairs) for one in sample.bins()] == [
        (0.0, 2),
        (0.1, 1),
        (0.2, 1),
        (0.8, 1),
        (0.9, 1),
    ]


@given(PAIRS.filter(lambda found: len({c for c, _ in found}) == len(found)))
def test_risk_is_the_share_of_wrong_ones_among_the_most_confident(found: list[Pair]) -> None:
    tenfold = sorted(found, reverse=True) * 10  # so that each coverage cuts whole pairs
    ordered = [is_right for c, is_right in sorted(tenfold, key=lambda pair: -pair[0])]
    risks = Sample(tenfold).figures.risks
    assert len(risks) == len(COVERAGES)
    for share, risk in zip(COVERAGES, risks, strict=True):
        kept = ordered[: round(share * len(ordered))]
        # A tie that is cut counts by its share, which here are ten alike: the same.
        assert risk == near(kept.count(False) / len(kept))


def test_a_tie_that_is_cut_counts_by_its_share() -> None:
    risks = Sample([(0.5, index < 3) for index in range(4)]).figures.risks
    assert risks == (0.25,) * 10


@given(PAIRS, st.floats(0.01, 1))
def test_the_threshold_is_the_least_with_the_precision(found: list[Pair], wanted: float) -> None:
    fit = []
    for least in {c for c, _ in found}:
        kept = [is_right for c, is_right in found if c >= least]
        if sum(kept) / len(kept) >= wanted:
            fit.append((least, len(kept) / len(found), sum(kept) / len(kept)))
    figures = Sample(found, precision=wanted).figures
    expected = min(fit, default=(None, 0.0, None))
    assert (figures.threshold, figures.coverage, figures.precision) == expected


def test_a_precision_that_is_just_met_is_met() -> None:
    figures = Sample([(0.8, index > 0) for index in range(10)] + [(0.7, False)], precision=0.9).figures
    assert (figures.threshold, figures.precision) == (0.8, 0.9)


def test_without_pairs_there_is_nothing() -> None:
    with pytest.raises(ValueError, match="no pairs"):
        Sample([])


# -- chance


def test_the_same_chance_gives_the_same() -> None:
    sample = Sample(pairs(200, 5, 0))
    assert sample.resample(20, Random(7).random) == sample.resample(20, Random(7).random)
    assert sample.resample(20, Random(7).random) != sample.resample(20, Random(8).random)


@pytest.mark.parametrize("mean", [1, 3, 40, 500, 1234])
def test_poisson_numbers_have_their_mean_and_variance(mean: int) -> None:
    uniform = Random(3).random
    drawn = [calibration._poisson(mean, uniform) for _ in range(4000)]
    assert fmean(drawn) == pytest.approx(mean, abs=4 * math.sqrt(mean / 4000))
    assert variance(drawn) == pytest.approx(mean, rel=0.15)
    assert calibration._poisson(0, uniform) == 0
    assert calibration._poisson(mean, lambda: 0.0) == 0
    assert calibration._poisson(1, lambda: math.nextafter(1.0, 0.0)) < 30


@pytest.mark.parametrize("digits", [0, 3])
def test_many_pairs_are_taken_together_in_resamples_only(digits: int) -> None:
    sample = Sample(pairs(20_000, 6, digits))
    exact, coarse = sample.figures, sample.coarse_figures
    assert len(sample._coarse) <= calibration.MAX_GROUPS + 30  # bins and the threshold end a group
    for name in ("ece", "ece_mass", "brier", "threshold", "coverage", "precision"):
        assert getattr(coarse, name) == near(getattr(exact, name)), name
    assert coarse.auroc == pytest.approx(exact.auroc, abs=1e-4)
    assert coarse.risks == pytest.approx(exact.risks, abs=1e-3)


@given(PAIRS)
def test_few_are_not(found: list[Pair]) -> None:
    sample = Sample(found)
    assert sample.coarse_figures == sample.figures


def test_the_precision_of_resamples_is_at_the_samples_threshold() -> None:
    sample = Sample(pairs(300, 8, 0))
    found = [one.precision for one in sample.resample(200, Random(1).random) if one.precision is not None]
    assert sample.figures.precision is not None
    assert min(found) < 0.9 <= sample.figures.precision < max(found)


def test_intervals() -> None:
    values = [index / 1000 for index in range(1001)]
    assert interval(values) == near((0.025, 0.975))
    assert interval([None, 0.5, None]) == (0.5, 0.5)
    assert interval([None]) is None
    assert interval([0.9, 1.0], 0.3) == (1.0, 1.0)
    assert reflected([0.2, 0.2], 0.15) == near((0.1, 0.1))
    assert reflected([0.9], 0.1) == (0.0, 0.0)
    assert reflected([], 0.1) is None


def test_quantiles() -> None:
    assert [quantile([1.0, 2.0, 4.0], share) for share in (0, 0.25, 0.5, 0.75, 1)] == [1, 1.5, 2, 3, 4]
    assert quantile([3.0], 0.5) == 3.0


def test_the_reflected_interval_holds_the_truth_more_often() -> None:
    """Of what is calibrated the true error is 0, which no percentile of resamples ever reaches."""
    uniform = Random(9).random
    straight = mirrored = 0
    for _ in range(40):
        found = [(c, uniform() < c) for c in (uniform() for _ in range(200))]
        sample = Sample(found)
        errors = [one.ece for one in sample.resample(100, uniform)]
        low, _ = interval(errors) or (1.0, 1.0)
        straight += low <= 0.0
        low, _ = reflected(errors, sample.figures.ece) or (1.0, 1.0)
        mirrored += low <= 0.0
    assert (straight, mirrored > 10) == (0, True)
