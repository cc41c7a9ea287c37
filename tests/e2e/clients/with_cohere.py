"""Cohere's client: v2 chat, whose logprobs come in runs of text."""

from __future__ import annotations

from typing import Any

import cohere

from tests.e2e.clients.say import Pairs, answer_jobs


def ask(base_url: str, api: str, stream: bool) -> tuple[list[Any], Pairs]:
    client = cohere.ClientV2(api_key="none", base_url=base_url)
    question: dict[str, Any] = {
        "model": "m",
        "messages": [cohere.UserChatMessageV2(content="x")],
        "logprobs": True,
    }
    parsed: list[Any] = list(client.chat_stream(**question)) if stream else [client.chat(**question)]
    return [item.model_dump(mode="json") for item in parsed], [row for item in parsed for row in read(item)]


def read(item: Any) -> Pairs:
    runs = getattr(item, "logprobs", None) or []
    rows: Pairs = []
    for run in runs if isinstance(runs, list) else [runs]:
        new = getattr(run, "probabilities", None) or [None] * len(run.logprobs)
        rows += [list(row) for row in zip(run.logprobs, new, strict=True)]
    return rows


answer_jobs("cohere", ask)
