"""Estimators with scikit-learn's interface."""

from hck.estimators.classifier import HCKClassifier
from hck.estimators.gaussian_process import HCKGaussianProcessRegressor
from hck.estimators.kernel_pca import HCKKernelPCA
from hck.estimators.regressor import HCKRegressor

__all__ = ["HCKClassifier", "HCKGaussianProcessRegressor", "HCKKernelPCA", "HCKRegressor"]
