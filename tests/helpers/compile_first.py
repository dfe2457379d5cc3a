"""Compiles what the tests use before they start: once, for both types of numbers, not in every process.

python tests/helpers/compile_first.py
"""

from multiprocessing import get_context


def compile_for(dtype):
    import numpy as np

    from hck import HCKGaussianProcessRegressor, HCKRegressor

    X = np.random.default_rng(0).uniform(size=(400, 3))
    given = {"rank": 16, "dtype": dtype, "jitter": 1e-4, "random_state": 0}
    for partition in ("random_projection", "pca"):
        model = HCKRegressor(lengthscale=0.5, alpha=0.01, partition=partition, **given).fit(X, X[:, 0])
        model.predict(X)
        model.partial_fit(X[:1], X[:1, 0]).predict(X)
    HCKGaussianProcessRegressor("matern32", max_iter=1, **given).fit(X, X[:, 0]).predict(X, return_std=True)


if __name__ == "__main__":
    context = get_context("spawn")
    processes = [context.Process(target=compile_for, args=(dtype,)) for dtype in ("float64", "float32")]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    raise SystemExit(max(abs(process.exitcode) for process in processes))
