"""HierarchicalKernel as an object: copies of it, and points it cannot take."""

import pickle

import numpy as np
import pytest
import torch

from hck.hierarchy import HierarchicalKernel
from hck.kernels import Gaussian

X = torch.rand(200, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_pickled():
    h = HierarchicalKernel.build(Gaussian(0.5), X, 16)
    factor = h.factor(0.1)
    again, factor_again = pickle.loads(pickle.dumps((h, factor)))
    torch.testing.assert_close(again @ X, h @ X, rtol=0, atol=0)
    torch.testing.assert_close(factor_again.solve(X), factor.solve(X), rtol=0, atol=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("form", [torch.as_tensor, np.asarray])
def test_points_must_be_finite(bad, form):
    x = X.clone()
    x[7, 1] = bad
    with pytest.raises(ValueError, match="the points contain NaN or infinity"):
        HierarchicalKernel.build(Gaussian(0.5), form(x), 16)
