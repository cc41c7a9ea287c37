"""How a value of a setting is written, read and shown.

Law: a kind reads text, whatever the source, so a flag, a variable and a line of YAML mean the same. What it
cannot read it refuses with a ValueError that continues the sentence "VALUE ...". `parse(show(value)) ==
value`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One sort of value."""

    metavar: str
    example: str
    """What right values look like; ends every fault."""
    parse: Callable[[str], T]
    show: Callable[[T], str] = str
    repeat: bool = True
    """False: a wrong value may hold a secret, so a fault does not repeat it."""
    empty: bool = False
    """True: empty text is a value. Everywhere else an empty variable is one that is not set."""


_NUMBER: Final = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([a-z]*)", re.ASCII)
_SIZES: Final = {"": 1, "b": 1} | {
    prefix + suffix: base**power
    for power, prefix in enumerate("kmg", 1)
    for suffix, base in (("b", 1000), ("ib", 1024))
}
_TIMES: Final = {"": 1.0, "s": 1.0, "ms": 0.001, "m": 60.0, "min": 60.0, "h": 3600.0}
_SHOWN_SIZES: Final = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def _scaled(text: str, units: dict[str, int] | dict[str, float], noun: str) -> float:
    match = _NUMBER.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError(f"is not {noun}")
    number, unit = match.groups()
    if unit not in units:
        raise ValueError(f"has the unknown unit {unit!r} (known: {', '.join(u for u in units if u)})")
    # Whole numbers stay whole: a float would round sizes from 8 PiB on.
    return (float(number) if "." in number else int(number)) * units[unit]


def _size(text: str) -> int:
    size = int(_scaled(text, _SIZES, "a size"))
    if size < 1:
        raise ValueError("is no room at all")
    return size


def _show_size(size: int) -> str:
    return next((f"{size // unit}{name}" for name, unit in _SHOWN_SIZES if size % unit == 0), str(size))


def _delay(text: str) -> float:
    return float(_scaled(text, _TIMES, "a time"))


def _time(text: str) -> float:
    seconds = _delay(text)
    if seconds == 0:
        raise ValueError("leaves no time at all")
    return seconds


def _show_time(seconds: float) -> str:
    return f"{seconds:g}s" if float(f"{seconds:g}") == seconds else f"{seconds!r}s"


def _auto_time(text: str) -> float | None:
    return None if text.strip().lower() == "auto" else _delay(text)


def _count(text: str) -> int:
    if not re.fullmatch(r"\d{1,18}", text.strip(), re.ASCII) or int(text) < 1:
        raise ValueError("is not a whole number from 1 up")
    return int(text)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("is not a number") from None
    if not 0.0 <= value <= 1.0:
        raise ValueError("is not between 0 and 1")
    return value


_SWITCH: Final = {
    word: on for on, words in ((True, "true yes on 1"), (False, "false no off 0")) for word in words.split()
}


def _switch(text: str) -> bool:
    try:
        return _SWITCH[text.strip().lower()]
    except KeyError:
        raise ValueError("is neither true nor false") from None


def split_address(address: str) -> tuple[str, int]:
    """`host:port`, `[::1]:port` or `:port` as host and port; the host is "" for every interface."""
    host, colon, port = address.strip().rpartition(":")
    if not colon or not re.fullmatch(r"\d{1,5}", port, re.ASCII) or int(port) > 65535:
        raise ValueError("does not end in a colon and a port from 0 to 65535")
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1], int(port)
    if ":" in host:
        raise ValueError("has colons in its host: IPv6 addresses stand in brackets")
    if re.search(r"[\s/@\[\]]", host):
        raise ValueError("is a URL or has odd characters, where host and port are wanted")
    return host, int(port)


def _address(text: str) -> str:
    split_address(text)
    return text.strip()


def _address_or_off(text: str) -> str:
    return "" if text.strip().lower() in ("", "off") else _address(text)


_ENDPOINTS: Final = ("/chat/completions", "/completions", "/responses")
"""What people paste when they are asked for the address of an API."""


def _url(text: str) -> str:
    text = text.strip()
    if re.search(r"[^\x21-\x7e]|\\", text):
        raise ValueError("holds spaces, backslashes or characters that a URL spells in ASCII (%C3%A9, xn--)")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("is not a URL: its host or port cannot be read") from None
    if parts.scheme not in ("http", "https") or "://" not in text:
        raise ValueError("does not start with http:// or https://")
    if not host or port == 0:
        raise ValueError("names no host that can be called")
    if "@" in parts.netloc:
        raise ValueError("holds a user name or password: clients send their keys in a header")
    if "?" in text or "#" in text:
        raise ValueError("has a query or fragment: clients send theirs with each request")
    path = parts.path.rstrip("/")
    for endpoint in _ENDPOINTS:
        if path.endswith(endpoint):
            base = f"{parts.scheme}://{parts.netloc}{path.removesuffix(endpoint)}"
            raise ValueError(f"is one endpoint, and clients add that themselves: write {base}")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _directory(text: str) -> str | None:
    return None if text.strip().lower() == "auto" else text.strip()


def _show_directory(path: str | None) -> str:
    return path or "auto"


def choice(*names: str) -> Kind[str]:
    """One of a few words."""

    def parse(text: str) -> str:
        word = text.strip().lower()
        if word not in names:
            raise ValueError(f"is none of {', '.join(names)}")
        return word

    return Kind("|".join(names), names[0], parse)


SIZE: Final = Kind("SIZE", "64MiB, 32MB or 1048576", _size, _show_size)
TIME: Final = Kind("TIME", "30s, 500ms or 2m", _time, _show_time)
DELAY: Final = Kind("TIME", "5s, 500ms or 0", _delay, _show_time)
AUTO_TIME: Final = Kind(
    "TIME|auto", "auto or 4s", _auto_time, lambda seconds: "auto" if seconds is None else _show_time(seconds)
)
COUNT: Final = Kind("NUMBER", "1024", _count)
FEW: Final = Kind("NUMBER", "4", _count)
SHARE: Final = Kind("0..1", "0.5", _share, "{:g}".format)
SWITCH: Final = Kind("true|false", "true", _switch, lambda on: "true" if on else "false")
ADDRESS: Final = Kind("HOST:PORT", "127.0.0.1:6520, [::1]:6520 or :6520", _address)
ADDRESS_OR_OFF: Final = Kind(
    "HOST:PORT|off",
    "127.0.0.1:6521, :6521 or off",
    _address_or_off,
    lambda address: address or "off",
    empty=True,
)
DIRECTORY_OR_AUTO: Final = Kind("DIR|auto", "auto or /run/logprob-proxy", _directory, _show_directory)
URL: Final = Kind("URL", "https://api.openai.com or http://127.0.0.1:8000/v1", _url, repeat=False)
