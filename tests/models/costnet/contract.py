"""costnet's part of the contract of all models."""

import lodim as ld
from contract.cases import Contract, bad

REFUSED = {
    "costs": (bad(costs={"age": 1}), ld.ArgumentError, "costs lack 'dose mg', 'arm'"),
    "negative cost": (bad(costs={"age": -1}), ld.ArgumentError, "'age' must be a number, 0 to"),
    "misspelt cost": (
        bad(costs={"ages": 1, "dose mg": 1, "arm": 1}), ld.ArgumentError, "'ages' is neither",
    ),
    "unknown name": (bad(depends_on={"arm": "ages"}), ld.ArgumentError, "did you mean 'age'"),
    "circle": (
        bad(depends_on={"arm": "age", "age": "arm"}), ld.ArgumentError, "age -> arm -> age",
    ),
    "series": (
        bad(alternatives={"age": ["arm"]}), ld.ArgumentError, "'age' is also a column",
    ),
    "budget < 0": (bad(budget=-1), ld.ArgumentError, "budget must be 0 or more"),
    "budget text": (bad(budget="all"), ld.ArgumentError, "budget must be 0 or more"),
    "budget and lambda_": (bad(lambda_=0.1), ld.ArgumentError, "either a budget or lambda_"),
    "n_lambda and lambda_": (
        bad(lambda_=0.1, budget=None, n_lambda=5), ld.ArgumentError, "n_lambda needs a search",
    ),
    "rules and lambda_": (
        bad(lambda_=0.1, budget=None, rules="lasso"), ld.ArgumentError, "rules needs a search",
    ),
    "criterion and lambda_": (
        bad(lambda_=0.1, budget=None, control={"criterion": "bic"}), ld.ArgumentError,
        "criterion needs a search",
    ),
    "n_lambda and lambdas": (
        bad(lambdas=[0.1], n_lambda=5), ld.ArgumentError, "n_lambda needs lambdas=None",
    ),
    "rules": (bad(rules="best"), ld.ArgumentError, "group, lasso, greedy"),
    "l1_ratio": (bad(l1_ratio=0), ld.ArgumentError, "l1_ratio must be above 0, and at most 1"),
    "relax": (bad(relax=2), ld.ArgumentError, "relax must be between 0 and 1"),
    "dependents": (bad(dependents="none"), ld.ArgumentError, "must be one of all, direct"),
    "solver": (bad(solver="lbfgs"), ld.ArgumentError, "solver must be one of auto, cvxpy"),
    "n_lambda": (bad(n_lambda=1), ld.ArgumentError, "n_lambda"),
    "criterion": (
        bad(control={"criterion": "cp"}), ld.ArgumentError, "deviance, aic, hq, bic, ebic",
    ),
    "max_iter": (bad(control={"max_iter": 0}), ld.ArgumentError, "max_iter"),
    "tol": (bad(control={"tol": 0}), ld.ArgumentError, "tol"),
    "network": (bad(control={"network": 1}), ld.ArgumentError, "network"),
}  # fmt: skip
CONTRACT = Contract(
    cheap={"budget": 3, "threads": 1},
    long=(
        "c ~ .",
        {"threads": 1, "budget": 45, "rules": "greedy", "control": {"criterion": "deviance"}},
    ),
    penalty="lambda_",
    open={"threads": 1, "control": {"max_iter": 30}},
    drawn={"threads": 1, "n_lambda": 15},
    plots=("cost", "path", "graph"),
    refused=REFUSED,
)
