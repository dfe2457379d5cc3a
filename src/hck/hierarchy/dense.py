"""The definition of the hierarchical kernel, written out: slow, dense, and the oracle of every test.

Equations (13) to (15) of the paper, with K(Z, Z) + jitter·I wherever the paper inverts K(Z, Z). Nothing here
is shared with the fast code but the base kernel, the tree and the landmarks.
"""

import torch
from torch import Tensor

from hck.kernels import Kernel
from hck.partition import Landmarks, Tree
from hck.points import Points


class Definition:
    """k_h(x, x') for any points, by recursion over the tree."""

    def __init__(self, kernel: Kernel, tree: Tree, landmarks: Landmarks, jitter: float) -> None:
        self.kernel, self.tree, self.jitter = kernel, tree, jitter
        self.z = {node: landmarks.of_slot(slot) for slot, node in enumerate(tree.inner.tolist())}
        # K(Z, Z) of each inner node, and K(Z_i, Z_i)⁻¹ K(Z_i, Z_p) of each with a parent p
        self.landmark_matrix = {node: self._regular(node) for node in self.z}
        self.change_of_basis = {
            node: torch.linalg.solve(
                self.landmark_matrix[node], self._base(self.z[node], self.z[int(tree.parent[node])])
            )
            for node in self.z
            if node != 0
        }

    def square(self, points: Points) -> Tensor:
        """K_h(X, X) for the training points X, in their original order."""
        leaf = self.tree.leaf_of_point
        return self.matrix(points, leaf, points, leaf)

    def cross(self, points: Points, x: Points) -> Tensor:
        """k_h(X, x) for the training points X, in their original order, and new ones."""
        return self.matrix(points, self.tree.leaf_of_point, x, self.tree.route(x))

    def matrix(self, a: Points, leaf_a: Tensor, b: Points, leaf_b: Tensor) -> Tensor:
        """k_h(a_i, b_j) for all i, j; each point with the number of its leaf."""
        out = torch.empty(len(a), len(b), dtype=torch.float64, device="cpu")
        for j in leaf_a.unique().tolist():
            for l in leaf_b.unique().tolist():
                rows, columns = (leaf_a == j).nonzero().squeeze(1), (leaf_b == l).nonzero().squeeze(1)
                node_j, node_l = int(self.tree.leaves[j]), int(self.tree.leaves[l])
                out[rows[:, None], columns] = self._between(a.take(rows), node_j, b.take(columns), node_l)
        return out

    def _between(self, a: Points, node_a: int, b: Points, node_b: int) -> Tensor:
        """Equation (13): a in the leaf node_a, b in the leaf node_b."""
        if node_a == node_b:
            return self._base(a, b)
        ancestor = self._last_common_ancestor(node_a, node_b)
        left, right = self._psi(a, node_a, ancestor), self._psi(b, node_b, ancestor)
        return left @ torch.linalg.solve(self.landmark_matrix[ancestor], right.mT)

    def _psi(self, a: Points, leaf: int, node: int) -> Tensor:
        """Equation (14): ψ^(node)(a, Z_node) for a in a leaf below `node`."""
        child = self._child_towards(leaf, node)
        if child == leaf:
            return self._base(a, self.z[node])
        return self._psi(a, leaf, child) @ self.change_of_basis[child]

    def _regular(self, node: int) -> Tensor:
        values = self._base(self.z[node], self.z[node])
        return values + self.jitter * torch.eye(len(values), dtype=torch.float64, device="cpu")

    def _base(self, a: Points, b: Points) -> Tensor:
        return self.kernel.evaluate(a.x, b.x).to("cpu", torch.float64)

    def _path(self, node: int) -> list[int]:
        path = [node]
        while path[-1] != 0:
            path.append(int(self.tree.parent[path[-1]]))
        return path

    def _last_common_ancestor(self, node_a: int, node_b: int) -> int:
        others = set(self._path(node_b))
        return next(node for node in self._path(node_a) if node in others)

    def _child_towards(self, leaf: int, node: int) -> int:
        path = self._path(leaf)
        return path[path.index(node) - 1]


def dense_matrix(kernel: Kernel, points: Points, tree: Tree, landmarks: Landmarks, jitter: float) -> Tensor:
    """K_h(X, X) by the definition; `points` and the result are in the original order."""
    return Definition(kernel, tree, landmarks, jitter).square(points)


def dense_cross(
    kernel: Kernel, points: Points, tree: Tree, landmarks: Landmarks, jitter: float, x: Points
) -> Tensor:
    """k_h(X, x) by the definition; `points` and the result's rows are in the original order."""
    return Definition(kernel, tree, landmarks, jitter).cross(points, x)
