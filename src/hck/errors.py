"""The errors and warnings that are hck's own."""

__all__ = [
    "ModelFileError",
    "NoGradientError",
    "NotPositiveDefiniteError",
    "NumericalWarning",
    "RunFileError",
]


class ModelFileError(ValueError):
    """A saved model that is damaged, incomplete, altered, or written by a newer version."""


class RunFileError(ModelFileError, OSError):
    """A file of a run on disk, stopped or finished, that is damaged, missing, or of another run."""


class NoGradientError(ValueError):
    """A function that is asked for its gradient has none, or none that can be computed."""


class NotPositiveDefiniteError(ValueError):
    """A matrix that must be positive definite is not, beyond what a small jitter can mend."""


class NumericalWarning(UserWarning):
    """A result was obtained, but with less accuracy or with more regularization than asked for."""
