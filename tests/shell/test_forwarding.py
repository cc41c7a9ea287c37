"""What crosses: heads, targets and bodies, both ways."""

from __future__ import annotations

import asyncio
import os

import orjson
import pytest

from tests.shell.wire import (
    LAST,
    SSE_HEAD,
    Seen,
    answering,
    chunk,
    erased,
    event,
    get,
    post,
    proxied,
    sized,
    whole,
)

ODD = bytes(range(0x80, 0x100))
PLAIN = sized(b'{"a":1}')


async def test_whole_answer_is_annotated_and_gets_its_new_length():
    async with proxied(answering(sized(whole()))) as proxy:
        answer = await proxy.ask(post())
        assert answer.status == 200
        assert b'"logprob":-0.5,"probability":0.6065306597126334' in answer.body
        assert erased(answer.body) == whole()
        assert answer.get(b"content-length") == b"%d" % len(answer.body)
        outcome = await proxy.outcome()
        assert (outcome.status, outcome.origin, outcome.outcome) == (200, "upstream", "scored")
        assert outcome.model == "m"
        assert outcome.response_bytes > len(answer.body)


async def test_stream_is_annotated():
    async with proxied(answering(SSE_HEAD + chunk(event()) + chunk(b"data: [DONE]\n\n") + LAST)) as proxy:
        answer = await proxy.ask(post())
        assert answer.whole
        assert b'"probability":0.6065306597126334' in answer.body
        assert erased(answer.body) == event() + b"data: [DONE]\n\n"
        assert answer.get(b"x-accel-buffering") == b"no"
        outcome = await proxy.outcome()
        assert outcome.stream
        assert outcome.report is not None
        assert outcome.report.ended


async def test_large_whole_answer_leaves_chunked():
    body = whole(pad=300_000)
    async with proxied(answering(sized(body))) as proxy:
        answer = await proxy.ask(post())
        assert answer.get(b"content-length") is None
        assert answer.whole
        assert erased(answer.body) == body != answer.body


async def test_very_large_whole_answer_is_read_in_slices():
    body = whole(pad=3_000_000)
    async with proxied(answering(sized(body))) as proxy:
        answer = await proxy.ask(post())
        assert answer.whole
        assert erased(answer.body) == body != answer.body


async def test_unchanged_whole_answer_keeps_its_head():
    raw = sized(b'{"choices":[]}', extra=b'ETag: "abc"\r\nContent-MD5: Q2hlY2s=\r\nAccept-Ranges: bytes\r\n')
    async with proxied(answering(raw)) as proxy:
        answer = await proxy.ask(post())
        assert answer.get(b"etag") == b'"abc"'
        assert answer.get(b"accept-ranges") == b"bytes"
        assert answer.body == b'{"choices":[]}'


async def test_what_describes_the_old_body_goes_with_it():
    described = {
        b"ETag": b'"abc"',
        b"Content-MD5": b"Q2hlY2s=",
        b"Digest": b"sha-256=AAAA",
        b"Content-Digest": b"sha-256=:AAAA:",
        b"Repr-Digest": b"sha-256=:AAAA:",
        b"Accept-Ranges": b"bytes",
    }
    extra = b"".join(b"%b: %b\r\n" % pair for pair in described.items()) + b"X-Kept: yes\r\n"
    async with proxied(answering(sized(whole(), extra=extra))) as proxy:
        answer = await proxy.ask(post())
        assert not any(answer.get(name) for name in described)
        assert answer.get(b"x-kept") == b"yes"


