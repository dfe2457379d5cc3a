"""Data sets from their public homes, or a message that says what to put where."""

import http.client
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_openml

from hck.datasets._download import download
from hck.datasets._registry import Entry, File
from hck.datasets.table import Table


def fetch(name: str, entry: Entry, folder: Path, missing: list[File], show: bool) -> Table | None:
    """Download the files that are missing to a folder; or get the records from OpenML.

    Raises
    ------
    FileNotFoundError
        If that is not possible.
    """
    try:
        if entry.openml is not None:
            return _from_openml(entry.openml, entry.d, folder)
        for file in missing:
            download(file.url, folder / file.name, file.sha256, show)
    except (OSError, http.client.HTTPException) as error:
        problem = f"{name} was not found, and could not be downloaded ({error})"
        raise FileNotFoundError(f"{problem}. {_by_hand(entry, folder)}") from error
    if not entry.files:
        raise FileNotFoundError(
            f"{name} was not found, and there is no file to download. {_by_hand(entry, folder)}"
        )
    return None


def _by_hand(entry: Entry, folder: Path) -> str:
    where = f"in {folder} or in the folder that the environment variable HCK_DATA names"
    if entry.files:
        urls = " and ".join(file.url for file in entry.files)
        them = "it, as it is," if len(entry.files) == 1 else "them, as they are,"
        return f"Download {urls} and put {them} {where}"
    arrays = entry.arrays or f"X with {entry.d} features, and y"
    return (
        f"Put {entry.npz}.npz {where}. It holds {arrays}. The records are at {entry.home} ({entry.citation})"
    )


def _from_openml(number: int, d: int, folder: Path) -> Table:
    """Features that vary, and the target, centred."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn, before it tries once more
        found = fetch_openml(
            data_id=number, as_frame=False, parser="liac-arff", data_home=folder, n_retries=1
        )  # fmt: skip
    X, y = found.data.astype(float), found.target.astype(float)
    X = X[:, np.ptp(X, axis=0) > 0]
    if X.shape[1] != d:
        raise ValueError(f"data set {number} of OpenML has {X.shape[1]} features that vary, not {d}")
    return Table(X, y - y.mean())
