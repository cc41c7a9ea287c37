"""Logs: one line a request, one line whatever is in it, and nothing in it that is not ours to tell."""

import io
import json
import logging
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import logs
from proxy.core import summary
from proxy.core.figures import Figures
from proxy.core.problem import Problem
from proxy.core.report import ChoiceReport, Outcome, Report
from proxy.core.tokens import Token
from tests.shell.wire import answering, post, proxied, sized

HOSTILE = 'a\ud800b\nc\u2028d\x00e\x9b"f\\'


@pytest.fixture
def out() -> io.StringIO:
    stream = io.StringIO()
    logs.configure("debug", stream)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    text = stream.getvalue()
    assert text == "" or text.endswith("\n")
    return [orjson.loads(line) for line in text.split("\n")[:-1]]


def choice(
    *logprobs: float, key: tuple[object, ...] = (0,), told: dict[str, object] | None = None
) -> ChoiceReport:
    figures = Figures()
    for logprob in logprobs:
        figures.count(Token(b"a", logprob))
    return ChoiceReport(key, figures, told=told)


def an_outcome(**changes: Any) -> Outcome:
    report = Report(asked=True, id="chatcmpl-1", model="m-2026", choices=[choice(-0.75, -0.25)], failures={})
    values: dict[str, Any] = {
        "time": 1_700_000_000.25,
        "method": "POST",
        "api": "chat",
        "format": "openai-chat",
        "model": "m",
        "status": 200,
        "outcome": "scored",
        "stream": True,
        "duration": 1.5,
        "upstream_head": 0.1,
        "first_chunk": 0.25,
        "rewrite_seconds": 0.0012345,
        "request_bytes": 100,
        "response_bytes": 2000,
        "report": report,
    }
    return Outcome(**(values | changes))


def test_a_request_is_one_line_with_everything_in_it(out: io.StringIO) -> None:
    logs.log_outcome(an_outcome())
    (line,) = lines(out)
    assert line == {
        "time": "2023-11-14T22:13:21.750Z",
        "level": "info",
        "event": "request",
        "id": "chatcmpl-1",
        "trace_id": None,
        "span_id": None,
        "trace_flags": None,
        "tracestate": None,
        "method": "POST",
        "api": "chat",
        "format": "openai-chat",
        "model": "m",
        "response_model": "m-2026",
        "status": 200,
        "origin": "upstream",
        "outcome": "scored",
        "stream": True,
        "tokens": 2,
        "perplexity": 1.6487212707001282,
        "geometric_mean_probability": 0.6065306597126334,
        "min_probability": math.exp(-0.75),
        "lowest_window_probability": 0.6065306597126334,
        "mean_margin": None,
        "low_confidence_tokens": 1,
        "aligned": True,
        "duration_ms": 1500.0,
        "first_chunk_ms": 250.0,
        "upstream_head_ms": 100.0,
        "rewrite_ms": 1.234,
        "request_bytes": 100,
        "response_bytes": 2000,
        "upstream_error": None,
        "problem": None,
        "failures": {},
        "error": None,
    }


def test_of_several_choices_each_is_told_and_all_together(out: io.StringIO) -> None:
    several = [choice(-2.0), choice(0.0, 0.0, 0.0, key=(1,)), choice(key=("canary", 1 << 70))]
    logs.log_outcome(an_outcome(report=Report(choices=several)))
    (line,) = lines(out)
    assert (line["tokens"], line["geometric_mean_probability"]) == (4, math.exp(-0.5))
    assert (line["min_probability"], line["aligned"]) == (None, None)
    assert [(one["key"], one["tokens"], one["min_probability"]) for one in line["choices"]] == [
        ([0], 1, math.exp(-2)),
        ([1], 3, 1.0),
        ([None, None], 0, None),
    ]
    assert "canary" not in out.getvalue()


def test_choices_are_few(out: io.StringIO) -> None:
    logs.log_outcome(an_outcome(report=Report(choices=[choice(-1.0, key=(i,)) for i in range(1000)])))
    (line,) = lines(out)
    assert (line["tokens"], len(line["choices"])) == (1000, summary.MAX_CHOICES)


@pytest.mark.parametrize(
    ("logprobs", "mean", "least"),
    [((-9998.0,), 0.0, 0.0), ((-math.inf,), None, 0.0), ((math.nan,), None, None), ((0.0,), 1.0, 1.0)],
)
def test_numbers_are_finite_or_null(
    out: io.StringIO, logprobs: tuple[float, ...], mean: object, least: object
) -> None:
    logs.log_outcome(an_outcome(report=Report(choices=[choice(*logprobs)])))
    (line,) = lines(out)
    assert (line["geometric_mean_probability"], line["min_probability"]) == (mean, least)


FIELD = {
    "geometric_mean_probability": 0.5,
    "probability": 0.25,
    "min_probability": 0.1,
    "tokens": 2,
    "shared_tokens": 1,
}


