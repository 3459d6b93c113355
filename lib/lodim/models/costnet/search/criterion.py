"""Criteria by which models of a search are compared: deviance plus a penalty per coefficient.

Without a penalty, the best model fits noise; with a large one, it misses weak features. On the data
set `monitoring`, models by Hannan and Quinn's criterion ("hq"), or with a larger penalty, are at
least as good as the lasso's models of the same price (benchmarks/costnet_rules.py)."""

from dataclasses import dataclass

import numpy as np

from lodim.family import has_classes

CRITERIA = ("cv", "deviance", "aic", "hq", "bic", "ebic")
DEFAULT = "cv"
SEARCH = "hq"  # criterion of searches for models that cross-validation compares
MOST_OF_CLASSES = 100  # most coefficients of several classes in these searches
PERFECT = 1e-12  # share of the null deviance below which a numeric response is fitted exactly


@dataclass(frozen=True)
class Criterion:
    """Criterion by which models are compared; lower is better.

    It is n log(deviance) for numbers, n deviance for classes, plus charge times df for df
    coefficients. Above `max_df` coefficients it is infinite.

    The charge for n rows and p columns is 0 for "deviance" and 2 for "aic".
    It is 2 log log n for "hq" (Hannan and Quinn 1979) and log n for "bic".
    For "ebic" (Chen and Chen 2008) it is the larger of log n and 2 log p."""

    n: float
    max_df: int
    charge: float  # per coefficient
    logarithmic: bool  # whether the response is numeric
    floor: float  # smallest deviance that counts, since its logarithm is taken

    @classmethod
    def from_data(cls, name, data, null_deviance, p):
        """Return the Criterion called `name`, such as "bic", for the rows `data` and p columns.

        For "cv" it is "hq", with fewer coefficients allowed for several classes: the search uses
        it to find models, which cross-validation then compares.
        null_deviance : deviance of the model without columns"""
        n = data.total_weight
        hq, bic = 2.0 * np.log(np.log(max(n, 3))), np.log(n)
        # 2 gamma log p = 2 log p - log n, so that "ebic" is the larger of log n and 2 log p.
        ebic = max(bic, 2.0 * np.log(max(p, 1)))
        charge = {"deviance": 0.0, "aic": 2.0, "hq": hq, "bic": bic, "ebic": ebic}[
            SEARCH if name == "cv" else name
        ]
        max_df = min(data.n_positive // 2, data.n_positive - 2)
        if name == "cv" and data.df_per_column > 1:
            max_df = min(max_df, MOST_OF_CLASSES)
        numeric = not has_classes(data.family)
        return cls(n, max_df, float(charge), numeric, max(PERFECT * null_deviance, 1e-300))

    def __call__(self, deviance, df):
        """Return the criterion of models with a deviance and a number `df` of coefficients.

        df is the rank of a model's columns (times K - 1 for K classes)."""
        if self.logarithmic:
            deviance = np.log(np.maximum(deviance, self.floor))
        value = self.n * deviance + self.charge * df
        return np.where((df > self.max_df) & (df > 0), np.inf, value)
