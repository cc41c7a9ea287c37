"""Limits and spellings of known upstreams: data, laid over the rules of the formats.

Law: a profile refuses only what its upstream refuses, or takes to mean something else. A new upstream that
speaks a known endpoint is one row here, and one in HOSTS if its host tells it.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from proxy.core.format import Kind, Rule
from proxy.core.request import Profile

_EITHER: Final = (Kind.BOOLEAN, Kind.INTEGER)

PROFILES: Final[Mapping[str, Profile]] = {
    profile.name: profile
    for profile in (
        # The formats' own rules are OpenAI's.
        Profile("openai"),
        Profile(
            "vllm",
            envelope="openai-int",
            zero_needs_switch=False,
            rules={
                # Its parser reads numbers as booleans and the other way round; -1 asks for the whole
                # vocabulary, 20 is its `--max-logprobs` unless the server was told otherwise.
                ("openai-chat", "logprobs"): Rule(("logprobs",), _EITHER),
                ("openai-chat", "top_logprobs"): Rule(
                    ("top_logprobs",), (Kind.INTEGER,), low=-1, high=20, needs=("logprobs",)
                ),
                ("openai-completions", "logprobs"): Rule(("logprobs",), _EITHER, low=-1, high=20),
            },
        ),
        # For upstreams nobody has written down: what is no number and no boolean is wrong everywhere.
        Profile(
            "any",
            ranges=False,
            rules={
                ("openai-chat", "logprobs"): Rule(("logprobs",), _EITHER),
                ("openai-completions", "logprobs"): Rule(("logprobs",), _EITHER),
            },
        ),
    )
}

HOSTS: Final[Mapping[str, str]] = {"api.openai.com": "openai"}
"""Profile by the upstream's host, for `auto`."""

UNKNOWN_HOST: Final = "openai"


def pick(name: str, upstream: str) -> tuple[Profile, str]:
    """The profile for a setting and an upstream URL, and why it is that one."""
    if name != "auto":
        return PROFILES[name], "as set"
    host = urlsplit(upstream).hostname or ""
    known = HOSTS.get(host.rstrip("."))
    if known is None:
        return PROFILES[
            UNKNOWN_HOST
        ], f"auto: what most servers speak, as nothing else is known of {host or 'the host'}"
    return PROFILES[known], f"auto: the host is {host}"
