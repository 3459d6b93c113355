"""gbmap's part of the contract of all models."""

import numpy as np

import lodim as ld
from contract.cases import Contract, bad

REFUSED = {
    "m = 0": (bad(m=0), ld.ArgumentError, "m must be an integer from 1"),
    "m = 2.5": (bad(m=2.5), ld.ArgumentError, "m must be an integer"),
    "m true": (bad(m=True), ld.ArgumentError, "m must be"),
    "beta = 0": (bad(beta=0), ld.ArgumentError, "beta must be a positive"),
    "beta nan": (bad(beta=np.nan), ld.ArgumentError, "beta"),
    "l1_ratio": (bad(l1_ratio=1.5), ld.ArgumentError, "l1_ratio must be between 0 and 1"),
    "activation": (bad(activation="relu"), ld.ArgumentError, "softplus, identity"),
    "n_starts": (bad(n_starts=0), ld.ArgumentError, "n_starts"),
    "max_iter": (bad(control={"max_iter": 0}), ld.ArgumentError, "max_iter"),
    "tol": (bad(control={"tol": -1}), ld.ArgumentError, "tol"),
    "intercept": (bad(control={"penalize_intercept": 1}), ld.ArgumentError, "penalize_intercept"),
}
CONTRACT = Contract(
    cheap={"m": 3, "lambda_": 0.1, "threads": 1},
    long=("c ~ .", {"threads": 1, "m": 32, "lambda_": 0.1, "n_starts": 1}),
    penalty="lambda_",
    few_stages={"m": 2},
    open={"threads": 1, "control": {"max_iter": 30, "max_stages": 2}},
    drawn={"threads": 1, "m": 2, "lambda_": 0.01},
    plots=("loss", "effects", "local", "embedding", "drift"),
    refused=REFUSED,
)
