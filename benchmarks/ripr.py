"""ripr's numbers: speed of losses and assignment, recovery, accuracy, clusters.

    python benchmarks/ripr.py PART [--repeats 20] [--data FOLDER] [--sets seeds ...] [--seed 0]

PART is losses, assignment, memory, recovery, table73, regression, real, clustering, numbers or
screening.
Each prints what it measures; results/ripr_PART.txt are what this version printed.
"""

import argparse
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree
from scipy.special import logsumexp
from volumes import KINDS, log_volume, total_and_mean

import lodim as ld
from lodim.datasets.synthetic import informative_views, informative_views_r
from lodim.models.ripr import clusters, losses
from lodim.models.ripr.assignment import constrained
from lodim.models.ripr.assignment.lambda_path import class_errors
from lodim.models.ripr.assignment.solve import solve_rows
from lodim.models.ripr.clusters import kmeans
from lodim.models.ripr.losses import class_ratios, number_answers
from lodim.models.ripr.neighbours import nearest
from lodim.models.ripr.views import count, enumerate_views, features, most_views, screened_views

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from models.ripr.searches import view_search

SETS = ("breast_cancer_wdbc", "breast_tissue", "seeds", "ionosphere", "sonar", "concrete")
NEIGHBOURS = (1, 3, 5, 11)  # of k-NN


def timed(function, *args, **more):
    start = time.perf_counter()
    out = function(*args, **more)
    return time.perf_counter() - start, out


def trees(X, y, views, k, threads):
    """The same losses by scipy's cKDTree, views shared among threads."""

    def one(view):
        Z = X[:, features(view)]
        by_class = [cKDTree(Z[y == c]) for c in (0, 1)]
        out = np.empty(len(y))
        for c in (0, 1):
            own = by_class[c].query(Z[y == c], [k + 1])[0][:, 0]
            other = by_class[1 - c].query(Z[y == c], [k])[0][:, 0]
            out[y == c] = (own / other) ** (0.01 * Z.shape[1])
        return out

    with ThreadPoolExecutor(threads) as pool:
        return np.column_stack(list(pool.map(one, views)))


def run_losses(_):
    rng = np.random.default_rng(0)
    X, y = rng.random((200, 4)), rng.integers(0, 2, 200)
    losses.class_losses(X, y, enumerate_views(4, 1, 3), threads=2)
    for n, max_dim in ((1000, 2), (4000, 2), (1000, 3)):
        X, y = rng.random((n, 50)), rng.integers(0, 2, n)
        views = enumerate_views(50, 1, max_dim)
        ours, L = timed(losses.class_losses, X, y, views, threads=2)
        theirs, T = timed(trees, X, y, views, losses.default_k(n), 2)
        error = np.abs(L - T).max()
        print(f"n {n} max_dim {max_dim} views {len(views)}: {ours:.2f} s, cKDTree {theirs:.2f} s, "
              f"ratio {theirs / ours:.1f}, L {L.nbytes / 1e6:.0f} MB, "
              f"differ by {error:.1e}")  # fmt: skip


def run_assignment(_):
    rng = np.random.default_rng(0)
    tight = dict(tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-11)
    for n, views in ((500, 45), (500, 435), (1000, 1225)):
        L, delta = np.exp(0.02 * rng.standard_normal((n, views))), rng.random(views)
        solve_rows(L, delta, 1e-4, 2)
        ours, (first, second, share) = timed(solve_rows, L, delta, 1e-4, 2)
        theirs, (_, value) = timed(constrained.solve, L, delta, 1e-4, **tight)
        rows = np.arange(n)
        u = (1 - share) * L[rows, first] + share * L[rows, second]
        own = (
            (u - L.min(1)) ** 2 + 1e-4 * ((1 - share) * delta[first] + share * delta[second])
        ).sum()
        print(f"{n} x {views}: {1e3 * ours:.3f} ms, Clarabel {theirs:.2f} s, ratio "
              f"{theirs / ours:.0f}, objectives {own:.12g} and {value:.12g}")  # fmt: skip


