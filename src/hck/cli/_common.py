"""What the commands share: messages, files, results."""

import json
import math
import os
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console
from rich.table import Table as PrintedTable
from rich.text import Text

from hck.backend.files import is_stdout, regular, replacing
from hck.backend.text import harmless
from hck.cli._options import DEVICES, TIMES

if TYPE_CHECKING:
    from hck.estimators.base import HCKEstimator

Estimator: TypeAlias = "HCKEstimator"  # known by name, since torch is imported where it is needed
messages = Console(stderr=True)  # results go to stdout, so that they can be piped


def explain(error: Exception) -> int:
    """Say in a line what went wrong; the exit code."""
    if os.environ.get("HCK_DEBUG"):
        traceback.print_exc()
    known = isinstance(error, ValueError | TypeError | OSError | MemoryError | ImportError)
    text = harmless(" ".join(str(error).split())) or type(error).__name__
    print(f"hck: {text}" if known else f"hck: {type(error).__name__}: {text}", file=sys.stderr)
    if not known:
        print("This looks like a mistake of hck's; HCK_DEBUG=1 shows where.", file=sys.stderr)
    return 1


def warn(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Say in a line what a warning says to people; what it says to programmers is left out."""
    if issubclass(category, UserWarning):
        print(f"hck: {harmless(' '.join(str(message).split()))}", file=sys.stderr)


def progress(quiet: bool) -> int:
    """`verbose` of an estimator: progress is shown to people, not to files and pipes."""
    return int(not quiet and sys.stderr.isatty())


def busy(what: str, quiet: bool) -> AbstractContextManager[object]:
    """Show that something goes on, of which nobody knows how long it takes."""
    return messages.status(what) if progress(quiet) else nullcontext()


def one_of(option: str, value: str, known: tuple[str, ...]) -> str:
    """The value of an option, if it is known."""
    if value not in known:
        raise ValueError(f"{option} {value!r} is not known; use one of {', '.join(known)}")
    return value


def names_in(text: str) -> list[str]:
    """Names with commas between."""
    return [name for name in map(str.strip, text.split(",")) if name]


def as_time(text: str) -> str | float:
    """Of `fit_time`: a name or seconds."""
    if text in TIMES:
        return text
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (0 < seconds < math.inf):
        raise ValueError(f"--fit-time {text} is not known: use fast, balanced, best or seconds")
    return seconds


def check_device(device: str) -> str:
    """The device, if it is there."""
    from hck.backend.device import is_available  # which imports torch

    name = one_of("--device", device.split(":")[0], DEVICES)
    if not is_available(device):
        raise ValueError(
            f"--device {device} was asked for, but torch finds no {name.upper()} device: use cpu"
        )
    return device


# Files -----------------------------------------------------------------------------------------------


def free(path: Path, force: bool) -> None:
    """Raise an error if a file cannot be written here, or if one is here that must not be overwritten."""
    if is_stdout(path):
        return
    target = regular(path)
    _free(path, force)
    if target is not None and not target.parent.is_dir():
        raise FileNotFoundError(f"{path} is a link to {target}, but there is no folder {target.parent}")


def free_folder(path: Path, force: bool) -> None:
    """Raise an error if a model cannot be saved here."""
    from hck.persistence.folder import check_target

    if path.is_dir() and not force:
        _free(path, force)
    check_target(path, force)


def _free(path: Path, force: bool) -> None:
    if path.exists() and not force:
        raise FileExistsError(f"{path} is there already: use --force to overwrite it, or another name")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into: make it first")


def write(path: Path, text: str) -> None:
    """Write a file; if that is interrupted, the old one stays."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


# Results ---------------------------------------------------------------------------------------------


def show_written(path: Path, result: Mapping[str, object], as_json: bool) -> None:
    """Print what was written to a file; nothing if it was printed itself."""
    if not is_stdout(path):
        show(result, as_json)


def show(result: Mapping[str, object], as_json: bool, title: str = "") -> None:
    """Print a result: as JSON, or as a table of names and values."""
    if as_json:
        say(json.dumps(_plain(result), indent=1, default=str, allow_nan=False))
        return
    table = PrintedTable(title=_cell(title) if title else None, show_header=False, title_justify="left")
    for name, value in result.items():
        text = f"{value:.5g}" if isinstance(value, float) else str(value)
        table.add_row(_cell(name.replace("_", " ")), _cell(text))
    say(table)


def tabulate(
    head: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None, numbers: bool = True
) -> None:
    """Print a table; numbers, in all columns but the first, end below each other."""
    table = PrintedTable(title=_cell(title) if title else None)
    for k, name in enumerate(head):
        table.add_column(_cell(name), justify="right" if numbers and k else "left", no_wrap=not k)
    for row in rows:
        table.add_row(*map(_cell, row))
    say(table)


def say(result: str | PrintedTable) -> None:
    """Print text or a table; if nobody reads it, that is all right, since the work is done."""
    console = Console()
    with console.capture() as printed:
        console.print(result, soft_wrap=isinstance(result, str), markup=False, highlight=False)
    encoding = sys.stdout.encoding or "utf-8"
    try:  # what the terminal has no letters for is written out
        sys.stdout.write(printed.get().encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # into which the interpreter flushes what is left


def _cell(text: str) -> Text:
    """Of a table: nothing in it is markup."""
    return Text(harmless(text))


def _plain(value: object) -> object:
    """What JSON can say: numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
