"""Pages of the reference: one for each module that says by ``__all__`` what is public in it.

They are written before Sphinx reads its sources, so that a new name is on the site without anybody's doing.
An object that several modules offer is described where it comes first in `MODULES`.
"""

import importlib
import inspect
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import hck

# First what most people need; modules that are not named here follow by the alphabet.
MODULES = (
    "hck",
    "hck.kernels",
    "hck.kernels.features",
    "hck.approximations",
    "hck.approximations.quality",
    "hck.losses",
    "hck.metrics",
    "hck.plotting",
    "hck.report",
    "hck.datasets",
    "hck.persistence",
    "hck.outofcore",
    "hck.dask",
    "hck.selection",
    "hck.partition",
    "hck.hierarchy",
    "hck.process",
    "hck.branches",
    "hck.online",
    "hck.points",
    "hck.experiments",
    "hck.errors",
)
# Classes of others whose members nobody looks for here.
FOREIGN = ("object", "BaseEstimator", "Exception", "tuple")


def modules() -> list[ModuleType]:
    """All modules with ``__all__``, in the order of the site."""
    names = [
        found.name
        for found in pkgutil.walk_packages(hck.__path__, "hck.")
        if not any(part.startswith("_") for part in found.name.split(".")) and ".backend." not in found.name
    ]
    names.sort(key=lambda name: (MODULES.index(name) if name in MODULES else len(MODULES), name))
    loaded = [hck, *(importlib.import_module(name) for name in names)]
    return [module for module in loaded if hasattr(module, "__all__")]


def homes() -> dict[str, list[str]]:
    """Of each module the names that are described there, those of ``__all__`` that are not known yet."""
    known: list[Any] = []
    found: dict[str, list[str]] = {}
    for module in modules():
        mine = []
        for name in module.__all__:
            thing = getattr(module, name)
            if name.startswith("__") or any(thing is other for other in known):
                continue
            known.append(thing)
            mine.append(name)
        if mine:
            found[module.__name__] = mine
    return found


def directive(thing: Any) -> tuple[str, list[str]]:
    """What describes an object, with its options."""
    if inspect.isclass(thing):
        options = [":members:", ":show-inheritance:"]
        others = sorted({*FOREIGN, *(base.__name__ for base in thing.__mro__[1:] if is_public(base))})
        return "autoclass", [*options, ":inherited-members: " + ", ".join(others)]
    return ("autofunction" if callable(thing) else "autodata"), []


def is_public(kind: type) -> bool:
    module = sys.modules.get(kind.__module__.rpartition(".")[0])
    return kind.__name__ in getattr(module, "__all__", ())


def page(name: str, members: list[str]) -> str:
    """In reStructuredText: what the module says of itself, a table, and each name."""
    module = importlib.import_module(name)
    lines = [name, "=" * len(name), "", f".. automodule:: {name}", "   :no-members:", ""]
    lines += [f".. currentmodule:: {name}", "", ".. autosummary::", "   :nosignatures:", ""]
    lines += [*(f"   {one}" for one in members), ""]
    for one in members:
        kind, options = directive(getattr(module, one))
        lines += [f".. {kind}:: {one}", *(f"   {option}" for option in options), ""]
    return "\n".join(lines)


def write(folder: Path) -> None:
    """One file for each module; files that have not changed are left alone, so that nothing is read twice."""
    folder.mkdir(exist_ok=True)
    pages = {f"{name}.rst": page(name, members) for name, members in homes().items()}
    for old in folder.glob("*.rst"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def toctree() -> str:
    return "\n".join(["```{toctree}", ":hidden:", "", *(f"generated/{name}" for name in homes()), "```"])


def table() -> str:
    """Of all modules, for the first page of the reference."""
    rows = ["| module | what it has |", "|---|---|"]
    for name in homes():
        said = (importlib.import_module(name).__doc__ or "").strip().splitlines() or [""]
        rows.append(f"| [{name}](generated/{name}.rst) | {said[0]} |")
    return "\n".join(rows)


def fill(app: Any, docname: str, source: list[str]) -> None:
    if docname == "api/index":
        source[0] += "\n" + table() + "\n\n" + toctree() + "\n"


def skip(app: Any, what: str, name: str, thing: Any, skipped: bool, options: Any) -> bool | None:
    """Methods that are scikit-learn's own are described there."""
    return True if str(getattr(thing, "__module__", "")).startswith("sklearn.") else None


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-skip-member", skip)
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "api" / "generated"), priority=100)
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
