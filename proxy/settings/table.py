"""The table of settings: flags, variables, YAML keys, help, `check` and the README follow from it.

Law: a row exists only for what the proxy does today; its name is the field's, its unit belongs to its kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar

from proxy.profiles import PROFILES
from proxy.settings import kinds
from proxy.settings.kinds import Kind

PREFIX: Final = "LOGPROB_PROXY_"

T = TypeVar("T")


def _row(kind: Kind[T], default: T, meaning: str) -> T:
    return field(default=default, metadata={"kind": kind, "help": meaning})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the proxy was told; values are checked and in base units (bytes, seconds)."""

    upstream: str = _row(
        kinds.URL, "", "The API to forward to. It may end in /v1; a /v1 that the client repeats stands once."
    )
    listen: str = _row(
        kinds.ADDRESS,
        "127.0.0.1:6520",
        "Where clients connect. `:6520` is every interface; port 0 picks one.",
    )
    admin: str = _row(
        kinds.ADDRESS_OR_OFF, "127.0.0.1:6521", "Where /metrics, /healthz and /readyz are; `off` for nowhere."
    )
    profile: str = _row(
        kinds.choice("auto", *PROFILES),
        "auto",
        "Whose limits requests are checked against; `auto` decides by the upstream's host.",
    )
    validation: str = _row(
        kinds.choice("strict", "coerce", "off"),
        "strict",
        "`strict` answers wrong logprob parameters with 400; `coerce` first turns chat's legacy `logprobs: 5` into "
        "`logprobs: true, top_logprobs: 5`; `off` forwards everything.",
    )
    observe: bool = _row(
        kinds.SWITCH,
        False,
        "Measure requests that ask for no logprobs: the upstream is asked for them, the metrics get the figures, and the "
        "client gets the answer as if nobody had asked.",
    )
    observe_rate: float = _row(kinds.SHARE, 1.0, "Share of these requests that is measured with `--observe`.")
    low_confidence_threshold: float = _row(
        kinds.SHARE,
        0.5,
        "A token of this probability or less counts as one of low confidence in the metrics.",
    )
    workers: int = _row(
        kinds.FEW,
        1,
        "Processes that serve. The limits that hold for all requests together are shared out among them; the metrics are theirs "
        "added up.",
    )
    metrics_dir: str | None = _row(
        kinds.DIRECTORY_OR_AUTO,
        None,
        "Where several workers keep their metrics, in a directory of their own that is removed at the end; `auto`: TMPDIR, or /tmp.",
    )
    model_label: str = _row(
        kinds.choice("request", "response"),
        "request",
        "Whose name the label `model` bears: the one asked for, or the one that the answer gives (empty where it gives none).",
    )
    log_level: str = _row(
        kinds.choice("debug", "info", "warning", "error"),
        "info",
        "Least level that is logged. Each request is a line of `info`, or of `warning` or `error` if it went wrong.",
    )
    honour_no_transform: bool = _row(
        kinds.SWITCH, False, "Leave answers alone that say `Cache-Control: no-transform`."
    )

    max_request_body: int = _row(kinds.SIZE, 32 << 20, "Largest request body; above it the answer is 413.")
    max_judged_body: int = _row(
        kinds.SIZE,
        4 << 20,
        "Largest request body whose parameters are checked; above it they are forwarded unchecked.",
    )
    max_answer: int = _row(
        kinds.SIZE,
        8 << 20,
        "Largest answer in one piece that gets probabilities; above it it passes unchanged.",
    )
    max_event: int = _row(
        kinds.SIZE,
        1 << 20,
        "Largest event of a stream that gets probabilities; above it it passes unchanged.",
    )
    max_head: int = _row(
        kinds.SIZE, 64 << 10, "Largest head of a request (431 above it) and of an answer (502)."
    )
    max_held: int = _row(kinds.SIZE, 256 << 20, "Bytes held for all requests together.")
    max_in_flight: int = _row(kinds.COUNT, 1024, "Requests served at one time; above it the answer is 503.")
    max_connections: int = _row(kinds.COUNT, 4096, "Connections from clients at one time.")

    connect_timeout: float = _row(kinds.TIME, 10.0, "For the connection to the upstream, TLS included.")
    request_body_timeout: float = _row(kinds.TIME, 30.0, "Between two reads of a request's body.")
    first_byte_timeout: float = _row(kinds.TIME, 600.0, "From the sent request to the upstream's first byte.")
    idle_timeout: float = _row(kinds.TIME, 600.0, "Between two reads of an answer.")
    write_timeout: float = _row(kinds.TIME, 60.0, "For a client that takes nothing.")
    drain_delay: float = _row(kinds.DELAY, 5.0, "After SIGTERM: still accept, for balancers that lag.")
    drain_timeout: float = _row(kinds.DELAY, 300.0, "After the drain delay: let answers that run finish.")
    upstream_keepalive: float | None = _row(
        kinds.AUTO_TIME,
        None,
        "How long an idle upstream connection is kept. `auto`: what the upstream advertises less 1 s, else 4 s (http) or 55 s (https).",
    )

    @property
    def listen_address(self) -> tuple[str, int]:
        """Host and port; the host is "" for every interface."""
        return kinds.split_address(self.listen)

    @property
    def admin_address(self) -> tuple[str, int] | None:
        """Host and port, or None when the admin listener is off."""
        return kinds.split_address(self.admin) if self.admin else None


@dataclass(frozen=True, slots=True)
class Setting:
    """One row, as those who list settings want it."""

    name: str
    kind: Kind[Any]
    default: Any
    help: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def usage(self) -> str:
        """The flag with what follows it: a switch takes no value, and `--no-...` turns it off."""
        return self.flag if self.kind is kinds.SWITCH else f"{self.flag} {self.kind.metavar}"

    @property
    def env(self) -> str:
        return PREFIX + self.name.upper()

    def shown(self, value: object) -> str:
        """The value as one would write it; empty for the upstream that is not set."""
        return self.kind.show(value)


SETTINGS: Final = tuple(
    Setting(row.name, row.metadata["kind"], row.default, row.metadata["help"]) for row in fields(Settings)
)


def markdown(settings: Sequence[Setting] = SETTINGS) -> str:
    """The README's table. In YAML the key is the variable's name without the prefix, in small letters."""
    lines = ["| Flag | Variable | Default | Meaning |", "|---|---|---|---|"]
    for row in settings:
        usage = row.usage.replace("|", "\\|")
        default = f"`{row.shown(row.default)}`" if row.shown(row.default) else "none"
        lines.append(f"| `{usage}` | `{row.env}` | {default} | {row.help} |")
    return "\n".join(lines) + "\n"
