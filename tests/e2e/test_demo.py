"""The command that a newcomer types first."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

from tests.e2e.running import COMMAND, Lines

LINE = re.compile(r'^  "(?:[^"\\]|\\.)+"\s+[01]\.\d{4}\s+".*" +0\.\d{4} +".*" +0\.\d{4}$')


def test_once(model_path: Path) -> None:
    result = subprocess.run(
        [COMMAND, "demo", "--once"], capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL
    )
    assert result.returncode == 0, result.stdout + result.stderr
    tokens = [line for line in result.stdout.splitlines() if LINE.match(line)]
    assert len(tokens) >= 5, result.stdout
    assert "geometric mean probability" in result.stdout


def test_stays_up_until_told_to_end(model_path: Path) -> None:
    with subprocess.Popen(
        [COMMAND, "demo"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            assert process.stdout is not None
            lines = Lines(process.stdout)
            lines.until(lambda text: "base_url=" in text and "curl" in text and "-d '" in text, seconds=90)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == 0
        finally:
            process.kill()
