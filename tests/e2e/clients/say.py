"""What every script here has in common: jobs come as arguments, a JSON object a job goes out, one a line.

    with_openai.py BASE_URL API whole|stream  BASE_URL API whole|stream ...
    {"version": "3.57.0", "answer": [all that the client parsed], "read": [[logprob, probability], ...]}

`answer` holds the client's own objects as JSON, nothing left out; `read` what its users' code would read, attribute by
attribute. The scripts may run in another environment and import nothing of the
project but this.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

Pairs = list[list[Any]]


def pair(entry: Any, logprob: str = "logprob") -> list[Any]:
    """The two numbers of a client's token object; the second is None where the client has dropped it."""
    return [getattr(entry, logprob), getattr(entry, "probability", None)]


def answer_jobs(distribution: str, ask: Callable[[str, str, bool], tuple[list[Any], Pairs]]) -> None:
    """`ask(base_url, api, stream)` gives what was parsed and what was read."""
    jobs = iter(sys.argv[1:])
    for base_url, api, mode in zip(jobs, jobs, jobs, strict=True):
        said: dict[str, Any] = {"version": version(distribution)}
        try:
            said["answer"], said["read"] = ask(base_url, api, mode == "stream")
        except Exception:
            said["error"] = traceback.format_exc()
        sys.stdout.write(json.dumps(said, default=str) + "\n")
        sys.stdout.flush()
