"""The commands: what they take, and nothing of what they do.

Law: importing this is quick: a command's own module, and what that needs, is imported when it runs. Bad
configuration ends with 2, an end the machine forced with 1; either is said in lines, never by a traceback.
"""

import os
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, Final, TypeVar

import click
from click.core import ParameterSource

from proxy import __version__
from proxy.settings import SETTINGS, Loaded, Setting, SettingsError, kinds, load

NAME: Final = "logprob-proxy"

USAGE: Final = f"""\
Which API should the proxy stand before? For OpenAI, and for a local vLLM:

  {NAME} serve --upstream https://api.openai.com
  {NAME} serve --upstream http://127.0.0.1:8000 --profile vllm
"""

Command = TypeVar("Command", bound=Callable[..., Any])


def main() -> None:
    """The console script."""
    commands(prog_name=NAME)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, message="%(prog)s %(version)s")
def commands() -> None:
    """Stands between clients and an LLM API and writes a probability beside every logprob."""


def _with_settings(command: Command) -> Command:
    for row in reversed(SETTINGS):
        command = _option(row)(command)
    return click.option("--config", metavar="FILE", help="YAML file with settings. [LOGPROB_PROXY_CONFIG]")(
        command
    )


def _option(row: Setting) -> Callable[[Command], Command]:
    # Values stay text: `settings` reads all sources by one reader and tells all faults at once. For the same
    # reason the variable is named in the help only, and read there.
    default = f"; default: {row.shown(row.default)}" if row.shown(row.default) else ""
    text = f"{row.help} [{row.env}{default}]"
    if row.kind is kinds.SWITCH:
        return click.option(f"{row.flag}/--no-{row.flag[2:]}", row.name, default=None, help=text)
    return click.option(row.flag, row.name, metavar=row.kind.metavar, help=text)


def _load(ctx: click.Context) -> Loaded:
    """The effective settings; ends the command where they are faulty."""
    given = {
        name: kinds.SWITCH.show(value) if isinstance(value, bool) else value
        for name, value in ctx.params.items()
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    try:
        loaded = load(given, os.environ, given.pop("config", None))
    except SettingsError as error:
        for line in error.lines:
            click.echo(f"error: {line}", err=True)
        ctx.exit(2)
    for line in loaded.warnings:
        click.echo(f"warning: {line}", err=True)
    return loaded


def _serving() -> Any:
    # prometheus_client looks for this at its import, and would write into the directory of whoever has set it.
    os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
    from proxy.cli import serving

    return serving


@commands.command()
@_with_settings
@click.pass_context
def serve(ctx: click.Context, /, **_: object) -> None:
    """Run the proxy.

    SIGTERM and SIGINT let answers finish; a second one ends at once.
    """
    settings = _load(ctx).settings
    if not settings.upstream:
        click.echo(USAGE, err=True, nl=False)
        ctx.exit(2)
    ctx.exit(_serving().serve(settings))


@commands.command()
@_with_settings
@click.pass_context
def check(ctx: click.Context, /, **_: object) -> None:
    """Print the settings that `serve` would run with, and where each comes from."""
    loaded = _load(ctx)
    rows = [
        (row.name, row.shown(getattr(loaded.settings, row.name)) or "(not set)", loaded.sources[row.name])
        for row in SETTINGS
    ]
    _print_table([("setting", "value", "from"), *rows])
    if not loaded.settings.upstream:
        click.echo(f"error: {SETTINGS[0].flag}: is not set, and `serve` needs it", err=True)
        ctx.exit(2)


@commands.command()
@click.option(
    "--format",
    "name",
    metavar="NAME",
    help="Format of the answer; `formats` lists them. Found by itself if only one fits.",
)
@click.option("--report", is_flag=True, help="Print what was counted, as JSON on standard error.")
@click.pass_context
def enrich(ctx: click.Context, name: str | None, report: bool) -> None:
    """Read an answer or a stream of events on stdin, write it with probabilities on stdout as it comes."""
    from proxy.cli import enriching

    ctx.exit(enriching.enrich(name, report=report))


@commands.command()
@click.argument("file", type=click.File("rb"), metavar="FILE")
@click.option("--confidence", metavar="MEMBER", default="confidence", show_default=True, help="0 to 1.")
@click.option(
    "--correct", metavar="MEMBER", default="correct", show_default=True, help="true, false, 1 or 0."
)
@click.option(
    "--precision",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.9,
    show_default=True,
    help="Share of right answers that a threshold is wanted for.",
)
@click.option(
    "--plot", metavar="OUT.png|OUT.svg", help="Draw a reliability diagram; needs the extra `calibrate`."
)
@click.option(
    "--bootstrap",
    type=click.IntRange(0, 100_000),
    default=1000,
    show_default=True,
    help="Resamples; 0: no intervals.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the resamples.")
@click.pass_context
def calibrate(ctx: click.Context, /, file: BinaryIO, **options: Any) -> None:
    """Print how well a confidence tells right answers from wrong ones.

    FILE (- for standard input) holds a JSON object a line, with a confidence and whether the answer was right. A MEMBER
    is a name, names with dots between them, or a JSON Pointer: the proxy's log has `geometric_mean_probability`.
    """
    from proxy.cli import calibrating

    ctx.exit(calibrating.calibrate(file, **options))


@commands.command()
@click.option("--prompt", metavar="TEXT", help="What to ask the model.")
@click.option("--once", is_flag=True, help="End after the answer.")
@click.pass_context
def demo(ctx: click.Context, prompt: str | None, once: bool) -> None:
    """Run a small real model behind the proxy, show one answer token by token, and stay up."""
    ctx.exit(_serving().demo(prompt=prompt, once=once, out=sys.stdout))


@commands.command()
def formats() -> None:
    """List the endpoints whose answers are understood, and the profiles requests can be checked against."""
    from proxy import profiles
    from proxy.formats import FORMATS

    _print_table(
        [("format", "api", "routes"), *((fmt.name, fmt.api, "  ".join(fmt.routes)) for fmt in FORMATS)]
    )
    click.echo()
    _print_table(profiles.table())


def _print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
