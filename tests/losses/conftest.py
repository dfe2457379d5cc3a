"""Losses with observations that suit them."""

import numpy as np
import pytest
import torch

from hck.losses import Problem
from loss_problem import LOSSES, observed

N = 120


@pytest.fixture(params=LOSSES, ids=repr)
def loss(request):
    return request.param


@pytest.fixture
def x():
    return np.random.default_rng(0).uniform(size=(N, 2))


@pytest.fixture
def weight():
    return torch.tensor(np.random.default_rng(1).uniform(0.5, 2, N))


@pytest.fixture
def problem(loss, x, weight):
    return Problem.of(loss, observed(loss, x, np.random.default_rng(2)), weight)
