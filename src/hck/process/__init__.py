"""Gaussian processes over any approximation of a kernel: likelihood, mean, uncertainty, left-out, draws."""

from hck.process.laplace import Laplace, laplace
from hck.process.likelihood import log_likelihood
from hck.process.mixture import Mixture, MixtureFunctions
from hck.process.process import Process
from hck.process.spread import Spread

__all__ = ["Laplace", "Mixture", "MixtureFunctions", "Process", "Spread", "laplace", "log_likelihood"]
