"""The same threads give the same bits; another number of them gives the same to rounding."""

import numpy as np
import pytest
import torch

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(900, 4)), RNG.normal(size=(300, 4))
Y = np.sin(3 * X[:, 0]) + X[:, 1]
GIVEN = {"rank": 40, "random_state": 0}
MODELS = {
    "regressor": (HCKRegressor(lengthscale=1.0, alpha=0.1, n_trees=2, **GIVEN), "predict"),
    "classifier": (HCKClassifier(lengthscale=1.0, alpha=0.1, **GIVEN), "predict_proba"),
    "process": (HCKGaussianProcessRegressor("matern32", max_iter=3, **GIVEN), "predict"),
    "components": (HCKKernelPCA(n_components=3, **GIVEN), "transform"),
    "exact": (HCKRegressor(lengthscale=1.0, alpha=0.1, approximation="exact", **GIVEN), "predict"),
    "nystrom": (HCKRegressor(lengthscale=1.0, alpha=0.1, approximation="nystrom", **GIVEN), "predict"),
}


@pytest.mark.parametrize("name", MODELS)
def test_numbers_of_threads(name):
    model, ask = MODELS[name]
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 2, 1):
            torch.set_num_threads(threads)
            model.fit(X, Y > 0 if name == "classifier" else Y)
            found.append(getattr(model, ask)(NEW))
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[3])
    np.testing.assert_array_equal(found[1], found[2])
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-9)
