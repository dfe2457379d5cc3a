"""Columns of tables and arrays as features: numbers with missing values, categories, dates."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from hck.backend.checks import require
from hck.preparation.arrays import Table
from hck.preparation.dates import Dates
from hck.preparation.frames import column_of, is_frame, kind_of, names_of, numbers, refuse_twins
from hck.preparation.levels import Levels, Ordered, Statistics
from hck.preparation.repeats import Repeats, codes_among
from hck.preparation.ties import Ties

Targets: TypeAlias = Callable[[], np.ndarray]
Coding: TypeAlias = Levels | Ordered | Statistics | Dates

_LEAST_WIDTH = 0.5  # by which features of 0 and 1 are scaled: those that are rare would be far from all
_MOST_LEVELS = 64  # of a column, for which there is a feature each where targets are known
_MOST_FEATURES = 256  # of categories: more are sparse or, where targets are known, become statistics
_ROWS = 2**16  # that are looked at together


@dataclass(frozen=True)
class Columns:
    """How the columns of a table become features, in this order:

    those of columns that are coded, at some positions of the table, then all other columns, which are
    numbers, then for each column with missing values in training an indicator, 1 where the value is missing,
    then, for some columns of numbers, means of the target where a value is. In the place of a missing number
    is the mean.
    """

    positions: list[int]  # of columns that are coded
    codings: Sequence[Coding]
    fills: Sequence[np.ndarray]  # for each of them, means of its features
    means: np.ndarray | None  # of the other columns; None in old files, whose models take no missing values
    indicated: list[int]  # positions of columns that have an indicator
    names: list[Any]  # of all columns; none if they have none
    repeated: list[int] = field(default_factory=list)  # positions of columns with means of the target
    statistics: Sequence[Repeats | Statistics] = ()  # of these; the latter in old files

    def validate(self) -> None:
        require(len(self.positions) == len(self.codings) == len(self.fills), "codings and positions differ")
        require(all(np.diff([-1, *self.positions]) > 0), "positions must ascend, from 0")
        require(all(np.diff([-1, *self.indicated]) > 0), "indicated must ascend, from 0")
        require(all(np.diff([-1, *self.repeated]) > 0), "repeated must ascend, from 0")
        require(len(self.repeated) == len(self.statistics), "repeated and statistics differ")
        require(not {*self.repeated} & {*self.positions}, "columns with statistics must be numbers")
        for coding, fill in zip(self.codings, self.fills, strict=True):
            _check_means(fill, coding.width)
        if self.means is not None:
            _check_means(self.means, len(self.means))

    def width(self, columns: int) -> int:
        """How many features a table of so many columns becomes; ValueError if it cannot have as many."""
        for each in (self.positions, self.indicated, self.repeated):
            require(not each or max(each) < columns, f"codings are beyond the {columns} columns of a table")
        rest = columns - len(self.positions)
        require(self.means is None or len(self.means) == rest, f"means must be of {rest} columns")
        require(len(self.names) in (0, columns), f"names must be of {columns} columns")
        coded = sum(coding.width for coding in (*self.codings, *self.statistics))
        return coded + rest + len(self.indicated)

    def numbers(self, columns: int) -> tuple[list[int], slice]:
        """Positions of columns that are numbers, in a table of so many, and which features they are."""
        first = sum(coding.width for coding in self.codings)
        rest = [i for i in range(columns) if i not in self.positions]
        return rest, slice(first, first + len(rest))

    # Training ---------------------------------------------------------------------------------------

    @classmethod
    def of_array(cls, x: np.ndarray) -> "Columns":
        """For an array of numbers (rows, columns), NaN where they are missing."""
        means, count = _means(x)
        return cls([], [], [], means, np.flatnonzero(count < len(x)).tolist(), [])

    @classmethod
    def learn_array(cls, x: np.ndarray, targets: Targets) -> tuple["Columns", np.ndarray]:
        """The same, and what its rows become; with means of the targets where numbers are codes."""
        made, means = cls.of_array(x), []
        if repeated := codes_among(x, targets()):
            both = [Repeats.learn(x[:, i], targets()) for i in repeated]
            means = [found for _, found in both]
            made = replace(made, repeated=repeated, statistics=[each for each, _ in both])
        return made, made._together([], x, means)

    @classmethod
    def learn(cls, table: Table, targets: Targets | None = None) -> tuple["Columns", Any]:
        """For a data frame; and what its rows become, of which those of categories do not know their target.

        `targets` makes what there may be statistics of, (rows, targets).
        """
        names = names_of(table)
        refuse_twins(names)
        targets = targets and cache(targets)
        codings = _codings(table, names, targets is not None)
        known = []
        for i, coding in codings.items():
            column = column_of(table, i)
            if coding is None and targets is not None:
                codings[i], found = Statistics.learn(column, targets())
            elif coding is not None:
                found = coding(column, names[i])
            known.append(found)
        positions, rest = list(codings), [i for i in range(len(names)) if i not in codings]
        plain = _numbers(table, rest, names)
        of_rest = cls.of_array(plain)
        gaps = [i for i, found in zip(positions, known, strict=True) if _missing(found).any()]
        indicated = sorted([*gaps, *(rest[i] for i in of_rest.indicated)])
        coded = [coding for coding in codings.values() if coding is not None]
        made = cls(positions, coded, [_fill_of(each) for each in known], of_rest.means, indicated, names)
        if targets is None:
            return made, made._together(known, plain)
        codes = codes_among(plain, targets())
        both = [Repeats.learn(plain[:, j], targets()) for j in codes]
        made = replace(made, repeated=[rest[j] for j in codes], statistics=[each for each, _ in both])
        return made, made._together(known, plain, [means for _, means in both])

    # Features ---------------------------------------------------------------------------------------

    def __call__(self, table: Table) -> sp.csr_matrix | np.ndarray:
        """The features of a data frame with the same columns."""
        names = names_of(table)
        known = [
            coding(column_of(table, i), names[i])
            for i, coding in zip(self.positions, self.codings, strict=True)
        ]
        rest = [i for i in range(len(names)) if i not in self.positions]
        plain = _numbers(table, rest, names)
        return self._together(known, plain, self._means_of(plain))

    def check_frame(self, X: Table) -> None:
        """Raise ValueError unless it is a data frame, as in training."""
        if not is_frame(X):
            coded = ", ".join(map(self._called, self.positions))
            raise ValueError(
                f"the estimator was fitted to a table with categories or dates in columns {coded}: pass a "
                "table with the same columns"
            )

    def fill(self, x: np.ndarray) -> np.ndarray:
        """The features of an array of numbers: itself, if none is missing, nor was, and none is a code."""
        return self._together([], x, self._means_of(x))

    def _means_of(self, plain: np.ndarray) -> list[np.ndarray]:
        """Means of targets by numbers that are codes, of all that are no codings."""
        if not self.repeated:
            return []
        place = np.searchsorted(self._rest(plain.shape[1] + len(self.positions)), self.repeated)
        known = (
            each if isinstance(each, Repeats) else Repeats.of_words(each.values, each.means, each.overall)
            for each in self.statistics
        )
        return [each(plain[:, j]) for j, each in zip(place, known, strict=True)]

    def _called(self, position: int) -> str:
        return str(self.names[position] if self.names else position)

    def _together(self, known: list[Any], plain: np.ndarray, means: Sequence[np.ndarray] = ()) -> Any:
        """Features from codings (rows, width), other columns, NaN where values are missing, and means."""
        if self.means is None:
            return _stack([*known, plain])
        gaps = {i: _missing(found) for i, found in zip(self.positions, known, strict=True)}
        rest = [i for i in range(len(self.means) + len(known)) if i not in self.positions]
        holes = np.isnan(plain)
        if holes.any():
            gaps |= {rest[j]: holes[:, j] for j in np.flatnonzero(holes.any(0))}
            plain = np.where(holes, self.means.astype(plain.dtype), plain)
        new = [i for i, gap in gaps.items() if i not in self.indicated and gap.any()]
        if new:
            self._warn(new)
        filled = [
            found if sp.issparse(found) else np.where(np.isnan(found), fill, found)
            for found, fill in zip(known, self.fills, strict=True)
        ]
        nowhere = np.zeros(len(plain), dtype=bool)
        marks = np.stack([gaps.get(i, nowhere) for i in self.indicated], 1) if self.indicated else None
        if not filled and marks is None and not means:
            return plain
        more = [] if marks is None else [marks.astype(plain.dtype)]
        return _stack([*filled, plain, *more, *means])  # means are float64, whatever numbers are

    def _warn(self, positions: list[int]) -> None:
        called = ", ".join(map(self._called, sorted(positions)[:5]))
        more = f" and {len(positions) - 5} more" if len(positions) > 5 else ""
        warnings.warn(
            f"values are missing, or not known, in columns without such in training: {called}{more}. The "
            "mean takes their place",
            UserWarning,
            stacklevel=2,
        )

    # What features are ------------------------------------------------------------------------------

    @property
    def categories(self) -> list[int]:
        """Positions of columns that are categories."""
        return [i for i in self.positions if i not in self.dates]

    @property
    def dates(self) -> list[int]:
        """Positions of columns that are dates."""
        return [i for i, each in zip(self.positions, self.codings, strict=True) if isinstance(each, Dates)]

    def sources(self, columns: int) -> np.ndarray:
        """For each feature the position of the column that it comes from."""
        coded, means = (
            np.repeat(each, [coding.width for coding in codings]).astype(int)
            for each, codings in ((self.positions, self.codings), (self.repeated, self.statistics))
        )
        return np.concatenate([coded, self._rest(columns), np.array(self.indicated, dtype=int), means])

    def of_columns(self, values: np.ndarray, columns: int) -> np.ndarray:
        """Sums over the features of each column: shape (columns,)."""
        return np.bincount(self.sources(columns), values, columns)

    def feature_names(self, names: list[str]) -> list[str]:
        """Of all features, given those of the columns."""
        coded, means = (
            [name for i, coding in zip(each, codings, strict=True) for name in coding.names(names[i])]
            for each, codings in ((self.positions, self.codings), (self.repeated, self.statistics))
        )
        rest = [names[i] for i in self._rest(len(names))]
        return coded + rest + [f"{names[i]} is missing" for i in self.indicated] + means

    def _rest(self, columns: int) -> np.ndarray:
        return np.setdiff1d(np.arange(columns), self.positions)

    def ties(self, columns: int) -> Ties | None:
        """Which features share a weight; None if each has its own and is a number as it came."""
        if not self.codings and not self.indicated and not self.repeated:
            return None
        sizes = [size for coding in self.codings for size in coding.sizes]
        sizes += [1] * (columns - len(self.positions) + len(self.indicated))
        sizes += [each.width for each in self.statistics]
        binary = np.concatenate(
            [np.full(coding.width, isinstance(coding, Levels)) for coding in self.codings]
            + [np.zeros(columns - len(self.positions), dtype=bool), np.ones(len(self.indicated), dtype=bool)]
            + [np.zeros(each.width, dtype=bool) for each in self.statistics]
        )
        return Ties(np.repeat(np.arange(len(sizes)), sizes), np.where(binary, _LEAST_WIDTH, 0.0))


def _codings(table: Table, names: list[Any], statistics: bool) -> dict[int, Coding | None]:
    """By position, those of columns that are no numbers; None where there are to be statistics."""
    made: dict[int, Coding | None] = {}
    for i, name in enumerate(names):
        column = column_of(table, i)
        kind = kind_of(column, name)
        if kind == "dates":
            made[i] = Dates.of(column, name)
        elif kind != "numbers":
            made[i] = Ordered.of(column) if kind == "order" else Levels.of(column)
    if statistics:
        widths = {i: each.width for i, each in made.items() if isinstance(each, Levels)}
        for i in sorted(widths, key=lambda i: -widths[i]):
            if widths[i] > _MOST_LEVELS or sum(widths.values()) > _MOST_FEATURES:
                made[i], widths[i] = None, 1
    return made


def _numbers(table: Table, positions: list[int], names: list[Any]) -> np.ndarray:
    found = [numbers(column_of(table, i), names[i]) for i in positions]
    return np.stack(found, 1) if found else np.empty((table.shape[0], 0))


def _missing(found: sp.csr_matrix | np.ndarray) -> np.ndarray:
    """Which rows (rows,) of a coded column are."""
    return np.zeros(found.shape[0], dtype=bool) if sp.issparse(found) else np.isnan(found).any(1)


def _means(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each column what is there, 0 where nothing is; and in how many rows something is."""
    total, count = np.zeros(x.shape[1]), np.zeros(x.shape[1], dtype=np.int64)
    for part in (x[i : i + _ROWS] for i in range(0, len(x), _ROWS)):
        there = ~np.isnan(part)
        count += there.sum(0)
        total += np.where(there, part, 0).sum(0, dtype=np.float64)
    return total / np.maximum(count, 1), count


def _fill_of(found: sp.csr_matrix | np.ndarray) -> np.ndarray:
    """What stands in for missing values of a coded column; those of categories are never missing."""
    return np.zeros(found.shape[1]) if sp.issparse(found) else _means(found)[0]


def _check_means(means: np.ndarray, width: int) -> None:
    require(means.dtype == np.float64 and means.shape == (width,), f"means must be {width} of float64")
    require(bool((np.abs(means) < 1e150).all()), "means must be finite, and not so large")  # NaN neither


def _stack(parts: list[Any]) -> sp.csr_matrix | np.ndarray:
    """Side by side: a sparse matrix where there are many categories."""
    if sum(part.shape[1] for part in parts if sp.issparse(part)) > _MOST_FEATURES:
        return sp.hstack([sp.csr_matrix(part) for part in parts], format="csr")
    return np.hstack([part.toarray() if sp.issparse(part) else part for part in parts])
