"""`serve` and `demo`: a proxy in this process, and what a person is told about it.

Law: standard output is for the log (`serve`) or the show (`demo`); what a person reads at the start goes to
standard error. The first line is for scripts too: `logprob-proxy VERSION listening on URL`.
"""

import asyncio
import sys
from pathlib import Path
from typing import TextIO

import click

from proxy import __version__, logs
from proxy import demo as model
from proxy.metrics import Metrics, workers
from proxy.profiles import pick
from proxy.server import Server, StartError, Supervisor, started
from proxy.settings import Settings

_EVERY_INTERFACE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - shown, not bound


def serve(settings: Settings) -> int:
    """Run until a signal; the exit code."""
    try:
        if settings.workers == 1:
            logs.configure(settings.log_level)
            asyncio.run(_serve(settings))
        else:
            _serve_by_several(settings)
    except (ListenError, StartError) as error:
        click.echo(f"error: {error}", err=True)
        return 1
    return 0


class ListenError(Exception):
    """An address is not to be had."""

    def __init__(self, error: OSError) -> None:
        reason = error.strerror or type(error).__name__
        super().__init__(f"cannot listen: {reason}; --listen and --admin choose other addresses")


async def _serve(settings: Settings) -> None:
    try:
        server = await started(settings, Metrics(settings))
    except OSError as error:
        raise ListenError(error) from error
    await _run(settings, server)


def _serve_by_several(settings: Settings) -> None:
    parent = None if settings.metrics_dir is None else Path(settings.metrics_dir)
    try:
        with workers.directory(parent) as together:
            logs.configure(settings.log_level, lock=together / "log")
            asyncio.run(_supervise(settings, together))
    except workers.DirectoryError as error:
        raise StartError(
            f"--workers {settings.workers} needs a directory to write to, and {error}; mount one there (in Kubernetes an"
            " emptyDir, in Docker a tmpfs) or name another one with --metrics-dir, such as /dev/shm"
        ) from error


async def _supervise(settings: Settings, together: Path) -> None:
    profile, _ = pick(settings.profile, settings.upstream)
    supervisor = Supervisor(settings, profile, together)
    try:
        await supervisor.start()
    except OSError as error:
        raise ListenError(error) from error
    await _run(settings, supervisor)


async def _run(settings: Settings, server: Server | Supervisor) -> None:
    # Said once the loop turns, when `run` has taken the signals: who reads it may send one at once.
    asyncio.get_running_loop().call_soon(_say, _announcement(settings, server), sys.stderr)
    await server.run()


def demo(*, prompt: str | None, once: bool, out: TextIO) -> int:
    """Model and proxy together; the exit code."""
    logs.configure("warning", sys.stderr)
    return asyncio.run(_demo(prompt, once, out))


async def _demo(prompt: str | None, once: bool, out: TextIO) -> int:
    running: list[Server] = []

    async def start_proxy(upstream: str) -> str:
        settings = Settings(upstream=upstream)
        try:
            running.append(await started(settings, Metrics(settings)))
        except OSError:
            # Somebody has these ports, perhaps a proxy that serves: any others do as well.
            settings = Settings(upstream=upstream, listen="127.0.0.1:0", admin="127.0.0.1:0")
            running.append(await started(settings, Metrics(settings)))
        _say([_headline(running[0]), _metrics(running[0])], out)
        return _url(running[0].address)

    try:
        return await model.run(start_proxy, prompt=prompt, stay=not once, out=out)
    finally:
        for server in running:
            await server.close()


def _announcement(settings: Settings, server: Server | Supervisor) -> list[str]:
    profile, why = pick(settings.profile, settings.upstream)
    return [
        _headline(server),
        f"  forwards to  {settings.upstream}",
        f"  profile      {profile.name} ({why}; --profile changes it)",
        *([f"  workers      {settings.workers}"] if settings.workers > 1 else []),
        _metrics(server),
        f"  base_url     {_url(server.address, callable_here=True)}/v1",
    ]


def _headline(server: Server | Supervisor) -> str:
    return f"logprob-proxy {__version__} listening on {_url(server.address)}"


def _metrics(server: Server | Supervisor) -> str:
    return f"  metrics      {_url(server.admin_address) + '/metrics' if server.admin_address else 'off'}"


def _say(lines: list[str], out: TextIO) -> None:
    click.echo("\n".join(lines), file=out)


def _url(address: tuple[str, int], *, callable_here: bool = False) -> str:
    host, port = address
    if callable_here:
        host = _EVERY_INTERFACE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
