"""Whether a value from a file is of the type that a class has declared for its part."""

import types
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from typing import Any, ClassVar, TypeAlias, Union, get_args, get_origin, get_type_hints

from hck.approximations.exact import ExactPredictor
from hck.approximations.features import FeaturePredictor
from hck.approximations.tapered import TaperedPredictor
from hck.hierarchy import TreePredictor
from hck.kernels.stationary import Stationary
from hck.partition import Tree

Hint: TypeAlias = Any  # a type as annotations have it
Hints: TypeAlias = dict[str, Hint]

_PREDICTORS = (TreePredictor, ExactPredictor, FeaturePredictor, TaperedPredictor)
_LATE = {"Tree": Tree}  # names that modules know while types are checked only


@cache
def declared(cls: type) -> Hints:
    """The types of parts: fields of a dataclass, or arguments of another class, and attributes."""
    if issubclass(cls, Stationary):
        return {}  # which checks what it is given, by users too
    hints = get_type_hints(cls, localns=_LATE)
    if not is_dataclass(cls):
        hints |= get_type_hints(cls.__init__, localns=_LATE)
    return {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}


def fits(value: object, hint: Hint) -> bool:
    """Whether a value is of a type; whole numbers are floats too, but truth values are no numbers."""
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in inside)
    if origin is None:
        return _is(value, hint)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(inside) == 2 and inside[1] is Ellipsis:
            return all(fits(each, inside[0]) for each in value)
        return len(value) == len(inside) and all(map(fits, value, inside))
    if origin in (list, Sequence):
        kinds = list if origin is list else (list, tuple)
        return isinstance(value, kinds) and all(fits(each, inside[0]) for each in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(
            fits(key, inside[0]) and fits(each, inside[1]) for key, each in value.items()
        )
    return False  # functions, above all


def _is(value: object, kind: type) -> bool:
    if kind in (int, float):
        if isinstance(value, int):
            return not isinstance(value, bool) and abs(value) < 2**63
        return kind is float and isinstance(value, float)
    if getattr(kind, "_is_protocol", False):
        return isinstance(value, _PREDICTORS)
    return isinstance(value, kind)
