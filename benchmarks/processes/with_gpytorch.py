"""GPyTorch's sparse and exact processes; GPyTorch itself is imported when one is fitted."""

import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from sklearn.cluster import MiniBatchKMeans
from torch import Tensor

from processes.common import FEW, Options, Prediction

LAST = 3  # steps with all points, after those with a part of them


class TorchProcess:
    """What both of GPyTorch's processes share: kernel, start, and a Gaussian likelihood."""

    def __init__(self, device: str, dtype: torch.dtype, rate: float, rounds: int) -> None:
        self.device, self.dtype, self.rate, self.rounds = device, dtype, rate, rounds
        self.history: list[float] = []

    def tensor(self, array: np.ndarray) -> Tensor:
        return torch.as_tensor(array, dtype=self.dtype, device=self.device)

    def kernel(self, features: int) -> Any:
        """Matérn-3/2 that starts where hck starts on standardised data."""
        from gpytorch.kernels import MaternKernel, ScaleKernel

        kernel = ScaleKernel(MaternKernel(nu=1.5, ard_num_dims=features))
        kernel.outputscale, kernel.base_kernel.lengthscale = 1.0, math.sqrt(features)
        return kernel

    def likelihood(self) -> Any:
        from gpytorch.likelihoods import GaussianLikelihood

        likelihood = GaussianLikelihood()
        likelihood.noise = 0.1
        return likelihood.to(self.device, self.dtype)

    def climb(self, losses: Iterator[Callable[[], Tensor]]) -> None:
        """Steps of Adam, one for each loss."""
        both = (*self.model.parameters(), *self.noisy.parameters())
        once = {id(parameter): parameter for parameter in both}  # the exact process has those of the noise
        optimizer = torch.optim.Adam(once.values(), self.rate)
        for loss in losses:
            optimizer.zero_grad()
            value = loss()
            value.backward()
            optimizer.step()
            self.history.append(-value.item())

    @torch.no_grad()
    def predict(self, X: np.ndarray) -> Prediction:
        self.model.eval()
        self.noisy.eval()
        found = [self.noisy(self.model(x)) for x in self.tensor(X).split(2000)]
        mean, variance = torch.cat([f.mean for f in found]), torch.cat([f.variance for f in found])
        return mean.cpu().double().numpy(), variance.sqrt().cpu().double().numpy()


class Sparse(TorchProcess):
    """SVGP, trained with batches."""

    def __init__(self, options: Options, rate: float) -> None:
        super().__init__(options.device, torch.float32, rate, 10 if options.quick else 100)
        self.inducing = 64 if options.quick else 1024

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Sparse":
        from gpytorch.mlls import VariationalELBO

        torch.manual_seed(0)
        x, target = self.tensor(X), self.tensor(y)
        clusters = MiniBatchKMeans(min(self.inducing, len(X)), n_init=1, random_state=0).fit(X)
        self.model = sparse_process(self.tensor(clusters.cluster_centers_), self.kernel(X.shape[1]))
        self.model, self.noisy = self.model.to(self.device, self.dtype), self.likelihood()
        bound = VariationalELBO(self.noisy, self.model, num_data=len(x))

        def losses() -> Iterator[Callable[[], Tensor]]:
            for _ in range(self.rounds):
                for batch in torch.randperm(len(x), device=self.device).split(1024):
                    yield lambda batch=batch: -bound(self.model(x[batch]), target[batch])

        self.climb(losses())
        return self


class Exact(TorchProcess):
    """The exact process, by Cholesky factors.

    On a CPU most steps are done with a part of the points, and only three with all of them (Wang et al.,
    Exact Gaussian processes on a million data points, 2019).
    """

    def __init__(self, options: Options, rate: float) -> None:
        super().__init__(options.device, torch.float64, rate, options.steps)
        self.first = FEW if options.device == "cpu" else sys.maxsize

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Exact":
        from gpytorch.mlls import ExactMarginalLogLikelihood

        x, target = self.tensor(X), self.tensor(y)
        self.noisy = self.likelihood()
        self.model = exact_process(x, target, self.noisy, self.kernel(X.shape[1]))
        self.model = self.model.to(self.device, self.dtype)
        likelihood = ExactMarginalLogLikelihood(self.noisy, self.model)

        def losses(count: int, rounds: int) -> Iterator[Callable[[], Tensor]]:
            self.model.set_train_data(x[:count], target[:count], strict=False)
            for _ in range(rounds):
                yield lambda: -likelihood(self.model(x[:count]), target[:count])

        with only_cholesky():
            self.climb(losses(self.first, self.rounds))
            if len(x) > self.first:
                self.climb(losses(len(x), min(LAST, self.rounds)))
        return self

    def predict(self, X: np.ndarray) -> Prediction:
        with only_cholesky():
            return super().predict(X)


def only_cholesky() -> Any:
    """GPyTorch without conjugate gradients."""
    from gpytorch.settings import fast_computations

    return fast_computations(covar_root_decomposition=False, log_prob=False, solves=False)


def sparse_process(inducing: Tensor, kernel: Any) -> Any:
    from gpytorch.distributions import MultivariateNormal
    from gpytorch.means import ConstantMean
    from gpytorch.models import ApproximateGP
    from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

    class SparseProcess(ApproximateGP):
        def __init__(self) -> None:
            distribution = CholeskyVariationalDistribution(len(inducing))
            super().__init__(VariationalStrategy(self, inducing, distribution))
            self.mean, self.kernel = ConstantMean(), kernel

        def forward(self, x: Tensor) -> MultivariateNormal:
            return MultivariateNormal(self.mean(x), self.kernel(x))

    return SparseProcess()


def exact_process(x: Tensor, y: Tensor, likelihood: Any, kernel: Any) -> Any:
    from gpytorch.distributions import MultivariateNormal
    from gpytorch.means import ConstantMean
    from gpytorch.models import ExactGP

    class ExactProcess(ExactGP):
        def __init__(self) -> None:
            super().__init__(x, y, likelihood)
            self.mean, self.kernel = ConstantMean(), kernel

        def forward(self, x: Tensor) -> MultivariateNormal:
            return MultivariateNormal(self.mean(x), self.kernel(x))

    return ExactProcess()
