"""Options that several commands have, one by one and in groups that travel together."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.models import OptionInfo

from hck.backend.kinds import DEVICE_NAMES, KINDS

# Known without loading torch, so that help and completion are fast; tests see to it that nothing is missing.
DEVICES = tuple(KINDS)
TIMES = ("fast", "balanced", "best")
KERNELS = (
    *("gaussian", "laplace", "inverse_multiquadric", "matern12", "matern32", "matern52"),
    *("rational_quadratic", "periodic"),
)
APPROXIMATIONS = ("hierarchical", "compositional", "independent", "exact", "nystrom", "fourier", "tapered")


def given(help: str, **more: Any) -> OptionInfo:
    """An option without a default that says something."""
    return typer.Option(help=help, show_default=False, **more)


def chosen(help: str, names: tuple[str, ...], default: bool | str = True) -> OptionInfo:
    """An option whose value the shell completes."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return typer.Option(help=help, show_default=default, autocompletion=complete)


class Task(StrEnum):
    """What to learn."""

    auto = "auto"
    regression = "regression"
    classification = "classification"
    gp = "gp"


AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Device = Annotated[str, chosen(f"{DEVICE_NAMES}.", DEVICES)]
Model = Annotated[Path, typer.Argument(help="A folder that `hck fit` wrote.", show_default=False)]
Data = Annotated[
    Path, typer.Argument(help="CSV, parquet, npz or LIBSVM text (also .gz, .bz2, .xz).", show_default=False)
]
Target = Annotated[str | None, given("The column to predict (CSV and parquet).")]
Part = Annotated[
    str | None,
    typer.Option(help="Of an npz file with X_train, X_test, …: which. By default train to learn, else test."),
]


@dataclass(frozen=True)
class Shown:
    """How a result is printed."""

    as_json: AsJson = False
    quiet: Quiet = False


@dataclass(frozen=True)
class Output:
    """How a result is written to a file, and printed."""

    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False
    as_json: AsJson = False
    quiet: Quiet = False


@dataclass(frozen=True)
class Training:
    """What is trained on, and where."""

    part: Part = None
    device: Device = "cpu"
    seed: Annotated[int, typer.Option(help="Makes the result reproducible.")] = 0


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command as typer takes it: in the place of each group of options, these options themselves."""
    hints = inspect.get_annotations(command)
    groups: dict[str, type] = {
        name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)
    }
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        group = groups.get(parameter.name)
        parameters += inspect.signature(group).parameters.values() if group else [parameter]

    @wraps(command)
    def run(**given: object) -> None:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    flat = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    run.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in flat}
    return run
