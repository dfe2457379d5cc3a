"""Data sets: those of the paper and a few more, prepared as in the paper, and tables in files.

`load` finds a data set by name, `synthetic` makes one of the same size, `read_table` reads a file.
"""

from hck.datasets._dataset import Dataset
from hck.datasets._load import is_at_hand, load, names, records
from hck.datasets._synthetic import synthetic
from hck.datasets.read import read_table
from hck.datasets.table import Table

__all__ = ["Dataset", "Table", "is_at_hand", "load", "names", "read_table", "records", "synthetic"]
