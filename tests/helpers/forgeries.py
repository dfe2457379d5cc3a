"""Saved models, and forgeries of them: every field and array changed in many ways, with right checksums.

`python forgeries.py FOLDER SHARE SEED` tries a share of them, and writes what came of it as JSON.
"""

import collections
import copy
import faulthandler
import hashlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import load_file, save_file

import hck
from hck import (
    HCKClassifier,
    HCKGaussianProcessClassifier,
    HCKGaussianProcessRegressor,
    HCKKernelPCA,
    HCKRegressor,
)
from hck.approximations import Iterative
from hck.errors import ModelFileError, NotPositiveDefiniteError
from hck.kernels import Gaussian, Laplace, Matern
from hck.losses import Tweedie
from hck.outofcore import DiskHCKClassifier, DiskHCKRegressor

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(size=(24, 2)), RNG.uniform(size=(5, 2))
Y = np.sin(4 * X[:, 0]) + X[:, 1]
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [0.8, 1.3])]
TABLE = pd.DataFrame(
    {
        "gaps": np.where(np.arange(24) % 7 == 2, np.nan, X[:, 0]),
        "word": np.where(X[:, 1] > 0.5, "up", "down"),
        "order": pd.Categorical(np.where(Y > 1, "much", "little"), ["little", "much"], ordered=True),
        "many": [f"level {i % 12}" for i in range(24)],
        "day": pd.date_range("2020-02-27", periods=24, freq="7h"),
        "number": X[:, 1],
    }
)
GIVEN = {"rank": 3, "leaf_size": 6, "random_state": 0}
RIDGE = {**GIVEN, "lengthscale": 0.5, "alpha": 0.02}
METRIC = Matern([1.0, 0.5, 2.0], nu=2.5, metric=[[1.0, 0.5, 0.0], [-0.5, 1.0, 2.0]])
SUM = 2.0 * Matern([1.0, 0.5], nu=2.5) + Gaussian(0.3) * Laplace(3.0)
_PROCESS = {**GIVEN, "kernel": "gaussian", "lengthscale": 0.5, "noise": 0.05, "optimizer": None}


def models():
    """By name: how each kind of model is made."""
    ridge = HCKRegressor
    made = {
        "forest": lambda: ridge(**RIDGE, n_trees=2).fit(X, np.stack([Y, -Y], 1)),
        "sum": lambda: ridge(SUM, alpha=0.02, **GIVEN, partition="kmeans", scale="standard").fit(X, Y),
        "metric": lambda: ridge(METRIC, alpha=0.02, **GIVEN, partition="kmeans").fit(X, Y),
        "kernel_cut": lambda: ridge("matern32", **RIDGE, partition="kernel").fit(X, Y),
        "classifier": lambda: HCKClassifier("laplace", **RIDGE).fit(X, LABELS),
        "components": lambda: HCKKernelPCA(2, rank=4, random_state=0, fit_inverse_transform=True).fit(X),
    }
    for name in ("compositional", "exact", "nystrom", "fourier", "tapered"):
        made[name] = lambda name=name: ridge("gaussian", **RIDGE, approximation=name).fit(X, Y)
    how = Iterative("nystrom", tolerance=1e-8)
    made["iterative"] = lambda: ridge("gaussian", **RIDGE, approximation=how).fit(X, Y)
    for name in ("hierarchical", "nystrom", "tapered"):
        made[f"process_{name}"] = lambda name=name: HCKGaussianProcessRegressor(
            **_PROCESS, trend="linear", approximation=name
        ).fit(X, Y)
    made["process_of_two"] = lambda: HCKGaussianProcessRegressor(**_PROCESS, trend="linear").fit(
        X, np.stack([Y, 9 * Y**2], 1)
    )
    made["process_iterative"] = lambda: HCKGaussianProcessRegressor(**_PROCESS, approximation=how).fit(X, Y)
    of_classes = {name: value for name, value in _PROCESS.items() if name != "noise"}
    made["process_of_classes"] = lambda: HCKGaussianProcessClassifier(**of_classes).fit(X, LABELS)
    quantiles = {"loss": "quantile", "quantile": [0.2, 0.8]}
    made["quantiles"] = lambda: ridge("gaussian", **RIDGE, **quantiles).fit(X, Y, np.linspace(1, 2, len(Y)))
    made["amounts"] = lambda: ridge("gaussian", **RIDGE, loss=Tweedie(1.3)).fit(X, np.exp(Y))
    made["logistic"] = lambda: HCKClassifier("gaussian", **RIDGE, loss="logistic").fit(X, LABELS)
    made["table"] = lambda: ridge("gaussian", **RIDGE).fit(TABLE, Y)
    made["process_table"] = lambda: HCKGaussianProcessRegressor(**_PROCESS).fit(TABLE, Y)
    made["updated"] = lambda: ridge("gaussian", **RIDGE).fit(X[:18], Y[:18]).partial_fit(X[18:], Y[18:])
    made["process_updated"] = lambda: (
        HCKGaussianProcessRegressor(**_PROCESS).fit(X[:18], Y[:18]).partial_fit(X[18:], Y[18:])
    )
    return made


