"""Objects made of data again. Nothing that a file says is executed or imported."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from hck.errors import ModelFileError
from hck.persistence.arrays import DTYPES, JSON, Node, unpack
from hck.persistence.classes import BY_NAME, RECIPES, Part, Place

Read = Callable[[str, torch.dtype, list[int]], Tensor]  # name, dtype and shape of what is in a file

_NUMBERS = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}
_CPU = torch.device("cpu")


class Decoder:
    """Makes what an `Encoder` has taken apart: objects, each with its class and its parts."""

    def __init__(self, objects: list[Node], read: Read, place: Place) -> None:
        self.objects, self.read, self.place = objects, read, place
        self._made: dict[tuple[int, torch.device], Any] = {}
        self._open: set[int] = set()
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
            if number in self._open:
                raise ModelFileError(f"object {number} in the file is a part of itself")
            self._open.add(number)
            entry = self.objects[number]
            self._made[at] = self._make(entry["class"], entry["parts"], device)
            self._open.remove(number)
        return self._made[at]

    def _make(self, name: str, parts: Node, device: torch.device) -> Part:
        if name not in BY_NAME:
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
        place = Place(device, self.place.parameter)
        return _guard(f"an object of the class {name!r}", lambda: recipe.make(made, place))

    def _tensor(self, node: Node, device: torch.device) -> Tensor:
        at = node["name"], device
        if at not in self._tensors:
            self._tensors[at] = self.read(node["name"], DTYPES[node["dtype"]], node["shape"]).to(device)
        return unpack(self._tensors[at], node)

    def _array(self, node: Node, device: torch.device) -> np.ndarray:
        array = self._tensor(node, _CPU).numpy()
        return array.view(_dtype(node["times"], "mM")) if "times" in node else array

    def _values(self, node: Node, device: torch.device) -> np.ndarray:
        items = self.value(node["items"], device)
        found = np.empty(len(items), _dtype(node["dtype"], "OU"))
        found[:] = items
        return found.reshape(node["shape"])

    def _sparse(self, node: Node, device: torch.device) -> sp.csr_matrix:
        parts = tuple(self.value(node[name], device) for name in ("data", "indices", "indptr"))
        matrix = sp.csr_matrix(parts, shape=tuple(node["shape"]))
        matrix.check_format(full_check=True)  # or compiled code would read elsewhere
        return matrix


def _dtype(name: str, kinds: str) -> np.dtype:
    dtype = np.dtype(name)
    if dtype.kind not in kinds:
        raise ModelFileError(f"the file has the dtype {name!r} where it cannot be")
    return dtype


def _guard(what: str, make: Callable[[], Part]) -> Part:
    """What is made, or a ModelFileError."""
    try:
        return make()
    except (ModelFileError, torch.OutOfMemoryError):
        raise
    except (TypeError, ValueError, LookupError, AttributeError, RuntimeError) as error:
        raise ModelFileError(f"{what} in the file cannot be made: {type(error).__name__}, {error}") from error
