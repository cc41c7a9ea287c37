"""Every endpoint that the proxy reads, one file each.

Law: adding an endpoint is one file and one row here; nothing else changes.
"""

import re
from functools import lru_cache
from typing import Final

from proxy.core.format import Format
from proxy.formats import (
    gemini,
    ollama,
    openai_chat,
    openai_completions,
    openai_responses,
    sglang_generate,
)

FORMATS: Final[tuple[Format, ...]] = (
    openai_chat.FORMAT,
    openai_completions.FORMAT,
    openai_responses.FORMAT,
    sglang_generate.FORMAT,
    gemini.FORMAT,
    ollama.FORMAT,
)

BY_NAME: Final[dict[str, Format]] = {row.name: row for row in FORMATS}


def match(path: str) -> tuple[Format, dict[str, str]] | None:
    """The format of a URL's path (without query) and the route's variables, or None.

    Routes match whole segments at the path's end, the longest first; a slash at the very end is ignored."""
    for pattern, fmt in _routes(FORMATS):
        if found := pattern.search(path):
            return fmt, found.groupdict()
    return None


@lru_cache(maxsize=8)
def _routes(formats: tuple[Format, ...]) -> tuple[tuple[re.Pattern[str], Format], ...]:
    rows = [(route, fmt) for fmt in formats for route in fmt.routes]
    rows.sort(key=lambda row: -row[0].count("/"))
    return tuple((_pattern(route), fmt) for route, fmt in rows)


def _pattern(route: str) -> re.Pattern[str]:
    pieces = re.split(r"\{(\w+)\}", route)
    source = "".join(f"(?P<{p}>[^/:]+)" if i % 2 else re.escape(p) for i, p in enumerate(pieces))
    return re.compile(rf"(?:^|/){source}/?\Z")
