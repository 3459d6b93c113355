"""gbmap's speed: fits compared with the memory's roof, one matrix-vector product, and peers.

    python benchmarks/speed.py [--data FOLDER] [--only TEXT] [--out benchmarks/results]

Each case runs in a process of its own, after a small fit that loads the compiled kernels. It
prints, and saves in speed.csv with a description of the machine and a picture of the growth:

design_s     from the frame to standardized tiles, once
fit_s        the boosts, mean of SEEDS starts; seeds_s the single times
evals        passes over all rows that a fit takes, mean; moved_gb what they read
call_s       a whole call of gbmap from its frame, least of two; call_products is that in units of
             product_ms
read_1, read_2  a streaming read of the tiles in GB/s, on one thread and on all: the roof
pass_1, pass_2  a pass (loss and gradient) for one and for two learners, in ms, on all threads
roof_1       share of the roof that a pass for one learner reaches
product_ms   one NumPy `X @ w` in the precision of X; fit_products is fit_s in units of it
loss         final training loss (log-loss, or R2's complement), mean and largest
authors_loss, authors_evals  the same by the authors' recipe on the same rows: every weight drawn
             from N(0, 1), SciPy's L-BFGS-B for each sign, at most 100 iterations, gradient 1e-3
path_fits, cv_fits  a path of 100 penalties, and ten-fold cross-validation of one penalty, in
             units of one call with its design
peak_gib     memory of the whole process through a call of gbmap, its frame (frame_gib) included
xgboost_s, logistic_s, pca_s  peers: 100 trees of depth 4 (hist); scikit-learn's defaults; PCA(2)

Synthetic cases are synth-cos-c (Patron et al. 2024, Sect. 4.1) with m = 2, beta = 1, lambda = 1e-3,
real data m = 20, beta = 5, lambda = 1e-3, all else by default. Times wander on a shared machine:
only figures of one run may be compared. Needs the extra `bench`.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from numba import njit
from scipy.optimize import minimize

import lodim as ld
from lodim.engine import tiles
from lodim.engine.blocks import available_threads, over_rows
from lodim.family.binomial import LOGISTIC
from lodim.fitting.fit_model import model_of, prepare
from lodim.models.gbmap.cpu_kernels import SOFTPLUS, Form, forward
from lodim.models.gbmap.objective import BoostObjective
from lodim.solve.objective import ElasticNet

SEEDS = 4
REPEATS = 7
PEERS_UP_TO = 5 * 10**7  # numbers in X
AUTHORS_UP_TO = 2 * 10**8
REUSE_UP_TO = 10**5  # rows


@dataclass(frozen=True)
class Case:
    """What is fitted: synthetic rows and columns, or a data set by name."""

    n: int
    p: int
    dtype: str
    m: int = 2
    data: str = ""

    @property
    def name(self):
        what = self.data or f"{self.n:.0e} x {self.p}".replace("e+0", "e")
        return f"{what}, m = {self.m}, {self.dtype}"


def cases():
    for dtype in ("float32", "float64"):
        for n in (10**5, 5 * 10**5, 10**6, 5 * 10**6, 10**7):
            yield Case(n, 25, dtype)
        for p in (100, 400, 1600, 3200):
            yield Case(10**5, p, dtype)
    yield Case(10**5, 100, "float32", m=50)
    for data in ("california_housing", "air_quality_gbmap", "higgs"):
        yield Case(0, 0, "float32", m=20, data=data)


def cos_frame(n, p, dtype, seed=0, chunk=2**18):
    """synth-cos-c in blocks of rows, so that the largest case takes little more than its frame."""
    rng = np.random.default_rng(seed)
    u = rng.standard_normal(p)
    u = (5.0 * u / np.linalg.norm(u)).astype(np.float32)
    X, f = np.empty((p, n), dtype), np.empty(n, np.float32)
    for lo in range(0, n, chunk):
        block = rng.standard_normal((min(chunk, n - lo), p), dtype=np.float32)
        X[:, lo : lo + chunk] = block.T
        f[lo : lo + chunk] = np.cos(block) @ u
    f -= f.mean()
    df = pd.DataFrame(X.T, columns=[f"x{k}" for k in range(p)], copy=False)
    df["y"] = (rng.random(n, np.float32) < 1.0 / (1.0 + np.exp(-f))).astype(np.int8)
    return df


def read_frame(case, folder):
    """The frame of a case; its last column is the response y."""
    if not case.data:
        return cos_frame(case.n, case.p, case.dtype)
    df = pd.read_csv(Path(folder) / f"{case.data}.csv").dropna()
    df = df.rename(columns={df.columns[-1]: "y"})
    return df if case.data != "higgs" else df.assign(y=df["y"].astype(int))


def times(work, repeats=REPEATS):
    """Seconds of each of some repetitions, after one to warm up."""
    work()
    out = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        out.append(time.perf_counter() - start)
    return out


@njit(nogil=True, fastmath=True)
def read(v):
    total = v[0]
    for i in range(v.size):
        total += v[i]
    return total


def roof(X, threads):
    """GB/s of a streaming read of the tiles."""
    parts = np.array_split(X.reshape(-1), threads)
    with ThreadPoolExecutor(threads) as pool:
        best = min(times(lambda: list(pool.map(read, parts))))
    return X.nbytes / best / 1e9


def one_pass(X, q):
    """Least seconds of loss and gradient for q learners."""
    shape, p = (len(X), tiles.TILE), X.shape[1]
    rng = np.random.default_rng(0)
    y = (rng.random(shape) < 0.5).astype(X.dtype)
    weight = np.full(shape, 1.0 / y.size, X.dtype)
    penalty = ElasticNet.over(np.r_[0.0, 0.0, np.ones(p)] / p, 1e-3, 0.0)
    sign = np.array([1.0, -1.0])[:q]
    form = Form(1.0, SOFTPLUS, LOGISTIC)
    stage = BoostObjective(X, y, np.zeros_like(y), weight, sign, form, penalty, available_threads())
    theta = rng.standard_normal((q, 2 + p)) / np.sqrt(p)
    return min(times(lambda: stage(theta, np.arange(q))))


def arguments(case, seed):
    beta = 5.0 if case.data else 1.0
    return {"m": case.m, "beta": beta, "lambda_": 1e-3, "dtype": case.dtype, "seed": seed}


def fit_times(df, case):
    """Design and fits: seconds, passes, loss; and the last problem."""
    seconds, evals, loss, design = [], [], [], None
    for seed in range(SEEDS):
        start = time.perf_counter()
        problem = prepare(model_of(ld.gbmap), "y ~ .", df, arguments(case, seed))
        design = design or time.perf_counter() - start
        start = time.perf_counter()
        stages = problem.model.fit_stages(problem.batch, problem.family, problem.settings)
        logs = [next(stages)[1] for _ in range(case.m)]
        seconds.append(time.perf_counter() - start)
        evals.append(sum(int(log["n_eval"].sum()) for log in logs))
        deviance = float(logs[-1]["deviance"][0])
        spread = np.var(problem.batch.y) if problem.family.name == "gaussian" else 2.0
        loss.append(deviance / spread)
    row = {
        "n": problem.batch.n, "p": problem.batch.X.shape[1], "design_s": design,
        "fit_s": np.mean(seconds), "seeds_s": " ".join(f"{s:.3f}" for s in seconds),
        "evals": np.mean(evals), "loss": np.mean(loss), "loss_max": max(loss),
    }  # fmt: skip
    return row, problem


def peers(df):
    """Seconds that peers take on the same frame; classes only."""
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression

    X, y = np.ascontiguousarray(df.drop(columns="y").to_numpy()), df["y"].to_numpy()
    return {
        "xgboost_s": _trees(X, y),
        "logistic_s": min(times(lambda: LogisticRegression().fit(X, y), 1)),
        "pca_s": min(times(lambda: PCA(2).fit_transform(X), 1)),
    }


def _trees(X, y):
    """Seconds of boosted trees, NaN where xgboost is not installed."""
    if find_spec("xgboost") is None:
        return np.nan
    from xgboost import XGBClassifier

    trees = XGBClassifier(n_estimators=100, max_depth=4, tree_method="hist")
    return min(times(lambda: trees.fit(X, y), 1))


def by_the_authors(problem, m):
    """Final log-loss and passes of the authors' recipe, mean over SEEDS starts."""
    X, n, threads = problem.batch.X, problem.batch.n, available_threads()
    y, weight = (tiles.pad(v, len(X), X.dtype) for v in (problem.batch.y, np.full(n, 1.0 / n)))
    p, found = X.shape[1], []
    penalty = ElasticNet.over(np.r_[0.0, 0.0, np.ones(p)] / p, 1e-3, 0.0)
    for seed in range(SEEDS):
        rng, score, passes = np.random.default_rng(seed), np.zeros((len(X), 1, tiles.TILE)), 0
        for _ in range(m):
            ends = []
            for b in (1.0, -1.0):
                f = score[:, 0].astype(X.dtype)
                form = Form(1.0, SOFTPLUS, LOGISTIC)
                stage = BoostObjective(X, y, f, weight, np.array([b]), form, penalty, threads)
                end = minimize(
                    lambda v, stage=stage: [out[0] for out in stage(v[None], np.arange(1))],
                    rng.standard_normal(2 + p), jac=True, method="L-BFGS-B",
                    options={"maxiter": 100, "gtol": 1e-3 / np.sqrt(2 + p)},
                )  # fmt: skip
                ends.append((end.fun, b, end.x))
                passes += end.nfev
            _, b, theta = min(ends, key=lambda end: end[0])
            over_rows(
                forward, X, theta[None], np.array([b]), 1.0, SOFTPLUS, False, np.array([0]), score,
                threads=threads,
            )  # fmt: skip
        f = score.reshape(-1)[:n]
        found.append((np.mean(np.logaddexp(0.0, f) - problem.batch.y * f), passes))
    return dict(zip(("authors_loss", "authors_evals"), np.mean(found, axis=0), strict=True))


