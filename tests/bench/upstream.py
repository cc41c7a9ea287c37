"""The paced upstream: `python -m tests.bench.upstream` prints its port and serves until it is ended.

Law: it must never be what is measured. Bodies are built before the first request, an event costs a timer, a clock
reading and one write, and streams that start together are spread over the interval.

What it sends is chosen by the request's header `X-Bench`: `stream EVENTS INTERVAL` or `whole NUMBER`.
"""

from __future__ import annotations

import asyncio
import gc
import re
import sys
from time import monotonic_ns
from typing import Final, cast

from tests.bench import bodies

EVENTS: Final = bodies.events()
OPENING: Final = bodies.opening()
ENDING: Final = bodies.ending()
WHOLE: Final = [
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
    % (len(answer.body), answer.body)
    for answer in bodies.answers()
]
_STREAM_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_WANTED: Final = re.compile(rb"\r\nx-bench: (stream|whole) ([0-9]+)(?: ([0-9.]+))?\r\n", re.IGNORECASE)
_LENGTH: Final = re.compile(rb"\r\ncontent-length: ([0-9]+)\r\n", re.IGNORECASE)
_GOLDEN: Final = 0.6180339887498949


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Upstream(asyncio.Protocol):
    """One connection, kept alive."""

    started = 0
    """Streams so far, on all connections."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._buf = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._buf += data
        head, blank, body = self._buf.partition(b"\r\n\r\n")
        head += b"\r\n"
        if not blank:
            return
        length = _LENGTH.search(head)
        if length is None or len(body) < int(length[1]):
            return
        self._buf = b""
        wanted = _WANTED.search(head)
        if wanted is None:
            self._transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        elif wanted[1] == b"whole":
            self._transport.write(WHOLE[int(wanted[2])])
        else:
            self._begin(int(wanted[2]), float(wanted[3]))

    def _begin(self, count: int, interval: float) -> None:
        self._transport.write(_STREAM_HEAD + _chunk(OPENING))
        phase = Upstream.started * _GOLDEN % 1
        Upstream.started += 1
        due = self._loop.time() + interval * (1 + phase)
        self._timer = self._loop.call_at(due, self._send, 0, count, due, interval)

    def _send(self, number: int, count: int, due: float, interval: float) -> None:
        if number == count:
            self._timer = None
            self._transport.write(_chunk(ENDING) + b"0\r\n\r\n")
            return
        event = EVENTS[number % len(EVENTS)]
        self._transport.write(_chunk(event.stamped(monotonic_ns())))
        due += interval
        self._timer = self._loop.call_at(due, self._send, number + 1, count, due, interval)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    # Who started this one ends it by closing its standard input.
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    gc.disable()
    asyncio.run(_serve())
