"""Numbers that are codes as well: values that come again and say more of targets than how large they are."""

from dataclasses import dataclass

import numpy as np

from hck.backend.checks import require
from hck.preparation.levels import left_out_means, settled_means

_FEWEST = 4  # rows of a value, on the average of all rows
_GAIN, _SURE = 0.005, 3.0  # of the targets' variance, and standard errors of it
_BINS, _QUANTILES = 10, 32  # intervals: in a standard deviation, or with equal numbers of rows
_MOST_CODES, _PARTNERS = 32, 1000  # columns that may be codes, and those that each is compared with
_LOOKED_AT, _LOOKS = 20_000, 2 * 10**7  # rows at most for each pair of columns, and for all pairs
_TOGETHER = 0.5  # of the pairs of values that there would be by chance, if two columns repeat together
_SAME = 1.1  # times as many values, at most, where one column says the other
_MOST, _MOST_VALUES = 2**17, 2**21  # rows that are looked at, and values in all columns


@dataclass(frozen=True)
class Repeats:
    """The mean of the targets where a number is, drawn to the mean of all where it is rare or new.

    Like `hck.preparation.levels.Statistics`, whose rows of training do not know their own targets either.
    """

    values: np.ndarray  # sorted, NaN last
    means: np.ndarray  # (values, targets)
    overall: np.ndarray  # (targets,)
    between: bool = False  # whether a new value is like those next to it, and not like all

    def validate(self) -> None:
        require(self.values.ndim == 1 and len(self.values) > 0, "values must be there")
        require(len(np.unique(self.values)) == len(self.values), "values must differ")
        require(bool((np.sort(self.values) == self.values)[:-1].all()), "values must be sorted")
        require(not np.isinf(self.values).any(), "values must not be infinite")
        shape = len(self.values), len(self.overall)
        require(self.overall.ndim == 1 and self.means.shape == shape, f"means must be of shape {shape}")
        for each in (self.values, self.means, self.overall):
            require(each.dtype == np.float64, "values and means must be float64")
        for each in (self.means, self.overall):
            require(bool(np.isfinite(each).all()), "means must be finite")

    @property
    def width(self) -> int:
        return len(self.overall)

    @classmethod
    def learn(cls, x: np.ndarray, targets: np.ndarray) -> tuple["Repeats", np.ndarray]:
        """Of numbers (rows,) and targets (rows, targets); and what training rows have beside their number."""
        values, code = np.unique(_narrow(x), return_inverse=True)
        means, found, overall = settled_means(code, targets, len(values))
        finite = np.isfinite(values)
        between = _is_smooth(values[finite], means[finite] - overall, np.bincount(code)[finite])
        return cls(values, means, overall, between), found

    @classmethod
    def of_words(cls, values: list[str], means: np.ndarray, overall: np.ndarray) -> "Repeats":
        """Of what earlier files have: numbers as text, of which one may stand for those that are missing."""
        numbers = _narrow(np.array([_number(value) for value in values]))
        order = np.argsort(numbers)
        return cls(numbers[order], means[order], overall)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """For numbers (rows,): shape (rows, targets)."""
        x = _narrow(x)
        place = np.searchsorted(self.values, x).clip(max=len(self.values) - 1)
        found = self.values[place]
        known = (found == x) | (np.isnan(found) & np.isnan(x))
        return np.where(known[:, None], self.means[place], self._of_new(x))

    def _of_new(self, x: np.ndarray) -> np.ndarray:
        if not self.between:
            return self.overall
        finite = np.isfinite(self.values)
        values, means = self.values[finite], self.means[finite]
        inside = (x >= values[0]) & (x <= values[-1])
        found = np.stack([np.interp(x, values, each) for each in means.T], 1)
        return np.where(inside[:, None], found, self.overall)

    def names(self, name: object) -> list[str]:
        """Of the features."""
        many = self.width > 1
        return [f"{name}: mean of target {j}" if many else f"{name}: mean target" for j in range(self.width)]


def _is_smooth(values: np.ndarray, means: np.ndarray, count: np.ndarray) -> bool:
    """Whether means (values, targets), whose mean is 0, are predicted by those of the values next to them."""
    if len(values) < 3:
        return False
    with np.errstate(all="ignore"):
        share = ((values[1:-1] - values[:-2]) / (values[2:] - values[:-2]))[:, None]
        error = means[1:-1] - (1 - share) * means[:-2] - share * means[2:]
        weight = count[1:-1, None]
        return bool((weight * error**2).sum() < (weight * means[1:-1] ** 2).sum())


