"""Models of scikit-learn as baselines of a comparison, if that package is installed."""

from importlib.util import find_spec

import numpy as np
from threadpoolctl import threadpool_limits

from lodim.selection.tuning import FEW_ROWS

TREES = 500  # number of trees of a forest, as in R's randomForest
MIN_PROBABILITY = 1e-15  # smaller probabilities are raised to this before taking logarithms
COUNTS = {"loss": "poisson"}
LOSSES = {  # arguments of boosting by family; None is the quantile
    **dict.fromkeys(("poisson", "negative_binomial", "tweedie"), COUNTS),
    "gamma": {"loss": "gamma"},
    "quantile": {"loss": "quantile", "quantile": None},
    "huber": {"loss": "absolute_error"},
}
PEERS = ("boosting", "forest")


def available():
    """Return whether scikit-learn is installed."""
    return find_spec("sklearn") is not None


def scores(name, X, y, weights, new, n_classes, family, seed, threads):
    """Return linear predictors (m, K) of new rows by a scikit-learn model fitted to X (n, p), y.

    `name` is "boosting" or "forest"; `n_classes` is 0 if y are numbers."""
    estimator = _estimator(name, len(X), n_classes, family, seed, threads)
    with threadpool_limits(threads):
        estimator.fit(X, y, sample_weight=weights)
        p = estimator.predict_proba(new) if n_classes else estimator.predict(new)[:, None]
    if not n_classes:
        return p
    if name == "forest":
        share = np.bincount(y.astype(int), weights, n_classes)
        p = (TREES * p + share / share.sum()) / (TREES + 1)
    p = np.maximum(p, MIN_PROBABILITY)
    if family.name == "ordinal":
        return family.score(p)
    logs = np.log(p)
    return logs[:, 1:] - logs[:, :1] if n_classes == 2 else logs


def _estimator(name, n_rows, n_classes, family, seed, threads):
    from sklearn import ensemble

    kind = "Classifier" if n_classes else "Regressor"
    if name == "boosting":
        loss = {} if n_classes else LOSSES.get(family.name, {})
        loss = {k: family.quantile if v is None else v for k, v in loss.items()}
        return getattr(ensemble, f"HistGradientBoosting{kind}")(random_state=seed, **loss)
    forest = getattr(ensemble, f"RandomForest{kind}")
    jobs = 1 if n_rows <= FEW_ROWS else threads or -1
    return forest(TREES, random_state=seed, n_jobs=jobs)
