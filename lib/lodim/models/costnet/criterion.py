"""What a ladder's models are compared by: their deviance, with a price on every coefficient.

By the deviance alone whatever costs nothing more is used, and noise is fitted. Mean deviance of
held-out rows over 80 data sets of `monitoring` (four graphs, 20 seeds; the noise alone has .25) of
the model that a ladder of all rules sells for some cost, by criterion:

    cost        4      10      20      60
    deviance  .4310   .2676   .2642   .2889
    aic       .4310   .2673   .2623   .2737
    bic       .4314   .2659   .2544   .2545
    ebic      .4317   .2661   .2534   .2534     the default
    (lasso    .5187   .3216   .2702   .2777)    the refitted weighted lasso by deviance

benchmarks/costnet_rules.py prints these for each graph. For two classes, which say less, cheaper
charges are ahead at middle costs (stars, cost 10: aic .967, bic .968, ebic .974, lasso 1.004), and
aic is behind later (cost 20: 1.012, .971, .975, 1.006). Of 10,000 columns BIC lets dozens in by
chance, and "ebic" does not.
"""

from dataclasses import dataclass

import numpy as np

CRITERIA = ("deviance", "aic", "hq", "bic", "ebic")
DEFAULT = "ebic"
PERFECT = 1e-12  # share of the null deviance below which a numeric response is fitted exactly


@dataclass(frozen=True)
class Criterion:
    """n log(deviance) for a numeric response, n deviance for classes, + charge times df.

    Infinite above `most` coefficients: near as many as rows they fit anything.

    charge : 0 ("deviance"), 2 ("aic"), log n ("bic") or log n + 2 gamma log p ("ebic") for each
    coefficient, of n rows and p columns; gamma = 1 - log n / (2 log p), at least 0, is the least
    that is consistent (Chen and Chen 2008), and leaves BIC where p <= sqrt(n)
    """

    rows: float
    most: int
    charge: float
    logarithmic: bool
    least: float

    @classmethod
    def of(cls, name, training, null_deviance, p):
        """The criterion of a name for the rows of a Training and p columns to choose from."""
        n, counted = training.size, training.counted
        # 2 gamma log p = 2 log p - log n, so that "ebic" is the larger of log n and 2 log p.
        charge = {
            "deviance": 0.0, "aic": 2.0, "hq": 2.0 * np.log(np.log(max(n, 3))), "bic": np.log(n),
            "ebic": max(np.log(n), 2.0 * np.log(max(p, 1))),
        }[name]  # fmt: skip
        gaussian = training.family.name == "gaussian"
        most = min(counted // 2, counted - 2)
        return cls(n, most, float(charge), gaussian, max(PERFECT * null_deviance, 1e-300))

    def __call__(self, deviance, df):
        """Of mean deviances and numbers of coefficients, arrays or numbers; lower is better."""
        if self.logarithmic:
            deviance = np.log(np.maximum(deviance, self.least))
        value = self.rows * deviance + self.charge * df
        return np.where((df > self.most) & (df > 0), np.inf, value)
