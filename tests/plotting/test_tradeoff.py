"""Error against rank, time and memory."""

import numpy as np
import pandas as pd
import pytest

from hck.plotting import plot_tradeoff

RUNS = pd.DataFrame(
    {
        "method": ["tree"] * 4 + ["nystrom"] * 2 + ["none"],
        "rank": [64, 16, 16, 16, 16, 64, 16],
        "seconds": [8.0, 1.0, 1.2, 0.9, 0.5, 3.0, 1.0],
        "bytes": [4e8, 1e8, 1e8, 1e8, 1e7, 4e7, 1e7],
        "error": [0.01, 0.1, 0.3, 0.2, 0.4, 0.2, np.nan],
    }
)


def line(ax, name):
    (found,) = [each for each in ax.lines if each.get_label() == name]
    return found.get_xydata().tolist()


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_a_line_for_each_method_through_medians():
    ax = plot_tradeoff(RUNS)
    assert labels(ax) == ["tree", "nystrom"]  # the third has no error
    assert line(ax, "tree") == [[16, 0.2], [64, 0.01]]
    assert line(ax, "nystrom") == [[16, 0.4], [64, 0.2]]
    assert len(ax.collections) == 1  # the runs of the only method that has several
    assert len(ax.collections[0].get_offsets()) == 4
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rank r", "error")
    ax.figure.canvas.draw()
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["16", "64"]
    assert ax.get_legend().get_title().get_text() == "method"


def test_runs_of_one_rank_are_one_point_in_time_too():
    assert line(plot_tradeoff(RUNS, "seconds"), "tree") == [[1.0, 0.2], [8.0, 0.01]]
    alone = RUNS.drop(columns="rank")
    assert len(line(plot_tradeoff(alone, "seconds"), "tree")) == 4


def test_memory_has_units():
    ax = plot_tradeoff(RUNS, "bytes")
    ax.figure.canvas.draw()
    assert ax.get_xlabel() == "memory"
    assert "100 MB" in [tick.get_text() for tick in ax.get_xticklabels()]


def test_other_tables_and_columns():
    rows = RUNS.to_dict("records")
    for same in (rows, RUNS.to_dict("list")):
        assert line(plot_tradeoff(same), "tree") == [[16, 0.2], [64, 0.01]]
    ax = plot_tradeoff({"a": [1, 2], "b": [-1, 1]}, "a", "b", by=None)
    assert ax.get_legend() is None
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")


def test_many_methods_can_be_told_apart():
    ax = plot_tradeoff({"rank": [8] * 12, "error": range(1, 13), "method": [f"m{k}" for k in range(12)]})
    looks = {(each.get_color(), each.get_marker(), each.get_linestyle()) for each in ax.lines}
    assert len(looks) == len(labels(ax)) == 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": "speed"}, "no column 'speed'; it has: method, rank"),
        ({"by": "name"}, "no column 'name'"),
        ({"x": "method"}, "must be numbers"),
        ({"table": RUNS.assign(error=np.nan)}, "no row"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        plot_tradeoff(**{"table": RUNS} | change)
