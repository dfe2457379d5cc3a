"""Estimators on disk and on a cluster have the parameters of plain ones, and some more."""

from inspect import getdoc, signature

import pytest
from sklearn.base import clone

import hck
from hck.outofcore import DiskHCKClassifier, DiskHCKRegressor


def more_than(cls, plain):
    """The parameters that only the first has, if all else is the same, in the same order."""
    mine, others = (
        [(name, each.default, each.kind) for name, each in signature(which).parameters.items()]
        for which in (cls, plain)
    )
    assert mine[: len(others)] == others
    assert all(f"\n{name} : " in getdoc(cls) for name, _, _ in mine)
    assert type(clone(cls(rank=7))) is cls
    assert clone(cls(rank=7)).rank == 7
    return [name for name, _, _ in mine[len(others) :]]


def test_on_disk():
    assert more_than(DiskHCKRegressor, hck.HCKRegressor) == ["folder"]
    assert more_than(DiskHCKClassifier, hck.HCKClassifier) == ["folder"]


def test_on_a_cluster():
    pytest.importorskip("distributed")
    import hck.dask

    for name in ("Regressor", "Classifier", "GaussianProcessRegressor"):
        cls, plain = getattr(hck.dask, f"DaskHCK{name}"), getattr(hck, f"HCK{name}")
        assert more_than(cls, plain) == ["client", "n_branches"]


def test_what_packages_show():
    for package in (hck.hierarchy, hck.outofcore, hck.persistence):
        assert set(package.__all__) <= set(dir(package))
        assert all(getattr(package, name) is not None for name in package.__all__)
        with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nothing'"):
            _ = package.nothing
