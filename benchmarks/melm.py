"""melm's search compared with a straightforward NumPy code, its covariances, and many rows.

    python benchmarks/melm.py speed [--out FILE]
    python benchmarks/melm.py covariances [--data NAME ...] [--shared FOLDER] [--out FILE]
    python benchmarks/melm.py large [--rows 60000] [--shared FOLDER] [--out FILE]
    python benchmarks/melm.py few [--data NAME ...] [--splits 3] [--shared FOLDER] [--out FILE]

`speed`: one value and gradient, and searches from the same starts, against the formulas of Sec. 4
written with array expressions and SciPy's L-BFGS-B.
`covariances`: balanced accuracy of held-out rows by the covariance of `ld.melm`, at three gammas.
`large`: many rows, by the size of the sample on which the search refines its best results:
balanced accuracy on 20,000 other rows (of higgs half of all) with its standard error, log-loss, and
processor time of `ld.melm` with gamma 1 and one thread.
`few`: the default call where rows are few for the features, from 100 rows a feature to a seventh of
one: accuracy on at most 500 new rows beside LDA with shrunk covariances, alone (`lda`) and as a
plane with five nearest neighbours (`plane`). `se` is the binomial standard error of the plane's
accuracy on the new rows of one split, `gap` melm less the plane, `spread` the standard error of the
gap by how splits differ. Classes of the synthetic sets are normal with one covariance: of features
in a row that correlate by .8 with the next ("chain"), that share three factors ("factors"), or
without correlation, twenty classes of three rows ("twenty").
"""

import argparse
import itertools
import time
from pathlib import Path

import numpy as np
import pandas as pd
from held_out import of_lodim, of_peer, sets
from scipy.optimize import minimize
from sklearn import datasets
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import lodim as ld
from lodim.engine.blocks import single_blas
from lodim.models.melm import search
from lodim.models.melm.divergence import Divergence, shares
from lodim.models.melm.search import Plan, search_gammas
from lodim.models.melm.whitening import Basis, Sample, bandwidths

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
NAMES = (
    "australian", "breast_cancer_wisconsin", "pima_diabetes", "fourclass", "ionosphere",
    "liver_disorders", "sonar", "wine", "breast_cancer",
)  # fmt: skip
GAMMAS = (0.5, 1.0, 2.0)
COVARIANCES = (("shrunk", 1.0), ("shrunk", 0.0), ("ledoit-wolf", 1.0))  # with shrinkage factors
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
        self.potentials = objective.potentials

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
    end = search_gammas(X, y, np.ones(len(y)), plan, (plan.gamma,))[plan.gamma]
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
    naive = Straightforward((X - basis.mean) @ basis.into, y, 2)
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
    divergences = np.array([-e.fun for e in slow_ends])
    return {
        "data": name, "n": len(y), "p": X.shape[1], "numpy_ms": 1e3 * slow, "lodim_ms": 1e3 * fast,
        "ratio": slow / fast, "value_off": abs(value[0] - slow_value),
        "gradient_off": np.abs(gradient[0] - slow_gradient).max(), "numpy_starts": n_naive,
        "numpy_17_s": slow_whole, "lodim_17_s": whole, "ratio_17": slow_whole / whole,
        "numpy_best": divergences.max(), "lodim_best_of_same": end.divergences[:n_naive].max(),
        "lodim_best": end.divergences.max(), "evaluations": count,
    }  # fmt: skip


def speed(asked):
    with single_blas():
        speed_of("wine", 1)  # compile
        rows = [speed_of(*case) for case in CASES]
    return pd.DataFrame(rows)


# Covariances ------------------------------------------------------------------------------------


