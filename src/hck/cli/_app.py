"""All commands."""

import sys
from typing import Annotated

import typer

from hck.cli import compare, fit, inspect, measure, predict
from hck.cli._common import explain, one_line_warnings

app = typer.Typer(
    help="Kernel machines and Gaussian processes on millions of points.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from hck import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Kernel machines and Gaussian processes on millions of points."""


app.command("fit")(fit.fit)
app.command("predict")(predict.predict)
app.command("evaluate")(predict.evaluate)
app.command("info")(inspect.info)
app.command("report")(inspect.report)
app.command("compare")(compare.compare)
app.command("reproduce")(measure.reproduce)
app.command("bench")(measure.bench)
app.command("demo")(measure.demo)


def run() -> None:
    """Run a command; what went wrong is said in a line, with an exit code of 1, or 130 if interrupted."""
    one_line_warnings()
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        sys.exit(explain(error))
