"""Save and load estimators."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hck._version import __version__
from hck.backend.device import is_here, resolve_device
from hck.errors import ModelFileError
from hck.persistence import folder
from hck.persistence.classes import ESTIMATORS, Part, Place
from hck.persistence.decode import Decoder
from hck.persistence.document import MODEL, entry
from hck.persistence.encode import Encoder
from hck.persistence.reading import opened

# Bytes of an array that takes more in memory than in its file, where equal numbers are there once.
_ROOM, _TIMES = 2**24, 64


def save(estimator: BaseEstimator, path: str | os.PathLike[str], force: bool = False) -> None:
    """Save a fitted estimator as a folder of JSON and safetensors.

    What can be computed again, such as factorizations, is not saved.

    Parameters
    ----------
    estimator : HCKRegressor, HCKClassifier, HCKGaussianProcessRegressor or HCKKernelPCA
        Fitted.
    path : str or path-like
        The folder to write. Its parent exists.
    force : bool, default=False
        Whether a model that is there may be replaced. It stays until the new one is complete.

    Raises
    ------
    TypeError
        If something cannot be saved: functions (as the kernel, the trend or the route of a tree), objects as
        points, and classes that are not hck's own.
    FileExistsError
        If there is something at `path`, and `force` does not help.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from hck import HCKRegressor
    >>> from hck.persistence import load, save
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = HCKRegressor(lengthscale=0.3, alpha=0.01, rank=16).fit(X, X[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model")
    ...     print(load(f"{folder}/model").alpha)
    0.01
    """
    if type(estimator) not in ESTIMATORS:
        known = ", ".join(sorted(cls.__name__ for cls in ESTIMATORS))
        raise TypeError(f"a {type(estimator).__name__} cannot be saved; what can: {known}")
    check_is_fitted(estimator, "trees_")
    folder.check_target(Path(path), force)
    for note in write_parts(Path(path), estimator, ESTIMATORS[type(estimator)](estimator), force):
        warnings.warn(note, UserWarning, stacklevel=2)


def write_parts(path: Path, value: Part, device: torch.device, force: bool = True) -> list[str]:
    """Write anything that saved models are made of, as a folder; what is not kept is returned, in words."""
    encoder = Encoder()
    root = encoder.value(value)
    document = {
        "hck": __version__,
        "device": str(device),
        "notes": encoder.notes,
        "model": root,
        "objects": encoder.objects,
    }
    folder.write(path, document, encoder.arrays, force)
    return encoder.notes


def load(path: str | os.PathLike[str], device: str | torch.device | None = None) -> Any:
    """Load an estimator that was saved.

    Loading makes objects of hck's own classes from data, and executes nothing that is in the files. Files
    that are incomplete, or are not as they were written, are refused. Checksums tell of damage; they do not
    tell who wrote a file.

    Parameters
    ----------
    path : str or path-like
        The folder.
    device : str, torch.device or None, default=None
        Where the estimator is to compute, which becomes its parameter `device` too.
        None: where it did when it was saved, or on the CPU if there is no such device.

    Returns
    -------
    The estimator, of the class that was saved

    Raises
    ------
    ModelFileError
        If the files are missing, damaged, altered, or written by a newer version.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from hck import HCKKernelPCA
    >>> from hck.persistence import load
    >>> model = HCKKernelPCA(2, rank=16).fit(np.linspace(0, 1, 50)[:, None])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     same = load(f"{folder}/model", device="cpu")
    >>> type(same).__name__, same.eigenvalues_.shape
    ('HCKKernelPCA', (2,))
    """
    estimator = read_parts(Path(path), device)
    if not isinstance(estimator, tuple(ESTIMATORS)):
        raise ModelFileError(f"{path} holds a {type(estimator).__name__}, which is no estimator")
    return estimator


def read_parts(path: Path, device: str | torch.device | None = None) -> Part:
    """Read what `write_parts` has written."""
    with opened(path) as (document, read), _named(path):
        place = _place(entry(document, "device", kind=str), device)
        most = _ROOM + _TIMES * entry(document, "tensors", "bytes", kind=int)
        decoder = Decoder(entry(document, "objects", kind=list), read, place, most)
        return decoder.value(entry(document, "model", kind=dict), place.device)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file in what is said of its content."""
    try:
        yield
    except ModelFileError as error:
        if str(path) in str(error):
            raise
        raise ModelFileError(f"{path / MODEL} is damaged or forged: {error}") from error
    except RecursionError as error:
        raise ModelFileError(f"{path / MODEL} is damaged or forged: it is nested too deeply") from error


def _place(saved: str, device: str | torch.device | None) -> Place:
    """Where to load to, given the device of old and the one that is asked for."""
    if device is not None:
        asked = resolve_device(device)
        return Place(asked, str(asked))
    try:
        old = torch.device(saved)
    except RuntimeError as error:
        raise ModelFileError(f"the device {saved!r} of the saved model is not known") from error
    if is_here(old):
        return Place(old)
    warnings.warn(
        f"the model was saved on {saved}, which torch does not find here: it is loaded to the CPU",
        UserWarning,
        stacklevel=4,
    )
    return Place(torch.device("cpu"), "cpu")
