"""An estimator as data: a list of objects that refer to each other, and arrays."""

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from hck.persistence.arrays import DTYPES, JSON, NAMES, Node, pack
from hck.persistence.classes import NAMES as CLASSES
from hck.persistence.classes import RECIPES, REFUSED, Part
from hck.points import as_tensor


class Encoder:
    """Turns objects into what JSON and safetensors can hold.

    Numbers, text and lists stay what they are. All else is a dict that says in "is" what it stands for.
    `objects` have a "class" and "parts", which refer to objects before them by their numbers; what is a part
    of several is there once. `arrays` are named by the place where they are first found. `notes` say what is
    not kept.
    """

    def __init__(self) -> None:
        self.objects: list[Node] = []
        self.arrays: dict[str, Tensor] = {}
        self.notes: list[str] = []
        self._numbers: dict[int, tuple[int, Any]] = {}  # by id; the object is kept, so that the id stays its
        self._names: dict[tuple[Any, ...], str] = {}

    def value(self, x: Part, path: str = "") -> JSON:
        """Anything as JSON; `path` says where it is found."""
        if x is None or isinstance(x, bool):
            return x
        if isinstance(x, str):
            return str(x)
        if isinstance(x, int):
            return int(x)
        if isinstance(x, float):
            return float(x) if math.isfinite(x) else {"is": "number", "value": str(float(x))}
        if isinstance(x, np.number | np.bool_) and not isinstance(x.item(), np.generic):
            return self.value(x.item(), path)
        if type(x) in (list, tuple):
            items = [self.value(item, f"{path}[{i}]") for i, item in enumerate(x)]
            return items if isinstance(x, list) else {"is": "tuple", "items": items}
        if type(x) is dict:
            pairs = [[self.value(key, path), self.value(item, f"{path}[{key!r}]")] for key, item in x.items()]
            return {"is": "dict", "items": pairs}
        if isinstance(x, np.random.RandomState):
            self.notes.append(f"{path} is a RandomState, which is not saved: None takes its place")
            return None
        if isinstance(x, torch.dtype) and x in NAMES:
            return {"is": "dtype", "name": NAMES[x]}
        if isinstance(x, torch.device):
            return {"is": "device", "name": str(x)}
        if isinstance(x, Tensor):
            return self._tensor("tensor", x, path)
        if type(x) is np.ndarray:
            return self._array(x, path)
        if sp.issparse(x):
            return self._sparse(sp.csr_matrix(x), path)
        if type(x) in RECIPES:
            return {"is": "object", "number": self._object(x, path)}
        raise refusal(x, path)

    def _object(self, x: Part, path: str) -> int:
        if id(x) not in self._numbers:
            parts = {
                name: self.value(part, f"{path}.{name}" if path else name)
                for name, part in RECIPES[type(x)].take(x).items()
            }
            self.objects.append({"class": CLASSES[type(x)], "parts": parts})
            self._numbers[id(x)] = len(self.objects) - 1, x
        return self._numbers[id(x)][0]

    def _tensor(self, kind: str, x: Tensor, path: str) -> Node:
        if x.layout != torch.strided or x.dtype not in NAMES:
            raise refusal(x, path)
        packed, layout = pack(x.detach())
        name = self._names.setdefault((x.data_ptr(), x.shape, x.stride(), x.dtype, x.device), path)
        self.arrays.setdefault(name, packed)
        return {"is": kind, "name": name, "dtype": NAMES[x.dtype], "shape": list(packed.shape), **layout}

    def _array(self, x: np.ndarray, path: str) -> Node:
        if x.dtype.kind in "OU":
            return self._values(x, path)
        native = x.astype(x.dtype.newbyteorder("="), copy=False)
        if native.dtype.kind in "mM":  # times: whole numbers of some unit
            return {**self._array(native.view(np.int64), path), "times": native.dtype.str}
        if native.dtype.name not in DTYPES:
            raise refusal(x, path)
        if any(step < 0 for step in native.strides):
            native = np.ascontiguousarray(native)
        return self._tensor("array", as_tensor(native), path)

    def _values(self, x: np.ndarray, path: str) -> Node:
        """An array of text, or of things that are text, numbers or missing."""
        items = [self.value(item, f"{path}[{i}]") for i, item in enumerate(x.ravel().tolist())]
        dtype = x.dtype.str if x.dtype.kind == "U" else x.dtype.kind
        return {"is": "values", "items": items, "dtype": dtype, "shape": list(x.shape)}

    def _sparse(self, x: sp.csr_matrix, path: str) -> Node:
        parts = {name: getattr(x, name) for name in ("data", "indices", "indptr")}
        nodes = {name: self._array(part, f"{path}.{name}") for name, part in parts.items()}
        return {"is": "sparse", **nodes, "shape": [int(size) for size in x.shape]}


def refusal(x: Part, path: str) -> TypeError:
    """The error of what cannot be saved."""
    if type(x) in REFUSED:
        what = REFUSED[type(x)]
    elif callable(x) and hasattr(x, "__name__"):
        what = f"the function {x.__name__!r}"
    elif isinstance(x, Tensor | np.ndarray):
        what = f"an array of {x.dtype}"
    else:
        what = f"a {type(x).__name__}, which is none of hck's own"
    return TypeError(f"the estimator cannot be saved: its {path} is {what}. Saved models hold data, no code")
