"""Tables in files, whose format shows in their names."""

import os
from pathlib import Path

from hck.datasets._formats import OPEN, read_csv, read_libsvm, read_parquet
from hck.datasets.npz import read_npz
from hck.datasets.table import Table

_LIBSVM = ("", ".libsvm", ".svm", ".svmlight", ".scale", ".t", ".tr", ".trn", ".tst", ".val")


def read_table(
    path: str | os.PathLike[str],
    target: str | int | None = None,
    *,
    part: str | None = None,
    n_features: int | None = None,
    target_needed: bool = True,
) -> Table:
    """Read a table from a file.

    Parameters
    ----------
    path : path-like
        The format is found from the name:

        - CSV with a line of names: ``.csv``, or compressed, ``.csv.gz``, ``.csv.bz2``, ``.csv.xz``.
        - Parquet: ``.parquet``. Needs pyarrow.
        - LIBSVM text: ``.libsvm``, ``.svm``, ``.svmlight``, or as LIBSVM's site calls them, without any
          ending or with ``.t``, ``.tr``, ``.val``, ``.scale``; all of them also ``.gz``, ``.bz2``, ``.xz``.
        - NumPy's ``.npz``, with arrays X and y, or with X_data, X_indices, X_indptr and X_shape of a CSR
          matrix instead of X.

    target : str or int, default=None
        The column of a CSV or Parquet file that is the target, by name or position; None: there is none. Of
        the other formats it is known.
    part : str, default=None
        Of an npz file with several parts, such as X_train, y_train, X_test and y_test: "train" or "test".
    n_features : int, default=None
        Of a LIBSVM file, where the last columns may be 0 in all records: how many there are.
    target_needed : bool, default=True
        Whether to refuse records whose target is missing. To predict, it is not needed.

    Returns
    -------
    Table
        X is a pandas frame (CSV, Parquet), a CSR matrix (LIBSVM), or what an npz file has.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "houses.csv"
    ...     _ = path.write_text("rooms,place,price\\n3,town,200\\n5,country,150\\n")
    ...     table = read_table(path, target="price")
    >>> table.feature_names, table.y.tolist()
    (['rooms', 'place'], [200, 150])
    """
    path = Path(path)
    form = format_of(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file")
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name} is empty")
    if target is not None and form in ("libsvm", "npz"):
        raise ValueError(f"{path.name} says what its target is: leave target={target!r} out")
    if part is not None and form != "npz":
        raise ValueError(f"only npz files have parts: leave part={part!r} out")
    if n_features is not None and form != "libsvm":
        raise ValueError(f"only LIBSVM files leave columns out: leave n_features={n_features!r} out")
    if form == "npz":
        return read_npz(path, part, target_needed)
    if form == "libsvm":
        return read_libsvm(path, n_features, target_needed=target_needed)
    table = read_csv(path) if form == "csv" else read_parquet(path)
    return table if target is None else table.with_target(target, path.name, target_needed)


def format_of(path: Path) -> str:
    """The format that a name stands for."""
    compressed = path.suffix in OPEN
    ending = Path(path.stem).suffix if compressed else path.suffix
    if ending == ".csv":
        return "csv"
    if ending in _LIBSVM:
        return "libsvm"
    if ending in (".npz", ".parquet") and not compressed:
        return ending[1:]
    raise ValueError(
        f"the format of {path.name} is not known. Known are .csv, .parquet, .npz and LIBSVM text "
        f"({', '.join(ending or 'no ending' for ending in _LIBSVM)}); CSV and LIBSVM text may be compressed "
        f"({', '.join(OPEN)})"
    )