async def test_request_head_reaches_the_upstream_as_it_came():
    extra = (
        b"X-Odd: " + ODD + b"\r\n"
        b"x-lower: 1\r\nX-REPEATED: a\r\nX-Repeated: b\r\nX-Empty:\r\n"
        b"Authorization: Bearer k\r\nX-Forwarded-For: 10.0.0.1\r\n"
        b"Connection: keep-alive, X-Named\r\nX-Named: gone\r\nKeep-Alive: timeout=5\r\nProxy-Foo: gone\r\n"
        b"Proxy-Authorization: gone\r\nTE: trailers\r\nTrailer: X-T\r\nUpgrade: h2c\r\nAccept-Encoding: gzip, br\r\n"
    )
    async with proxied(answering(PLAIN)) as proxy:
        await proxy.ask(post(extra=extra))
        seen = proxy.upstream.seen[0]
        length = b"%d" % len(seen.body)
        assert seen.start == b"POST /v1/chat/completions HTTP/1.1"
        assert seen.headers == [
            (b"Host", b"127.0.0.1:%d" % proxy.upstream.port),
            (b"Content-Type", b"application/json"),
            (b"X-Odd", ODD),
            (b"x-lower", b"1"),
            (b"X-REPEATED", b"a"),
            (b"X-Repeated", b"b"),
            (b"X-Empty", b""),
            (b"Authorization", b"Bearer k"),
            (b"X-Forwarded-For", b"10.0.0.1"),
            (b"Accept-Encoding", b"identity"),
            (b"Content-Length", length),
            (b"Via", b"1.1 logprob-proxy"),
        ]


async def test_answer_head_reaches_the_client_as_it_came():
    raw = (
        b"HTTP/1.1 299 Odd \xff\r\nX-Odd: " + ODD + b"\r\nset-cookie: a=1\r\nSet-Cookie: b=2\r\nX-Empty:\r\n"
        b"Connection: X-Named\r\nX-Named: gone\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: gone\r\n"
        b"Server: u\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 2\r\n\r\nok"
    )
    async with proxied(answering(raw)) as proxy:
        answer = await proxy.ask(get())
        assert answer.start == b"HTTP/1.1 299 Odd \xff"
        assert answer.headers == [
            (b"X-Odd", ODD),
            (b"set-cookie", b"a=1"),
            (b"Set-Cookie", b"b=2"),
            (b"X-Empty", b""),
            (b"Server", b"u"),
            (b"Date", b"Thu, 01 Jan 1970 00:00:00 GMT"),
            (b"Content-Length", b"2"),
        ]
        assert answer.body == b"ok"


async def test_date_is_added_where_it_is_missing():
    async with proxied(answering(PLAIN)) as proxy:
        assert (await proxy.ask(get())).get(b"date").endswith(b" GMT")


async def test_other_routes_keep_their_accept_encoding():
    async with proxied(answering(PLAIN)) as proxy:
        await proxy.ask(get(extra=b"Accept-Encoding: gzip, br\r\n"))
        assert proxy.upstream.seen[0].get(b"accept-encoding") == b"gzip, br"


@pytest.mark.parametrize(
    "path", [b"/v1/x?", b"/v1/x", b"/v1/x?a=%20b&&=+", b"/v1/x/", b"/%E2%82%AC/{}|^%2f", b"/"]
)
async def test_target_bytes_survive(path):
    async with proxied(answering(PLAIN)) as proxy:
        await proxy.ask(get(path))
        assert proxy.upstream.seen[0].start == b"GET %b HTTP/1.1" % path


@pytest.mark.parametrize(
    ("base", "path", "joined"),
    [
        ("", b"/v1/chat/completions", b"/v1/chat/completions"),
        ("/", b"/v1/chat/completions", b"/v1/chat/completions"),
        ("/", b"/chat/completions", b"/chat/completions"),
        ("/v1", b"/v1/chat/completions", b"/v1/chat/completions"),
        ("/v1", b"/chat/completions", b"/v1/chat/completions"),
        ("/v1/", b"/v1/chat/completions/", b"/v1/chat/completions/"),
        ("/v1", b"/v1", b"/v1"),
        ("/v1", b"/v1?a", b"/v1?a"),
        ("/v1", b"/v1beta/x", b"/v1/v1beta/x"),
        ("/openai/deployments/x", b"/chat/completions?v=1", b"/openai/deployments/x/chat/completions?v=1"),
        ("/openai/deployments/x", b"/v1/chat/completions/", b"/openai/deployments/x/v1/chat/completions/"),
    ],
)
async def test_paths_are_joined(base, path, joined):
    async with proxied(answering(PLAIN), path=base) as proxy:
        await proxy.ask(post(path=path))
        assert proxy.upstream.seen[0].start == b"POST %b HTTP/1.1" % joined


