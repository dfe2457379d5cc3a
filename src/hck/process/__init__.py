"""Gaussian processes over any approximation of a kernel: likelihood, mean, uncertainty, left-out, draws."""

from hck.process.likelihood import log_likelihood
from hck.process.mixture import Mixture
from hck.process.process import Process
from hck.process.spread import Spread

__all__ = ["Mixture", "Process", "Spread", "log_likelihood"]