def new_points(model):
    """Those that a model knows what to do with."""
    return TABLE[: len(NEW)] if hasattr(model, "feature_names_in_") else NEW


def predictions(model):
    """What a model that was loaded says of points: finite numbers, or labels."""
    new = new_points(model)
    if isinstance(model, HCKKernelPCA):
        found = [model.transform(new)]
        return found if model._back is None else [*found, model.inverse_transform(found[0])]
    if isinstance(model, HCKGaussianProcessRegressor):
        return list(model.predict(new, return_std=True))
    if isinstance(model, HCKGaussianProcessClassifier):
        return [*model.predict_latent(new, return_std=True), model.predict_proba(new), model.predict(new)]
    if isinstance(model, HCKClassifier):
        proba = [] if model.calibration_ is None else [model.predict_proba(new)]
        return [model.decision_function(new), *proba, model.predict(new)]
    return [model.predict(new)]


def use(model):
    """All else that is asked of it, which a ValueError may answer, but no error from within."""
    new = new_points(model)
    calls = {
        "predict": lambda: model.predict(new, interval=0.5),
        "predict_set": lambda: model.predict_set(new, 0.5),
        "predict_gradient": lambda: model.predict_gradient(new),
        "loo_predict": lambda: model.loo_predict(),
        "loo_decision_function": lambda: model.loo_decision_function(),
        "draw_functions": lambda: model.draw_functions(2, n_waves=4)(new),
        "sample_y": lambda: model.sample_y(new),
        "log_marginal_likelihood": lambda: model.log_marginal_likelihood(eval_gradient=True),
        "feature_importances_": lambda: model.feature_importances_,
        "kernel_feature_names_": lambda: model.kernel_feature_names_,
        "partial_fit": lambda: model.partial_fit(new, model.predict(new)),
        "drift_": lambda: model.drift_,
        "forget": lambda: model.forget([0]),
    }
    for name, call in calls.items():
        takes = name != "predict" or isinstance(model, HCKRegressor)
        if takes and hasattr(type(model), name):
            try:
                call()
            except (ValueError, MemoryError, NotPositiveDefiniteError):
                continue


class Original:
    """A saved model, of which forgeries are made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.document = json.loads((folder / "model.json").read_text())
        self.arrays = load_file(folder / self.document["tensors"]["file"])
        self._forged = {}  # the arrays that are in the file

    def forge(self, document, arrays) -> None:
        """Put files with right checksums in the place of the model."""
        file = self.folder / "tensors.safetensors"
        if arrays is not None or self._forged is not None:
            save_file(self.arrays if arrays is None else arrays, file)
            self._sealed = {"bytes": file.stat().st_size, "sha256": sha256(file.read_bytes())}
            self._forged = arrays
        document = {**document, "tensors": {"file": file.name, **self._sealed}}
        document.pop("sha256", None)
        text = json.dumps(document, sort_keys=True, separators=(",", ":"))
        (self.folder / "model.json").write_text(json.dumps({**document, "sha256": sha256(text.encode())}))


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# Changes -----------------------------------------------------------------------------------------------

HUGE = 10**30
_NUMBERS = [-1, 0, 1, 2**31, 2**63 - 1, 2**63, HUGE, -HUGE, 1e308, -1e308, 1e-308, 0.5]
_OTHERS = [None, True, "text", "", [], [1, 2], {}, [[[]]], {"is": "number", "value": "nan"}]
_MORE = [{"is": "number", "value": "inf"}, {"is": "dtype", "name": "int8"}, {"is": "object", "number": 0}]
VALUES = [*_NUMBERS, *_OTHERS, *_MORE]


def places(node, path=()):
    """Paths to everything in a document."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def changed(document, path, value):
    """A copy of a document with another value at a place; `changed` itself as the value removes it."""
    document = copy.deepcopy(document)
    at = document
    for key in path[:-1]:
        at = at[key]
    if value is changed:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return document