def peak_of(case):
    """Seconds, and MiB that a fit adds to the most that its process has held."""
    n, p, max_dim = case
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.random((n, p))).add_prefix("x")
    df["y"] = np.where(df["x0"] + df["x1"] > 1.0, "a", "b")
    ld.ripr("y ~ .", df.iloc[:100, [0, 1, 2, -1]], max_dim=3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, _ = timed(ld.ripr, "y ~ .", df, max_dim=max_dim)
    return seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024.0


def run_memory(_):
    """Of fits of two classes, each in a process of its own."""
    for n, p, max_dim in ((1000, 50, 3), (20_000, 50, 2), (1000, 200, 3)):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            seconds, added = pool.submit(peak_of, (n, p, max_dim)).result()
        matrix = 8 * n * min(count(p, 2, max_dim), most_views(n)) / 2**20
        print(f"n {n} p {p} max_dim {max_dim}: loss matrix {matrix:.0f} MiB, "
              f"peak {added:.0f} MiB more than before, {seconds:.0f} s", flush=True)  # fmt: skip


def standardized(train, *others):
    mean, scale = train.mean(axis=0), train.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return [(Z - mean) / scale for Z in (train, *others)]


def halves(df):
    """Every second row to train, the rest to test."""
    X, y = df.drop(columns="y").to_numpy(), df["y"].to_numpy()
    even = np.arange(len(y)) % 2 == 0
    return *standardized(X[even], X[~even]), y[even], y[~even]


def truth(df):
    return np.array([[int(name[1:]) - 1 for name in view] for view in df.attrs["views"]])


def accuracy(Q, z, X, y, views, k):
    """Share of the rows Q of classes z that views tell right, by Eq. 2.11."""
    ratios = class_ratios(Q, X, y, views, k, n_classes=int(y.max()) + 1, balanced=True)
    return 1.0 - np.mean(class_errors(ratios, z))


def recall(views, true):
    got, want = ({tuple(v) for v in z.tolist()} for z in (views, true))
    return len(got & want) / len(got), len(got & want) / len(want)


def means(rows):
    rows = np.array(rows, float)
    se = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    return " ".join(f"{m:.3f} ({s:.3f})" for m, s in zip(rows.mean(axis=0), se, strict=True))


def run_recovery(args):
    from sklearn.neighbors import KNeighborsClassifier

    print("P label_noise: precision recall accuracy known-views k-NN")
    for noise in (0.0, 0.1):
        for P in range(1, 8):
            rows = []
            for seed in range(args.repeats):
                df = informative_views(P, 600, 0, seed, label_noise=noise)
                X, Q, y, z = halves(df)
                found, true = view_search(X, y, (2, 2)).recover(None), truth(df)
                ours = accuracy(Q, z, X, y, found.views, found.k)
                known = accuracy(Q, z, X, y, true, losses.default_k(len(y)))
                knn = KNeighborsClassifier(losses.default_k(len(y))).fit(X, y).score(Q, z)
                rows.append([*recall(found.views, true), ours, known, knn])
            print(P, noise, means(rows), flush=True)


def run_table73(args):
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.neighbors import KNeighborsClassifier

    print("R unlabelled: precision recall accuracy k-NN random-forest")
    for R in (0, 100, 1000):
        for every in (0, 3):
            rows = []
            for seed in range(args.repeats):
                X, Q, y, z = halves(df := informative_views(2, 2000, 2 * R, seed))
                partly = y.copy()
                if every:
                    hidden = np.random.default_rng(seed).permutation(len(y))[: len(y) // every]
                    partly[hidden] = -1
                on = partly >= 0
                found = view_search(X, partly, (2, 2)).recover(None)
                knn = KNeighborsClassifier(losses.default_k(on.sum())).fit(X[on], y[on])
                forest = RandomForestClassifier(100, random_state=0).fit(X[on], y[on])
                ours = accuracy(Q, z, X, partly, found.views, found.k)
                rows.append([*recall(found.views, truth(df)), ours, knn.score(Q, z),
                             forest.score(Q, z)])  # fmt: skip
            print(R, f"1/{every}" if every else "0", means(rows), flush=True)


def number_predictions(found, Q, X, y, k):
    near = [nearest(Q, X, view, k, like=y) for view in found.views]
    return number_answers(near, y, found.assignment.matrix())[1]


def run_regression(args):
    from sklearn.neighbors import KNeighborsRegressor

    print("q max_dim: precision recall of pairs (with x1: triples), MSE ripr, best k-NN, ratio")
    for q in (2, 3, 5):
        for max_dim in (2, 3):
            rows = []
            for seed in range(args.repeats):
                X, Q, y, z = halves(df := informative_views_r(2000, q, seed))
                found = view_search(X, y, (2, max_dim), "gaussian").recover(None)
                true = truth(df)
                if max_dim == 3:
                    true = np.column_stack([np.zeros(len(true), int), true])
                knn = min(
                    np.mean((KNeighborsRegressor(k, weights=w).fit(X, y).predict(Q) - z) ** 2)
                    for k in (5, 10, 31) for w in ("uniform", "distance")
                )  # fmt: skip
                ours = np.mean((number_predictions(found, Q, X, y, 10) - z) ** 2)
                rows.append([*recall(found.views, true), ours, knn, ours / knn])
            print(q, max_dim, means(rows), flush=True)


def run_real(args):
    from sklearn.model_selection import KFold, StratifiedKFold

    print("10-fold, at most 3 views of at most max_dim features; accuracy (R2)\n"
          "name max_dim: ripr, its views, k-NN on up to nine features chosen in the training rows "
          "(classes), k-NN on all, the best of k = 1 3 5 11")  # fmt: skip
    for name in args.sets:
        X, y = table(args.data, name)
        number = name == "concrete"
        y = y.astype(float) if number else np.unique(y, return_inverse=True)[1]
        folds = (KFold if number else StratifiedKFold)(10, shuffle=True, random_state=args.seed)
        for max_dim in (2, 3):
            rows = []
            for train, test in folds.split(X, y):
                A, B = standardized(X[train], X[test])
                rows.append((real_number if number else real_class)(
                    A, y[train], B, y[test], (2, max_dim)
                ))  # fmt: skip
            best = int(np.mean(rows, axis=0)[-len(NEIGHBOURS) :].argmax()) - len(NEIGHBOURS)
            shown = [[*r[: -len(NEIGHBOURS)], r[best]] for r in rows]
            print(name, max_dim, means(shown), flush=True)


def real_class(A, y, B, z, dims):
    """Accuracy of ripr, its number of views, and accuracies of k-NN: of one fold.

    Three views have nine features at most: k-NN on nine says what they may give.
    """
    from sklearn.neighbors import KNeighborsClassifier

    found = view_search(A, y, dims, n_views=3, threads=2).recover(None)
    knn = [KNeighborsClassifier(k).fit(A, y).score(B, z) for k in NEIGHBOURS]
    k, J = best_features(A, y)
    nine = KNeighborsClassifier(k).fit(A[:, J], y).score(B[:, J], z)
    return [accuracy(B, z, A, y, found.views, found.k), len(found.views), nine, *knn]


def best_features(A, y, most=9):
    """Neighbours, 1 or 3, and features of the forward selection that errs least, rows left out."""
    each = (A.T[:, :, None] - A.T[:, None, :]) ** 2
    found, least = None, np.inf
    for k in (1, 3):
        D, J = np.diag(np.full(len(A), np.inf)), []
        for _ in range(min(most, len(each))):
            errors = [np.inf if j in J else left_out_errors(D + each[j], y, k)
                      for j in range(len(each))]  # fmt: skip
            J, D = [*J, int(np.argmin(errors))], D + each[np.argmin(errors)]
            if min(errors) < least:
                found, least = (k, J), min(errors)
    return found


def left_out_errors(D, y, k):
    """Errors of k-NN by distances D (n, n), infinite from a row to itself."""
    near = np.argpartition(D, k, axis=1)[:, :k]
    return np.count_nonzero(np.eye(y.max() + 1)[y][near].sum(axis=1).argmax(axis=1) != y)


def real_number(A, y, B, z, dims):
    """As for classes, R2."""
    from sklearn.neighbors import KNeighborsRegressor

    found = view_search(A, y, dims, "gaussian", n_views=3, threads=2).recover(None)
    knn = [KNeighborsRegressor(k).fit(A, y).score(B, z) for k in NEIGHBOURS]
    ours = number_predictions(found, B, A, y, 10)
    return [1 - np.mean((ours - z) ** 2) / z.var(), len(found.views), *knn]


def table(folder, name):
    df = pd.read_csv(folder / f"{name}.csv")
    return df.iloc[:, :-1].to_numpy(float), df.iloc[:, -1].to_numpy()


def run_clustering(args):
    """k-means on views beside k-means on all features, scaled to [0, 1): Table 2.2."""
    from sklearn.cluster import KMeans

    print("distortion ripr, k-means; clusters; then the log of the summed volumes and the mean log "
          "volume, ripr, k-means")  # fmt: skip
    for name, n_clusters in (("seeds", 3), ("concrete", 6)):
        X, _ = table(args.data, name)
        X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)) * (1 - 1e-9)
        rows, volumes = [], {kind: [] for kind in KINDS}
        for seed in range(args.repeats):
            found = view_search(X, None, (2, 2), "none", n_views=3, seed=seed).recover(None)
            B = found.assignment.matrix().argmax(axis=1)
            each = max(2, round(n_clusters / len(found.views)))
            ours = clusters_of(X, B, found.views, each, seed)
            plain = KMeans(each * len(found.views), n_init=5, random_state=seed).fit(X).labels_
            every = [(np.flatnonzero(plain == c), np.arange(X.shape[1])) for c in np.unique(plain)]
            rows.append([distortion(X, ours), distortion(X, every), len(every)])
            for kind, measured in volumes.items():
                pairs = zip(*(total_and_mean(X, c, kind) for c in (ours, every)), strict=True)
                measured.append([v for pair in pairs for v in pair])
        print(name, means(rows))
        for kind, measured in volumes.items():
            print(f"  {kind} ellipsoid:", means(measured), flush=True)
        best = [smallest_cylinder(X, r) for r, _ in every]
        print(f"  clusters of k-means in their smallest cylinders: {logsumexp(best):.3f} "
              f"{np.mean(best):.3f}", flush=True)  # fmt: skip


