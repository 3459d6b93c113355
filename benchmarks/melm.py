"""melm's search beside a straightforward NumPy code, its covariances, and many rows.

    python benchmarks/melm.py speed [--out FILE]
    python benchmarks/melm.py covariances [--data NAME ...] [--shared FOLDER] [--out FILE]
    python benchmarks/melm.py large [--rows 1000000] [--k 1 2 3] [--out FILE]

`speed`: one value and gradient, and searches from the same starts, against the formulas of Sec. 4
written with array expressions and SciPy's L-BFGS-B; and what whitening saves.
`covariances`: balanced accuracy of held-out rows by the covariance of `ld.melm`, at three gammas.
`large`: the approximation's time and error.
"""

import argparse
import itertools
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold

import lodim as ld
from lodim.engine.blocks import single_blas
from lodim.models.melm.search import search
from lodim.models.melm.search.divergence import Divergence, shares
from lodim.models.melm.search.fourier import Approximation
from lodim.models.melm.search.sample import Sample, bandwidths
from lodim.models.melm.search.search import Plan, search_manifold
from lodim.models.melm.search.whitening import Basis

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
NAMES = (
    "australian", "breast_cancer_wisconsin", "pima_diabetes", "fourclass", "ionosphere",
    "liver_disorders", "sonar", "wine", "breast_cancer",
)  # fmt: skip
GAMMAS = (0.5, 1.0, 2.0)
COVARIANCES = ("empirical", "shrunk", "pooled", "ledoit-wolf")
ONE = np.zeros(1, np.int64)
# Data of `speed`, and how many starts the slow code runs.
CASES = [("wine", 17), ("breast_cancer", 2), ("synthetic", 1)]


