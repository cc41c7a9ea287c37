"""What one proxy and several have in common at their end: signals, and waits that something may cut short."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from proxy.exchange import tasks

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def on_signals(signalled: Callable[[], None]) -> Iterator[None]:
    """Each SIGTERM and SIGINT is a call, in the loop that runs."""
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, signalled)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


async def until(seconds: float, *events: asyncio.Event) -> None:
    """Wait for the first of the events, or the time."""
    waiting = [tasks.spawn(event.wait(), "drain") for event in events]
    await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for one in waiting:
        one.cancel()
