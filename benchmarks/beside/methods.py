"""What hck stands beside: each method with its defaults, and with one setting that is known to be good.

The tuned settings of LightGBM, XGBoost and CatBoost are those that pytabkit calls "tuned defaults": found
once on many other data sets (D. Holzmüller, L. Grinsztajn, I. Steinwart, Better by default, NeurIPS 2024).
They stop early by a tenth of the records to train on, which is held out; so does that of
HistGradientBoosting. xRFM needs records to validate on, a fifth; its tuned setting is the best of ten random
ones of pytabkit. RealMLP's defaults are tuned already.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from beside.problems import Problem, categories, dense, impute, words
from hck import HCKClassifier, HCKRegressor

Predict = Callable[[Any], np.ndarray]  # of features: numbers (n,), or probabilities (n, classes)


@dataclass(frozen=True)
class Method:
    """The package that it needs, how it is trained, and whether it compiles first, which is not timed."""

    package: str
    train: Callable[[Problem], Predict]
    compiles: bool = False


def held_out(X: Any, p: Problem, share: float) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """Features and targets, without and with a share of the records to train on."""
    return train_test_split(
        X, p.y, test_size=share, random_state=p.seed, stratify=None if p.is_regression else p.y
    )


def predictor(model: Any, p: Problem, prepare: Callable[[Any], Any] = lambda X: X) -> Predict:
    call = model.predict if p.is_regression else model.predict_proba
    return lambda X: np.asarray(call(prepare(X)))


def hck(fit_time: str) -> Callable[[Problem], Predict]:
    def train(p: Problem) -> Predict:
        kind = HCKRegressor if p.is_regression else HCKClassifier
        model = kind(fit_time=fit_time, device=p.device, random_state=p.seed)
        return predictor(model.fit(impute(p.X, p.X), p.y), p, lambda X: impute(X, p.X))

    return train


def lightgbm(tuned: bool) -> Callable[[Problem], Predict]:
    def train(p: Problem) -> Predict:
        from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping

        kind = LGBMRegressor if p.is_regression else LGBMClassifier
        shared = {"n_jobs": p.threads, "random_state": p.seed, "verbosity": -1}
        if not tuned:
            return predictor(kind(**shared).fit(p.X, p.y), p)
        numbers = {"learning_rate": 0.05, "subsample": 0.7, "num_leaves": 100, "min_child_samples": 3}
        classes = {"learning_rate": 0.04, "subsample": 0.75, "num_leaves": 50, "min_child_samples": 40}
        setting = {"n_estimators": 1000, "subsample_freq": 1, "min_child_weight": 1e-7}
        model = kind(**shared, **setting, **(numbers if p.is_regression else classes))
        X, X_val, y, y_val = held_out(p.X, p, 0.1)
        stop = early_stopping(300, verbose=False)
        return predictor(model.fit(X, y, eval_set=[(X_val, y_val)], callbacks=[stop]), p)

    return train


def xgboost(tuned: bool) -> Callable[[Problem], Predict]:
    def train(p: Problem) -> Predict:
        from xgboost import XGBClassifier, XGBRegressor

        kind = XGBRegressor if p.is_regression else XGBClassifier
        shared = {"n_jobs": p.threads, "random_state": p.seed, "enable_categorical": True}
        shared["device"] = p.device
        if not tuned:
            return predictor(kind(**shared).fit(p.X, p.y), p)
        numbers = {"learning_rate": 0.05, "max_depth": 9, "min_child_weight": 2.0, "subsample": 0.7}
        classes = {"learning_rate": 0.08, "max_depth": 6, "min_child_weight": 5e-6, "subsample": 0.65}
        setting = {"n_estimators": 1000, "reg_lambda": 0.0, "early_stopping_rounds": 300}
        classes["colsample_bylevel"] = 0.9
        model = kind(**shared, **setting, **(numbers if p.is_regression else classes))
        X, X_val, y, y_val = held_out(p.X, p, 0.1)
        return predictor(model.fit(X, y, eval_set=[(X_val, y_val)], verbose=False), p)

    return train


def catboost(tuned: bool) -> Callable[[Problem], Predict]:
    def train(p: Problem) -> Predict:
        from catboost import CatBoostClassifier, CatBoostRegressor

        kind = CatBoostRegressor if p.is_regression else CatBoostClassifier
        shared = {"thread_count": p.threads, "random_seed": p.seed, "verbose": False}
        shared |= {"allow_writing_files": False, "cat_features": categories(p.X)}
        if not tuned:
            return predictor(kind(**shared).fit(words(p.X), p.y), p, words)
        numbers = {"learning_rate": 0.09, "max_depth": 9, "random_strength": 0.0, "one_hot_max_size": 20}
        classes = {"learning_rate": 0.08, "max_depth": 7, "random_strength": 0.8, "one_hot_max_size": 15}
        setting = {"n_estimators": 1000, "l2_leaf_reg": 1e-5, "boosting_type": "Plain", "subsample": 0.9}
        setting |= {"bootstrap_type": "Bernoulli", "leaf_estimation_iterations": 20 if p.is_regression else 1}
        model = kind(**shared, **setting, **(numbers if p.is_regression else classes))
        X, X_val, y, y_val = held_out(words(p.X), p, 0.1)
        return predictor(model.fit(X, y, eval_set=(X_val, y_val), early_stopping_rounds=300), p, words)

    return train


def histgradientboosting(tuned: bool) -> Callable[[Problem], Predict]:
    def train(p: Problem) -> Predict:
        kind = HistGradientBoostingRegressor if p.is_regression else HistGradientBoostingClassifier
        setting = {"max_iter": 1000, "learning_rate": 0.05, "max_leaf_nodes": 63, "early_stopping": True}
        setting |= {"n_iter_no_change": 50, "tol": 0.0}  # tol is absolute, and too much for small targets
        model = kind(random_state=p.seed, **(setting if tuned else {}))
        return predictor(model.fit(dense(p.X), p.y), p, dense)

    return train


def xrfm(p: Problem) -> Predict:
    """As its page advises: numbers standardised, categories as columns of 0 and 1."""
    from xrfm import xRFM

    scaler = StandardScaler()
    if names := categories(p.X):
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        scaler = make_column_transformer((encoder, names), remainder=scaler)
    scaler.fit(impute(dense(p.X), p.X))

    def prepare(X: Any) -> np.ndarray:
        return scaler.transform(impute(dense(X), p.X)).astype(np.float32)

    X, X_val, y, y_val = held_out(prepare(p.X), p, 0.2)
    model = xRFM(device=p.device, n_threads=p.threads, random_state=p.seed, verbose=False)
    if not p.is_regression:
        model.fit(X, y, X_val, y_val)
        return lambda X: np.asarray(model.predict_proba(prepare(X)))
    mean, std = y.mean(), y.std()
    y, y_val = (((t - mean) / std).astype(np.float32)[:, None] for t in (y, y_val))
    model.fit(X, y, X_val, y_val)
    return lambda X: mean + std * np.asarray(model.predict(prepare(X))).ravel()


def of_pytabkit(called: str, **options: Any) -> Callable[[Problem], Predict]:
    """An estimator of pytabkit, which takes frames, but no missing numbers."""

    def train(p: Problem) -> Predict:
        import pytabkit

        kind = getattr(pytabkit, f"{called}_{'Regressor' if p.is_regression else 'Classifier'}")
        model = kind(device=p.device, n_threads=p.threads, random_state=p.seed, verbosity=0, **options)
        return predictor(
            model.fit(impute(dense(p.X), p.X), p.y), p, lambda X: impute(dense(X), p.X)
        )  # fmt: skip

    return train


METHODS = {
    "hck-fast": Method("hck", hck("fast"), compiles=True),
    "hck-balanced": Method("hck", hck("balanced"), compiles=True),
    "hck-best": Method("hck", hck("best"), compiles=True),
    "lightgbm": Method("lightgbm", lightgbm(tuned=False)),
    "lightgbm-tuned": Method("lightgbm", lightgbm(tuned=True)),
    "xgboost": Method("xgboost", xgboost(tuned=False)),
    "xgboost-tuned": Method("xgboost", xgboost(tuned=True)),
    "catboost": Method("catboost", catboost(tuned=False)),
    "catboost-tuned": Method("catboost", catboost(tuned=True)),
    "histgradientboosting": Method("sklearn", histgradientboosting(tuned=False)),
    "histgradientboosting-tuned": Method("sklearn", histgradientboosting(tuned=True)),
    "xrfm": Method("xrfm", xrfm),
    "xrfm-tuned": Method("pytabkit", of_pytabkit("XRFM_HPO", n_hyperopt_steps=10)),
    "realmlp": Method("pytabkit", of_pytabkit("RealMLP_TD")),
}
