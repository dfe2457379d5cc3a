"""What is wrong is refused in one clear line, before anything is learned or written."""

import sys

import numpy as np
import pandas as pd
import pytest

from hck import HCKKernelPCA, HCKRegressor

pytestmark = pytest.mark.usefixtures("one_thread")

WRONG = {
    "no such file": (("fit", "none.csv", "--target", "y", "--out", "m"), "there is no file none.csv"),
    "no target": (("fit", "train.csv", "--out", "m"), "--target is needed"),
    "wrong target": (("fit", "train.csv", "--target", "prize", "--out", "m"), "no column 'prize'"),
    "wrong kernel": (("fit", "train.csv", "--target", "price", "--kernel", "rbf", "--out", "m"), "rbf"),
    "wrong time": (
        ("fit", "train.csv", "--target", "price", "--fit-time", "long", "--out", "m"),
        "use fast, balanced, best or seconds",
    ),
    "wrong approximation": (
        ("fit", "train.csv", "--target", "price", "--approximation", "svd", "--out", "m"),
        "approximation",
    ),
    "no GPU": (("fit", "train.csv", "--target", "price", "--device", "cuda", "--out", "m"), "no CUDA device"),
    "no model": (("predict", "nowhere", "new.csv", "--out", "p.csv"), "nowhere"),
    "no experiment": (("reproduce", "fig99"), "fig99 is not an experiment; choose from fig3"),
    "no folder": (("predict", "nowhere", "new.csv", "--out", "none/p.csv"), "there is no folder none"),
    "a folder for a file": (("predict", "nowhere", "new.csv", "--out", "mine", "--force"), "is a folder"),
    "a folder of others": (
        ("fit", "train.csv", "--target", "price", "--out", "mine", "--force"),
        "mine is not a saved model",
    ),
    "wrong method": (("compare", "train.csv", "--target", "price", "--methods", "nystrom,svd"), "'svd'"),
    "no method": (("compare", "train.csv", "--target", "price", "--methods", ","), "--methods is empty"),
    "too few": (("compare", "one.csv", "--target", "price", "--task", "regression"), "too few records"),
    "endless": (
        ("fit", "train.csv", "--target", "price", "--fit-time", "inf", "--out", "m"),
        "use fast, balanced, best or seconds",
    ),
    "a stray word": (("fit", "stray.csv", "--target", "price", "--out", "m"), "record 17 has 'oops'"),
    "a stray word in the target": (
        ("fit", "stray.csv", "--target", "a", "--out", "m"),
        "record 17 has 'oops'",
    ),
    "half a place": (("fit", "train.csv", "--target", "price", "--sphere", "a", "--out", "m"), "two columns"),
    "no degrees": (
        ("fit", "train.csv", "--target", "price", "--sphere", "a,town", "--out", "m"),
        "train.csv: --sphere: column 'town' must be numbers",
    ),
    "no period": (
        ("fit", "train.csv", "--target", "price", "--circle", "a=b", "--out", "m"),
        "--circle 'a=b' must name a column and its period: hour=24",
    ),
    "a hole in the target": (("fit", "hole.csv", "--target", "a", "--out", "m"), "first of them record 7"),
    "one class": (
        ("fit", "one.csv", "--target", "town", "--out", "m"),
        "in all records: nothing to tell apart",
    ),
    "words for numbers": (
        ("fit", "train.csv", "--target", "town", "--task", "regression", "--out", "m"),
        "the target must be numbers",
    ),
    "only a target": (("fit", "alone.csv", "--target", "price", "--out", "m"), "no columns beside"),
    "no such part": (("fit", "hole.npz", "--part", "train", "--out", "m"), "no array 'X_train'"),
    "no GPU to measure": (("bench", "--device", "cuda"), "no CUDA device"),
    "no such device": (("bench", "--device", "tpu"), "use one of cpu, cuda"),
    "unknown file": (("fit", "train.csv.doc", "--target", "y", "--out", "m"), "train.csv.doc"),
}


