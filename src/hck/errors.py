"""The errors and warnings that are hck's own."""

__all__ = ["NotPositiveDefiniteError", "NumericalWarning"]


class NotPositiveDefiniteError(ValueError):
    """A matrix that must be positive definite is not, beyond what a small jitter can mend."""


class NumericalWarning(UserWarning):
    """A result was obtained, but with less accuracy or with more regularization than asked for."""
