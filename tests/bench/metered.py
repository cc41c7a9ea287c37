"""The proxy as `serve` runs it, with a stop watch around its metric calls.

`python -m tests.bench.metered PORT [DIRECTORY]`: before the upstream at that port; with a directory it counts in files, as
one of several workers does. To each line on standard input it answers with two figures, in seconds of CPU so far: in metric
calls, and of the whole process.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

from proxy.metrics import Metrics, workers
from proxy.server import started
from proxy.settings import Settings


class Watched(Metrics):
    """Metrics that know what they cost."""

    spent = 0.0

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in ("record", "inflight_inc", "inflight_dec", "held", "loop_lag"):
            return found

        def timed(*arguments: Any) -> None:
            began = time.thread_time()
            found(*arguments)
            Watched.spent += time.thread_time() - began

        return timed


async def main(port: int, together: Path | None) -> None:
    settings = Settings(upstream=f"http://127.0.0.1:{port}", listen="127.0.0.1:0", admin="", log_level="info")
    server = await started(settings, Watched(settings, together=together))
    print(f"listening on http://127.0.0.1:{server.address[1]}", flush=True)
    asyncio.get_running_loop().add_reader(sys.stdin, tell)
    await server.run()


def tell() -> None:
    sys.stdin.readline()
    print(f"spent {Watched.spent:.6f} {time.process_time():.6f}", flush=True)


if __name__ == "__main__":
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    if folder is not None:
        assert os.environ[workers.VARIABLE] == str(folder), (
            "prometheus_client has looked at its variable already"
        )
        workers.keep_under(1)
    from proxy import logs

    logs.configure("info")
    asyncio.run(main(int(sys.argv[1]), folder))
