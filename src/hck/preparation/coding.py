"""Right-hand sides that branches solve for, from what users call y."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from hck.backend.checks import check_floats, require
from hck.kernels.inputs import refuse_complex

MOST_CLASSES = 10_000
_KINDS = {"U": "text", "O": "text", "i": "numbers", "u": "numbers", "f": "numbers", "b": "True or False"}


@dataclass
class Centred:
    """Numbers without their mean over all rows, (targets,)."""

    intercept: np.ndarray

    def validate(self) -> None:
        check_floats("intercept", torch.from_numpy(self.intercept), None)

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Shape (rows, columns)."""
        return (y if y.ndim == 2 else y[:, None]) - self.intercept


@dataclass
class OneAgainstAll:
    """±1 for each class (sorted), or for the second of two, without their mean, (classes,) or (1,)."""

    classes: np.ndarray
    intercept: np.ndarray

    def validate(self) -> None:
        count = check_classes(self.classes)
        check_floats("intercept", torch.from_numpy(self.intercept), 1 if count == 2 else count)

    @classmethod
    def of(cls, classes: np.ndarray, counts: np.ndarray) -> "OneAgainstAll":
        """From the labels of all rows, and how often they occur."""
        if len(classes) < 2:
            raise ValueError(f"at least two classes are needed, but y has one class only: {classes[0]!r}")
        mean = 2 * counts / counts.sum() - 1
        return cls(classes, mean[1:] if len(classes) == 2 else mean)

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Shape (rows, columns)."""
        return signs(codes_among(y, self.classes), len(self.classes)) - self.intercept

    def codes(self, targets: np.ndarray) -> np.ndarray:
        """The number of the class of each row, from what the call returned."""
        raw = targets + self.intercept
        return codes_of(raw[:, 0] if raw.shape[1] == 1 else raw)


def check_classes(classes: np.ndarray) -> int:
    """How many classes there are; ValueError unless they are labels, sorted, none twice."""
    require(classes.ndim == 1 and len(classes) > 1, "classes must be a row of at least two labels")
    require(classes.dtype.kind in "biufmMUO", f"classes must be labels, got {classes.dtype}")
    require(bool((classes[:-1] < classes[1:]).all()), "classes must be sorted, none twice")
    return len(classes)


Coding = Centred | OneAgainstAll
Scores = TypeVar("Scores", np.ndarray, Tensor)


def codes_of(scores: Scores) -> Scores:
    """The number of the class of each row, from scores (rows,) of the second of two, or (rows, classes)."""
    return (scores > 0) * 1 if scores.ndim == 1 else scores.argmax(1)


def codes_among(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The number of the class of each label; ValueError for one that is none of the classes, sorted."""
    y = y.reshape(-1)
    alike = [labels.dtype.kind in "biuf" for labels in (y, classes)]
    if alike[0] != alike[1] and len(y) and "O" not in (y.dtype.kind, classes.dtype.kind):
        raise ValueError(f"y has the label {y.tolist()[0]!r}, which was not there before")
    try:
        code = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    except TypeError:  # labels that cannot be compared
        raise ValueError(f"y has labels of other types than the classes {classes.tolist()!r}") from None
    known = classes[code] == y
    if not np.all(known):
        raise ValueError(f"y has the label {y.tolist()[np.argmin(known)]!r}, which was not there before")
    return code


