"""Agreement of two classifications of the same rows."""

import numpy as np
import pandas as pd


def kappa(a, b):
    """Cohen's kappa of two classifications of the same rows; those that lack one are left out."""
    known = ~(pd.isna(a) | pd.isna(b))
    a, b = a[known], b[known]
    if not len(a):
        return np.nan
    observed = (a == b).mean()
    chance = sum((a == c).mean() * (b == c).mean() for c in set(a) | set(b))
    return 1.0 if chance == 1.0 else float((observed - chance) / (1.0 - chance))
