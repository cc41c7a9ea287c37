"""The commands, as a shell sees them: what they print, where, and how they end."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TextIO

import orjson
import pytest
from click.testing import CliRunner

from proxy import __version__, cli
from proxy.cli.serving import _url
from proxy.core.report import Report
from proxy.formats import FORMATS
from proxy.profiles import PROFILES
from proxy.settings import SETTINGS

COMMAND = [sys.executable, "-c", "from proxy.cli import main; main()"]
ROOT = Path(__file__).parents[2]
EXAMPLE = b'{"choices":[{"logprobs":{"content":[{"token":"a","logprob":-0.5}]}}]}\n'
ENRICHED = EXAMPLE.replace(b"-0.5", b'-0.5,"probability":0.6065306597126334')
CHAT = (
    b'{"id":"chatcmpl-1","model":"m-2026","choices":[{"index":0,"message":{"content":"a"},'
    b'"logprobs":{"content":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[]}]},"finish_reason":"stop"}]}'
)
OURS = {name: text for name, text in os.environ.items() if not name.startswith("LOGPROB_PROXY_")} | {
    "PYTHONPATH": str(ROOT),
    "no_proxy": "*",
}
for _name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
    OURS.pop(_name, None)
    OURS.pop(_name.lower(), None)


def invoke(*arguments: str, **environ: str) -> Any:
    hidden = dict.fromkeys(os.environ.keys() - OURS.keys())
    return CliRunner(env={**hidden, **environ}).invoke(cli.commands, arguments, prog_name=cli.NAME)


def shell(*arguments: str, data: bytes = b"", **environ: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *arguments], input=data, capture_output=True, env=OURS | environ, timeout=60
    )


# -- check, formats, --version


def test_version() -> None:
    assert invoke("--version").output == f"logprob-proxy {__version__}\n"


def test_check_prints_each_value_and_where_it_comes_from(tmp_path: Path) -> None:
    config = tmp_path / "proxy.yaml"
    config.write_text("max_held: 1GiB\nadmin: off\n")
    result = invoke(
        "check",
        *("--upstream", "http://localhost:8000/v1", "--honour-no-transform", "--config", str(config)),
        LOGPROB_PROXY_IDLE_TIMEOUT="90",
    )
    assert result.exit_code == 0
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in result.stdout.splitlines()}
    assert rows.keys() == {"setting"} | {row.name for row in SETTINGS}
    assert rows["upstream"] == ["http://localhost:8000/v1", "--upstream"]
    assert rows["honour_no_transform"] == ["true", "--honour-no-transform"]
    assert rows["idle_timeout"] == ["90s", "LOGPROB_PROXY_IDLE_TIMEOUT"]
    assert rows["max_held"] == ["1GiB", f"max_held in {config}, line 1"]
    assert rows["admin"] == ["off", f"admin in {config}, line 2"]
    assert rows["max_event"] == ["1MiB", "default"]


def test_check_without_an_upstream_says_that_serve_needs_it() -> None:
    result = invoke("check")
    assert result.exit_code == 2
    assert "(not set)" in result.stdout
    assert "--upstream" in result.stderr


@pytest.mark.parametrize("command", ["serve", "check"])
def test_all_faults_are_lines_and_the_end_is_2(command: str) -> None:
    result = invoke(command, "--max-event", "x", "--listen", "9", LOGPROB_PROXY_HONOUR_NO_TRANSFORM="maybe")
    assert result.exit_code == 2
    assert result.stdout == ""
    starts = ["error: LOGPROB_PROXY_HONOUR_NO_TRANSFORM: ", "error: --listen: ", "error: --max-event: "]
    for line, start in zip(result.stderr.splitlines(), starts, strict=True):
        assert line.startswith(start)


def test_a_flag_can_switch_off_what_a_variable_switches_on() -> None:
    result = invoke("check", "--no-honour-no-transform", LOGPROB_PROXY_HONOUR_NO_TRANSFORM="true")
    assert re.search(r"^honour_no_transform +false +--honour-no-transform$", result.stdout, re.MULTILINE)


def test_an_unused_proxy_variable_earns_one_warning() -> None:
    result = invoke("check", "--upstream", "http://h", HTTPS_PROXY="http://me:canary@squid:3128")
    assert result.exit_code == 0
    assert result.stderr == "warning: HTTPS_PROXY is set but not used: the upstream is called directly\n"


def test_every_setting_is_in_the_help_with_its_variable() -> None:
    text = invoke("serve", "--help").output
    for row in SETTINGS:
        assert row.flag in text
        assert row.env in text


def test_formats_lists_formats_and_profiles() -> None:
    lines = [line.split() for line in invoke("formats").output.splitlines()]
    for fmt in FORMATS:
        assert [fmt.name, fmt.api, *fmt.routes] in lines
    assert {line[0] for line in lines if line} >= PROFILES.keys()


def test_the_command_line_is_quick_to_import() -> None:
    heavy = ("aiohttp", "asyncio", "prometheus_client", "structlog", "yaml", "hypothesis", "openai")
    script = f"import sys, proxy.cli; print([name for name in {heavy!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, env=OURS, timeout=60)
    assert (result.stdout, result.stderr) == (b"[]\n", b"")


# -- enrich


def test_enrich_writes_the_probability() -> None:
    result = shell("enrich", "--format", "openai-chat", data=EXAMPLE)
    assert (result.stdout, result.stderr, result.returncode) == (ENRICHED, b"", 0)


def test_enrich_finds_the_only_format_that_fits_and_reports() -> None:
    result = shell("enrich", "--report", data=CHAT)
    assert result.stdout == CHAT.replace(b"-0.5", b'-0.5,"probability":0.6065306597126334')
    report = orjson.loads(result.stderr)
    assert (report["id"], report["outcome"], report["annotated"]) == ("chatcmpl-1", "scored", 1)
    assert report["choices"][0]["geometric_mean_probability"] == 0.6065306597126334
    assert result.returncode == 0


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (EXAMPLE, b"several formats fit: openai-chat, openai-completions"),
        (b'{"a": 1}\n', b"no format fits, of openai-chat"),
        (b"", b"no format fits"),
        (b"\xff\x00 what", b"no format fits"),
    ],
)
def test_enrich_does_not_guess(data: bytes, said: bytes) -> None:
    result = shell("enrich", data=data)
    assert result.stdout == data
    assert said in result.stderr
    assert result.returncode == 2


def test_enrich_knows_what_it_does_not_know() -> None:
    result = shell("enrich", "--format", "openai-chit", data=EXAMPLE)
    assert (result.stdout, result.returncode) == (b"", 2)
    assert b"there is no 'openai-chit'; there are openai-chat, " in result.stderr


def test_enrich_passes_what_cannot_be_read_and_says_so() -> None:
    data = b'data: {"choices": oops}\n\ndata: [DONE]\n\n'
    result = shell("enrich", "--format", "openai-chat", data=data)
    assert (result.stdout, result.returncode) == (data, 0)
    assert result.stderr == b"warning: passed unchanged or uncounted: invalid_json (1)\n"


@pytest.mark.parametrize("size", [1, 300_000, 3_000_000])
def test_enrich_takes_bodies_of_any_size(size: int) -> None:
    data = CHAT.replace(b'"a"},', b'"' + b"a" * size + b'"},')
    result = shell("enrich", "--format", "openai-chat", data=data)
    assert result.stdout == data.replace(b"-0.5", b'-0.5,"probability":0.6065306597126334')


def test_enrich_hands_on_each_event_as_it_comes() -> None:
    event = b"data: " + EXAMPLE + b"\n"
    with subprocess.Popen(
        [*COMMAND, "enrich", "--format", "openai-chat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=OURS,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(2):
            process.stdin.write(event)
            process.stdin.flush()
            wanted = b"data: " + ENRICHED + b"\n"
            assert process.stdout.read(len(wanted)) == wanted
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def test_enrich_ends_quietly_when_its_reader_has_gone() -> None:
    with subprocess.Popen(
        [*COMMAND, "enrich", "--format", "openai-chat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=OURS,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(b"data: " + EXAMPLE + b"\n")
        process.stdin.close()
        assert process.wait(timeout=30) == 1
        assert process.stderr.read() == b""


# -- serve


class Upstream(BaseHTTPRequestHandler):
    """Answers every POST with the same chat answer."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(CHAT)))
        self.end_headers()
        self.wfile.write(CHAT)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


