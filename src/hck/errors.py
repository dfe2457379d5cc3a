"""The errors and warnings that are hck's own."""

__all__ = [
    "FitTimeWarning",
    "ModelFileError",
    "NoGradientError",
    "NotPositiveDefiniteError",
    "NumericalWarning",
    "RunFileError",
]


class ModelFileError(ValueError):
    """A saved model that is damaged, incomplete, altered, or written by a newer version.

    Examples
    --------
    >>> import hck
    >>> from hck.errors import ModelFileError
    >>> try:
    ...     hck.load("no-such-model")
    ... except ModelFileError as error:
    ...     print(error)
    there is no saved model at no-such-model
    """


class RunFileError(ModelFileError, OSError):
    """A file of a run on disk, stopped or finished, that is damaged, missing, or of another run.

    Examples
    --------
    >>> from hck.errors import ModelFileError, RunFileError
    >>> issubclass(RunFileError, ModelFileError), issubclass(RunFileError, OSError)
    (True, True)
    """


class NoGradientError(ValueError):
    """A function that is asked for its gradient has none, or none that can be computed.

    Examples
    --------
    >>> import numpy as np
    >>> from hck import HCKGaussianProcessRegressor
    >>> from hck.errors import NoGradientError
    >>> X, y = np.linspace(0, 1, 20)[:, None], np.arange(20.0)
    >>> rough = HCKGaussianProcessRegressor("matern12", lengthscale=0.5, noise=0.1, optimizer=None).fit(X, y)
    >>> try:
    ...     rough.predict_gradient(X, return_std=True)
    ... except NoGradientError as error:
    ...     print(str(error)[:50])
    a process with the kernel Matérn 1/2 has no gradie
    """


class NotPositiveDefiniteError(ValueError):
    """A matrix that must be positive definite is not, beyond what a small jitter can mend.

    Examples
    --------
    >>> import numpy as np
    >>> from hck import HCKRegressor, NotPositiveDefiniteError
    >>> X = np.arange(6.0)[:, None]
    >>> no_kernel = HCKRegressor(lambda a, b: -np.exp(-np.abs(a - b.T)), alpha=0.1, rank=2)
    >>> try:
    ...     no_kernel.fit(X, X[:, 0])
    ... except NotPositiveDefiniteError as error:
    ...     print(str(error).partition(" in ")[0])
    the landmark matrix K(Z, Z) + jitter I is not positive definite
    """


class NumericalWarning(UserWarning):
    """A result was obtained, but with less accuracy or with more regularization than asked for.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from hck import HCKRegressor, NumericalWarning
    >>> X = np.zeros((8, 1))  # eight times the same point, and no ridge
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = HCKRegressor("gaussian", lengthscale=1.0, alpha=0.0, rank=8).fit(X, np.ones(8))
    >>> caught[0].category
    <class 'hck.errors.NumericalWarning'>
    """


class FitTimeWarning(UserWarning):
    """A fit took much longer than the seconds of its `fit_time`.

    Examples
    --------
    >>> import warnings
    >>> from hck.errors import FitTimeWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", FitTimeWarning)  # for a service that must not be late
    ...     issubclass(FitTimeWarning, UserWarning)
    True
    """
