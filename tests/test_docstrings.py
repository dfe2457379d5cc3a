"""Everything public says what it is, by an example that runs."""

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import hck
from hck.backend.caches import cached_property

MODULES = [
    importlib.import_module(found.name)
    for found in pkgutil.walk_packages(hck.__path__, "hck.")
    if not re.search(r"\._|^hck\.backend\.", found.name)
]


def public():
    """All classes and functions that are in the ``__all__`` of a module, by the first of their names."""
    known = {}
    for module in (hck, *MODULES):
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if callable(thing) and getattr(thing, "__module__", "").startswith("hck"):
                known.setdefault(id(thing), (f"{module.__name__}.{name}", thing))
    return dict(sorted(known.values()))


PUBLIC = public()


def public_methods():
    """What is defined in hck of the methods of public classes."""
    for kind in filter(inspect.isclass, PUBLIC.values()):
        for name, method in inspect.getmembers(kind, inspect.isroutine):
            if isinstance(method, cached_property):  # a routine, by inspect's lights
                continue
            if not name.startswith("_") and getattr(method, "__module__", "").startswith("hck."):
                yield f"{kind.__module__}.{kind.__qualname__}.{name}", method


def section(thing, title):
    """The text of a section of a docstring in numpydoc's form."""
    text = inspect.cleandoc(thing.__doc__ or "")
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)", text, re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


def test_something_is_public():
    assert {"hck.HCKRegressor", "hck.kernels.Gaussian", "hck.partition.make_tree"} <= PUBLIC.keys()


def test_methods_say_what_they_do():
    """Themselves, or by the method that they override."""
    silent = [name for name, method in public_methods() if not inspect.getdoc(method)]
    assert not silent


@pytest.mark.parametrize("name", PUBLIC)
def test_has_an_example(name):
    assert ">>> " in section(PUBLIC[name], "Examples"), f"{name} has no example that runs"


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_runs(name):
    """With all other doctests, which look for it in the module that it is defined in."""
    thing = PUBLIC[name]
    module = importlib.import_module(thing.__module__)
    found = doctest.DocTestFinder().find(module, module.__name__)
    run = {each.name for each in found if each.examples}
    assert f"{thing.__module__}.{thing.__qualname__}" in run


@pytest.mark.parametrize("name", [name for name, thing in PUBLIC.items() if inspect.isfunction(thing)])
def test_parameters_are_named(name):
    """Of functions; those of classes are fields, or are compared elsewhere (`test_signatures`)."""
    lines = [line for line in section(PUBLIC[name], "Parameters").splitlines() if line[:1].strip()]
    said = {word.strip(" *") for line in lines for word in line.partition(" : ")[0].split(",")}
    missing = [each for each in inspect.signature(PUBLIC[name]).parameters if each not in said]
    assert not missing, f"{name} does not say what {', '.join(missing)} is"


def methods():
    """Those of the estimators that are hck's own, `fit` apart: it is part of the class's example."""
    for estimator in (thing for name in hck.__all__ if hasattr(thing := getattr(hck, name), "fit")):
        for name, method in inspect.getmembers(estimator, inspect.isfunction):
            if not name.startswith("_") and name != "fit" and method.__module__.startswith("hck."):
                yield pytest.param(method, id=f"{estimator.__name__}.{name}")


@pytest.mark.parametrize("method", list(methods()))
def test_methods_of_estimators_have_an_example(method):
    assert ">>> " in section(method, "Examples")
