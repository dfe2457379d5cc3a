"""Parameters that choose themselves: their space, and how the best are found in it."""

from hck.selection.candidate import Candidate, Selection
from hck.selection.grid import Search, Trial, search
from hck.selection.likelihood import Learning, evaluate, learn
from hck.selection.maximise import Effort, Learned, climb, maximise, maximise_in_rounds
from hck.selection.observations import Observations
from hck.selection.space import Space

__all__ = [
    "Candidate",
    "Effort",
    "Learned",
    "Learning",
    "Observations",
    "Search",
    "Selection",
    "Space",
    "Trial",
    "climb",
    "evaluate",
    "learn",
    "maximise",
    "maximise_in_rounds",
    "search",
]
