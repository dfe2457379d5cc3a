"""The classes that saved models are made of, and how each is taken apart and put together.

Loading makes objects of these classes only. A new dataclass is one more name in `_DATACLASSES`, another class
one more line in `_BY_ARGUMENTS`. Estimators, which stand above, say what is saved of them (`saved`).

What is loaded is checked: parts have the types that a class declares, and its `validate`, if it has one, says
what must hold between them, by a ValueError. Parts are checked before the objects that they are parts of.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from sklearn.base import BaseEstimator

from hck.approximations import Exact, Fourier, Iterative, Nystrom, Tapered, TreeKernel
from hck.approximations.exact import ExactPredictor
from hck.approximations.features import FeaturePredictor
from hck.approximations.preconditioners import Preconditioners
from hck.approximations.sparse_cholesky import Elimination
from hck.approximations.taper import Pattern, Taper
from hck.approximations.tapered import TaperedPredictor
from hck.backend.blocks import Blocks
from hck.backend.checks import require
from hck.backend.memory import resolve_budget
from hck.branches import Message, Piece, Plan, Trunk
from hck.conformal import LeftOutErrors
from hck.hierarchy import Blueprint, Forest, TreePredictor
from hck.hierarchy.blueprint import check_landmarks, lay_out
from hck.kernels import CallableKernel, Kernel, Precomputed, Product, Scaled, Sum, kernel_classes
from hck.losses import Absolute, Gamma, Huber, Logistic, Poisson, Quantile, Squared, SquaredHinge, Tweedie
from hck.partition import Landmarks, Tree, cutter_classes
from hck.partition.centres import CentreRule
from hck.partition.hyperplane import HyperplaneRule
from hck.partition.kernel_cut import KernelRule
from hck.partition.rules import FlatRule, FunctionRule, ScaledRule
from hck.persistence.types import Hints, declared
from hck.points import DensePoints, ObjectPoints, SparsePoints
from hck.preparation.coding import Centred, OneAgainstAll
from hck.preparation.columns import Columns
from hck.preparation.dates import Dates
from hck.preparation.levels import Levels, Ordered, Statistics
from hck.preparation.repeats import Repeats
from hck.preparation.scaling import Scaling
from hck.preparation.trend import Trend
from hck.preparation.units import Units
from hck.process import Mixture, Process, Spread
from hck.selection import Candidate, Selection, Space
from hck.selection.loss import Calibration
from hck.selection.space import Parameter
from hck.settings import Settings

Part: TypeAlias = Any  # whatever models are made of
Parts: TypeAlias = dict[str, Part]
DeviceOf = Callable[[Any], torch.device]
Estimator = TypeVar("Estimator", bound=BaseEstimator)


@dataclass(frozen=True)
class Place:
    """Where a model is loaded to, and what the parameter `device` of estimators becomes, if it changes."""

    device: torch.device
    parameter: str | None = None


@dataclass(frozen=True)
class Recipe:
    """How objects of a class are taken apart and put together, and which parts these have.

    Parts with a default are optional, as files of an older version lack them.
    """

    take: Callable[[Any], Parts]
    make: Callable[[Parts, Place], Any]
    required: frozenset[str]
    optional: frozenset[str] | None = frozenset()  # None: any
    on_host: frozenset[str] = frozenset()  # parts that stay in the CPU's memory whatever the device
    hints: Hints = field(default_factory=dict)  # the types of parts


def _by_arguments(cls: type, *names: str, optional: tuple[str, ...] = ()) -> Recipe:
    """Parts are attributes, and arguments of the same names."""
    in_files = {name: _OTHER_PARTS.get((cls, name), name) for name in (*names, *optional)}
    arguments = {part: name for name, part in in_files.items()}
    return Recipe(
        lambda whole: {part: getattr(whole, name) for name, part in in_files.items()},
        lambda parts, place: cls(**{arguments[k]: v for k, v in _within_memory(parts, place).items()}),
        frozenset(in_files[name] for name in names),
        frozenset(in_files[name] for name in optional),
        hints={part: declared(cls)[name] for name, part in in_files.items() if name in declared(cls)},
    )


def _of_dataclass(cls: type) -> Recipe:
    """The fields of a dataclass, without caches."""
    known = [each for each in fields(cls) if each.name not in _CACHES]
    needed = [each.name for each in known if each.default is MISSING and each.default_factory is MISSING]
    return _by_arguments(cls, *needed, optional=tuple(f.name for f in known if f.name not in needed))


def _of_kernel(cls: type[Kernel]) -> Recipe:
    """Its arguments; files of format 1 first had no metric."""
    added = tuple(name for name in cls.arguments if name == "metric")
    return _by_arguments(cls, *(name for name in cls.arguments if name not in added), optional=added)


def _within_memory(parts: Parts, place: Place) -> Parts:
    """A number of bytes that was free on another machine may be too large for this one."""
    given = {name: parts[name] for name in ("budget", "memory_budget") if name in parts}
    sizes = {name: size for name, size in given.items() if isinstance(size, int | float)}
    if not sizes:
        return parts
    most = resolve_budget(None, place.device)
    return {**parts, **{name: min(max(size, 1), most) for name, size in sizes.items()}}


# Blueprints: the layout follows from the tree --------------------------------------------------------


def _take_blueprint(whole: Blueprint) -> Parts:
    names = ("kernel", "points", "landmarks", "jitter", "budget", "verbose")
    return {"tree": whole.layout.tree, **{name: getattr(whole, name) for name in names}}


def _make_blueprint(parts: Parts, place: Place) -> Blueprint:
    parts = _within_memory(parts, place)
    tree, points = parts.pop("tree"), parts["points"]
    check_landmarks(parts["landmarks"], tree, points)
    return Blueprint(layout=lay_out(tree, points, parts["landmarks"].rank, parts["budget"]), **parts)


# The Gaussian process of a tree, as format 1 first had it: in the tree's order, with a row of zeros -----


@dataclass
class Posterior:
    """A name for `_make_posterior`; files that are written now have a `Process` in its place."""


def _make_posterior(parts: Parts, place: Place) -> Process:
    blueprint = parts.pop("blueprint")
    noise, y = blueprint.layout.unpad(parts["noise"][:, None])[:, 0], blueprint.layout.unpad(parts["y"])
    trend = parts["trend"] if y.shape[1] > 1 else None
    return Process(TreeKernel(blueprint), **{**parts, "noise": noise, "y": y, "trend": trend})


# Preconditioners, which format 1 first called guides, with their settings one by one -------------------


def _make_preconditioners(parts: Parts, place: Place) -> Preconditioners:
    if "settings" not in parts:
        kind, rank, options = (parts.pop(name) for name in ("kind", "rank", "options"))
        parts["settings"] = Settings(rank, approximation=kind, **options)
    return Preconditioners(**parts)


def _make_exact(parts: Parts, place: Place) -> Exact:
    if "guides" in parts:
        parts["preconditioners"] = parts.pop("guides")
    return Exact(**_within_memory(parts, place))


# Plans, whose settings format 1 first had one by one --------------------------------------------------


def _make_plan(parts: Parts, place: Place) -> Plan:
    if "settings" not in parts:
        trunk, options = parts["trunks"][0], {name: parts.pop(name) for name in _OPTIONS if name in parts}
        parts["settings"] = Settings(trunk.rank, jitter=trunk.jitter, **_within_memory(options, place))
    return Plan(**parts)


# Categories, which format 1 first had alone, without missing numbers ----------------------------------


@dataclass
class Categories:
    """A name for `_make_categories`; files that are written now have `Columns` in its place."""


def _make_categories(parts: Parts, place: Place) -> Columns:
    values, positions, names = parts["values"], parts["positions"], parts["names"]
    require(len(values) == len(positions) == len(names) > 0, "names and values differ")
    codings = [Levels(column) for column in values]
    for coding in codings:
        coding.validate()
    fills = [np.zeros(coding.width) for coding in codings]
    return Columns(positions, codings, fills, None, [], [])


# Estimators: parameters and what `fit` has set -------------------------------------------------------

ESTIMATORS: dict[type, DeviceOf] = {}  # and where a fitted one computes

# Beside parameters: kernels as plain numbers, which `fit` keeps in the CPU's memory.
_ON_HOST = ("kernel_", "kernels_", "selection_", "_space")
_FITTED = ("trees_", "_objects", "_categories")  # of all
_IN_FILES = {"_columns_in": "_categories"}  # names of parts, which were categories alone at first


def saved(*fitted: str, device: DeviceOf) -> Callable[[type[Estimator]], type[Estimator]]:
    """A decorator of estimators that can be saved.

    A fitted one has the attributes `fitted`, beside those that all have; others are saved if they are there.
    `device` says where it computes.
    """

    def register(cls: type[Estimator]) -> type[Estimator]:
        RECIPES[cls], ESTIMATORS[cls] = _of_estimator(cls, *fitted), device
        NAMES[cls], BY_NAME[cls.__name__] = cls.__name__, cls
        return cls

    return register


def _of_estimator(cls: type[Estimator], *fitted: str) -> Recipe:
    names = frozenset(cls._get_param_names())
    attributes = {part: name for name, part in _IN_FILES.items()}

    def take(whole: Estimator) -> Parts:
        parts = {**whole.get_params(deep=False), **vars(whole)}  # parameters first
        parts = {_IN_FILES.get(name, name): value for name, value in parts.items()}
        return {**parts, "device": parts["device"] and str(parts["device"])}

    def make(parts: Parts, place: Place) -> Estimator:
        given = {name: value for name, value in parts.items() if name in names}
        if place.parameter is not None:
            given["device"] = place.parameter
        whole = cls(**given)
        for name in (name for name in parts if name not in names):
            if not name.isidentifier() or hasattr(cls, name) or name in _IN_FILES:
                raise ValueError(f"{name!r} is no name of an attribute")
            setattr(whole, attributes.get(name, name), parts[name])
        whole._validate_params()
        whole._validate_loaded()
        return whole

    known = declared(cls)  # type: ignore[arg-type]
    hints = {_IN_FILES.get(name, name): hint for name, hint in known.items() if name not in names}
    return Recipe(take, make, frozenset((*_FITTED, *fitted)), None, names.union(_ON_HOST), hints)


# The table -------------------------------------------------------------------------------------------

_CACHES = ("_kept",)
_OPTIONS = ("leaf_size", "partition", "landmarks", "memory_budget")  # of a plan, in files of format 1
# Names that attributes have in these.
_OTHER_PARTS: dict[tuple[type, str], str] = {(Piece, "predictor"): "extension"}

_DATACLASSES: tuple[type, ...] = (
    *(TreePredictor, Forest, Mixture, Process, Spread),
    *(ExactPredictor, FeaturePredictor, TaperedPredictor),
    *(Fourier, Nystrom, Pattern, Taper, Tapered),
    *(Blocks, Landmarks, Tree),
    *(Centred, Message, OneAgainstAll, Piece, Trunk),
    *(Absolute, Gamma, Huber, Logistic, Poisson, Quantile, Squared, SquaredHinge, Tweedie),
    *(CentreRule, FlatRule, HyperplaneRule, KernelRule, ScaledRule),
    *(Columns, Dates, Levels, Ordered, Repeats, Statistics),
    *(Calibration, Candidate, Iterative, LeftOutErrors, Parameter, Scaling, Selection, Settings, Space),
    *(Trend, Units),
)

_KERNELS: tuple[type[Kernel], ...] = (*kernel_classes(), Product, Scaled, Sum)

_BY_ARGUMENTS: dict[type, tuple[str, ...]] = {
    DensePoints: ("x",),
    SparsePoints: ("x", "dtype", "device"),
    **{cls: cls.arguments for cls in cutter_classes()},
    Elimination: ("place", "start", "column"),
    TreeKernel: ("blueprint",),
}

_EXACT = _of_dataclass(Exact)

RECIPES: dict[type, Recipe] = {
    **{cls: _of_dataclass(cls) for cls in _DATACLASSES},
    **{cls: _by_arguments(cls, *names) for cls, names in _BY_ARGUMENTS.items()},
    **{cls: _of_kernel(cls) for cls in _KERNELS},
    Blueprint: Recipe(
        _take_blueprint,
        _make_blueprint,
        frozenset({"tree", "kernel", "points", "landmarks", "jitter", "budget"}),
        frozenset({"verbose"}),
        hints={**declared(Blueprint), "tree": Tree},
    ),
    Posterior: Recipe(
        vars,
        _make_posterior,
        frozenset({"blueprint", *(f.name for f in fields(Process) if f.name not in ("source", "outputs"))}),
        hints={**declared(Process), "blueprint": Blueprint},
    ),
    Exact: replace(_EXACT, make=_make_exact, optional=frozenset({"guides", *(_EXACT.optional or ())})),
    Preconditioners: Recipe(
        vars,
        _make_preconditioners,
        frozenset({"count"}),
        frozenset({"settings", "seed", "kind", "rank", "options"}),
        hints={**declared(Preconditioners), "rank": int, "kind": str, "options": dict},
    ),
    Plan: Recipe(
        vars,
        _make_plan,
        frozenset({"kernel", "noise", "scaling", "trunks", "seeds", "dtype", "device"}),
        frozenset({"settings", "coding", "every", "process", *_OPTIONS}),
        hints=declared(Plan),
    ),
    Categories: Recipe(
        vars,
        _make_categories,
        frozenset({"names", "positions", "values"}),
        hints={"names": list, "positions": list[int], "values": list[list[str]]},
    ),
}

# That classes have in files of format 1.
_OTHER_NAMES = {TreePredictor: "Extension", Parameter: "_Block", Preconditioners: "Guides"}
NAMES: dict[type, str] = {cls: cls.__name__ for cls in RECIPES} | _OTHER_NAMES
BY_NAME: dict[str, type] = {name: cls for cls, name in NAMES.items()}

# What is refused, in words.
REFUSED: dict[type, str] = {
    CallableKernel: "a kernel given by a function",
    Precomputed: "a kernel given by its values",
    FunctionRule: "a rule given by a function (`route` of the tree)",
    ObjectPoints: "a set of objects",
}
