"""W3C Trace Context: under which trace and span the caller knows a request.

Law: what is not exactly as the recommendation says (https://www.w3.org/TR/trace-context/, 3.2 and 3.3) is not there. Both
headers pass on as they came; nothing is added to them, since the proxy is no span of its own.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_PARENT: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_MEMBER: Final = re.compile(
    r"(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})"
    r"=[ -+\--<>-~]{0,255}[!-+\--<>-~]"
)
_MAX_MEMBERS: Final = 32
_MAX_STATE: Final = 512
"""Characters: as many as everybody has to pass on."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The ids in lower-case hex, as OpenTelemetry's logs have them."""

    trace_id: str
    span_id: str
    """The caller's span, which the recommendation calls parent-id."""
    flags: str
    state: str | None = None
    """`tracestate`: what tracing systems keep there for themselves."""


def read(parents: Sequence[bytes], states: Sequence[bytes]) -> Trace | None:
    """From the values of all `traceparent` and `tracestate` headers of a request; None without one valid traceparent."""
    match = _PARENT.fullmatch(parents[0].strip(b" \t")) if len(parents) == 1 else None
    if match is None:
        return None
    version, trace, span, flags, more = match.groups()
    # Version 00 has four parts; of later ones only the beginning is known. All zeros is no id.
    if version == b"ff" or (version == b"00" and more is not None):
        return None
    if not (trace.strip(b"0") and span.strip(b"0")):
        return None
    return Trace(trace.decode(), span.decode(), flags.decode(), _state(states))


def _state(headers: Sequence[bytes]) -> str | None:
    """Several headers are one list; an empty member counts for nothing, and one that is wrong makes all of it void."""
    text = b",".join(headers).decode("latin-1")
    members = [member for part in text.split(",") if (member := part.strip(" \t"))]
    keys = {member.partition("=")[0] for member in members}
    if not members or len(members) > _MAX_MEMBERS or len(keys) < len(members):
        return None
    state = ",".join(members)
    return state if len(state) <= _MAX_STATE and all(map(_MEMBER.fullmatch, members)) else None