class Serving:
    """A proxy process and what it said at the start."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stderr is not None
        first = process.stderr.readline().decode()
        match = re.fullmatch(r"logprob-proxy (\S+) listening on (\S+)\n", first)
        assert match is not None, first
        self.version, self.url = match.groups()
        lines = [process.stderr.readline().decode().split(maxsplit=1) for _ in range(4)]
        self.said = {name: text.rstrip() for name, text in lines}


@contextmanager
def serving(*arguments: str) -> Iterator[Serving]:
    command = [*COMMAND, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=OURS) as process:
        try:
            yield Serving(process)
        finally:
            process.kill()


def call(url: str, data: bytes | None = None) -> bytes:
    headers = {"Content-Type": "application/json", "Authorization": "Bearer canary"}
    request = urllib.request.Request(url, data, headers)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        body: bytes = answer.read()
        return body


def test_serve_says_where_it_is_serves_logs_and_ends_on_sigterm(upstream: str) -> None:
    with serving("--upstream", f"{upstream}/v1", "--drain-delay", "0", "--log-level", "debug") as proxy:
        assert proxy.version == __version__
        assert proxy.said["forwards"] == f"to  {upstream}/v1"
        assert proxy.said["profile"].startswith("openai (auto: ")
        assert proxy.said["profile"].endswith("; --profile changes it)")
        assert proxy.said["base_url"] == f"{proxy.url}/v1"
        body = b'{"model":"m","logprobs":true,"messages":[{"role":"user","content":"canary"}]}'
        answer = call(f"{proxy.said['base_url']}/chat/completions?key=canary", body)
        assert answer == CHAT.replace(b"-0.5", b'-0.5,"probability":0.6065306597126334')
        with pytest.raises(urllib.error.HTTPError, match="400"):
            call(f"{proxy.said['base_url']}/chat/completions", body.replace(b"true", b'"canary"'))
        page = call(proxy.said["metrics"]).decode()
        assert 'logprob_tokens_total{api="chat",model="m",part="answer",status="scored"} 1.0' in page
        assert 'logprob_validation_errors_total{param="logprobs",reason="type"} 1.0' in page
        proxy.process.send_signal(signal.SIGTERM)
        out, err = proxy.process.communicate(timeout=30)
        assert proxy.process.returncode == 0
    lines = [orjson.loads(line) for line in out.splitlines()]
    first, second = (line for line in lines if line["event"] == "request")
    assert (first["id"], first["status"], first["outcome"], first["tokens"]) == (
        "chatcmpl-1",
        200,
        "scored",
        1,
    )
    assert (second["status"], second["origin"]) == (400, "proxy")
    assert second["problem"] == {"param": "logprobs", "reason": "type"}
    assert err == b""
    assert b"canary" not in out + page.encode()


def test_a_second_signal_ends_at_once(upstream: str) -> None:
    with serving("--upstream", upstream, "--drain-delay", "1h") as proxy:
        proxy.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert proxy.process.poll() is None
        proxy.process.send_signal(signal.SIGINT)
        assert proxy.process.wait(timeout=10) == 0


def test_serve_without_an_upstream_says_what_to_type() -> None:
    result = shell("serve")
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"serve --upstream https://api.openai.com\n" in result.stderr
    assert b"serve --upstream http://127.0.0.1:8000 --profile vllm\n" in result.stderr


def test_what_cannot_be_listened_on_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for listeners in (("--listen", address), ("--listen", "127.0.0.1:0", "--admin", address)):
            result = shell("serve", "--upstream", "http://127.0.0.1:1", *listeners)
            assert (result.returncode, result.stdout) == (1, b"")
            assert result.stderr.count(b"\n") == 1
            assert result.stderr.startswith(b"error: cannot listen")
            assert str(taken.getsockname()[1]).encode() in result.stderr


def test_a_config_file_that_is_not_there_is_one_line() -> None:
    result = shell("serve", "--config", "/nowhere/proxy.yaml")
    assert result.returncode == 2
    assert (
        result.stderr == b"error: --config: /nowhere/proxy.yaml cannot be read: No such file or directory\n"
    )


@pytest.mark.parametrize(
    ("address", "shown", "callable_here"),
    [
        (("127.0.0.1", 1), "http://127.0.0.1:1", "http://127.0.0.1:1"),
        (("::1", 1), "http://[::1]:1", "http://[::1]:1"),
        (("0.0.0.0", 1), "http://0.0.0.0:1", "http://127.0.0.1:1"),
        (("::", 1), "http://[::]:1", "http://[::1]:1"),
    ],
)
def test_urls_can_be_clicked(address: tuple[str, int], shown: str, callable_here: str) -> None:
    assert _url(address) == shown
    assert _url(address, callable_here=True) == callable_here


# -- demo


@pytest.mark.parametrize("once", [True, False])
def test_demo_puts_a_proxy_before_the_model(
    monkeypatch: pytest.MonkeyPatch, upstream: str, once: bool
) -> None:
    seen: dict[str, object] = {}

    async def run(
        start_proxy: Callable[[str], Awaitable[str]], *, prompt: str | None, stay: bool, out: TextIO
    ) -> int:
        url = await start_proxy(upstream)
        answer = await asyncio.to_thread(call, f"{url}/v1/chat/completions", b'{"model":"m","logprobs":true}')
        seen.update(prompt=prompt, stay=stay, answer=answer)
        print("shown", file=out)
        return 3

    monkeypatch.setattr("proxy.demo.run", run)
    result = invoke("demo", "--prompt", "Hello", *(["--once"] if once else []))
    assert result.exit_code == 3
    assert (seen["prompt"], seen["stay"]) == ("Hello", not once)
    assert b'"probability":0.6065306597126334' in str(seen["answer"]).encode()
    assert "listening on http://127.0.0.1:" in result.stdout
    assert result.stdout.endswith("shown\n")


def test_a_report_can_be_shown_before_anything_is_known() -> None:
    from proxy.cli.enriching import describe

    assert orjson.loads(orjson.dumps(describe(Report())))["outcome"] == "not_asked"
