"""Google's client: generate_content."""

from __future__ import annotations

from typing import Any

from google import genai
from google.genai import types

from tests.e2e.clients.say import Pairs, answer_jobs, pair


def ask(base_url: str, api: str, stream: bool) -> tuple[list[Any], Pairs]:
    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=base_url))
    question: dict[str, Any] = {
        "model": "m",
        "contents": "x",
        "config": types.GenerateContentConfig(response_logprobs=True, logprobs=2),
    }
    parsed: list[Any]
    if stream:
        parsed = list(client.models.generate_content_stream(**question))
    else:
        parsed = [client.models.generate_content(**question)]
    results = [candidate.logprobs_result for item in parsed for candidate in item.candidates or []]
    entries = [entry for result in results if result for entry in result.chosen_candidates or []]
    # Without what was the HTTP answer's: its date and length.
    answer = [item.model_dump(mode="json", exclude={"sdk_http_response"}) for item in parsed]
    return answer, [pair(entry, "log_probability") for entry in entries]


answer_jobs("google-genai", ask)
