"""Every estimator in memory with given parameters, quick to fit, and targets that suit it."""

import numpy as np

from hck import (
    HCKClassifier,
    HCKGaussianProcessClassifier,
    HCKGaussianProcessRegressor,
    HCKKernelPCA,
    HCKRegressor,
)

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(40, 3)), RNG.normal(size=(6, 3))
NUMBERS = np.sin(X[:, 0]) + 0.3 * X[:, 1]
LABELS = (NUMBERS > 0).astype(int)
AMOUNTS = np.exp(NUMBERS)
RIDGE = {"lengthscale": 1.0, "alpha": 0.1, "rank": 8, "random_state": 0}
PROCESS = {"lengthscale": 1.0, "rank": 8, "random_state": 0, "optimizer": None}

REGRESSORS = {
    **{
        loss: (HCKRegressor(**RIDGE, loss=loss, quantile=[0.1, 0.9]), NUMBERS)
        for loss in ("squared", "absolute", "huber", "quantile")
    },
    **{loss: (HCKRegressor(**RIDGE, loss=loss), AMOUNTS) for loss in ("poisson", "gamma", "tweedie")},
    "process": (HCKGaussianProcessRegressor(**PROCESS, noise=0.1), NUMBERS),
}
CLASSIFIERS = {
    **{
        f"{loss} of classes": (HCKClassifier(**RIDGE, loss=loss), LABELS)
        for loss in ("squared", "logistic", "squared_hinge")
    },
    "process of classes": (HCKGaussianProcessClassifier(**PROCESS), LABELS),
}
SUPERVISED = {**REGRESSORS, **CLASSIFIERS}
EVERY = {**SUPERVISED, "components": (HCKKernelPCA(2, lengthscale=1.0, rank=8, random_state=0), NUMBERS)}


def says(model, x=NEW):
    """What a fitted one says of points: numbers."""
    names = ("transform", "predict_proba", "predict")
    return np.asarray(next(getattr(model, name) for name in names if hasattr(model, name))(x))
