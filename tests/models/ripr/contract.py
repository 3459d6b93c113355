"""ripr's part of the contract of all models."""

import lodim as ld
from contract.cases import Contract, bad

REFUSED = {
    "max_dim": (bad(max_dim=4), ld.ArgumentError, "max_dim must be an integer from 1 to 3"),
    "min_dim": (bad(min_dim=3, max_dim=2), ld.ArgumentError, "min_dim must be at most max_dim=2"),
    "k": (bad(k=0), ld.ArgumentError, "k must be an integer from 1"),
    "alpha": (bad(alpha=1.0), ld.ArgumentError, "alpha must be at least 0 and below 1"),
    "balanced": (bad(balanced=1), ld.ArgumentError, "balanced must be True or False"),
    "n_clusters": (bad(n_clusters=3), ld.ArgumentError, "without a response"),
    "max_views": (bad(max_views=0), ld.ArgumentError, "max_views"),
    "share": (bad(control={"share": 1.0}), ld.ArgumentError, "share must be"),
    "smooth": (bad(control={"smooth": -1}), ld.ArgumentError, "smooth must be 0 or more"),
    "order": (bad(order="arm"), ld.DataError, "order: column 'arm' must have numbers"),
    "nothing varies": (
        bad(lambda d: d.assign(age=1.0, arm="A", **{"dose mg": 2.0})), ld.DataError,
        "one feature must vary",
    ),
    "family of several": (
        bad(formula="answer + age ~ arm + w", family="gaussian"), ld.ArgumentError,
        "family needs a single response",
    ),
}  # fmt: skip
CONTRACT = Contract(
    cheap={"threads": 1},
    long=("~ . - c", {"threads": 1, "n_clusters": 40, "lambda_": 0.1}),
    penalty="lambda_",
    control={},
    open={"threads": 1},
    response_optional=True,
    keeps_missing=True,
    answers_all=lambda fit: fit.estimates.method == "vote",
    offset=False,
    lacks=("offset", "dtype"),
    drawn={"threads": 1, "lambda_": 0.01},
    plots=("view", "shares", "objective"),
    refused=REFUSED,
    other_words={
        "no rows left": "'age' is missing in every row",
        "control key": "tolerance.*'maxiter'",
    },
)
