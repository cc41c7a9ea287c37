"""What a framer gives: runs of bytes that may leave, with the payloads in them.

Law: the frames joined are the stream.
"""

from typing import NamedTuple, Protocol


class Frame(NamedTuple):
    """A run of bytes that may leave, with the JSON payload in it if there is one."""

    raw: bytes
    payload: bytes | None = None
    lines: tuple[tuple[int, int], ...] = ((0, 0),)
    """(position in payload, position in raw) where each line of the payload begins."""
    failure: str = ""
    """Why a payload passes unread."""


class Framer(Protocol):
    """One framing."""

    @property
    def held(self) -> int:
        """Bytes taken and not given back."""
        ...

    def feed(self, data: bytes) -> list[Frame]: ...

    def finish(self) -> list[Frame]: ...
