"""Saved models: data without code, in a folder.

`model.json` says what a model is made of: a list of objects, each with the name of its class and its parts.
`tensors.safetensors` holds the arrays, by the names that `model.json` gives them. Both have checksums.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hck.errors import ModelFileError

if TYPE_CHECKING:
    from hck.persistence.model import load, save

__all__ = ["ModelFileError", "load", "save"]


def __getattr__(name: str) -> Any:
    """`load` and `save`, with all estimators, which stand above and say what is saved of them."""
    if name in __all__:
        import_module("hck.estimators")
        return getattr(import_module("hck.persistence.model"), name)
    raise AttributeError(f"module 'hck.persistence' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
