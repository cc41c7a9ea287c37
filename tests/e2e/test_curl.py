"""curl: the bytes as they are on the wire."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.checks import QUESTION, check_json_tokens
from tests.e2e.running import Running, need


def curl(*arguments: str) -> str:
    command = [need("curl"), "-sS", "-N", "--noproxy", "*", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def ask(proxy: Running, body: dict[str, object], *arguments: str) -> str:
    url = f"{proxy.base_url}/chat/completions"
    return curl(url, "-H", "Content-Type: application/json", "-d", json.dumps(body), *arguments)


def test_whole_answer(proxy: Running, tmp_path: Path) -> None:
    head = tmp_path / "head"
    body = ask(proxy, QUESTION, "-D", str(head))
    assert check_json_tokens(json.loads(body)["choices"][0]["logprobs"]["content"]) >= 2
    lengths = [line for line in head.read_text().splitlines() if line.lower().startswith("content-length:")]
    assert [int(line.split(":")[1]) for line in lengths] == [len(body.encode())]


def test_stream_ends_as_the_upstream_ended_it(proxy: Running) -> None:
    body = ask(proxy, QUESTION | {"stream": True})
    events = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    tokens: list[Any] = []
    for event in events[:-1]:
        for choice in json.loads(event)["choices"]:
            tokens += (choice.get("logprobs") or {}).get("content") or []
    assert check_json_tokens(tokens) >= 2


def test_metrics_tell_what_passed(proxy: Running) -> None:
    ask(proxy, QUESTION)
    metrics = curl(f"{proxy.admin}/metrics")
    assert 'outcome="scored"' in metrics
    assert "logprob_token_probability_bucket" in metrics


def test_health(proxy: Running) -> None:
    for path in ("healthz", "readyz"):
        assert curl(f"{proxy.admin}/{path}", "-o", "/dev/null", "-w", "%{http_code}") == "200"
