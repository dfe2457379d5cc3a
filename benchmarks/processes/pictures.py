"""Plots of what the parts measured."""

from pathlib import Path
from typing import Any

import numpy as np

from peers import describe
from processes.common import Record
from processes.parts import PARTS
from processes.recover import TOLERANCE, each_parameter
from processes.uci import METHODS, in_order, methods_of, over_splits

COLORS = {"hck": "C0", "exact": "C1", "best": "black"}


def draw_recover(results: Record, path: Path) -> None:
    """Learned beside true parameters, and how many observations are inside intervals."""
    record, (figure, (left, right)) = results["recover"], panels(1, 2, 4.2)
    draw_parameters(left, record["draws"])
    draw_calibration(right, record["draws"][0]["calibration"])
    finish(figure, "Known parameters", record, path)


def draw_parameters(panel: Any, draws: list[Record]) -> None:
    """Ratios of all draws side by side, with intervals of 95 %."""
    learned = [item for draw in draws for item in draw["learned"].items()]
    for place, (method, found) in enumerate(learned):
        names, true, values, errors = zip(*each_parameter(found), strict=True)
        ratios, width = np.array(values) / true, np.exp(1.96 * np.nan_to_num(errors))
        at = np.arange(len(ratios)) + 0.12 * (place - (len(learned) - 1) / 2)
        bars = (ratios - ratios / width, ratios * width - ratios)
        label = f"learned by {method}, 95 %" if method not in dict(learned[:place]) else None
        style = {"fmt": "o", "color": COLORS[method], "markersize": 4, "capsize": 2}
        panel.errorbar(at, ratios, bars, label=label, **style)
        panel.set_xticks(
            range(len(names)),
            [f"{n.replace('lengthscale', 'σ')}\n{t:g}" for n, t in zip(names, true, strict=True)],
            fontsize=8,
        )
    panel.axhspan(1 - TOLERANCE, 1 + TOLERANCE, color="grey", alpha=0.15, label="within 15 %")
    panel.axhline(1, color="grey", linewidth=1)
    panel.set(ylabel="learned / true", title="parameters")
    panel.legend(fontsize=8)


def draw_calibration(panel: Any, curves: dict[str, list[float]]) -> None:
    for name, shares in curves.items():
        levels = np.arange(1, len(shares) + 1) / (len(shares) + 1)
        label = "true parameters" if name == "best" else f"learned by {name}"
        panel.plot(levels, np.array(shares) - levels, "o-", markersize=3, color=COLORS[name], label=label)
    panel.axhline(0, color="grey", linewidth=1)
    panel.set(
        xlabel="level of the interval", ylabel="share inside − level", title="calibration on new points"
    )
    panel.legend(fontsize=8)


def draw_uci(results: Record, path: Path) -> None:
    """RMSE above and NLPD below, a column for each data set."""
    record = results["uci"]
    data = in_order(record)
    figure, axes = panels(2, len(data), 3)
    for row, key in enumerate(("rmse", "nlpd")):
        for column, (name, entry) in enumerate(data):
            draw_methods(axes[row, column], entry, key, labels=column == 0)
            axes[row, column].set_title(name if row == 0 else "")
    finish(figure, "Test error and density, mean and standard deviation over splits", record, path)


def draw_methods(panel: Any, entry: Record, key: str, labels: bool) -> None:
    """A line for each method, also for those that were not run."""
    places = {method: -i for i, method in enumerate(METHODS)}
    for method, found in methods_of(entry):
        mean, deviation = over_splits(found, key)
        panel.errorbar(mean, places[method], xerr=deviation, fmt="o", capsize=3)
        text = f"{found['train_points']:,} points"
        panel.annotate(
            text, (mean, places[method]), (0, 5), textcoords="offset points", ha="center", fontsize=7
        )
    panel.set_yticks([*places.values()], [METHODS[m].label if labels else "" for m in places], fontsize=8)
    panel.set_ylim(-len(places) + 0.5, 0.5)
    panel.margins(x=0.15)
    panel.set_xlabel(f"{key.upper()} (standardised)")
    panel.grid(alpha=0.3)


def histories(results: Record) -> dict[str, list[float]]:
    """The objective at each step, where hck learned."""
    found = {}
    if "recover" in results:
        found["recover"] = results["recover"]["draws"][0]["learned"]["hck"]["history"]
    for name, entry in in_order(results.get("uci", {"data": {}})):
        found[name] = entry["methods"].get("hck", {}).get("history")
    found["flights"] = results.get("flights", {}).get("history")
    return {name: history for name, history in found.items() if history}


def draw_learning(results: Record, path: Path) -> None:
    found = histories(results)
    figure, axes = panels(1, len(found), 3)
    for panel, (name, history) in zip(axes, found.items(), strict=True):
        panel.plot(range(1, len(history) + 1), history)
        panel.set(xlabel="step", title=name)
        panel.grid(alpha=0.3)
    axes[0].set_ylabel("log-likelihood per observation")
    finish(figure, "Learning", next(results[part] for part in PARTS if part in results), path)


def panels(rows: int, columns: int, height: float) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        rows, columns, figsize=(max(4.2 * columns, 5), height * rows), layout="constrained", squeeze=False
    )
    return figure, axes[0] if rows == 1 else axes


def finish(figure: Any, title: str, record: Record, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.suptitle(f"{title} ({describe(record['machine'])})", fontsize=10)
    figure.savefig(path, dpi=130)
    plt.close(figure)