def standardized(X):
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def synthetic(n=1000, p=20, seed=0):
    """Two classes that differ along three of p mixed directions, in mean and in shape."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, p))
    X[:, 0] += 1.5 * y * np.sign(rng.normal(size=n))
    X[:, 1] *= np.where(y == 1, 2.0, 1.0)
    X[:, 2] += y
    return X @ rng.normal(size=(p, p)), y


def data(name, folder=SHARED, raw=False):
    """Features that vary, standardized unless asked for raw, and classes."""
    if name in ("wine", "breast_cancer"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    elif name == "synthetic":
        X, y = synthetic()
    else:
        frame = pd.read_csv(folder / f"{name}.csv").dropna()
        X, y = frame.iloc[:, :-1], np.unique(frame.iloc[:, -1], return_inverse=True)[1]
        X = X.drop(columns="sample_code_number", errors="ignore").to_numpy(float)
    return (X[:, X.std(axis=0) > 0] if raw else standardized(X)), y


# Speed -------------------------------------------------------------------------------------------


class Straightforward:
    """The formulas of Sec. 4 for two classes, in array expressions."""

    def __init__(self, X, y, k, gamma=1.0):
        self.groups, self.k, self.gamma = [X[y == c] for c in (0, 1)], k, gamma
        self.shape = (X.shape[1], k)

    def potential(self, a, b, V):
        A, B, k = self.groups[a], self.groups[b], self.k
        sigma = [
            (self.gamma * (4 / (k + 2)) ** (1 / (k + 4)) * len(G) ** (-1 / (k + 4))) ** 2
            * np.cov(G.T, bias=True)
            for G in (A, B)
        ]  # fmt: skip
        Sigma = sigma[0] + sigma[1]
        form = V.T @ Sigma @ V
        S = np.linalg.inv(form)
        phi = 1.0 / ((2 * np.pi) ** (k / 2) * np.sqrt(np.linalg.det(form)) * len(A) * len(B))
        w = (A[:, None] - B[None]).reshape(-1, A.shape[1])
        wV = w @ V
        psi = np.exp(-0.5 * np.einsum("ni,ij,nj->n", wV, S, wV))
        wwVS = (w * psi[:, None]).T @ (wV @ S)
        slope = -phi * (wwVS - Sigma @ V @ S @ V.T @ wwVS) - psi.sum() * phi * Sigma @ V @ S
        return phi * psi.sum(), slope

    def __call__(self, v):
        """Minus the divergence and its gradient at V flat."""
        V = v.reshape(self.shape)
        value, gradient = 0.0, 0.0
        for a, b, share in ((0, 0, 1.0), (1, 1, 1.0), (0, 1, -2.0)):
            ip, slope = self.potential(a, b, V)
            value, gradient = value + share * np.log(ip), gradient + share * slope / ip
        return -value, -gradient.ravel()


def best_of(function, seconds=1.0):
    """Shortest time of a call."""
    best, end = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < end or best == np.inf:
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


class Counted:
    """An objective that counts its evaluations."""

    def __init__(self, objective):
        self.objective, self.count = objective, 0
        self.l1, self.precision, self.scaled = objective.l1, objective.precision, objective.scaled
        self.potentials, self.error = objective.potentials, objective.error

    def __call__(self, theta, active):
        self.count += len(active)
        return self.objective(theta, active)


def evaluations(X, y, plan):
    """Evaluations of a search, and the divergences of its starts."""
    make, counted = search.make_objective, []

    def watched(*args, **options):
        counted.append(Counted(make(*args, **options)))
        return counted[-1]

    search.make_objective = watched
    end = search_manifold(X, y, np.ones(len(y)), plan)
    search.make_objective = make
    return counted[0].count, end


def speed_of(name, n_naive):
    """A row of the table of speed; the slow code runs the first n_naive starts alone."""
    X, y = data(name)
    y = np.minimum(y, 1)  # of wine, the first class against the others
    basis = Basis.from_rows(X, y, np.ones(len(y)))
    sample = Sample.from_rows(X, y, np.ones(len(y)), basis)
    objective = Divergence(sample, shares(sample.size), bandwidths(sample.size, 2), 2)
    theta = search.starting_projections(sample, basis, Plan())[0].reshape(17, -1)
    naive = Straightforward(basis.coordinates(X).T, y, 2)
    value, gradient = objective(theta[:1], ONE)
    slow_value, slow_gradient = naive(theta[0])
    slow = best_of(lambda: naive(theta[0]))
    fast = best_of(lambda: objective(theta, np.arange(17))) / 17
    start = time.perf_counter()
    count, end = evaluations(X, y, Plan())
    whole = time.perf_counter() - start
    start = time.perf_counter()
    slow_ends = [
        minimize(naive, theta[i], jac=True, method="L-BFGS-B",
                 options={"ftol": 1e-9, "gtol": 1e-6, "maxiter": 500}) for i in range(n_naive)
    ]  # fmt: skip
    slow_whole = (time.perf_counter() - start) * 17 / n_naive
    penalized, with_penalty = evaluations(X, y, Plan(penalty=True))
    divergences = np.array([-e.fun for e in slow_ends])
    return {
        "data": name, "n": len(y), "p": X.shape[1], "numpy_ms": 1e3 * slow, "lodim_ms": 1e3 * fast,
        "ratio": slow / fast, "value_off": abs(value[0] - slow_value),
        "gradient_off": np.abs(gradient[0] - slow_gradient).max(), "numpy_starts": n_naive,
        "numpy_17_s": slow_whole, "lodim_17_s": whole, "ratio_17": slow_whole / whole,
        "numpy_best": divergences.max(), "lodim_best_of_same": end.divergences[:n_naive].max(),
        "lodim_best": end.divergence, "evaluations": count, "evaluations_penalty": penalized,
        "share": count / penalized, "penalty_best": with_penalty.divergence,
    }  # fmt: skip


def speed(asked):
    with single_blas():
        speed_of("wine", 1)  # compile
        rows = [speed_of(*case) for case in CASES]
    return pd.DataFrame(rows)


# Covariances ------------------------------------------------------------------------------------


def of_covariance(X, y, covariance, gamma):
    """Mean balanced accuracy of held-out rows, five folds, classes of equal priors."""
    df, scores = pd.DataFrame(X).add_prefix("x").assign(y=y.astype(str)), []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        fit = ld.melm(
            "y ~ .", df.iloc[train], gamma=gamma, covariance=covariance, n_starts=9,
            control={"calibrate": False, "prior": "equal"},
        )  # fmt: skip
        scores.append(fit.evaluate(df.iloc[test])["balanced_accuracy"][0])
    return np.mean(scores)


def covariances(asked):
    rows = []
    for name, covariance in itertools.product(asked.data, COVARIANCES):
        X, y = data(name, asked.shared)
        by_gamma = {f"gamma_{g:g}": of_covariance(X, y, covariance, g) for g in GAMMAS}
        mean = np.mean(list(by_gamma.values()))
        rows.append({"data": name, "covariance": covariance, **by_gamma, "mean": mean})
    return pd.DataFrame(rows)


# Many rows ---------------------------------------------------------------------------------------


def large(asked):
    rows = []
    for k in asked.k:
        X, y = synthetic(asked.rows)
        start = time.perf_counter()
        end = search_manifold(X, y, np.ones(len(y)), Plan(k=k, threads=asked.threads))
        whole = time.perf_counter() - start
        basis = Basis.from_rows(X, y, np.ones(len(y)))
        sample = Sample.from_rows(X, y, np.ones(len(y)), basis)
        near = Approximation(
            sample, shares(sample.size), bandwidths(sample.size, k), k, asked.threads
        )
        theta = basis.of_directions(end.V).reshape(1, -1)
        each = best_of(lambda near=near, theta=theta: near(theta, ONE), 3.0)
        rows.append({
            "rows": asked.rows, "p": X.shape[1], "k": k, "threads": asked.threads,
            "search_s": whole, "evaluation_s": each, "divergence": end.divergence,
            "error": end.error,
        })  # fmt: skip
    return pd.DataFrame(rows)


WAYS = {"speed": speed, "covariances": covariances, "large": large}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=list(WAYS))
    parser.add_argument("--data", nargs="+", default=NAMES)
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--k", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    table = WAYS[asked.what](asked)
    print(table.to_csv(index=False, float_format="%.5g"))
    if asked.out:
        table.to_csv(asked.out, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
