"""melm's part of the contract of all models."""

import numpy as np

import lodim as ld
from contract.cases import Contract, N, bad


class Dumb:
    """An estimator that tells no probabilities."""

    def fit(self, X, y):
        return self


class Vote(Dumb):
    """An estimator that takes no weights: class shares."""

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


REFUSED = {
    "number": (bad(kind="gaussian"), ld.DataError, "'answer' is numeric.*family='multinomial'"),
    "k = 0": (bad(k=0), ld.ArgumentError, "k must be an integer from 1"),
    "k too large": (bad(k=5, missing="drop"), ld.DataError, "features that vary, 3, not 5"),
    "k above rank": (
        bad(lambda d: d.assign(arm=np.resize(list("ABC"), N)), k=5, missing="drop"), ld.DataError,
        "k must be at most 4",
    ),
    "gamma = 0": (bad(gamma=0), ld.ArgumentError, "gamma must be a positive number"),
    "covariance": (bad(covariance="robust"), ld.ArgumentError, "shrunk, ledoit-wolf"),
    "divergence": (bad(divergence="max"), ld.ArgumentError, "sum, mean"),
    "entropy": (bad(entropy="none"), ld.ArgumentError, "max, min"),
    "entropy of classes": (bad(entropy="min"), ld.ArgumentError, "without a response"),
    "n_starts": (bad(n_starts=0), ld.ArgumentError, "n_starts"),
    "classifier": (bad(classifier="svm"), ld.ArgumentError, "must be 'kde' or an estimator"),
    "no estimator": (bad(classifier=7), ld.ArgumentError, "estimator with fit"),
    "class of estimators": (bad(classifier=Vote), ld.ArgumentError, r"instance.*Vote\(\)"),
    "no probabilities": (bad(classifier=Dumb()), ld.ArgumentError, "Dumb must have predict_proba"),
    "no weights": (
        bad(classifier=Vote(), weights="w"), ld.ArgumentError, "Vote takes no weights",
    ),
    "prior": (bad(control={"prior": "flat"}), ld.ArgumentError, "shares, equal"),
    "prior of an estimator": (
        bad(classifier=Vote(), control={"prior": "equal"}), ld.ArgumentError, "needs classifier=",
    ),
    "offset": (bad(offset="o"), ld.ArgumentError, "cannot use an offset"),
    "tiny class": (
        bad(lambda d: d.assign(answer=["a", "a"] + ["b"] * (N - 2))), ld.DataError,
        "class 'a' must have at least 3.*not 2",
    ),
    "no feature": (
        bad(lambda d: d.assign(age=1.0, arm="A", **{"dose mg": 2.0})), ld.DataError, "must vary",
    ),
    "given away": (
        bad(lambda d: d.assign(age=(d["answer"] == "sick").astype(float)), formula="answer ~ age",
            k=1),
        ld.DataError, "determines the class exactly",
    ),
    "for classes": (
        bad(formula="~ . - w - o - answer"), ld.ArgumentError, "gamma needs",
    ),
}  # fmt: skip
CONTRACT = Contract(
    cheap={"gamma": 1.0, "n_starts": 3, "threads": 1},
    long=("c ~ .", {"threads": 1, "gamma": 1.0, "n_starts": 12}),
    penalty="gamma",
    penalties=(0.2, 1.0, 4.0),
    few_stages={"n_starts": 3, "k": 1},
    open={"threads": 1, "n_starts": 3, "control": {"max_iter": 30}},
    classes_only=True,
    response_optional=True,
    offset=False,
    drawn={"threads": 1, "gamma": 1.0, "n_starts": 2},
    plots=("view", "loadings", "starts"),
    refused=REFUSED,
)