def reuse(df, case):
    """Path and cross-validation in units of one call."""
    keep = {k: v for k, v in arguments(case, 0).items() if k != "lambda_"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        one = min(times(lambda: ld.gbmap("y ~ .", df, lambda_=1e-3, **keep), 2))
        path = min(times(lambda: ld.path(ld.gbmap, "y ~ .", df, **keep), 1))
        keep.pop("seed")
        cv = min(times(lambda: ld.cv(ld.gbmap, "y ~ .", df, lambda_=1e-3, **keep), 1))
    return {"path_fits": path / one, "cv_fits": cv / one}


def memory(df, case):
    """GiB of the process with its frame, and at its highest through one call of gbmap."""
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
    frame = _status("VmRSS")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        ld.gbmap("y ~ .", df, **arguments(case, 0))
    return {"frame_gib": frame, "peak_gib": _status("VmHWM")}


def _status(field):
    line = next(v for v in Path("/proc/self/status").read_text().splitlines() if field in v)
    return int(line.split()[1]) / 2**20


def measure(case, folder):
    """One row of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        small = cos_frame(70_000, 5, case.dtype)
        ld.gbmap("y ~ .", small, m=2, lambda_=1e-3, dtype=case.dtype)
    df = read_frame(case, folder)
    row = {"case": case.name, "dtype": case.dtype}
    if not case.data and Path("/proc/self/clear_refs").exists():
        row |= memory(df, case)
    more, problem = fit_times(df, case)
    X, threads = problem.batch.X, available_threads()
    row |= more | {"read_1": roof(X, 1), f"read_{threads}": roof(X, threads)}
    row |= {"pass_1": one_pass(X, 1) * 1e3, "pass_2": one_pass(X, 2) * 1e3}
    row["roof_1"] = X.nbytes / row["pass_1"] / 1e6 / row[f"read_{threads}"]
    row["moved_gb"] = row["evals"] * X.nbytes * (1 + 3 / row["p"]) / 1e9
    if not case.data:
        block, w = df.iloc[:, :-1].to_numpy(), np.ones(case.p, case.dtype)
        row["product_ms"] = min(times(lambda: block @ w)) * 1e3
        row["fit_products"] = row["fit_s"] / row["product_ms"] * 1e3
        row["call_s"] = min(times(lambda: ld.gbmap("y ~ .", df, **arguments(case, 0)), 2))
        row["call_products"] = row["call_s"] / row["product_ms"] * 1e3
        if X.size <= PEERS_UP_TO:
            row |= peers(df)
        if case.dtype == "float32" and X.size <= AUTHORS_UP_TO:
            row |= by_the_authors(problem, case.m)
    if problem.batch.n <= REUSE_UP_TO and X.shape[1] <= 25:
        row |= reuse(df, case)
    return row


def machine():
    """The machine in words."""
    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((v.split(":")[1].strip() for v in lines if v.startswith("model name")), cpu)
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    import numba

    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, Numba"
    return f"{cpu}, {available_threads()} threads, {total:.0f} GiB; {versions} {numba.__version__}"


def draw(table, path):
    """Time of a fit against n and p, with the exponents."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
    grown = table[table["case"].str.match(r"\de\d x \d+, m = 2, float\d\d$")]
    for ax, by, at in ((axes[0], "n", grown["p"] == 25), (axes[1], "p", grown["n"] == 10**5)):
        for dtype, part in grown[at].sort_values(by).groupby("dtype"):
            if len(part) < 2:
                continue
            for what, scale, mark in (("fit_s", 1.0, "o-"), ("pass_2", 1e-3, "s--")):
                slope = np.polyfit(np.log(part[by]), np.log(part[what] * scale), 1)[0]
                label = "fit" if what == "fit_s" else "pass, two learners"
                label = f"{label}, {dtype}: {by}^{slope:.2f}"
                ax.loglog(part[by], part[what] * scale, mark, label=label)
        ax.set(xlabel=by, ylabel="seconds", title=("p = 25", "n = 100,000")[by == "p"])
        if ax.lines:
            where = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.17), "ncols": 2}
            ax.legend(frameon=False, fontsize=8, **where)
        ax.spines[["top", "right"]].set_visible(False)
    fig.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=None, help="folder of the real data sets, as CSV")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--out", default="benchmarks/results", type=Path)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(measure(Case(**json.loads(given.case)), given.data), default=float))
        return
    if find_spec("xgboost") is None:
        print("xgboost is not installed: xgboost_s is left empty")
    saved = given.out / "speed.csv"
    rows = pd.read_csv(saved).to_dict("records") if given.only and saved.exists() else []
    for case in cases():
        if given.only not in case.name or (case.data and not given.data):
            continue
        command = [sys.executable, __file__, "--case", json.dumps(asdict(case))]
        command += ["--data", given.data] if given.data else []
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        row = json.loads(done.stdout.splitlines()[-1])
        print(pd.Series(row).to_string(float_format="{:.4g}".format), end="\n\n", flush=True)
        rows = [r for r in rows if r["case"] != row["case"]] + [row]
    table = pd.DataFrame(rows)
    given.out.mkdir(parents=True, exist_ok=True)
    table.to_csv(saved, index=False, float_format="%.5g")
    (given.out / "speed.txt").write_text(machine() + "\n")
    draw(table, given.out / "speed.png")
    print(machine())


if __name__ == "__main__":
    main()
