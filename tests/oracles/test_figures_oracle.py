"""Figures beside uqlm 0.6.7, lm-polygraph 0.7.0 and scipy, on random tokens.

Law: where a library means what we mean, the numbers are equal to 1e-9. It does not where the names tell so: lm-polygraph's
Perplexity is the logarithm of ours; uqlm's and lm-polygraph's entropies leave the unseen mass out or scale it away.
The libraries are installed without their dependencies (torch and the like), so their packages' `__init__` must not run.
"""

import site
import sys
import types
from importlib import import_module
from math import exp, log
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.figures import Figures
from proxy.core.position import position
from proxy.core.tokens import Alternative, Token


def _stub(name: str, **members: object) -> None:
    module = types.ModuleType(name)
    module.__path__ = [str(Path(folder, *name.split("."))) for folder in site.getsitepackages()]
    module.__dict__.update(members)
    sys.modules[name] = module


for package in ("uqlm", "uqlm.white_box", "uqlm.white_box.baseclass"):
    _stub(package)
for package in (
    "lm_polygraph",
    "lm_polygraph.estimators",
    "lm_polygraph.stat_calculators",
    "lm_polygraph.utils",
):
    _stub(package)
_stub("lm_polygraph.utils.model", Model=object, WhiteboxModel=object, BlackboxModel=object)
_stub("lm_polygraph.utils.common", polygraph_module_init=lambda init: init)

Perplexity = import_module("lm_polygraph.estimators.perplexity").Perplexity
MaximumSequenceProbability = import_module(
    "lm_polygraph.estimators.max_probability"
).MaximumSequenceProbability
SingleLogprobsScorer = import_module("uqlm.white_box.single_logprobs").SingleLogprobsScorer
TopLogprobsScorer = import_module("uqlm.white_box.top_logprobs").TopLogprobsScorer
entropy = import_module("scipy.stats").entropy

Content = list[dict[str, Any]]
K = 5


@st.composite
def answers(draw: st.DrawFn) -> Content:
    """`logprobs.content` of an answer: the chosen token is one of K."""
    content: Content = []
    for _ in range(draw(st.integers(1, 20))):
        weights = draw(st.lists(st.floats(0.001, 1), min_size=K + 1, max_size=K + 1, unique=True))
        logprobs = sorted((log(w / sum(weights)) for w in weights), reverse=True)[:K]
        top = [{"token": str(i), "logprob": x} for i, x in enumerate(logprobs)]
        content.append({**top[draw(st.integers(0, K - 1))], "top_logprobs": top})
    return content


def figures(content: Content) -> Figures:
    found = Figures()
    for item in content:
        listed = [Alternative(top["token"].encode(), top["logprob"]) for top in item["top_logprobs"]]
        found.count(Token(item["token"].encode(), item["logprob"], None, listed))
    return found


@given(answers())
def test_uqlm(content: Content) -> None:
    ours = figures(content)
    names = ["min_probability", "sequence_probability"]
    single = SingleLogprobsScorer(scorers=names, length_normalize=True).evaluate([content])
    whole = SingleLogprobsScorer(scorers=names[1:], length_normalize=False).evaluate([content])
    top = TopLogprobsScorer(top_k_logprobs=K).evaluate([content])
    assert ours.min_probability == pytest.approx(single["min_probability"][0], rel=1e-9)
    assert ours.geometric_mean_probability == pytest.approx(single["sequence_probability"][0], rel=1e-9)
    assert ours.sequence_probability == pytest.approx(whole["sequence_probability"][0], rel=1e-9)
    assert ours.mean_margin == pytest.approx(top["probability_margin"][0], rel=1e-9)


@given(answers())
def test_lm_polygraph(content: Content) -> None:
    ours = figures(content)
    stats = {"greedy_log_likelihoods": [[item["logprob"] for item in content]]}
    assert ours.perplexity == pytest.approx(exp(Perplexity()(stats)[0]), rel=1e-9)
    assert -ours.logprob_sum == pytest.approx(MaximumSequenceProbability()(stats)[0], rel=1e-9)


@given(st.lists(st.floats(0.001, 1), min_size=K, max_size=20))
def test_scipy_where_nothing_is_unseen(weights: list[float]) -> None:
    ps = [w / sum(weights) for w in weights]
    listed = [Alternative(b"%d" % i, log(p)) for i, p in enumerate(ps)]
    found = position(Token(b"0", log(ps[0]), None, listed))
    assert found is not None
    assert found.entropy == pytest.approx(entropy(ps), abs=1e-9)
