"""Switching logprobs on: every format's switch does what its `asked` looks for, and changes nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.asking import switch_on
from proxy.core.edits import apply
from proxy.core.format import TOP, Format
from proxy.core.problem import Problem, render
from proxy.core.request import UNJUDGED, Ask, Profile, judge
from proxy.core.scan import ScanError
from proxy.formats import BY_NAME, FORMATS
from proxy.profiles import PROFILES

ANY = Profile("any")
OPENAI = Profile("openai")
SWITCHED = [fmt for fmt in FORMATS if fmt.switch]
by_format = pytest.mark.parametrize("fmt", SWITCHED, ids=lambda fmt: fmt.name)


@by_format
@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b" { } ",
        b'{"model":"m","stream":true}',
        b'{\n  "logprobs": null,\n  "top_logprobs": 3,\n  "include": ["x"], "generationConfig": {"seed": 1}\n}',
        b'{"generationConfig":null,"include":[],"return_logprob":false,"logprobs":false}',
    ],
)
def test_on(fmt: Format, body: bytes) -> None:
    out = apply(body, switch_on(body, fmt, {}, 2))
    ask = judge(out, fmt, OPENAI)
    assert isinstance(ask, Ask)
    assert ask.asked
    # The client's own number is kept.
    tops = [path for path, value in fmt.switch.items() if value is TOP]
    assert ask.top == (
        (3 if tops == [("top_logprobs",)] and b'"top_logprobs": 3' in body else 2) if tops else None
    )
    before, after = json.loads(body), json.loads(out)
    switched = {path[0] for path in fmt.switch}
    assert {k: v for k, v in after.items() if k not in switched} == {
        k: v for k, v in before.items() if k not in switched
    }
    assert switch_on(out, fmt, {}, 2) == []


def test_what_stands_there_is_kept() -> None:
    gemini, responses = BY_NAME["gemini"], BY_NAME["openai-responses"]
    body = b'{ "generationConfig" : { "seed" : 1 } }'
    assert apply(body, switch_on(body, gemini, {}, 0)) == (
        b'{ "generationConfig" : {"responseLogprobs":true,"logprobs":0, "seed" : 1 } }'
    )
    body = b'{"include": ["a"]}'
    assert apply(body, switch_on(body, responses, {}, 1)) == (
        b'{"top_logprobs":1,"include": ["message.output_text.logprobs","a"]}'
    )


@pytest.mark.parametrize("body", [b"[]", b"", b'"x"', b"{", b'{"a":1'])
def test_no_object(body: bytes) -> None:
    with pytest.raises(ScanError):
        switch_on(body, FORMATS[0], {}, 0)


@given(body=st.binary(max_size=30) | st.text().map(str.encode))
def test_judging_never_raises(body: bytes) -> None:
    for fmt in FORMATS:
        judge(body, fmt, ANY)


def test_route_variables_name_the_model() -> None:
    ask = judge(b'{"contents":[]}', BY_NAME["gemini"], ANY, {"model": "gemini-x"})
    assert isinstance(ask, Ask)
    assert ask.model == "gemini-x"
    azure = judge(
        b'{"model":"gpt-4o","messages":[]}', BY_NAME["openai-chat"], ANY, {"model": "my-deployment"}
    )
    assert isinstance(azure, Ask)
    assert azure.model == "my-deployment"
    assert UNJUDGED.judged is False


def test_a_profile_switches_on_in_its_own_way() -> None:
    together = PROFILES["together"]
    body = b'{"model":"m"}'
    assert (
        apply(body, switch_on(body, BY_NAME["openai-chat"], together.switch, 3))
        == b'{"logprobs":3,"model":"m"}'
    )


@pytest.mark.parametrize(
    ("body", "coerced"),
    [
        (b'{"logprobs":5}', b'{"logprobs":true,"top_logprobs":5}'),
        (b'{ "logprobs": 0 , "n": 1}', b'{ "logprobs": true, "top_logprobs": 0 , "n": 1}'),
        (b'{"logprobs":5,"top_logprobs":null}', b'{"logprobs":true,"top_logprobs":5}'),
    ],
)
def test_the_legacy_spelling_is_coerced(body: bytes, coerced: bytes) -> None:
    ask = judge(body, BY_NAME["openai-chat"], OPENAI, validation="coerce")
    assert isinstance(ask, Ask)
    assert ask.forward == coerced
    assert ask.coerced
    assert (ask.asked, ask.top) == (True, int(json.loads(coerced)["top_logprobs"]))


@pytest.mark.parametrize(
    "body",
    [b'{"logprobs":21}', b'{"logprobs":-1}', b'{"logprobs":"5"}', b'{"logprobs":5.0}', b'{"top_logprobs":1}'],
)
def test_the_rest_is_refused(body: bytes) -> None:
    assert isinstance(judge(body, BY_NAME["openai-chat"], OPENAI, validation="coerce"), Problem)


@pytest.mark.parametrize("body", [b'{"logprobs":true}', b'{"logprobs":1,"top_logprobs":2}', b"{}"])
def test_nothing_else_is_coerced(body: bytes) -> None:
    for profile in (PROFILES["any"], PROFILES["vllm"]):
        ask = judge(body, BY_NAME["openai-chat"], profile, validation="coerce")
        assert isinstance(ask, Ask)
        assert ask.forward is None
        assert not ask.coerced


def test_tgi_refuses_with_its_own_status() -> None:
    problem = judge(b'{"parameters":{"details":1}}', BY_NAME["tgi"], PROFILES["tgi"])
    assert isinstance(problem, Problem)
    assert problem.status == 422
    assert json.loads(render(problem, "tgi"))["error_type"] == "validation"
