"""Every endpoint that the proxy reads, one file each.

Law: adding an endpoint is one file and one row here; nothing else changes.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Final

from proxy.core.format import Format, Place, Rule
from proxy.formats import (
    cohere_chat,
    cohere_generate,
    gemini,
    llamacpp_completion,
    lmdeploy_generate,
    ollama,
    openai_chat,
    openai_completions,
    openai_realtime,
    openai_responses,
    openai_transcriptions,
    sglang_generate,
    tgi,
    vllm_generate,
)

FORMATS: Final[tuple[Format, ...]] = (
    openai_chat.FORMAT,
    openai_completions.FORMAT,
    openai_responses.FORMAT,
    openai_transcriptions.FORMAT,
    openai_realtime.FORMAT,
    llamacpp_completion.FORMAT,
    vllm_generate.FORMAT,
    sglang_generate.FORMAT,
    lmdeploy_generate.FORMAT,
    tgi.FORMAT,
    gemini.FORMAT,
    ollama.FORMAT,
    cohere_chat.FORMAT,
    cohere_generate.FORMAT,
)

BY_NAME: Final[dict[str, Format]] = {row.name: row for row in FORMATS}


def match(path: str, preferred: tuple[str, ...] = ()) -> tuple[Format, dict[str, str]] | None:
    """The format of a URL's path (without query) and the route's variables, or None.

    Routes match whole segments at the path's end, the longest first; a slash at the very end is ignored. Where several
    endpoints share a route they are read as one, those named in `preferred` first: the value decides, not the route.
    """
    for pattern, fmt in _routes(FORMATS, preferred):
        if found := pattern.search(path):
            return fmt, found.groupdict()
    return None


@lru_cache(maxsize=64)
def _routes(
    formats: tuple[Format, ...], preferred: tuple[str, ...]
) -> tuple[tuple[re.Pattern[str], Format], ...]:
    sharing: dict[str, list[Format]] = {}
    for fmt in sorted(formats, key=lambda fmt: fmt.name not in preferred):
        for route in fmt.routes:
            sharing.setdefault(route, []).append(fmt)
    rows = sorted(sharing.items(), key=lambda row: -row[0].count("/"))
    return tuple((_pattern(route), _joined(tuple(found))) for route, found in rows)


@lru_cache(maxsize=64)
def _joined(formats: tuple[Format, ...]) -> Format:
    """Several formats as one: the first one's name and manners, everybody's places. A parameter on which they differ is
    not judged."""
    if len(formats) == 1:
        return formats[0]
    rules: dict[tuple[str, ...], list[Rule]] = {}
    for fmt in formats:
        for rule in fmt.rules:
            rules.setdefault(rule.param, []).append(rule)
    return replace(
        formats[0],
        places=_merged(place for fmt in formats for place in fmt.places),
        terminators=tuple({end: None for fmt in formats for end in fmt.terminators}),
        rules=tuple(found[0] for found in rules.values() if all(rule == found[0] for rule in found)),
        asked=tuple(row for fmt in formats for row in fmt.asked),
        hidden=tuple({row: None for fmt in formats for row in fmt.hidden}),
        echoes=tuple({row: None for fmt in formats for row in fmt.echoes}),
    )


def _merged(places: Iterable[Place]) -> tuple[Place, ...]:
    """Places without slots that an earlier one at the same path has: each slot is read once."""
    seen: set[object] = set()
    kept = []
    for place in places:
        slots = tuple(slot for slot in place.slots if (place.path, place.when, slot.path) not in seen)
        if slots:
            seen.update((place.path, place.when, slot.path) for slot in slots)
            kept.append(replace(place, slots=slots))
    return tuple(kept)


def _pattern(route: str) -> re.Pattern[str]:
    if route == "/":
        return re.compile(r"\A/\Z")
    pieces = re.split(r"\{(\w+)\}", route)
    source = "".join(f"(?P<{p}>[^/:]+)" if i % 2 else re.escape(p) for i, p in enumerate(pieces))
    return re.compile(rf"(?:^|/){source}/?\Z")
