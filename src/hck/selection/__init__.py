"""Parameters that choose themselves: their space, and how the best are found in it."""

from hck.selection.grid import Search, Trial, search
from hck.selection.likelihood import Observations, evaluate, learn
from hck.selection.maximise import Learned, climb, maximise, maximise_in_rounds
from hck.selection.space import Space

__all__ = [
    "Learned",
    "Observations",
    "Search",
    "Space",
    "Trial",
    "climb",
    "evaluate",
    "learn",
    "maximise",
    "maximise_in_rounds",
    "search",
]
