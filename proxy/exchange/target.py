"""Where a request goes: its target is checked, then joined to the one configured upstream.

Law: no client chooses the upstream. Of a target only path and query count, they reach the upstream as the bytes that
came, and whatever another server could read as a different place (a second slash in front, dot segments in any
spelling, a fragment, control bytes) is refused instead of repaired.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_to_bytes

_AUTHORITY: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*://[^/?#]*")
_CONTROL: Final = re.compile(rb"[\x00-\x20\x7f]")
_DECODED_CONTROL: Final = re.compile(rb"[\x00-\x1f\x7f]")
_SEPARATOR: Final = re.compile(rb"[/\\]")
_VERSION: Final = b"/v1"


def origin_form(target: bytes) -> bytes | None:
    """Path and query of a target, or None where it must be refused.

    Of an absolute form (`GET http://elsewhere/path`) only the path is taken: RFC 9112, 3.2.2 makes servers accept it,
    and a proxy that followed it would be open to everyone.
    """
    if not target.startswith(b"/"):
        authority = _AUTHORITY.match(target)
        if authority is None:
            return None
        target = target[authority.end() :]
        if not target.startswith(b"/"):
            target = b"/" + target
    if b"#" in target or _CONTROL.search(target):
        return None
    path = target.partition(b"?")[0]
    if path.startswith(b"//"):
        return None
    plain = unquote_to_bytes(path)
    if _DECODED_CONTROL.search(plain):
        return None
    # Some servers cut path parameters off before they look (`/..;/admin`), some take `\` for `/`.
    if any(segment.partition(b";")[0] in (b".", b"..") for segment in _SEPARATOR.split(plain)):
        return None
    return target


def join(base: bytes, target: bytes) -> bytes:
    """The upstream's own path before the client's: one slash at the joint, a doubled `/v1` once."""
    base = base.rstrip(b"/")
    path, mark, query = target.partition(b"?")
    if base.endswith(_VERSION) and (path == _VERSION or path.startswith(_VERSION + b"/")):
        path = path[len(_VERSION) :]
    return base + path + mark + query
