"""Names of data sets, and what is known of each."""

import pytest

from hck.datasets import is_at_hand, load, names, records
from hck.datasets._registry import REGISTRY


def test_names():
    paper = "cadata YearPredictionMSD ijcnn1 covtype.binary SUSY mnist acoustic covtype"
    more = "elevators pol flights3m a9a reuters kin8nm ailerons bank32nh puma32H house8L mv fried cpu_act"
    assert names() == (*paper.split(), *more.split(), "letter", "pendigits", "diamonds", "adult")


def test_the_registry_is_complete():
    for name, entry in REGISTRY.items():
        assert entry.task in ("regression", "binary", "multiclass")
        assert entry.home.startswith("https://")
        assert entry.citation
        assert entry.n == entry.n_train + entry.n_test
        assert entry.names is None or len(entry.names) == entry.d, name
        assert bool(entry.files) + (entry.openml is not None) + bool(entry.arrays) == 1
        if len(entry.files) < 2:
            assert entry.n_test == -(-entry.n // 5)


@pytest.mark.parametrize("name", ["iris", "CADATA", "synthetic cadata"])
def test_unknown_names(name):
    for call in (load, records, is_at_hand):
        with pytest.raises(ValueError, match=f"no data set '{name}'; there are cadata, YearPredictionMSD"):
            call(name)


@pytest.mark.parametrize("split", [-1, 0.5, None])
def test_bad_splits(split):
    with pytest.raises((ValueError, TypeError), match=r"split must be a seed|integer"):
        load("cadata", split=split)
