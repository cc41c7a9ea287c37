"""Ollama's client: chat and generate."""

from __future__ import annotations

from typing import Any

import ollama

from tests.e2e.clients.say import Pairs, answer_jobs, pair


def ask(base_url: str, api: str, stream: bool) -> tuple[list[Any], Pairs]:
    client = ollama.Client(host=base_url)
    more: dict[str, Any] = {"model": "m", "logprobs": True, "top_logprobs": 2, "stream": stream}
    result: Any
    if api == "chat":
        result = client.chat(messages=[{"role": "user", "content": "x"}], **more)
    else:
        result = client.generate(prompt="x", **more)
    parsed: list[Any] = list(result) if stream else [result]
    read = [pair(entry) for item in parsed for entry in item.logprobs or []]
    return [item.model_dump(mode="json") for item in parsed], read


answer_jobs("ollama", ask)
