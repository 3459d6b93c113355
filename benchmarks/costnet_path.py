"""Time of costnet's path over 100 penalties, against CVXPY and the peers that solve a part of it.

    python benchmarks/costnet_path.py [--adelie PYTHON] [--cvxpy SECONDS] [--out FOLDER]

n = 800 rows, 150 features: 30 base features with 4 derived from each (or each from two: "two
parents"), unit costs, 100 lambdas from lambda_max to a hundredth of it. Columns of the table:

case, loss   the graph ("tree", "two parents", "groups": 30 disjoint groups of 5, "lasso"), the loss
ms           milliseconds of lodim's whole path from the batch on: median of REPEATS after one
cvxpy_ms     the same path by CVXPY and Clarabel, as costnet/penalty/reference.py states it (rows
             compressed, norms vectorized, one parametrized program), its building included; where
             that would take longer than asked for, the time of `cvxpy_lambdas` penalties spread
             over the path is scaled to 100
ratio        cvxpy_ms / ms
above        largest excess of lodim's objective over CVXPY's at these penalties
gap          largest duality gap of lodim's path, in units of the null model's objective
peer, peer_ms, peer_above   a peer on the same path with its own default tolerance unless named:
             median time, and the largest excess of its objective over lodim's

Times wander on a shared machine: only figures of one run may be compared. All run on one thread.
adelie is run by its own interpreter. Needs the extra `bench`.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

from lodim import family as families  # noqa: E402
from lodim.design.batch import Batch  # noqa: E402
from lodim.engine import tiles  # noqa: E402
from lodim.models.costnet.penalty.groups import Groups  # noqa: E402
from lodim.models.costnet.penalty.reference import ConicSolver  # noqa: E402
from lodim.models.costnet.penalty.solvers import lambda_max, penalty_path  # noqa: E402
from lodim.prices.network import unfold  # noqa: E402

REPEATS = 9
N, BASE, DERIVED = 800, 30, 4
FIRST = 5  # lambdas by which CVXPY's time is guessed


def draw(two, seed=0):
    """X standardized, the parents of each column, and a score that 15 columns make."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((N, BASE)) @ (
        np.eye(BASE) + 0.3 * rng.standard_normal((BASE, BASE)) / np.sqrt(BASE)
    )
    columns, parents = list(B.T), [()] * BASE
    for i in range(BASE):
        for d in range(DERIVED):
            j = int(rng.choice(np.delete(np.arange(BASE), i)))
            a, b = B[:, i], B[:, j]
            if two:
                columns.append((a * b, np.abs(a + b), a - 0.5 * b**2, np.maximum(a, b))[d])
            else:
                noisy = np.tanh(a) + 0.3 * rng.standard_normal(N)
                columns.append((a**2, np.abs(a), noisy, np.maximum(a, 0.0))[d])
            parents.append((i, j) if two else (i,))
    X = np.column_stack(columns)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    w = np.zeros(X.shape[1])
    w[rng.choice(len(w), 15, replace=False)] = rng.standard_normal(15)
    return X, parents, X @ w, rng


def penalty_of(case, parents):
    """The Groups of a case."""
    p = len(parents)
    if case == "lasso":
        return Groups.weighted_lasso(np.ones(p))
    if case == "groups":
        own = [
            (i, *range(BASE + DERIVED * i, BASE + DERIVED * (i + 1))) for i in range(BASE)
        ]  # fmt: skip
        return Groups.from_network(
            unfold([str(i) for i in range(BASE)], np.ones(BASE), [()] * BASE, own)
        )
    return Groups.from_network(
        unfold([str(i) for i in range(p)], np.ones(p), parents, [(i,) for i in range(p)])
    )


def median_ms(work, repeats=REPEATS):
    """Milliseconds, after one call to warm up; and what the work returns."""
    out, seconds = work(), []
    for _ in range(repeats):
        start = time.perf_counter()
        out = work()
        seconds.append(time.perf_counter() - start)
    return 1e3 * float(np.median(seconds)), out


