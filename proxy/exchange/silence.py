"""A watch over a peer that may fall silent.

Law: one timer an exchange, moved only when it fires; the data path notes a time and sets none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Silence:
    """Calls `expired` when nothing was noted for too long; time that is `excused` does not count."""

    def __init__(self, expired: Callable[[], None], excused: Callable[[], bool]) -> None:
        self._expired = expired
        self._excused = excused
        self._loop = asyncio.get_running_loop()
        self._noted = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def note(self) -> None:
        """Something moved."""
        self._noted = self._loop.time()

    def watch(self, limit: float) -> None:
        """From now on this is too long."""
        self.stop()
        self.note()
        self._timer = self._loop.call_later(limit, self._look, limit)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, limit: float) -> None:
        if self._excused():
            self.note()
        left = self._noted + limit - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look, limit)
        else:
            self._timer = None
            self._expired()
