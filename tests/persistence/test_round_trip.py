"""Estimators that were saved and loaded are the same, bit for bit."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.approximations import Iterative
from hck.kernels import Gaussian, InverseMultiquadric, Laplace, Matern
from hck.partition import KD, PCA, KernelCut, KMeans, RandomProjection, Tree
from hck.persistence import save

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(size=(200, 3)), RNG.uniform(size=(40, 3))


def function(x):
    return np.sin(4 * x[:, 0]) + x[:, 1] * x[:, 2]


Y = function(X) + 0.05 * RNG.normal(size=200)
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [0.4, 0.9])]
NAMES = ["hierarchical", "compositional", "independent", "exact", "nystrom", "fourier", "tapered"]
EVERY = [*NAMES, Iterative(tolerance=1e-8, n_trees=2), Iterative("nystrom", 1), Iterative(None)]
GIVEN = {"kernel": "gaussian", "lengthscale": 0.5, "rank": 20, "random_state": 0}
RIDGE = {**GIVEN, "alpha": 0.02}
TREE = Tree.from_labels(np.digitize(X[:, :2], [0.3, 0.6]))
same = np.testing.assert_array_equal


def same_parameters(found, model):
    for name, value in model.get_params(deep=False).items():
        assert repr(found.get_params(deep=False)[name]) == repr(value)


# Ridge regression --------------------------------------------------------------------------------


@pytest.mark.parametrize("landmarks", ["uniform", "kmeans", "farthest", "same"])
@pytest.mark.parametrize("partition", ["random_projection", "pca", "kd", "kmeans", "kernel"])
def test_partitions_and_landmarks(again, partition, landmarks):
    model = HCKRegressor(**RIDGE, partition=partition, landmarks=landmarks).fit(X, Y)
    found = again(model)
    same(found.predict(NEW), model.predict(NEW))
    same(found.loo_predict(), model.loo_predict())
    same_parameters(found, model)


@pytest.mark.parametrize(
    "cutter",
    [RandomProjection(), PCA(), KD(), KMeans(3), KernelCut()],
    ids=lambda cutter: type(cutter).__name__,
)
def test_cutters(again, cutter):
    model = HCKRegressor(**{**RIDGE, "lengthscale": [0.5, 1.0, 2.0]}, partition=cutter).fit(X, Y)
    found = again(model)
    same(found.predict(NEW), model.predict(NEW))
    assert type(found.partition) is type(cutter)
    assert vars(found.partition) == vars(cutter)


@pytest.mark.parametrize("given", ["array", "tensor", "list", "Landmarks"])
def test_a_tree_and_landmarks_that_are_given(again, given):
    first = HCKRegressor(**RIDGE, partition=TREE).fit(X, Y)
    count = len(first.tree_.inner)
    landmarks = {
        "array": X[:20],
        "tensor": torch.from_numpy(X[:20]),
        "list": [X[i : i + 5] for i in range(count)],
        "Landmarks": first.forest_.members[0].landmarks,
    }[given]
    model = HCKRegressor(**RIDGE, partition=TREE, landmarks=landmarks).fit(X, Y)
    found = again(model)
    same(found.predict(NEW), model.predict(NEW))
    same(found.partition.order, TREE.order)
    assert type(found.landmarks) is type(landmarks)
    same(clone(found).fit(X, Y).predict(NEW), model.predict(NEW))


@pytest.mark.parametrize("approximation", EVERY, ids=str)
def test_regression(again, approximation):
    model = HCKRegressor(**RIDGE, approximation=approximation, n_trees=2).fit(X, np.stack([Y, -Y], 1))
    found = again(model)
    same(found.predict(NEW), model.predict(NEW))
    assert found.residuals_ == model.residuals_
    assert found.approximation == model.approximation
    assert str(found.selection_) == str(model.selection_)


@pytest.mark.parametrize("approximation", EVERY, ids=str)
def test_classification(again, approximation):
    model = HCKClassifier(**RIDGE, approximation=approximation).fit(X, LABELS)
    found = again(model)
    same(found.decision_function(NEW), model.decision_function(NEW))
    same(found.predict(NEW), model.predict(NEW))
    same(found.classes_, model.classes_)
    assert found.classes_.dtype == model.classes_.dtype
    if model.calibration_ is not None:
        same(found.predict_proba(NEW), model.predict_proba(NEW))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([3, 7], dtype=np.uint8),
        np.array([3, 7], dtype=">i4"),
        np.array(["2020-01-01", "2021-06-01"], dtype="datetime64[D]"),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_of_any_type(again, labels):
    y = labels[(Y > 0.7).astype(int)]
    model = HCKClassifier(**RIDGE).fit(X, y, sample_weight=1.0 + (X[:, 0] > 0.5))
    found = again(model)
    same(found.predict(NEW), model.predict(NEW))
    same(found.predict_proba(NEW), model.predict_proba(NEW))
    assert found.classes_.dtype == model.classes_.dtype.newbyteorder("=")


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(0.5),
        Laplace([0.5, 1.0, 2.0]),
        InverseMultiquadric(torch.tensor([0.5, 1.0, 2.0])),
        Matern(0.5, nu=2.5),
        2.0 * Matern([1.0, 1.0, 0.5], nu=0.5) + Gaussian(0.3) * Laplace(3.0),
        torch.tensor(2.0, dtype=torch.float64) * Gaussian(0.5),
    ],
    ids=str,
)
def test_kernels(again, kernel):
    model = HCKRegressor(kernel, alpha=0.02, rank=20, partition="kernel", random_state=0).fit(X, Y)
    found = again(model)
    same(found.predict(NEW), model.predict(NEW))
    assert repr(found.kernel) == repr(kernel)


@pytest.mark.parametrize(
    ("approximation", "sparse", "dtype"),
    [
        ("hierarchical", sp.csr_matrix, "float64"),
        ("hierarchical", sp.csc_array, "float32"),
        ("nystrom", sp.csr_matrix, "float32"),
        ("fourier", sp.csr_array, "float64"),
    ],
)
def test_sparse_data(again, approximation, sparse, dtype):
    x = sparse(np.where(X[:100] > 0.5, X[:100], 0))
    options = {**RIDGE, "approximation": approximation, "dtype": dtype, "scale": "standard"}
    model = HCKRegressor(**options, n_trees=2).fit(x, Y[:100])
    found = again(model)
    same(found.predict(x), model.predict(x))
    same(found.predict(NEW), model.predict(NEW))
    members = found.forest_.members
    assert members[0].points.dtype == model.forest_.members[0].points.dtype
    if approximation == "hierarchical":
        assert members[0].points is members[1].points


@pytest.mark.parametrize("approximation", NAMES)
def test_float32(again, approximation):
    model = HCKRegressor(**RIDGE, approximation=approximation, dtype="float32").fit(X, Y)
    found = again(model)
    assert found.forest_.members[0].points.dtype == torch.float32
    assert found.predict(NEW).dtype == np.float32
    same(found.predict(NEW), model.predict(NEW))


def test_tensors(again):
    model = HCKRegressor(**RIDGE).fit(torch.from_numpy(X), torch.from_numpy(Y))
    found = again(model)
    assert isinstance(found.predict(torch.from_numpy(NEW)), torch.Tensor)
    same(found.predict(NEW), model.predict(NEW))
    assert found.n_features_in_ == 3


@pytest.mark.parametrize("dtype", ["category", "object", "string"])
def test_tables(again, dtype):
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        colour=pd.Series(RNG.choice(["red", "green", "blue", None], 200)).astype(dtype),
        size=pd.Series(RNG.choice(["s", "m"], 200)).astype(dtype),
    )
    model = HCKRegressor(**RIDGE).fit(table, Y)
    found = again(model)
    new = table[:20].assign(colour=["red", "purple", None, "blue"] * 5)
    same(found.predict(new), model.predict(new))
    same(found.feature_names_in_, table.columns)
    assert found.feature_names_in_.dtype == model.feature_names_in_.dtype
    assert found._categories.names == ["colour", "size"]
    encoders = found._categories.encoder, model._categories.encoder
    for ours, theirs in zip(*(encoder.categories_ for encoder in encoders), strict=True):
        same(ours, theirs)
    with pytest.raises(ValueError, match="categories colour, size: pass a table"):
        found.predict(NEW)
    with pytest.raises(ValueError, match=r"[Ff]eature names|columns are missing"):
        found.predict(table.rename(columns={"a": "z"}))


def test_names_that_are_numbers(again):
    table = pd.DataFrame({3: X[:, 0], 7: RNG.choice(["x", "y"], 200)})
    model = HCKRegressor(**RIDGE).fit(table, Y)
    found = again(model)
    same(found.predict(table), model.predict(table))
    assert found._categories.names == [7]


def test_everything_chosen(again):
    model = HCKRegressor(fit_time=0.5, leaf_size=100, random_state=np.int64(3)).fit(X, Y)
    found = again(model)
    assert len(found.forest_.members) == 8
    same(found.predict(NEW), model.predict(NEW))
    assert str(found.selection_) == str(model.selection_)
    assert found.selection_.candidates[0].loss == model.selection_.candidates[0].loss
    assert found.random_state == 3


def test_trees_share_the_points_again(again):
    model = HCKRegressor(**RIDGE, n_trees=3).fit(X, Y)
    found = again(model)
    members = found.forest_.members
    assert all(member.points is members[0].points for member in members)
    assert all(member.landmarks.points is member.points for member in members)
    assert all(tree is member.tree for tree, member in zip(found.trees_, members, strict=True))
    assert members[0].order.data_ptr() == members[0].tree.order.data_ptr()
    assert members[0].kernel is members[1].kernel


def test_in_another_process(tmp_path):
    model = HCKClassifier(**RIDGE, n_trees=2).fit(X, LABELS)
    save(model, tmp_path / "model")
    np.save(tmp_path / "new.npy", NEW)
    script = (
        "import sys, numpy as np; from hck.persistence import load\n"
        "folder = sys.argv[1]; model = load(folder + '/model')\n"
        "np.save(folder + '/found.npy', model.predict_proba(np.load(folder + '/new.npy')))\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    np.testing.assert_allclose(
        np.load(tmp_path / "found.npy"), model.predict_proba(NEW), rtol=1e-12, atol=1e-12
    )


# Gaussian processes ------------------------------------------------------------------------------


def check_process(found, model, x=NEW, iterative=False):
    same(found.predict(x), model.predict(x))
    for options in ({"return_std": True}, {"return_cov": True}):
        for ours, theirs in zip(found.predict(x, **options), model.predict(x, **options), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(
        found.sample_posterior(x, 3), model.sample_posterior(x, 3), rtol=0, atol=1e-6 if iterative else 1e-10
    )
    same(found.theta_, model.theta_)
    assert found.theta_names_ == model.theta_names_
    assert found.history_ == model.history_
    same(found.coefficients_, model.coefficients_)
    assert repr(found.kernel_) == repr(model.kernel_)
    if iterative:
        assert np.isnan(found.log_marginal_likelihood_value_)
        return
    for ours, theirs in zip(found.loo_predict(True), model.loo_predict(True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11)
    assert found.loo_metrics() == pytest.approx(model.loo_metrics(), rel=1e-10)
    value, slope = found.log_marginal_likelihood(eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood_value_, rel=1e-12)
    np.testing.assert_allclose(
        slope, model.log_marginal_likelihood(eval_gradient=True)[1], rtol=1e-8, atol=1e-8
    )
    same(found.sample_prior(x, 2), model.sample_prior(x, 2))


@pytest.mark.parametrize("approximation", EVERY, ids=str)
def test_processes(again, approximation):
    options = {**GIVEN, "optimizer": None, "noise": 0.01, "approximation": approximation}
    model = HCKGaussianProcessRegressor(**options).fit(X, Y)
    check_process(again(model), model, iterative=isinstance(approximation, Iterative))


@pytest.mark.parametrize("trend", ["zero", "constant", "linear"])
def test_trends_and_noise_of_each_observation(again, trend):
    options = {**GIVEN, "optimizer": None, "trend": trend, "n_trees": 2}
    model = HCKGaussianProcessRegressor(**options).fit(X, Y, noise_variance=RNG.uniform(0.01, 0.1, 200))
    found = again(model)
    check_process(found, model)
    same(found.noise_, model.noise_)


@pytest.mark.parametrize("partition", ["kmeans", "kernel"])
def test_processes_that_have_learned(again, partition):
    options = {"bounds": {"noise": "fixed", "scale": (0.1, 10)}, "priors": {"lengthscale": (0.5, 1.0)}}
    model = HCKGaussianProcessRegressor(
        "matern52", noise=0.01, max_iter=6, rank=20, partition=partition, random_state=0, **options
    ).fit(X, Y)
    found = again(model)
    check_process(found, model)
    assert (found.bounds, found.priors) == (options["bounds"], options["priors"])
    ours, theirs = found.standard_errors(), model.standard_errors()
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-6)


@pytest.mark.parametrize("options", [{"dtype": "float32"}, {"rank": 200}, {"landmarks": "same"}])
def test_processes_of_several_kinds(again, options):
    model = HCKGaussianProcessRegressor(**{**GIVEN, "optimizer": None, "noise": 0.01, **options}).fit(X, Y)
    found = again(model)
    for ours, theirs in zip(found.predict(NEW, True), model.predict(NEW, True), strict=True):
        assert ours.dtype == theirs.dtype
        same(ours, theirs)


def test_sparse_processes(again):
    model = HCKGaussianProcessRegressor(**GIVEN, optimizer=None).fit(sp.csr_matrix(X[:80]), Y[:80])
    check_process(again(model), model, sp.csr_matrix(NEW))


def test_factors_are_not_saved_but_made_again(again):
    model = HCKGaussianProcessRegressor(**GIVEN, optimizer=None).fit(X, Y)
    model.predict(NEW, return_std=True)
    member = again(model).posterior_.members[0]
    assert not {"factor", "uncertainty"} & vars(member).keys()
    assert not member.blueprint.factors
    assert member.mean.points is member.blueprint.points


# Kernel principal component analysis -------------------------------------------------------------


@pytest.mark.parametrize("approximation", EVERY, ids=str)
def test_components(again, approximation):
    model = HCKKernelPCA(3, **GIVEN, approximation=approximation, fit_inverse_transform=True).fit(X)
    found = again(model)
    same(found.transform(NEW), model.transform(NEW))
    same(found.inverse_transform(found.transform(NEW)), model.inverse_transform(model.transform(NEW)))
    for name in ("eigenvalues_", "eigenvectors_", "explained_variance_ratio_"):
        same(getattr(found, name), getattr(model, name))
    assert list(found.get_feature_names_out()) == list(model.get_feature_names_out())
    assert found._back.device == "cpu"


def test_output_as_a_table(again):
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = HCKKernelPCA(2, **GIVEN).set_output(transform="pandas").fit(table)
    found = again(model)
    pd.testing.assert_frame_equal(found.transform(table), model.transform(table))


# All of them -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        HCKRegressor(**{**RIDGE, "rank": 200}),
        HCKRegressor(**RIDGE, n_trees=3),
        HCKClassifier(**RIDGE, memory_budget="1GiB", jitter=1e-6),
        HCKGaussianProcessRegressor(**GIVEN, optimizer=None, ard=False),
        HCKKernelPCA(**GIVEN),
    ],
    ids=repr,
)
def test_loaded_models_can_be_saved_and_fitted_again(again, model):
    model.fit(X, LABELS if isinstance(model, HCKClassifier) else Y)
    found = again(again(model))
    assert vars(found).keys() == vars(model).keys()
    same_parameters(found, model)
    predict = "transform" if isinstance(model, HCKKernelPCA) else "predict"
    same(getattr(found, predict)(NEW), getattr(model, predict)(NEW))
    found.fit(X[:100], LABELS[:100] if isinstance(model, HCKClassifier) else Y[:100])
    assert getattr(found, predict)(NEW).shape == getattr(model, predict)(NEW).shape
