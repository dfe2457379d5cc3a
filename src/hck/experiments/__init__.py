"""The paper's experiments, and some beyond it: each writes a CSV file and a figure."""

from hck.experiments import embedding, partitioning, performance, randomness, tradeoff
from hck.experiments._run import Experiment, Options

__all__ = ["EXPERIMENTS", "Experiment", "Options"]

EXPERIMENTS = {
    each.name: each
    for each in (
        randomness.EXPERIMENT,
        partitioning.FIGURE,
        partitioning.TABLE,
        performance.GAUSSIAN,
        performance.LAPLACE,
        performance.MULTIQUADRIC,
        tradeoff.EXPERIMENT,
        embedding.EXPERIMENT,
        performance.FORESTS,
    )
}
