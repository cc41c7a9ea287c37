"""LlamaIndex: its own `logprobs` have fixed members; `raw` is the answer of the `openai` client below it."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.llms.openai_like import OpenAILike

from tests.e2e.clients.say import Pairs, answer_jobs, pair


def ask(base_url: str, api: str, stream: bool) -> tuple[list[Any], Pairs]:
    model = OpenAILike(
        model="m",
        api_base=f"{base_url}/v1",
        api_key="none",
        is_chat_model=True,
        max_tokens=8,
        max_retries=0,
        additional_kwargs={"logprobs": True, "top_logprobs": 2},
    )
    question = [ChatMessage(role="user", content="x")]
    parsed: list[Any] = list(model.stream_chat(question)) if stream else [model.chat(question)]
    entries = [
        entry
        for response in parsed
        for choice in response.raw.choices
        for entry in (choice.logprobs and choice.logprobs.content) or []
    ]
    return [response.model_dump(mode="json") for response in parsed], [pair(entry) for entry in entries]


answer_jobs("llama-index-llms-openai-like", ask)
