"""The structured matrix of the hierarchically compositional kernel.

`HierarchicalKernel.build` makes it from points; it multiplies (Algorithm 1), factors (Algorithm 2) and
extends to new points (Algorithm 3). `dense` is the definition, for tests. `ridge`, which solves once and
keeps only what predictions need, is in `hck.branches`, and shown here too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.factor import Factor
from hck.hierarchy.forest import Forest, share_points
from hck.hierarchy.kernel import HierarchicalKernel
from hck.hierarchy.matrix import HierarchicalMatrix
from hck.hierarchy.predictor import Extension, TreePredictor

if TYPE_CHECKING:
    from hck.branches.ridge import ridge

__all__ = [
    "Blueprint",
    "Extension",
    "Factor",
    "Forest",
    "HierarchicalKernel",
    "HierarchicalMatrix",
    "TreePredictor",
    "ridge",
    "share_points",
]


def __getattr__(name: str) -> Any:
    """`ridge`, imported at first use, since it stands above."""
    if name == "ridge":
        return import_module("hck.branches.ridge").ridge
    raise AttributeError(f"module 'hck.hierarchy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
