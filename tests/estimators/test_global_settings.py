"""No result depends on what the surrounding program has set for torch, NumPy or scikit-learn."""

from contextlib import ExitStack, contextmanager

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.approximations import Iterative
from hck.kernels import Gaussian, Matern

rng = np.random.default_rng(0)
X = rng.uniform(size=(150, 2))
y = np.sin(5 * X[:, 0]) + X[:, 1]
NEW = rng.uniform(size=(15, 2))
TABLE = pd.DataFrame({"a": X[:, 0], "b": ["x", "y", "z"] * 50})
RIDGE = {"lengthscale": 0.5, "alpha": 0.1, "rank": 8, "random_state": 0}


def ridge(x=X, new=NEW, **given):
    model = HCKRegressor(**{**RIDGE, **given}).fit(x, y)
    return [model.predict(new), model.loo_predict()] if model.leave_one_out else [model.predict(new)]


def classes():
    model = HCKClassifier(**RIDGE).fit(X, (y > 1) * 1)
    return [model.predict_proba(NEW), model.decision_function(torch.from_numpy(NEW)).numpy()]


def process(**given):
    given = {"kernel": "matern32", "max_iter": 2, "rank": 8, "random_state": 0, **given}
    model = HCKGaussianProcessRegressor(**given).fit(X, y)
    value, slope = model.log_marginal_likelihood(model.theta_, eval_gradient=True)
    return [*model.predict(NEW, return_std=True), model.sample_posterior(NEW), slope, value]


def components():
    model = HCKKernelPCA(rank=8, random_state=0, fit_inverse_transform=True).fit(X)
    found = np.asarray(model.transform(NEW))
    return [found, model.inverse_transform(found)]


WORK = {
    "ridge": ridge,
    "single": lambda: ridge(dtype="float32"),
    "chosen": lambda: ridge(lengthscale="auto", alpha="auto", rank=8, fit_time=0.1),
    "kmeans": lambda: ridge(landmarks="kmeans", partition="kmeans"),
    "farthest": lambda: ridge(landmarks="farthest", partition="kernel"),
    "sums": lambda: ridge(kernel=2.0 * Gaussian(0.5) + Matern([0.4, 1.0]), lengthscale=None, partition="pca"),
    "table": lambda: ridge(TABLE, TABLE[:9]),
    "nystrom": lambda: ridge(approximation="nystrom"),
    "fourier": lambda: ridge(approximation="fourier"),
    "tapered": lambda: ridge(approximation="tapered"),
    "exact": lambda: ridge(approximation="exact"),
    "iterative": lambda: ridge(approximation=Iterative(), leave_one_out=False),
    "branches": lambda: ridge(memory_budget=2e5, leave_one_out=False),
    "classes": classes,
    "process": process,
    "sum of processes": lambda: process(kernel=Gaussian(0.5) + Matern(1.0), trend="linear"),
    "components": components,
}


@contextmanager
def setting(change, *values):
    """torch's global settings, put back as they were."""
    before = torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled()
    try:
        change(*values)
        yield
    finally:
        torch.set_default_dtype(before[0])
        torch.set_default_device(None)
        torch.use_deterministic_algorithms(before[1])


# Several at once, since each takes all of the work: the name says which.
SETTINGS = {
    "double by default, no gradients, another seed": lambda: (
        setting(torch.set_default_dtype, torch.float64),
        setting(torch.manual_seed, 123),
        torch.no_grad(),
    ),
    "half by default, deterministic, gradients, errors raised": lambda: (
        setting(torch.set_default_dtype, torch.float16),
        setting(torch.use_deterministic_algorithms, True),
        torch.enable_grad(),
        np.errstate(all="raise"),
    ),
    "no device by default, few digits, tables as output": lambda: (
        setting(torch.set_default_device, "meta"),
        np.printoptions(precision=1, threshold=2),
        sklearn.config_context(transform_output="pandas"),
    ),
    "inference": lambda: (torch.inference_mode(),),
    "autocast": lambda: (torch.autocast("cpu", dtype=torch.bfloat16),),
}


@pytest.fixture(scope="module")
def plain():
    return {name: work() for name, work in WORK.items()}


@pytest.mark.parametrize("called", SETTINGS)
def test_results_do_not_depend_on_settings(called, plain):
    for name, work in WORK.items():
        with ExitStack() as stack:
            for each in SETTINGS[called]():
                stack.enter_context(each)
            found = work()
        for got, expected in zip(found, plain[name], strict=True):
            np.testing.assert_array_equal(np.asarray(got), expected, err_msg=name, strict=True)


def test_what_was_fitted_in_inference_mode_can_be_used_outside(plain):
    with torch.inference_mode():
        model = HCKGaussianProcessRegressor("matern32", max_iter=2, rank=8, random_state=0)
        model.fit(torch.from_numpy(X) + 0.0, torch.from_numpy(y) + 0.0)
    np.testing.assert_array_equal(model.log_marginal_likelihood(model.theta_, True)[1], plain["process"][3])


def test_no_generator_of_others_is_used():
    before = torch.get_rng_state(), np.random.mtrand._rand.get_state()[1].copy()
    for work in (ridge, process, components):
        work()
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.mtrand._rand.get_state()[1], before[1])
