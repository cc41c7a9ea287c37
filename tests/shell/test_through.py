"""Every capture through the running proxy, in small reads and whole.

Law: what the client gets is what the oracles found right (`NAME.expected`), or the upstream's own bytes, however the
upstream's reads fall. One server and one connection serve the whole module, so that what one answer leaves behind
would show in the next. Requests are not judged here: some captures are answers to wrong ones.
"""

import asyncio
import io
from collections import Counter

import pytest
import pytest_asyncio

from proxy import logs
from proxy.core.report import Report
from proxy.core.rewriter import Rewriter
from proxy.formats import match
from proxy.profiles import PROFILES
from proxy.server import Server
from proxy.settings import Settings
from tests.laws.harness import Capture, capture, captures, drive, everything
from tests.shell.wire import Client, Counters, Proxy, Seen, Upstream

pytestmark = pytest.mark.asyncio(loop_scope="module")

ONE = 1500
"""Bodies up to this are read byte by byte, bigger ones in 61 bytes: a read costs 0.1 ms."""
SEVEN = 12_000
"""Bodies up to this are read in 7 bytes, bigger ones in 61."""
CHUNK = 53
"""Bytes in a chunk of the upstream's."""

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-completions": "/v1/completions",
    "openai-responses": "/v1/responses",
    "openai-transcriptions": "/v1/audio/transcriptions",
    "openai-realtime": "/v1/realtime",
    "llamacpp-completion": "/completion",
    "vllm-generate": "/inference/v1/generate",
    "sglang-generate": "/generate",
    "lmdeploy-generate": "/generate",
    "tgi": "/generate",
    "gemini": "/v1beta/models/m:streamGenerateContent",
    "ollama": "/api/chat",
    "cohere-chat": "/v2/chat",
    "cohere-generate": "/v1/generate",
}

BY_ID = {row.id: row for row in everything()}


async def send(seen: Seen) -> None:
    """Answer with the capture that the request names, in reads of the size that it names."""
    row = BY_ID[(seen.get(b"x-capture") or b"").decode()]
    size = int(seen.get(b"x-reads") or 0)
    head = f"HTTP/1.1 {row.facts['status']} Recorded\r\n"
    if row.facts["content_type"]:
        head += f"Content-Type: {row.facts['content_type']}\r\n"
    if seen.start.startswith(b"HEAD"):
        head += "Content-Length: 661\r\n"
        body = b""
    elif size == 7 or (size == 1 and row.framing in ("sse", "ndjson")):
        head += "Transfer-Encoding: chunked\r\n"
        body = b"".join(
            b"%x\r\n%b\r\n" % (len(piece), piece)
            for at in range(0, len(row.body), CHUNK)
            if (piece := row.body[at : at + CHUNK])
        )
        body += b"0\r\n\r\n"
    else:
        head += f"Content-Length: {len(row.body)}\r\n"
        body = row.body
    await seen.send(head.encode() + b"\r\n")
    size = reads(row, size) or len(body) or 1
    for at in range(0, len(body), size):
        # Two rounds of the loop a piece: the other side has read what was sent before more is.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await seen.send(body[at : at + size])


def reads(row: Capture, size: int) -> int:
    return 61 if len(row.body) > {0: 1 << 30, 1: ONE, 7: SEVEN}[size] else size


def path_of(row: Capture) -> str:
    return row.facts.get("path") or PATHS[row.facts["format"]]


def request(row: Capture, size: int) -> bytes:
    method = row.facts.get("method", "POST")
    head = (
        f"{method} {path_of(row)} HTTP/1.1\r\nHost: proxy.test\r\nX-Capture: {row.id}\r\nX-Reads: {size}\r\n"
    )
    if method != "POST":
        return head.encode() + b"\r\n"
    media = "multipart/form-data; boundary=x" if row.request.startswith(b"--") else "application/json"
    head += f"Content-Type: {media}\r\nContent-Length: {len(row.request)}\r\n\r\n"
    return head.encode() + row.request


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def proxy():
    async with Upstream(send).serve() as upstream:
        settings = Settings(
            listen="127.0.0.1:0",
            admin="127.0.0.1:0",
            upstream=f"http://127.0.0.1:{upstream.port}",
            validation="off",
            drain_delay=0.0,
            upstream_keepalive=600.0,
        )
        log = io.StringIO()
        logs.configure("info", log)
        counters = Counters(settings)
        server = Server(settings, PROFILES["any"], counters)
        await server.start()
        running = Proxy(server, log, counters, upstream)
        try:
            yield running
            await running.settle()
        finally:
            await server.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(proxy: Proxy):
    async with proxy.client() as client:
        yield client