def by_cvxpy(batch, family, penalty, trace, limit):
    """CVXPY's time of the path, scaled up where it is long, and lodim's excess over it."""
    which = np.linspace(0, len(trace.lambdas) - 1, FIRST).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        build, solve = _cvxpy_seconds(batch, family, penalty, trace.lambdas[which])[:2]
        if build + solve / FIRST * len(trace.lambdas) <= limit:
            which = np.arange(len(trace.lambdas))
        build, solve, theirs = _cvxpy_seconds(batch, family, penalty, trace.lambdas[which])
    whole = build + solve / len(which) * len(trace.lambdas)
    return {
        "cvxpy_ms": 1e3 * whole, "cvxpy_lambdas": len(which),
        "above": float((trace.objective[which] - theirs.objective).max()),
    }  # fmt: skip


def _cvxpy_seconds(batch, family, penalty, lambdas):
    """Seconds for the program and its first solution, beyond one; for all solutions; and these."""
    start = time.perf_counter()
    penalty_path(batch, family, penalty, lambdas[:1], make_solver=ConicSolver)
    one = time.perf_counter() - start
    start = time.perf_counter()
    trace = penalty_path(batch, family, penalty, lambdas, make_solver=ConicSolver)
    all_ = time.perf_counter() - start
    each = (all_ - one) / (len(lambdas) - 1)
    return max(0.0, one - each), each * len(lambdas), trace


def objective(X, y, loss, penalty, lambdas, coef, intercept):
    """Objectives of coefficients (L, p)."""
    f = X @ coef.T + intercept
    y = y[:, None]
    half = 0.5 * (y - f) ** 2 if loss == "gaussian" else np.logaddexp(0.0, f) - y * f
    squares = coef[:, penalty.feature[penalty.member]] ** 2
    norms = np.sqrt(np.add.reduceat(squares, penalty.start[:-1], axis=1)) @ penalty.cost
    return half.mean(axis=0) + lambdas * norms


def by_scikit_learn(X, y, lambdas):
    from sklearn.linear_model import lasso_path

    centred = y - y.mean()
    ms, (_, coef, _) = median_ms(lambda: lasso_path(X, centred, alphas=lambdas, tol=1e-6))
    return "scikit-learn lasso_path, tol 1e-6", ms, coef.T, y.mean()


def by_skglm(X, y, lambdas):
    from skglm.datafits import QuadraticGroup
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupBCD
    from skglm.utils.data import grp_converter

    order = np.concatenate(
        [[i, *range(BASE + DERIVED * i, BASE + DERIVED * (i + 1))] for i in range(BASE)]
    )
    XF, centred = np.asfortranarray(X[:, order]), y - y.mean()
    indices, ptr = grp_converter(DERIVED + 1, X.shape[1])
    fit, price = QuadraticGroup(ptr, indices), WeightedGroupL2(1.0, np.ones(BASE), ptr, indices)
    solver = GroupBCD(tol=1e-6, max_iter=1000, fit_intercept=False)

    def work():
        w, Xw, out = np.zeros(X.shape[1]), np.zeros(N), np.zeros((len(lambdas), X.shape[1]))
        for i, lam in enumerate(lambdas):
            price.alpha = lam
            w = solver.solve(XF, centred, fit, price, w_init=w, Xw_init=Xw)[0]
            Xw = XF @ w
            out[i, order] = w
        return out

    ms, coef = median_ms(work, 3)
    return "skglm GroupBCD, tol 1e-6", ms, coef, y.mean()


ADELIE = """
import json, sys, time
import numpy as np, adelie as ad
d = np.load(sys.argv[1]); tol = float(sys.argv[2])
X, y, lambdas, order = np.asfortranarray(d["X"][:, d["order"]]), d["y"], d["lambdas"], d["order"]
start = np.arange(0, X.shape[1], int(d["size"]))
glm = ad.glm.gaussian(y) if d["loss"] == "gaussian" else ad.glm.binomial(y)
seconds = []
for _ in range(int(d["repeats"]) + 1):
    begin = time.perf_counter()
    end = ad.grpnet(X=X, glm=glm, groups=start, penalty=np.ones(len(start)), lmda_path=lambdas,
                    early_exit=False, tol=tol, progress_bar=False, n_threads=1)
    seconds.append(time.perf_counter() - begin)
coef = np.zeros((len(lambdas), X.shape[1]))
coef[:, order] = end.betas.toarray()
np.savez(sys.argv[1], coef=coef, intercept=end.intercepts)
print(json.dumps(1e3 * float(np.median(seconds[1:]))))
"""