def test_fields_are_told_by_pointer_few_and_clean(out: io.StringIO) -> None:
    many = {f"/{HOSTILE}/{index}": FIELD for index in range(100)} | {"/" + "y" * 1000: FIELD}
    logs.log_outcome(an_outcome(report=Report(choices=[choice(-1.0, told={"fields": many})])))
    logs.log_outcome(an_outcome(report=Report(choices=[choice(-1.0, told={"fields": None})])))
    logs.log_outcome(an_outcome(report=Report(choices=[choice(-1.0, told={"tokens": 1})])))
    first, second, third = lines(out)
    assert out.getvalue().count("\n") == 3
    assert first["fields_left_out"] == 101 - summary.MAX_FIELDS
    assert first["fields"]['/a\ufffdb\ufffdc\ufffdd\ufffde\ufffd"f\\/0'] == {
        name: FIELD[name] for name in summary.FIELD_NAMES
    }
    assert len(first["fields"]) == summary.MAX_FIELDS
    assert (second["fields"], "fields" in third) == (None, False)


def test_pointers_that_are_alike_once_cut_are_counted(out: io.StringIO) -> None:
    told: dict[str, object] = {"fields": {"/" + "y" * 200 + end: FIELD for end in "ab"}}
    logs.log_outcome(an_outcome(report=Report(choices=[choice(-1.0, told=told)])))
    (line,) = lines(out)
    assert (list(line["fields"]), line["fields_left_out"]) == (["/" + "y" * 127], 1)


async def test_the_callers_trace_passes_on_and_is_told() -> None:
    trace, state = (
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "rojo=00f067aa0ba902b7,congo=t61",
    )
    async with proxied(answering(sized(b"{}"))) as proxy:
        extra = f"traceparent: {trace}\r\nTraceState: {state}\r\n".encode()
        await proxy.ask(post(extra=extra))
        (seen,) = proxy.upstream.seen
        assert (seen.get(b"traceparent"), seen.get(b"tracestate")) == (trace.encode(), state.encode())
        line = logs.fields(await proxy.outcome())
    told = (line["trace_id"], line["span_id"], line["trace_flags"], line["tracestate"])
    assert told == (trace[3:35], trace[36:52], "01", state)


@pytest.mark.parametrize("fields", [True, False])
async def test_over_the_wire_names_of_fields_but_no_values(fields: bool) -> None:
    tokens = [("{", -0.1), ('"total"', -0.2), (":", -0.1), ('"', -0.1), ("canary", -0.5), ('"}', -0.1)]
    content = [
        {"token": token, "logprob": logprob, "bytes": list(token.encode())} for token, logprob in tokens
    ]
    message = {"role": "assistant", "content": "".join(token for token, _ in tokens)}
    one = {"index": 0, "message": message, "logprobs": {"content": content}, "finish_reason": "stop"}
    answer = json.dumps({"id": "chatcmpl-1", "model": "m", "choices": [one]}).encode()
    wish = json.dumps({"model": "m", "confidence": {"fields": fields}}).encode()
    async with proxied(answering(sized(answer))) as proxy:
        assert (await proxy.ask(post(wish))).status == 200
        line = logs.fields(await proxy.outcome())
    assert (line["tokens"], line["aligned"]) == (6, True)
    assert line["min_probability"] == math.exp(-0.5)
    told = dict.fromkeys(("geometric_mean_probability", "probability", "min_probability"), math.exp(-0.5))
    assert line.get("fields") == ({"/total": told} if fields else None)
    assert "canary" not in repr(line)


def test_without_a_report_there_are_no_figures(out: io.StringIO) -> None:
    logs.log_outcome(an_outcome(report=None, upstream_head=None, first_chunk=None))
    (line,) = lines(out)
    assert (line["id"], line["tokens"], line["perplexity"], line["first_chunk_ms"]) == (None, 0, None, None)
    assert "choices" not in line
    assert line["failures"] == {}


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, "info"),
        ({"status": 429}, "info"),
        ({"status": 400, "origin": "proxy"}, "info"),
        ({"status": 502, "origin": "proxy", "upstream_error": "connect"}, "error"),
        ({"upstream_error": "cut"}, "warning"),
        ({"report": Report(failures={"invalid_json": 1})}, "warning"),
        ({"error": "ValueError"}, "error"),
        ({"status": 503}, "info"),
    ],
)
def test_the_level_says_whether_something_went_wrong(
    out: io.StringIO, changes: dict[str, Any], level: str
) -> None:
    logs.log_outcome(an_outcome(**changes))
    assert lines(out)[0]["level"] == level


def test_a_problem_is_told_by_parameter_and_reason_not_by_message(out: io.StringIO) -> None:
    problem = Problem(400, "canary", param="top_logprobs", reason="range")
    logs.log_outcome(an_outcome(problem=problem, status=400, origin="proxy"))
    assert lines(out)[0]["problem"] == {"param": "top_logprobs", "reason": "range"}
    assert "canary" not in out.getvalue()


