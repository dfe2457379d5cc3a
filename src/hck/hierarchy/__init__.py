"""The structured matrix of the hierarchically compositional kernel.

`HierarchicalKernel.build` makes it from points; it multiplies (Algorithm 1), factors (Algorithm 2) and
extends to new points (Algorithm 3). `dense` is the definition, for tests.
"""

from hck.hierarchy.extend import Extension
from hck.hierarchy.factor import Factor
from hck.hierarchy.kernel import HierarchicalKernel
from hck.hierarchy.matrix import HierarchicalMatrix

__all__ = ["Extension", "Factor", "HierarchicalKernel", "HierarchicalMatrix"]
