"""Figures against naive formulas, against other people's libraries, and where numbers are hostile."""

import json
import random
from math import exp, fsum, log
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.core.figures import NAMES, WINDOW, Figures
from proxy.core.position import entropy_bound, position
from proxy.core.tokens import Alternative, Token

CAPTURE = Path(__file__).parents[1] / "captures" / "openai-chat" / "vllm-0320-chat_lp_top5.upstream.json"
logprobs = st.floats(-30, 0)


def token(logprob: float | None, *others: float, data: bytes = b"a") -> Token:
    listed = [Alternative(b"%d" % index, other) for index, other in enumerate(others)]
    return Token(data, logprob, None, listed)


def figures(*tokens: Token, threshold: float = 0.5) -> Figures:
    result = Figures(threshold=threshold)
    for one in tokens:
        result.count(one)
    return result


@given(st.lists(logprobs, min_size=1, max_size=60), st.floats(0, 1))
def test_naive_formulas(values: list[float], threshold: float) -> None:
    found = figures(*map(token, values), threshold=threshold)
    n, total, ps = len(values), fsum(values), [exp(x) for x in values]
    assert found.tokens == n
    assert found.logprob_sum == pytest.approx(total, abs=1e-9)
    assert found.perplexity == pytest.approx(exp(-total / n), rel=1e-9)
    assert found.geometric_mean_probability == pytest.approx(exp(total / n), rel=1e-9)
    assert found.sequence_probability == pytest.approx(exp(total), rel=1e-9)
    assert found.mean_probability == pytest.approx(fsum(ps) / n, rel=1e-9)
    assert found.min_probability == min(ps)
    assert found.min_probability_index is not None
    assert values[found.min_probability_index] == min(values)
    assert found.low_confidence_tokens == sum(p <= threshold for p in ps)
    size = min(WINDOW, n)
    windows = [fsum(values[i : i + size]) / size for i in range(n - size + 1)]
    assert found.lowest_window_probability == pytest.approx(exp(min(windows)), rel=1e-9)


def test_numbers_of_uqlm_and_lm_polygraph() -> None:
    """Computed by uqlm 0.6.7 (SingleLogprobsScorer, TopLogprobsScorer with k = 5) and lm-polygraph 0.7.0 (Perplexity,
    which is its logarithm, and MaximumSequenceProbability, which is the negative logarithm) on the seven answer tokens of
    an answer recorded from vLLM; the mean with numpy. Their entropies are not ours: uqlm renormalises, lm-polygraph
    leaves the unseen mass out."""
    content = json.loads(CAPTURE.read_bytes())["choices"][0]["logprobs"]["content"][:7]
    found = figures(
        *(
            Token(
                bytes(one["bytes"]),
                one["logprob"],
                None,
                [Alternative(bytes(other["bytes"]), other["logprob"]) for other in one["top_logprobs"]],
            )
            for one in content
        )
    )
    assert found.min_probability == pytest.approx(0.5175545314176344, rel=1e-12)
    assert found.geometric_mean_probability == pytest.approx(0.8502589596439497, rel=1e-12)
    assert found.sequence_probability == pytest.approx(0.32126137898194806, rel=1e-12)
    assert found.mean_margin == pytest.approx(0.8130071925984493, rel=1e-12)
    assert found.perplexity == pytest.approx(exp(0.16221431749207632), rel=1e-12)
    assert -found.logprob_sum == pytest.approx(1.1355002224445343, rel=1e-12)
    assert found.mean_probability == pytest.approx(0.8708752772941313, rel=1e-12)
    assert found.alternatives_tokens == 7
    assert found.not_top1_tokens == 0
    # Never less than lm-polygraph's, which is the part of entropy that is seen.
    assert found.mean_entropy is not None
    assert found.mean_entropy > 0.2934


def test_one_sentinel_moves_nothing_but_what_it_must() -> None:
    plain = figures(*[token(-0.1)] * 99)
    marked = figures(*[token(-0.1)] * 50, token(-9999.0), *[token(-0.1)] * 49)
    assert marked.perplexity == plain.perplexity
    assert marked.mean_probability == plain.mean_probability
    assert marked.lowest_window_probability == plain.lowest_window_probability
    assert (marked.min_probability, marked.min_probability_index) == (0.0, 50)
    assert (marked.sentinel_tokens, marked.low_confidence_tokens) == (1, 1)
    assert marked.sequence_probability is None


def test_a_hundred_thousand_tokens() -> None:
    found = figures(*[token(-0.7)] * 100_000)
    assert found.perplexity == pytest.approx(exp(0.7), rel=1e-9)
    assert found.sequence_probability == 0.0
    assert found.logprob_sum == pytest.approx(-70_000)


@pytest.mark.parametrize("value", [None, float("nan"), 0.5, 23.9, float("inf")])
def test_what_is_no_logprob_is_unscored(value: float | None) -> None:
    found = figures(token(value), token(-0.5))
    assert (found.tokens, found.unscored_tokens, found.min_probability_index) == (1, 1, 1)
    assert found.perplexity == pytest.approx(exp(0.5))


def test_certain_tokens() -> None:
    found = figures(token(0.0), token(-0.0), token(1e-7), token(0))
    assert (found.perplexity, found.min_probability, found.mean_probability) == (1.0, 1.0, 1.0)


