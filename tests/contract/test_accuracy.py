"""Default fits on real data: at least as good as what every analyst tries first (ANCHORS.md).

50/50 splits by `default_rng(seed).permutation`, first half to train. Each gate is the better of the
two published columns less one standard error of it, as a mean over the seeds.
"""

import numpy as np
import pandas as pd
import pytest

import lodim as ld

pytestmark = pytest.mark.long

SEEDS = range(3)
LARGER = range(2)  # for data whose default fit takes seconds: the gates have room


def halves(frame, seed):
    order = np.random.default_rng(seed).permutation(len(frame))
    half = len(frame) // 2
    return frame.iloc[order[:half]], frame.iloc[order[half:]]


def dummies(frame, response):
    """Complete rows with an indicator for each category, as in the published figures."""
    frame = frame.dropna()
    return pd.get_dummies(frame.drop(columns=response), dtype=float).assign(
        **{response: frame[response]}
    )


def fits(frame, response, seeds=SEEDS, **arguments):
    """Evaluation on the second half of a fit to the first, a row a seed."""
    rows = []
    for seed in seeds:
        train, test = halves(frame, seed)
        fit = ld.gbmap(f"{response} ~ .", train, seed=seed, **arguments)
        rows.append(fit.evaluate(test))
    return pd.concat(rows, ignore_index=True)


@pytest.mark.parametrize(
    "name, response, gate, seeds",
    [
        # Better of gbmap (authors) and OLS, less one standard error.
        ("autompg", "mpg", 0.814 - 0.005, SEEDS),
        ("concrete", "strength", 0.857 - 0.004, LARGER),
        ("wine_red", "quality", 0.344 - 0.011, LARGER),
    ],
)
def test_regression(name, response, gate, seeds):
    frame = dummies(ld.data(name), response)
    r2 = fits(frame, response, seeds)["dev_ratio"]
    assert r2.mean() >= gate, r2.tolist()
    ols = {"m": 1, "lambda_": 1e-6, "activation": "identity"}
    linear = fits(frame, response, seeds, **ols)["dev_ratio"]
    assert (r2 >= linear - 0.01).all(), (r2.tolist(), linear.tolist())  # on every split


def check_classes(frame, response, accuracy, log_loss, seeds):
    out = fits(dummies(frame, response), response, seeds)
    assert out["accuracy"].mean() >= accuracy, out["accuracy"].tolist()
    # No standard error is published for the log-loss: a spread of .02 over splits is usual.
    assert out["log_loss"].mean() <= log_loss + 0.02, out["log_loss"].tolist()


@pytest.mark.parametrize(
    "name, response, accuracy, log_loss, seeds",
    [
        # Logistic regression's columns: it is the better one on each of these.
        ("german_credit", "credit_risk", 0.740 - 0.006, 0.544, LARGER),
        ("breast_cancer", "diagnosis", 0.971 - 0.004, 0.090, SEEDS),
    ],
)
def test_classification(name, response, accuracy, log_loss, seeds):
    check_classes(ld.data(name), response, accuracy, log_loss, seeds)


def test_classification_of_data_that_are_not_shipped(pima):
    check_classes(pima, "diabetes", 0.769 - 0.009, 0.499, SEEDS)
