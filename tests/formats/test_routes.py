"""Which URL paths belong to which format.

Law: whole segments at the path's end, the longest route first; a look-alike is no match.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.formats import BY_NAME, FORMATS, match

MATCHING = [
    ("/v1/chat/completions", "openai-chat"),
    ("/chat/completions", "openai-chat"),
    ("chat/completions", "openai-chat"),
    ("/v1/chat/completions/", "openai-chat"),
    ("/openai/v1/chat/completions", "openai-chat"),
    ("/api/v1/chat/completions", "openai-chat"),
    ("/inference/v1/chat/completions", "openai-chat"),
    ("/openai/deployments/my-gpt/chat/completions", "openai-chat"),
    ("/v1beta/openai/chat/completions", "openai-chat"),
    ("/v1/completions", "openai-completions"),
    ("/completions", "openai-completions"),
    ("/beta/completions", "openai-completions"),
    ("/openai/deployments/chat/completions", "openai-completions"),  # a deployment called chat
    ("/", "tgi"),
    ("/openai/deployments/d/completions", "openai-completions"),
    ("/openai/deployments/w/audio/transcriptions", "openai-transcriptions"),
    ("/v1/responses", "openai-responses"),
    ("/openai/responses", "openai-responses"),
    ("/generate", "sglang-generate"),
    ("/generate/", "sglang-generate"),
    ("/api/generate", "ollama"),
    ("/api/chat", "ollama"),
    ("/prefix/api/chat", "ollama"),
    ("/v1beta/models/gemini-2.5-flash:generateContent", "gemini"),
    ("/v1beta/models/gemini-2.5-flash:streamGenerateContent", "gemini"),
    ("/v1/projects/p/locations/l/publishers/google/models/g:generateContent", "gemini"),
]


@pytest.mark.parametrize(("path", "name"), MATCHING)
def test_match(path: str, name: str):
    found = match(path)
    assert found
    assert found[0].name == name


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/v1",
        "/v1/chat/completions-extra",
        "/xchat/completionsx",
        "/v1/chat/completions/x",
        "/v1/chat/completions.json",
        "/v1/xcompletions",
        "/v1/completionsx",
        "/v1/Chat/Completions2",
        "/v1/models",
        "/v1/embeddings",
        "/v1/responses-x",
        "/v1/xresponses",
        "/v1/responses/resp_1/cancel",
        "/api/chats",
        "/xapi/chat2",
        "/api/tags",
        "/generates",
        "/regenerate",
        "/v1beta/models/g:countTokens",
        "/v1beta/models/:generateContent",
        "/v1beta/models/a/b:generateContent",
        "/v1beta/models/g:generateContentX",
        "/v1beta/models/g:xgenerateContent",
        "/v1/chat/completions\n",
        "/v1/chat/completions/\n",
    ],
)
def test_no_match(path: str):
    assert match(path) is None


def test_segments_are_whole():
    """Not chat's, but the shorter route's: `xchat` is a prefix like any other."""
    for path in ("/xchat/completions", "/v1/notchat/completions"):
        found = match(path)
        assert found
        assert found[0].name == "openai-completions"
    found = match("/xapi/generate")
    assert found
    assert found[0].name == "sglang-generate"
    assert match("/xapi/chat") is None


def test_variables():
    for verb in ("generateContent", "streamGenerateContent"):
        found = match(f"/v1beta/models/gemini-2.5-flash:{verb}")
        assert found
        assert found[1] == {"model": "gemini-2.5-flash"}
    found = match("/v1/chat/completions")
    assert found
    assert found[1] == {}


def test_every_route_finds_its_format():
    for fmt in FORMATS:
        for route in fmt.routes:
            path = "/" + route.replace("{model}", "m").replace("{id}", "resp_1").removeprefix("/")
            found = match(path, (fmt.name,))
            assert found
            assert found[0].name == fmt.name, route
            slots = {slot.path for place in found[0].places for slot in place.slots}
            assert {slot.path for place in fmt.places for slot in place.slots} <= slots


def test_names_are_unique():
    assert len(BY_NAME) == len(FORMATS)


def test_endpoints_that_share_a_route_are_read_as_one():
    """The value decides: SGLang's tuples, LMDeploy's and TGI's objects all stand under `/generate`."""
    found = match("/generate")
    assert found
    shared = found[0]
    assert shared.name == "sglang-generate"
    assert {rule.param for rule in shared.rules} >= {("top_logprobs_num",), ("parameters", "details")}
    # SGLang takes a list there and LMDeploy does not: neither is judged.
    assert ("return_logprob",) not in {rule.param for rule in shared.rules}
    slots = [(place.path, slot.path) for place in shared.places for slot in place.slots]
    assert len(slots) == len(set(slots))


@given(st.text(alphabet="/:{}.ab chat/completions%\n", max_size=40))
def test_any_path_is_answered_in_time(path: str):
    found = match(path)
    assert (
        found is None
        or path.rstrip("/").endswith(("completions", "responses", "generate", "chat", "completion"))
        or path == "/"
    )
