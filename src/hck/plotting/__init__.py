"""Pictures of trees, matrices, errors, predictions and what was learned, with matplotlib.

Needs ``pip install 'hck[plot]'``. Every function draws on the axes it is given, or on new ones, and returns
them. All share one look, which is theirs alone: the settings of matplotlib stay as they are. `style` gives it
to pictures of your own.
"""

from hck.plotting.blocks import plot_blocks
from hck.plotting.calibration import plot_interval_calibration, plot_reliability
from hck.plotting.learning import plot_learning
from hck.plotting.lengthscales import plot_lengthscales
from hck.plotting.metric import plot_importances, plot_metric
from hck.plotting.partition import plot_partition
from hck.plotting.predictions import plot_predictions
from hck.plotting.style import PALETTE, style
from hck.plotting.tradeoff import plot_tradeoff
from hck.plotting.tree import plot_tree

__all__ = [
    "PALETTE",
    "plot_blocks",
    "plot_importances",
    "plot_interval_calibration",
    "plot_learning",
    "plot_lengthscales",
    "plot_metric",
    "plot_partition",
    "plot_predictions",
    "plot_reliability",
    "plot_tradeoff",
    "plot_tree",
    "style",
]
