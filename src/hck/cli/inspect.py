"""hck info, hck report"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from hck.backend.files import is_stdout
from hck.cli import _options as option
from hck.cli._common import Estimator, busy, free, show


def info(model: option.Model, as_json: option.AsJson = False) -> None:
    """What a saved model is: parameters, trees, size."""
    from hck.persistence import load

    size = sum(path.stat().st_size for path in model.rglob("*") if path.is_file())
    show(facts_of(load(model, "cpu")) | {"bytes_on_disk": size}, as_json, str(model))


def facts_of(model: Estimator) -> dict[str, Any]:
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
    if model.trees_:
        tree = model.trees_[0]
        sizes = tree.size[tree.leaves]
        found |= {
            "points": tree.n_points,
            "trees": len(model.trees_),
            "leaves": tree.n_leaves,
            "depth": tree.depth,
            "leaf_sizes": f"{int(sizes.min())} to {int(sizes.max())}",
        }
    found["features"] = getattr(model, "n_features_in_", "objects")
    if hasattr(model, "classes_"):
        found["classes"] = ", ".join(map(str, model.classes_[:20]))
    found |= {name: value for name, value in notes.items() if name.startswith("left_out")}
    return found


@dataclass(frozen=True)
class Source:
    """What of the data is taken."""

    target: option.Target = None
    part: option.Part = None


def report(
    model: option.Model,
    data: Annotated[Path, option.given("Test data, with the target.")],
    out: Annotated[Path, option.given("The HTML file.")],
    source: Source,
    output: option.Output,
) -> None:
    """A page with figures about a saved model on test data, in one file.

    [bold]hck report model/ --data test.csv --out report.html[/bold]
    """
    from hck.cli._tables import for_scoring
    from hck.persistence import load
    from hck.report import write_report

    free(out, output.force)
    loaded = load(model)
    X, y = for_scoring(loaded, data, source.target, source.part)
    with busy("predicting and drawing …", output.quiet):
        write_report(loaded, X, y, out, title=f"{model.name} on {data.name}", force=output.force)
    if not is_stdout(out):
        show({"report": str(out), "bytes": out.stat().st_size}, output.as_json)
