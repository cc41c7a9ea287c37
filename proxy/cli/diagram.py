"""The reliability diagram of `calibrate`, by matplotlib.

Law: importing this is what needs matplotlib, and nothing else does. No display, no state of a library's, and the same
pairs draw the same file.
"""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from proxy.core.calibration import BINS, Sample

_RIGHT, _ALL = "#1f77b4", "#b0b0b0"


def draw(sample: Sample, target: str, name: str) -> None:
    """Accuracy over mean confidence of each bin, above a histogram of the confidences; PNG or SVG by its name."""
    with mpl.rc_context({"svg.hashsalt": "logprob-proxy", "text.usetex": False, "text.parse_math": False}):
        figure = Figure(figsize=(5.5, 6.5), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        bins = sample.bins()
        above.plot((0, 1), (0, 1), color=_ALL, linestyle="--", label="calibrated")
        above.plot(
            [one.confidence for one in bins],
            [one.accuracy for one in bins],
            color=_RIGHT,
            marker="o",
            label=f"{BINS} bins of equal width",
        )
        above.set(ylabel="share that is right", xlim=(0, 1), ylim=(0, 1))
        figures = sample.figures
        above.set_title(f"n = {sample.count}, ECE {figures.ece:.3f}, AUROC {figures.auroc or 0:.3f}")
        above.legend(loc="upper left")
        below.bar(
            [one.low for one in bins],
            [one.pairs for one in bins],
            width=1 / BINS,
            align="edge",
            color=_ALL,
            edgecolor="w",
        )
        below.set(xlabel=name, ylabel="pairs")
        suffix = Path(target).suffix.lower()[1:]
        figure.savefig(target, format=suffix, dpi=150, metadata={"Date": None} if suffix == "svg" else None)
