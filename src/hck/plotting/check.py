"""What pictures are made of, checked."""

from typing import Any

import numpy as np

from hck.partition import Tree


def as_array(values: Any) -> np.ndarray:
    """An array, of a tensor on any device too."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def vectors(**given: Any) -> list[np.ndarray]:
    """Arrays of finite numbers, of one shape (n,)."""
    arrays = {name: np.asarray(as_array(values), dtype=float) for name, values in given.items()}
    shapes = {array.shape for array in arrays.values()}
    if len(shapes) > 1 or len(next(iter(shapes))) != 1 or 0 in next(iter(shapes)):
        found = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"{' and '.join(given)} must have one shape (n,), got {found}")
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ValueError(f"{name} contains NaN or infinity")
    return list(arrays.values())


def check_tree(tree: Any) -> Tree:
    """A tree; that of an estimator is not meant, since it may have several."""
    if not isinstance(tree, Tree):
        raise TypeError(f"expected a hck.partition.Tree, such as model.tree_, got {type(tree).__name__}")
    return tree


def some_of(n: int, most: int) -> np.ndarray:
    """The numbers of at most so many of n things, drawn at random but always the same; ascending."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))