@pytest.fixture
def spoilt(files, table):
    """Files with something wrong in them."""
    frame = table(400, 0).drop(columns="kind")
    word = frame.astype(object)
    word.loc[16, "a"] = "oops"
    word.to_csv("stray.csv", index=False)
    frame[["price"]].to_csv("alone.csv", index=False)
    frame[:1].to_csv("one.csv", index=False)
    array = frame[["a", "b"]].to_numpy(copy=True)
    array[3, 1] = np.nan
    np.savez("hole.npz", X=array, y=frame.price)
    frame.loc[6, "a"] = np.nan
    frame.to_csv("hole.csv", index=False)
    (files / "mine").mkdir()
    (files / "mine" / "letter").write_text("dear")
    return files


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_gets_one_clear_line(name, hck, spoilt):
    if name.startswith("no GPU") and __import__("torch").cuda.is_available():
        pytest.skip("there is a GPU")
    arguments, text = WRONG[name]
    code, out, said = hck(*arguments)
    assert code == 1
    assert out == ""
    assert text in said
    assert said.count("\n") == 1
    assert not (spoilt / "m").exists()
    assert (spoilt / "mine" / "letter").read_text() == "dear"


def test_nothing_is_overwritten(hck, files):
    options = ("fit", "train.csv", "--target", "price", "--fit-time", "0.2", "--out", "model")
    assert hck(*options)[0] == 0
    code, _, said = hck(*options)
    assert code == 1
    assert "use --force" in said
    assert hck(*options, "--force")[0] == 0
    (files / "p.csv").write_text("mine")
    code, _, said = hck("predict", "model", "new.csv", "--out", "p.csv")
    assert code == 1
    assert (files / "p.csv").read_text() == "mine"
    assert hck("predict", "model", "new.csv", "--out", "p.csv", "--force")[0] == 0
    assert (files / "p.csv").read_text() != "mine"


def test_missing_columns(hck, files, table):
    hck("fit", "train.csv", "--target", "price", "--fit-time", "0.2", "--out", "model")
    table(10, 3)[["a", "town"]].to_csv("part.csv", index=False)
    code, _, said = hck("predict", "model", "part.csv", "--out", "p.csv")
    assert code == 1
    assert "no column 'b'" in said
    code, _, said = hck("evaluate", "model", "new.csv")
    assert code == 1
    assert "does not have the target" in said


def test_data_that_do_not_suit_the_model(hck, spoilt, table):
    hck("fit", "train.csv", "--target", "price", "--fit-time", "0.2", "--out", "numbers")
    hck("fit", "train_kinds.csv", "--target", "kind", "--fit-time", "0.2", "--out", "classes")
    for arguments, text in (
        (("evaluate", "numbers", "hole.csv", "--target", "a"), "the target 'a' is missing"),
        (("predict", "numbers", "stray.csv", "--out", "p.csv"), "must be numbers, as the model was trained"),
        (("evaluate", "numbers", "test_kinds.csv", "--target", "kind"), "the target must be numbers"),
        (("evaluate", "classes", "test.csv", "--target", "price"), "never one of the model's classes"),
        (("report", "classes", "--data", "test.csv", "--out", "r.html", "--target", "price"), "never one of"),
        (("evaluate", "numbers", "test.csv", "--target", "prize"), "no column 'prize'"),
        (("evaluate", "numbers", "hole.npz"), "2 columns, but the model was trained with 3"),
        (("evaluate", "numbers", "test.csv", "--level", "0.999"), "too few for this level"),
    ):
        code, out, said = hck(*arguments)
        assert (code, out) == (1, ""), arguments
        assert text in said
        assert said.count("\n") == 1


