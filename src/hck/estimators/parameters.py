"""Parameters that several estimators have: their types, how they are set, and what is said of them."""

from collections.abc import Callable, Mapping
from inspect import cleandoc
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from hck.kernels import Kernel
from hck.partition import Cutter, Landmarks, Tree, known_partitions
from hck.preparation.arrays import PointsLike

Described = TypeVar("Described", bound=type)

KernelLike: TypeAlias = str | Kernel | Callable[[PointsLike, PointsLike], ArrayLike | Tensor]
LandmarksLike: TypeAlias = str | ArrayLike | Landmarks
PartitionLike: TypeAlias = str | Cutter | Tree
Seed: TypeAlias = int | np.random.RandomState | None
Weights: TypeAlias = ArrayLike | Tensor | None
# Results as X came: an ndarray, a tensor on X's device if X is one, a lazy Dask array if X is lazy.
Predictions: TypeAlias = Any


def assign(estimator: object, given: Mapping[str, object]) -> None:
    """Set the parameters that the `__init__` of an estimator was given: its `locals()`."""
    for name, value in given.items():
        if name != "self":
            setattr(estimator, name, value)


def described(cls: Described) -> Described:
    """Fill the docstring of an estimator: a name of `_TEXTS` in braces becomes the text."""
    text = cleandoc(cls.__doc__ or "")
    for name, shared in _TEXTS.items():
        text = text.replace("{" + name + "}", shared.strip())
    cls.__doc__ = text
    return cls


# What is said in docstrings; texts that hold others come first ------------------------------------------

