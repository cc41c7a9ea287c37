"""llama.cpp's own server: `python -m proxy.demo.llama PATH [PORT]` prints its URL and serves.

A process of its own, because the library starts threads and writes to the terminal. It ends when its standard input
does: the other end of that pipe is its parent's, so it cannot outlive the parent, however that went.
"""

from __future__ import annotations

import os
import sys

from proxy.demo.model import MODEL_NAME

_MOST_THREADS = 8  # a model this small has no use for more


def main(path: str, port: int = 0) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {MODEL_NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = port  # 0: a free one
    params.n_ctx = 4096
    params.n_parallel = 2
    params.cpuparams.n_threads = min(os.cpu_count() or 1, _MOST_THREADS)
    params.verbosity = 0  # errors only
    params.ui = False
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    os._exit(0)  # at once, in the middle of an answer too


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]))
