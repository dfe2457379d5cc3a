"""All commands."""

import sys
import warnings
from typing import Annotated

import typer

from hck._version import __version__
from hck.cli._common import explain, warn
from hck.cli._options import grouped
from hck.cli.compare import compare
from hck.cli.compile import compile_
from hck.cli.fit import fit
from hck.cli.inspect import info, report
from hck.cli.measure import bench, demo, reproduce
from hck.cli.predict import evaluate, predict

app = typer.Typer(
    help="Kernel machines and Gaussian processes on millions of points.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Kernel machines and Gaussian processes on millions of points."""


for _command in (fit, predict, evaluate, info, report, compare, reproduce, bench, demo, compile_):
    app.command(_command.__name__.rstrip("_"))(grouped(_command))


def run() -> None:
    """Run a command; what went wrong is said in a line, with an exit code of 1, or 130 if interrupted."""
    warnings.showwarning = warn
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # so that every terminal can show every name
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except KeyboardInterrupt:
        print("hck: interrupted", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        sys.exit(explain(error))
