"""A first column without a name that numbers the records is not learned from."""

import pandas as pd
import pytest

from hck import load


@pytest.mark.filterwarnings("always:.*numbers the records")
@pytest.mark.parametrize("first", [0, 1])
def test_numbers_of_records_are_left_out(hck, table, tmp_path, first):
    frame = table(300, 0).drop(columns="kind")
    frame.index += first
    frame.to_csv("with.csv")
    frame.to_csv("without.csv", index=False)
    code, _, said = hck("fit", "with.csv", "--target", "price", "--fit-time", "fast", "--out", "one")
    assert code == 0
    assert "with.csv: the first column has no name and numbers the records; it is left out" in said
    assert list(load("one").feature_names_in_) == ["a", "b", "town"]
    for name in ("with", "without"):
        assert hck("predict", "one", f"{name}.csv", "--out", f"{name}-predicted.csv")[0] == 0
    assert pd.read_csv("with-predicted.csv").equals(pd.read_csv("without-predicted.csv"))


@pytest.mark.parametrize("name", ["", "record"])
@pytest.mark.parametrize("step", [1, 2])
def test_other_first_columns_are_learned_from(hck, table, name, step):
    frame = table(300, 0).drop(columns="kind")
    frame.index = frame.index * step
    if name == "" and step == 1:
        frame = frame.iloc[::-1]
    frame.to_csv("train.csv", index_label=name or None)
    assert hck("fit", "train.csv", "--target", "price", "--fit-time", "fast", "--out", "one")[0] == 0
    assert load("one").n_features_in_ == 4
