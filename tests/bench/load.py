"""The client side: takes answers as fast as they come, checks each and times it.

Law: a figure without a check is worthless. Every event must have arrived with as many probabilities as it has
logprobs (or none, where no proxy stands between), and a body from each run is read as JSON, value by value.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic_ns
from typing import Final, cast

_STAMP: Final = re.compile(rb'"obfuscation":"0*([1-9][0-9]*)"')
_PROBABILITY: Final = b'"probability":'
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_REQUEST: Final = {
    "model": "gpt-4o-mini",
    "messages": [{"role": "user", "content": "Why is the sky blue?"}],
    "logprobs": True,
    "top_logprobs": 5,
}


class BenchError(Exception):
    """What came is not what must come, so there is nothing to measure."""


@dataclass
class Events:
    """What a run of streams saw."""

    latencies: list[int] = field(default_factory=list)
    """Nanoseconds from the upstream's write to the client's read, an event each."""
    probabilities: int = 0
    wrong: int = 0
    """Events with another number of probabilities than wanted."""
    ended: int = 0
    """Streams that came to their [DONE] and their last chunk."""
    seconds: float = 0.0


def request(wanted: str, port: int, *, stream: bool) -> bytes:
    """A chat request; `wanted` tells the upstream what to answer."""
    body = json.dumps({**_REQUEST, "stream": stream}).encode()
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\nAuthorization: Bearer none\r\nX-Bench: %b\r\n\r\n%b"
    ) % (port, len(body), wanted.encode(), body)


class Client(asyncio.Protocol):
    """One connection, kept alive; body bytes are handed over as they come."""

    def __init__(self) -> None:
        self._buf = b""
        self._over: asyncio.Future[None] | None = None
        self._take: Callable[[bytes, int], None] = lambda data, now: None
        self._begin()

    def _begin(self) -> None:
        self._in_head = True
        self._chunked = False
        self._left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail("the connection ended before the answer did")

    async def ask(self, data: bytes, take: Callable[[bytes, int], None]) -> None:
        """Send a request; `take` gets pieces of the body and the time they came at. Returns at the answer's end."""
        self._over = asyncio.get_running_loop().create_future()
        self._take = take
        self._begin()
        self.transport.write(data)
        await self._over

    def data_received(self, data: bytes) -> None:
        now = monotonic_ns()
        self._buf = buf = self._buf + data if self._buf else data
        at = 0
        if self._in_head:
            end = buf.find(b"\r\n\r\n")
            if end < 0:
                return
            self._head(buf[: end + 2])
            at = end + 4
        if self._chunked:
            at = self._chunks(buf, at, now)
        elif self._left:
            piece = buf[at : at + self._left]
            self._left -= len(piece)
            at += len(piece)
            self._take(piece, now)
            if not self._left:
                self._end()
        self._buf = buf[at:]

    def _head(self, head: bytes) -> None:
        self._in_head = False
        length = _LENGTH.search(head)
        self._chunked = _CHUNKED.search(head) is not None
        if not head.startswith(b"HTTP/1.1 200 ") or (length is None) is not self._chunked:
            self._fail(f"not an answer to measure: {head!r}")
            return
        self._left = int(length[1]) if length else 0

    def _chunks(self, buf: bytes, at: int, now: int) -> int:
        """Hands over what chunks are complete; where the rest begins."""
        while True:
            line = buf.find(b"\r\n", at)
            if line < 0:
                return at
            size = int(buf[at:line], 16)
            start, end = line + 2, line + 2 + size
            if len(buf) < end + 2:
                return at
            at = end + 2
            if not size:
                self._end()
                return at
            self._take(buf[start:end], now)

    def _end(self) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(None)

    def _fail(self, why: str) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_exception(BenchError(why))


class _Stream:
    """One stream's events."""

    def __init__(self, run: Events, wanted: int) -> None:
        self._run = run
        self._wanted = wanted
        self._rest = b""
        self._last = b""

    def take(self, data: bytes, now: int) -> None:
        *events, self._rest = (self._rest + data if self._rest else data).split(b"\n\n")
        run = self._run
        for event in events:
            stamp = _STAMP.search(event)
            if stamp is not None:
                run.latencies.append(now - int(stamp[1]))
                found = event.count(_PROBABILITY)
                run.probabilities += found
                run.wrong += found != self._wanted
                self._last = event
            elif event == b"data: [DONE]":
                run.ended += 1

    def check(self) -> None:
        if self._wanted:
            check(self._last.removeprefix(b"data: "), self._wanted)


def check(body: bytes, wanted: int) -> None:
    """Each logprob has its probability, and it is right."""
    seen = 0
    for token in json.loads(body)["choices"][0]["logprobs"]["content"]:
        for one in (token, *token["top_logprobs"]):
            if not math.isclose(one.get("probability", -1.0), math.exp(one["logprob"]), rel_tol=1e-12):
                raise BenchError(f"a wrong probability: {one}")
            seen += 1
    if seen != wanted:
        raise BenchError(f"{seen} probabilities instead of {wanted}")


async def _connect(port: int) -> Client:
    _, client = await asyncio.get_running_loop().create_connection(Client, "127.0.0.1", port)
    return client


async def streams(port: int, *, count: int, events: int, interval: float, wanted: int) -> Events:
    """`count` streams at once, of so many events; `wanted` probabilities an event."""
    run = Events()
    clients = await asyncio.gather(*(_connect(port) for _ in range(count)))
    takers = [_Stream(run, wanted) for _ in clients]
    data = request(f"stream {events} {interval}", port, stream=True)
    began = monotonic_ns()
    try:
        await asyncio.gather(*(client.ask(data, taker.take) for client, taker in zip(clients, takers)))
    finally:
        for client in clients:
            client.transport.close()
    run.seconds = (monotonic_ns() - began) / 1e9
    for taker in takers:
        taker.check()
    if run.wrong or run.ended != count or len(run.latencies) != count * events:
        raise BenchError(
            f"{len(run.latencies)} of {count * events} events came, {run.wrong} wrongly annotated; "
            f"{run.ended} of {count} streams came to their end"
        )
    return run


async def wholes(port: int, *, number: int, count: int, wanted: int) -> list[int]:
    """`count` whole answers, one after the other on one connection; nanoseconds of each."""
    times = []
    pieces: list[bytes] = []
    data = request(f"whole {number}", port, stream=False)
    client = await _connect(port)
    try:
        for _ in range(count):
            pieces.clear()
            began = monotonic_ns()
            await client.ask(data, lambda piece, now: pieces.append(piece))
            times.append(monotonic_ns() - began)
            found = b"".join(pieces).count(_PROBABILITY)
            if found != wanted:
                raise BenchError(f"{found} probabilities instead of {wanted}")
    finally:
        client.transport.close()
    if wanted:
        check(b"".join(pieces), wanted)
    return times
