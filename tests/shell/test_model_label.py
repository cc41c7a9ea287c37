"""The label `model` before clients who fill it with what they like: through the whole proxy, as a scraper sees it."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from proxy.core.names import LENGTH
from proxy.metrics.names import ROOM
from tests.shell.processes import Served, served
from tests.shell.wire import Upstream, answering, get, post, proxied, sized, whole

HOSTILE: tuple[Any, ...] = (
    "\ud800",
    "\udfff\ud800",
    "a\nb",
    "a\r\n# HELP b c",
    'a"b\\',
    'a",le="1"} 7\n',
    "x" * 5000,
    "\u2028\x00\x7f\x85",
    "é" * 129,
    "__name__",
    "other",
    "",
    {"name": "m"},
    ["m"],
    None,
    True,
    17,
    1e400,
)
"""As JSON spells them; what is no text is no name."""


def chat(model: Any) -> bytes:
    return post(json.dumps({"model": model, "messages": [], "logprobs": True}).encode())


@asynccontextmanager
async def two_workers() -> AsyncIterator[Served]:
    async with (
        Upstream(answering(sized(whole()))).serve() as upstream,
        served(upstream.port, "--workers", "2", "--log-level", "error") as proxy,
    ):
        yield proxy


async def send(proxy: Served, requests: list[bytes]) -> None:
    """Over eight connections."""

    async def some(mine: list[bytes]) -> None:
        async with proxy.client() as client:
            for request in mine:
                await client.send(request)
                assert (await client.answer()).status == 200

    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(some(requests[number::8]))


async def counted(proxy: Served, answers: int) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    while await proxy.total("logprob_responses_total") < answers:
        await asyncio.sleep(0.05)
    return await proxy.metrics()


async def test_ten_thousand_names_make_a_hundred_labels() -> None:
    made_up = random.Random(0)
    names = [f"model\n{made_up.getrandbits(64):x}" for _ in range(10_000)]
    async with two_workers() as proxy:
        await send(proxy, [chat(name) for name in names])
        found = await counted(proxy, 10_000)
        page = (await proxy.page("/metrics")).body
    models = {dict(labels)["model"] for _, labels in found if "model" in dict(labels)}
    assert len(models - {"other"}) == ROOM == 100
    assert "other" in models
    assert found["logprob_model_label_overflow_total", frozenset()] == 9_900
    print(f"10,000 names: {len(models)} labels, {len(found)} series, {len(page) / 1e6:.2f} MB a scrape")


@pytest.mark.parametrize("model_label", ["request", "response"])
async def test_no_name_breaks_a_scrape(model_label: str) -> None:
    """Asked for and answered with: both are what others wrote."""
    bodies = iter(
        [
            json.dumps({"id": "c", "model": name, "choices": json.loads(whole())["choices"]}).encode()
            for name in HOSTILE
        ]
    )

    async def behave(seen: Any) -> None:
        await seen.send(sized(next(bodies)))

    async with proxied(behave, model_label=model_label) as proxy:
        for name in HOSTILE:
            assert (await proxy.ask(chat(name))).status == 200
        await proxy.outcome(len(HOSTILE) - 1)
        page = await proxy.ask(get(b"/metrics"), to=proxy.server.admin_address)
    total = 0.0
    for family in text_string_to_metric_families(page.body.decode("utf-8")):
        for sample in family.samples:
            assert all(len(value) <= LENGTH for value in sample.labels.values())
            if sample.name == "logprob_responses_total":
                total += sample.value
    assert total == len(HOSTILE)