def by_adelie(python, X, y, loss, lambdas, tol=1e-9):
    """adelie's group lasso on the raw matrix, in its own interpreter."""
    order = np.concatenate(
        [[i, *range(BASE + DERIVED * i, BASE + DERIVED * (i + 1))] for i in range(BASE)]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(
            path, X=X, y=y, lambdas=lambdas, order=order, size=DERIVED + 1, loss=loss,
            repeats=REPEATS,
        )  # fmt: skip
        done = subprocess.run(
            [python, "-c", ADELIE, path, str(tol)], check=True, capture_output=True, text=True
        )
        ms, found = json.loads(done.stdout.splitlines()[-1]), np.load(path)
        return f"adelie grpnet, tol {tol:g}", ms, found["coef"], found["intercept"]


def measure(case, loss, limit, adelie):
    """Rows of the table for one case: lodim and CVXPY, and a row more for each further peer."""
    X, parents, score, rng = draw(case == "two parents")
    spread = score / score.std()
    y = 2.0 * score + 1.4 * score.std() * rng.standard_normal(N)
    if loss == "binomial":
        y = (rng.random(N) < 1.0 / (1.0 + np.exp(-2.0 * spread))).astype(float)
    batch = Batch(tiles.pack(X), y, None, None, pd.RangeIndex(N), np.arange(N))
    family, penalty = families.make(loss, 2), penalty_of(case, parents)
    top = lambda_max(batch, family, penalty)
    lambdas = top * np.geomspace(1.0, 0.01, 100)
    ms, trace = median_ms(lambda: penalty_path(batch, family, penalty, lambdas, threads=1))
    row = {"case": case, "loss": loss, "ms": ms, "gap": trace.gap.max() / trace.null_deviance * 2.0}
    if limit > 0.0:
        row |= by_cvxpy(batch, family, penalty, trace, limit)
        row["ratio"] = row["cvxpy_ms"] / ms
    peers = []
    if case == "lasso" and loss == "gaussian":
        peers.append(by_scikit_learn(X, y, lambdas))
    if case == "groups" and loss == "gaussian":
        peers.append(by_skglm(X, y, lambdas))
    if case == "groups" and adelie:
        peers.append(by_adelie(adelie, X, y, loss, lambdas))
    rows = [row]
    for name, peer_ms, coef, intercept in peers:
        theirs = objective(X, y, loss, penalty, lambdas, coef, intercept)
        above = float((theirs - trace.objective).max())
        rows.append(row | {"peer": name, "peer_ms": peer_ms, "peer_above": above})
    return rows[1:] or rows


def machine():
    """The machine in words."""
    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((v.split(":")[1].strip() for v in lines if v.startswith("model name")), cpu)
    import cvxpy
    import numba

    versions = f"NumPy {np.__version__}, Numba {numba.__version__}, CVXPY {cvxpy.__version__}"
    return f"{cpu}, one thread; Python {platform.python_version()}, {versions}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adelie", default="", help="an interpreter that has adelie")
    parser.add_argument("--cvxpy", default=60.0, type=float, help="seconds for CVXPY a case")
    parser.add_argument("--only", default="", help="cases whose name and loss have this text")
    parser.add_argument("--out", default="benchmarks/results", type=Path)
    given = parser.parse_args()
    rows = []
    for case in ("tree", "two parents", "groups", "lasso"):
        for loss in ("gaussian", "binomial"):
            if given.only in f"{case} {loss}":
                rows += measure(case, loss, given.cvxpy, given.adelie)
                print(pd.Series(rows[-1]).to_string(), end="\n\n", flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    columns = [
        "case", "loss", "ms", "gap", "cvxpy_ms", "cvxpy_lambdas", "ratio", "above", "peer",
        "peer_ms", "peer_above",
    ]  # fmt: skip
    table = pd.DataFrame(rows).reindex(columns=columns)
    table.to_csv(given.out / "costnet_path.csv", index=False, float_format="%.4g")
    (given.out / "costnet_path.txt").write_text(machine() + "\n")
    print(table.to_string(float_format="{:.4g}".format), machine(), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
