"""What a request may ask for, and the words in which it is refused.

Law: OpenAI's own message, param and code, with a hint that names the profile behind them; what cannot be judged is
left to the upstream.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.problem import Problem
from proxy.core.request import UNJUDGED, Ask, Profile, judge
from proxy.formats import BY_NAME, FORMATS
from proxy.profiles import PROFILES

OPENAI, VLLM, ANY = PROFILES["openai"], PROFILES["vllm"], PROFILES["any"]
CHAT, COMPLETIONS, RESPONSES = "openai-chat", "openai-completions", "openai-responses"
GEMINI, OLLAMA, SGLANG = "gemini", "ollama", "sglang-generate"

NEEDS = "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled."


def _type(param: str, expected: str, got: str) -> str:
    return f"Invalid type for '{param}': expected {expected}, but got {got} instead."


def _low(param: str, low: int, got: int) -> str:
    return (
        f"Invalid '{param}': integer below minimum value. Expected a value >= {low}, but got {got} instead."
    )


def _high(param: str, high: int) -> str:
    return f"Invalid value for '{param}': must be less than or equal to {high}."


TOP_INTEGER, TOP_CODE = ("top_logprobs", "an integer"), "invalid_type"

REFUSED = [
    # Chat: the dependency.
    (CHAT, '"top_logprobs":5', NEEDS, "top_logprobs", None, "requires"),
    (CHAT, '"logprobs":false,"top_logprobs":5', NEEDS, "top_logprobs", None, "requires"),
    (CHAT, '"logprobs":null,"top_logprobs":1', NEEDS, "top_logprobs", None, "requires"),
    (CHAT, '"logprobs":false,"top_logprobs":0', NEEDS, "top_logprobs", None, "requires"),
    (CHAT, '"top_logprobs":0', NEEDS, "top_logprobs", None, "requires"),
    (CHAT, '"top_logprobs":21', NEEDS, "top_logprobs", None, "requires"),
    # Chat: the range.
    (CHAT, '"logprobs":true,"top_logprobs":-1', _low("top_logprobs", 0, -1), "top_logprobs",
     "integer_below_min_value", "range"),
    (CHAT, '"logprobs":true,"top_logprobs":21', _high("top_logprobs", 20), "top_logprobs", None, "range"),
    (CHAT, '"logprobs":true,"top_logprobs":16384', _high("top_logprobs", 20), "top_logprobs", None, "range"),
    # The last of two members counts, as for every JSON reader upstream.
    (CHAT, '"logprobs":true,"top_logprobs":5,"top_logprobs":50', _high("top_logprobs", 20), "top_logprobs",
     None, "range"),
    (CHAT, '"logprobs":true,"logprobs":false,"top_logprobs":5', NEEDS, "top_logprobs", None, "requires"),
    # Chat: types. A JSON true is no integer, 5.0 and 1e1 are written as decimals.
    (CHAT, '"logprobs":true,"top_logprobs":true', _type(*TOP_INTEGER, "a boolean"), "top_logprobs", TOP_CODE, "type"),
    (CHAT, '"logprobs":true,"top_logprobs":false', _type(*TOP_INTEGER, "a boolean"), "top_logprobs", TOP_CODE, "type"),
    (CHAT, '"logprobs":true,"top_logprobs":"5"', _type(*TOP_INTEGER, "a string"), "top_logprobs", TOP_CODE, "type"),
    (CHAT, '"logprobs":true,"top_logprobs":5.0', _type(*TOP_INTEGER, "a decimal number"), "top_logprobs", TOP_CODE,
     "type"),
    (CHAT, '"logprobs":true,"top_logprobs":1.5', _type(*TOP_INTEGER, "a decimal number"), "top_logprobs", TOP_CODE,
     "type"),
    (CHAT, '"logprobs":true,"top_logprobs":1e1', _type(*TOP_INTEGER, "a decimal number"), "top_logprobs", TOP_CODE,
     "type"),
    (CHAT, '"logprobs":true,"top_logprobs":[5]', _type(*TOP_INTEGER, "an array"), "top_logprobs", TOP_CODE, "type"),
    (CHAT, '"logprobs":true,"top_logprobs":{"a":5}', _type(*TOP_INTEGER, "an object"), "top_logprobs", TOP_CODE,
     "type"),
    (CHAT, '"logprobs":"true"', _type("logprobs", "a boolean", "a string"), "logprobs", TOP_CODE, "type"),
    (CHAT, '"logprobs":1', _type("logprobs", "a boolean", "an integer"), "logprobs", TOP_CODE, "type"),
    (CHAT, '"logprobs":0', _type("logprobs", "a boolean", "an integer"), "logprobs", TOP_CODE, "type"),
    (CHAT, '"logprobs":[true]', _type("logprobs", "a boolean", "an array"), "logprobs", TOP_CODE, "type"),
    # `logprobs` is told before `top_logprobs`.
    (CHAT, '"top_logprobs":"5","logprobs":"true"', _type("logprobs", "a boolean", "a string"), "logprobs", TOP_CODE,
     "type"),
    # Legacy completions.
    (COMPLETIONS, '"logprobs":6', _high("logprobs", 5), "logprobs", None, "range"),
    (COMPLETIONS, '"logprobs":100', _high("logprobs", 5), "logprobs", None, "range"),
    (COMPLETIONS, '"logprobs":-1', _low("logprobs", 0, -1), "logprobs", "integer_below_min_value", "range"),
    (COMPLETIONS, '"logprobs":true', _type("logprobs", "an integer", "a boolean"), "logprobs", TOP_CODE, "type"),
    (COMPLETIONS, '"logprobs":"3"', _type("logprobs", "an integer", "a string"), "logprobs", TOP_CODE, "type"),
    (COMPLETIONS, '"logprobs":3.0', _type("logprobs", "an integer", "a decimal number"), "logprobs", TOP_CODE, "type"),
    # Responses: no switch is needed.
    (RESPONSES, '"top_logprobs":21', _high("top_logprobs", 20), "top_logprobs", None, "range"),
    (RESPONSES, '"top_logprobs":-1', _low("top_logprobs", 0, -1), "top_logprobs", "integer_below_min_value", "range"),
    (RESPONSES, '"top_logprobs":"2"', _type(*TOP_INTEGER, "a string"), "top_logprobs", TOP_CODE, "type"),
    # Nested.
    (GEMINI, '"generationConfig":{"responseLogprobs":true,"logprobs":21}', _high("generationConfig.logprobs", 20),
     "generationConfig.logprobs", None, "range"),
    (GEMINI, '"generationConfig":{"logprobs":3}',
     "The 'generationConfig.logprobs' parameter is only allowed when 'generationConfig.responseLogprobs' is enabled.",
     "generationConfig.logprobs", None, "requires"),
    (GEMINI, '"generationConfig":{"responseLogprobs":"yes"}',
     _type("generationConfig.responseLogprobs", "a boolean", "a string"), "generationConfig.responseLogprobs",
     TOP_CODE, "type"),
    # Ollama and SGLang.
    (OLLAMA, '"logprobs":true,"top_logprobs":21', _high("top_logprobs", 20), "top_logprobs", None, "range"),
    (OLLAMA, '"logprobs":1', _type("logprobs", "a boolean", "an integer"), "logprobs", TOP_CODE, "type"),
    (SGLANG, '"return_logprob":"yes"', _type("return_logprob", "a boolean or an array", "a string"),
     "return_logprob", TOP_CODE, "type"),
    (SGLANG, '"return_logprob":true,"top_logprobs_num":-1', _low("top_logprobs_num", 0, -1), "top_logprobs_num",
     "integer_below_min_value", "range"),
]  # fmt: skip


def _body(members: str) -> bytes:
    return b'{"model":"m"%b}' % (b"," + members.encode() if members else b"")


@pytest.mark.parametrize(("fmt", "members", "message", "param", "code", "reason"), REFUSED)
def test_refused(fmt: str, members: str, message: str, param: str, code: str | None, reason: str):
    problem = judge(_body(members), BY_NAME[fmt], OPENAI)
    assert isinstance(problem, Problem)
    told, _, hint = problem.message.partition(" (")
    assert told == message
    assert "openai" in hint
    assert "--profile" in hint
    assert (problem.status, problem.type) == (400, "invalid_request_error")
    assert (problem.param, problem.code, problem.reason) == (param, code, reason)
    # Without judging it passes, and the answer's reader still knows what was asked.
    assert isinstance(judge(_body(members), BY_NAME[fmt], OPENAI, validation="off"), Ask)


TAKEN = [
    (CHAT, "", False, None),
    (CHAT, '"logprobs":true', True, None),
    (CHAT, '"logprobs":true,"top_logprobs":0', True, 0),
    (CHAT, '"logprobs":true,"top_logprobs":20', True, 20),
    (CHAT, '"logprobs":true,"top_logprobs":null', True, None),
    (CHAT, '"logprobs":false,"top_logprobs":null', False, None),
    (CHAT, '"logprobs":null', False, None),
    (CHAT, '"logprobs":false', False, None),
    (CHAT, '"top_logprobs":50,"logprobs":true,"top_logprobs":5', True, 5),
    (CHAT, '"metadata":{"top_logprobs":"x","logprobs":3}', False, None),
    (CHAT, '"Logprobs":"x","TOP_LOGPROBS":99', False, None),
    (CHAT, '"logprobs":true,"top_logprobs":5,"n":"wrong","max_tokens":[]', True, 5),
    (COMPLETIONS, '"logprobs":0', True, 0),
    (COMPLETIONS, '"logprobs":5', True, 5),
    (COMPLETIONS, '"logprobs":null', False, None),
    (COMPLETIONS, '"top_logprobs":"not looked at"', False, None),
    (RESPONSES, '"top_logprobs":20', False, 20),
    (RESPONSES, '"top_logprobs":0,"include":["message.output_text.logprobs"]', True, 0),
    (RESPONSES, '"include":["reasoning.encrypted_content","message.output_text.logprobs"]', True, None),
    (RESPONSES, '"include":["reasoning.encrypted_content"]', False, None),
    (RESPONSES, '"include":"message.output_text.logprobs"', False, None),
    (RESPONSES, '"logprobs":"not looked at"', False, None),
    (GEMINI, '"generationConfig":{"responseLogprobs":true,"logprobs":0}', True, 0),
    (GEMINI, '"generationConfig":{"responseLogprobs":false}', False, None),
    (GEMINI, '"generationConfig":null', False, None),
    (GEMINI, '"generationConfig":[{"responseLogprobs":"x"}]', False, None),
    (GEMINI, '"responseLogprobs":"not looked at"', False, None),
    (OLLAMA, '"top_logprobs":3', False, 3),  # it takes this in silence
    (OLLAMA, '"logprobs":true,"top_logprobs":20', True, 20),
    (SGLANG, '"return_logprob":true,"top_logprobs_num":100', True, 100),
    (SGLANG, '"return_logprob":[false,true]', True, None),
    (SGLANG, '"return_logprob":[false]', False, None),
]


@pytest.mark.parametrize(("fmt", "members", "asked", "top"), TAKEN)
def test_taken(fmt: str, members: str, asked: bool, top: int | None):
    ask = judge(_body(members), BY_NAME[fmt], OPENAI)
    assert isinstance(ask, Ask), ask
    assert ask.judged
    assert (ask.asked, ask.top, ask.model) == (asked, top, "m")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"null",
        b"true",
        b'"logprobs"',
        b"5",
        b"[]",
        b'[{"logprobs":"x"}]',
        b'\xef\xbb\xbf{"logprobs":"x"}',
        b'{"logprobs":"x"',
        b'{"logprobs":"x"} x',
        b'{"logprobs":"x","temperature":NaN}',
        b'{"logprobs":"x","temperature":Infinity}',
        b"{'logprobs':'x'}",
        b'{"logprobs":"x","prompt":"\xff\xfe"}',
        b'{"logprobs":"x","prompt":"\\ud83d"}',
        '{"logprobs":"x"}'.encode("utf-16"),
        b'{"logprobs":"x","a":' + b"[" * 3000 + b"]" * 3000 + b"}",
        b'{"logprobs":"x","a":' + b'{"a":' * 3000 + b"1" + b"}" * 3001,
        b"model=m&logprobs=x",
        b"--boundary\r\nContent-Disposition: form-data\r\n\r\n",
    ],
    ids=lambda body: repr(body[:24]),
)
def test_what_cannot_be_judged_goes_upstream(body: bytes):
    for fmt in FORMATS:
        assert judge(body, fmt, OPENAI) is UNJUDGED
        assert judge(body, fmt, ANY, validation="off") is UNJUDGED
    assert not UNJUDGED.judged
    assert not UNJUDGED.asked


@given(st.binary(max_size=200))
def test_any_bytes_are_answered(body: bytes):
    for fmt in FORMATS:
        assert isinstance(judge(body, fmt, OPENAI), Ask | Problem)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(json_values, json_values)
def test_any_values_are_answered(one: object, other: object):
    import json

    members = {
        "logprobs": one,
        "top_logprobs": other,
        "include": one,
        "generationConfig": {"logprobs": other},
    }
    body = json.dumps({**members, "return_logprob": one, "top_logprobs_num": other}).encode()
    for fmt in FORMATS:
        verdict = judge(body, fmt, OPENAI)
        assert isinstance(verdict, Ask | Problem)
        if isinstance(verdict, Problem):
            assert verdict.status == 400
            assert verdict.param
        assert isinstance(judge(body, fmt, OPENAI, validation="off"), Ask)


@pytest.mark.parametrize(
    ("fmt", "members"),
    [
        (CHAT, '"logprobs":5'),  # Together's and Fireworks' spelling
        (CHAT, '"logprobs":true,"top_logprobs":-1'),
        (CHAT, '"logprobs":true,"top_logprobs":5000'),
        (CHAT, '"top_logprobs":5'),
        (COMPLETIONS, '"logprobs":100'),
        (COMPLETIONS, '"logprobs":true'),
        (RESPONSES, '"top_logprobs":100'),
    ],
)
def test_any_judges_types_alone(fmt: str, members: str):
    assert isinstance(judge(_body(members), BY_NAME[fmt], ANY), Ask)


@pytest.mark.parametrize("value", ['"5"', "5.0", "[5]", "{}"])
def test_any_still_refuses_what_is_wrong_everywhere(value: str):
    for fmt, param in ((CHAT, "logprobs"), (CHAT, "top_logprobs"), (COMPLETIONS, "logprobs")):
        problem = judge(_body(f'"{param}":{value}'), BY_NAME[fmt], ANY)
        assert isinstance(problem, Problem)
        assert (problem.param, problem.code) == (param, "invalid_type")
        assert "profile 'any'" in problem.message


@pytest.mark.parametrize(
    ("fmt", "members", "taken"),
    [
        (CHAT, '"logprobs":true,"top_logprobs":-1', True),
        (CHAT, '"logprobs":true,"top_logprobs":-2', False),
        (CHAT, '"logprobs":true,"top_logprobs":21', False),
        (CHAT, '"logprobs":false,"top_logprobs":0', True),
        (CHAT, '"logprobs":false,"top_logprobs":1', False),
        (COMPLETIONS, '"logprobs":20', True),
        (COMPLETIONS, '"logprobs":21', False),
        (COMPLETIONS, '"logprobs":-1', True),
    ],
)
def test_vllm(fmt: str, members: str, taken: bool):
    assert isinstance(judge(_body(members), BY_NAME[fmt], VLLM), Ask if taken else Problem)


def test_what_else_is_known_of_a_request():
    body = b'{"model":"m","prompt":"\xc3\xa9\xf0\x9f\x98\x80x","echo":true,"logprobs":1,"stream":true}'
    ask = judge(body, BY_NAME[COMPLETIONS], OPENAI)
    assert ask == Ask(asked=True, stream=True, model="m", top=1, own_top=True, echo=True, prompt_chars=3)
    ask = judge(b'{"prompt":["a","b"],"echo":true,"stream":"yes","model":7}', BY_NAME[COMPLETIONS], OPENAI)
    assert ask == Ask(echo=True)
    ask = judge(b"{}", BY_NAME[GEMINI], OPENAI, {"model": "gemini-2.5-flash"})
    assert isinstance(ask, Ask)
    assert ask.model == "gemini-2.5-flash"


def test_a_refusal_repeats_nothing_of_the_body():
    body = b'{"logprobs":"canary-a","messages":["canary-b"],"api_key":"canary-c"}'
    problem = judge(body, BY_NAME[CHAT], Profile("openai"))
    assert isinstance(problem, Problem)
    assert "canary" not in repr(problem)