def of_covariance(X, y, covariance, factor, gamma):
    """Mean balanced accuracy of held-out rows, five folds, classes of equal priors."""
    df, scores = pd.DataFrame(X).add_prefix("x").assign(y=y.astype(str)), []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        fit = ld.melm(
            "y ~ .", df.iloc[train], gamma=gamma, covariance=covariance, n_starts=9,
            control={"calibrate": False, "prior": "equal", "shrinkage_factor": factor},
        )  # fmt: skip
        scores.append(fit.evaluate(df.iloc[test])["balanced_accuracy"][0])
    return np.mean(scores)


def covariances(asked):
    rows = []
    for name, (covariance, factor) in itertools.product(asked.data, COVARIANCES):
        X, y = data(name, asked.shared)
        by_gamma = {f"gamma_{g:g}": of_covariance(X, y, covariance, factor, g) for g in GAMMAS}
        mean = np.mean(list(by_gamma.values()))
        kind = {"covariance": covariance, "shrinkage_factor": factor}
        rows.append({"data": name, **kind, **by_gamma, "mean": mean})
    return pd.DataFrame(rows)


# Many rows ---------------------------------------------------------------------------------------


SAMPLES = 2048, 5000, 8192  # rows on which the best results are refined
OTHERS = 20_000  # most held-out rows


def large_cases(asked):
    """Tuples (name, k, frame) of many rows."""
    n = asked.rows + OTHERS
    X, y = synthetic(n)
    df = pd.DataFrame(X).add_prefix("x").assign(y=y.astype(str))
    yield from ((f"synthetic k={k}", k, df) for k in (1, 2, 3))
    for kind, p in (("chain", 21), ("factors", 10), ("twenty", 10)):
        yield kind, 2, normal(kind, n, p, 0)
    yield "higgs", 2, sets(asked.shared)["higgs"].sample(frac=1.0, random_state=0)


