"""A model is changed as a whole or not at all, and owns what it is made of.

`fit` works on a stand-in: if it fails or is interrupted, the estimator is as it was, scikit-learn's own
attributes included. So do updates of a fitted model, one after another. Other methods work on the attributes
of one moment, so that threads that predict while another fits see the old model or the new one, never some of
each. All go by our own settings of torch and NumPy, not by those of the surrounding program.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from functools import wraps
from numbers import Integral
from threading import RLock
from types import FunctionType
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator
from torch import Tensor

from hck.backend.plain import plainly
from hck.backend.progress import asked
from hck.kernels import Kernel
from hck.partition import Landmarks, Tree

E = TypeVar("E", bound=BaseEstimator)
Method: TypeAlias = Callable[..., Any]

FITS = ("fit", "fit_transform")
UPDATES = ("partial_fit", "forget", "update")
READS = (
    *(
        "predict",
        "predict_latent",
        "predict_proba",
        "decision_function",
        "transform",
        "inverse_transform",
        "score",
    ),
    *("loo_predict", "loo_decision_function", "loo_metrics", "sample_prior", "sample_posterior"),
    *("predict_gradient", "predict_set", "sample_y", "draw_functions"),
    *("log_marginal_likelihood", "standard_errors", "plot_history", "save", "to_local", "__getstate__"),
)


def keep_whole(cls: type) -> None:
    """Wrap properties of a class, and its own methods that change a fitted model or read it."""
    for names, wrap in ((FITS, _all_or_nothing), (UPDATES, _one_by_one), (READS, _of_one_moment)):
        for name in set(names) & set(vars(cls)):
            if isinstance(vars(cls)[name], FunctionType):
                setattr(cls, name, wrap(vars(cls)[name]))
    for name, value in list(vars(cls).items()):
        if isinstance(value, property) and value.fget is not None:
            setattr(cls, name, value.getter(_of_one_moment(value.fget)))


def _all_or_nothing(fit: Method) -> Method:
    """Run a method on a stand-in, which hands over all its attributes at once when it has succeeded."""

    @wraps(fit)
    def whole(self: BaseEstimator, *args: Any, **kwargs: Any) -> Any:
        given = {name: vars(self)[name] for name in _parameters(self) if name in vars(self)}
        trial = _stand_in(self, {**vars(self), **{name: _own(value) for name, value in given.items()}})
        with plainly(), _progress_of(self):
            result = fit(trial, *args, **kwargs)
        parameters = {name: vars(self)[name] for name in given}  # others may have set them meanwhile
        self.__dict__ = {**vars(trial), **parameters}
        return self if result is trial else result

    return whole


def _one_by_one(update: Method) -> Method:
    """The same for a method that goes on from the fitted model, of which one at a time may run.

    It neither changes parameters nor anything that an attribute holds, but sets attributes anew.
    """

    @wraps(update)
    def whole(self: BaseEstimator, *args: Any, **kwargs: Any) -> Any:
        with one_at_a_time(self), changing(self) as trial, plainly(), _progress_of(self):
            result = update(trial, *args, **kwargs)
        return self if result is trial else result

    return whole


@contextmanager
def changing(estimator: E) -> Iterator[E]:
    """What to change in place of an estimator, which gets all its attributes unless there is an error."""
    trial = _stand_in(estimator, {**vars(estimator)})
    yield trial
    parameters = {name: vars(estimator)[name] for name in _parameters(estimator) if name in vars(estimator)}
    estimator.__dict__ = {**vars(trial), **parameters}  # which others may have set meanwhile


def at_this_moment(estimator: E) -> E:
    """An estimator as it is now, whatever becomes of it."""
    return _stand_in(estimator, vars(estimator))


_locks: "WeakKeyDictionary[object, RLock]" = WeakKeyDictionary()
_locking = RLock()


def one_at_a_time(updated: object) -> "RLock":
    """What an update of something holds."""
    with _locking:
        return _locks.setdefault(updated, RLock())


def _of_one_moment(method: Method) -> Method:
    """Run a method on the attributes that there are now: a fit does not change them but makes others."""

    @wraps(method)
    def whole(self: BaseEstimator, *args: Any, **kwargs: Any) -> Any:
        with plainly(), _progress_of(self):
            return method(at_this_moment(self), *args, **kwargs)

    return whole


def _progress_of(estimator: BaseEstimator) -> AbstractContextManager[None]:
    verbose = getattr(estimator, "verbose", False)  # which nobody has looked at yet
    return asked(isinstance(verbose, Integral | np.bool_) and bool(verbose))


_names: dict[type, tuple[str, ...]] = {}


def _parameters(estimator: BaseEstimator) -> tuple[str, ...]:
    """The names of its parameters, which it takes scikit-learn some time to find."""
    kind = type(estimator)
    if kind not in _names:
        _names[kind] = tuple(kind._get_param_names())
    return _names[kind]


def _stand_in(estimator: E, attributes: dict[str, Any]) -> E:
    made = object.__new__(type(estimator))
    made.__dict__ = attributes
    return made


def _own(parameter: object) -> Any:
    """A parameter that the caller cannot change any more: arrays are copied, and what is made of them.

    Tensors are without their gradients. What is used up in `fit`, like random states, stays shared.
    """
    if isinstance(parameter, Tensor):
        return parameter.detach().clone()
    if isinstance(parameter, list):
        return [_own(each) for each in parameter]
    if isinstance(parameter, dict):
        return {name: _own(value) for name, value in parameter.items()}
    if isinstance(parameter, Kernel):
        return parameter.with_parameters(_own(parameter.parameters()))
    return deepcopy(parameter) if isinstance(parameter, np.ndarray | Tree | Landmarks) else parameter
