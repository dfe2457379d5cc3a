"""Options that several commands have."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hck.backend.kinds import DEVICE_NAMES, KINDS

# Known without loading torch, so that help and completion are fast; tests see to it that nothing is missing.
DEVICES = tuple(KINDS)
TIMES = ("fast", "balanced", "best")
_SOURCE = Path(__file__).parents[1] / "kernels" / "families.py"
KERNELS = tuple(re.findall(r'^@named\("(\w+)"', _SOURCE.read_text(encoding="utf-8"), re.MULTILINE))
APPROXIMATIONS = ("hierarchical", "compositional", "independent", "exact", "nystrom", "fourier", "tapered")


def known(names: tuple[str, ...]) -> Any:
    """For shell completion."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


class Kind(StrEnum):
    """What to learn."""

    auto = "auto"
    regression = "regression"
    classification = "classification"
    gp = "gp"


Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Device = Annotated[str, typer.Option(help=f"{DEVICE_NAMES}.", autocompletion=known(DEVICES))]
Seed = Annotated[int, typer.Option(help="Makes the result reproducible.")]
Model = Annotated[Path, typer.Argument(help="A folder that `hck fit` wrote.", show_default=False)]
Data = Annotated[
    Path, typer.Argument(help="CSV, parquet, npz or LIBSVM text (also .gz, .bz2, .xz).", show_default=False)
]
Target = Annotated[
    str | None, typer.Option(help="The column to predict (CSV and parquet).", show_default=False)
]
Part = Annotated[
    str | None,
    typer.Option(help="Of an npz file with X_train, X_test, …: which. By default train to learn, else test."),
]
Task = Annotated[Kind, typer.Option(help="What to learn; auto looks at the target. gp: a Gaussian process.")]
FitTime = Annotated[
    str | None,
    typer.Option(
        help="fast, balanced, best, or seconds.", autocompletion=known(TIMES), show_default="balanced"
    ),
]
Approximation = Annotated[
    str,
    typer.Option(
        help=f"What stands in for the kernel: {', '.join(APPROXIMATIONS)}.",
        autocompletion=known(APPROXIMATIONS),
    ),
]
