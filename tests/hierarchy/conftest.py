"""A zoo of small named problems, on which every operation of the hierarchical kernel is tested.

A problem is a base kernel, points, a partition and landmarks, in one dtype. Its oracle is the paper's
recursive definition (`hck.hierarchy.dense`), evaluated in float64 on the very same numbers.
"""

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from hck.hierarchy import Factor, HierarchicalKernel
from hck.hierarchy.dense import Definition
from hck.kernels import CallableKernel, Gaussian, InverseMultiquadric, Kernel, Laplace, Matern
from hck.partition import KMeans, Landmarks, Tree, known_partitions
from hck.points import DensePoints, ObjectPoints, Points, SparsePoints, as_points

# Largest error allowed, relative to the largest entry; that of the log-determinant is per point.
TOLERANCES = {
    torch.float64: {"matrix": 1e-12, "solve": 1e-10, "log_determinant": 1e-11, "identity": 1e-9},
    torch.float32: {"matrix": 3e-5, "solve": 5e-4, "log_determinant": 2e-5, "identity": 5e-3},
}
ALPHA = {torch.float64: 1e-3, torch.float32: 1e-2}
N_NEW = 23


@dataclass
class Problem:
    """One problem of the zoo: what goes in, what hck makes of it, and what the definition says."""

    name: str
    dtype: torch.dtype
    kernel: Kernel
    x: Any
    new: Any
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.points = as_points(self.x, self.dtype, objects=isinstance(self.x, list))
        self.new_points = as_points(self.new, self.dtype, objects=isinstance(self.new, list))
        self.exact_points = in_float64(self.points)
        self.n, self.alpha, self.tolerances = len(self.points), ALPHA[self.dtype], TOLERANCES[self.dtype]

    @cached_property
    def hierarchical(self) -> HierarchicalKernel:
        return self.build()

    def build(self, **changes: Any) -> HierarchicalKernel:
        options = {"kernel": self.kernel, "x": self.points, **self.options, **changes}
        return HierarchicalKernel.build(**options)

    @cached_property
    def factor(self) -> Factor:
        return self.hierarchical.factor(self.alpha)

    @cached_property
    def b(self) -> Tensor:
        """Right-hand sides, (n, 3)."""
        generator = torch.Generator().manual_seed(7)
        return torch.randn(self.n, 3, generator=generator, dtype=torch.float64).to(self.dtype)

    # The definition ---------------------------------------------------------------------------------

    @cached_property
    def definition(self) -> Definition:
        h = self.hierarchical
        landmarks = Landmarks(in_float64(h.landmarks.points), h.landmarks.blocks)
        definition = Definition(self.kernel, h.tree, landmarks, h.jitter)
        definition._base = cache(definition._base)  # half of the time
        return definition

    @cached_property
    def _joint(self) -> Tensor:
        tree = self.hierarchical.tree
        both = self.exact_points.join([in_float64(self.new_points)])
        leaf = torch.cat([tree.leaf_of_point, tree.route(self.new_points)])
        return self.definition.matrix(both, leaf, both, leaf)

    @property
    def dense(self) -> Tensor:
        """K_h(X, X)."""
        return self._joint[: self.n, : self.n]

    @property
    def dense_cross(self) -> Tensor:
        """k_h(X, x) for the new points x."""
        return self._joint[: self.n, self.n :]

    @cached_property
    def base(self) -> Tensor:
        """K(X, X), the base kernel's."""
        return self.kernel.evaluate(self.exact_points.x, self.exact_points.x)

    @cached_property
    def noisy(self) -> Tensor:
        """K_h(X, X) + αI."""
        return self.dense + self.alpha * torch.eye(self.n, dtype=torch.float64)

    def assert_close(self, got: Tensor, expected: Tensor, what: str) -> None:
        """Compare with an error relative to the largest entry of `expected`."""
        assert got.dtype == self.dtype
        assert got.shape == expected.shape
        if expected.numel() == 0:
            return
        error = (got.double() - expected.double()).abs().max() / expected.abs().max()
        assert error <= self.tolerances[what], f"{what} of {self.name}: relative error {error:.1e}"


def in_float64(points: Points) -> Any:
    """The same numbers, as float64."""
    if isinstance(points, DensePoints):
        return DensePoints(points.x.double())
    if isinstance(points, SparsePoints):
        return SparsePoints(points.x.astype(np.float64), torch.float64, points.device)
    return ObjectPoints(points.x, torch.float64, points.device)


# The zoo ----------------------------------------------------------------------------------------------


