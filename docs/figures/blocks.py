import numpy as np

from hck.hierarchy import HierarchicalKernel
from hck.kernels import Matern
from hck.plotting import plot_blocks

X = np.random.default_rng(0).uniform(size=(2000, 2))
K = HierarchicalKernel.build(Matern(0.3, nu=1.5), X, rank=32, leaf_size=130, generator=0)
plot_blocks(K.tree, rank=32)
