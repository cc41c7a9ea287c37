"""The official Python client, used as its users use it: only `base_url` differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.e2e.checks import MODEL, QUESTION, check_tokens
from tests.e2e.running import Running


@pytest.fixture
def client(proxy: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=proxy.base_url, api_key="none", max_retries=0) as client:
        yield client


def test_whole_answer(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(**QUESTION)
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert check_tokens(logprobs.content or []) >= 2


def test_stream(client: openai.OpenAI) -> None:
    tokens: list[Any] = []
    with client.chat.completions.create(**QUESTION, stream=True) as chunks:
        for chunk in chunks:
            for choice in chunk.choices:
                tokens += (choice.logprobs and choice.logprobs.content) or []
    assert check_tokens(tokens) >= 2


async def test_async_whole_answer(proxy: Running) -> None:
    async with openai.AsyncOpenAI(base_url=proxy.base_url, api_key="none", max_retries=0) as client:
        answer = await client.chat.completions.create(**QUESTION)
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert check_tokens(logprobs.content or []) >= 2


async def test_async_stream(proxy: Running) -> None:
    tokens: list[Any] = []
    async with openai.AsyncOpenAI(base_url=proxy.base_url, api_key="none", max_retries=0) as client:
        async with await client.chat.completions.create(**QUESTION, stream=True) as chunks:
            async for chunk in chunks:
                for choice in chunk.choices:
                    tokens += (choice.logprobs and choice.logprobs.content) or []
    assert check_tokens(tokens) >= 2


def test_answer_without_logprobs_is_left_alone(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=QUESTION["messages"], max_tokens=4)
    assert "probability" not in answer.to_json()


def test_models_pass(client: openai.OpenAI) -> None:
    assert MODEL in [entry.id for entry in client.models.list()]


def test_wrong_parameter_is_refused_as_openai_does(client: openai.OpenAI) -> None:
    # llama.cpp itself takes 21 without a word.
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**QUESTION | {"top_logprobs": 21})
    assert refused.value.param == "top_logprobs"
    assert refused.value.type == "invalid_request_error"
    assert "x-logprob-proxy-error" in refused.value.response.headers
