"""Branches that predict, on the device of the worker that has them, and brought together on one machine.

A plan and its trunks are in the CPU's memory, and so are branches between tasks: a GPU holds what it works
on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from hck.approximations import TreeKernel
from hck.backend.blocks import Blocks
from hck.backend.kinds import kind_of
from hck.backend.memory import resolve_budget
from hck.branches import Branch, Piece, Plan, Trunk
from hck.branches.assemble import assemble
from hck.hierarchy import Blueprint, TreePredictor
from hck.hierarchy.blueprint import lay_out
from hck.hierarchy.likelihood import Likelihood
from hck.hierarchy.uncertainty import Uncertainty
from hck.partition import Landmarks
from hck.process import Process
from hck.process.likelihood import subtracting


@contextmanager
def one_core() -> Iterator[None]:
    """A thread of a worker computes on one core: as many tasks as the worker has threads run at a time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_num_threads(before)


def moved(plan: Plan, function: TreePredictor, device: str) -> TreePredictor:
    """A function of a branch on another device, within the plan's memory budget."""
    place = torch.device(device)
    if kind_of(function.weights.device) is kind_of(place):
        return function
    points, landmarks = function.points.to(place), function.landmarks
    blocks = Blocks(landmarks.blocks.index.to(place), landmarks.blocks.full)
    shared = landmarks.points is function.points
    return replace(
        function,
        kernel=function.kernel.to(place, points.dtype),
        tree=function.tree.to(place),
        points=points,
        landmarks=Landmarks(points if shared else landmarks.points.to(place), blocks),
        weights=function.weights.to(place),
        landmark_weights=function.landmark_weights.to(place),
        budget=resolve_budget(plan.settings.memory_budget, place),
    )


def _blueprint(function: TreePredictor, jitter: float) -> Blueprint:
    """Of the tree that a function was solved with."""
    layout = lay_out(function.tree, function.points, function.landmarks.rank, function.budget)
    return Blueprint(function.kernel, function.points, function.landmarks, jitter, layout, function.budget)


def uncertainty(plan: Plan, tree: int, piece: Piece) -> Uncertainty:
    """A branch of a Gaussian process, factored again to say how well it knows."""
    if piece.targets is None or piece.above is None:
        raise ValueError("this branch is not one of a Gaussian process")
    whole = _blueprint(moved(plan, piece.predictor, plan.device), plan.trunks[tree].jitter)
    branch = Branch(whole.part(whole.layout.cut(1).bundle(0)))
    factor = branch.factor(plan.noise, piece.targets)
    return Uncertainty(branch.blueprint, factor, piece.above.to(factor.device)[None])


def in_one_piece(trunk: Trunk, pieces: list[Piece], noise: float, found: Likelihood) -> Process:
    """A tree's Gaussian process on one machine."""
    made = assemble(trunk, pieces)
    source = TreeKernel(_blueprint(made, trunk.jitter))
    order = torch.cat([piece.rows for piece in pieces if piece.rows is not None]).argsort()
    both = torch.cat([piece.targets for piece in pieces if piece.targets is not None])[order]

    def combined(change: Tensor) -> TreePredictor:
        change = change.to(made.weights)
        weights, heard = made.weights @ change, made.landmark_weights @ change
        return replace(made, weights=weights, landmark_weights=heard)

    mean = combined(subtracting(found.coefficients))
    alone = torch.eye(both.shape[1], dtype=both.dtype, device=both.device)[:, 1:]
    trend = combined(alone) if both.shape[1] > 1 else None
    known = found.coefficients, found.precision, float(found.value)
    return Process(source, source.variances(noise), source.columns(both), mean, trend, *known)
