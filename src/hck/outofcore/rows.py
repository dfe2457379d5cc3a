"""Tables that are read block by block."""

import hashlib
import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from hck.preparation.arrays import to_host

_BLOCK = 2**26  # bytes that are read at once
Sliced: TypeAlias = Any  # has a shape, and gives rows by slices: an ndarray, an HDF5 or a zarr array
Readable: TypeAlias = Any  # what `as_rows` takes


class Rows(ABC):
    """Rows of a table, of which some are read at a time.

    Attributes
    ----------
    n, width : int
        Rows and columns.
    called : str
        For messages.
    names : list of str, or None
        Of the columns, if they have any.
    is_vector : bool
        Whether there is one column that is not one of a matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.outofcore import Rows, as_rows
    >>> rows = as_rows(np.arange(6.0).reshape(3, 2))
    >>> isinstance(rows, Rows), len(rows), rows.width, [block.tolist() for block in rows.blocks(2)]
    (True, 3, 2, [[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0]]])
    """

    n: int
    width: int
    called: str
    names: list[str] | None = None
    is_vector: bool = False

    def select(self, names: list[str] | None) -> "Rows":
        """The columns of these names, in this order."""
        if names is not None and self.names is not None and names != self.names:
            raise ValueError(f"{self.called} has the columns {self.names}, but {names} are expected")
        return self

    @abstractmethod
    def blocks(self, size: int, start: int = 0) -> Iterator[np.ndarray]:
        """The rows from `start` on, `size` at a time, the last ones fewer: arrays (rows, columns)."""

    def __len__(self) -> int:
        return self.n

    def block_size(self, more: int = 0) -> int:
        """How many rows to read at once, if each comes with that many more numbers."""
        return int(np.clip(_BLOCK // (8 * (self.width + more)), 1, max(1, self.n)))

    @abstractmethod
    def fingerprint(self) -> str:
        """By which other data are told from these, without reading all of them."""


class ArrayRows(Rows):
    """Anything with a shape that gives rows by slices: an ndarray, a memory map, an HDF5 or a zarr array.

    Examples
    --------
    >>> import numpy as np
    >>> rows = ArrayRows(np.arange(10.0).reshape(5, 2))
    >>> [len(block) for block in rows.blocks(2)]
    [2, 2, 1]
    """

    def __init__(self, array: Sliced, called: str = "X", names: list[str] | None = None) -> None:
        if sp.issparse(array):
            raise ValueError(f"{called} is sparse, which is not possible here: use an array")
        shape = tuple(array.shape)
        if len(shape) not in (1, 2):
            raise ValueError(f"{called} must have one or two dimensions, got shape {shape}")
        self.array, self.called, self.names = array, called, names
        self.n, self.width = int(shape[0]), 1 if len(shape) == 1 else int(shape[1])
        self.is_vector = len(shape) == 1

    def blocks(self, size: int, start: int = 0) -> Iterator[np.ndarray]:
        for i in range(start, self.n, size):
            block = np.asarray(self.array[i : min(i + size, self.n)])
            if isinstance(self.array, np.memmap) and self.array.mode == "r":
                block = np.array(block)
                _forget(self.array)
            yield block.reshape(len(block), -1)

    def fingerprint(self) -> str:
        digest = hashlib.sha256(repr((self.n, self.width)).encode())
        for start in np.linspace(0, max(0, self.n - 100), 20).astype(int):  # rows from all over
            block = next(self.blocks(100, int(start)))
            digest.update((block if block.dtype != object else block.astype("U")).tobytes())
        return digest.hexdigest()


class ParquetRows(Rows):
    """Columns of a parquet file, or of a folder of them, in the order of their names.

    Parameters
    ----------
    path : path-like
    columns : list of str, optional
        By default all.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from hck.outofcore import ParquetRows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.DataFrame({"rooms": [2, 3], "price": [1.0, 1.4]}).to_parquet(f"{folder}/part.parquet")
    ...     print(list(ParquetRows(folder, columns=["price"]).blocks(10)))
    [array([[1. ],
           [1.4]])]
    """

    def __init__(
        self, path: str | os.PathLike[str] | list[str], columns: list[str] | None = None, called: str = "X"
    ) -> None:
        import pyarrow.dataset

        self.called = called
        files = path
        if not isinstance(path, list) and os.path.isdir(path):
            files = sorted(map(str, Path(path).rglob("*.parquet")))
        self.data = pyarrow.dataset.dataset(files, format="parquet")
        names = self.data.schema.names
        missing = [name for name in columns or [] if name not in names]
        if missing:
            raise ValueError(f"{path} has no column {missing[0]!r}; its columns: {', '.join(names)}")
        self.names = self.columns = names if columns is None else columns
        self.n, self.width = self.data.count_rows(), len(self.columns)
        self.is_vector = columns is not None and len(columns) == 1

    def select(self, names: list[str] | None) -> "Rows":
        return self if names is None else ParquetRows(self.data.files, names, self.called)

    def blocks(self, size: int, start: int = 0) -> Iterator[np.ndarray]:
        waiting: list[np.ndarray] = []
        count, skip = 0, start
        ahead = {"batch_readahead": 2, "fragment_readahead": 1}  # by default more, whatever memory there is
        for batch in self.data.to_batches(columns=self.columns, batch_size=min(size, 2**17), **ahead):
            if skip >= batch.num_rows:
                skip -= batch.num_rows
                continue
            some = batch.slice(skip)
            skip = 0
            columns = [some.column(k).to_numpy(zero_copy_only=False) for k in range(self.width)]
            for name, column in zip(self.columns, columns, strict=True):
                if column.dtype.kind in "mM":
                    raise ValueError(
                        f"the column {name!r} of {self.called} holds times: make numbers of them"
                    )
            block = np.stack(columns, 1)
            waiting.append(block)
            count += len(block)
            while count >= size:
                every = np.concatenate(waiting)
                yield every[:size]
                waiting, count = [every[size:]], count - size
        if count:
            yield np.concatenate(waiting)

    def fingerprint(self) -> str:
        files = [(os.path.basename(f), os.stat(f).st_size, os.stat(f).st_mtime_ns) for f in self.data.files]
        return hashlib.sha256(repr((self.n, self.columns, files)).encode()).hexdigest()


def _forget(array: np.memmap) -> None:
    """Take what was read of a file out of this process; the system still has it for as long as it likes."""
    held = getattr(array, "_mmap", None)
    if held is not None and hasattr(mmap, "MADV_DONTNEED"):
        held.madvise(mmap.MADV_DONTNEED)


def as_rows(data: Readable, called: str = "X") -> Rows:
    """Rows of an array, or of what is at a path.

    Parameters
    ----------
    data : Rows, array, or path-like
        An ndarray, memory map, `h5py.Dataset` or `zarr.Array`; the path of an `.npy` file, of a zarr array
        (`.zarr`), of a parquet file or of a folder of these; or ``"FILE.h5::NAME"``.
    called : str, default="X"
        What it is called in messages.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from hck.outofcore import as_rows
    >>> with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    ...     np.save(f"{folder}/X.npy", np.zeros((5, 2)))
    ...     rows = as_rows(f"{folder}/X.npy")  # which are read when they are asked for
    ...     print(len(rows), rows.width)
    5 2
    """
    if isinstance(data, Rows):
        return data
    data = to_host(data)
    if isinstance(data, str | os.PathLike):
        return _at(os.fspath(data), called)
    if data is None:
        raise ValueError(f"{called} is None: an array or a path is needed")
    if hasattr(data, "iloc"):  # pandas
        names = [str(name) for name in data.columns] if hasattr(data, "columns") else None
        return ArrayRows(data.to_numpy(), called, names)
    if not sp.issparse(data) and not (hasattr(data, "shape") and hasattr(data, "__getitem__")):
        data = np.asarray(data)
    return ArrayRows(data, called)


def _at(path: str, called: str) -> Rows:
    file, _, name = path.partition("::")
    where = Path(file)
    if not where.exists():
        raise FileNotFoundError(f"there is no file or folder {file} to read {called} from")
    if where.suffix == ".npy":
        return ArrayRows(_npy(where), called)
    if where.suffix in (".h5", ".hdf5"):
        return ArrayRows(_hdf5(where, name), called)
    if where.suffix == ".zarr":
        import zarr

        return ArrayRows(zarr.open_array(where, mode="r"), called)
    if where.suffix in (".parquet", ".pq") or (where.is_dir() and any(where.rglob("*.parquet"))):
        return ParquetRows(where, None, called)
    raise ValueError(f"{file} is none of .npy, .h5::NAME, .zarr, .parquet, or a folder of parquet files")


def _npy(where: Path) -> np.ndarray:
    try:
        return np.lib.format.open_memmap(where, mode="r")
    except (ValueError, EOFError):  # of other files NumPy says that they may be pickled
        raise ValueError(f"{where} has no array of numbers or text, or is damaged") from None


def _hdf5(where: Path, name: str) -> Sliced:
    import h5py

    file = h5py.File(where, "r")
    names = [key for key in file if isinstance(file[key], h5py.Dataset)]
    if not name and len(names) == 1:
        name = names[0]
    if name not in file or not isinstance(file[name], h5py.Dataset):
        raise ValueError(f"write {where}::NAME, with one of the arrays in it: {', '.join(names) or 'none'}")
    return file[name]