def array_changes(array, rng):
    """Other arrays in the place of one: (what, array)."""
    flat = array.reshape(-1)
    yield "empty", array.reshape(-1)[:0]
    yield "shorter", array[:-1] if array.ndim else array.reshape(1)
    yield "longer", np.concatenate([array, array[-1:]]) if array.ndim and len(array) else np.ones(1)
    yield "other axes", array.reshape(1, *array.shape)
    yield "transposed", np.ascontiguousarray(array.T)
    for dtype in ("int64", "int32", "int8", "uint8", "float64", "float32", "float16", "bool"):
        if array.dtype != dtype:
            yield dtype, np.nan_to_num(array).astype(dtype)
    if not flat.size:
        return
    whole = array.dtype.kind in "iu"
    values = [-1, -2, 1, 10**6, 2**31 - 1] if whole else [np.nan, np.inf, -np.inf, 1e308, -1e308, -1.0, 0.0]
    if array.dtype.kind == "i" and array.itemsize == 8:
        values += [2**62, -(2**62), 2**63 - 1]
    if whole:
        values += [int(flat.max()) + 1, int(flat.max()), int(flat.min()) - 1]
    for value in values:
        with np.errstate(over="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for at in {0, flat.size - 1, int(rng.integers(flat.size))}:
                copied = flat.copy()
                copied[at] = np.array(value).astype(array.dtype)
                yield f"{value} at {at}", copied.reshape(array.shape)
            yield f"{value} everywhere", np.full_like(array, np.array(value).astype(array.dtype))
    yield "reversed", np.ascontiguousarray(flat[::-1]).reshape(array.shape)
    yield "shuffled", rng.permutation(flat).reshape(array.shape)


def reshaped(document, name, array):
    """The document with the dtype and shape of an array that was changed, wherever it is named."""
    document = copy.deepcopy(document)

    def walk(node):
        if isinstance(node, dict):
            if node.get("name") == name and "shape" in node:
                node["shape"], node["dtype"] = list(array.shape), array.dtype.name
            node = list(node.values())
        if isinstance(node, list):
            for each in node:
                walk(each)

    walk(document["objects"])
    return document


def forgeries(original, rng, share=1.0):
    """Forgeries of one model: (what was done, document, arrays or None for those of the original)."""
    document, arrays = original.document, original.arrays
    for path in places(document):
        if path[0] in ("sha256", "tensors", "hck", "notes", "format"):
            continue
        for value in (changed, *VALUES):
            if rng.uniform() < share:
                yield f"{path} = {value}", changed(document, path, value), None
    numbers = range(len(document["objects"]))
    for i in numbers:
        classes = {each["class"] for each in document["objects"]} - {document["objects"][i]["class"]}
        for other in sorted(classes):
            if rng.uniform() < share:
                yield f"class {i} = {other}", changed(document, ("objects", i, "class"), other), None
        yield f"extra {i}", changed(document, ("objects", i, "parts", "extra"), 1), None
    for path in places(document["objects"]):
        if path[-1] == "number":
            for number in numbers:
                if rng.uniform() < share:
                    yield f"{path} → {number}", changed(document, ("objects", *path), number), None
    names = sorted(arrays)
    for name in names:
        for what, array in array_changes(arrays[name], rng):
            if rng.uniform() < share:
                forged = {**arrays, name: np.ascontiguousarray(array)}
                yield f"{name}: {what}", reshaped(document, name, array), forged
        other = names[int(rng.integers(len(names)))]
        if arrays[other].shape == arrays[name].shape and arrays[other].dtype == arrays[name].dtype:
            yield f"{name} ↔ {other}", document, {**arrays, name: arrays[other], other: arrays[name]}


def outcome(load, folder) -> str:
    """What becomes of a forgery: "refused", "predicts", or what is wrong."""
    try:
        model = load(folder)
        found = predictions(model)
        use(model)
    except ModelFileError as error:
        return "refused" if str(folder) in str(error) else f"the file is not named: {error}"
    except NotPositiveDefiniteError:  # noise and kernel may be what they like, but not all at once
        return "predicts"
    except Exception as error:
        # nor may lengthscales be next to nothing; and columns may be called, and hold, what they like
        sound = (
            "too far apart for the kernel",
            "feature names should match",
            "must be numbers",
            "must be dates",
        )
        if isinstance(error, ValueError) and any(each in str(error) for each in sound):
            return "predicts"
        return f"{type(error).__name__}: {error}"
    for values in found:
        if len(values) != len(NEW):
            return f"shape: {values.shape}"
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            return "not finite"
    return "predicts"


def originals(folder: Path):
    """Each kind of model, saved: (name, what loads it, the folder of the whole, the folder to be forged)."""
    for name, make in models().items():
        make().save(folder / name)
        yield name, hck.load, folder / name, folder / name
    for cls, y in ((DiskHCKRegressor, Y), (DiskHCKClassifier, LABELS)):
        whole = folder / cls.__name__
        cls(**RIDGE, scale="standard", folder=whole).fit(X, y)
        for part in ("model", "branches/0-1"):
            yield f"{cls.__name__}, {part}", cls.open, whole, whole / part


def attempt(folder: Path, share: float, seed: int) -> dict:
    """Try forgeries of all models; the last one is written to a file, lest the process dies of it."""
    counts, wrong = collections.Counter(), {}
    rng = np.random.default_rng(seed)
    for name, load, whole, part in originals(folder):
        original = Original(part)
        for what, document, arrays in forgeries(original, rng, share):
            original.forge(document, arrays)
            (folder / "last").write_text(f"{name}: {what}")
            faulthandler.dump_traceback_later(30, exit=True)
            found = outcome(load, whole)
            if found not in ("refused", "predicts"):
                wrong[f"{name}: {what}"] = found
            counts[found if found in ("refused", "predicts") else "wrong"] += 1
        original.forge(original.document, original.arrays)
        assert outcome(load, whole) == "predicts", name
    faulthandler.cancel_dump_traceback_later()
    return {"counts": counts, "wrong": wrong}


if __name__ == "__main__":
    faulthandler.enable()
    warnings.simplefilter("ignore")
    done = attempt(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
    (Path(sys.argv[1]) / "outcome.json").write_text(json.dumps(done, indent=1))
