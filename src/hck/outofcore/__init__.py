"""Training on data that do not fit into memory, on one machine.

X and y stay where they are: memory-mapped `.npy` files, HDF5 and zarr arrays, folders of parquet files. Their
rows are dealt out to the branches of a tree, files in a folder; the branches are worked on one after another,
up and then down. What has been finished is kept, so that a run that was stopped goes on from there.
"""

from hck.outofcore.estimators import DiskHCKClassifier, DiskHCKRegressor
from hck.outofcore.rows import ArrayRows, ParquetRows, Rows, as_rows

__all__ = ["ArrayRows", "DiskHCKClassifier", "DiskHCKRegressor", "ParquetRows", "Rows", "as_rows"]
