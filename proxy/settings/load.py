"""Flag over variable over YAML file over default: where values come from, and all that is wrong with them.

Law: every fault is found in one go, each under the name its writer used; nothing unknown is skipped in
silence; no fault repeats a value that could be a secret.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from proxy.settings.table import PREFIX, SETTINGS, Settings

CONFIG_ENV: Final = PREFIX + "CONFIG"

DEFAULT: Final = "default"

_SERVICE_LINK: Final = re.compile(
    r"(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:ADDR|PORT|PROTO))?)",
    re.ASCII,
)
_SERVICE_URL: Final = re.compile(r"(?:tcp|udp|sctp)://", re.ASCII)
_NULL: Final = "tag:yaml.org,2002:null"
_PROXY_VARIABLES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")


class SettingsError(Exception):
    """All that is wrong with a configuration, one line each."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = tuple(lines)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The effective settings."""

    settings: Settings
    sources: Mapping[str, str]
    """For each setting: the name under which it was written, or "default"."""
    warnings: tuple[str, ...]


@dataclass(slots=True)
class _Reading:
    """What was found so far: later layers win, faults stay."""

    values: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def take(self, texts: Mapping[str, tuple[str, str]]) -> None:
        """Read one layer: {setting: (name as written, text)}."""
        for row in SETTINGS:
            if row.name not in texts:
                continue
            written, text = texts[row.name]
            try:
                self.values[row.name] = row.kind.parse(text)
                self.sources[row.name] = written
            except ValueError as error:
                value = (
                    repr(text if len(text) <= 80 else text[:80] + "...") if row.kind.repeat else "the value"
                )
                self.faults.append(f"{written}: {value} {error}; right is, for example, {row.kind.example}")


def load(flags: Mapping[str, str], environ: Mapping[str, str], config: str | None = None) -> Loaded:
    """The settings from flags ({name: text}), variables and the YAML file; raises SettingsError."""
    reading = _Reading()
    config_name = "--config" if config else CONFIG_ENV
    config = config or environ.get(CONFIG_ENV)
    if config:
        reading.take(_read_file(config, config_name, reading.faults))
    reading.take(_read_environ(environ, reading.faults))
    reading.take({row.name: (row.flag, flags[row.name]) for row in SETTINGS if row.name in flags})
    settings = Settings(**reading.values)
    sources = {row.name: reading.sources.get(row.name, DEFAULT) for row in SETTINGS}
    if settings.listen_address == settings.admin_address and settings.listen_address[1]:
        reading.faults.append(f"listen and admin are both {settings.listen}: give one of them another port")
    if reading.faults:
        raise SettingsError(reading.faults)
    return Loaded(settings, sources, tuple(_warnings(environ)))


def _read_environ(environ: Mapping[str, str], faults: list[str]) -> dict[str, tuple[str, str]]:
    known = {row.env: row for row in SETTINGS}
    texts = {}
    for name, text in environ.items():
        if (
            not name.startswith(PREFIX)
            or name == CONFIG_ENV
            or _is_service_link(name.removeprefix(PREFIX), text)
        ):
            continue
        row = known.get(name)
        if row is None:
            faults.append(f"{name}: there is no such setting{_hint(name, [*known, CONFIG_ENV])}")
        elif text or row.kind.empty:
            texts[row.name] = (name, text)
    return texts


def _is_service_link(name: str, text: str) -> bool:
    """Kubernetes sets variables for each Service in every pod: one named `logprob-proxy` has our prefix."""
    return bool(_SERVICE_LINK.fullmatch(name) or (name.endswith("PORT") and _SERVICE_URL.match(text)))


def _read_file(config: str, written: str, faults: list[str]) -> dict[str, tuple[str, str]]:
    import yaml

    try:
        # Composed, not constructed: scalars stay the text that was written, so that `off` is not False,
        # `1:30` not 90, and one reader serves all sources; nodes also know their lines and repeated keys.
        root = yaml.compose(Path(config).read_text("utf-8"), Loader=yaml.SafeLoader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        faults.append(f"{written}: {config} cannot be read: {_reason(error)}")
        return {}
    if root is None or root.tag == _NULL:
        return {}
    if not isinstance(root, yaml.MappingNode):
        faults.append(
            f"{written}: {config} holds no mapping; right is, for example, `listen: 127.0.0.1:6520`"
        )
        return {}
    known = {row.name: row for row in SETTINGS}
    texts: dict[str, tuple[str, str]] = {}
    for key, value in root.value:
        word = key.value if isinstance(key, yaml.ScalarNode) else "?"
        name = f"{word} in {config}, line {key.start_mark.line + 1}"
        row = known.get(word)
        if row is None:
            faults.append(f"{name}: there is no such setting{_hint(word, list(known))}")
        elif row.name in texts:
            faults.append(f"{name}: stands twice; keep one")
        elif not isinstance(value, yaml.ScalarNode):
            faults.append(f"{name}: is a list or mapping; right is, for example, {row.kind.example}")
        elif value.tag == _NULL and not row.kind.empty:
            faults.append(f"{name}: has no value; right is, for example, {row.kind.example}")
        else:
            texts[row.name] = (name, value.value)
    return texts


def _reason(error: Exception) -> str:
    """What went wrong with a file, in one line."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    mark = getattr(error, "problem_mark", None)
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or type(error).__name__
    return f"it is not YAML{where}: {what}"


def _hint(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def _warnings(environ: Mapping[str, str]) -> Iterator[str]:
    if environ.get("PROMETHEUS_MULTIPROC_DIR"):
        yield "PROMETHEUS_MULTIPROC_DIR is set but not used: --metrics-dir says where workers keep their metrics"
    for name in _PROXY_VARIABLES:
        for spelling in (name, name.lower()):
            if environ.get(spelling):
                yield f"{spelling} is set but not used: the upstream is called directly"
                return