def test_nothing_overflows() -> None:
    found = figures(token(-9998.0))
    assert found.perplexity == exp(700)
    assert found.sequence_probability == 0.0


def test_no_tokens() -> None:
    described = Figures().describe()
    assert [name for name in NAMES if described[name] is not None] == [
        "tokens",
        "unscored_tokens",
        "sentinel_tokens",
        "logprob_sum",
        "low_confidence_tokens",
        "threshold",
        "not_top1_tokens",
        "alternatives_tokens",
    ]
    json.dumps(described)


# -- positions


def test_chosen_in_the_list() -> None:
    found = position(Token(b"a", -0.5, None, [Alternative(b"b", -1.5), Alternative(b"a", -0.5)]))
    assert found is not None
    assert found.margin == pytest.approx(exp(-0.5) - exp(-1.5))
    assert (found.top1, found.entropy) == (True, None)


def test_chosen_outside_the_list_unsorted_and_doubled() -> None:
    listed = [
        Alternative(b"b", -1.5),
        Alternative(b"c", -0.5),
        Alternative(b"c", -0.5),
        Alternative(b"d", None),
    ]
    found = position(Token(b"a", -4.0, None, listed))
    assert found is not None
    assert found.margin == pytest.approx(exp(-0.5) - exp(-1.5))
    assert not found.top1


def test_pieces_that_print_alike_are_two_and_ties_are_top1() -> None:
    found = position(Token(b"\xf0", -0.7, None, [Alternative(b"\xf0", -0.7), Alternative(b"\x9f", -0.7)]))
    assert found is not None
    assert (found.margin, found.top1) == (0.0, True)


def test_one_known_token_has_no_margin() -> None:
    found = position(Token(b"a", -0.1, None, [Alternative(b"a", -0.1)]))
    assert found is not None
    assert found.margin is None


@pytest.mark.parametrize("alternatives", [[], [Alternative(b"a", None)], [Alternative(b"a", 5.0)]])
def test_no_position(alternatives: list[Alternative]) -> None:
    assert position(Token(b"a", -0.1, None, alternatives)) is None


def _entropy(ps: list[float]) -> float:
    return -fsum(p * log(p) for p in ps if p > 0)


@given(st.lists(st.floats(0.001, 1), min_size=5, max_size=60), st.integers(5, 20), st.integers(0, 59))
@example([1.0] * 20, 5, 10)
@example([1.0, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3], 5, 0)
def test_entropy_is_a_lower_bound(weights: list[float], k: int, chosen: int) -> None:
    """Of every distribution that has these k most likely tokens and, perhaps outside of them, this chosen one."""
    total = fsum(weights)
    ps = sorted((w / total for w in weights), reverse=True)
    listed = [Alternative(b"%d" % i, log(p)) for i, p in enumerate(ps[:k])]
    index = chosen % len(ps)
    found = position(Token(b"%d" % index, log(ps[index]), None, listed))
    assert found is not None
    if len(listed) < 5:
        assert found.entropy is None
        return
    assert found.entropy is not None
    assert -1e-9 <= found.entropy <= _entropy(ps) + 1e-9
    # And the best one there is: the distribution that fills the rest with the least listed probability has it.
    known = ps[:k] if index < k else [*ps[:k], ps[index]]
    rest, q = max(0.0, 1 - fsum(known)), ps[:k][-1]
    filled = known + [q] * int(rest // q)
    assert found.entropy == pytest.approx(_entropy([*filled, max(0.0, 1 - fsum(filled))]), abs=1e-6)


def test_entropy_is_a_lower_bound_over_ten_thousand_distributions() -> None:
    """k from 1 to 20 of 2 to 200 tokens, flat to peaked; the bound itself does not need five."""
    draw = random.Random(7)
    for _ in range(10_000):
        sharpness = draw.choice((0.1, 1, 5, 20))
        weights = [exp(sharpness * draw.gauss(0, 1)) for _ in range(draw.randint(2, 200))]
        total = fsum(weights)
        ps = sorted((w / total for w in weights), reverse=True)
        known = [log(p) for p in ps[: draw.randint(1, 20)] if p > 0]
        bound = entropy_bound(known, min(known))
        assert -1e-9 <= bound <= _entropy(ps) + 1e-9


def test_entropy_of_scipy_where_nothing_is_unseen() -> None:
    """scipy.stats.entropy([0.5, 0.25, 0.125, 0.0625, 0.0625]) of scipy 1.17.1."""
    listed = [Alternative(b"%d" % i, log(p)) for i, p in enumerate((0.5, 0.25, 0.125, 0.0625, 0.0625))]
    found = position(Token(b"0", log(0.5), None, listed))
    assert found is not None
    assert found.entropy == pytest.approx(1.2996509635498974, abs=1e-12)


def test_entropy_of_forbidden_alternatives() -> None:
    """A grammar leaves two tokens; the rest are sentinels."""
    found = position(token(log(0.75), log(0.75), log(0.25), -9999.0, -9999.0, -9999.0, data=b"0"))
    assert found is not None
    assert found.entropy == pytest.approx(_entropy([0.75, 0.25]))
