"""Names that others choose, as values of a label.

Law: a name becomes a value only after an upstream took it (a 2xx), so that clients cannot fill the label with
what they make up, and while there is room; then all others are `other`. Workers share the room: their numbers are
added up, and so would their names be.
"""

import fcntl
from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson

from proxy.metrics.table import OTHER

ROOM: Final = 100


class Names:
    """The values of one label."""

    def __init__(self, room: int = ROOM, file: Path | None = None) -> None:
        """`file` is where several processes keep one list: a line for each value, never taken back."""
        self._room = room
        self._known: set[tuple[str, ...]] = set()
        self._file = file
        self._read = 0

    def admit(self, *names: str) -> tuple[str, ...]:
        """The names, or `other` for each where there is no room for them."""
        if names not in self._known and len(self._known) < self._room:
            self._add(names)
        return names if names in self._known else (OTHER,) * len(names)

    def __contains__(self, names: tuple[str, ...]) -> bool:
        if names not in self._known and self._file is not None:
            with suppress(OSError):
                if self._file.stat().st_size != self._read:
                    lines = self._file.read_bytes()
                    self._known, self._read = _values(lines), len(lines)
        return names in self._known

    def _add(self, names: tuple[str, ...]) -> None:
        if self._file is None:
            self._known.add(names)
            return
        # Rare: once for each value, and never again when the list is full. A disk that fails makes `other` of it.
        with suppress(OSError), self._file.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            lines = file.read()
            self._known = _values(lines)
            if names not in self._known and len(self._known) < self._room:
                file.truncate(lines.rfind(b"\n") + 1)  # a writer that was killed may have left half a line
                file.write(orjson.dumps(names) + b"\n")
                file.flush()
                self._known.add(names)
            self._read = file.tell()


def _values(lines: bytes) -> set[tuple[str, ...]]:
    """What whole lines say: the last one may still be in the making."""
    return {tuple(orjson.loads(line)) for line in lines.split(b"\n")[:-1]}
