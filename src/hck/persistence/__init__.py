"""Saved models: data without code, in a folder.

`model.json` says what a model is made of: a list of objects, each with the name of its class and its parts.
`tensors.safetensors` holds the arrays, by the names that `model.json` gives them. Both have checksums.
"""

from hck.persistence.errors import ModelFileError
from hck.persistence.model import load, save

__all__ = ["ModelFileError", "load", "save"]
