"""An approximation by its name."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from hck.approximations.base import Approximation
from hck.approximations.exact import Exact
from hck.approximations.fourier import Fourier
from hck.approximations.hierarchical import TREE_KERNELS, TreeKernel
from hck.approximations.nystrom import Nystrom
from hck.approximations.preconditioners import Iterative
from hck.approximations.tapered import Tapered
from hck.backend.interrupts import interruptible, interruptible_unless
from hck.backend.memory import resolve_budget
from hck.backend.parallel import at_a_time, parallel_map
from hck.backend.random import RandomLike
from hck.kernels import Kernel, make_kernel
from hck.kernels.registry import KernelLike
from hck.partition import Landmarks, Tree, known_landmarks, known_partitions, leaf_size_for
from hck.points import Points, PointsLike, VectorPoints, as_points, check_reach
from hck.settings import Option, Settings

Result = TypeVar("Result")

_BLINK = 1e9  # operations, far below a second even on a busy machine

BY_NAME: dict[str, type[Approximation]] = {
    **dict.fromkeys(TREE_KERNELS, TreeKernel),
    "nystrom": Nystrom,
    "fourier": Fourier,
    "tapered": Tapered,
}
NAMES = tuple(BY_NAME)


def make_approximation(
    approximation: str | Iterative,
    kernel: KernelLike,
    x: PointsLike,
    rank: int,
    *,
    generator: RandomLike = None,
    **options: Option,
) -> Approximation:
    """A kernel that stands in for another, on training points.

    Parameters
    ----------
    approximation : str or Iterative
        - ``"hierarchical"``, ``"compositional"``, ``"independent"``: see `hck.approximations.hierarchical`;
        - ``"exact"``: the kernel itself, with its matrix in memory, or, if that is too small, by iteration;
        - ``"nystrom"``: of rank r, by r landmarks among all points;
        - ``"fourier"``: of rank r, by random Fourier features;
        - ``"tapered"``: times a function of compact support, so that a point has, on average, r others
          with which it is correlated.
    kernel : Kernel, or what `hck.kernels.make_kernel` takes
    x : Points, array-like of shape (n, d), sparse matrix, or, for a function as the kernel, any sequence
    rank : int
        r: memory grows with n·r, whatever the approximation.
    generator : torch.Generator or int, optional
    **options
        More of `hck.settings.Settings`: `leaf_size`, `partition` and `jitter` for kernels that a tree makes,
        and preconditioners; `landmarks` of the nodes of a tree, or of all points for Nyström's kernel;
        `memory_budget` and `verbose`. `hck.hierarchy.HierarchicalKernel.build` says what they are.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> from hck.kernels import Gaussian
    >>> x = torch.linspace(0, 1, 1000, dtype=torch.float64)[:, None]
    >>> made = make_approximation("hierarchical", Gaussian(0.1), x, rank=20, leaf_size=50)
    >>> made.tree.n_leaves
    32
    """
    return approximate(kernel, x, Settings(rank, approximation=approximation, **options), generator)


def _approximate(
    kernel: KernelLike, x: PointsLike, settings: Settings, generator: RandomLike = None
) -> Approximation:
    """What stands in for a kernel on training points, as the settings say; see `make_approximation`."""
    how = settings.approximation
    _check(settings)
    kernel = make_kernel(kernel)
    points = as_points(x, objects=kernel.takes_objects)
    check_reach(points)
    kind = Exact if isinstance(how, Iterative) else BY_NAME[how]
    made = kind.from_settings(kernel, points, settings, generator)
    if how == "exact" and isinstance(made, TreeKernel) and not made.can_leave_out():
        return Exact.from_settings(kernel, points, replace(settings, approximation=Iterative()), generator)
    return made


approximate = interruptible(_approximate)  # for others than `for_each_tree`, which waits for more


def _is_light(work: object, kernel: Kernel, points: Points, settings: Settings, seeds: list[int]) -> bool:
    """Whether trees are done in a blink: 13 n r² operations each."""
    width = max(settings.rank, settings.leaf_size or leaf_size_for(len(points), settings.rank))
    flops = 13.0 * len(seeds) * len(points) * width**2
    return settings.approximation in TREE_KERNELS[:3] and flops < _BLINK


@interruptible_unless(_is_light)
def for_each_tree(
    work: Callable[[Approximation], Result],
    kernel: Kernel,
    points: Points,
    settings: Settings,
    seeds: list[int],
) -> list[Result]:
    """Do some work for an approximation of each seed: one after another, or side by side.

    Trees are worked on side by side where cores and memory allow.
    """
    device, rank = points.device, settings.rank
    budget, together = resolve_budget(settings.memory_budget, device), min(len(seeds), at_a_time(device))
    leaf = settings.leaf_size or leaf_size_for(len(points), rank)
    needed = 2 * points.dtype.itemsize * len(points) * (leaf + 2 * rank)
    alone = together == 1 or settings.approximation not in TREE_KERNELS or together * needed > budget
    share = budget if alone else budget // together
    shared = replace(settings, memory_budget=share, verbose=settings.verbose and alone)
    kernel = kernel.to(device, points.dtype)

    def make(seed: int) -> Approximation:
        return _approximate(kernel, points, shared, seed)

    if not alone:
        return list(parallel_map(lambda seed: work(make(seed)), seeds, device, "Trees", settings.verbose))
    return [work(make(seed)) for seed in seeds]


def for_other_points(settings: Settings, points: Points) -> Settings:
    """Settings for points that need not be the training points.

    A tree or landmarks that were given for other points are left aside.
    """
    partition, landmarks = settings.partition, settings.landmarks
    if isinstance(partition, Tree) and partition.n_points != len(points):
        partition = "random_projection" if isinstance(points, VectorPoints) else "kernel"
    if isinstance(landmarks, Landmarks | list):  # of the nodes of one tree
        landmarks = "uniform"
    return replace(settings, partition=partition, landmarks=landmarks)


def _check(settings: Settings) -> None:
    """Raise ValueError for what is not known, or that nothing would use."""
    approximation, partition, landmarks = settings.approximation, settings.partition, settings.landmarks
    if not isinstance(approximation, Iterative) and approximation not in NAMES:
        raise ValueError(f"unknown approximation {approximation!r}; known: {', '.join(NAMES)}")
    how = approximation.preconditioner if isinstance(approximation, Iterative) else approximation
    if isinstance(partition, str) and partition not in known_partitions():
        raise ValueError(f"unknown partition {partition!r}; known: {', '.join(known_partitions())}")
    if isinstance(landmarks, str) and landmarks not in known_landmarks():
        raise ValueError(f"unknown landmarks {landmarks!r}; known: {', '.join(known_landmarks())}")
    if isinstance(partition, Tree) and how not in TREE_KERNELS[:3] and approximation != "exact":
        raise ValueError(f"approximation={approximation!r} has no use for the tree given as partition")
    if not isinstance(landmarks, str) and how not in ("hierarchical", "compositional", "nystrom"):
        raise ValueError(f"approximation={approximation!r} has no use for given landmarks")