def uneven_tree(n: int) -> Tree:
    """A user's tree: nodes of two to four children, leaves at depths 1 to 3."""
    i = np.arange(n)
    first = i % 4  # 0: a leaf at depth 1
    second = np.where(first == 0, 0, (i // 4) % 3)
    third = np.where((first == 2) & (second == 1), (i // 12) % 2, 0)
    return Tree.from_labels(np.stack([first, second, third], 1))


def rational(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return 1 / (1 + ((a[:, None, :].astype(float) - b[None, :, :]) ** 2).sum(-1))


def rational_batched(a: Tensor, b: Tensor) -> Tensor:
    return 1 / (1 + (a[..., :, None, :] - b[..., None, :, :]).square().sum(-1))


def mismatches(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """exp(−Hamming distance / 2): a product of positive definite kernels, one per letter."""
    return np.array([[np.exp(-sum(p != q for p, q in zip(s, t, strict=True)) / 2) for t in b] for s in a])


KERNELS = {
    "gaussian": Gaussian(0.7),
    "laplace": Laplace(1.5),
    "imq": InverseMultiquadric(0.8),
    "matern12": Matern(1.2, nu=0.5),
    "matern32": Matern(1.2, nu=1.5),
    "matern52": Matern(1.2, nu=2.5),
    "ard": Gaussian([0.5, 1.0, 3.0]),
    "sum": 0.5 * Gaussian(0.4) + Laplace(3.0),
    "product": Matern(1.0, nu=1.5) * InverseMultiquadric([1.0, 2.0, 0.5]),
    "callable": CallableKernel(rational),
    "batched": CallableKernel(rational_batched, batched=True),
}
CUTTERS = {**{name: name for name in known_partitions()}, "kmeans": KMeans(3), "user": "user"}
SIZES = {  # n, rank, leaf_size
    "prime": (97, 8, 13),
    "automatic": (61, 7, None),
    "fewer_points_than_rank": (7, 20, 2),
    "one_point": (1, 3, 4),
    "one_leaf": (30, 5, 30),
    "two_leaves": (31, 6, 16),
    "leaf_size_2": (29, 4, 2),
    "leaf_size_3": (43, 5, 3),
}
LANDMARKS = ("uniform", "kmeans", "farthest", "same", "array", "list")


@cache
def cloud(n: int, seed: int = 0, d: int = 3) -> np.ndarray:
    return np.random.default_rng([seed, n]).uniform(-1, 1, (n, d))


@cache
def make_problem(name: str, dtype: torch.dtype) -> Problem:
    """The problem of a name such as "kd/prime", "matern32/one_leaf" or "landmarks:kmeans"."""
    what, _, size = name.partition("/")
    kind, _, choice = what.partition(":")
    n, rank, leaf_size = SIZES[size or "prime"]
    x, new, kernel = cloud(n), cloud(N_NEW, seed=1), KERNELS["gaussian"]
    options: dict[str, Any] = {"rank": rank, "leaf_size": leaf_size}
    if kind in CUTTERS:
        options["partition"] = uneven_tree(n) if kind == "user" else CUTTERS[kind]
    elif kind in KERNELS:
        kernel = KERNELS[kind]
    elif kind == "landmarks":
        options["partition"] = uneven_tree(n)  # 7 inner nodes or fewer
        sets = [cloud(k, seed=2) for k in (8, 5, 9, 8, 7, 6, 8)[: len(options["partition"].inner)]]
        options["landmarks"] = {"array": sets[0], "list": sets}.get(choice, choice)
    elif kind == "sparse":
        x, new = (np.where(np.abs(a) < 0.6, 0, a) for a in (cloud(n, d=8), cloud(N_NEW, 1, d=8)))
        x, new = sp.csr_matrix(x), sp.csr_matrix(new)
        kernel, cutter = {
            "laplace": (Laplace(2.0), "kd"),
            "matern": (Matern(np.linspace(1, 2, 8), nu=2.5), "pca"),
            "gaussian": (Gaussian(1.0), "kmeans"),
            "kernel": (InverseMultiquadric(1.0), "kernel"),
        }[choice]
        options["partition"] = cutter
    else:
        letters = np.random.default_rng(3).choice(list("ACGT"), (n + N_NEW, 6))
        words = ["".join(row) for row in letters]
        x, new, kernel = words[:n], words[n:], CallableKernel(mismatches)
        options["partition"] = "kernel"
        options["landmarks"] = choice
    return Problem(name, dtype, kernel, x, new, options)


NAMES = [
    *(f"{cutter}/{size}" for cutter in CUTTERS for size in SIZES),
    *(f"{kernel}/{size}" for kernel in KERNELS for size in ("prime", "one_leaf", "leaf_size_3")),
    *(f"landmarks:{how}" for how in LANDMARKS),
    *(f"sparse:{which}" for which in ("laplace", "matern", "gaussian", "kernel")),
    *("strings:uniform", "strings:farthest", "strings:same/leaf_size_3"),
]
ZOO = [f"{name}@float64" for name in NAMES] + [
    f"{name}@float32"
    for name in NAMES
    if name.endswith(("/prime", "/one_point", "user/leaf_size_3")) or "/" not in name
]


@pytest.fixture(params=ZOO)
def problem(request: pytest.FixtureRequest) -> Problem:
    """Each problem of the zoo, or those named by an indirect parametrization."""
    name, _, dtype = request.param.partition("@")
    return make_problem(name, getattr(torch, dtype or "float64"))


@pytest.fixture
def make() -> type[Problem]:
    """Problem itself, for problems that are not in the zoo."""
    return Problem


@pytest.fixture
def zoo() -> dict[str, Problem]:
    """All problems in float64, by name."""
    return {name: make_problem(name, torch.float64) for name in NAMES}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