def large(asked):
    rows, fine = [], search.FINE
    for name, k, df in large_cases(asked):
        m = min(OTHERS, len(df) // 2)
        train, test = df[m:], df[:m]
        for size in SAMPLES:
            search.FINE, start = size, time.process_time()
            fit = ld.melm("y ~ .", train, k=k, gamma=1.0, threads=1)
            seconds = time.process_time() - start
            hit = (fit.predict(test, "class") == test["y"]).astype(float)
            of_class = hit.groupby(test["y"])
            measures = fit.evaluate(test).iloc[0]
            rows.append({
                "data": name, "rows": len(train), "p": df.shape[1] - 1, "sample": size,
                "cpu_s": seconds, "balanced_accuracy": of_class.mean().mean(),
                "se": np.sqrt((of_class.var() / of_class.size()).sum()) / of_class.ngroups,
                "log_loss": measures["log_loss"],
            })  # fmt: skip
            print(pd.DataFrame(rows[-1:]).round(4).to_string(header=len(rows) == 1), flush=True)
    search.FINE = fine
    return pd.DataFrame(rows)


# Few rows ----------------------------------------------------------------------------------------

# Rows to learn from: of synthetic sets with features, of real ones in this order.
NORMAL = {
    "chain": (
        (1000, 10),
        (700, 21),
        (300, 30),
        (200, 60),
        (100, 50),
        (100, 100),
        (100, 200),
        (60, 300),
    ),
    "factors": ((1000, 10), (300, 30), (200, 60), (100, 50), (100, 200), (60, 300)),
    "twenty": ((60, 5), (60, 10), (60, 40)),
}
REAL = {
    "vowel": (495, 99), "ionosphere": (175, 34), "german_numer": (500, 80), "heart": (148, 40),
    "ionosphere squared": (200, 120), "heart squared": (110, 52),
    "digits": (640, 200, 64), "libras": (180, 90, 45), "sonar": (104, 60, 30),
    "spambase": (1000, 190), "breast_cancer": (284, 30), "wine squared": (52,),
    "breast_cancer squared": (93,),
}  # fmt: skip
TESTED = 500  # new rows at most
DISTANCE = 1.5  # of class means from their centre, in deviations within classes, for p = 1


def normal(kind, n, p, seed):
    """Rows of normal classes with one covariance: two in a chain, five of factors, twenty."""
    rng, C = np.random.default_rng(seed), {"chain": 2, "factors": 5, "twenty": 20}[kind]
    cov = np.eye(p)
    if kind == "chain":
        cov = 0.8 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    if kind == "factors":
        loadings = rng.normal(size=(p, 3))
        cov = loadings @ loadings.T + np.eye(p)
    means = DISTANCE * p**-0.25 * (1.0 if C > 2 else 0.5) * rng.normal(size=(C, p))
    y = np.arange(n) % C if C == 20 else rng.integers(0, C, n)  # of twenty classes equal numbers
    X = (means[y] + rng.normal(size=(n, p))) @ np.linalg.cholesky(cov).T
    return pd.DataFrame(X).add_prefix("x").assign(y=[f"c{c}" for c in y])


def real(frames, name):
    """A real set by name, categories one-hot; "squared": with squares and products of features."""
    df = frames[name.removesuffix(" squared")]
    X = pd.get_dummies(df.drop(columns="y"), dtype=float)
    if name.endswith("squared"):
        X = PolynomialFeatures(2, include_bias=False).fit_transform(
            StandardScaler().fit_transform(X)
        )
        X = pd.DataFrame(X).add_prefix("x")
    return X.loc[:, X.std() > 1e-9].assign(y=df["y"])


def shrunk_lda(train, test):
    """Accuracy of LDA with a covariance by the rule of Ledoit and Wolf."""
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    fit = make_pipeline(StandardScaler(), lda).fit(train.drop(columns="y"), train["y"])
    return fit.score(test.drop(columns="y"), test["y"])


def of_split(df, n, seed):
    """Accuracies on new rows of melm, the plane and LDA, trained on n rows of a frame."""
    train, test = train_test_split(df, train_size=n, stratify=df["y"], random_state=seed)
    test = test[:TESTED]
    start = time.process_time()
    melm = of_lodim("melm", train, test)[0]
    seconds = time.process_time() - start
    plane, lda = of_peer("lda", train, test)[0], shrunk_lda(train, test)
    se = np.sqrt(plane * (1.0 - plane) / len(test))
    return {"melm": melm, "plane": plane, "lda": lda, "se": se, "cpu_s": seconds}


def few_cases(asked):
    """Tuples (name, rows, frame of a seed) of all cases."""
    frames = sets(asked.shared)
    for name, sizes in NORMAL.items():
        for n, p in sizes:
            yield name, n, lambda seed, name=name, n=n, p=p: normal(name, n + TESTED, p, seed)
    for name, sizes in REAL.items():
        for n in sizes:
            yield name, n, lambda seed, name=name: real(frames, name)


def few(asked):
    rows = []
    for name, n, frame in few_cases(asked):
        if asked.data != NAMES and name not in asked.data:
            continue
        found = pd.DataFrame([of_split(frame(seed), n, seed) for seed in range(asked.splits)])
        p = frame(0).shape[1] - 1
        gap = found["melm"] - found["plane"]
        row = {"data": name, "n": n, "p": p, "p/n": p / n, "classes": frame(0)["y"].nunique()}
        row |= found.mean().to_dict() | {"gap": gap.mean(), "spread": gap.std() / len(gap) ** 0.5}
        rows.append(row | {"holds": gap.mean() >= -row["se"]})
        print(pd.DataFrame(rows[-1:]).round(3).to_string(header=len(rows) == 1), flush=True)
    return pd.DataFrame(rows).sort_values("p/n")


WAYS = {"speed": speed, "covariances": covariances, "large": large, "few": few}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=list(WAYS))
    parser.add_argument("--data", nargs="+", default=NAMES)
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    table = WAYS[asked.what](asked)
    print(table.to_csv(index=False, float_format="%.5g"))
    if asked.out:
        table.to_csv(asked.out, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