SHAPES = {  # rows of a group of centre zero; how far apart groups are
    "round": (lambda rng, m, c: rng.normal(size=(m, 2)), 5.0),
    "close": (lambda rng, m, c: rng.normal(size=(m, 2)), 3.6),
    "unequal sizes": (lambda rng, m, c: rng.normal(size=(m, 2)), 5.0),
    "unequal spread": (lambda rng, m, c: (0.6, 1.5)[c % 2] * rng.normal(size=(m, 2)), 7.0),
    "alike ellipses": (lambda rng, m, c: rng.normal(size=(m, 2)) @ [[1.48, 1.15], [0, 0.53]], 8.0),
    "ellipses": (lambda rng, m, c: rng.normal(size=(m, 2)) * [1.8, 0.7] @ turned(rng), 8.0),
    "squares": (lambda rng, m, c: rng.uniform(-1.73, 1.73, (m, 2)), 5.0),
    "heavy tails": (lambda rng, m, c: rng.standard_t(5, (m, 2)), 6.5),
    "skew": (lambda rng, m, c: (rng.gamma(3.0, 1.0, (m, 2)) - 3.0) / 3.0**0.5, 6.0),
}
SINGLE = ("round", "alike ellipses", "ellipses", "squares", "heavy tails", "skew")


def turned(rng):
    """A random rotation of the plane."""
    angle = rng.uniform(0.0, 2.0 * np.pi)
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def groups(shape, n_groups, n, seed):
    """Rows (n, 2), scaled, of so many groups of a shape, their centres at random."""
    rng = np.random.default_rng([seed, n, n_groups, list(SHAPES).index(shape)])
    draw, gap = SHAPES[shape]
    side, centres = 1.35 * gap * n_groups**0.5, np.zeros((0, 2))
    while len(centres) < n_groups:
        side *= 1.02  # more room wherever all does not fit
        centres = np.zeros((0, 2))
        for at in rng.uniform(0.0, side, (50 * n_groups, 2)):
            if len(centres) < n_groups and (np.hypot(*(centres - at).T) >= gap).all():
                centres = np.vstack([centres, at])
    share = np.linspace(1.0, 4.0 if shape == "unequal sizes" else 1.0, n_groups)
    sizes = np.maximum(np.round(n * share / share.sum()).astype(int), 12)
    X = np.concatenate([centres[c] + draw(rng, m, c) for c, m in enumerate(sizes)])
    return X / X.std(axis=0)