async def test_absolute_form_is_its_path_only():
    async with proxied(answering(PLAIN)) as proxy:
        await proxy.ask(get(b"http://169.254.169.254/latest?x"))
        assert proxy.upstream.seen[0].start == b"GET /latest?x HTTP/1.1"
        assert proxy.upstream.seen[0].get(b"host") == b"127.0.0.1:%d" % proxy.upstream.port


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (b"//evil.test/v1", 400),
        (b"http://evil.test//v1", 400),
        (b"/v1/../admin", 400),
        (b"/v1/./x", 400),
        (b"/v1/..", 400),
        (b"/v1/%2e%2e/admin", 400),
        (b"/v1/%2E./admin", 400),
        (b"/v1/%2e%2e%2fadmin", 400),
        (b"/v1/..%5cadmin", 400),
        (b"/v1/..;x/admin", 400),
        (b"/a#b", 400),
        (b"/a%0d%0ab", 400),
        (b"/a%00", 400),
    ],
)
async def test_targets_that_could_mean_another_place_are_refused(path, status):
    async with proxied(answering(PLAIN)) as proxy:
        answer = await proxy.ask(get(path))
        assert answer.status == status
        assert answer.get(b"x-logprob-proxy-error") == b"target"
        assert orjson.loads(answer.body)["error"]["type"] == "invalid_request_error"
        assert not proxy.upstream.seen


@pytest.mark.parametrize("line", [b"TRACE /v1/x", b"CONNECT evil.test:443"])
async def test_methods_that_are_not_forwarded(line):
    async with proxied(answering(PLAIN)) as proxy:
        answer = await proxy.ask(line + b" HTTP/1.1\r\nHost: p\r\n\r\n")
        assert answer.status == 405
        assert answer.get(b"x-logprob-proxy-error") == b"method"
        assert not proxy.upstream.seen


async def test_twice_through_this_kind_of_proxy_is_a_loop():
    async with proxied(answering(PLAIN)) as proxy:
        once = await proxy.ask(get(extra=b"Via: 1.1 logprob-proxy\r\n"))
        twice = await proxy.ask(get(extra=b"Via: 1.1 logprob-proxy, 1.0 x\r\nvia: 1.1 Logprob-Proxy (y)\r\n"))
        assert (once.status, twice.status) == (200, 508)
        assert twice.get(b"x-logprob-proxy-error") == b"loop"


async def test_redirects_and_cookies_are_the_clients():
    async def behave(seen: Seen) -> None:
        await seen.send(
            b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://localhost:9/steal\r\nSet-Cookie: a=b\r\n"
            b"Content-Length: 0\r\n\r\n"
        )

    async with proxied(behave) as proxy:
        answer = await proxy.ask(post())
        assert (answer.status, answer.get(b"location")) == (307, b"http://localhost:9/steal")
        await proxy.ask(post())
        assert len(proxy.upstream.seen) == 2
        assert proxy.upstream.seen[1].get(b"cookie") is None


async def test_errors_pass_as_they_came():
    raw = (
        b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 7\r\n"
        b"x-request-id: req_2\r\nContent-Length: 26\r\n\r\n" + b'{"error":{"logprob":-0.5}}'
    )
    async with proxied(answering(raw)) as proxy:
        answer = await proxy.ask(post())
        assert (answer.status, answer.get(b"retry-after")) == (429, b"7")
        assert answer.get(b"x-logprob-proxy-error") is None
        assert answer.body == b'{"error":{"logprob":-0.5}}'
        assert (await proxy.outcome()).outcome == "passthrough"


