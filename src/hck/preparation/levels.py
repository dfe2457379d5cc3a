"""Categories as numbers: a column for each, their order, or what is known of the target where they are."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from hck.backend.checks import require
from hck.preparation.frames import Column, narrow, order_of, words

_FOLDS = 10
_PRIORS = (1.0, 4.0, 16.0, 64.0, 256.0, np.inf)  # rows that the mean of all counts as, to choose from
_MOST_TARGETS = 16  # of which there are statistics: those that vary most


def check_levels(values: list[str]) -> None:
    """Raise ValueError unless these are different words."""
    require(bool(values) and len({*values}) == len(values), "levels must be there, and differ")


@dataclass(frozen=True)
class Levels:
    """1 in the column of a category and 0 in all others; only 0 for one that was not seen in training."""

    values: list[str]  # sorted

    def validate(self) -> None:
        check_levels(self.values)
        require(self.values == sorted(self.values), "values must be sorted")

    @property
    def width(self) -> int:
        return len(self.values)

    @property
    def sizes(self) -> list[int]:
        """Of groups of features that share a weight: all of them."""
        return [len(self.values)]

    @classmethod
    def of(cls, column: Column) -> "Levels":
        """Those that a column has."""
        return cls(sorted({*words(column)}))

    def __call__(self, column: Column, name: object) -> sp.csr_matrix:
        """Shape (rows, width)."""
        code = _codes(column, self.values)
        known = code >= 0
        place = np.concatenate([[0], known.cumsum()])
        return sp.csr_matrix((np.ones(place[-1]), code[known], place), (len(code), self.width))

    def names(self, name: object) -> list[str]:
        """Of the features."""
        return [f"{name}: {value}" for value in self.values]


@dataclass(frozen=True)
class Ordered:
    """Ordered categories by their number; NaN for one that is missing, or was not known in training."""

    values: list[str]  # the least first

    def validate(self) -> None:
        check_levels(self.values)

    width = 1

    @property
    def sizes(self) -> list[int]:
        """Of groups of features that share a weight."""
        return [1]

    @classmethod
    def of(cls, column: Column) -> "Ordered":
        """The order that a column has."""
        return cls(order_of(column) or [])

    def __call__(self, column: Column, name: object) -> np.ndarray:
        """Shape (rows, 1)."""
        code = _codes(column, self.values)
        return np.where(code < 0, np.nan, code)[:, None]

    def names(self, name: object) -> list[str]:
        """Of the features."""
        return [str(name)]


@dataclass(frozen=True)
class Statistics:
    """The mean of the targets where a category is, drawn to the mean of all where it is rare or new.

    A row of training has it from rows of other parts of the data alone (`learn`), of ten in all: a mean with
    the row's own target in it would tell the target, and one without it too, by what is missing.
    """

    values: list[str]  # sorted
    means: np.ndarray  # (categories, targets)
    overall: np.ndarray  # (targets,)

    def validate(self) -> None:
        check_levels(self.values)
        shape = len(self.values), len(self.overall)
        require(self.overall.ndim == 1 and self.means.shape == shape, f"means must be of shape {shape}")
        for each in (self.means, self.overall):
            require(each.dtype == np.float64 and bool(np.isfinite(each).all()), "means must be finite")

    @property
    def width(self) -> int:
        return len(self.overall)

    @property
    def sizes(self) -> list[int]:
        """Of groups of features that share a weight: all of them."""
        return [self.width]

    @classmethod
    def learn(cls, column: Column, targets: np.ndarray) -> tuple["Statistics", np.ndarray]:
        """Of targets (rows, targets); and what training rows have in place of their categories."""
        values, code = np.unique(np.array(words(column), dtype=object), return_inverse=True)
        means, found, overall = settled_means(code, targets, len(values))
        return cls([str(value) for value in values], means, overall), found

    def __call__(self, column: Column, name: object) -> np.ndarray:
        """Shape (rows, targets)."""
        code = _codes(column, self.values)
        return np.vstack([self.means, self.overall])[code]

    def names(self, name: object) -> list[str]:
        """Of the features."""
        many = self.width > 1
        return [f"{name}: mean of target {j}" if many else f"{name}: mean target" for j in range(self.width)]


@dataclass(frozen=True)
class LeftOutMeans:
    """What other parts of the data say of each row by its category, (rows, targets), and how sure of it."""

    values: np.ndarray
    prior: float  # rows that the mean of all counts as
    errors: np.ndarray  # (rows,): squared, in units of the targets' variance


def left_out_means(code: np.ndarray, rest: np.ndarray, unit: np.ndarray | None = None) -> LeftOutMeans:
    """Means of targets without their mean, (rows, targets), by the numbers of categories (rows,).

    Rows of one unit, (rows,), counted from 0, are left out together; by default each is one.
    """
    unit = np.arange(len(rest)) if unit is None else unit
    units, levels = int(unit.max()) + 1, int(code.max()) + 1
    fold = (np.random.default_rng(0).permutation(units) % min(_FOLDS, max(units, 2)))[unit]
    cell = fold * levels + code
    if len(cell) < levels * _FOLDS:  # most are empty
        cell = np.unique(cell, return_inverse=True)[1]
    all_of, here = _sums(code, rest, levels), _sums(cell, rest, int(cell.max()) + 1)
    total, count = (whole[code] - part[cell] for whole, part in zip(all_of, here, strict=True))
    spread = rest.var(0)
    scale = np.where(spread > 0, spread, 1.0)

    def left_out(prior: float) -> LeftOutMeans:
        found = _drawn(total, count, prior)
        return LeftOutMeans(found, prior, ((rest - found) ** 2 / scale).mean(1))

    tried = [left_out(prior) for prior in _PRIORS[::-1]]  # of equal ones the most careful
    return min(tried, key=lambda each: float(each.errors.mean()))


def settled_means(code: np.ndarray, targets: np.ndarray, levels: int) -> tuple[np.ndarray, ...]:
    """Means of targets (levels, targets) of categories (rows,), what rows have in training, and of all."""
    overall = targets.mean(0)
    found = left_out_means(code, targets - overall)
    means = overall + _drawn(*_sums(code, targets - overall, levels), found.prior)
    return means, overall + found.values, overall


def _codes(column: Column, values: list[str]) -> np.ndarray:
    """The number of each row's category; -1 if it is not known."""
    place = {narrow(value, column): i for i, value in enumerate(values)}  # some files have more digits
    return np.array([place.get(each, -1) for each in words(column)], dtype=np.int64)


def _sums(code: np.ndarray, rest: np.ndarray, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """For each category the sum of targets (levels, targets), and how many there are (levels, 1)."""
    total = np.stack([np.bincount(code, each, levels) for each in rest.T], 1)
    return total, np.bincount(code, minlength=levels)[:, None].astype(np.float64)


def _drawn(total: np.ndarray, count: np.ndarray, prior: float) -> np.ndarray:
    """Means that are drawn to 0, as if so many rows more had it."""
    return np.zeros_like(total) if np.isinf(prior) else total / (count + prior)


def statistic_targets(y: np.ndarray, numeric: bool) -> np.ndarray:
    """What statistics are of, (rows, targets): y itself or, of labels, 1 where a class is.

    With many targets, those that vary most.
    """
    if numeric:
        targets = y.reshape(len(y), -1).astype(np.float64)
        return targets[:, np.argsort(-targets.var(0), kind="stable")[:_MOST_TARGETS]]
    _, code, count = np.unique(y, return_inverse=True, return_counts=True)
    kept = np.argsort(-count, kind="stable")[:_MOST_TARGETS]
    return (code[:, None] == (kept[1:] if len(count) == 2 else kept)).astype(np.float64)
