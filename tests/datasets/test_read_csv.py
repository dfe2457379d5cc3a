"""Tables in CSV and parquet files."""

import lzma
import sys

import numpy as np
import pandas as pd
import pytest

from hck import HCKRegressor
from hck.datasets import read_table
from table_files import COMPRESS, CSV, write


@pytest.mark.parametrize("ending", COMPRESS)
def test_csv(tmp_path, ending):
    path = write(tmp_path, "houses.csv" + ending, COMPRESS[ending](CSV.encode()))
    table = read_table(path, "price")
    assert isinstance(table.X, pd.DataFrame)
    assert table.feature_names == ["rooms", "place"]
    assert table.target_name == "price"
    assert table.X["rooms"].tolist() == [3, 5, 4]
    assert table.X["place"].isna().tolist() == [False, False, True]
    assert table.y.tolist() == [200.5, 150, 90]
    assert isinstance(table.y, np.ndarray)


@pytest.mark.parametrize("target", [0, -3, "rooms"])
def test_csv_target_by_position(tmp_path, target):
    table = read_table(str(write(tmp_path, "houses.csv", CSV)), target)
    assert table.target_name == "rooms"
    assert table.y.tolist() == [3, 5, 4]
    assert table.feature_names == ["place", "price"]


def test_csv_without_a_target(tmp_path):
    table = read_table(write(tmp_path, "houses.csv", CSV))
    assert table.y is None
    assert table.target_name is None
    assert table.X.shape == (3, 3)


def test_csv_with_classes_for_an_estimator(tmp_path):
    rows = "".join(f"{i},{'ab'[i % 2]},{i % 2}\n" for i in range(40))
    table = read_table(write(tmp_path, "t.csv", "x,letter,y\n" + rows), "y")
    model = HCKRegressor(rank=8, alpha=0.01, lengthscale=1.0, random_state=0).fit(table.X, table.y)
    assert model.score(table.X, table.y) > 0.9
    assert read_table(write(tmp_path, "t.csv", "x,letter,y\n" + rows), "letter").y[:2].tolist() == ["a", "b"]


@pytest.mark.parametrize("target", ["cost", 3, -4])
def test_csv_without_that_column(tmp_path, target):
    with pytest.raises(ValueError, match=rf"no column {target!r}; it has 'rooms', 'place', 'price'"):
        read_table(write(tmp_path, "houses.csv", CSV), target)


def test_csv_with_many_columns(tmp_path):
    path = write(tmp_path, "wide.csv", ",".join(f"c{i}" for i in range(30)) + "\n" + ",".join("1" * 30))
    with pytest.raises(ValueError, match="'c19' and 10 more"):
        read_table(path, "y")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "houses.csv is empty"),
        ("\n\n", "houses.csv is empty"),
        ("a,b\n", "has no records, only the names 'a', 'b'"),
        ("a,b\n1,2\n1,2,3\n", "ragged: some lines have more fields"),
        ("a,b\n1,2,3\n1,2,3\n", "ragged: some lines have more fields"),
        ("a,b,c\n1,2,3\n1,2\n", "ragged: line 3 has 2 fields, not 3"),
        ('a,b,c\n1,"2\n2",3\n1\n', "ragged: line 4 has 1 fields, not 3"),
    ],
)
def test_bad_csv(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path, "houses.csv", content))


def test_short_lines_in_a_compressed_file(tmp_path):
    with pytest.raises(ValueError, match="line 3 has 2 fields"):
        read_table(write(tmp_path, "houses.csv.xz", lzma.compress(b"a,b,c\n1,2,3\n1,2\n")))


def test_values_may_be_missing_in_the_last_column(tmp_path):
    table = read_table(write(tmp_path, "houses.csv", "a,b\n1,\n\n2,3\n"), "a")
    assert table.X["b"].isna().tolist() == [True, False]


@pytest.mark.parametrize("content", ["x,y\n1,2\n2,\n3,\n", "x,y\n1,a\n2,\n3,NA\n"])
def test_missing_targets(tmp_path, content):
    with pytest.raises(
        ValueError, match="the target 'y' is missing in 2 of 3 records, the first of them record 2"
    ):
        read_table(write(tmp_path, "t.csv", content), "y")


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": [1.0, 2.0], "colour": ["red", "blue"], "y": [3, 4]})
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", "y")
    pd.testing.assert_frame_equal(table.X, frame[["x", "colour"]])
    assert table.y.tolist() == [3, 4]
    with pytest.raises(ValueError, match="no column 'z'; it has 'x', 'colour', 'y'"):
        read_table(tmp_path / "t.parquet", "z")


def test_parquet_as_pandas_reads_it(tmp_path, monkeypatch):
    frame = pd.DataFrame({0: [1.0, 2.0], 1: [3, 4]})
    monkeypatch.setattr(pd, "read_parquet", lambda path, engine: frame)
    table = read_table(write(tmp_path, "t.parquet", "anything"), 1)
    assert table.feature_names == ["0"]
    assert table.y.tolist() == [3, 4]


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        read_table(write(tmp_path, "t.parquet", "anything"))


def test_without_pandas(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        read_table(write(tmp_path, "houses.csv", CSV))
