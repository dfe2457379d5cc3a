"""Estimators with scikit-learn's interface."""

from hck.estimators.classifier import HCKClassifier
from hck.estimators.regressor import HCKRegressor

__all__ = ["HCKClassifier", "HCKRegressor"]
