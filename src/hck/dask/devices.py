"""Branches and plans on the device of the worker that works on them.

A plan and its trunks are in the CPU's memory, and so are branches between tasks: a GPU holds what it works
on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from hck.backend.blocks import Blocks
from hck.backend.kinds import kind_of
from hck.backend.memory import resolve_budget
from hck.branches import Plan
from hck.hierarchy import TreePredictor
from hck.partition import Landmarks
from hck.preparation.scaling import Scaling

CPU = torch.device("cpu")


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


def ready(plan: Plan) -> Plan:
    """The plan with what touches points on its device."""
    device = torch.device(plan.device)
    if plan.scaling.centre is None or plan.scaling.factor is None:
        return plan
    return replace(plan, scaling=Scaling(plan.scaling.centre.to(device), plan.scaling.factor.to(device)))


def on_cpu(plan: Plan) -> Plan:
    """The plan for work that needs no GPU."""
    return replace(plan, device="cpu")


def moved(plan: Plan, extension: TreePredictor, device: torch.device) -> TreePredictor:
    """A function of a branch on another device, within the plan's memory budget."""
    if kind_of(extension.weights.device) is kind_of(device):
        return extension
    points, landmarks = extension.points.to(device), extension.landmarks
    blocks = Blocks(landmarks.blocks.index.to(device), landmarks.blocks.full)
    shared = landmarks.points is extension.points
    return replace(
        extension,
        kernel=extension.kernel.to(device, points.dtype),
        tree=extension.tree.to(device),
        points=points,
        landmarks=Landmarks(points if shared else landmarks.points.to(device), blocks),
        weights=extension.weights.to(device),
        landmark_weights=extension.landmark_weights.to(device),
        budget=resolve_budget(plan.memory_budget, device),
    )
