"""Made-up data of the size, the kind and about the difficulty of each real data set."""

import numpy as np

from hck.datasets._dataset import Dataset
from hck.datasets._generator import Generator, Kind
from hck.datasets._registry import entry

_KINDS = {
    "cadata": Kind(0.37, 0.8, mean=206_856, std=115_393),
    "YearPredictionMSD": Kind(0.78, 0.6, mean=1998.4, std=10.9),
    "ijcnn1": Kind(0.006, 0.3, classes=(-1, 1), shares=(0.9, 0.1)),
    "covtype.binary": Kind(0.015, 1.0, classes=(False, True), shares=(0.51, 0.49), binary=44),
    "SUSY": Kind(0.195, 0.4, classes=(0, 1), shares=(0.54, 0.46)),
    "mnist": Kind(0.005, 0, classes=tuple(range(10)), shares=(0.1,) * 10, separation=2.4),
    "acoustic": Kind(0.18, 0.3, classes=(1, 2, 3), shares=(0.25, 0.25, 0.5)),
    "covtype": Kind(
        0.015,
        0.6,
        classes=(1, 2, 3, 4, 5, 6, 7),
        shares=(0.365, 0.488, 0.061, 0.005, 0.016, 0.03, 0.035),
        binary=44,
    ),
    "elevators": Kind(0.33, 0.4, std=0.2526),
    "pol": Kind(0.06, 0.5, std=41.72),
    "flights3m": Kind(0.95, 1.0, mean=6.66, std=32.36),
    "a9a": Kind(0.12, 0.3, directions=1, classes=(-1, 1), shares=(0.76, 0.24), words=14),
    "reuters": Kind(0.01, 0.3, directions=1, classes=(-1, 1), shares=(0.93, 0.07), words=44, weighted=True),
}


def synthetic(name: str, n: int | None = None, seed: int = 0) -> Dataset:
    """A made-up data set of the size of a real one, and about as difficult.

    Parameters
    ----------
    name : str
        The real data set, one of `names`.
    n : int, default=None
        Records to train on; there are as many to test on as the real one has for so many. None: all as the
        real one has, before duplicates are removed.
    seed : int, default=0
        Of the random numbers.

    Returns
    -------
    Dataset
        Its name begins with "synthetic".

    Examples
    --------
    >>> data = synthetic("SUSY", n=4000)
    >>> data.name, data.X_train.shape, data.X_test.shape
    ('synthetic SUSY', (4000, 18), (1000, 18))
    """
    known = entry(name)
    train = known.n_train if n is None else n
    if train < 1:
        raise ValueError(f"n must be positive, got {n}")
    test = max(1, round(train * known.n_test / known.n_train))
    generator = Generator(known.d, _KINDS[name], np.random.default_rng(seed))
    (X_train, y_train), (X_test, y_test) = generator.make(train), generator.make(test)
    given = "" if n is None else f", n={n}"
    return Dataset(
        f"synthetic {name}",
        known.task,
        X_train,
        y_train,
        X_test,
        y_test,
        source=f"Made up by hck.datasets.synthetic({name!r}{given}, seed={seed}).",
        synthetic=True,
    )
