"""Write the page."""

import os
from datetime import datetime
from pathlib import Path

from numpy.typing import ArrayLike

from hck._version import __version__
from hck.backend.files import regular, replacing
from hck.backend.text import harmless
from hck.estimators.base import HCKEstimator
from hck.plotting.style import need_matplotlib
from hck.preparation.arrays import PointsLike
from hck.report.figures import pictures
from hck.report.model import check_model, choice_section, model_section
from hck.report.scores import confusion, predict, scores_section


def write_report(
    model: HCKEstimator,
    X: PointsLike,
    y: ArrayLike | None,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    force: bool = False,
) -> Path:
    """Write a page about a fitted estimator and how good it is on some data.

    The page is one HTML file with all pictures inside: it loads nothing, so that it can be shared. Needs
    ``pip install 'hck[plot]'``.

    Parameters
    ----------
    model : any estimator of `hck.estimators`
        A fitted one.
    X : as in `fit`
        Data that the model has not seen, to judge it by.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        What was observed. None for `HCKKernelPCA`.
    path : str or path
        Where to write.
    title : str, default=None
        Of the page. None: the name of the estimator.
    force : bool, default=False
        Whether to replace a file that is there.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_moons
    >>> from hck import HCKClassifier
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = HCKClassifier("gaussian", lengthscale=0.3, alpha=0.1, rank=32, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, X, y, f"{folder}/moons.html").name
    'moons.html'
    """
    target = _check_path(Path(path), force)
    check_model(model)
    need_matplotlib()
    text = render(model, X, y, title)
    with replacing(target) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")
    return target


def render(model: HCKEstimator, X: PointsLike, y: ArrayLike | None, title: str | None = None) -> str:
    """The page as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    outcome, now = predict(model, X, y), datetime.now().astimezone()
    sections = [model_section(model), choice_section(model), scores_section(model, outcome)]
    environment = Environment(
        loader=PackageLoader("hck.report"),
        autoescape=True,
        finalize=lambda value: harmless(value) if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(
        title=str(title) if title else f"Report: {type(model).__name__}",
        estimator=type(model).__name__,
        sections=[section for section in sections if section is not None],
        confusion=confusion(outcome),
        pictures=pictures(model, X, outcome),
        date=now.isoformat(timespec="seconds"),
        day=now.strftime("%Y-%m-%d %H:%M %Z").strip(),
        version=__version__,
    )


def _check_path(path: Path, force: bool) -> Path:
    if regular(path) is not None and path.exists() and not force:
        raise FileExistsError(f"{path} is there already: use force=True to replace it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into")
    return path
