"""Data sets that are frames: categories, missing values, and their files at home and by hand."""

import gzip
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from hck.datasets import is_at_hand, load, records
from hck.datasets._registry import REGISTRY, File

pd = pytest.importorskip("pandas")

HOME = "39, State-gov, 77516, Bachelors, 13, Widowed, Sales, Husband, White, Male, 2174, 0, 40, Cuba, <=50K"
OTHER = "50, ?, 83311, Masters, 14, Divorced, ?, Wife, Black, Female, 0, 0, 13, ?, >50K"


def diamonds(n=50):
    rng = np.random.default_rng(0)
    entry = REGISTRY["diamonds"].frame
    categories = {name: rng.choice(order, n) for name, order in entry.ordered.items()}
    numbers = {name: rng.uniform(size=n) for name in ("carat", "depth", "table", "x", "y", "z")}
    return pd.DataFrame({**categories, **numbers, "price": rng.integers(300, 9000, n)})


def check_diamonds(X, frame):
    assert list(X.columns) == [name for name in frame if name != "price"]
    for name, order in REGISTRY["diamonds"].frame.ordered.items():
        assert X[name].cat.ordered
        assert tuple(X[name].cat.categories) == order
        assert X[name].tolist() == frame[name].tolist()


def test_a_frame_by_hand(tmp_path, monkeypatch):
    frame = diamonds()
    frame.to_csv(tmp_path / "diamonds.csv", index=False)
    monkeypatch.setenv("HCK_DATA", str(tmp_path))
    assert is_at_hand("diamonds")
    table = records("diamonds")
    check_diamonds(table.X, frame)
    assert table.y.tolist() == frame.price.tolist()
    data = load("diamonds")  # prepared or not, it is as it came
    assert (data.X_train.shape, data.X_test.shape) == ((40, 9), (10, 9))
    assert data.feature_names == list(table.X.columns)
    assert data.source.startswith("Found as diamonds.csv in the folder that HCK_DATA names")
    assert len(data.shrink(7, 3).X_train) == 7


def test_a_category_that_is_not_known(tmp_path):
    diamonds().replace("Ideal", "Perfect").to_csv(tmp_path / "diamonds.csv", index=False)
    with pytest.raises(ValueError, match=r"diamonds.csv: cut is one of Fair, .*, Ideal, not 'Perfect'"):
        load("diamonds", folder=tmp_path)


def test_a_frame_of_openml_is_kept(monkeypatch, cache):
    asked, frame = [], diamonds()
    answer = SimpleNamespace(frame=frame.astype({"cut": "category"}))
    monkeypatch.setattr("hck.datasets._find.fetch_openml", lambda **options: asked.append(options) or answer)
    cache.mkdir(parents=True)
    for _ in range(2):
        check_diamonds(records("diamonds").X, frame)
    assert [(each["data_id"], each["as_frame"]) for each in asked] == [(42225, True)]


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_two_files_share_categories_and_miss_values(tmp_path, ending):
    names = ",".join([*REGISTRY["adult"].names, "income"])
    for part, line in (("train", HOME), ("test", OTHER)):
        text = f"{names}\n{line.replace(', ', ',')}\n".encode()
        pack = gzip.compress if ending else bytes
        (tmp_path / f"adult_{part}.csv{ending}").write_bytes(pack(text))
    check_adult(load("adult", folder=tmp_path))


def test_files_as_uci_has_them(server, monkeypatch):
    server.files = {
        "adult.data": f"{HOME}\n\n".encode(),
        "adult.test": f"|1x3 Cross validator\n{OTHER}.\n\n".encode(),
    }
    files = tuple(File(server.url(name)) for name in server.files)
    monkeypatch.setitem(REGISTRY, "adult", replace(REGISTRY["adult"], files=files))
    for _ in range(2):  # downloaded, and then found
        check_adult(load("adult", verbose=False))
    assert len(server.asked) == 2


def check_adult(data):
    assert (data.y_train.tolist(), data.y_test.tolist()) == (["<=50K"], [">50K"])
    missing = ["workclass", "occupation", "native_country"]
    assert not data.X_train.isna().to_numpy().any()
    assert data.X_test.columns[data.X_test.isna().iloc[0]].tolist() == missing
    assert data.X_train.education.cat.categories.tolist() == ["Bachelors", "Masters"]
    assert (data.X_train.dtypes == data.X_test.dtypes).all()
    assert data.X_test.age.tolist() == [50]


def test_where_to_put_a_frame(monkeypatch):
    def fetch(**_):
        raise OSError("no network")

    monkeypatch.setattr("hck.datasets._find.fetch_openml", fetch)
    with pytest.raises(FileNotFoundError, match=r"Put diamonds.csv in .* It holds 9 features, and price"):
        load("diamonds")
