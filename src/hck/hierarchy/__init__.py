"""The structured matrix of the hierarchically compositional kernel.

`HierarchicalKernel.build` makes it from points; it multiplies (Algorithm 1), factors (Algorithm 2) and
extends to new points (Algorithm 3). `ridge` solves once and keeps only what predictions need. `dense` is the
definition, for tests.
"""

from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.extend import Extension, TreePredictor
from hck.hierarchy.factor import Factor
from hck.hierarchy.forest import Forest, share_points
from hck.hierarchy.kernel import HierarchicalKernel
from hck.hierarchy.matrix import HierarchicalMatrix
from hck.hierarchy.ridge import ridge

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
