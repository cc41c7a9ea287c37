"""Raw sockets on both sides of a proxy: an upstream that does as it is told, and a client that sees every byte."""

from __future__ import annotations

import asyncio
import io
import re
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from proxy import logs
from proxy.core.report import Outcome
from proxy.core.request import Profile
from proxy.metrics import Metrics
from proxy.server import Server
from proxy.settings import Settings

WAIT = 10.0


@dataclass
class Seen:
    """One request as the upstream saw it."""

    start: bytes
    headers: list[tuple[bytes, bytes]]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    body: bytes = b""
    raw: bytes = b""

    def get(self, name: bytes) -> bytes | None:
        return next((v for k, v in self.headers if k.lower() == name.lower()), None)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def gone(self) -> float:
        """Wait until the peer has closed; when that was, by the loop's clock."""
        with suppress(ConnectionError):
            while await asyncio.wait_for(self.reader.read(65536), WAIT):
                pass
        return time.monotonic()

    def reset(self) -> None:
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Behaviour = Callable[[Seen], Awaitable[None]]


def parse_head(raw: bytes) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    start, *lines = raw[:-4].split(b"\r\n")
    pairs = [line.partition(b": ")[::2] for line in lines]
    return start, [(name, value) for name, value in pairs]


async def read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")
    return body


@dataclass
class Upstream:
    """A server on a raw socket. `behave` gets each request, body read unless `eager` is off."""

    behave: Behaviour
    eager: bool = True
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    @asynccontextmanager
    async def serve(self):
        tasks: set[asyncio.Task] = set()

        async def connected(reader, writer):
            self.connections += 1
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                while True:
                    raw = await reader.readuntil(b"\r\n\r\n")
                    start, headers = parse_head(raw)
                    seen = Seen(start, headers, reader, writer, raw=raw)
                    self.seen.append(seen)
                    if self.eager:
                        await read_body(seen)
                    await self.behave(seen)
                    if writer.is_closing():
                        return
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=2**26, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def read_body(seen: Seen) -> None:
    if length := seen.get(b"content-length"):
        seen.body = await seen.reader.readexactly(int(length))
    elif seen.get(b"transfer-encoding"):
        seen.body = await read_chunks(seen.reader)


class Counters(Metrics):
    """The metrics, and the Outcomes that they were made of."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.outcomes: list[Outcome] = []
        self.in_flight = 0

    def record(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        super().record(outcome)

    def inflight_inc(self) -> None:
        self.in_flight += 1
        super().inflight_inc()

    def inflight_dec(self) -> None:
        self.in_flight -= 1
        super().inflight_dec()


@dataclass
class Answer:
    start: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    whole: bool
    """The message's own framing says that it is complete."""

    @property
    def status(self) -> int:
        return int(self.start.split()[1])

    def get(self, name: bytes) -> bytes | None:
        return next((v for k, v in self.headers if k.lower() == name.lower()), None)


