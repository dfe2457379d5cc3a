"""Trees whose observations come and go without a refit.

A new observation changes its leaf and the nodes on the way from there to the root, and no others.
"""

from hck.online.grow import Habit
from hck.online.predictor import OnlinePredictor
from hck.online.process import OnlineProcess
from hck.online.state import State

__all__ = ["Habit", "OnlinePredictor", "OnlineProcess", "State"]
