"""Limits and spellings of known upstreams: data, laid over the rules of the formats.

Law: a profile refuses only what its upstream refuses, or takes to mean something else. A new upstream that
speaks a known endpoint is one row here, and one in HOSTS if its host tells it.
"""

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from proxy.core.format import TOP, Kind, Path, Rule
from proxy.core.request import Profile
from proxy.formats import BY_NAME

_EITHER: Final = (Kind.BOOLEAN, Kind.INTEGER)
_SWITCH: Final[Path] = ("logprobs",)
_CHAT: Final = ("openai-chat", "logprobs")
_CHAT_TOP: Final = ("openai-chat", "top_logprobs")
_LEGACY: Final = ("openai-completions", "logprobs")

Rules = Mapping[tuple[str, str], Rule]


def _chat_top(low: int, high: int | None) -> Rules:
    return {_CHAT_TOP: Rule(("top_logprobs",), (Kind.INTEGER,), low, high, needs=_SWITCH)}


def _number(low: int | None = None, high: int | None = None) -> Rules:
    """A switch that is also a number in chat."""
    return {_CHAT: Rule(_SWITCH, _EITHER, low, high)}


def _legacy(low: int, high: int | None, *, boolean: bool = False) -> Rules:
    return {_LEGACY: Rule(_SWITCH, _EITHER if boolean else (Kind.INTEGER,), low, high)}


def _rows(profiles: Iterable[Profile]) -> dict[str, Profile]:
    return {profile.name: profile for profile in profiles}


PROFILES: Final[Mapping[str, Profile]] = _rows(
    (
        # The formats' own rules are OpenAI's.
        Profile("openai"),
        Profile("azure"),
        # Its parser reads numbers as booleans and the other way round; -1 asks for the whole vocabulary, 20 is its
        # `--max-logprobs` unless the server was told otherwise.
        Profile(
            "vllm",
            envelope="openai-int",
            zero_needs_switch=False,
            rules={**_number(), **_chat_top(-1, 20), **_legacy(-1, 20, boolean=True)},
            formats=("vllm-generate",),
        ),
        # No upper bound in its schema.
        Profile(
            "sglang",
            envelope="flat",
            rules={**_chat_top(0, None), **_legacy(0, None)},
            formats=("sglang-generate",),
        ),
        # It takes a number for the switch; -1 and "5" mean something else there, and 0 alternatives are no logprobs; it
        # drops idle connections after 5 s.
        Profile(
            "llamacpp",
            envelope="openai-int",
            rules={**_number(), **_chat_top(0, None), **_legacy(0, None, boolean=True)},
            formats=("llamacpp-completion",),
            absent=("openai-chat",),
            least_top=1,
            keep_alive=4.0,
        ),
        Profile("ollama", formats=("ollama",), absent=("openai-chat",)),
        Profile("lmdeploy", envelope="flat", rules=_chat_top(0, None), formats=("lmdeploy-generate",)),
        Profile("tgi", envelope="tgi", rules=_chat_top(0, None), formats=("tgi",)),
        Profile("trtllm", envelope="flat", rules=_chat_top(0, None)),
        Profile("mlx-lm", envelope="text", zero_needs_switch=False, rules=_chat_top(-1, 11)),
        Profile("lmstudio"),
        Profile(
            "together",
            rules={**_number(0, 20), **_chat_top(0, 20), **_legacy(0, 20)},
            switch={_CHAT: TOP, _CHAT_TOP: None},
        ),
        Profile(
            "fireworks",
            rules={**_number(0, 5), **_chat_top(0, 5), **_legacy(0, 5)},
        ),
        Profile("deepseek", rules=_legacy(0, 20)),
        Profile("xai", rules=_chat_top(0, 8), absent=("openai-chat",)),
        Profile("mistral", envelope="flat"),
        Profile("groq"),
        Profile("openrouter", absent=("openai-chat",)),
        Profile("gemini", envelope="google", formats=("gemini",), absent=("openai-chat",), least_top=1),
        Profile(
            "cohere", envelope="message", formats=("cohere-chat", "cohere-generate"), absent=("openai-chat",)
        ),
        # For upstreams nobody has written down: what is no number and no boolean is wrong everywhere.
        Profile("any", ranges=False, rules={**_number(), **_legacy(0, None, boolean=True)}),
    )
)

HOSTS: Final[Mapping[str, str]] = {
    "api.openai.com": "openai",
    ".openai.azure.com": "azure",
    ".cognitiveservices.azure.com": "azure",
    ".services.ai.azure.com": "azure",
    "api.together.xyz": "together",
    "api.together.ai": "together",
    "api.fireworks.ai": "fireworks",
    "api.deepseek.com": "deepseek",
    "api.x.ai": "xai",
    "api.mistral.ai": "mistral",
    "api.groq.com": "groq",
    "openrouter.ai": "openrouter",
    "generativelanguage.googleapis.com": "gemini",
    "aiplatform.googleapis.com": "gemini",
    "-aiplatform.googleapis.com": "gemini",
    "api.cohere.com": "cohere",
    "api.cohere.ai": "cohere",
}
"""Profile by the upstream's host, for `auto`; one that begins with a dot or a hyphen is a host's end."""

UNKNOWN_HOST: Final = "openai"


def pick(name: str, upstream: str) -> tuple[Profile, str]:
    """The profile for a setting and an upstream URL, and why it is that one."""
    if name != "auto":
        return PROFILES[name], "as set"
    host = urlsplit(upstream).hostname or ""
    plain = host.rstrip(".")
    for known, profile in HOSTS.items():
        if plain == known or (known[0] in ".-" and plain.endswith(known)):
            return PROFILES[profile], f"auto: the host is {host}"
    why = f"auto: what most servers speak, as nothing else is known of {host or 'the host'}"
    return PROFILES[UNKNOWN_HOST], why


def table() -> list[tuple[str, ...]]:
    """The profiles as rows of text, the heading first."""
    rows: list[tuple[str, ...]] = [
        (
            "profile",
            "chat logprobs",
            "chat top_logprobs",
            "completions logprobs",
            "errors as",
            "not asked",
            "hosts",
        )
    ]
    for profile in PROFILES.values():
        hosts = ", ".join(_shown(host) for host, name in HOSTS.items() if name == profile.name)
        rules = (_rule(profile, row) for row in (_CHAT, _CHAT_TOP, _LEGACY))
        absent = "absent in chat" if profile.absent else "null"
        rows.append((profile.name, *rules, profile.envelope or "the endpoint", absent, hosts))
    return rows


def markdown() -> str:
    """The same as the README shows it."""
    heading, *rows = ("| " + " | ".join(row) + " |" for row in table())
    return "\n".join((heading, "|---" * len(table()[0]) + "|", *rows))


def _shown(host: str) -> str:
    return f"*{host}" if host[0] in ".-" else host


def _rule(profile: Profile, row: tuple[str, str]) -> str:
    name, param = row
    default = next(rule for rule in BY_NAME[name].rules if ".".join(rule.param) == param)
    rule = profile.rules.get(row, default)
    kinds = " or ".join(kind.value.split()[-1] for kind in rule.kinds)
    if not profile.ranges or (rule.low is None and rule.high is None):
        return kinds
    return f"{kinds} {rule.low} to {rule.high}" if rule.high is not None else f"{kinds} from {rule.low}"
