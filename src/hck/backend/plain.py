"""What the surrounding program has set for torch and NumPy, put aside while we compute."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import torch

_DEVICES = ("cpu", "cuda", "mps", "xpu")  # of which torch knows an automatic change of types
_DEFAULTS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


@contextmanager
def plainly() -> Iterator[None]:
    """Without inference mode, `no_grad`, autocast and other than NumPy's own ways with floating-point errors.

    All of these belong to a thread, so that no other one notices.
    """
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))  # which ends `no_grad` as well
        stack.enter_context(np.errstate(**_DEFAULTS))  # type: ignore[arg-type]
        for device in _DEVICES:
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield
