"""LangChain: logprobs are in the message's response_metadata."""

from __future__ import annotations

from typing import Any

from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.e2e.clients.say import Pairs, answer_jobs


def ask(base_url: str, api: str, stream: bool) -> tuple[list[Any], Pairs]:
    model = ChatOpenAI(
        model="m",
        base_url=f"{base_url}/v1",
        api_key=SecretStr("none"),
        logprobs=True,
        top_logprobs=2,
        max_tokens=8,
        max_retries=0,
    )
    parsed: list[Any] = list(model.stream("x")) if stream else [model.invoke("x")]
    entries = [
        entry
        for message in parsed
        for entry in (message.response_metadata.get("logprobs") or {}).get("content") or []
    ]
    # Without ids of LangChain's own making, which differ each time.
    answer = [message.model_dump(mode="json", exclude={"id"}) for message in parsed]
    return answer, [[entry["logprob"], entry.get("probability")] for entry in entries]


answer_jobs("langchain-openai", ask)