@pytest.mark.parametrize(
    "extra", [b"Content-Encoding: gzip\r\n", b"Content-Encoding: identity, br\r\n"], ids=["gzip", "stacked"]
)
async def test_coded_answers_pass_raw(extra):
    async with proxied(answering(sized(whole(), extra=extra))) as proxy:
        answer = await proxy.ask(post())
        assert answer.body == whole()
        assert answer.get(b"content-length") == b"%d" % len(whole())


@pytest.mark.parametrize(
    ("media", "edited"),
    [
        (b"application/json; charset=utf-8", True),
        (b"Application/JSON", True),
        (b"application/problem+json", True),
        (b"application/json-extra", False),
        (b"application/json; charset=utf-16", False),
        (b"text/html", False),
    ],
)
async def test_the_answers_media_type_decides(media, edited):
    async with proxied(answering(sized(whole(), media))) as proxy:
        answer = await proxy.ask(post())
        assert (answer.body != whole()) == edited


@pytest.mark.parametrize("honoured", [False, True])
async def test_no_transform_is_honoured_on_request(honoured):
    raw = sized(whole(), extra=b"Cache-Control: no-cache, no-transform\r\n")
    async with proxied(answering(raw), honour_no_transform=honoured) as proxy:
        answer = await proxy.ask(post())
        assert (answer.body == whole()) == honoured


@pytest.mark.parametrize("status", [b"206 Partial Content", b"404 Not Found", b"500 Oops"])
async def test_only_whole_successes_are_edited(status):
    async with proxied(answering(sized(whole(), status=status))) as proxy:
        assert (await proxy.ask(post())).body == whole()


