"""The official Python client: chat, completions, Responses, transcriptions."""

from __future__ import annotations

from typing import Any

import openai

from tests.e2e.clients.say import Pairs, answer_jobs, pair


def ask(base_url: str, api: str, stream: bool) -> tuple[list[Any], Pairs]:
    client = openai.OpenAI(base_url=f"{base_url}/v1", api_key="none", max_retries=0)
    more: dict[str, Any] = {"stream": True} if stream else {}
    result: Any
    if api == "chat":
        result = client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "x"}],
            max_tokens=8,
            logprobs=True,
            top_logprobs=2,
            **more,
        )
    elif api == "completions":
        result = client.completions.create(model="m", prompt="x", max_tokens=8, logprobs=2, **more)
    elif api == "responses":
        result = client.responses.create(
            model="m", input="x", include=["message.output_text.logprobs"], top_logprobs=2, **more
        )
    else:
        result = client.audio.transcriptions.create(
            model="m", file=("a.wav", b"RIFF"), include=["logprobs"], response_format="json", **more
        )
    parsed = list(result) if stream else [result]
    return [item.to_dict(mode="json") for item in parsed], [row for item in parsed for row in read(api, item)]


def read(api: str, item: Any) -> Pairs:
    if api == "completions":
        return [row for choice in item.choices if choice.logprobs for row in read_arrays(choice.logprobs)]
    if api == "chat":
        lists = [choice.logprobs and choice.logprobs.content for choice in item.choices]
    elif api == "transcriptions":
        lists = [getattr(item, "logprobs", None)]
    elif hasattr(item, "output"):
        lists = [part.logprobs for message in item.output for part in message.content]
    else:
        lists = [item.logprobs] if item.type == "response.output_text.delta" else []
    return [pair(entry) for entries in lists for entry in entries or []]


def read_arrays(logprobs: Any) -> Pairs:
    numbers = logprobs.token_logprobs
    new = getattr(logprobs, "token_probabilities", None) or [None] * len(numbers)
    return [list(row) for row in zip(numbers, new, strict=True)]


answer_jobs("openai", ask)
