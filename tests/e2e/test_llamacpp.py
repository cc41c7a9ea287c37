"""llama.cpp's own server, asked directly and through the proxy: the same answer, with every probability in it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.checks import MODEL
from tests.e2e.inserted import take_out
from tests.e2e.posting import Answer, post
from tests.e2e.running import Running

# No prompt cache: what was asked before must not move the last digits of a number.
GREEDY: dict[str, Any] = {"temperature": 0, "seed": 1, "cache_prompt": False}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"]}
EMOJI = "Repeat exactly: \U0001f469\U0001f3fd‍\U0001f680 été 東京"


def chat(text: str = "Say hello.", **more: Any) -> dict[str, Any]:
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": text}],
        "logprobs": True,
        "top_logprobs": 3,
        "max_tokens": 8,
        **more,
    }


def completions(text: str = "The sky is", **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "prompt": text, "logprobs": 3, "max_tokens": 8, **more}


def native(text: str | list[str] = "The sky is", **more: Any) -> dict[str, Any]:
    return {"prompt": text, "n_probs": 3, "n_predict": 8, **more}


CHAT, COMPLETIONS, NATIVE = "v1/chat/completions", "v1/completions", "completion"
BIASED: dict[str, Any] = {
    "logit_bias": [[token, 60] for token in (117, 118, 119, 120)]
}  # bytes that are no character alone

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (CHAT, chat()),
    "chat-schema": (
        CHAT,
        chat(
            "Capital of France, as JSON.",
            max_tokens=16,
            response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
        ),
    ),
    "chat-n": (CHAT, chat(n=2)),
    "chat-stop": (CHAT, chat("Count from 1 to 9.", max_tokens=20, stop=["4", "5"])),
    "chat-utf8": (CHAT, chat(EMOJI, max_tokens=16)),
    "chat-partial-utf8": (CHAT, chat(max_tokens=4, **BIASED)),
    "chat-usage": (CHAT, chat(stream_options={"include_usage": True})),
    "completions": (COMPLETIONS, completions()),
    "completions-schema": (COMPLETIONS, completions(json_schema=SCHEMA, max_tokens=16)),
    "completions-n": (COMPLETIONS, completions(n=2)),
    "completions-stop": (COMPLETIONS, completions("1, 2, 3,", stop=[" 6"])),
    "completions-utf8": (
        COMPLETIONS,
        completions("\U0001f469 \U0001f680 \U0001f469 \U0001f680 ", max_tokens=12),
    ),
    "native": (NATIVE, native()),
    "native-schema": (NATIVE, native("Capital of France, as JSON: ", json_schema=SCHEMA, n_predict=16)),
    "native-n": (NATIVE, native(n_cmpl=2)),
    "native-stop": (NATIVE, native("1, 2, 3,", stop=[" 6"])),
    "native-utf8": (NATIVE, native("\U0001f469 \U0001f680 \U0001f469 \U0001f680 ", n_predict=12)),
    "native-partial-utf8": (NATIVE, native(n_predict=4, **BIASED)),
    "native-prompts": (NATIVE, native(["The sky is", "Grass is"])),
    "native-alias": ("completions", native()),
}
NOTHING: dict[str, tuple[str, dict[str, Any]]] = {
    "chat-post-sampling": (CHAT, chat(post_sampling_probs=True)),
    "completions-post-sampling": (COMPLETIONS, completions(post_sampling_probs=True)),
    "native-post-sampling": (NATIVE, native(post_sampling_probs=True)),
    "chat-not-asked": (CHAT, {key: value for key, value in chat().items() if "logprobs" not in key}),
    "native-not-asked": (NATIVE, native(n_probs=0)),
}
_VARY = {"id", "id_slot", "created", "timings", "generated_text_hash"}
MODES = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def settled(values: list[Any]) -> list[Any]:
    """Without what differs between two equal requests; choices that run side by side are put in order."""

    def without(value: Any) -> Any:
        if isinstance(value, list):
            return [without(item) for item in value]
        if isinstance(value, dict):
            return {key: without(item) for key, item in value.items() if key not in _VARY}
        return value

    def index(value: Any) -> Any:
        choices = value.get("choices") if isinstance(value, dict) else None
        if choices:
            return choices[0].get("index", 0)
        return value.get("index", 0) if choices is None and isinstance(value, dict) else float("inf")

    return sorted((without(value) for value in values), key=index)


def both(model_server: str, proxy: Running, path: str, body: dict[str, Any]) -> tuple[Answer, Answer]:
    direct, through = (post(f"{root}/{path}", body | GREEDY) for root in (model_server, proxy.root))
    assert (through.status, through.content_type) == (direct.status, direct.content_type)
    assert through.status == 200, through.body
    return direct, through


@MODES
@pytest.mark.parametrize("case", CASES)
def test_same_answer_with_every_probability(
    model_server: str, proxy: Running, case: str, stream: bool
) -> None:
    path, body = CASES[case]
    direct, through = both(model_server, proxy, path, body | {"stream": stream})
    found = take_out(through.values, beside=True)
    assert not found.lacking
    assert len(found.where) >= 4
    assert settled(found.plain) == settled(direct.values)
    assert take_out(direct.values).where == []
    assert sorted(take_out(direct.values).lacking) == sorted(found.where)


@MODES
@pytest.mark.parametrize("case", NOTHING)
def test_nothing_is_inserted_where_no_logprob_is(
    model_server: str, proxy: Running, case: str, stream: bool
) -> None:
    path, body = NOTHING[case]
    direct, through = both(model_server, proxy, path, body | {"stream": stream})
    assert (b'"prob"' in through.body) == ("post-sampling" in case)
    assert b'"probability' not in through.body
    assert settled(through.values) == settled(direct.values)


@MODES
def test_partial_characters_did_come(model_server: str, stream: bool) -> None:
    """What two of the cases above are about."""
    path, body = CASES["native-partial-utf8"]
    text = post(f"{model_server}/{path}", body | GREEDY | {"stream": stream}).body.decode()
    assert "�" in text or "\\ufffd" in text