def as_known(labels: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Labels, of the type of some that are known where that can say them.

    ValueError for those that cannot stand beside them: numbers beside text, and the like. True is 1.
    """
    kind, wanted = (_KINDS.get(each.dtype.kind, each.dtype.name) for each in (labels, known))
    if not len(labels) or kind == wanted == "text":
        return labels
    if "text" not in (kind, wanted):
        with np.errstate(invalid="ignore"):  # of numbers that are too large
            made = labels.astype(known.dtype)
        if bool((made == labels).all()):
            return made
    if kind != wanted:
        one, other = labels[:1].tolist()[0], known[:1].tolist()[0]
        raise ValueError(f"the label {one!r} cannot stand beside {other!r}: labels are {wanted} here")
    return labels


def new_labels(labels: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Those of some labels that are not known, sorted; see `as_known`."""
    return np.setdiff1d(as_known(labels, known), known)


def signs(code: np.ndarray, n_classes: int) -> np.ndarray:
    """±1 for each class, or for the second of two: shape (rows, 1 or classes), given the classes' numbers."""
    columns = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
    return np.where(code[:, None] == columns, 1.0, -1.0)


# Labels ----------------------------------------------------------------------------------------------


def as_labels(y: np.ndarray, first: int = 0, where: str = "") -> np.ndarray:
    """Labels (rows,) or (rows, 1) as numbers or text, (rows,).

    For messages, `first` is the number of the first row, and `where` says more: " of block 3".
    """
    if y.ndim not in (1, 2) or (y.ndim == 2 and y.shape[1] != 1):
        raise ValueError(f"y has the shape {y.shape}{where}: labels must be one column")
    y = y.reshape(-1)
    if y.dtype.kind == "O":
        y = _of_objects(y, first, where)
    if y.dtype.kind == "f":
        _refuse(~np.isfinite(y), "y has NaN or infinity", y, first, where)
        _refuse(y != np.floor(y), "Unknown label type: y has continuous numbers", y, first, where)
    elif y.dtype.kind not in "biuUS":
        raise ValueError(f"labels of type {y.dtype}{where} are not possible: use whole numbers or text")
    return np.char.decode(y) if y.dtype.kind == "S" else y


def as_targets(y: ArrayLike) -> np.ndarray:
    """Real numbers as float64, NaN where one is missing; ValueError for text, times and all else."""
    found = np.asarray(y)
    found = _real_objects(found) if found.dtype.kind == "O" else found
    refuse_complex(found)
    if found.dtype.kind not in "biuf":
        raise ValueError(f"y must be real numbers, got {found.dtype}: turn text and times into numbers first")
    return np.asarray(found, dtype=np.float64, order="C")


def _real_objects(y: np.ndarray) -> np.ndarray:
    """Python's objects as the real numbers that they are, NaN where one is missing."""
    found = np.empty(y.shape)
    for place, value in np.ndenumerate(y):
        try:
            if isinstance(value, str | bytes):  # which float() takes, too
                raise TypeError
            found[place] = np.nan if is_missing(value) else float(value)
        except (TypeError, ValueError, OverflowError):
            row = f" in row {place[0]:,}" if place else ""
            raise ValueError(
                f"y must be real numbers, got {value!r:.60}{row}: turn text and times into numbers first"
            ) from None
    return found


def refuse_sparse(y: object) -> None:
    """Raise ValueError for targets that are a sparse matrix."""
    if sp.issparse(y):
        raise ValueError("y is a sparse matrix, which targets cannot be: use y.toarray()")


def refuse_missing(y: np.ndarray, first: int = 0, where: str = "") -> None:
    """Raise ValueError if labels that are Python's objects are missing, or text and something else."""
    if y.dtype.kind == "O":
        missing = np.array([is_missing(label) for label in y.flat], bool)
        _refuse(missing, "y has no label", y.ravel(), first, where)
        text = np.array([isinstance(label, str) for label in y.flat], bool)
        if text.any():
            _refuse(~text, "y is text, but has something else", y.ravel(), first, where)


def _of_objects(y: np.ndarray, first: int, where: str) -> np.ndarray:
    """Python's objects as what they are."""
    refuse_missing(y, first, where)
    if all(isinstance(label, bytes) for label in y):
        return y.astype("S")
    if all(isinstance(label, int | float | np.number | np.bool_) for label in y):
        return np.array(y.tolist())
    text = np.array([isinstance(label, str) for label in y], bool)
    _refuse(~text, "y has a label that is neither a whole number nor text", y, first, where)
    return y.astype("U")


def is_missing(value: object) -> bool:
    """Whether it is None, NaN or pandas' NA, which is not even equal to itself."""
    same = value is not None and value == value
    return not same if isinstance(same, bool | np.bool_) else np.ndim(same) == 0


def _refuse(wrong: np.ndarray, what: str, y: np.ndarray, first: int, where: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{what} in row {first + row:,}{where}: {y[row : row + 1].tolist()[0]!r}")


def count_labels(y: np.ndarray, times: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Different labels, sorted, and how often they occur; each of y was seen so many `times`, or once."""
    classes, code = np.unique(y.reshape(-1), return_inverse=True)
    if len(classes) > MOST_CLASSES:
        raise ValueError(f"y has more than {MOST_CLASSES:,} different labels: are these classes?")
    return classes, np.bincount(code, times, len(classes))


# What has to be known of all targets before they can be coded, seen in pieces ---------------------------


@dataclass
class NumberTally:
    """The sum, (targets,) or (), of targets that are numbers, and how many there are."""

    total: np.ndarray
    count: int

    @classmethod
    def of(cls, y: np.ndarray) -> "NumberTally":
        """Of some rows (rows,) or (rows, targets)."""
        with np.errstate(over="ignore", invalid="ignore"):  # of which `coding` tells
            return cls(y.sum(0), len(y))

    def __add__(self, other: "NumberTally") -> "NumberTally":
        with np.errstate(over="ignore", invalid="ignore"):
            return NumberTally(self.total + other.total, self.count + other.count)

    def coding(self) -> Centred:
        """How these become right-hand sides."""
        if not np.isfinite(self.total).all():
            raise ValueError("y is too large: the sum of its values overflows. Scale y")
        return Centred(np.atleast_1d(self.total / self.count))


@dataclass
class LabelTally:
    """Class labels that were seen, sorted, and how often each."""

    classes: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray) -> "LabelTally":
        """Of some rows (rows,) or (rows, 1)."""
        return cls(*count_labels(y))

    def __add__(self, other: "LabelTally") -> "LabelTally":
        classes, counts = np.append(self.classes, other.classes), np.append(self.counts, other.counts)
        return LabelTally(*count_labels(classes, counts))

    def coding(self) -> OneAgainstAll:
        """How these become right-hand sides."""
        return OneAgainstAll.of(self.classes, self.counts)


Tally = NumberTally | LabelTally
