"""Runs a client's script once, in its own environment, for all its jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.clients.cases import NODE, Client
from tests.e2e.running import ROOT, clients_python, need

Job = tuple[str, str, str]  # base URL, API, whole or stream
QUIET = {"NO_PROXY": "*", "no_proxy": "*", "LANGSMITH_TRACING": "false", "PYTHONPATH": str(ROOT)}


@dataclass(frozen=True)
class Said:
    """What the client made of one answer."""

    version: str
    answer: list[Any]
    read: list[list[Any]]


def interpreter(client: Client) -> str:
    if client.environment == "tests":
        return sys.executable
    if client.environment == "clients":
        return clients_python()
    if not (NODE / "node_modules" / "ai").is_dir():
        pytest.skip("the packages of node/package.json are not installed")
    return need("node")


def run(client: Client, jobs: Sequence[Job]) -> dict[Job, Said]:
    keys = {"PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT"}
    environment = {key: value for key, value in os.environ.items() if key in keys} | QUIET
    command = [interpreter(client), str(client.script), *(word for job in jobs for word in job)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)
    assert result.returncode == 0, result.stderr
    said = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert len(said) == len(jobs), result.stdout + result.stderr
    for job, row in zip(jobs, said, strict=True):
        assert "error" not in row, f"{job}: {row['error']}"
    return {job: Said(**row) for job, row in zip(jobs, said, strict=True)}
