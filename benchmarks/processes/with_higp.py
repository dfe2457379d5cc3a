"""higp's process: conjugate gradients with a preconditioner, and one lengthscale for all features."""

import math

import numpy as np

from processes.common import Options, Prediction


class Iterated:
    """Matérn-3/2, learned by steps of Adam, as its own `ezgpr_torch` does it; float32 fails on pol."""

    def __init__(self, options: Options, rate: float) -> None:
        self.rate, self.rounds, self.threads = rate, options.steps, options.threads
        self.history: list[float] = []

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Iterated":
        import higp
        import torch

        self.x, self.y = np.ascontiguousarray(X.T, dtype=np.float64), y.astype(np.float64)
        what = {"data": self.x, "label": self.y, "kernel_type": higp.Matern32Kernel}
        how = {"mvtype": higp.MatvecAuto, "afn_rank": 50, "afn_lfil": 0, "niter": 10, "nvec": 10, "seed": 42}
        problem = higp.gprproblem.setup(**what, **how, nthreads=self.threads, exact_gp=0)
        start = {"l": inverse_softplus(math.sqrt(len(self.x))), "f": inverse_softplus(1.0)}
        model = higp.GPRModel(problem, **start, s=inverse_softplus(0.1), dtype=torch.float64)
        higp.gpr_torch_minimize(model, torch.optim.Adam(model.parameters(), self.rate), maxits=self.rounds)
        self.parameters = model.get_params()
        return self

    def predict(self, X: np.ndarray) -> Prediction:
        import higp

        found = higp.gpr_prediction(
            data_train=self.x,
            label_train=self.y,
            data_prediction=np.ascontiguousarray(X.T, dtype=np.float64),
            kernel_type=higp.Matern32Kernel,
            gp_params=self.parameters,
            nthreads=self.threads,
            exact_gp=0,
            mvtype=higp.MatvecAuto,
            afn_rank=50,
            afn_lfil=0,
            niter=500,
            tol=1e-5,
        )
        return found.prediction_mean.astype(float), found.prediction_stddev.astype(float)  # with noise


def inverse_softplus(value: float) -> float:
    """What log(1 + exp(·)) makes the value of."""
    return math.log(math.expm1(value))
