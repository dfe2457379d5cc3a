"""The kernel itself, where n² numbers do not fit into memory: products by tiles, solutions by iteration."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from hck.approximations.base import Approximation, part_of
from hck.approximations.conjugate_gradients import Iterations, Stopping, conjugate_gradients
from hck.approximations.factorization import Factorization
from hck.approximations.preconditioners import Preconditioners
from hck.backend.blocks import Blocks
from hck.backend.caches import cached_property
from hck.backend.checks import require
from hck.backend.kinds import kind_of
from hck.backend.memory import resolve_budget
from hck.backend.parallel import at_a_time, chunks, for_each, parallel_map
from hck.backend.random import RandomLike, as_random
from hck.kernels import Kernel
from hck.kernels.slope import slope_of_sum, slope_values, slope_variance
from hck.points import (
    KernelBlocks,
    Points,
    PointsLike,
    as_points_like,
    check_kernel,
    check_weights,
    cross,
    features_of,
    self_values,
)
from hck.settings import MemoryBudget, Settings

_MOST_ITERATIONS = 10**6  # that a file may ask for
_AT_ONCE = 256  # new points whose variances are found together


@dataclass
class Exact(Approximation):
    """k̃ = k, without its matrix.

    Tiles of K are computed when a product needs them; those that fit into half of the memory budget are kept.
    Since K is symmetric, only tiles on and above its diagonal are computed.

    Attributes
    ----------
    preconditioners : sequence of Approximation, or Preconditioners
        On the same points, or how to make them. The mean of their inverses preconditions, unless there are
        none. With several trees that is far better than with one: two close points that one tree cuts
        apart are together in most others.
    tolerance : float
        The residual, relative to the right-hand side, at which iterations stop.
    max_iter : int
    memory_budget : see `hck.backend.memory.resolve_budget`
    verbose : bool

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import Exact, Nystrom
    >>> from hck.kernels import Gaussian
    >>> from hck.points import as_points
    >>> x = as_points(torch.linspace(0, 1, 1000, dtype=torch.float64)[:, None])
    >>> exact = Exact(Gaussian(0.1), x, [Nystrom.of(Gaussian(0.1), x, rank=20)])
    >>> predictor = exact.factor(0.01).predictor(torch.sin(6 * x.x))
    >>> len(predictor.residuals) < 10 and predictor.residuals[-1] < 1e-6
    True
    """

    kernel: Kernel
    points: Points
    preconditioners: Sequence[Approximation] | Preconditioners = ()
    tolerance: float = 1e-6
    max_iter: int = 1000
    memory_budget: MemoryBudget = None
    verbose: bool = False
    _kept: dict[tuple[int, int], Tensor] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.stopping = Stopping(self.tolerance, self.max_iter, self.verbose)

    def validate(self) -> None:
        """Raise ValueError unless kernel, points and preconditioners fit together."""
        check_kernel(self.kernel, self.points)
        require(self.max_iter <= _MOST_ITERATIONS, f"max_iter is more than {_MOST_ITERATIONS:,}")
        if isinstance(self.preconditioners, Preconditioners):
            self.preconditioners.check(self.points)
        else:
            for other in self.preconditioners:
                require(not isinstance(other, Exact), "preconditioners must not be exact themselves")
                require(len(other) == len(self.points), "preconditioners must be on the same points")

    @classmethod
    def from_settings(
        cls, kernel: Kernel, points: Points, settings: Settings, generator: RandomLike
    ) -> "Exact":
        """Of a kernel, on training points, with the preconditioner and limits of the settings."""
        how = settings.approximation
        preconditioners: Preconditioners | tuple[()] = ()
        if how.preconditioner is not None:
            seed = as_random(generator).seed()
            kind = replace(settings, approximation=how.preconditioner)
            preconditioners = Preconditioners(kind, how.count, seed)
        limits = how.tolerance, how.max_iter, settings.memory_budget, settings.verbose
        return cls(kernel.to(points.device, points.dtype), points, preconditioners, *limits)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_kept": {}}

    @cached_property
    def parts(self) -> list[slice]:
        """Rows, and columns, of the tiles."""
        return chunks(0, len(self.points), kind_of(self.points.device).tile)

    def product(self, b: Tensor) -> Tensor:
        out = torch.zeros_like(b)
        tiles = [(i, j) for i in range(len(self.parts)) for j in range(i, len(self.parts))]
        room = resolve_budget(self.memory_budget, self.points.device) // 2
        size = self.points.dtype.itemsize * (self.parts[0].stop) ** 2
        room -= sum(tile.nbytes for tile in self._kept.values()) + size * at_a_time(self.points.device)
        kept = {*self._kept, *[at for at in tiles if at not in self._kept][: max(0, room) // size]}

        def work(at: tuple[int, int]) -> tuple[Tensor, Tensor | None]:
            tile = self._kept.get(at)
            if tile is None:
                tile = self._tile(*at)
                if at in kept:
                    self._kept[at] = tile
            i, j = (self.parts[k] for k in at)
            return tile @ b[j], None if i == j else tile.mT @ b[i]

        for (i, j), (here, there) in zip(tiles, parallel_map(work, tiles, self.points.device), strict=True):
            out[self.parts[i]] += here
            if there is not None:
                out[self.parts[j]] += there
        return out

    def _tile(self, i: int, j: int) -> Tensor:
        rows, columns = (_block(self.parts[k], self.points.device) for k in (i, j))
        return cross(self.kernel, self.points, rows, self.points, columns)[0]

    def cross(self, x: PointsLike) -> Tensor:
        return KernelBlocks.between(self.kernel, self.points, as_points_like(x, self.points)).tensor()[0]

    def extend(self, weights: Tensor) -> "ExactPredictor":
        return ExactPredictor(self.kernel, self.points, self.columns(weights))

    def factor(self, noise: float | Tensor) -> "IterativeFactorization":
        return IterativeFactorization(self, self.variances(noise))

    def with_kernel(self, kernel: Kernel, jitter: float | None = None) -> "Exact":
        others = self.preconditioners
        if not isinstance(others, Preconditioners):
            others = [other.with_kernel(kernel, jitter) for other in others]
        return replace(self, kernel=kernel, preconditioners=others, _kept={})

    @property
    def nbytes(self) -> int:
        return sum(tile.nbytes for tile in self._kept.values())

    def can_leave_out(self, columns: int = 1) -> bool:
        """No: that would take an iteration for each point."""
        return False


class IterativeFactorization(Factorization):
    """K + noise, solved with by conjugate gradients; its determinant is not known."""

    approximation: Exact
    has_likelihood = False
    has_left_out = False

    def __init__(self, approximation: Exact, noise: Tensor) -> None:
        self.approximation, self.noise = approximation, noise
        self.log_determinant = noise.new_full((), torch.nan)
        self.residuals: list[float] = []  # of the last solution

    @cached_property
    def preconditioners(self) -> list[Factorization]:
        others = self.approximation.preconditioners
        if isinstance(others, Preconditioners):
            return others.factor(self.approximation, self.noise)
        return [other.factor(self.noise) for other in others]

    def precondition(self, rest: Tensor) -> Tensor:
        """The mean of the preconditioners' solutions."""
        if not self.preconditioners:
            return rest
        total = self.preconditioners[0].solve(rest)
        for other in self.preconditioners[1:]:
            total += other.solve(rest)
        return total.div_(len(self.preconditioners))

    def iterate(self, b: Tensor) -> Iterations:
        """A solution with the record of its iterations."""
        source = self.approximation
        found = conjugate_gradients(
            lambda p: source @ p + self.noise[:, None] * p,
            source.columns(b),
            self.precondition,
            source.stopping,
        )
        if not found.converged:
            warnings.warn(
                f"after {source.max_iter} iterations the residual is {found.residuals[-1]:.2g}, not "
                f"{source.tolerance:.2g}: use a larger ridge or noise, a better preconditioner (a larger "
                "rank, more trees), more iterations, a larger tolerance, or float64",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.residuals = found.residuals
        return found

    def solve_columns(self, b: Tensor) -> Tensor:
        return self.iterate(b).x

    def extend(self, weights: Tensor) -> "ExactPredictor":
        return replace(self.approximation.extend(weights), residuals=self.residuals)

    def variance(self, x: PointsLike, verbose: bool = False) -> Tensor:
        x = as_points_like(x, self.approximation.points)
        every = Blocks(torch.arange(len(x), device=x.device)[None], full=True)
        out = self_values(self.approximation.kernel, x, every)[0]
        for part in self._parts(len(x)):
            across = self.approximation.cross(x.take(every.index[0, part]))
            out[part] -= (across * self.solve(across)).sum(0)
        return out.clamp_min_(0)

    @torch.no_grad()
    def slope_variance(self, x: PointsLike, verbose: bool = False) -> Tensor:
        source, d = self.approximation, features_of(self.approximation.points)
        x = as_points_like(x, source.points)
        out = slope_variance(source.kernel, x.x)
        for part in self._parts(len(x), d):
            pairs = KernelBlocks.between(source.kernel, part_of(x, part), source.points)
            across = slope_values(source.kernel, pairs)[0].flatten(0, 1).mT.contiguous()  # (n, points · d)
            out[part] -= (across * self.solve(across)).sum(0).unflatten(0, (-1, d))
        return out.clamp_min_(0)

    def _parts(self, points: int, each: int = 1) -> list[slice]:
        """New points that are worked on together, if there are so many right-hand sides for each."""
        source = self.approximation
        room = resolve_budget(source.memory_budget, source.device) // (
            80 * len(source)
        )  # ten vectors for each
        return chunks(0, points, max(1, min(_AT_ONCE, room) // each))

    def covariance(self, x: PointsLike) -> Tensor:
        x = as_points_like(x, self.approximation.points)
        across = self.approximation.cross(x)
        own = KernelBlocks.between(self.approximation.kernel, x, x).tensor()[0]
        out = own - across.mT @ self.solve(across)
        return (out + out.mT) / 2


@dataclass
class ExactPredictor:
    """x ↦ k(x, X) weights, tile by tile."""

    kernel: Kernel
    points: Points
    weights: Tensor
    residuals: list[float] = field(default_factory=list)  # of the iteration that found the weights

    def validate(self) -> None:
        most = check_kernel(self.kernel, self.points)
        check_weights("weights", self.weights, most, len(self.points), None)
        require(self.columns > 0 and len(self.points) > 0, "weights must not be empty")
        require(self.weights.dtype == self.points.dtype, "weights must be of the points' type")

    @property
    def columns(self) -> int:
        return self.weights.shape[1]

    def __call__(self, x: PointsLike, verbose: bool = False) -> Tensor:
        x = as_points_like(x, self.points)
        out = self.weights.new_zeros(len(x), self.weights.shape[1])

        def work(rows: slice) -> None:
            for part, pairs in self._tiles(x, rows):
                out[rows].addmm_(pairs.tensor()[0], self.weights[part])

        for_each(work, chunks(0, len(x), kind_of(x.device).tile), x.device, "Predict", verbose)
        return out

    @torch.no_grad()
    def slope(self, x: PointsLike, verbose: bool = False) -> Tensor:
        x = as_points_like(x, self.points)
        d = features_of(x)
        out = self.weights.new_zeros(len(x), d, self.columns)

        def work(rows: slice) -> None:
            for part, pairs in self._tiles(x, rows):
                out[rows] += slope_of_sum(self.kernel, pairs, self.weights[part][None])[0]

        rows = chunks(0, len(x), max(1, kind_of(x.device).tile // d))
        for_each(work, rows, x.device, "Predict: gradient", verbose)
        return out

    def _tiles(self, x: Points, rows: slice) -> Iterator[tuple[slice, KernelBlocks]]:
        """Some new points with all training points, some of these at a time."""
        for part in chunks(0, len(self.points), kind_of(x.device).tile):
            blocks = _block(rows, x.device), _block(part, x.device)
            yield part, KernelBlocks(self.kernel, x, blocks[0], self.points, blocks[1])

    @property
    def nbytes(self) -> int:
        return self.weights.nbytes


def _block(part: slice, device: torch.device) -> Blocks:
    return Blocks(torch.arange(part.start, part.stop, device=device)[None], full=True)
