"""The parts by their names on the command line."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console

from processes.common import Options, Record
from processes.defaults import defaults, show_defaults
from processes.flights import delays, show_flights
from processes.likelihood import likelihood, show_likelihood
from processes.published import published, show_published
from processes.recover import recover, show_recover
from processes.uci import show_uci, uci


@dataclass(frozen=True)
class Part:
    """A part of the benchmark: how it is measured (results so far, one after another) and shown."""

    measure: Callable[[Options, Console, Record], Iterator[Record]]
    show: Callable[[Record, Console], None]


PARTS = {
    "recover": Part(recover, show_recover),
    "uci": Part(uci, show_uci),
    "published": Part(published, show_published),
    "defaults": Part(defaults, show_defaults),
    "likelihood": Part(likelihood, show_likelihood),
    "flights": Part(delays, show_flights),
}
