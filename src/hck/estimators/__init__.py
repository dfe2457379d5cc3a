"""Estimators with scikit-learn's interface."""

from hck.estimators.classifier import HCKClassifier
from hck.estimators.gaussian_process import HCKGaussianProcessRegressor
from hck.estimators.kernel_pca import HCKKernelPCA
from hck.estimators.process_classifier import HCKGaussianProcessClassifier
from hck.estimators.regressor import HCKRegressor

__all__ = [
    "HCKClassifier",
    "HCKGaussianProcessClassifier",
    "HCKGaussianProcessRegressor",
    "HCKKernelPCA",
    "HCKRegressor",
]
