"""Whom to measure though nobody asked, and which models refused.

Law: a refusal is met once. A model that refuses logprobs is asked without them for a while, so that observing costs one
request and not one each; what is remembered is bounded.
"""

import random
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

REMEMBERED_FOR: Final = 3600.0
"""Seconds: a deployment may come to allow logprobs."""
MAX_REMEMBERED: Final = 1024


class Observer:
    """Decides for each request that did not ask for logprobs."""

    def __init__(
        self,
        rate: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._rate = rate
        """Share of these requests that is measured, 0 to 1."""
        self._clock = clock
        self._draw = draw
        self._refused: OrderedDict[tuple[str, str], float] = OrderedDict()

    def wants(self, fmt: str, model: str | None) -> bool:
        """Whether to ask the upstream for logprobs in the client's stead."""
        if self._rate <= 0.0:
            return False
        since = self._refused.get((fmt, model or ""))
        if since is not None:
            if self._clock() - since < REMEMBERED_FOR:
                return False
            del self._refused[fmt, model or ""]
        return self._rate >= 1.0 or self._draw() < self._rate

    def refused(self, fmt: str, model: str | None) -> None:
        """This model refused."""
        self._refused[fmt, model or ""] = self._clock()
        self._refused.move_to_end((fmt, model or ""))
        if len(self._refused) > MAX_REMEMBERED:
            self._refused.popitem(last=False)