async def test_head_204_and_304_have_no_body():
    async def behave(seen: Seen) -> None:
        path = seen.start.split()[1]
        if path == b"/v1/chat/completions":
            await seen.send(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 777\r\n\r\n"
            )
        elif path == b"/304":
            await seen.send(b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 777\r\n\r\n')
        else:
            await seen.send(b"HTTP/1.1 204 No Content\r\nX: y\r\n\r\n")

    async with proxied(behave) as proxy, proxy.client() as client:
        await client.send(get(b"/v1/chat/completions", method=b"HEAD"))
        answer = await client.answer(b"HEAD")
        assert answer.get(b"content-length") == b"777"
        await client.send(get(b"/304"))
        answer = await client.answer()
        assert (answer.status, answer.get(b"etag"), answer.get(b"content-length")) == (304, b'"a"', b"777")
        await client.send(get(b"/204"))
        answer = await client.answer()
        assert (answer.status, answer.get(b"content-length")) == (204, None)
        assert answer.get(b"transfer-encoding") is None
        assert proxy.upstream.connections == 1


async def test_http10_client_gets_no_chunks_and_a_close():
    async with proxied(answering(SSE_HEAD + chunk(event()) + LAST)) as proxy:
        answer = await proxy.ask(post(version=b"1.0"))
        assert answer.get(b"transfer-encoding") is None
        assert answer.get(b"connection") == b"close"
        assert answer.whole
        assert erased(answer.body) == event() != answer.body
        assert proxy.upstream.seen[0].get(b"via") == b"1.0 logprob-proxy"


async def test_connections_are_kept_on_both_sides():
    async with proxied(answering(sized(whole()))) as proxy, proxy.client() as client:
        for _ in range(5):
            await client.send(post())
            assert (await client.answer()).status == 200
        assert proxy.upstream.connections == 1


async def test_pipelined_requests_are_answered_in_order():
    async def behave(seen: Seen) -> None:
        await seen.send(sized(seen.start))

    async with proxied(behave) as proxy, proxy.client() as client:
        await client.send(b"".join(get(b"/%d" % n) for n in range(10)))
        for n in range(10):
            assert (await client.answer()).body == b"GET /%d HTTP/1.1" % n


async def test_interim_answers_are_dropped():
    raw = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + sized(whole())
    async with proxied(answering(raw)) as proxy:
        answer = await proxy.ask(post())
        assert (answer.status, answer.get(b"link")) == (200, None)
        assert erased(answer.body) == whole()


async def test_chunk_extensions_and_trailers_are_dropped():
    raw = SSE_HEAD + b"%x;ext=1\r\n%b\r\n0\r\nX-T: 1\r\n\r\n" % (len(event()), event())
    async with proxied(answering(raw)) as proxy, proxy.client() as client:
        await client.send(post())
        answer = await client.answer()
        assert (erased(answer.body), answer.whole, answer.get(b"x-t")) == (event(), True, None)
        await client.send(post())
        assert (await client.answer()).whole


async def test_close_delimited_upstream_ends_clean():
    raw = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + whole()
    async with proxied(answering(raw, close=True)) as proxy:
        answer = await proxy.ask(post())
        assert answer.whole
        assert erased(answer.body) == whole() != answer.body
        assert (await proxy.outcome()).upstream_error is None


async def test_events_leave_one_by_one():
    """Event n arrives before event n+1 has left the upstream, and the head before the first event."""
    got = asyncio.Event()

    async def behave(seen: Seen) -> None:
        await seen.send(SSE_HEAD)
        for number in range(3):
            await asyncio.wait_for(got.wait(), 5)
            got.clear()
            await seen.send(chunk(event(str(number))))
        await asyncio.wait_for(got.wait(), 5)
        await seen.send(LAST)

    async with proxied(behave) as proxy, proxy.client() as client:
        await client.send(post())
        await client.head()
        got.set()
        for number in range(3):
            assert erased(await client.chunk()) == event(str(number))
            got.set()
        assert await client.exactly(5) == LAST


async def test_one_read_is_one_chunk():
    async with proxied(
        answering(SSE_HEAD + b"".join(chunk(event(str(n))) for n in range(20)) + LAST)
    ) as proxy:
        async with proxy.client() as client:
            await client.send(post())
            await client.head()
            assert len(await client.chunk()) > 20 * len(event())


async def test_uploads_of_all_bytes_stream_through():
    body = bytes(range(256)) * 4096
    got = asyncio.Event()

    async def behave(seen: Seen) -> None:
        first = await seen.reader.readexactly(1024)
        got.set()
        seen.body = first + await seen.reader.readexactly(len(body) - 1024)
        await seen.send(sized(seen.body, b"audio/mpeg"))

    async with proxied(behave, eager=False) as proxy, proxy.client() as client:
        head = b"POST /v1/audio/x HTTP/1.1\r\nHost: p\r\nContent-Type: multipart/form-data; boundary=B\r\n"
        await client.send(head + b"Content-Length: %d\r\n\r\n" % len(body) + body[:2048])
        await asyncio.wait_for(got.wait(), 5)  # before the rest was sent
        await client.send(body[2048:])
        answer = await client.answer()
        assert answer.body == body == proxy.upstream.seen[0].body
        assert proxy.upstream.seen[0].get(b"content-type") == b"multipart/form-data; boundary=B"


async def test_chunked_uploads_stay_chunked():
    body = bytes(range(256)) * 10
    async with proxied(answering(PLAIN)) as proxy:
        head = b"PUT /files HTTP/1.1\r\nHost: p\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = await proxy.ask(head + chunk(body[:99]) + chunk(body[99:]) + LAST)
        assert answer.status == 200
        seen = proxy.upstream.seen[0]
        assert (seen.body, seen.get(b"content-length")) == (body, None)


async def test_chunked_json_is_judged_and_gets_a_length():
    async with proxied(answering(PLAIN)) as proxy:
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\nTransfer-Encoding: chunked\r\n\r\n"
        good = await proxy.ask(head + chunk(b'{"model":') + chunk(b'"m"}') + LAST)
        assert good.status == 200
        assert proxy.upstream.seen[0].body == b'{"model":"m"}'
        assert proxy.upstream.seen[0].get(b"content-length") == b"13"
        bad = await proxy.ask(head + chunk(b'{"top_logprobs":21,"logprobs":true}') + LAST)
        assert bad.status == 400


async def test_requests_that_the_rules_refuse_stay_here():
    async with proxied(answering(PLAIN)) as proxy, proxy.client() as client:
        await client.send(post(b'{"model":"m","logprobs":true,"top_logprobs":21}'))
        answer = await client.answer()
        error = orjson.loads(answer.body)["error"]
        assert (answer.status, error["param"]) == (400, "top_logprobs")
        assert answer.get(b"x-logprob-proxy-error") == b"range"
        assert not proxy.upstream.seen
        await client.send(post())  # the connection goes on
        assert (await client.answer()).status == 200
        outcome = await proxy.outcome()
        assert outcome.problem is not None
        assert (outcome.origin, outcome.problem.param) == ("proxy", "top_logprobs")


@pytest.mark.parametrize(
    "body", [b"", b"[1]", b"no json", b"\xef\xbb\xbf{}", b"[" * 3000 + b"]" * 3000, os.urandom(500)]
)
async def test_what_cannot_be_judged_goes_as_it_came(body):
    async with proxied(answering(PLAIN)) as proxy:
        assert (await proxy.ask(post(body))).status == 200
        assert proxy.upstream.seen[0].body == body


async def test_compressed_requests_go_as_they_came():
    body = b'{"top_logprobs":99}'  # says gzip; nobody here looks
    async with proxied(answering(PLAIN)) as proxy:
        assert (await proxy.ask(post(body, extra=b"Content-Encoding: gzip\r\n"))).status == 200
        assert proxy.upstream.seen[0].body == body
        outcome = await proxy.outcome()
        assert outcome.report is not None
        assert outcome.report.failures == {"body_not_judged": 1}


async def test_expect_100_is_answered_here():
    async with proxied(answering(sized(whole()))) as proxy, proxy.client() as client:
        body = b'{"model":"m"}'
        head = post(body, extra=b"Expect: 100-continue\r\n")[: -len(body)]
        await client.send(head)
        start, _ = await client.head()
        assert start == b"HTTP/1.1 100 Continue"
        await client.send(body)
        assert (await client.answer()).status == 200
        assert proxy.upstream.seen[0].get(b"expect") is None


async def test_other_expectations_are_refused():
    async with proxied(answering(PLAIN)) as proxy:
        assert (await proxy.ask(post(extra=b"Expect: tea\r\n"))).status == 417


async def test_websocket_is_refused_at_once():
    extra = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    async with proxied(answering(PLAIN)) as proxy:
        answer = await proxy.ask(get(b"/v1/realtime?model=m", extra=extra))
        assert (answer.status, answer.get(b"connection")) == (501, b"close")
        assert not proxy.upstream.seen


async def test_cors_preflight_goes_upstream():
    raw = b"HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: *\r\n\r\n"
    async with proxied(answering(raw)) as proxy:
        answer = await proxy.ask(
            get(b"/v1/chat/completions", extra=b"Origin: http://a.test\r\n", method=b"OPTIONS")
        )
        assert answer.get(b"access-control-allow-origin") == b"*"


async def test_the_legacy_spelling_is_coerced_and_the_answer_says_so():
    async with proxied(answering(PLAIN), validation="coerce") as proxy:
        answer = await proxy.ask(post(b'{"model":"m", "logprobs": 5}'))
        assert (answer.status, answer.get(b"x-logprob-proxy")) == (200, b"coerced")
        assert proxy.upstream.seen[0].body == b'{"model":"m", "logprobs": true, "top_logprobs": 5}'
        assert proxy.upstream.seen[0].get(b"content-length") == b"50"
        plain = await proxy.ask(post(b'{"model":"m","logprobs":true}'))
        assert plain.get(b"x-logprob-proxy") is None
        assert (await proxy.ask(post(b'{"logprobs":21}'))).status == 400