def test_foreign_names_cannot_break_the_line_and_are_cut(out: io.StringIO) -> None:
    report = Report(id=HOSTILE, model="y" * 1000)
    logs.log_outcome(an_outcome(model=HOSTILE + "x" * 1000, method=HOSTILE, report=report, error=HOSTILE))
    (line,) = lines(out)
    assert out.getvalue().count("\n") == 1
    assert line["model"].startswith('a\ufffdb\ufffdc\ufffdd\ufffde\ufffd"f\\xxx')
    assert len(line["model"]) == len(line["response_model"]) == 128


@given(
    st.dictionaries(
        st.text(st.characters(codec=None)),
        st.recursive(
            st.none() | st.floats() | st.integers() | st.text(st.characters(codec=None)) | st.binary(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.integers(), inner, max_size=3),
            max_leaves=5,
        ),
    ).filter(lambda event: not {"event", "level", "exc_info"} & event.keys())
)
def test_no_value_breaks_a_line(event: dict[str, Any]) -> None:
    stream = io.StringIO()
    logs.configure("info", stream)
    logs.get().info("something", **event)
    line, end = stream.getvalue().split("\n")
    assert end == ""
    assert orjson.loads(line)["event"] == "something"


def test_levels_are_kept(out: io.StringIO) -> None:
    logs.configure("warning", out)
    logs.log_outcome(an_outcome())
    logs.log_outcome(an_outcome(error="ValueError"))
    assert [line["level"] for line in lines(out)] == ["error"]


def test_exceptions_are_told_by_type_and_place(out: io.StringIO) -> None:
    def fails() -> None:
        raise ValueError("canary")

    try:
        fails()
    except ValueError as error:
        logs.get().error("failed", exc_info=error)
        logs.get().exception("failed")
        logs.get().error("failed", exc_info=(type(error), error, error.__traceback__))
    logs.get().error("failed", exc_info=ValueError("canary"))
    told = [line["exception"] for line in lines(out)]
    assert told[3] == "ValueError"
    for one in told[:3]:
        assert one.startswith("ValueError at test_logs.py:")
        assert one.endswith(" in fails")
    assert "canary" not in out.getvalue()


def test_of_a_library_only_the_template_is_told(out: io.StringIO) -> None:
    logger = logging.getLogger("some.library")
    try:
        raise RuntimeError("canary")
    except RuntimeError:
        logger.exception("it said %s", "canary")
    logger.warning("Task exception was never retrieved\nfuture: <Task exception=canary>")
    logger.debug("not even this: %s", "canary")
    logger.log(35, "between")
    first, second, third = lines(out)
    assert (first["event"], first["logger"], first["level"]) == ("it said %s", "some.library", "error")
    assert first["exception"].startswith("RuntimeError at test_logs.py:")
    assert second["event"] == "Task exception was never retrieved"
    assert third["level"] == "warning"
    assert "canary" not in out.getvalue()


def test_configuring_twice_writes_once(out: io.StringIO) -> None:
    logs.configure("info", out)
    logging.getLogger("x").warning("once")
    assert len(lines(out)) == 1


@pytest.mark.parametrize("error", [BrokenPipeError, OSError, ValueError])
def test_a_stream_that_cannot_be_written_fails_nobody(error: type[Exception]) -> None:
    class Broken:
        def write(self, text: str, /) -> None:
            raise error

        def flush(self) -> None:
            raise AssertionError

    logs.configure("info", Broken())
    logs.log_outcome(an_outcome())


def test_standard_output_is_utf_8_in_any_locale() -> None:
    script = "from proxy import logs; logs.configure('info'); logs.get().info('started', model='\\u6a21')"
    environ = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(__file__).parents[2])}
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environ, timeout=60)
    assert orjson.loads(result.stdout)["model"] == "\u6a21"


@pytest.fixture(autouse=True)
def as_it_was() -> Any:
    yield
    logs.configure("error", io.StringIO())
    root = logging.getLogger()
    root.handlers[:] = [one for one in root.handlers if not isinstance(one, logs._Libraries)]
    root.setLevel(logging.WARNING)


LONG = """
import sys
from pathlib import Path
from proxy import logs
logs.configure("info", lock=Path(sys.argv[1]))
for number in range(100):
    logs.get().info(sys.argv[2] * 200_000)
"""


def test_lines_of_several_processes_stay_whole(tmp_path: Path) -> None:
    """A pipe alone would mix them: each is longer than what it keeps together."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as pipe:
        writers = [
            subprocess.Popen([sys.executable, "-c", LONG, tmp_path / "lock", letter], stdout=pipe.stdin)
            for letter in "ab"
        ]
        assert pipe.stdin is not None
        assert pipe.stdout is not None
        pipe.stdin.close()
        found = [orjson.loads(line)["event"] for line in pipe.stdout]
        assert [writer.wait() for writer in writers] == [0, 0]
    assert sorted(found) == ["a" * 200_000] * 100 + ["b" * 200_000] * 100
