"""Down the tree again: from right-hand sides that have gone up to a function that predicts."""

from torch import Tensor

from hck.backend import linalg
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.extend import TreePredictor, extension, landmark_weights
from hck.hierarchy.factor import Factor
from hck.hierarchy.smooth import Filtered


def descend(
    blueprint: Blueprint, factor: Factor, filtered: Filtered, above: Tensor | None = None
) -> TreePredictor:
    """x ↦ k_h(x, X) (K_h + noise)⁻¹ b for right-hand sides b that have gone up.

    Parameters
    ----------
    factor : Factor
        Of this kernel's matrix, or of a part of it.
    above : Tensor of shape (nodes above, r, columns), optional
        ẑ of the roots' parents, if this is a part of a larger tree.
    """
    source = blueprint.part(factor.layout)

    def work() -> TreePredictor:
        w, ambient = factor.smooth(filtered, above)
        landmark_weights(source, ambient)
        return extension(source, w, ambient)

    return linalg.without_waiting(work, factor.device)