@pytest.mark.parametrize("size", [1, 7, 0], ids=["1", "7", "whole"])
@pytest.mark.parametrize("row", everything(), ids=lambda row: row.id)
async def test_through(row: Capture, size: int, proxy: Proxy, client: Client):
    before = len(proxy.outcomes)
    await client.send(request(row, size))
    answer = await client.answer(row.facts.get("method", "POST").encode())
    assert answer.whole
    assert answer.status == row.facts["status"]
    assert answer.body == (row.expected if _is_read(row) else row.body)
    while len(proxy.outcomes) == before:
        await asyncio.sleep(0)
    outcome = proxy.outcomes[before]
    assert (outcome.origin, outcome.status) == ("upstream", row.facts["status"])
    if _is_read(row):
        report = _report(row)
        assert outcome.outcome == report.outcome
        assert outcome.report is not None
        expected = {**report.failures, **({"body_not_judged": 1} if row.request.startswith(b"--") else {})}
        assert outcome.report.failures == expected
        assert outcome.report.annotated == report.annotated
    else:
        assert outcome.outcome == "passthrough"


def _report(row: Capture) -> Report:
    """What the core knows of it under this path, which endpoints may share."""
    found = match(path_of(row))
    assert found
    rewriter = Rewriter(found[0], row.framing or "raw", row.ask)
    drive(rewriter, [row.body])
    return rewriter.report


def _is_read(row: Capture) -> bool:
    """The proxy reads it: it has a route and a media type that says how, and is no error."""
    routed = row.facts["format"] not in ("", "openai-realtime")
    return routed and row.framing is not None and row.facts["status"] < 300


async def test_what_is_left_behind(proxy: Proxy, client: Client):
    """After all that: one connection each way, no fault inside, and every request with one outcome."""
    await proxy.settle()
    assert not client._held
    assert proxy.upstream.connections == 1
    assert "internal" not in Counter(
        reason for row in proxy.outcomes if row.report for reason in row.report.failures
    )
    exposed = [line.split(" ") for line in proxy.counters.expose()[0].decode().splitlines()]
    assert ['logprob_rewrite_failures_total{reason="internal"}', "0.0"] in exposed
    counted: Counter[str] = Counter()
    for name, *_, value in exposed:
        if name.startswith("logprob_responses_total{"):
            counted[name.partition('api="')[2].partition('"')[0]] += int(float(value))
    wanted: Counter[str] = Counter()
    for seen in proxy.upstream.seen:
        found = match(seen.start.split()[1].decode())
        wanted[found[0].api if found else "other"] += 1
    assert +counted == wanted
    assert sum(wanted.values()) == len(proxy.outcomes)


async def test_the_reads_are_as_small_as_they_say(
    proxy: Proxy, client: Client, monkeypatch: pytest.MonkeyPatch
):
    """Else all of this would show nothing."""
    sizes: list[int] = []
    feed = Rewriter.feed

    def watched(self: Rewriter, data: bytes) -> bytes:
        sizes.append(len(data))
        return feed(self, data)

    monkeypatch.setattr(Rewriter, "feed", watched)
    for id in ("openai-chat/T00", "openai-chat/T00-stream"):
        row = capture(id)
        for size in (1, 7):
            sizes.clear()
            await client.send(request(row, size))
            await client.answer(b"POST")
            assert sum(sizes) == len(row.body)
            assert max(sizes) <= size
            assert len(sizes) >= len(row.body) / size


async def test_every_format_has_its_path():
    assert set(PATHS) == {row.facts["format"] for row in captures()}
