"""A real model on this machine, so that there is something to look at without a key: the command `demo`.

model    finds the model file, or fetches it once
server   the model server as a child process
llama    that process: llama.cpp's own server
show     streams one answer through the proxy with the official client and prints what arrives

xllamacpp and openai are the extra `demo`; nothing here imports them before it is known that they are there.
"""

from __future__ import annotations

import asyncio
import contextlib
import platform
import signal
from collections.abc import Awaitable, Callable, Iterator
from importlib.util import find_spec
from typing import TextIO

import orjson

from proxy.demo import model, server, show

PROMPT = "Write one sentence about the sea."

_INTERRUPTED = 130  # what shells expect of a program that SIGINT ended before its work was done


async def run(
    start_proxy: Callable[[str], Awaitable[str]],
    *,
    prompt: str | None,
    stay: bool,
    out: TextIO,
) -> int:
    """Model, proxy before it, one answer; then, with `stay`, up until SIGINT or SIGTERM. Returns the exit code.

    `start_proxy` gets the model server's URL, starts the proxy in this process and returns the proxy's URL.
    SIGINT and SIGTERM are this function's as long as it runs.
    """
    hint = missing()
    if hint:
        print(hint, file=out)
        return 2

    shown = False
    with _cancelled_by_signals() as cancelled:
        try:
            path = await model.provide(out)
            async with server.running(path, out) as upstream:
                url = (await start_proxy(upstream)).rstrip("/")
                cancelled.watch()  # the proxy may have put its own handlers there
                shown = await show.stream(f"{url}/v1", prompt or PROMPT, out)
                if not shown:
                    return 1
                if stay:
                    _print_what_to_try(url, out)
                    await asyncio.Event().wait()
        except (model.ModelError, server.ServerError) as problem:
            print(f"demo: {problem}", file=out)
            return 1
        except asyncio.CancelledError:
            if not cancelled.by_signal:
                raise
            print("\nstopped", file=out)
            return 0 if shown else _INTERRUPTED
    return 0


def missing() -> str | None:
    """What to type if the extra is not installed, or None if it is."""
    absent = [name for name in ("xllamacpp", "openai") if find_spec(name) is None]
    if not absent:
        return None
    needs = (
        f"demo needs {' and '.join(absent)}, which {'is' if len(absent) == 1 else 'are'} not installed here."
    )
    if "xllamacpp" in absent and not _has_wheels():
        return (
            f"{needs}\nThere is no prebuilt xllamacpp for {platform.system()} on {platform.machine()}, so the demo's"
            " model cannot run on this machine.\nThe proxy can: put it before any server that returns logprobs:\n"
            "  logprob-proxy serve --upstream URL"
        )
    return (
        f"{needs}\nInstall the extra:\n"
        "  pip install 'logprob-proxy[demo]'      (in a checkout: pip install '.[demo]')\n"
        "or put the proxy before a server of your own:\n"
        "  logprob-proxy serve --upstream URL"
    )


def _has_wheels() -> bool:
    # The marker of the extra `demo` in pyproject.toml says the same.
    return (platform.system(), platform.machine()) in {
        ("Linux", "x86_64"),
        ("Linux", "aarch64"),
        ("Darwin", "x86_64"),
        ("Darwin", "arm64"),
        ("Windows", "AMD64"),
    }


def _print_what_to_try(url: str, out: TextIO) -> None:
    body = {
        "model": model.MODEL_NAME,
        "messages": [{"role": "user", "content": "Say hello."}],
        "max_tokens": 8,
        "logprobs": True,
        "top_logprobs": 2,
    }
    print(
        f"\nThe proxy stays up (Ctrl-C ends it). Point a client at it:\n\n"
        f'  base_url="{url}/v1"\n\n'
        f"or try\n\n"
        f"  curl -s {url}/v1/chat/completions -H 'Content-Type: application/json' \\\n"
        f"    -d '{orjson.dumps(body).decode()}'\n",
        file=out,
        flush=True,
    )


class _Cancelled:
    """Turns SIGINT and SIGTERM into the cancellation of the task that runs the demo, so that children are ended."""

    def __init__(self) -> None:
        self.by_signal = False
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()

    def watch(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            # Not on every platform's loop; there Ctrl-C still raises KeyboardInterrupt.
            with contextlib.suppress(NotImplementedError):
                self._loop.add_signal_handler(number, self._stop)

    def unwatch(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):
                self._loop.remove_signal_handler(number)

    def _stop(self) -> None:
        self.by_signal = True
        self.unwatch()  # a second signal ends the process at once
        if self._task is not None:
            self._task.cancel()


@contextlib.contextmanager
def _cancelled_by_signals() -> Iterator[_Cancelled]:
    cancelled = _Cancelled()
    cancelled.watch()
    try:
        yield cancelled
    finally:
        cancelled.unwatch()
        if cancelled.by_signal and cancelled._task is not None:
            cancelled._task.uncancel()  # answered by the exit code
