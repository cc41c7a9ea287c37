"""The metrics of several workers: where they are kept, and how they become one page.

Law: no total ever falls. A worker keeps its numbers in files under its place (1, 2, ...), not under its process id: who
takes the place of one that died counts on from there, and files do not pile up. The directory is new and empty
before a worker imports prometheus_client, which decides at its import whether there is one.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest, values
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The library's own; it must be in a worker's environment before the worker starts."""

_PREFIX: Final = "logprob-proxy-"
_OWNER: Final = "owner"

_FIRST_SIZE: Final = 1 << 16
_MOST_BESIDE_A_KEY: Final = 32
"""Bytes: a length, padding, value and time stamp."""


class DirectoryError(Exception):
    """There is nowhere to keep the numbers; the text says where that was tried."""


@contextmanager
def directory(parent: Path | None) -> Iterator[Path]:
    """A new directory for one proxy's workers in `parent` (or the system's for temporary files), removed at the end.

    Raises DirectoryError. What a proxy left that was killed is removed at the next start.
    """
    where = parent or Path(os.environ.get("TMPDIR") or "/tmp")  # noqa: S108 - a new directory of mode 700 is made in it
    try:
        if parent is not None:
            parent.mkdir(parents=True, exist_ok=True)
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=where))
        # Held as long as this process lives, however it ends. It gets its name when it is held: who sweeps meanwhile
        # does not take it for one that was left.
        owner = (path / "new").open("wb")
        fcntl.flock(owner, fcntl.LOCK_EX)
        (path / "new").rename(path / _OWNER)
    except OSError as error:
        raise DirectoryError(f"{where} cannot be written to: {error.strerror}") from None
    _sweep(where)
    try:
        yield path
    finally:
        owner.close()
        shutil.rmtree(path, ignore_errors=True)


def _sweep(where: Path) -> None:
    """Remove the directories of proxies that are no more."""
    for path in where.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if path.lstat().st_uid != os.geteuid():
                continue
            with (path / _OWNER).open("r+b") as owner:
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)


class _Allocated(MmapedDict):
    """A file whose bytes are all there before they are mapped, and before a scrape can see it. To write where the disk has
    no room would end the process (SIGBUS); here it is an OSError, and that one series is not counted. An empty file would
    make the scrape fail."""

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        path = Path(filename)
        if not read_mode and not path.exists():
            new = path.with_suffix(".new")
            with new.open("wb") as file:
                file.truncate(_FIRST_SIZE)
                _allocate(file.fileno(), _FIRST_SIZE)
            new.rename(path)
        super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]

    def _init_value(self, key: str) -> None:
        capacity: int = self._capacity
        while self._used + len(key.encode()) + _MOST_BESIDE_A_KEY > capacity:
            capacity *= 2  # as the library is about to
        if capacity > self._capacity:
            _allocate(self._f.fileno(), capacity)
        super()._init_value(key)  # type: ignore[no-untyped-call]


def _allocate(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):  # macOS has none
        os.posix_fallocate(descriptor, 0, size)


def keep_under(place: int) -> None:
    """Called in a worker before it makes its metrics: its files bear its place instead of its process id."""
    # prometheus_client allows another identifier so long as no two processes that run have the same; a place is given
    # away only after its last holder's end has been waited for.
    values.MmapedDict = _Allocated  # type: ignore[attr-defined]
    values.ValueClass = values.MultiProcessValue(lambda: place)  # type: ignore[no-untyped-call]


class Gathered:
    """All workers' metrics, for the process that counts nothing itself."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def expose(self) -> tuple[bytes, str]:
        """The text that a scrape gets, and its Content-Type."""
        # A registry for each scrape: the collector looks at the files that are there now.
        registry = CollectorRegistry()
        MultiProcessCollector(registry, str(self._path))  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4

    def ended(self, place: int) -> None:
        """The worker in this place has ended: its gauges no longer count, its totals stay."""
        mark_process_dead(place, str(self._path))  # type: ignore[no-untyped-call]
