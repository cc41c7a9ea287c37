"""Pairs of a confidence and right or wrong, and what scikit-learn says of them.

The numbers were computed once by scikit-learn 1.9.1 and NumPy 2.4.6 on Python 3.11: roc_auc_score, brier_score_loss,
and calibration_curve with 10 bins, `uniform` and `quantile`; the intervals by 10,000 resamples with replacement (a
generator of NumPy's with seed 0), 2.5 % and 97.5 %. tests/oracles computes them anew where these are installed.
"""

from typing import Final, NamedTuple


class Said(NamedTuple):
    """Of the pairs that `pairs` makes from `size`, `seed` and `digits`."""

    size: int
    seed: int
    digits: int
    """Of the confidences, so that they tie; 0: all."""
    right: int
    auroc: float
    brier: float
    ece: float
    """From the edges of calibration_curve's bins; it shows no counts itself."""
    ece_mass: float
    accuracies: list[float]
    confidences: list[float]
    auroc_interval: tuple[float, float] | None = None
    brier_interval: tuple[float, float] | None = None


def pairs(count: int, seed: int, digits: int) -> list[tuple[float, bool]]:
    """Of a confidence c, c to the power 1.5 are right: overconfident. Lehmer's generator, so that anyone gets the
    same."""
    state, found = seed, []

    def uniform() -> float:
        nonlocal state
        state = state * 16807 % 2147483647
        return state / 2147483647

    for _ in range(count):
        confidence = uniform()
        right = uniform() < confidence**1.5
        found.append((round(confidence, digits) if digits else confidence, right))
    return found


# fmt: off
SAID: Final = [
    Said(
        500, 1, 0, 191, 0.837323573764381, 0.1743648139500771,
        0.12066794988264698, 0.12348472854750449,
        [
            0.0, 0.07142857142857142, 0.1320754716981132, 0.25, 0.30158730158730157,
            0.3090909090909091, 0.41818181818181815, 0.6086956521739131, 0.8163265306122449, 0.9545454545454546,
        ],
        [
            0.04965299118759717, 0.1439257305497402, 0.25106737201529594, 0.3598665352840285, 0.4506728355358309,
            0.5484682295908792, 0.6609706139052574, 0.7441149459284171, 0.8428489282489622, 0.9537696541727887,
        ],
        (0.80135056, 0.87125369), (0.1583304, 0.19112594),
    ),
    Said(
        500, 2, 1, 211, 0.870291411797504, 0.15288,
        0.08519999999999994, 0.08519999999999994,
        [
            0.02666666666666667, 0.043478260869565216, 0.16, 0.26, 0.40350877192982454,
            0.4634146341463415, 0.6521739130434783, 0.7735849056603774, 0.8490566037735849, 0.9655172413793104,
        ],
        [
            0.06666666666666664, 0.19999999999999998, 0.30000000000000027, 0.39999999999999986, 0.5,
            0.6000000000000004, 0.6999999999999996, 0.7999999999999996, 0.8999999999999991, 1.0,
        ],
        (0.8390631, 0.89941095), (0.136899, 0.1697405),
    ),
    Said(
        3000, 3, 0, 1223, 0.8592269440856662, 0.16114003712389002,
        0.09771318229103763, 0.09771318229103766,
        [
            0.006802721088435374, 0.0625, 0.11986301369863013, 0.18874172185430463, 0.3079268292682927,
            0.4527687296416938, 0.4831081081081081, 0.6666666666666666, 0.7973856209150327, 0.9461279461279462,
        ],
        [
            0.049578826826306814, 0.1484601794053507, 0.25082567040942627, 0.3491918918504843, 0.45024326263892833,
            0.5502882953307565, 0.6496566241907519, 0.7529418847280152, 0.8497599716971307, 0.9533391590937941,
        ],
    ),
    Said(
        40, 4, 2, 18, 0.8724747474747474, 0.137215,
        0.11649999999999998, 0.09300000000000001,
        [
            0.0, 0.0, 0.0, 0.5, 0.0,
            0.75, 0.7142857142857143, 0.6666666666666666, 1.0, 0.8333333333333334,
        ],
        [
            0.04555555555555556, 0.1375, 0.21, 0.35750000000000004, 0.44,
            0.53, 0.6457142857142858, 0.7566666666666667, 0.89, 0.9566666666666667,
        ],
    ),
]
# fmt: on
