"""Devices that users ask for: which one is meant, and whether it is there."""

import torch

from hck.backend.kinds import KINDS, kind_of

SUPPORTED = " or ".join(map(repr, KINDS))
FASTEST = max(KINDS, key=lambda name: KINDS[name].rate)  # to be preferred where there is a choice


def parse_device(asked: str | torch.device) -> torch.device:
    """The device of a name, whether or not it is there."""
    try:
        return torch.device(asked)
    except RuntimeError:
        raise ValueError(f"device={asked!r} is not known; use {SUPPORTED}") from None


def check_supported(device: torch.device) -> torch.device:
    """The device, if its kind is one that is tested; else a ValueError."""
    if device.type not in KINDS:
        raise ValueError(f"device={str(device)!r} is not supported; use {SUPPORTED}")
    return device


def resolve_device(asked: str | torch.device) -> torch.device:
    """The device that was asked for, if there is one of its kind; else a ValueError that says what to do."""
    device = parse_device(asked)
    if device.type in KINDS and not is_available(device):
        name = device.type.upper()
        raise ValueError(
            f"device={str(device)!r} was asked for, but torch finds no {name} device: "
            f"use device='cpu', or install a {name} build of torch on a machine with a GPU"
        )
    check_supported(device)
    machine = kind_of(device).machine()
    if not is_here(device) and not kind_of(device).is_host:
        last = machine.count() - 1
        raise ValueError(
            f"device={str(device)!r} was asked for, but there is no such device: use '{device.type}:0'"
            + (f" to '{device.type}:{last}'" if last else "")
        )
    machine.check_usable()
    return device


def is_available(device: str | torch.device) -> bool:
    """Whether there is a device of this kind."""
    return kind_of(device).machine().count() > 0


def is_here(device: torch.device) -> bool:
    """Whether there is this very device."""
    return device.type in KINDS and (device.index or 0) < kind_of(device).machine().count()
