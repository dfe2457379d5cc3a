"""How the file is written, and its parts."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import Ridge

from hck import HCKRegressor
from hck.estimators.inspection import leaves_of
from hck.report import write_report
from hck.report._text import number
from hck.report.model import held_bytes
from report_page import NASTY

pytestmark = pytest.mark.usefixtures("one_thread")


def test_no_file_is_replaced_unless_asked_for(tmp_path, process, data):
    path = tmp_path / "page.html"
    path.write_text("mine")
    given = process, data[0][200:], data[1][200:]
    with pytest.raises(FileExistsError, match=r"page\.html is there already: use force=True"):
        write_report(*given, path)
    assert path.read_text() == "mine"
    assert write_report(*given, str(path), force=True) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_left_where_it_fails(tmp_path, process, data, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("mine")
    given = process, data[0][200:], data[1][200:], path
    with pytest.raises(ValueError, match="X has 60 points but y has 3 values"):
        write_report(process, data[0][200:], data[1][:3], path, force=True)
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_report(*given, force=True)
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [(".", IsADirectoryError, "is a folder"), ("no/page.html", FileNotFoundError, "there is no folder")],
)
def test_bad_paths(tmp_path, process, data, where, error, message):
    with pytest.raises(error, match=message):
        write_report(process, data[0], data[1], tmp_path / where)


def test_bad_input(page_of, process, classifier, regressor, data):
    X, y = data
    with pytest.raises(TypeError, match=r"a report is about one of HCKRegressor.*got Ridge"):
        page_of(Ridge(), X, y)
    with pytest.raises(ValueError, match="HCKRegressor is not fitted"):
        page_of(HCKRegressor(), X, y)
    with pytest.raises(ValueError, match="needs the targets"):
        page_of(process, X, None)
    with pytest.raises(ValueError, match="y contains NaN"):
        page_of(process, X, np.full(260, np.nan))
    with pytest.raises(ValueError, match="y must be numbers"):
        page_of(process, X, ["a"] * 260)
    with pytest.raises(ValueError, match="y has 2 targets, but the model predicts 1"):
        page_of(process, X, np.stack([y, y], 1))
    with pytest.raises(ValueError, match="none of the model's classes"):
        page_of(classifier, X, np.zeros(260))


def test_points_are_sent_to_the_leaves_of_the_model(regressor, process, data):
    frame = pd.DataFrame(data[0][:200], columns=[NASTY, "a & b"])
    scaled = HCKRegressor("gaussian", lengthscale=0.5, alpha=0.1, rank=16, scale="standard", random_state=0)
    for model, X in ((regressor, frame), (process, data[0][:200]), (scaled.fit(frame, data[1][:200]), frame)):
        assert torch.equal(leaves_of(model, X), model.tree_.leaf_of_point)


def test_memory_is_counted_once():
    array, tensor = np.zeros(1000), torch.zeros(500, dtype=torch.float64)

    class Holder:
        def __init__(self):
            self.all = [array, array[:10], tensor, tensor[5:], {"again": tensor.numpy()}, np.zeros]
            self.me = self

    assert held_bytes(Holder()) == 8 * 1500


@pytest.mark.parametrize("value", [0, 0.0, 5e-324, 1e300, -0.5, np.float32(3.25), np.inf])
def test_any_number_has_a_text(value):
    text = number(value)
    assert len(text) < 12
    assert float(text.replace(",", "")) == pytest.approx(float(value), rel=1e-3)