_TEXTS = {
    "ridge": """
kernel : str, Kernel or callable, default="auto"
    The base kernel: a name (one of ``hck.kernels.kernel_names()``), an object of `hck.kernels`, which may
    measure distances by a matrix (``Matern(1.0, metric=L)``), a function k(A, B) that returns the matrix of
    kernel values between two sets of points, ``"precomputed"``, where X is the matrix of kernel values
    (n_samples, n_samples), for new points (n_new, n_samples), with ``partition="kernel"``, or ``"auto"``, to
    choose between Matérn-3/2, Matérn-1/2, rational quadratic and Laplace (Gaussian where a lengthscale is
    given).
lengthscale : "auto", float, array-like of shape (n_features,) or None, default="auto"
    σ of a named kernel: one number, or one per feature; None means 1. ``"auto"``: one for all, one per
    feature, or a matrix that is learned as the kernel's metric, whichever predicts held-out observations
    better (for classes: better by a twentieth, since labels are not Gaussian, or by half where rows were not
    shuffled).
alpha : "auto" or float, default="auto"
    λ ≥ 0, the ridge: larger is smoother. ``"auto"``: chosen on left-out observations, for points of mean
    weight.
scale : {"auto", "standard", "minmax"} or None, default="auto"
    How features are scaled first: to mean 0 and variance 1, to [0, 1], or not. ``"auto"``: standard where
    lengthscales are chosen and neither a tree nor landmarks are given, else not; then heavy tails are drawn
    in, by asinh, where left-out observations are predicted better. Large sparse data stay sparse, and are not
    centred.
fit_time : {"fast", "balanced", "best"} or float, default="balanced"
    How long a fit may take, where something is chosen: seconds, or a name. On two cores fast takes about a
    second for 2,000 points, three for 8,000 and a minute for 460,000; balanced two and a half times as long,
    best twelve times. A name is an amount of work rather than a clock, so that results are reproducible; only
    where memory is short they depend on how much of it is free (see `memory_budget`). Seconds count from the
    beginning of `fit`; a `FitTimeWarning` tells if they were far too few, compiling apart. Best also
    averages the predictions of up to three candidates, with the weights that predict left-out observations
    best (needs `leave_one_out`).
leave_one_out : bool, default=True
    Whether `fit` also predicts each training point from all others, in closed form, which takes about half as
    long again: for errors without a hold-out, and for probabilities.
n_trees : "auto" or int, default="auto"
    How many trees, with partitions and landmarks of their own, to average (other approximations: how many,
    with landmarks or frequencies of their own). Auto: one where `rank` is given, and for approximations other
    than the hierarchical, else several.
rank : "auto" or int, default="auto"
    r, the number of landmarks of a node. Accuracy and cost (time r², memory r) grow with it. Auto: an eighth
    of the leaf size, which `fit_time` decides. Of other approximations: their rank, the size of leaves where
    `leaf_size` is not given, or the mean number of nonzeros of a row.
{settings}""",
    "process": """
kernel : str, Kernel or callable, default="auto"
    ``"auto"``: Matérn-3/2, Matérn-1/2, rational quadratic or Laplace, with one lengthscale, one for each
    feature, or a matrix as its metric, and with the ratio of noise to scale that predicts held-out
    observations best, as `HCKRegressor` chooses them; Matérn-3/2, learned by likelihood, where one of
    `lengthscale`, `noise`, `bounds`, `priors`, ``ard=False``, `optimizer` or known variances are given, and
    for fewer than 50 points, whose lengthscales keep the ratios of the features' standard deviations unless
    the likelihood grows by ½ log n for each (Schwarz's criterion).
    A name (one of ``hck.kernels.kernel_names()``), which is multiplied by an output scale and gets a
    lengthscale for each feature; an object of `hck.kernels`, taken as it is, and so its metric if it has
    one; or a function k(A, B), of which nothing is learned: these are learned by likelihood.
lengthscale : "auto", float, array-like of shape (n_features,) or None, default="auto"
    Where learning starts, for a named kernel. Auto, or None: √n_features standard deviations of each feature.
ard : bool, default=True
    Whether a named kernel has a lengthscale for each feature, or one for all.
noise : "auto", float or None, default="auto"
    λ > 0, the variance of the noise where learning starts. Auto, or None: a tenth of the variance of y.
trend : {"auto", "zero", "mean", "constant", "linear"} or callable, default="auto"
    The mean function: none, the mean of y, a constant, linear in the features, or linear in those that a
    function makes of X, as an array of shape (n_samples, n_trends). Coefficients of the last three are
    estimated by generalised least squares, and their uncertainty is part of that of predictions. Auto: the
    mean where candidates compete, as they do with it, and else a constant.
fit_time : {"fast", "balanced", "best"} or float, default="balanced"
    How long a fit may take, where something is chosen: seconds, or a name, as for `HCKRegressor`.
calibrate : {"auto", "loo"} or None, default="auto"
    Whether standard deviations are scaled by leave-one-out: the parts of a variance, which are that of the
    function, the noise and what trees differ by, are multiplied so that left-out observations are most
    probable, and 94 to 96 % of them are within 95 % intervals. ``"auto"``: where candidates competed, and for
    several trees, whose mean is nearer to the truth than they are. None: never; then trees form a mixture.
    Several targets share these factors, as they do kernel and noise.
{process_learning}
learn_size : "auto", int or None, default="auto"
    The most points to learn parameters on by likelihood, drawn at random; None for all; auto: as `fit_time`
    allows, 2,000 to 20,000. Predictions use all points. With the exact kernel, parameters are learned with
    the hierarchical one if these are thousands.
normalize_y : bool or None, default=None
    Whether each target is divided by its standard deviation first (of a constant one: 1), so that kernel and
    noise, which targets share, are in units of it, as are `noise`, `bounds` and `priors`; with
    ``trend="zero"`` its mean is taken away as well, as by scikit-learn's process. Predictions are in the
    units of y. None: if there are several targets, and the variance of their noise is not given.
n_trees : "auto" or int, default="auto"
    How many trees, with partitions and landmarks of their own, to average. Auto: one where `rank` is given,
    for approximations other than the hierarchical, and where one leaf of all points can be had; else several.
rank : "auto" or int, default="auto"
    r, the number of landmarks of a node. Accuracy and cost (time r², memory r) grow with it. Auto: an eighth
    of the leaf size, which `fit_time` decides; where sizes are not given, 3,000 points or fewer are one leaf,
    so that the process is exact. By likelihood, parameters are learned with a rank of 128 then. Of other
    approximations their rank, or the mean number of nonzeros of a row; standard deviations of Nyström's
    are too small far from its landmarks, where its kernel vanishes.
{settings}""",
    "process_of_classes": """
kernel : str, Kernel or callable, default="matern32"
    A name (one of ``hck.kernels.kernel_names()``), which is multiplied by an output scale and gets a
    lengthscale for each feature; an object of `hck.kernels`, taken as it is, and so its metric if it has
    one; or a function k(A, B), of which nothing is learned.
lengthscale : float, array-like of shape (n_features,) or None, default=None
    Where learning starts, for a named kernel. None: √n_features standard deviations of each feature.
ard : bool, default=True
    Whether a named kernel has a lengthscale for each feature, or one for all.
{process_learning}
learn_size : int or None, default=20_000
    The most points to learn parameters on, drawn at random; None for all. Predictions use all points.
n_trees : int, default=1
    How many trees, with partitions and landmarks of their own, to average.
rank : int, default=128
    r, the number of landmarks of a node. Accuracy and cost (time r², memory r) grow with it.
{settings}""",
    "process_learning": """
optimizer : {"auto", "lbfgs", "stochastic"} or None, default="auto"
    How to learn by likelihood. ``"lbfgs"``: L-BFGS, with a tree that is made anew a few times, since cuts
    follow the lengthscales. ``"stochastic"``: Adam with a fresh tree, and fresh points if `learn_size` is
    less than n, at every step, which does not fit one partition's artefacts. ``"auto"``: one half of the
    iterations stochastic, the other L-BFGS; all of them L-BFGS if the points to learn on fit into one leaf.
    None: do not learn.
max_iter : int, default=100
    The most iterations of L-BFGS; the number of steps of Adam.
n_restarts : int, default=0
    How many more starts to try with L-BFGS, at random around the first.
bounds : dict or None, default=None
    Bounds of parameters by name, such as ``{"lengthscale": (0.1, 10), "noise": "fixed"}``; names are
    those of ``kernel.parameters()`` (for named kernels "lengthscale" and "scale"), and "noise".
priors : dict or None, default=None
    Log-normal priors of parameters by name, as (median, standard deviation of the logarithm).""",
    "settings": """
approximation : str or hck.approximations.Iterative, default="hierarchical"
    What stands in for the kernel. ``"hierarchical"``: exact in leaves, low rank across them, up the tree;
    ``"compositional"``: the same with one level; ``"independent"``: exact in leaves, 0 across them;
    ``"nystrom"``: of rank r, by landmarks; ``"fourier"``: of rank r, by random features (Gaussian, Laplace
    and Matérn kernels); ``"tapered"``: sparse, with r numbers in a row (dense features); ``"exact"``: the
    kernel itself, in O(n²) memory and O(n³) time, or, where memory is short, by iteration (`Iterative`).
leaf_size : int or None, default=None
    n₀, the largest number of points in a leaf, where the kernel is exact. None: between r and 2r. This and
    `partition` are for approximations with trees, and for the preconditioner of `Iterative`.
partition : {partitions}, Cutter or Tree, default="random_projection"
    How the domain is cut. ``"kernel"`` needs only kernel values, so it works for objects of any kind.
landmarks : {"uniform", "kmeans", "farthest", "same"}, array, list of arrays or Landmarks, default="uniform"
    How landmarks are chosen; see `hck.partition.choose_landmarks`.
jitter : float or None, default=None
    λ', added to the landmarks' kernel matrices for stability. None: 1e-8 in float64, 1e-4 in float32,
    times the mean of k(x, x).
device : str, torch.device or None, default=None
    ``"cpu"`` or ``"cuda"``. None: where X is, if it is a tensor, else the CPU.
dtype : {"float64", "float32"}, default="float64"
memory_budget : int, float, str or None, default=None
    Bytes, or text such as ``"4GiB"``, that training may take beside the data; less than storing everything
    needs costs up to twice the time. None: half of the memory that is free, or four fifths of a GPU's.
random_state : int, RandomState instance or None, default=None
    Makes partition and landmarks reproducible.
verbose : int, default=0
    Whether to show progress.""",
    "partitions": "{" + ", ".join(f'"{name}"' for name in known_partitions()) + "}",
    "steps": """
losses_ : list of hck.losses.Loss
    Those that were minimised, with what was found of them; none for the squared one.
n_iter_ : int
    The most steps of Newton's method, or of interior points, that a tree took; 1 for the squared loss.
gradient_norm_ : float
    How near the minimum is: the norm of the gradient over that at the intercept, of absolute errors and
    quantiles the duality gap over the objective; the largest of all trees. A `ConvergenceWarning` tells if it
    is not small.""",
    "residuals": """
residuals_ : list of lists of float
    Where the exact kernel was solved with by iteration: the relative residual after each.""",
    "attributes": """
trees_ : list of Tree
    The partitions of the training points; none for approximations without trees.
n_features_in_ : int
    Number of features seen during fit.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of features seen during fit, if X has feature names that are all strings.""",
    "branched_loss": """
loss : {"squared"}, default="squared"
    Other losses are minimised in memory, on one machine.""",
    "disk": """
folder : path-like
    Where the model goes, and what it is made of while it is trained: about three times the size of X for each
    tree and each class of several.""",
    "disk_notes": """
The tree is cut into as many branches as `memory_budget` needs. With ``fit_time="best"`` the best candidate is
used, and none are averaged.

{branches}""",
    "cluster": """
client : distributed.Client or None, default=None
    The cluster to work on. None: the client that was started last. Copies have the same; pickles have
    none.
n_branches : int or None, default=None
    How many branches a tree is cut into: a power of two, at least 2. None: enough for the memory of the
    workers (`memory_budget`), and two for each of their threads where there are points enough; then
    results depend on the cluster, even with the same `random_state`.""",
    "cluster_attributes": """
bytes_ : hck.dask.Traffic
    What travelled during the fit.
seconds_ : dict
    Seconds of its phases.
n_features_in_ : int
    Number of features seen during fit.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of features seen during fit, if X is a dataframe.""",
    "cluster_notes": """
``device=None`` means the GPUs of the workers if each of them has one, and else their CPUs;
``memory_budget=None`` means half of what a worker has left, divided by its threads.

{branches}

A tree has at least two branches. So it is never one leaf, and `rank` or `leaf_size` of at least n do not
give the exact kernel, as they do on one machine.""",
    "branches": """
Here `approximation` is ``"hierarchical"``, `partition` one of {hyperplanes},
`landmarks` one of ``"uniform"``, ``"kmeans"`` and ``"farthest"``, and the kernel a name or an object of
`hck.kernels`. X is dense, and there are no weights.""",
    "hyperplanes": ", ".join(f'``"{name}"``' for name in known_partitions(by_hyperplanes=True)),
    "cluster_choice": """
Parameters are chosen on a sample of 50,000 points, or of 5000 for each branch if that is more. With
``fit_time="best"`` the best candidate is used, and none are averaged.""",
    "paper": """
J. Chen, H. Avron, V. Sindhwani, Hierarchically compositional kernels for scalable nonparametric learning,
Journal of Machine Learning Research 18 (2017)""",
}
