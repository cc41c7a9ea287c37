"""llama.cpp answers the legacy route in chat shape: the value decides what is inserted, never the route."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.e2e.checks import MODEL, check_json_tokens
from tests.e2e.running import Running, need

REQUEST = {"model": MODEL, "prompt": "The sky is", "max_tokens": 4, "temperature": 0, "logprobs": 2}


def post(proxy: Running, body: dict[str, object]) -> str:
    command = [
        need("curl"),
        "-sS",
        "-N",
        "--noproxy",
        "*",
        "--fail-with-body",
        f"{proxy.base_url}/completions",
    ]
    command += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def test_whole_answer(proxy: Running) -> None:
    answer = json.loads(post(proxy, REQUEST))
    assert check_json_tokens(answer["choices"][0]["logprobs"]["content"]) >= 4


def test_stream(proxy: Running) -> None:
    tokens: list[Any] = []
    for line in post(proxy, REQUEST | {"stream": True}).splitlines():
        if line.startswith("data: ") and line != "data: [DONE]":
            for choice in json.loads(line.removeprefix("data: "))["choices"]:
                tokens += (choice.get("logprobs") or {}).get("content") or []
    assert check_json_tokens(tokens) >= 4