def test_words_in_a_few_records_are_categories_if_the_numbers_are_few(hck, table):
    """Such as grades: 1, 2, 3 and, rarely, "none"."""
    frame = table(300, 0).drop(columns="kind")
    frame["grade"] = np.where(np.arange(300) % 50 == 0, "none", np.arange(300) % 3)
    frame.to_csv("grades.csv", index=False)
    assert hck("fit", "grades.csv", "--target", "price", "--fit-time", "0.2", "--out", "model")[0] == 0
    frame[frame.grade != "none"].to_csv("some.csv", index=False)  # read as numbers
    assert hck("evaluate", "model", "some.csv")[0] == 0


def test_targets_that_nobody_needs(hck, files, table):
    """Predictions do without them; scores say what is missing."""
    frame = table(60, 3).drop(columns="kind")
    frame.to_csv("few.csv", index=False)
    hck("fit", "few.csv", "--target", "price", "--fit-time", "0.1", "--rank", "8", "--out", "model")
    for name, holes in (("some.csv", [3]), ("all.csv.xz", range(60))):
        frame.loc[list(holes), "price"] = np.nan
        frame.to_csv(name, index=False)
        assert hck("predict", "model", name, "--out", f"{name}.out")[0] == 0
        assert (files / f"{name}.out").read_text().count("\n") == 61
        code, _, said = hck("evaluate", "model", name)
        assert code == 1
        assert "the target 'price' is missing" in said


def test_letters_that_a_terminal_does_not_have(hck, table, tmp_path, monkeypatch):
    frame = table(60, 3).drop(columns=["kind", "town"]).rename(columns={"a": "größe", "price": "preis €"})
    frame.to_csv("letters.csv.xz", index=False)
    typed = "preis €".encode().decode("ascii", "surrogateescape")  # as the C locale hands it over
    with (tmp_path / "printed").open("w", encoding="ascii") as ascii_only:
        monkeypatch.setattr(sys, "stdout", ascii_only)
        options = ("--fit-time", "0.1", "--rank", "8", "--out", "model")
        code, _, said = hck("fit", "letters.csv.xz", "--target", typed, *options)
    assert (code, said) == (0, "")
    assert "preis \\u20ac" in (tmp_path / "printed").read_text()


def test_a_malformed_matrix(hck, files):
    pieces = {"X_data": np.ones(40), "X_indptr": np.arange(41), "X_shape": [40, 3], "y": np.arange(40.0)}
    for far in (3, 10**9, -1):
        np.savez("far.npz", X_indices=np.where(np.arange(40) == 5, far, 1), **pieces)
        code, out, said = hck("fit", "far.npz", "--out", "m")
        assert (code, out) == (1, "")
        assert "far.npz: X is a malformed sparse matrix" in said


def test_models_without_one_column_of_predictions(hck, files):
    x = np.random.default_rng(0).uniform(size=(60, 2))
    given = {"lengthscale": 1.0, "rank": 8, "random_state": 0}
    HCKKernelPCA(2, **given).fit(x).save("components")
    HCKRegressor(alpha=0.1, loss="quantile", quantile=[0.1, 0.9], **given).fit(x, x[:, 0]).save("quantiles")
    pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x[:, 0]}).to_csv("table.csv", index=False)
    for model, message in (
        ("components", "which predicts nothing"),
        ("quantiles", "several targets or quantil"),
    ):
        code, _, said = hck("evaluate", model, "table.csv", "--target", "y", "--quiet")
        assert code == 1
        assert message in said
    code, _, said = hck("predict", "components", "table.csv", "--out", "p.csv")
    assert code == 1
    assert "which predicts nothing" in said


def test_two_numbers_that_are_not_whole(hck, tmp_path):
    """Of which a classifier would not make classes."""
    (tmp_path / "two.csv").write_text("a,y\n1,0.25\n2,0.75\n")
    code, _, said = hck("fit", "two.csv", "--target", "y", "--out", "m", "--fit-time", "fast", "--quiet")
    assert code == 0, said
