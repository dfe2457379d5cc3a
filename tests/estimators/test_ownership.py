"""A model owns what it predicts with: nothing that the caller does to what was given changes it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.kernels import Gaussian, RationalQuadratic
from hck.partition import Tree
from hck.points import as_points, own

rng = np.random.default_rng(0)
X = rng.uniform(size=(60, 2))
y = np.sin(5 * X[:, 0]) + X[:, 1]
NEW = rng.uniform(size=(10, 2))
RIDGE = {"lengthscale": 0.5, "alpha": 0.1, "rank": 8, "random_state": 0}

EIGHTHS = Tree.from_labels((np.arange(60) * 8 // 60)[:, None] // [4, 2, 1])  # seven inner nodes

MODELS = {
    "regressor": lambda: HCKRegressor(**RIDGE),
    "exact": lambda: HCKRegressor(**RIDGE, approximation="exact"),
    "nystrom": lambda: HCKRegressor(**RIDGE, approximation="nystrom"),
    "fourier": lambda: HCKRegressor(**RIDGE, approximation="fourier"),
    "tapered": lambda: HCKRegressor(**RIDGE, approximation="tapered"),
    "independent": lambda: HCKRegressor(**RIDGE, landmarks="none"),
    "single precision": lambda: HCKRegressor(**RIDGE, dtype="float32"),
    "scaled": lambda: HCKRegressor(**RIDGE, scale="standard"),
    "classifier": lambda: HCKClassifier(**RIDGE),
    "process": lambda: HCKGaussianProcessRegressor(optimizer=None, lengthscale=0.5, noise=0.1, rank=8),
    "components": lambda: HCKKernelPCA(lengthscale=0.5, rank=8, random_state=0),
}


def mapped(x, folder):
    np.save(folder / "x.npy", x)
    return np.load(folder / "x.npy", mmap_mode="r+")


CONTAINERS = {
    "array": lambda x, _: x.copy(),
    "view": lambda x, _: np.repeat(x, 2, axis=0)[::2],
    "Fortran": lambda x, _: np.asfortranarray(x),
    "single": lambda x, _: x.astype(np.float32),
    "map": mapped,
    "tensor": lambda x, _: torch.from_numpy(x.copy()),
    "with gradient": lambda x, _: torch.from_numpy(x.copy()).requires_grad_(),
    "table": lambda x, _: pd.DataFrame(x, columns=["a", "b"], copy=True),
    "CSR": lambda x, _: sp.csr_matrix(x),
    "list": lambda x, _: x.tolist(),
}


def overwrite(x):
    with torch.no_grad():
        if sp.issparse(x):
            x.data[:], x.indices[:], x.indptr[1:] = 7.0, 0, 1
        elif isinstance(x, pd.DataFrame):
            x.iloc[:, :] = 7.0
        elif isinstance(x, list):
            x[:] = [[7.0, 7.0]] * len(x)
        else:
            x[:] = 7


def says(model):
    return np.asarray(model.transform(NEW) if isinstance(model, HCKKernelPCA) else model.predict(NEW))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("name", MODELS)
def test_what_was_given_can_be_overwritten(name, tmp_path):
    for called, make in CONTAINERS.items():
        if (name, called) == ("tapered", "CSR"):  # which is refused
            continue
        model, x, targets = (
            MODELS[name](),
            make(X, tmp_path),
            (y > 1) * 1 if name == "classifier" else y.copy(),
        )
        model.fit(x, targets)
        before = says(model)
        overwrite(x)
        targets[:] = 0
        np.testing.assert_array_equal(says(model), before, err_msg=called)


def test_a_memory_map_may_go_away(tmp_path):
    x = mapped(X, tmp_path)
    model = HCKRegressor(**RIDGE).fit(x, y)
    before = says(model)
    with open(tmp_path / "x.npy", "r+b") as file:
        file.truncate(10)  # reading the map would end the process now
    np.testing.assert_array_equal(says(model), before)


def test_weights_and_variances_are_the_models_own():
    weight, variance = np.full(60, 2.0), np.full(60, 0.1)
    model = HCKRegressor(**RIDGE).fit(X, y, weight)
    process = MODELS["process"]().fit(X, y, variance)
    before = process.log_marginal_likelihood(process.theta_)
    weight[:], variance[:] = 0.0, 5.0
    assert (model._weight == 2).all()
    assert (process.noise_ == 0.1).all()
    assert process.log_marginal_likelihood(process.theta_) == before


def test_left_out_values_are_a_copy():
    model = HCKRegressor(**RIDGE).fit(X, y)
    before = model.loo_predict().copy()
    model.loo_predict()[:] = 0
    np.testing.assert_array_equal(model.loo_predict(), before)


def lengthscale(kind):
    scale = kind([0.4, 0.6])
    return {"lengthscale": scale}, [scale]


def kernel(make):
    scale = torch.tensor([0.4, 0.6], dtype=torch.float64)
    return {"kernel": make(scale), "lengthscale": None}, [scale]


def landmarks(make):
    array = X[:6].copy()
    return {"landmarks": make(array)}, [array]


def tree():
    made = Tree.from_labels((X[:, 0] > 0.5).astype(int))
    return {"partition": made}, [made.order, made.start, made.stop]


PARAMETERS = {
    "array of lengthscales": lambda: lengthscale(np.array),
    "tensor of lengthscales": lambda: lengthscale(lambda x: torch.tensor(x, dtype=torch.float64)),
    "list of lengthscales": lambda: lengthscale(list),
    "kernel": lambda: kernel(Gaussian),
    "scaled kernel": lambda: kernel(lambda scale: 2.0 * Gaussian(scale)),
    "sum of kernels": lambda: kernel(lambda scale: Gaussian(scale) + RationalQuadratic(scale)),
    "landmarks": lambda: landmarks(lambda array: array),
    "tensor of landmarks": lambda: landmarks(torch.from_numpy),
    "list of landmarks": lambda: landmarks(lambda array: [array] * 7),
    "tree": tree,
}


@pytest.mark.parametrize("called", PARAMETERS)
def test_parameters_can_be_overwritten(called):
    for cls, fixed in (
        (HCKRegressor, RIDGE),
        (HCKGaussianProcessRegressor, {"optimizer": None, "noise": 0.1, "rank": 8, "lengthscale": 0.5}),
        (HCKKernelPCA, {"rank": 8, "lengthscale": 0.5, "random_state": 0}),
    ):
        given, parts = PARAMETERS[called]()
        model = cls(**{**fixed, **given})
        if called == "list of landmarks":
            model.set_params(partition=EIGHTHS)
        model.fit(X, y)
        assert all(model.get_params()[name] is value for name, value in given.items())
        before = says(model)
        for part in parts:
            part[:] = [1.0] * len(part) if isinstance(part, list) else 1
        np.testing.assert_array_equal(says(model), before)


def closeness(a, b):
    return np.array([[np.exp(-abs(float(sum(s)) - float(sum(t))) / 4) for t in b] for s in a])


@pytest.mark.parametrize("cls", [HCKRegressor, HCKGaussianProcessRegressor, HCKKernelPCA])
@pytest.mark.parametrize("outer", ["list", "array"])
@pytest.mark.parametrize("inner", [list, np.array, torch.tensor])
def test_objects_can_be_overwritten(cls, outer, inner):
    things = [inner([i, i % 7]) if i % 2 else inner([i, 2, i % 3]) for i in range(30)]
    x = things
    if outer == "array":
        x = np.empty(len(things), dtype=object)
        x[:] = things
    fixed = {"alpha": 0.1, "lengthscale": None} if cls is HCKRegressor else {}
    fixed |= {"optimizer": None} if cls is HCKGaussianProcessRegressor else {}
    model = cls(kernel=closeness, partition="kernel", rank=4, random_state=0, **fixed).fit(
        x, np.arange(30) % 5
    )
    ask = model.transform if cls is HCKKernelPCA else model.predict
    before = ask([[3, 4], [5]])
    for thing in things:
        thing[0] = 100
    x[0] = x[1]
    np.testing.assert_array_equal(ask([[3, 4], [5]]), before)


@pytest.mark.parametrize("given", [X, torch.from_numpy(X)], ids=lambda x: type(x).__name__)
def test_only_what_is_shared_is_copied(given):
    shared = as_points(np.asarray(given))
    copied = own(shared, given)
    assert copied is not shared
    assert own(copied, given) is copied
    cast = as_points(given, torch.float32)
    assert own(cast, given) is cast
    assert own(shared, X.tolist()) is shared


def test_of_a_sparse_matrix_only_what_is_shared_is_copied():
    given = sp.csr_matrix(X)
    scaled = as_points(given).scaled(torch.ones(2, dtype=torch.float64))
    mine = own(scaled, given)
    assert mine.x.data is scaled.x.data or np.may_share_memory(mine.x.data, scaled.x.data)
    assert not np.may_share_memory(mine.x.indices, given.indices)
