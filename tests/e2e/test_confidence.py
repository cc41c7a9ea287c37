"""`confidence` and observing with a real model behind the proxy."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from openai import OpenAI

from tests.e2e.checks import MODEL
from tests.e2e.posting import Answer, post
from tests.e2e.running import Running, proxy_before

GREEDY: dict[str, Any] = {"temperature": 0, "seed": 1, "cache_prompt": False}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}, "capital": {"type": "boolean"}},
    "required": ["city", "capital"],
}
VOLATILE = {"id", "created", "timings", "usage"}


def chat(text: str = "Say hello.", **more: Any) -> dict[str, Any]:
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 12,
        **GREEDY,
        **more,
    }


@pytest.fixture(scope="module")
def observing(model_server: str) -> Iterator[Running]:
    with proxy_before(model_server, "--observe", "--profile", "llamacpp") as running:
        yield running


def settled(answer: Answer) -> list[Any]:
    """What does not change from run to run: a stream's deltas joined, and each kind of chunk once."""
    assert answer.status == 200, answer.body
    texts: dict[int, str] = {}
    kinds: list[Any] = []
    for value in answer.values:
        kept = {key: item for key, item in value.items() if key not in VOLATILE}
        for choice in kept.get("choices", []):
            if "delta" in choice:
                index = choice["index"]
                texts[index] = texts.get(index, "") + (choice["delta"].pop("content", None) or "")
            elif "text" in choice and answer.content_type.startswith("text/event-stream"):
                texts[choice["index"]] = texts.get(choice["index"], "") + choice.pop("text")
        if "content" in kept and answer.content_type.startswith("text/event-stream"):
            texts[0] = texts.get(0, "") + kept.pop("content")
            kept.pop("tokens", None)
            kept.pop("tokens_predicted", None)
        if kept not in kinds:
            kinds.append(kept)
    return [texts, kinds]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("v1/chat/completions", chat()),
        ("v1/chat/completions", chat("Capital of France?", n=2)),
        ("v1/completions", {"model": MODEL, "prompt": "The sky is", "max_tokens": 8, **GREEDY}),
        ("completion", {"prompt": "The sky is", "n_predict": 8, **GREEDY}),
    ],
    ids=["chat", "chat-n", "completions", "native"],
)
def test_observing_changes_nothing(
    model_server: str, observing: Running, path: str, body: dict[str, Any], stream: bool
) -> None:
    asked = {**body, "stream": stream}
    before = scored(observing)
    through = settled(post(f"{observing.root}/{path}", asked))
    assert through == settled(post(f"{model_server}/{path}", asked))
    assert scored(observing) > before


def scored(running: Running) -> float:
    """Answer tokens counted so far."""
    with urllib.request.urlopen(f"{running.admin}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    wanted = [
        line
        for line in lines
        if line.startswith("logprob_tokens_total{") and 'part="answer"' in line and '"scored"' in line
    ]
    return sum(float(line.rsplit(" ", 1)[1]) for line in wanted)


def test_fields_of_a_structured_answer(proxy: Running) -> None:
    client = OpenAI(base_url=proxy.base_url, api_key="none", max_retries=0)
    answer = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Capital of France, as JSON."}],
        max_tokens=40,
        temperature=0,
        extra_body={
            "confidence": {"fields": True},
            "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
        },
    )
    choice = answer.choices[0]
    value = json.loads(choice.message.content or "")
    told = choice.model_extra["confidence"] if choice.model_extra else {}
    assert choice.logprobs is None
    assert set(told["fields"]) == {f"/{name}" for name in value}
    for field in told["fields"].values():
        assert field["tokens"] >= 1
        assert 0 < field["probability"] <= field["geometric_mean_probability"] <= 1
    assert told["tokens"] >= sum(
        field["tokens"] - field["shared_tokens"] for field in told["fields"].values()
    )


def test_a_fields_tokens_joined_give_its_text(proxy: Running) -> None:
    """Beside the client's own logprobs: laid out by hand, the tokens over a value are as many as are told."""
    body = chat("Capital of France, as JSON.", logprobs=True, top_logprobs=1, confidence={"fields": True})
    body |= {
        "max_tokens": 40,
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
    }
    choice = post(f"{proxy.root}/v1/chat/completions", body).values[0]["choices"][0]
    text = choice["message"]["content"].encode()
    pieces = [bytes(token["bytes"]) for token in choice["logprobs"]["content"]]
    joined = b"".join(pieces)
    start = joined.rindex(text)
    told = choice["confidence"]["fields"]
    city = json.loads(text)["city"].encode()
    at = joined.index(b'"' + city + b'"', start) + 1
    over, pos = b"", 0
    count = 0
    for piece in pieces:
        if pos < at + len(city) and pos + len(piece) > at:
            over += piece
            count += 1
        pos += len(piece)
    assert city in over
    assert told["/city"]["tokens"] == count


def test_labels_of_a_classifier(proxy: Running) -> None:
    client = OpenAI(base_url=proxy.base_url, api_key="none", max_retries=0)
    stream = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Is snow hot? Answer Yes or No."}],
        max_tokens=4,
        temperature=0,
        stream=True,
        extra_body={"confidence": {"labels": ["yes", "no"]}},
    )
    told = [
        choice.model_extra["confidence"]
        for chunk in stream
        for choice in chunk.choices
        if choice.model_extra and "confidence" in choice.model_extra
    ]
    assert len(told) == 1
    found = told[0]["labels"]
    assert set(found["labels"]) == {"yes", "no"}
    total = sum(label["probability"] for label in found["labels"].values())
    assert 0 < total <= 1 + 1e-9
    assert total + found["rest"] + found["ambiguous"] == pytest.approx(1, abs=1e-6)
