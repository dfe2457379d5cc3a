"""Devices that are not there, or that this process cannot use."""

import pytest
import torch

from hck import HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.backend.device import resolve_device
from hck.backend.kinds import kind_of


@pytest.fixture
def two_cards(monkeypatch):
    machine = kind_of("cuda").machine()
    monkeypatch.setattr(machine, "count", lambda: 2)
    return machine


@pytest.mark.parametrize("name", ["cuda:2", "cuda:7"])
def test_a_card_too_many(two_cards, name):
    with pytest.raises(ValueError, match=rf"device='{name}'.*no such device: use 'cuda:0' to 'cuda:1'"):
        resolve_device(name)
    for model in (HCKRegressor(), HCKGaussianProcessRegressor(), HCKKernelPCA()):
        with pytest.raises(ValueError, match="no such device"):
            model.set_params(device=name).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])


def test_the_cards_that_are_there(two_cards):
    for name in ("cuda", "cuda:0", "cuda:1"):
        assert resolve_device(name) == torch.device(name)


def test_one_card(two_cards, monkeypatch):
    monkeypatch.setattr(two_cards, "count", lambda: 1)
    with pytest.raises(ValueError, match=r"use 'cuda:0'$"):
        resolve_device("cuda:1")


def test_after_a_fork(two_cards, monkeypatch):
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)
    with pytest.raises(RuntimeError, match=r"forked.*spawn"):
        resolve_device("cuda:1")
    assert resolve_device("cpu").type == "cpu"
