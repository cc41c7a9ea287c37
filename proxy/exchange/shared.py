"""What all exchanges have in common, and the limits that they share.

Law: every held byte is in one account. Who finds it full holds nothing more and lets pass.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from proxy.core.report import Outcome
from proxy.core.request import Profile
from proxy.observe import Observer
from proxy.settings import Settings
from proxy.upstream import Pool


@dataclass(slots=True)
class Budget:
    """Bytes held by all exchanges together."""

    limit: int
    held: int = 0

    def change(self, by: int) -> None:
        self.held += by

    @property
    def spent(self) -> bool:
        return self.held > self.limit


class Running(Protocol):
    """What an end by force needs of an exchange."""

    def stop(self) -> None: ...


class Recorder(Protocol):
    """Who takes an Outcome."""

    def __call__(self, outcome: Outcome) -> None: ...


@dataclass(slots=True)
class Shared:
    """The surroundings of an exchange."""

    settings: Settings
    profile: Profile
    pool: Pool
    record: Recorder
    budget: Budget
    observer: Observer
    draining: bool = False
    running: set[Running] = field(default_factory=set)
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    """No exchange is running."""

    def enter(self, exchange: Running) -> bool:
        """Let an exchange in, unless there are as many as there may be."""
        if len(self.running) >= self.settings.max_in_flight:
            return False
        self.running.add(exchange)
        self.idle.clear()
        return True

    def leave(self, exchange: Running) -> None:
        self.running.discard(exchange)
        if not self.running:
            self.idle.set()
