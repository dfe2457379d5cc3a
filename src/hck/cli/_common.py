"""What the commands share: options, messages, files."""

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from hck.files import replacing

Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Device = Annotated[str, typer.Option(help="cpu or cuda.")]
Seed = Annotated[int, typer.Option(help="Makes the result reproducible.")]
Model = Annotated[Path, typer.Argument(help="A folder that `hck fit` wrote.", show_default=False)]
Data = Annotated[
    Path,
    typer.Argument(help="CSV, parquet, npz or LIBSVM text (also .gz, .bz2, .xz).", show_default=False),
]
Target = Annotated[str | None, typer.Option(help="The column to predict (CSV and parquet).")]

messages = Console(stderr=True)  # results go to stdout, so that they can be piped


def explain(error: Exception) -> int:
    """Say in a line what went wrong; the exit code."""
    if os.environ.get("HCK_DEBUG"):
        traceback.print_exc()
    known = isinstance(error, ValueError | TypeError | OSError | MemoryError | ImportError)
    text = " ".join(str(error).split()) or type(error).__name__
    print(f"hck: {text}" if known else f"hck: {type(error).__name__}: {text}", file=sys.stderr)
    if not known:
        print("This looks like a mistake of hck's; HCK_DEBUG=1 shows where.", file=sys.stderr)
    return 1


def progress(quiet: bool) -> int:
    """`verbose` of an estimator: progress is shown to people, not to files and pipes."""
    return int(not quiet and sys.stderr.isatty())


def free(path: Path, force: bool) -> None:
    """Raise FileExistsError if something is there that must not be overwritten."""
    if path.exists() and not force:
        raise FileExistsError(f"{path} is there already: use --force to overwrite it, or another name")


def write(path: Path, text: str, force: bool = False) -> None:
    """Write a file; if that is interrupted, the old one stays."""
    free(path, force)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as draft:
        draft.write_text(text)


def show(result: dict[str, Any], as_json: bool, title: str = "") -> None:
    """Print a result: as JSON, or as a table of names and values."""
    if as_json:
        print(json.dumps(result, indent=1, default=str))
        return
    table = Table(title=title or None, show_header=False, title_justify="left")
    for name, value in result.items():
        table.add_row(name.replace("_", " "), f"{value:.5g}" if isinstance(value, float) else str(value))
    Console().print(table)
