"""scikit-learn's numbers, computed anew: those kept in tests/core are what it says."""

from importlib import import_module

import numpy as np
import pytest

from proxy.core.calibration import Sample
from tests.core.golden_calibration import SAID, Said, pairs

calibration_curve = import_module("sklearn.calibration").calibration_curve
brier_score_loss = import_module("sklearn.metrics").brier_score_loss
roc_auc_score = import_module("sklearn.metrics").roc_auc_score


def near(value: object) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("said", SAID, ids=lambda said: f"{said.size} of seed {said.seed}")
def test_the_kept_numbers(said: Said) -> None:
    found = pairs(said.size, said.seed, said.digits)
    confidences, right = np.array([c for c, _ in found]), np.array([right for _, right in found])
    assert roc_auc_score(right, confidences) == near(said.auroc)
    assert brier_score_loss(right, confidences) == near(said.brier)
    accuracies, means = calibration_curve(right, confidences, n_bins=10)
    assert (list(accuracies), list(means)) == (near(said.accuracies), near(said.confidences))
    figures = Sample(found).figures
    for error, edges in (
        (figures.ece, np.linspace(0, 1, 11)),
        (figures.ece_mass, np.percentile(confidences, np.linspace(0, 100, 11))),
    ):
        at = np.searchsorted(edges[1:-1], confidences)
        gaps = [abs(confidences[at == index].sum() - right[at == index].sum()) for index in range(10)]
        assert error == near(sum(gaps) / said.size)


@pytest.mark.parametrize("seed", range(5))
def test_other_pairs(seed: int) -> None:
    generator = np.random.default_rng(seed)
    confidences = generator.random(777).round(generator.integers(1, 6))
    right = generator.random(777) < confidences
    figures = Sample(zip(confidences.tolist(), right.tolist())).figures
    assert figures.auroc == near(roc_auc_score(right, confidences))
    assert figures.brier == near(brier_score_loss(right, confidences))
