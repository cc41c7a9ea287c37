"""A real Prometheus that scrapes what a test starts."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
import urllib.error
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.posting import OPENER
from tests.e2e.running import need

INTERVAL = 0.2
"""Seconds between two scrapes."""
TARGET_LABELS = {"endpoint": "metrics", "service": "llm", "container": "logprob-proxy", "pod": "llm-0"}
"""What the Prometheus operator sets; a metric's label of the same name would become `exported_...`."""


@dataclass(frozen=True)
class Prometheus:
    """One that runs."""

    url: str

    def api(self, path: str, **parameters: object) -> Any:
        """The `data` of an answer of its HTTP API. Raises AssertionError with what it says."""
        query = urllib.parse.urlencode(parameters)
        try:
            with OPENER.open(f"{self.url}/api/v1/{path}?{query}", timeout=30) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from None
        assert found["status"] == "success"
        return found["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant vector, or of a range vector."""
        result = self.api("query", query=expression)["result"]
        assert isinstance(result, list)
        return result

    def value(self, expression: str) -> float | None:
        """Of the one sample; None if there is none."""
        found = self.query(expression)
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else None

    def until(self, expression: str, wanted: float, seconds: float = 30) -> None:
        """Wait until the expression has this value."""
        deadline = time.monotonic() + seconds
        while (found := self.value(expression)) != wanted:
            assert time.monotonic() < deadline, f"{expression} is {found}, not {wanted}"
            time.sleep(INTERVAL)

    def scrapes(self, number: int) -> None:
        """Wait for so many more of them."""
        time.sleep(number * INTERVAL)
        self.until("up", 1)


def substituted(expression: str, rate_interval: str) -> str:
    """An expression of the dashboard as Grafana would ask it, with everything chosen."""
    expression = expression.replace("$__rate_interval", rate_interval)
    expression = re.sub(r"\$(job|model|api)\b", ".*", expression)
    assert "$" not in expression
    return expression


@contextmanager
def prometheus(
    folder: Path, admin: str, *, rules: Sequence[Path] = (), data: Path | None = None
) -> Iterator[Prometheus]:
    """Prometheus before the admin listener at this URL; `data` may hold blocks already."""
    program = need("prometheus")
    config = {
        "global": {
            "scrape_interval": f"{INTERVAL * 1000:.0f}ms",
            "scrape_timeout": f"{INTERVAL * 1000:.0f}ms",
            "evaluation_interval": "1s",
        },
        "rule_files": [str(path) for path in rules],
        "scrape_configs": [
            {
                "job_name": "logprob-proxy",
                "static_configs": [{"targets": [admin.removeprefix("http://")], "labels": TARGET_LABELS}],
            }
        ],
    }
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(config))
    port = _free_port()
    log = folder / "prometheus.log"
    command = [
        *(program, f"--config.file={file}", f"--storage.tsdb.path={data or folder / 'data'}"),
        *(f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"),
    ]
    with log.open("w") as said, subprocess.Popen(command, stdout=said, stderr=said) as process:
        try:
            found = Prometheus(f"http://127.0.0.1:{port}")
            _until_up(found, process, log)
            yield found
        finally:
            process.terminate()


def _until_up(found: Prometheus, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            if found.value("up") == 1:
                return
        except (OSError, AssertionError):
            pass
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
