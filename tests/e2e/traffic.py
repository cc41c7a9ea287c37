"""Five minutes of varied traffic through the proxy to a real model, scraped by a real Prometheus, and drawn.

    python -m tests.e2e.traffic

Streams and whole answers, requests that are refused, clients that leave; from half-time on at a higher temperature, which
the distributions are to show.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import random
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path
from typing import Any

from proxy.demo import model
from tests.e2e.plot import FOLDER, Source, write
from tests.e2e.posting import post
from tests.e2e.prometheus import prometheus
from tests.e2e.running import ROOT, llama_server, proxy_before

PROMPTS = (
    "What is the capital of France?",
    "Write one sentence about the sea.",
    "Count from one to twenty in words.",
    "Name three colours.",
    "Explain gravity to a child.",
    "Invent a name for a boat and say why.",
)
FALSE = (
    {"logprobs": True, "top_logprobs": 99},
    {"logprobs": True, "top_logprobs": "5"},
    {"logprobs": 5},
    {"top_logprobs": 3},
    {"confidence": "yes"},
)
NAMES = (model.MODEL_NAME, model.MODEL_NAME, "assistant")  # llama.cpp answers to any name


def leave_early(base_url: str, body: dict[str, Any]) -> None:
    address = urllib.parse.urlsplit(base_url)
    connection = http.client.HTTPConnection(address.netloc, timeout=60)
    content = {"Content-Type": "application/json"}
    connection.request("POST", f"{address.path}/chat/completions", json.dumps(body), content)
    connection.getresponse().read(300)
    connection.close()


def one_request(base_url: str, chance: random.Random, hot: bool) -> None:
    prompt, temperature = chance.choice(PROMPTS), 1.2 if hot else 0.3
    common = {
        "model": chance.choice(NAMES),
        "temperature": temperature,
        "max_tokens": chance.randint(8, 32),
        "seed": chance.randrange(10**6),
    }
    chat = {**common, "messages": [{"role": "user", "content": prompt}]}
    asking = {**chat, "logprobs": True, "top_logprobs": chance.randint(2, 5)}
    way = chance.choices(
        ("stream", "whole", "legacy", "plain", "confidence", "false", "broken", "early"),
        (40, 25, 10, 8, 5, 7, 1, 4),
    )[0]
    if way == "stream":
        post(f"{base_url}/chat/completions", {**asking, "stream": True})
    elif way == "whole":
        post(f"{base_url}/chat/completions", asking)
    elif way == "legacy":
        post(f"{base_url}/completions", {**common, "prompt": prompt, "logprobs": 2})
    elif way == "plain":
        post(f"{base_url}/chat/completions", chat)
    elif way == "confidence":
        post(f"{base_url}/chat/completions", {**chat, "confidence": True})
    elif way == "false":
        post(f"{base_url}/chat/completions", {**chat, **chance.choice(FALSE)})
    elif way == "broken":
        post(f"{base_url}/chat/completions", {**asking, "messages": "none"})
    else:
        leave_early(base_url, {**asking, "stream": True, "max_tokens": 60})


def traffic(base_url: str, seconds: float, clients: int = 3) -> None:
    """From half-time on hotter: the distributions are to show it."""
    start = time.monotonic()

    def client(number: int) -> None:
        chance = random.Random(number)
        while (past := time.monotonic() - start) < seconds:
            one_request(base_url, chance, hot=past > seconds / 2)
            time.sleep(chance.uniform(0, 0.4))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.traffic", description=__doc__)
    parser.add_argument("--seconds", type=float, default=280)
    parser.add_argument("--out", type=Path, default=FOLDER)
    told = parser.parse_args()
    rules = sorted((ROOT / "deploy" / "prometheus").glob("*.rules.yml"))
    path = asyncio.run(model.provide(sys.stderr))
    with (
        tempfile.TemporaryDirectory() as folder,
        llama_server(path) as upstream,
        proxy_before(upstream) as running,
        prometheus(Path(folder), running.admin, rules=rules) as prom,
    ):
        start = time.time()
        traffic(running.base_url, told.seconds)
        time.sleep(2)
        write(told.out, Source(prom, start + 30, time.time(), 5, 30))


if __name__ == "__main__":
    main()
