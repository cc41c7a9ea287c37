"""Profiles: what each upstream refuses, and which one `auto` takes."""

import pytest

from proxy.core.problem import ENVELOPES
from proxy.core.request import Ask, judge
from proxy.formats import FORMATS
from proxy.profiles import HOSTS, PROFILES, UNKNOWN_HOST, pick, table

NAMED = {fmt.name: fmt for fmt in FORMATS}

# One row: format, request body, and whether openai, vllm and any take it.
TAKEN = [
    ("openai-chat", b'{"logprobs":true,"top_logprobs":20}', (True, True, True)),
    ("openai-chat", b'{"logprobs":true,"top_logprobs":21}', (False, False, True)),
    ("openai-chat", b'{"logprobs":true,"top_logprobs":-1}', (False, True, True)),
    ("openai-chat", b'{"logprobs":true,"top_logprobs":-2}', (False, False, True)),
    ("openai-chat", b'{"logprobs":true,"top_logprobs":"5"}', (False, False, False)),
    ("openai-chat", b'{"logprobs":true,"top_logprobs":5.0}', (False, False, False)),
    ("openai-chat", b'{"logprobs":1}', (False, True, True)),
    ("openai-chat", b'{"logprobs":"yes"}', (False, False, False)),
    ("openai-chat", b'{"top_logprobs":5}', (False, False, True)),
    ("openai-chat", b'{"top_logprobs":0}', (False, True, True)),
    ("openai-completions", b'{"logprobs":5}', (True, True, True)),
    ("openai-completions", b'{"logprobs":6}', (False, True, True)),
    ("openai-completions", b'{"logprobs":21}', (False, False, True)),
    ("openai-completions", b'{"logprobs":-1}', (False, True, True)),
    ("openai-completions", b'{"logprobs":true}', (False, True, True)),
    ("openai-completions", b'{"logprobs":[5]}', (False, False, False)),
]


@pytest.mark.parametrize(("name", "body", "taken"), TAKEN)
def test_what_each_profile_takes(name: str, body: bytes, taken: tuple[bool, bool, bool]) -> None:
    answers = (judge(body, NAMED[name], PROFILES[profile]) for profile in ("openai", "vllm", "any"))
    assert tuple(isinstance(answer, Ask) for answer in answers) == taken


@pytest.mark.parametrize(
    ("profile", "name", "body", "taken"),
    [
        ("together", "openai-chat", b'{"logprobs":20}', True),
        ("together", "openai-chat", b'{"logprobs":21}', False),
        ("fireworks", "openai-chat", b'{"logprobs":5}', True),
        ("fireworks", "openai-chat", b'{"logprobs":true,"top_logprobs":6}', False),
        ("xai", "openai-chat", b'{"logprobs":true,"top_logprobs":8}', True),
        ("xai", "openai-chat", b'{"logprobs":true,"top_logprobs":9}', False),
        ("deepseek", "openai-chat", b'{"logprobs":1}', False),
        ("deepseek", "openai-completions", b'{"logprobs":20}', True),
        ("mlx-lm", "openai-chat", b'{"logprobs":true,"top_logprobs":-1}', True),
        ("mlx-lm", "openai-chat", b'{"logprobs":true,"top_logprobs":12}', False),
        ("llamacpp", "openai-chat", b'{"logprobs":1}', True),
        ("llamacpp", "openai-chat", b'{"logprobs":true,"top_logprobs":21}', True),
        ("llamacpp", "openai-chat", b'{"logprobs":true,"top_logprobs":"5"}', False),
        ("sglang", "openai-completions", b'{"logprobs":100}', True),
        ("gemini", "gemini", b'{"generationConfig":{"responseLogprobs":true,"logprobs":21}}', False),
    ],
)
def test_what_others_take(profile: str, name: str, body: bytes, taken: bool) -> None:
    assert isinstance(judge(body, NAMED[name], PROFILES[profile]), Ask) is taken


def test_rows_name_only_what_exists() -> None:
    for name, profile in PROFILES.items():
        assert profile.name == name
        assert profile.envelope is None or profile.envelope in ENVELOPES
        for format_name, param in profile.rules:
            assert param in {".".join(rule.param) for rule in NAMED[format_name].rules}
    assert {UNKNOWN_HOST, *HOSTS.values()} <= PROFILES.keys()


@pytest.mark.parametrize(
    ("name", "upstream", "profile", "why"),
    [
        ("auto", "https://api.openai.com/v1", "openai", "auto: the host is api.openai.com"),
        ("auto", "https://API.OpenAI.com.", "openai", "auto: the host is api.openai.com."),
        ("auto", "http://127.0.0.1:8000", "openai", "nothing else is known of 127.0.0.1"),
        ("auto", "https://api.openai.com.evil.example", "openai", "known of api.openai.com.evil.example"),
        ("vllm", "https://api.openai.com", "vllm", "as set"),
        ("auto", "https://mine.openai.azure.com", "azure", "the host is mine.openai.azure.com"),
        ("auto", "https://openai.azure.com", "openai", "nothing else is known of openai.azure.com"),
        (
            "auto",
            "https://europe-west4-aiplatform.googleapis.com",
            "gemini",
            "the host is europe-west4-aiplatform.googleapis.com",
        ),
        ("auto", "https://api.x.ai/v1", "xai", "the host is api.x.ai"),
        ("any", "http://[::1]:8000", "any", "as set"),
    ],
)
def test_auto_goes_by_the_host(name: str, upstream: str, profile: str, why: str) -> None:
    picked, reason = pick(name, upstream)
    assert picked.name == profile
    assert reason.endswith(why)


def test_each_cell_of_the_table_stands_under_its_heading() -> None:
    heading, *rows = table()
    together = next(dict(zip(heading, row, strict=True)) for row in rows if row[0] == "together")
    assert together == {
        "profile": "together",
        "chat logprobs": "boolean or integer 0 to 20",
        "chat top_logprobs": "integer 0 to 20",
        "completions logprobs": "integer 0 to 20",
        "errors as": "the endpoint",
        "not asked": "null",
        "hosts": "api.together.xyz, api.together.ai",
    }
