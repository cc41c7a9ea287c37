"""JSON lines on standard output: one for each request, and few others.

Law: numbers, names and closed words; never a key, a cookie, a header's value, a query, a prompt or a
completion, at any level. What others say (libraries, exceptions) is data of unknown origin: of a library's
record only the template is written, never the arguments; of an exception its type and place, never its text.
Names of an answer's fields, which the model wrote, are there where the client asked for fields, cut and cleaned.
A line is one line, whatever is in it, and writing it never raises.
"""

import fcntl
import io
import logging
import sys
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Protocol

import orjson
import structlog

from proxy.core.names import clean
from proxy.core.report import Outcome
from proxy.core.summary import summary

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class Stream(Protocol):
    """Where lines go."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


def configure(level: str, stream: Stream | None = None, *, lock: Path | None = None) -> None:
    """Send all lines from `level` up to `stream` (standard output), those of libraries among them.

    Processes that write to one stream name one file as `lock`: a pipe keeps only 4 KiB together (POSIX, PIPE_BUF), and
    a line may be longer.
    """
    turns = None if lock is None else lock.open("wb")
    if stream is None and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # JSON is, whatever the locale
    structlog.configure(
        processors=[_stamp, _place_exception, _render],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *_: _Lines(stream or sys.stdout, turns),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers[:] = [*(one for one in root.handlers if not isinstance(one, _Libraries)), _Libraries()]
    # A library's debug lines are about itself, and some print what they were given.
    root.setLevel(max(_LEVELS[level], logging.WARNING))


def get() -> structlog.typing.FilteringBoundLogger:
    """The logger; as configured when it writes, not when it was got."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return logger


def log_outcome(outcome: Outcome) -> None:
    """The line of one request."""
    get().log(_LEVELS[_level(outcome)], "request", **fields(outcome))


def fields(outcome: Outcome) -> dict[str, object]:
    """What the line of a request says. `time` is when it was over; `duration_ms` earlier it began."""
    report = outcome.report
    problem = outcome.problem
    trace = outcome.trace
    return {
        "time": _rfc3339(outcome.time + outcome.duration),
        "id": _clean(report.id if report else None),
        "trace_id": trace.trace_id if trace else None,
        "span_id": trace.span_id if trace else None,
        "trace_flags": trace.flags if trace else None,
        "tracestate": trace.state if trace else None,
        "method": _clean(outcome.method),
        "api": outcome.api,
        "format": outcome.format,
        "model": _clean(outcome.model),
        "response_model": _clean(report.model if report else None),
        "status": outcome.status,
        "origin": outcome.origin,
        "outcome": outcome.outcome,
        "stream": outcome.stream,
        **summary(report.choices if report else ()),
        "duration_ms": _ms(outcome.duration),
        "first_chunk_ms": _ms(outcome.first_chunk),
        "upstream_head_ms": _ms(outcome.upstream_head),
        "rewrite_ms": _ms(outcome.rewrite_seconds),
        "request_bytes": outcome.request_bytes,
        "response_bytes": outcome.response_bytes,
        "upstream_error": outcome.upstream_error,
        # Not the message: it may speak of what the client sent.
        "problem": {"param": _clean(problem.param), "reason": problem.reason} if problem else None,
        "failures": report.failures if report else {},
        "error": _clean(outcome.error),
    }


def _clean(name: str | None) -> str | None:
    return None if name is None else clean(name)


def _level(outcome: Outcome) -> str:
    if outcome.error or (outcome.origin == "proxy" and outcome.status >= 500):
        return "error"
    if outcome.upstream_error or (outcome.report and outcome.report.failures):
        return "warning"
    return "info"


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _stamp(_: object, level: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    time = event.pop("time", None) or _rfc3339(datetime.now(UTC).timestamp())
    return {"time": time, "level": level, "event": event.pop("event", ""), **event}


def _place_exception(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """`exc_info` becomes the exception's type and place: its text may hold anything."""
    info = event.pop("exc_info", None)
    if info:
        error = (
            info
            if isinstance(info, BaseException)
            else info[1]
            if isinstance(info, tuple)
            else sys.exception()
        )
        if error is not None:
            event["exception"] = f"{type(error).__name__}{_place(error.__traceback__)}"
    return event


def _place(traceback: TracebackType | None) -> str:
    if traceback is None:
        return ""
    while traceback.tb_next:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code
    return f" at {Path(code.co_filename).name}:{traceback.tb_lineno} in {code.co_name}"


def _render(_: object, __: str, event: Mapping[str, Any]) -> str:
    try:
        return orjson.dumps(event, default=_unknown, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        # A lone surrogate, an integer beyond 64 bits or the like: the line is worth more than that value.
        return orjson.dumps({clean(str(key)): clean(str(value)) for key, value in event.items()}).decode()


def _unknown(value: object) -> str:
    return type(value).__name__


class _Lines:
    """structlog's end: a method for each level, all the same."""

    def __init__(self, stream: Stream, turns: BinaryIO | None) -> None:
        self._stream = stream
        self._turns = turns

    def msg(self, line: str) -> None:
        try:
            if self._turns is not None:
                fcntl.flock(self._turns, fcntl.LOCK_EX)
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            # A full disk, a closed pipe: no reason to fail a request.
            pass
        finally:
            if self._turns is not None:
                fcntl.flock(self._turns, fcntl.LOCK_UN)

    debug = info = warning = error = critical = exception = log = msg


class _Libraries(logging.Handler):
    """Records of libraries, as lines like ours."""

    def emit(self, record: logging.LogRecord) -> None:
        # asyncio writes the failed task behind the first line, and with it what the exception says.
        template = str(record.msg).partition("\n")[0]
        level = min(max(record.levelno // 10 * 10, logging.DEBUG), logging.CRITICAL)
        exc_info = record.exc_info[1] if record.exc_info else None
        get().log(level, clean(template), logger=record.name, exc_info=exc_info)
