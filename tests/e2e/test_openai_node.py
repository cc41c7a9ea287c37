"""The official Node client: the examples compile under `tsc --strict`, and what they print is right."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.checks import check_pair
from tests.e2e.running import Running, need

FOLDER = Path(__file__).parent / "node"


@pytest.fixture(scope="module")
def compiled() -> Path:
    node = need("node")
    compiler = FOLDER / "node_modules" / "typescript" / "bin" / "tsc"
    if not compiler.is_file():
        pytest.skip(f"the packages of {FOLDER.name}/package.json are not installed")
    result = subprocess.run([node, str(compiler)], cwd=FOLDER, capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stdout
    return FOLDER / "build" / "chat.js"


@pytest.mark.parametrize("mode", ["whole", "stream"])
def test_probability_beside_every_logprob(compiled: Path, proxy: Running, mode: str) -> None:
    command = [need("node"), str(compiled), proxy.base_url, mode]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    tokens = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(tokens) >= 2
    for token in tokens:
        assert len(token["top"]) == 2
        for entry in (token, *token["top"]):
            check_pair(entry["logprob"], entry["probability"])
