"""What the estimators of `lodim.sklearn` add to a call of the model function.

    python benchmarks/estimators.py [--repeats 30]

Least processor time of several calls, in milliseconds, of the estimator and of the function in the
same run: `adds_ms` is their difference.
"""

import argparse
import time

import numpy as np
import pandas as pd

import lodim as ld
import lodim.sklearn as estimators

SIZES = [(200, 10), (5000, 30)]


def least(call, repeats):
    """Least processor time of a call, in milliseconds."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def compare(n, p, repeats):
    """Rows of times: fit and predict of a linear and a logistic model."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, p)), columns=[f"x{j}" for j in range(p)])
    noisy = X["x0"] + rng.normal(size=n)
    for estimator, family, y, answer in (
        (estimators.GlmRegressor(), "gaussian", noisy, "response"),
        (estimators.GlmClassifier(), "binomial", (noisy > 0).astype(int), "class"),
    ):
        data = X.assign(y=y)
        fit = ld.glm("y ~ .", data, family=family)
        estimator.fit(X, y)
        calls = {
            "fit": (
                lambda e=estimator, y=y: e.fit(X, y),
                lambda d=data, f=family: ld.glm("y ~ .", d, family=f),
            ),
            "predict": (
                lambda e=estimator: e.predict(X),
                lambda f=fit, a=answer: f.predict(X, a),
            ),
        }
        for verb, (of_estimator, of_function) in calls.items():
            one, other = least(of_estimator, repeats), least(of_function, repeats)
            yield {
                "estimator": type(estimator).__name__, "n": n, "p": p, "call": verb,
                "estimator_ms": one, "function_ms": other, "adds_ms": one - other,
            }  # fmt: skip


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    args = parser.parse_args()
    rows = [row for n, p in SIZES for row in compare(n, p, args.repeats)]
    print(pd.DataFrame(rows).round(2).to_string(index=False))


if __name__ == "__main__":
    main()
