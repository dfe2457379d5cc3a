"""Experiments: the machinery on a made-up one, and each of the real ones in its quick form."""

import time

import pandas as pd
import pytest

from hck.datasets import names, synthetic
from hck.experiments import EXPERIMENTS, Experiment, Options, _models, performance
from hck.experiments._models import halvings
from hck.experiments._run import band

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


@pytest.fixture
def made_up_data(monkeypatch):
    """Synthetic data in the place of real ones, so that experiments run anywhere."""
    _models._cache.clear()
    monkeypatch.setattr(_models, "load", lambda name, **_: synthetic(name, n=700))
    monkeypatch.setattr(_models, "is_at_hand", lambda name: name in ("cadata", "ijcnn1", "covtype.binary"))
    yield
    _models._cache.clear()


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.usefixtures("made_up_data")
def test_quick(name, tmp_path):
    chosen = {"fig5": ("cadata",), "laplace": ("ijcnn1",), "imq": ("cadata",), "forests": ("ijcnn1",)}
    options = Options(tmp_path, quick=True, data=chosen.get(name, ()))
    path = EXPERIMENTS[name].run(options, show=False)
    table = pd.read_csv(path.with_suffix(".csv"))
    assert len(table) >= 4
    assert path.stat().st_size > 10_000
    column = {"fig8": "difference", "table2": "training_seconds"}.get(name, "error")
    assert (table[column] > 0).all()
    assert set(table["seed"]) >= {0, 1}
    assert set(table.get("device", ["cpu"])) == {"cpu"}


@pytest.mark.usefixtures("made_up_data")
def test_parameters_are_chosen_once(tmp_path, monkeypatch):
    """By the first seed; other seeds and other devices take them from the CSV file."""
    choices = []

    def chosen(data, point, kernel, options):
        choices.append((point["method"], point["rank"], point["seed"]))
        return 0.1 * len(choices), 0.01 * len(choices)

    monkeypatch.setattr(performance, "chosen", chosen)
    options, path = Options(tmp_path, quick=True, data=("cadata",)), tmp_path / "imq-quick.csv"
    EXPERIMENTS["imq"].run(options, show=False)
    assert len(choices) == 6  # of three methods, at two ranks
    assert {seed for *_, seed in choices} == {0}
    table = pd.read_csv(path)
    path.write_text(path.read_text().replace(",cpu,", ",elsewhere,"))
    EXPERIMENTS["imq"].run(options, show=False)
    assert len(choices) == 6
    again = pd.read_csv(path)
    assert again["device"].tolist() == ["elsewhere"] * 12 + ["cpu"] * 12
    measured = ["data", "method", "rank", "seed", "lengthscale", "alpha", "error"]  # all but times
    pd.testing.assert_frame_equal(again[measured][12:].reset_index(drop=True), table[measured])
    errors = table.groupby(["method", "rank"])["error"]
    assert (errors.max() > errors.min()).all()  # seeds matter
    figure = performance.draw(again)
    labels = [ax.get_xlabel() for ax in figure.axes]
    assert labels == ["r", "training time (s), elsewhere", "training time (s), cpu", "numbers per point"]


def test_a_file_with_other_columns_is_refused(tmp_path):
    path = tmp_path / "made.csv"
    path.write_text("a,value,part\n0,0,x\n")
    with pytest.raises(
        ValueError, match=r"made\.csv has the columns a,value,part, but .* a,b,value,part; move"
    ):
        made_up([]).run(Options(tmp_path), show=False)
    assert path.read_text() == "a,value,part\n0,0,x\n"


def test_bands_are_of_means_and_extremes():
    from matplotlib.figure import Figure

    table = pd.DataFrame(
        {"rank": [8, 4, 8, 4], "seconds": [3.0, 1.0, 5.0, 2.0], "error": [1.0, 6.0, 3.0, 2.0]}
    )
    left, right = Figure().subplots(1, 2)
    band(left, table, "error", "rank", label="one")
    band(right, table, "error", "rank", "seconds")
    assert left.lines[0].get_xydata().tolist() == [[4, 4], [8, 2]]
    assert left.collections[0].get_paths()[0].get_extents().get_points().tolist() == [[4, 1], [8, 6]]
    assert right.lines[0].get_xydata().tolist() == [[1.5, 4], [4, 2]]
    assert [each.tolist() for each in right.collections[0].get_segments()] == [
        [[1.5, 2], [1.5, 6]],
        [[4, 1], [4, 3]],
    ]


def test_what_compiles_is_not_timed(monkeypatch):
    """The first fit of a kind, whatever its seed; and waiting is no work of a CPU."""
    monkeypatch.setattr(_models, "_compiled", set())
    fitted = []
    data = synthetic("cadata", n=40)
    for seed, rank in ((0, 4), (1, 4), (0, 8)):
        model = _models.make(data, "hierarchical", rank, lengthscale=1.0, alpha=0.1, random_state=seed)
        monkeypatch.setattr(model, "fit", lambda X, y, key=(seed, rank): fitted.append(key))
        monkeypatch.setattr(model, "predict", lambda X: X[:, 0])
        _models.timed(model, data, "cpu")
    assert fitted == [(0, 4), (0, 4), (1, 4), (0, 8), (0, 8)]
    assert _models.duration(lambda: time.sleep(0.2), "cpu") < 0.2


def test_unknown_data(tmp_path):
    with pytest.raises(ValueError, match="iris is not one of"):
        EXPERIMENTS["fig5"].run(Options(tmp_path, data=("iris",)), show=False)
    assert "cadata" in names()
