"""A Rewriter that cannot cost a byte.

Law: whatever goes wrong inside the rewriting, or when there is no room to hold more, every byte that was fed and not
given back leaves as it came, and so does all that follows. What the rewriter holds is always the last `held` bytes of
its input, so that much of the input is kept beside it, by reference.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Protocol

from proxy import logs
from proxy.core.report import Report


class Rewriting(Protocol):
    """What is used of proxy.core.rewriter.Rewriter."""

    @property
    def busy(self) -> bool: ...
    @property
    def held(self) -> int: ...
    @property
    def report(self) -> Report: ...
    @property
    def told(self) -> dict[tuple[object, ...], dict[str, object]]: ...
    def feed(self, data: bytes) -> bytes: ...
    def step(self) -> bytes: ...
    def end(self, *, clean: bool = True) -> bytes: ...


class Fallback:
    """The same face as a Rewriter's, and it never raises."""

    def __init__(self, rewriter: Rewriting) -> None:
        self._rewriter = rewriter
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._held = 0
        self._failure: str | None = None
        self.raw = False
        """The rewriting has ended; bytes pass."""
        self.seconds = 0.0
        """Time spent rewriting."""

    @property
    def busy(self) -> bool:
        return not self.raw and self._rewriter.busy

    @property
    def held(self) -> int:
        return self._held

    @property
    def told(self) -> list[dict[str, object]]:
        """The member `confidence` of each choice that has ended."""
        return [] if self.raw else list(self._rewriter.told.values())

    def report(self) -> Report:
        """What the rewriter knows. Asked for once, at the end."""
        report = self._rewriter.report
        if self._failure is not None:
            report.fail(self._failure)
        return report

    def feed(self, data: bytes) -> bytes:
        return data if self.raw else self._guarded(partial(self._rewriter.feed, data), data)

    def step(self) -> bytes:
        return b"" if self.raw else self._guarded(self._rewriter.step)

    def end(self, *, clean: bool) -> bytes:
        """The rest. If it is `busy` afterwards, steps bring what is left."""
        return b"" if self.raw else self._guarded(partial(self._rewriter.end, clean=clean))

    def give_up(self, reason: str) -> bytes:
        """No more rewriting: what is held leaves as it came."""
        if self.raw:
            return b""
        self.raw = True
        self._failure = reason
        rest = b"".join(self._tail)
        rest = rest[len(rest) - self._held :]
        self._drop()
        return rest

    def _guarded(self, work: Callable[[], bytes], fed: bytes = b"") -> bytes:
        """What `work`, a call of the rewriter's, gives; where it fails, all that is held and what was `fed` to it."""
        began = perf_counter()
        try:
            out = work()
            self._keep(fed)
        except Exception as fault:  # noqa: BLE001  # law 2: no fault of the enrichment costs a byte
            self._tail.append(fed)
            self._held += len(fed)
            logs.get().error("rewriting failed, the answer passes unchanged", exc_info=fault)
            return self.give_up("internal")
        finally:
            self.seconds += perf_counter() - began
        return out

    def _keep(self, data: bytes) -> None:
        self._held = held = self._rewriter.held
        if not held:
            if self._tail:
                self._tail.clear()
                self._tail_size = 0
            return
        if data:
            self._tail.append(data)
            self._tail_size += len(data)
        while self._tail and self._tail_size - len(self._tail[0]) >= held:
            self._tail_size -= len(self._tail.popleft())

    def _drop(self) -> None:
        self._tail.clear()
        self._tail_size = self._held = 0
