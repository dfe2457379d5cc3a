"""hck info, hck report"""

from pathlib import Path
from typing import Annotated, Any

import typer

from hck.cli import _options as option
from hck.cli._common import busy, free, show


def info(model: option.Model, as_json: option.AsJson = False) -> None:
    """What a saved model is: parameters, trees, size."""
    from hck.persistence import load

    loaded = load(model, "cpu")
    show(facts_of(loaded) | {"bytes_on_disk": size(model)}, as_json, str(model))


def facts_of(model: Any) -> dict[str, Any]:
    """A model in a few names and values."""
    notes = getattr(model, "notes_", {})
    found: dict[str, Any] = {"estimator": type(model).__name__}
    found |= {name: notes[name] for name in ("task", "target") if name in notes}
    chosen = getattr(model, "selection_", None)
    if chosen is not None:
        found |= {"kernel": str(chosen.kernel), "alpha": float(chosen.alpha), "rank": chosen.rank}
    elif hasattr(model, "kernel_"):
        found |= {"kernel": str(model.kernel_), "noise": model.noise_, "rank": model.rank}
    found["approximation"] = str(model.approximation)
    trees = model.trees_
    if trees:
        sizes = trees[0].size[trees[0].leaves]
        found |= {
            "points": trees[0].n_points,
            "trees": len(trees),
            "leaves": trees[0].n_leaves,
            "depth": trees[0].depth,
            "leaf_sizes": f"{int(sizes.min())} to {int(sizes.max())}",
        }
    found["features"] = getattr(model, "n_features_in_", "objects")
    if hasattr(model, "classes_"):
        found["classes"] = ", ".join(map(str, model.classes_[:20]))
    found |= {name: value for name, value in notes.items() if name.startswith("left_out")}
    return found


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def report(
    model: option.Model,
    data: Annotated[Path, typer.Option(help="Test data, with the target.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The HTML file.", show_default=False)],
    target: option.Target = None,
    part: option.Part = None,
    force: option.Force = False,
    as_json: option.AsJson = False,
    quiet: option.Quiet = False,
) -> None:
    """A page with figures about a saved model on test data, in one file.

    [bold]hck report model/ --data test.csv --out report.html[/bold]
    """
    from hck.cli._tables import for_model, known_target
    from hck.persistence import load
    from hck.report import write_report

    free(out, force)
    loaded = load(model)
    X, y = for_model(loaded, data, target, part)
    y = known_target(loaded, y, data)
    with busy("predicting and drawing …", quiet):
        write_report(loaded, X, y, out, title=f"{model.name} on {data.name}", force=force)
    show({"report": str(out), "bytes": out.stat().st_size}, as_json)
