"""Data sets by name."""

import operator

import numpy as np
import scipy.sparse as sp
from sklearn.utils import shuffle

from hck.datasets._dataset import Dataset
from hck.datasets._entry import Entry
from hck.datasets._find import Folder, find, is_there
from hck.datasets._prepare import cut, distinct, scale
from hck.datasets._registry import REGISTRY, entry
from hck.datasets.table import Features, Table


def names() -> tuple[str, ...]:
    """The data sets that `load` knows: first the eight of the paper.

    Examples
    --------
    >>> names()[:4]
    ('cadata', 'YearPredictionMSD', 'ijcnn1', 'covtype.binary')
    """
    return tuple(REGISTRY)


def is_at_hand(name: str, *, folder: Folder = None) -> bool:
    """Whether `load` finds a data set without a download.

    Parameters
    ----------
    name : str
        One of `names`.
    folder : path-like, default=None
        Where to look, as for `load`.

    Examples
    --------
    >>> import tempfile
    >>> from hck.datasets import is_at_hand
    >>> with tempfile.TemporaryDirectory() as folder:  # which is empty
    ...     is_at_hand("cadata", folder=folder)
    False
    """
    return is_there(entry(name), folder)


def load(
    name: str, *, split: int = 0, folder: Folder = None, prepare: bool = True, verbose: bool = True
) -> Dataset:
    """A real data set, prepared as in the paper.

    It is looked for as ``<name>.npz`` (covtype.binary as covtype.npz, reuters as reuters_money_fx.npz,
    diamonds as diamonds.csv, adult as adult_train.csv and adult_test.csv), or as the files of its public
    home, in the folder that the environment variable HCK_DATA names, then in the
    cache (``$XDG_CACHE_HOME/hck`` or ``~/.cache/hck``). If it is in neither, it is downloaded to the cache.
    It is never made up: see `synthetic`.

    Parameters
    ----------
    name : str
        One of `names`.
    split : int, default=0
        The seed of the shuffle, and of the split 4:1 of sets that come whole. Sets that come split stay so.
    folder : path-like, default=None
        Where to look and to download to, instead of all these places.
    prepare : bool, default=True
        Scale features to [0, 1] with the records to train on (unless they are in [-1, 1]), and remove
        records to train on that repeat or contradict others. If False, sets that come whole are only split,
        and the others are as they came. Sparse sets are always as they came, and so are diamonds and adult,
        which are pandas frames with columns of categories, of adult with missing values.
    verbose : bool, default=True
        Whether to show progress bars.

    Raises
    ------
    FileNotFoundError
        If it is nowhere, and cannot be downloaded. The message says what to put where.

    Examples
    --------
    A folder with the file is all it takes. Here the numbers in it are made up:

    >>> import tempfile
    >>> import numpy as np
    >>> from hck import HCKRegressor
    >>> from hck.datasets import load
    >>> X = np.random.default_rng(0).uniform(size=(50, 8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/cadata.npz", X=X, y=X[:, 0])
    ...     data = load("cadata", folder=folder, verbose=False)
    >>> data.X_train.shape, data.X_test.shape
    ((40, 8), (10, 8))
    >>> model = HCKRegressor("gaussian", lengthscale=1.0, alpha=1e-3).fit(data.X_train, data.y_train)
    >>> data.error(model.predict(data.X_test)) < 0.2  # as the paper measures it
    True
    """
    known = entry(name)
    split = operator.index(split)
    if split < 0:
        raise ValueError(f"split must be a seed, 0 or more, got {split}")
    tables, source = find(name, known, folder, verbose)
    comes_whole = len(tables) == 1
    parts = [_checked(table, known, name) for table in tables]
    if comes_whole:
        X_train, y_train, X_test, y_test = cut(*parts[0], split)
    else:
        (X_train, y_train), (X_test, y_test) = parts
    if prepare and not known.stays_as_it_came:
        if not comes_whole:
            X_train, y_train = shuffle(X_train, y_train, random_state=split)
        X_train, y_train = distinct(X_train, y_train, known.task != "regression")
        X_train, X_test = scale(X_train, X_test, known.unit)
    return Dataset(
        name,
        known.task,
        _floats(X_train),
        y_train,
        _floats(X_test),
        y_test,
        feature_names=_feature_names(tables[0], known),
        source=source,
    )


def records(name: str, *, folder: Folder = None, verbose: bool = True) -> Table:
    """All records of a data set that comes whole, in their order, neither split nor scaled.

    Parameters are those of `load`.

    Parameters
    ----------
    name : str
        One of `names`.
    folder : path-like, default=None
        As for `load`.
    verbose : bool, default=True
        Whether to show progress bars.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from hck.datasets import records
    >>> folder = tempfile.TemporaryDirectory()
    >>> rng = np.random.default_rng(0)
    >>> np.savez(Path(folder.name) / "cadata.npz", X=rng.uniform(size=(50, 8)), y=rng.uniform(size=50))
    >>> records("cadata", folder=folder.name, verbose=False).X.shape
    (50, 8)
    >>> folder.cleanup()
    """
    known = entry(name)
    tables, _ = find(name, known, folder, verbose)
    if len(tables) > 1:
        raise ValueError(f"{name} comes split into records to train and to test on: use load")
    X, y = _checked(tables[0], known, name)
    return Table(_floats(X), y, _feature_names(tables[0], known))


def _checked(table: Table, known: Entry, name: str) -> tuple[Features, np.ndarray]:
    """Features, and targets: numbers as floats, a class against the rest as booleans; see `_classes`."""
    X, y = table.X, np.asarray(table.y)
    values = X.data if sp.issparse(X) else X
    if known.frame is None and values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"the features of {name} contain NaN or infinity: the file is damaged")
    if known.positive is not None:
        return X, y == known.positive
    return X, y.astype(float) if known.task == "regression" else _classes(y)


def _classes(y: np.ndarray) -> np.ndarray:
    """As integers, unless they are words."""
    try:
        return y.astype(int)
    except ValueError:
        return y.astype(str)


def _floats(X: Features) -> Features:
    """Features as floats; those of a frame may be categories, and stay."""
    return X if hasattr(X, "columns") else X.astype(float, copy=False)


def _feature_names(table: Table, known: Entry) -> list[str] | None:
    return table.feature_names if known.names is None else list(known.names)
