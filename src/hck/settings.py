"""The options of an approximation: made once, where a user gives them, and handed down."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

PartitionLike: TypeAlias = Any  # a name, a Cutter or a Tree
LandmarksLike: TypeAlias = Any  # a name, an array, a list of arrays, or Landmarks
Option: TypeAlias = Any  # what any field of `Settings` may be
MemoryBudget: TypeAlias = int | float | str | None  # see `hck.backend.memory.resolve_budget`


@dataclass(frozen=True)
class Settings:
    """How a kernel is approximated on a set of points; `HierarchicalKernel.build` says more of most of it.

    A new option is a parameter of the estimators, a line here, and the place where it is used.
    """

    rank: int  # r, the number of landmarks of a node, or what corresponds to it in other approximations
    leaf_size: int | None = None  # n₀, the largest number of points in a leaf; None: between r and 2r
    partition: PartitionLike = "random_projection"
    landmarks: LandmarksLike = "uniform"
    jitter: float | None = None  # λ' ≥ 0, added to the landmarks' matrices; None: in proportion to k(x, x)
    memory_budget: MemoryBudget = None
    verbose: bool = False  # whether to show progress
    approximation: Any = "hierarchical"  # a name or Iterative; see `hck.approximations.make_approximation`

    def __post_init__(self) -> None:
        for name, value in (("rank", self.rank), ("leaf_size", self.leaf_size)):
            whole = isinstance(value, Real) and value >= 1 and value == int(value)
            if not (whole or (name, value) == ("leaf_size", None)):
                raise ValueError(f"{name} must be a whole number, at least 1, got {value!r}")
        if self.jitter is not None and not self.jitter >= 0:
            raise ValueError(f"jitter must not be negative, got {self.jitter}")
