"""Switching logprobs on: every format's switch does what its `asked` looks for, and changes nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.edits import apply
from proxy.core.format import Format
from proxy.core.request import UNJUDGED, Ask, Profile, judge, switch_on
from proxy.core.scan import ScanError
from proxy.formats import BY_NAME, FORMATS

ANY = Profile("any")
by_format = pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)


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
    out = apply(body, switch_on(body, fmt, 2))
    ask = judge(out, fmt, Profile("openai"))
    assert isinstance(ask, Ask)
    assert ask.asked
    assert ask.top == 2
    before, after = json.loads(body), json.loads(out)
    switched = {path[0] for path in fmt.switch}
    assert {k: v for k, v in after.items() if k not in switched} == {
        k: v for k, v in before.items() if k not in switched
    }
    assert switch_on(out, fmt, 2) == []


def test_what_stands_there_is_kept() -> None:
    gemini, responses = BY_NAME["gemini"], BY_NAME["openai-responses"]
    body = b'{ "generationConfig" : { "seed" : 1 } }'
    assert apply(body, switch_on(body, gemini, 0)) == (
        b'{ "generationConfig" : {"responseLogprobs":true,"logprobs":0, "seed" : 1 } }'
    )
    body = b'{"include": ["a"]}'
    assert apply(body, switch_on(body, responses, 1)) == (
        b'{"top_logprobs":1,"include": ["message.output_text.logprobs","a"]}'
    )


@pytest.mark.parametrize("body", [b"[]", b"", b'"x"', b"{", b'{"a":1'])
def test_no_object(body: bytes) -> None:
    with pytest.raises(ScanError):
        switch_on(body, FORMATS[0], 0)


@given(body=st.binary(max_size=30) | st.text().map(str.encode))
def test_judging_never_raises(body: bytes) -> None:
    for fmt in FORMATS:
        judge(body, fmt, ANY)


def test_route_variables_name_the_model() -> None:
    ask = judge(b'{"contents":[]}', BY_NAME["gemini"], ANY, {"model": "gemini-x"})
    assert isinstance(ask, Ask)
    assert ask.model == "gemini-x"
    assert UNJUDGED.judged is False
