"""Kernel ridge regression for any targets: what the regressor and the classifier share."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor

from hck.estimators._base import HCKEstimator, describe_parameters
from hck.hierarchy import Blueprint, Extension, Forest, ridge, share_points
from hck.kernels import make_kernel
from hck.partition import Tree

_PARAMETERS = """{kernel}
lengthscale : float, array-like of shape (n_features,) or None, default=None
    σ of a named kernel: one number, or one per feature. None means 1. Scale the features first.
alpha : float, default=0.01
    λ ≥ 0, the ridge: larger is smoother.
{settings}"""


def describe_ridge(cls: type) -> type:
    """Put the shared parameters and attributes into the docstring of an estimator."""
    cls.__doc__ = (cls.__doc__ or "").replace("{parameters}", _PARAMETERS.replace("\n", "\n    "))
    return describe_parameters(cls)


class RidgeEstimator(HCKEstimator):
    """Kernel ridge regression with a hierarchically compositional kernel, for any targets."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **HCKEstimator._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        lengthscale: Any = None,
        alpha: float = 0.01,
        n_trees: int = 1,
        rank: int = 128,
        leaf_size: int | None = None,
        partition: Any = "random_projection",
        landmarks: Any = "uniform",
        jitter: float | None = None,
        device: Any = None,
        dtype: str = "float64",
        memory_budget: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.lengthscale = lengthscale
        self.alpha = alpha
        self.n_trees = n_trees
        self.rank = rank
        self.leaf_size = leaf_size
        self.partition = partition
        self.landmarks = landmarks
        self.jitter = jitter
        self.device = device
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.verbose = verbose

    @torch.no_grad()
    def _train(self, X: Any, targets: np.ndarray, sample_weight: Any) -> dict[str, Any]:
        """Solve (K_h + α diag(1/weight)) w = targets − intercept, for several targets at once.

        Parameters
        ----------
        X : validated points
        targets : ndarray of shape (n, columns)
        sample_weight : array-like of shape (n,), float or None

        Returns
        -------
        dict
            The fitted attributes, to be set once nothing can fail any more.
        """
        points, kernel = self._points(X), make_kernel(self.kernel, self.lengthscale)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_trees)
        y = torch.tensor(targets, dtype=torch.float64)
        weight = None if sample_weight is None else _check_weights(sample_weight, len(points))
        if weight is not None and (weight == 0).any():  # a point that counts for nothing is not there
            if isinstance(self.partition, Tree):
                raise ValueError("points of weight 0 are left out, but the tree given as partition has them")
            used = weight.nonzero().squeeze(1)
            points, y, weight = points.take(used.to(points.device)), y[used], weight[used]
        intercept = y.mean(0) if weight is None else weight @ y / weight.sum()
        noise = self.alpha if weight is None else self.alpha / weight

        def train(blueprint: Blueprint) -> Extension:
            return share_points(ridge(blueprint, noise, y - intercept), points)

        members = self._for_each_tree(train, kernel, points, seeds.tolist())
        return {
            "trees_": [member.tree for member in members],
            "forest_": Forest(members),
            "intercept_": intercept.numpy(),
        }

    def _evaluate(self, X: Any) -> Any:
        """The trained functions at new points: shape (points, columns); a tensor if X is one."""
        X = self._validate_new(X)
        values = self.forest_(X, verbose=bool(self.verbose))
        intercept = torch.as_tensor(self.intercept_, device=values.device)
        values = (values + intercept).to(values.dtype)
        return values.to(X.device) if isinstance(X, Tensor) else values.detach().cpu().numpy()


def _check_weights(weight: Any, n: int) -> Tensor:
    array = weight.detach().cpu().numpy() if isinstance(weight, Tensor) else weight
    array = _check_sample_weight(array, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True)
    if not array.any():
        raise ValueError("all sample weights are zero: at least one point must count")
    return torch.as_tensor(array)
