"""Commands in an empty folder, and tables for them."""

import sys

import numpy as np
import pandas as pd
import pytest

from hck.cli import main


@pytest.fixture
def hck(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder: exit code, what it printed, and what it said."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["hck", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return left.value.code or 0, printed.out, printed.err

    return run


def make_table(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(size=(n, 2)), columns=["a", "b"])
    frame["town"] = rng.choice(["north", "south"], n)
    frame["price"] = np.sin(5 * frame.a) + frame.b + 0.5 * (frame.town == "north")
    frame["price"] += 0.05 * rng.normal(size=n)
    frame["kind"] = np.where(frame.price > 1, "high", "low")
    return frame


@pytest.fixture
def files(tmp_path):
    for name, n, seed in (("train", 400, 0), ("test", 200, 1)):
        make_table(n, seed).drop(columns="kind").to_csv(tmp_path / f"{name}.csv", index=False)
        make_table(n, seed).drop(columns="price").to_csv(tmp_path / f"{name}_kinds.csv", index=False)
    make_table(100, 2)[["town", "b", "a"]].to_csv(tmp_path / "new.csv", index=False)
    return tmp_path


@pytest.fixture
def table():
    """n records: numbers, words, a price and whether it is high."""
    return make_table
