"""
Strings, with a kernel of one's own
===================================

Points need not be vectors. Any positive definite function of two sets of them will do, and with
``partition="kernel"`` even the tree is cut by its values alone. Here points are strands of DNA.
"""

import os
from itertools import product

import matplotlib.pyplot as plt
import numpy as np

from hck import HCKClassifier, HCKKernelPCA
from hck.plotting import PALETTE, style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# Three families: a strand is a piece of its family's ancestor, with every fourth letter drawn anew.

rng = np.random.default_rng(0)
ancestors = rng.choice(list("ACGT"), (3, 90))
family = rng.integers(0, 3, 80 if FAST else 800)
start = rng.integers(0, 30, len(family))
letters = ancestors[family[:, None], start[:, None] + np.arange(60)]
letters = np.where(rng.uniform(size=letters.shape) < 0.25, rng.choice(list("ACGT"), letters.shape), letters)
strands = ["".join(row) for row in letters]

# %%
# The kernel counts words of three letters that two strands have in common (the spectrum kernel).

WORDS = ["".join(letters) for letters in product("ACGT", repeat=3)]


def shared_words(a, b):
    counts = [np.array([[text.count(word) for word in WORDS] for text in texts], float) for texts in (a, b)]
    left, right = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in counts)
    return left @ right.T


settings = {"kernel": shared_words, "partition": "kernel", "rank": 32, "random_state": 0}
half = len(strands) // 2
model = HCKClassifier(alpha=0.1, **settings).fit(strands[:half], family[:half])
x = HCKKernelPCA(2, **settings).fit_transform(strands)

# %%
# The first two kernel principal components, with nothing told about families, already tell them apart.

with style():
    fig, ax = plt.subplots(figsize=(5.2, 4.6))
    for k, marker in enumerate("osD"):
        ax.plot(*x[family == k].T, marker, color=PALETTE[k], alpha=0.75, mec="none", label=f"family {k + 1}")
    ax.set(xlabel="first component", ylabel="second component")
    ax.set_title(f"strands of DNA; classified: {model.score(strands[half:], family[half:]):.0%} right")
    ax.legend()
