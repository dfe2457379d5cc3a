"""Tables of any format: what holds for every file."""

import pytest

from hck.datasets import read_table
from table_files import CSV, TEXT, write


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.npz", "t.libsvm", "t"])
def test_a_file_that_is_not_there(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=f"there is no file .*{name}"):
        read_table(tmp_path / name)


def test_a_folder(tmp_path):
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("name", ["t.xlsx", "t.npz.gz", "t.parquet.xz", "t.json", "t.zip"])
def test_unknown_formats(tmp_path, name):
    with pytest.raises(ValueError, match=rf"the format of {name} is not known\. Known are \.csv.*no ending"):
        read_table(write(tmp_path, name, "anything"))


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("t.svm", TEXT, {"target": "y"}, "says what its target is: leave target='y' out"),
        ("t.npz", "anything", {"target": 0}, "says what its target is: leave target=0 out"),
        ("t.csv", CSV, {"part": "train"}, "only npz files have parts"),
        ("t.csv", CSV, {"n_features": 3}, "only LIBSVM files leave columns out"),
    ],
)
def test_options_of_other_formats(tmp_path, name, content, options, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path, name, content), **options)
