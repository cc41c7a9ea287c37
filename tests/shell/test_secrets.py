"""Keys, cookies, query values, prompts and completions reach no log line, no metric and no error of the proxy's own."""

from __future__ import annotations

import asyncio

from tests.shell.wire import LAST, SSE_HEAD, Seen, chunk, event, get, post, proxied, sized, whole

SECRETS = b"Authorization: Bearer sk-CANARY\r\napi-key: CANARY\r\nx-api-key: CANARY\r\nCookie: s=CANARY\r\n"
PROMPT = b'{"model":"m","messages":[{"role":"user","content":"CANARY"}],"logprobs":true,"user":"CANARY"}'
PATH = b"/v1/chat/completions?api-key=CANARY"


async def test_the_canary_is_nowhere():
    kinds = iter(range(100))

    async def behave(seen: Seen) -> None:
        assert b"CANARY" in seen.raw
        match next(kinds):
            case 0:
                await seen.send(sized(whole("CANARY")))
            case 1:
                await seen.send(SSE_HEAD + chunk(event("CANARY")) + LAST)
            case 2:
                await seen.send(SSE_HEAD + chunk(event("CANARY")) + b"CANARY\r\n")
            case 3:
                await seen.send(b"CANARY CANARY\r\n\r\n")
            case 4:
                await seen.send(sized(b'{"error":{"message":"bad key CANARY"}}', status=b"401 CANARY"))
            case 5:
                await seen.send(sized(b'{"choices":[CANARY', extra=b"X: CANARY\r\n"))
            case 6:
                seen.reset()
            case _:
                await seen.gone()

    async with proxied(behave, idle_timeout=0.2, first_byte_timeout=0.2, log_level="debug") as proxy:
        own: list[bytes] = []
        ask = post(PROMPT, path=PATH, extra=SECRETS)
        for _ in range(8):
            answer = await proxy.ask(ask)
            if answer.get(b"x-logprob-proxy-error"):
                own.append(repr(answer).encode())
        refused = [
            post(b'{"logprobs":"CANARY"}', path=PATH, extra=SECRETS),
            post(b'{"logprobs":true,"top_logprobs":99,"user":"CANARY"}', path=PATH, extra=SECRETS),
            get(b"/v1/../CANARY?CANARY", extra=SECRETS),
            get(b"/CANARY", extra=SECRETS + b"Bad : CANARY\r\n"),
            b"CANARY CANARY\r\n\r\n",
            post(b"{}", path=PATH, extra=SECRETS + b"Expect: CANARY\r\n"),
            post(b"{}", path=PATH, extra=SECRETS + b"X: " + b"CANARY" * 20_000 + b"\r\n"),
            b"POST /x HTTP/1.1\r\nHost: p\r\nTransfer-Encoding: chunked\r\n\r\nCANARY\r\n",
        ]
        for data in refused:
            answer = await proxy.ask(data)
            assert answer.get(b"x-logprob-proxy-error"), answer
            own.append(repr(answer).encode())
        async with proxy.client() as client:
            await client.send(ask)
            await asyncio.sleep(0.05)
        await proxy.outcome(len(refused) + 8)
        metrics, _ = proxy.counters.expose()
        assert len(own) >= len(refused) + 3
        for text in (metrics, proxy.log.getvalue().encode(), *own):
            assert b"CANARY" not in text
