"""Experiments: the machinery on a made-up one, and each of the real ones in its quick form."""

import pandas as pd
import pytest

from hck.datasets import names
from hck.experiments import EXPERIMENTS, Experiment, Options, _models
from hck.experiments._models import halvings

pytestmark = pytest.mark.usefixtures("one_thread")


def made_up(measured, fail_at=None):
    def measure(point, options):
        if point["a"] == fail_at:
            raise KeyboardInterrupt
        measured.append(point["a"])
        return [{"value": point["a"] ** 2, "part": part} for part in ("x", "y")]

    def draw(table):
        import matplotlib.pyplot as plt

        figure, ax = plt.subplots()
        ax.plot(table["a"], table["value"])
        return figure

    plan = [{"a": a, "b": "one, two"} for a in range(5)]
    return Experiment("made", "a parabola", lambda options: plan, measure, draw, ("value", "part"))


def test_a_stopped_run_goes_on(tmp_path):
    measured, options = [], Options(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        made_up(measured, fail_at=3).run(options, show=False)
    assert measured == [0, 1, 2]
    path = made_up(measured).run(options, show=False)
    assert measured == [0, 1, 2, 3, 4]
    table = pd.read_csv(tmp_path / "made.csv")
    assert table["a"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert table["value"].tolist() == [0, 0, 1, 1, 4, 4, 9, 9, 16, 16]
    assert set(table["b"]) == {"one, two"}
    assert path.read_bytes()[1:4] == b"PNG"
    made_up(measured).run(options, show=True)  # nothing is left to do
    assert len(measured) == 5
    assert sorted(each.name for each in tmp_path.iterdir()) == ["made.csv", "made.png"]


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    options, measured = Options(tmp_path), []
    with pytest.raises(KeyboardInterrupt):
        made_up(measured, fail_at=2).run(options, show=False)
    before = (tmp_path / "made.csv").read_text()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        made_up(measured).run(options, show=False)
    assert (tmp_path / "made.csv").read_text() == before


def test_ranks_as_in_the_paper():
    assert halvings(16512, 30, 600) == [32, 64, 129, 258, 516]


def test_every_experiment_has_a_title_and_known_data():
    assert list(EXPERIMENTS)[:3] == ["fig3", "fig4", "table2"]
    for each in EXPERIMENTS.values():
        assert each.title
    with pytest.raises(ValueError, match="none of its data sets is at hand"):
        Experiment("x", "", lambda options: [], None, None).run(Options(None))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick(name, tmp_path, monkeypatch):
    """With synthetic data in the place of real ones, so that it runs anywhere."""
    from hck.datasets import synthetic

    _models._cache.clear()
    monkeypatch.setattr(_models, "load", lambda name, **_: synthetic(name, n=700))
    monkeypatch.setattr(_models, "is_at_hand", lambda name: name in ("cadata", "ijcnn1", "covtype.binary"))
    chosen = {"fig5": ("cadata",), "laplace": ("ijcnn1",), "imq": ("cadata",), "forests": ("ijcnn1",)}
    options = Options(tmp_path, quick=True, data=chosen.get(name, ()))
    path = EXPERIMENTS[name].run(options, show=False)
    table = pd.read_csv(path.with_suffix(".csv"))
    assert len(table) >= 4
    assert path.stat().st_size > 10_000
    column = {"fig8": "difference", "table2": "training_seconds"}.get(name, "error")
    assert (table[column] > 0).all()
    _models._cache.clear()


def test_unknown_data(tmp_path):
    with pytest.raises(ValueError, match="iris is not one of"):
        EXPERIMENTS["fig5"].run(Options(tmp_path, data=("iris",)), show=False)
    assert "cadata" in names()
