"""Parameters of small models on a cluster."""

import numpy as np
import pytest
import torch

pytest.importorskip("distributed")
import dask.array as da

from hck.approximations import TreeKernel
from hck.hierarchy import Blueprint
from hck.hierarchy.layout import Layout

GIVEN = {"lengthscale": 0.6, "alpha": 0.02, "rank": 12, "leaf_size": 30, "n_branches": 4, "random_state": 0}


def reference(model, targets):
    """Solutions and left-out predictions of ordinary ridge regression on the assembled trees, by tree."""
    local, found = model.to_local(), []
    for member, trunk in zip(local.forest_.members, model._model.plan.trunks, strict=True):
        layout = Layout.of(member.tree, lambda width, count: count)
        points = member.points.take(member.tree.order)
        source = Blueprint(member.kernel, points, member.landmarks, trunk.jitter, layout, 2**30)
        found.append(
            TreeKernel(source).ridge(local.selection_.alpha, torch.from_numpy(targets), left_out=True)
        )
    return local, found


def check(model, x, targets, lazy):
    """Weights, predictions and left-out predictions are those of the whole."""
    intercept = targets.mean(0)
    local, found = reference(model, targets - intercept)
    new = np.random.default_rng(5).uniform(size=(50, x.shape[1]))
    points = model._model.plan.points(new)
    for member, (whole, _) in zip(local.forest_.members, found, strict=True):
        torch.testing.assert_close(member.weights, whole.weights, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(member(points), whole(points), rtol=1e-8, atol=1e-8)
        assert torch.equal(member.points.x, model._model.plan.points(x).x)
    expected = np.mean([whole(points).numpy() for whole, _ in found], 0) + intercept
    np.testing.assert_allclose(model._evaluate(new), expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(local._evaluate(new), expected, rtol=1e-8, atol=1e-8)
    whole = model._evaluate(lazy)
    assert isinstance(whole, da.Array)
    assert whole.chunks[0] == lazy.chunks[0]
    np.testing.assert_allclose(whole.compute(), local._evaluate(x), rtol=1e-8, atol=1e-8)
    left_out = np.mean([left.numpy() for _, left in found], 0) + intercept
    np.testing.assert_array_equal(model.left_out_rows_, np.arange(len(x)))
    np.testing.assert_allclose(model._left_out_values(), left_out, rtol=1e-7, atol=1e-8)
    return local, left_out