class Client:
    """A client on a bare socket: asyncio's reader forgets what it holds when a reset comes behind it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._loop = asyncio.get_running_loop()
        self._held = b""

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self.sock, data)

    async def more(self, size: int = 65536) -> bytes:
        """One read; empty at a FIN."""
        if self._held:
            data, self._held = self._held[:size], self._held[size:]
            return data
        return await asyncio.wait_for(self._loop.sock_recv(self.sock, size), WAIT)

    async def until(self, mark: bytes) -> bytes:
        data = b""
        while mark not in data:
            part = await self.more()
            if not part:
                raise asyncio.IncompleteReadError(data, None)
            data += part
        end = data.index(mark) + len(mark)
        self._held = data[end:] + self._held
        return data[:end]

    async def exactly(self, size: int) -> bytes:
        data = bytearray()
        try:
            while len(data) < size and (part := await self.more(size - len(data))):
                data += part
        except ConnectionError:
            pass
        if len(data) < size:
            raise asyncio.IncompleteReadError(bytes(data), size)
        return bytes(data)

    async def head(self) -> tuple[bytes, list[tuple[bytes, bytes]]]:
        return parse_head(await self.until(b"\r\n\r\n"))

    async def answer(self, method: bytes = b"GET") -> Answer:
        """A whole answer, or what came of one that broke."""
        start, headers = await self.head()
        found = Answer(start, headers, b"", True)
        if method == b"HEAD" or found.status in (204, 304) or found.status < 200:
            return found
        length = found.get(b"content-length")
        try:
            if found.get(b"transfer-encoding"):
                assert length is None
                found.body, found.whole = await self.chunks()
            elif length is not None:
                found.body = await self.exactly(int(length))
            else:
                found.body, found.whole = await self.rest()
        except asyncio.IncompleteReadError as short:
            found.body, found.whole = short.partial, False
        return found

    async def chunk(self) -> bytes:
        """One chunk's data; empty for the last one."""
        size = int(await self.until(b"\r\n"), 16)
        return (await self.exactly(size + 2))[:-2]

    async def chunks(self) -> tuple[bytes, bool]:
        body = bytearray()
        try:
            while part := await self.chunk():
                body += part
        except (asyncio.IncompleteReadError, ConnectionError):
            return bytes(body), False
        return bytes(body), True

    async def rest(self) -> tuple[bytes, bool]:
        """Everything to the end, and whether the end was a FIN."""
        body = b""
        try:
            while part := await self.more():
                body += part
        except ConnectionError:
            return body, False
        return body, True

    def half_close(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        self.sock.close()


@dataclass
class Proxy:
    server: Server
    log: io.StringIO
    counters: Counters
    upstream: Upstream

    @property
    def outcomes(self) -> list[Outcome]:
        return self.counters.outcomes

    @property
    def pool(self):
        return self.server._shared.pool

    @property
    def budget(self):
        return self.server._shared.budget

    @asynccontextmanager
    async def client(self, *, receive_buffer: int | None = None, to: tuple[str, int] | None = None):
        sock = socket.socket()
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setblocking(False)
        with sock:
            await asyncio.get_running_loop().sock_connect(sock, to or self.server.address)
            yield Client(sock)

    async def ask(self, data: bytes, *, to: tuple[str, int] | None = None) -> Answer:
        """One request on its own connection."""
        async with self.client(to=to) as client:
            await client.send(data)
            return await client.answer(data.split(b" ", 1)[0])

    async def outcome(self, index: int = 0) -> Outcome:
        """The Outcome, which is made a moment after the client has its answer."""
        async with asyncio.timeout(WAIT):
            while len(self.outcomes) <= index:
                await asyncio.sleep(0.005)
        return self.outcomes[index]

    async def settle(self) -> None:
        """Nothing may be left over after an exchange: no byte held, no connection taken."""
        async with asyncio.timeout(WAIT):
            while self.server._shared.running or self.pool.busy:
                await asyncio.sleep(0.005)
        assert self.budget.held == 0
        assert self.counters.in_flight == 0


@asynccontextmanager
async def proxied(behave: Behaviour, *, eager: bool = True, path: str = "", **options: Any):
    """A proxy before an upstream that behaves so."""
    async with Upstream(behave, eager).serve() as upstream:
        options.setdefault("upstream", f"http://127.0.0.1:{upstream.port}{path}")
        settings = Settings(
            listen="127.0.0.1:0", admin="127.0.0.1:0", **{"drain_delay": 0.0, "drain_timeout": 5.0, **options}
        )
        log = io.StringIO()
        logs.configure("debug", log)
        counters = Counters(settings)
        server = Server(settings, Profile("openai"), counters)
        await server.start()
        proxy = Proxy(server, log, counters, upstream)
        try:
            yield proxy
            await proxy.settle()
        finally:
            await server.close()


def answering(raw: bytes, *, close: bool = False) -> Behaviour:
    """An upstream that says this, whatever it is asked."""

    async def behave(seen: Seen) -> None:
        await seen.send(raw)
        if close:
            seen.writer.close()

    return behave


def sized(
    body: bytes, media: bytes = b"application/json", status: bytes = b"200 OK", extra: bytes = b""
) -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Type: %b\r\n%bContent-Length: %d\r\n\r\n%b" % (
        status,
        media,
        extra,
        len(body),
        body,
    )


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"


def event(text: str = "Hi", logprob: str = "-0.5") -> bytes:
    token = f'{{"token":"{text}","logprob":{logprob}}}'
    choice = f'{{"index":0,"delta":{{"content":"{text}"}},"logprobs":{{"content":[{token}]}},"finish_reason":null}}'
    return f'data: {{"id":"c","model":"m","choices":[{choice}]}}\n\n'.encode()


def whole(text: str = "Hi", logprob: str = "-0.5", pad: int = 0) -> bytes:
    token = f'{{"token":"{text}","logprob":{logprob}}}'
    choice = f'{{"index":0,"message":{{"content":"{text}"}},"logprobs":{{"content":[{token}]}}}}'
    return f'{{"id":"c","model":"m","choices":[{choice}],"pad":"{"x" * pad}"}}'.encode()


def erased(body: bytes) -> bytes:
    """Without what the proxy inserted, for the bodies above."""
    return re.sub(rb',"probability":[0-9.eE+-]+', b"", body)


def post(
    body: bytes = b'{"model":"m","messages":[],"logprobs":true}',
    path: bytes = b"/v1/chat/completions",
    extra: bytes = b"",
    version: bytes = b"1.1",
) -> bytes:
    return (
        b"POST %b HTTP/%b\r\nHost: proxy.test\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n%b"
        % (path, version, extra, len(body), body)
    )


def get(
    path: bytes = b"/v1/models", extra: bytes = b"", version: bytes = b"1.1", method: bytes = b"GET"
) -> bytes:
    return b"%b %b HTTP/%b\r\nHost: proxy.test\r\n%b\r\n" % (method, path, version, extra)
