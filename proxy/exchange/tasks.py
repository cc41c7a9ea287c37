"""The one place where tasks begin.

Law: a running task is referenced (the event loop holds only weak references: python/cpython#91887), and what it
raises is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from proxy import logs

T = TypeVar("T")

_running: Final[set[asyncio.Task[Any]]] = set()


def spawn(work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
    task = asyncio.get_running_loop().create_task(work, name=name)
    _running.add(task)
    task.add_done_callback(_ended)
    return task


def _ended(task: asyncio.Task[Any]) -> None:
    _running.discard(task)
    if not task.cancelled() and (fault := task.exception()) is not None:
        logs.get().error("task failed", task=task.get_name(), exc_info=fault)
