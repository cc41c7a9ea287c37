"""promtool, Prometheus's own judge of metrics, rules and configurations."""

from __future__ import annotations

import shutil
import subprocess

import pytest


def promtool(*arguments: object, page: bytes | None = None) -> str:
    """What it says of them, or of what is on a page; skips where it is missing. Raises AssertionError if it objects."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed (Debian's package prometheus has it)")
    command = [program, *map(str, arguments)]
    result = subprocess.run(command, input=page, capture_output=True, timeout=100)
    said = (result.stdout + result.stderr).decode()
    assert result.returncode == 0, said
    return said
