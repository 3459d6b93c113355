"""glm's part of the contract of all models."""

import lodim as ld
from contract.cases import Contract, bad

REFUSED = {
    "covariance": (bad(covariance="HC9"), ld.ArgumentError, "covariance must be one of nonrobust"),
    "cluster alone": (bad(covariance="cluster"), ld.ArgumentError, "needs clusters="),
    "clusters of HC3": (
        bad(covariance="HC3", clusters="arm"),
        ld.ArgumentError,
        "clusters= needs covariance='cluster'",
    ),
    "one cluster": (
        bad(lambda d: d.assign(g=1.0), clusters="g"),
        ld.ArgumentError,
        "at least two values",
    ),
    "unknown clusters": (bad(clusters="clinic"), ld.LodimError, "clinic"),
    "short clusters": (bad(clusters=[1, 2]), ld.DataError, r"shape \(2,\)"),
    "counts below 0": (
        bad(kind="gaussian", family="poisson"),
        ld.DataError,
        "family 'poisson' needs counts, 0 or more",
    ),
    "gamma of 0": (
        bad(lambda d: d.assign(answer=d["age"].fillna(50) - d["age"].min()), family="gamma"),
        ld.DataError,
        "family 'gamma' needs numbers above 0",
    ),
    "leverages of classes": (
        bad(kind="multinomial", covariance="HC3"),
        ld.ArgumentError,
        "covariance must be 'HC0', 'HC1' or clusters",
    ),
    "max_iter": (bad(control={"max_iter": 0}), ld.ArgumentError, "max_iter"),
    "diagnostic_rows": (bad(control={"diagnostic_rows": -1}), ld.ArgumentError, "diagnostic_rows"),
}
CONTRACT = Contract(
    cheap={},
    long=("c ~ .", {}),
    control={"max_iter": 30},
    lacks=("seed", "threads", "dtype", "standardize", "fraction"),
    drawn={},
    plots=("coefficients", "calibration"),
    refused=REFUSED,
    other_words={"unknown family": "gaussian, binomial, multinomial, poisson, gamma, tweedie"},
)
