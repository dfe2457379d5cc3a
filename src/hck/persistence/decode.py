"""Objects made of data again. Nothing that a file says is executed or imported."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from hck.errors import ModelFileError
from hck.persistence.arrays import DTYPES, JSON, Node, Read, unpack
from hck.persistence.classes import BY_NAME, RECIPES, Part, Place
from hck.persistence.types import fits

_NUMBERS = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}
_CPU = torch.device("cpu")
_DEEPEST = 100  # objects inside each other


class Decoder:
    """Makes what an `Encoder` has taken apart: objects, each with its class and its parts."""

    def __init__(self, objects: list[Node], read: Read, place: Place, most_bytes: float) -> None:
        self.objects, self.read, self.place, self.most_bytes = objects, read, place, most_bytes
        self._made: dict[tuple[int, torch.device], Any] = {}
        self._open: list[int] = []
        self._tensors: dict[tuple[str, torch.device], Tensor] = {}
        self._kinds: dict[str, Callable[[Node, torch.device], Any]] = {
            "number": lambda node, device: _NUMBERS[node["value"]],
            "tuple": lambda node, device: tuple(self.value(node["items"], device)),
            "dict": lambda node, device: dict(map(tuple, self.value(node["items"], device))),
            "dtype": lambda node, device: DTYPES[node["name"]],
            "device": lambda node, device: device,
            "tensor": self._tensor,
            "array": self._array,
            "values": self._values,
            "sparse": self._sparse,
            "object": lambda node, device: self._object(node["number"], device),
        }

    def value(self, node: JSON, device: torch.device) -> Part:
        """What an encoded value stands for, with its tensors on a device."""
        if isinstance(node, list):
            return [self.value(item, device) for item in node]
        if not isinstance(node, dict):
            return node
        kind = node.get("is")
        if not isinstance(kind, str) or kind not in self._kinds:
            raise ModelFileError(f"the file has a value of the unknown kind {kind!r}")
        return _guard(f"a value of the kind {kind!r}", lambda: self._kinds[kind](node, device))

    def _object(self, number: int, device: torch.device) -> Part:
        at = number, device
        if at not in self._made:
            if type(number) is not int or not 0 <= number < len(self.objects):
                raise ModelFileError(f"the file has no object {number!r}")
            if self._open and number >= self._open[-1]:  # those that it is made of come before
                raise ModelFileError(f"object {number} in the file is a part of itself, or of one before it")
            if len(self._open) > _DEEPEST:
                raise ModelFileError(f"object {number} is nested more than {_DEEPEST} deep")
            self._open.append(number)
            entry = self.objects[number]
            self._made[at] = self._make(entry["class"], entry["parts"], device)
            self._open.pop()
        return self._made[at]

    def _make(self, name: str, parts: Node, device: torch.device) -> Part:
        if not isinstance(name, str) or name not in BY_NAME:
            raise ModelFileError(
                f"the file has an object of the class {name!r}, which saved models do not have"
            )
        recipe = RECIPES[BY_NAME[name]]
        known = parts.keys() if recipe.optional is None else recipe.required | recipe.optional
        for problem, which in (("lacks", recipe.required - parts.keys()), ("has", parts.keys() - known)):
            if which:
                raise ModelFileError(f"an object of the class {name!r} {problem} the part {min(which)!r}")
        made = {
            part: self.value(node, _CPU if part in recipe.on_host else device) for part, node in parts.items()
        }
        for part, hint in recipe.hints.items():
            if part in made and not fits(made[part], hint):
                found = type(made[part]).__name__
                raise ModelFileError(
                    f"the part {part!r} of an object of the class {name!r} is of the type {found}, "
                    f"or holds something that is not of the type {hint}"
                )
        place = Place(device, self.place.parameter)
        return _guard(f"an object of the class {name!r}", lambda: _checked(recipe.make(made, place)))

    def _tensor(self, node: Node, device: torch.device) -> Tensor:
        at = node["name"], device
        if at not in self._tensors:
            self._tensors[at] = self.read(node["name"], DTYPES[node["dtype"]], node["shape"]).to(device)
        self._sized(math.prod(node.get("expand", [])), self._tensors[at].itemsize)
        return unpack(self._tensors[at], node)

    def _sized(self, count: float, each: int) -> None:
        """Raise an error if so many numbers are more than anybody has, before memory is asked for."""
        if count * each > self.most_bytes:
            raise ModelFileError(f"an array of {count:.3g} entries is larger than the file can account for")

    def _array(self, node: Node, device: torch.device) -> np.ndarray:
        array = self._tensor(node, _CPU).numpy()
        return array.view(_dtype(node["times"], "mM")) if "times" in node else array

    def _values(self, node: Node, device: torch.device) -> np.ndarray:
        items, dtype = self.value(node["items"], device), _dtype(node["dtype"], "OU")
        self._sized(len(items), dtype.itemsize)
        if not all(item is None or isinstance(item, str | int | float) for item in items):
            raise ModelFileError("an array of values holds something else than text and numbers")
        found = np.empty(len(items), dtype)
        found[:] = items
        return found.reshape(node["shape"])

    def _sparse(self, node: Node, device: torch.device) -> sp.csr_matrix:
        parts = tuple(self.value(node[name], device) for name in ("data", "indices", "indptr"))
        matrix = sp.csr_matrix(parts, shape=tuple(node["shape"]))
        matrix.check_format(full_check=True)  # or compiled code would read elsewhere
        if matrix.data.dtype.kind != "f" or not np.isfinite(matrix.data).all():
            raise ModelFileError("a sparse matrix has entries that are no finite numbers")
        return matrix


def _checked(made: Part) -> Part:
    """An object, if what it is made of fits together; see `validate` of its class."""
    if hasattr(made, "validate"):
        made.validate()
    return made


def _dtype(name: str, kinds: str) -> np.dtype:
    dtype = np.dtype(name)
    if dtype.kind not in kinds:
        raise ModelFileError(f"the file has the dtype {name!r} where it cannot be")
    return dtype


def _guard(what: str, make: Callable[[], Part]) -> Part:
    """What is made, or a ModelFileError."""
    try:
        return make()
    except (ModelFileError, torch.OutOfMemoryError, RecursionError):
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RuntimeError) as error:
        raise ModelFileError(f"{what} in the file cannot be made: {type(error).__name__}, {error}") from error