def calinski_harabasz(X, rng):
    """The number of clusters, 2 to 8, of the largest index."""
    c = np.arange(1, 9)
    within = np.array([kmeans(X, np.ones(len(X)), each, rng)[1] for each in c])
    c = c[1:]
    return int(c[((within[0] - within[1:]) / (c - 1) / (within[1:] / (len(X) - c))).argmax()])


def run_numbers(args):
    """Numbers of clusters: how often each rule finds that of synthetic groups."""
    rules = {
        "prediction strength": lambda X, rng: clusters._n_clusters(X, np.ones(len(X)), rng),
        "Calinski-Harabasz": calinski_harabasz,
    }
    rows = [
        (shape, c, rule, find(groups(shape, c, n, seed), np.random.default_rng(seed)))
        for shape in SHAPES for c in (1, 2, 3, 4, 5, 6, 8) if c > 1 or shape in SINGLE
        for n in (100, 200, 500) for seed in range(args.repeats) for rule, find in rules.items()
    ]  # fmt: skip
    df = pd.DataFrame(rows, columns=["shape", "groups", "rule", "found"])
    df["right"], df["more"] = df["found"] == df["groups"], df["found"] > df["groups"]
    print(f"{len(df) // len(rules)} samples of groups: shares of them\n")
    print(df.groupby("rule")[["right", "more"]].mean().round(3))
    for by in ("groups", "shape"):
        print(df.pivot_table("right", "rule", by).round(2).to_string(), flush=True)


