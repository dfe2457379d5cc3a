"""Ridge models on a cluster are those of one machine."""

import numpy as np
import pytest

pytest.importorskip("distributed")
import dask.array as da
import dask.dataframe as dd
import pandas as pd

import hck
from dask_problem import GIVEN, check
from hck.dask import DaskHCKClassifier, DaskHCKRegressor
from hck.kernels import Matern
from hck.selection.loss import Calibration

pytestmark = pytest.mark.usefixtures("one_thread", "client")


def test_regression_of_a_forest(fitted, data, tmp_path):
    x, y = data
    local, _ = check(fitted, x, y[:, None], da.from_array(x, chunks=((0, 400, 300), (3,))))
    assert isinstance(local, hck.HCKRegressor)
    assert fitted.predict(x).shape == (700,)
    np.testing.assert_allclose(fitted.loo_predict(), local.loo_predict())
    fitted.save(tmp_path / "model")
    np.testing.assert_allclose(
        hck.load(tmp_path / "model").predict(x), fitted.predict(x), rtol=1e-12, atol=1e-12
    )


def test_intervals_and_sets_are_lazy(fitted, data):
    x, y = data
    lazy = da.from_array(x, chunks=(300, 3))
    parts = fitted.predict(lazy, interval=0.9)
    assert all(isinstance(part, da.Array) for part in parts)
    mean, lower, upper = (part.compute() for part in parts)
    np.testing.assert_allclose(mean, fitted.predict(x))
    held = (lower <= y) & (y <= upper)  # points that it has seen, so that more are inside
    assert held.mean() >= 0.9
    np.testing.assert_allclose(np.ptp(upper - lower), 0, atol=1e-9)
    with pytest.raises(hck.errors.NoGradientError, match="to_local"):
        fitted.predict_gradient(x)
    model = DaskHCKClassifier(**GIVEN).fit(lazy, da.from_array((y > np.median(y)) * 1, chunks=300))
    sets = model.predict_set(lazy, 0.9)
    assert isinstance(sets, da.Array)
    np.testing.assert_array_equal(sets.compute(), model.to_local().predict_set(x, 0.9))


def test_several_targets_in_single_precision(data):
    x, y = data
    y = np.column_stack([y, y**2])
    X = da.from_array(x.astype(np.float32), chunks=(300, 3))
    model = DaskHCKRegressor(**GIVEN, scale="standard", dtype="float32", leave_one_out=False).fit(X, y)
    predicted = model.predict(X)
    assert predicted.dtype == np.float32
    assert predicted.shape == (700, 2)
    np.testing.assert_allclose(predicted.compute(), model.to_local().predict(x), atol=1e-3)
    with pytest.raises(ValueError, match="leave_one_out=True"):
        model.loo_predict()


def test_a_metric(data):
    x, y = data
    kernel = Matern(1.0, metric=[[2.0, 0.5], [0.5, 1.0], [0.0, 0.3]])
    given = {name: value for name, value in GIVEN.items() if name != "lengthscale"}
    lazy = da.from_array(x, chunks=(300, 3))
    model = DaskHCKRegressor(kernel, **given).fit(lazy, y)
    check(model, x, y[:, None], lazy)


@pytest.mark.parametrize("names", [("no", "yes"), ("a", "b", "c")])
def test_classification(data, names):
    x, y = data
    code = np.digitize(y, np.quantile(y, np.arange(1, len(names)) / len(names)))
    labels = np.array(names)[code]
    X = da.from_array(x, chunks=(300, 3))
    model = DaskHCKClassifier(**GIVEN).fit(X, da.from_array(labels, chunks=300))
    columns = [1] if len(names) == 2 else range(len(names))
    targets = np.where(code[:, None] == columns, 1.0, -1.0)
    local, left_out = check(model, x, targets, X)
    assert model.classes_.tolist() == list(names)
    assert model.calibration_.slope == pytest.approx(Calibration.fit(left_out, code).slope, rel=1e-5)
    assert (model.predict(X).compute() == local.predict(x)).all()
    np.testing.assert_allclose(model.predict_proba(X).compute(), local.predict_proba(x), rtol=1e-8)
    np.testing.assert_allclose(model.predict_proba(x), local.predict_proba(x), rtol=1e-8)
    assert model.decision_function(X).ndim == (1 if len(names) == 2 else 2)
    assert model.score(X, da.from_array(labels, chunks=100)) == pytest.approx(local.score(x, labels))


def test_dataframes(data):
    x, y = data
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=y, kind=np.where(y > 1, "high", "low"))
    lazy = dd.from_pandas(frame, npartitions=3)
    model = DaskHCKRegressor(**GIVEN).fit(lazy[["a", "b", "c"]], lazy["y"])
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    predicted = model.predict(lazy[["a", "b", "c"]])
    assert np.isnan(predicted.shape[0])
    np.testing.assert_allclose(predicted.compute(), model.predict(x), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        lazy.assign(p=predicted)["p"].compute(), model.predict(x), rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(
        model.to_local().predict(frame[["a", "b", "c"]]), model.predict(x), rtol=1e-10, atol=1e-12
    )
    assert model.score(lazy[["a", "b", "c"]], lazy["y"]) == pytest.approx(model.score(x, y))
    for wrong in (lazy, frame):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(wrong[["b", "a", "c"]])
    here = DaskHCKRegressor(**GIVEN).fit(frame[["a", "b", "c"]], frame["y"])
    assert here.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(here.predict(x), model.predict(x), rtol=1e-10, atol=1e-12)
    named = DaskHCKClassifier(**GIVEN).fit(lazy[["a", "b", "c"]], lazy["kind"])
    assert named.classes_.tolist() == ["high", "low"]
    assert named.score(x, frame["kind"].to_numpy()) > 0.9
    for wrong in (lazy, frame):
        with pytest.raises(ValueError, match="not numbers: kind"):
            model.fit(wrong[["a", "kind"]], wrong["y"])


def test_branches_in_bundles(data):
    """More branches than twice the workers: several travel together."""
    x, y = data
    X = da.from_array(x, chunks=(150, 3))
    model = DaskHCKRegressor(**{**GIVEN, "n_branches": 8, "leaf_size": 12}).fit(X, y)
    check(model, x, y[:, None], X)
