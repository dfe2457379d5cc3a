"""Devices that are not there, or that this process cannot use."""

import pytest
import torch

from hck import (
    HCKClassifier,
    HCKGaussianProcessClassifier,
    HCKGaussianProcessRegressor,
    HCKKernelPCA,
    HCKRegressor,
)
from hck.backend.device import resolve_device
from hck.backend.kinds import kind_of
from hck.backend.memory import require_bytes


@pytest.fixture
def two_cards(monkeypatch):
    machine = kind_of("cuda").machine()
    monkeypatch.setattr(machine, "count", lambda: 2)
    return machine


@pytest.mark.parametrize("name", ["cuda:2", "cuda:7"])
def test_a_card_too_many(two_cards, name):
    with pytest.raises(ValueError, match=rf"device='{name}'.*no such device: use 'cuda:0' to 'cuda:1'"):
        resolve_device(name)
    for kind in (
        HCKRegressor,
        HCKGaussianProcessRegressor,
        HCKKernelPCA,
        HCKClassifier,
        HCKGaussianProcessClassifier,
    ):
        with pytest.raises(ValueError, match="no such device"):
            kind(device=name).fit([[0.0], [1.0], [2.0]], [0, 1, 2])


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
    for kind in (HCKRegressor, HCKGaussianProcessClassifier):
        with pytest.raises(RuntimeError, match=r"forked.*spawn"):
            kind(device="cuda").fit([[0.0], [1.0]], [0, 1])


def test_what_others_hold_on_a_card_is_not_free(monkeypatch):
    """What the driver says is free counts, and what torch has reserved itself but does not use."""
    machine = kind_of("cuda").machine()
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (3 * 10**9, 80 * 10**9))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 2 * 10**9)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 5 * 10**8)
    assert machine.free_bytes(torch.device("cuda:0")) == 45 * 10**8
    with pytest.raises(MemoryError, match=r"takes 5 GB, but 4.5 GB are free on 'cuda:0'"):
        require_bytes(5e9, torch.device("cuda:0"), "this", "do that")
