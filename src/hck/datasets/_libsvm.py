"""LIBSVM text: a line for each record, a target and then pairs index:value; what is 0 is left out."""

import lzma
import zlib
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from hck.datasets._streams import OPEN, with_bar
from hck.datasets.table import Table, refuse_missing


def read_libsvm(path: Path, n_features: int | None = None, show: bool = False) -> Table:
    """A file of LIBSVM text, compressed or not. Indices may begin at 1, as they should, or at 0.

    Parameters
    ----------
    n_features : int, default=None
        None: the largest index.
    show : bool, default=False
        Whether to show a progress bar.
    """
    try:
        with (
            path.open("rb") as raw,
            with_bar(raw, path.stat().st_size, f"reading {path.name}", show) as counted,
            OPEN.get(path.suffix, nullcontext)(counted) as file,
        ):
            X, y = load_svmlight_file(file)
    except ValueError as error:
        raise ValueError(
            f"{path.name} is not LIBSVM text, whose lines are 'target index:value index:value ...' with "
            f"numbers in ascending order of the indices: {error}"
        ) from None
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path.name} could not be read, it may be damaged: {error}") from None
    if len(y) == 0:
        raise ValueError(f"{path.name} has no records")
    if n_features is not None and X.shape[1] > n_features:
        raise ValueError(f"{path.name} has {X.shape[1]} columns, but there should be {n_features}")
    X.resize(len(y), n_features or X.shape[1])
    refuse_missing(np.isnan(y), "the target", path.name)
    return Table(X, y)