def smallest_cylinder(X, rows):
    """Least log volume of a cylinder around rows whose base has two or three features."""
    views = enumerate_views(X.shape[1], 2, 3)
    return min(log_volume(X, rows, features(view)) for view in views)


def clusters_of(X, B, views, each, seed):
    """Rows and features of each cluster, of k-means on the rows that a view serves."""
    from sklearn.cluster import KMeans

    out = []
    for a, view in enumerate(views):
        rows = np.flatnonzero(a == B)
        labels = KMeans(each, n_init=5, random_state=seed).fit(X[np.ix_(rows, features(view))])
        out += [(rows[labels.labels_ == c], features(view)) for c in range(each)]
    return out


def distortion(X, clusters):
    """Mean squared distance to the centre, in the features of the cluster."""
    total = sum(((X[np.ix_(r, f)] - X[np.ix_(r, f)].mean(axis=0)) ** 2).sum() for r, f in clusters)
    return total / len(X)


def run_screening(args):
    print("of 1,140 triples: kept, rows whose best is lost, mean loss of loss, recall")
    for allowed in (100, 300, 600):
        rows = []
        for seed in range(args.repeats):
            df = informative_views_r(1000, 3, seed)
            (X,) = standardized(df.drop(columns="y").to_numpy())
            y, every = df["y"].to_numpy(), enumerate_views(20, 3, 3)
            L = losses.regression_losses(X, y, every, threads=2)
            losses_of = partial(_number_losses, X, y)
            kept, _ = screened_views(20, 3, 3, losses_of, allowed)
            true = np.column_stack([np.zeros(3, int), truth(df)])
            rows.append([len(kept), *loss_of_screening(L, every, kept), recall(kept, true)[1]])
        print(allowed, means(rows), flush=True)


def loss_of_screening(L_all, views_all, views):
    """Share of the rows whose best view of all was screened away, and their mean loss of loss."""
    code = {tuple(v) for v in views.tolist()}
    kept = np.array([tuple(v) in code for v in views_all.tolist()])
    best, left = L_all.min(axis=1), L_all[:, kept].min(axis=1)
    known = np.isfinite(best)
    return float((left > best)[known].mean()), float(
        (left - best)[known & np.isfinite(left)].mean()
    )


def _number_losses(X, y, views):
    return losses.regression_losses(X, y, views)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = {n[4:]: f for n, f in globals().items() if n.startswith("run_")}
    parser.add_argument("part", choices=parts)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--seed", type=int, default=0, help="of the folds of real data")
    here = Path(__file__).resolve().parents[1]
    parser.add_argument("--data", type=Path, default=here.parent / "shared" / "data")
    args = parser.parse_args()
    parts[args.part](args)


if __name__ == "__main__":
    main()
