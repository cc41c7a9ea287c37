"""An async reverse proxy that writes a ``probability`` beside every ``logprob``.

The map, from the outside in. A module imports only from those below it; the machine checks that.

========== ==============================================================================
cli        the commands: serve, check, enrich, calibrate, demo, formats
demo       a real model, so that there is something to look at without a key
server     listeners, routing, drain, workers
exchange   the life of one request and its answer; makes the Outcome
observe    whom to measure unasked; refusals remembered
upstream   open, stream, close, pool
metrics    one table of metrics; flushed once per Outcome
logs       one JSON line per Outcome
settings   one table: name, default, unit, help
profiles   limits and spellings of known upstreams, data only
headers    pure tables: which headers cross, which are added
formats    one endpoint a file, pure data: where its tokens stand
core       bytes in, bytes out: the only code that reads and edits bodies
========== ==============================================================================

``core`` and ``formats`` know no await, clock, socket, log or metric, so they can be used alone::

    from proxy.core.rewriter import Rewriter

Importing this package imports nothing else: the names below arrive when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proxy.core.format import Format as Format
    from proxy.core.rewriter import Rewriter as Rewriter
    from proxy.formats import FORMATS as FORMATS

__version__ = "0.1.0"

_EXPORTS = {
    "FORMATS": "proxy.formats",
    "Format": "proxy.core.format",
    "Rewriter": "proxy.core.rewriter",
}

__all__ = ["FORMATS", "Format", "Rewriter", "__version__"]


def __getattr__(name: str) -> object:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS})
