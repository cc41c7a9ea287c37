"""One POST with the standard library, and the JSON values of its answer, whole or streamed."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    status: int
    content_type: str
    body: bytes

    @property
    def values(self) -> list[Any]:
        """The whole body, or what each event of a stream holds."""
        if not self.content_type.startswith("text/event-stream"):
            return [json.loads(self.body)]
        lines = self.body.decode().splitlines()
        data = [line.removeprefix("data:").strip() for line in lines if line.startswith("data:")]
        return [json.loads(text) for text in data if text != "[DONE]"]


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never by way of a machine's own proxy


def post(url: str, body: dict[str, Any], timeout: float = 60) -> Answer:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with OPENER.open(request, timeout=timeout) as answer:
            return Answer(answer.status, answer.headers.get("Content-Type", ""), answer.read())
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.headers.get("Content-Type", ""), error.read())


def page(url: str) -> bytes:
    with OPENER.open(url, timeout=30) as answer:
        found: bytes = answer.read()
        return found
