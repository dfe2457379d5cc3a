"""Parameters of small models on disk."""

GIVEN = {"kernel": "gaussian", "lengthscale": 0.4, "alpha": 0.02, "rank": 16, "random_state": 0}
SMALL = {**GIVEN, "memory_budget": "1MB"}  # several branches
