"""Right-hand sides that branches solve for, from what users call y."""

from dataclasses import dataclass

import numpy as np

from hck.preparation.coding import Coding
from hck.preparation.trend import Trend


@dataclass
class WithTrend:
    """Observations less a rough trend, and the trend's features."""

    trend: Trend

    def __call__(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Shape (rows, 1 + trends)."""
        features = self.trend(x).numpy()
        return np.hstack([(y - features @ self.trend.rough)[:, None], features])


Targets = Coding | WithTrend


def right_sides(targets: Targets, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Shape (rows, columns)."""
    return targets(x, y) if isinstance(targets, WithTrend) else targets(y)