def _narrow(x: np.ndarray) -> np.ndarray:
    """Fractions by the digits of float32, which tables of any width have; whole numbers keep all digits."""
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        short = x.astype(np.float32).astype(np.float64)
    return np.where((x == np.floor(x)) | np.isinf(short), x, short) + 0.0  # −0 is 0


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return np.nan


def codes_among(x: np.ndarray, targets: np.ndarray) -> list[int]:
    """Which columns of x (rows, columns), NaN where values are missing, are categories; see `says_more`.

    Where columns repeat together, as of designs, places or patients that were measured several times, a value
    stands for one of these, of which other columns say more than its mean if it is new. So all its rows are
    left out together then, unless it is a whole number to which others belong, as a region does to a shop.
    """
    if not x.size:
        return []
    most = min(_MOST, max(_MOST_VALUES // x.shape[1], 1))
    if len(x) > most:
        some = np.random.default_rng(0).permutation(len(x))[:most]
        x, targets = x[some], targets[some]

    columns = [np.asarray(column, np.float64) for column in x.T]
    found = [i for i, column in enumerate(columns) if says_more(column, targets)][:_MOST_CODES]
    if not found:
        return []
    partners = np.random.default_rng(0).permutation(x.shape[1])[:_PARTNERS]
    rows = max(1000, min(_LOOKED_AT, _LOOKS // (len(found) * len(partners))))
    units = [_unit(x, i, partners, rows) for i in found]
    return [
        i
        for i, unit in zip(found, units, strict=True)
        if unit is None or says_more(columns[i], targets, unit)
    ]


def _unit(x: np.ndarray, i: int, partners: np.ndarray, rows: int) -> np.ndarray | None:
    """What rows have in common if columns repeat together with the i-th, (rows,); None if it numbers that.

    It is compared with the partners, on all rows of some of its values: about so many rows.
    """
    own = _numbered(x[:, i])
    levels, rng = int(own.max()) + 1, np.random.default_rng(0)
    chosen = np.flatnonzero(rng.permutation(levels)[own] < max(2, levels * rows // len(x)))
    few = own[chosen]
    apart = len(np.unique(few))
    unit, is_number = own, bool((x[:, i] == np.floor(x[:, i]))[np.isfinite(x[:, i])].all())
    for k in partners[partners != i]:
        other = _numbered(x[chosen, k])
        width = int(other.max()) + 1
        pairs, mixed = (len(np.unique(few * width + each)) for each in (other, rng.permutation(other)))
        if pairs < _TOGETHER * mixed:
            belongs = pairs < _SAME * apart and width * _SAME < apart
            is_number = is_number and belongs
            unit = _numbered(unit * len(x) + _numbered(x[:, k]))
    return None if is_number or unit is own else unit


def says_more(x: np.ndarray, targets: np.ndarray, unit: np.ndarray | None = None) -> bool:
    """Whether values of x (rows,), NaN where they are missing, are categories, judged by targets.

    Means of targets (rows, targets) of the very value then predict left-out rows better than those of all
    values close by, and of that and the next, as of amounts that stand in a law, or numbers of shops. Rows of
    one unit, (rows,), are left out together.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(50, size=2000)
    >>> says_more(x, rng.normal(size=50)[x][:, None])
    True
    >>> says_more(x, np.sin(x / 10)[:, None])
    False
    """
    there = np.flatnonzero(np.isfinite(x))
    x = x[there]
    values, code, count = np.unique(x, return_inverse=True, return_counts=True)
    if len(values) < 3 or (count**2).sum() < _FEWEST * len(x):
        return False
    unit = None if unit is None else _numbered(unit[there])
    rest = targets[there] - targets[there].mean(0)
    with np.errstate(all="ignore"):  # of numbers whose squares overflow, all are in one interval
        widths = np.nan_to_num(np.floor((x - x.min()) / (x.std() / _BINS)))
    edges = np.quantile(x, np.linspace(0, 1, _QUANTILES + 1)[1:-1])
    others = (_numbered(widths), _numbered(np.searchsorted(edges, x)), code // 2, (code + 1) // 2)
    if any(len(np.unique(each)) == len(values) for each in others):  # each value is an interval by itself
        return False
    errors = left_out_means(code, rest, unit).errors
    return all(_is_above(left_out_means(each, rest, unit).errors - errors) for each in others)


def _numbered(values: np.ndarray) -> np.ndarray:
    return np.unique(values, return_inverse=True)[1]


def _is_above(gain: np.ndarray) -> bool:
    return bool(gain.mean() > max(_GAIN, _SURE * gain.std() / len(gain) ** 0.5))
