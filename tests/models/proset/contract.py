"""proset's part of the contract of all models."""

import lodim as ld
from contract.cases import Contract, N, bad

REFUSED = {
    "n_batches": (bad(n_batches=0), ld.ArgumentError, "n_batches must be an integer from 1"),
    "n_candidates": (bad(n_candidates=0.5), ld.ArgumentError, "n_candidates"),
    "lambda_w": (bad(lambda_w=-1), ld.ArgumentError, "lambda_w must be 0 or more"),
    "l1_ratio_v": (bad(l1_ratio_v=1.5), ld.ArgumentError, "l1_ratio_v must be between 0 and 1"),
    "l1_ratio_w": (bad(l1_ratio_w=-1), ld.ArgumentError, "l1_ratio_w must be between 0 and 1"),
    "loss": (bad(loss="absolute"), ld.ArgumentError, "squared, density"),
    "max_fraction": (bad(control={"max_fraction": 1.0}), ld.ArgumentError, "max_fraction"),
    "hard_share": (bad(control={"hard_share": 0.0}), ld.ArgumentError, "hard_share"),
    "max_rows": (bad(control={"max_rows": 0}), ld.ArgumentError, "max_rows"),
    "precision": (bad(control={"precision": "half"}), ld.ArgumentError, "float32, float64"),
    "tiny class": (
        bad(lambda d: d.assign(answer=["a", "a"] + ["b"] * (N - 2))), ld.DataError,
        "class 'a' has 2 rows.*needs at least 3",
    ),
    "two rows": (bad(lambda d: d[:2]), ld.DataError, "there are 2 rows.*needs at least 3"),
}  # fmt: skip
CONTRACT = Contract(
    cheap={"n_batches": 2, "threads": 1},
    long=("c ~ .", {"threads": 1, "lambda_v": 1e-5}),
    penalty="lambda_v",
    few_stages={"n_batches": 2},
    open={
        "threads": 1,
        "n_batches": None,
        "lambda_v": None,
        "control": {"max_iter": 30, "max_stages": 2},
    },
    drawn={"threads": 1, "lambda_v": 1e-4},
    plots=("weights", "map", "scatter", "surface", "shapley"),
    refused=REFUSED,
)
