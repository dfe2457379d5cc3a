"""Kernel values that are known already, or that a function of the points' numbers knows."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hck.kernels.function import CallableKernel
from hck.kernels.inputs import Data, refuse_complex


class Precomputed(CallableKernel):
    """A kernel of points that are numbers of rows: i and j have the value K[i, j].

    Points are 1-D arrays of whole numbers; new ones may also be rows of their values with all points of
    training, as scikit-learn has them.

    Parameters
    ----------
    source : array-like of shape (n, n), or callable
        The values, or a function of two arrays of numbers that returns them: of shape (len(i), len(j)). A
        matrix is copied.

    Examples
    --------
    >>> import numpy as np
    >>> from hck import HCKRegressor
    >>> from hck.kernels import Precomputed
    >>> x = np.linspace(0, 3, 50)
    >>> kernel = Precomputed(lambda i, j: np.exp(-(x[i][:, None] - x[j]) ** 2))
    >>> model = HCKRegressor(kernel, partition="kernel", alpha=1e-6, rank=64)
    >>> model = model.fit(np.arange(40), np.sin(x[:40]))
    >>> bool(abs(model.predict(np.array([41]))[0] - np.sin(x[41])) < 1e-2)
    True
    """

    def __init__(self, source: "ArrayLike | Callable[[np.ndarray, np.ndarray], Any]") -> None:
        self.source = source if callable(source) else check_values(source).copy()
        super().__init__(self._between)

    @classmethod
    def borrowing(cls, values: np.ndarray) -> "Precomputed":
        """Of checked values that are not copied, but forgotten after `fit`."""
        made = object.__new__(cls)
        made.source = values
        CallableKernel.__init__(made, made._between)
        return made

    def forget(self) -> None:
        """Keep no values any more: those of new points with others are all that is needed to predict."""
        self.source = np.empty((0, 0))

    @property
    def label(self) -> str:
        return "given values"

    def _between(self, a: np.ndarray, b: np.ndarray) -> Any:
        if _is_rows(a) and _is_rows(b):
            raise ValueError(
                "values between new points are not known to a precomputed kernel, nor those with landmarks "
                "that are given: use landmarks='uniform' or 'farthest', or numbers of rows"
            )
        if _is_rows(a):
            return np.stack(a.tolist())[:, b]
        if _is_rows(b):
            return np.stack(b.tolist())[:, a].T
        if callable(self.source):
            return self.source(a, b)
        return self.source[np.ix_(self._places(a), self._places(b))]

    def _places(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers of rows, if there are such."""
        n = len(self.source)  # type: ignore[arg-type]
        if numbers.dtype.kind not in "iu" or (numbers < 0).any() or (numbers >= n).any():
            raise ValueError(
                f"points of a precomputed kernel are numbers of its rows, from 0 to {n - 1}, got "
                f"{numbers[:5].tolist()}"
            )
        return numbers

    def __repr__(self) -> str:
        what = "a function" if callable(self.source) else " × ".join(map(str, np.shape(self.source)))
        return f"Precomputed({what})"


def check_values(values: Data) -> np.ndarray:
    """A symmetric matrix of finite values (n, n) as floats, or ValueError."""
    found = np.asarray(values)
    refuse_complex(found)
    found = found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)
    if found.ndim != 2 or found.shape[0] != found.shape[1] or not len(found):
        raise ValueError(
            f"a precomputed kernel must be a square matrix, a value for each pair of training points, got "
            f"shape {found.shape}"
        )
    check_finite_values(found)
    allowed = (1e-4 if found.dtype == np.float32 else 1e-8) * max(-found.min(), found.max())
    for i in range(0, len(found), 1024):
        apart = np.abs(found[i : i + 1024, i:] - found[i:, i : i + 1024].T)
        if apart.max() > allowed:
            row, column = np.unravel_index(int(apart.argmax()), apart.shape)
            raise ValueError(
                f"a precomputed kernel must be symmetric, but the values of points {i + row} and "
                f"{i + column} are {found[i + row, i + column]:g} and {found[i + column, i + row]:g}"
            )
    return found


def check_finite_values(values: np.ndarray) -> None:
    """Raise ValueError unless all values (rows, columns) are finite."""
    wrong = ~np.isfinite(values)
    if wrong.any():
        row, column = np.unravel_index(int(wrong.argmax()), values.shape)
        raise ValueError(
            f"the precomputed kernel has NaN or infinity: its value in row {row} and column {column} is "
            f"{values[row, column]:g}, but values of kernels are finite, and none can be missing"
        )


def _is_rows(block: np.ndarray) -> bool:
    """Whether points are rows of values: objects, where numbers are an array of numbers."""
    return block.dtype == object
