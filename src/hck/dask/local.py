"""Branches that were on workers as the trees of one machine."""

from dataclasses import replace

import torch

from hck.approximations import TreeKernel
from hck.branches import Trunk, assemble, assemble_forest
from hck.dask.tasks import Part
from hck.hierarchy import Blueprint, Extension
from hck.hierarchy.blueprint import leaves_at_once
from hck.hierarchy.layout import Layout
from hck.hierarchy.likelihood import Likelihood
from hck.process import Process


def forest(trunks: list[Trunk], parts: list[list[Part]]) -> list[Extension]:
    """The functions of all trees, which share the points."""
    rows = [[torch.from_numpy(part.number) for part in mine] for mine in parts]
    return assemble_forest(trunks, [[part.extension for part in mine] for mine in parts], rows)


def posterior(trunk: Trunk, parts: list[Part], noise: float, found: Likelihood) -> Process:
    """A tree's Gaussian process in one piece."""
    made = assemble(
        trunk, [part.extension for part in parts], [torch.from_numpy(part.number) for part in parts]
    )
    points, budget = made.points, made.budget
    layout = Layout.of(made.tree, leaves_at_once(points, made.tree.n_leaves, made.landmarks.rank, budget))
    source = Blueprint(made.kernel, points, made.landmarks, trunk.jitter, layout, budget)
    rows = torch.cat([torch.from_numpy(part.number) for part in parts])
    values = torch.cat([torch.as_tensor(part.targets) for part in parts])
    both = torch.empty_like(values)
    both[rows] = values
    weights, heard = made.weights, made.landmark_weights
    small = found.coefficients.to(weights.dtype)
    mean = replace(
        made,
        weights=weights[:, :1] - weights[:, 1:] @ small,
        landmark_weights=heard[..., :1] - heard[..., 1:] @ small,
    )
    along = replace(made, weights=weights[:, 1:].contiguous(), landmark_weights=heard[..., 1:].contiguous())
    known = found.coefficients, found.precision, float(found.value)
    whole = TreeKernel(source)
    trend = along if weights.shape[1] > 1 else None
    return Process(whole, whole.variances(noise), whole.columns(both), mean, trend, *known)
