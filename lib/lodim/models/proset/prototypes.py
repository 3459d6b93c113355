"""Prototypes of a proset fit, weighted sums over them, and predictions from these sums."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.special import expit, softmax

from lodim import forms
from lodim.engine import tiles
from lodim.engine.blocks import for_blocks, on_host, place
from lodim.engine.tiles import TILE, TILES_PER_BLOCK
from lodim.export.expression import ZERO, Constant, Kernels, call, weighted
from lodim.models.proset.cpu_kernels import (
    CLASSES,
    DENSITY,
    FOUR,
    SQUARED,
    Points,
    kernel_rows,
    kernel_sums,
    similarity_matrix,
)

STEP = 4  # tiles per task of a thread
TILES_ON_GPU = 16 * TILES_PER_BLOCK  # tiles on a GPU at a time
MOST_NUMBERS = 2**23  # largest temporary array; bounds the memory of predictions
SAME = 1e-6  # largest difference of equal prototypes, in weighted features and target


LOG = {  # fields of the log, with one entry per batch
    "objective": forms.real("B"),
    "deviance": forms.squares("B"),
    "grad_norm": forms.real("B"),
    "n_iter": forms.whole("B"),
    "n_eval": forms.whole("B"),
    "n_candidates": forms.whole("B"),
    "n_scoring": forms.whole("B"),
    "converged": forms.flags("B"),
}


@forms.record
class Prototypes:
    """M prototypes (weighted training rows) in B batches, for A standardized features."""

    # Features with positive weight in some batch; others have no effect.
    features: np.ndarray = forms.ascending(forms.whole("A", most="p - 1"), strictly=True)
    x: np.ndarray = forms.real("M", "A")  # standardized features
    y: np.ndarray = forms.responses("M")  # class code, or (y - offset - level) / scale
    w: np.ndarray = forms.real("M", least=0)  # weights
    batch: np.ndarray = forms.ascending(forms.whole("M", least=1))  # batch number, from 1
    row: np.ndarray = forms.whole("M")  # position of the first training row merged into each
    member: np.ndarray = forms.whole("R")  # positions of all rows that were merged,
    member_of: np.ndarray = forms.whole("R", most="M - 1")  # and their prototypes
    v: np.ndarray = forms.real("B", "A", least=0)  # feature weights, per standard deviation
    u: np.ndarray = forms.real("B", least=0)  # inverse widths for loss="density"
    level: np.ndarray = forms.real("K")  # linear predictor of the null model without offset
    scale: float = forms.real(least=forms.TINY)  # SD of a numeric response, else 1
    loss: int = forms.choice(CLASSES, SQUARED, DENSITY)
    n_classes: int = forms.size("C")  # 0 for a numeric response

    def __len__(self):
        return len(self.w)

    @property
    def n_batches(self):
        return len(self.v)

    def of_batch(self, c):
        """Return the positions of the prototypes of batch c; the first batch is 1."""
        return np.flatnonzero(self.batch == c)

    def single_batch(self, c):
        """Return the Prototypes of batch c only; the first batch is 1."""
        of = self.of_batch(c)
        position = np.full(len(self), -1)
        position[of] = np.arange(len(of))
        merged = np.isin(self.member_of, of)
        parts = {name: getattr(self, name)[of] for name in ("x", "y", "w", "row")}
        parts |= {name: getattr(self, name)[c - 1 : c] for name in ("v", "u")}
        parts |= {"member": self.member[merged], "member_of": position[self.member_of[merged]]}
        return replace(self, **parts, batch=np.ones(len(of), np.int64))

    def with_all_features(self, x):
        """Return the prototypes with values x (M, p) of all p features, not only active ones."""
        v = np.zeros((len(self.v), x.shape[1]))
        v[:, self.features] = self.v
        return replace(self, features=np.arange(x.shape[1]), x=x, v=v)

    def _check_fields(self):
        B = len(self.v)
        if not B or self.batch.max(initial=1) > B:
            raise ValueError("there is no batch, or a prototype is of none of them")
        if (self.loss == CLASSES) != (self.n_classes > 0):
            raise ValueError(f"the loss is {self.loss}, and there are {self.n_classes} classes")


def join(parts):
    """Join `parts`, Prototypes of one batch each; drop features that have no weight in any part."""
    v = np.concatenate([part.v for part in parts])
    features = np.flatnonzero(v.any(axis=0))
    names = ("y", "w", "row", "member", "member_of", "u")
    whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    whole["x"] = np.concatenate([part.x[:, features] for part in parts])
    size = np.array([len(part) for part in parts])
    whole["batch"] = np.repeat(np.arange(len(size)) + 1, size)
    whole["member_of"] += np.repeat(np.cumsum(size) - size, [len(part.member) for part in parts])
    return replace(parts[0], **whole, features=features, v=v[:, features])


def merge(points, w):
    """Merge points (J, D + 1) that are equal up to rounding; return (first, total, group).

    first : (M,) position of each group's first point; total : (M,) sum of its weights w
    group : (J,) number of each point's group"""
    # Points in one small cell enter the tree once, since the number of pairs grows quadratically.
    cells = np.floor(points / (SAME / 16))
    distinct, cell = np.unique(cells, axis=0, return_index=True, return_inverse=True)[1:]
    pairs = cKDTree(points[distinct]).query_pairs(SAME, p=np.inf, output_type="ndarray")
    graph = coo_array((np.ones(len(pairs)), pairs.T), shape=(len(distinct), len(distinct)))
    group = connected_components(graph, directed=False)[1][cell.ravel()]
    first, group = np.unique(group, return_index=True, return_inverse=True)[1:]
    order = np.argsort(first)
    of = np.argsort(order)[group.ravel()]
    # For no points NumPy's bincount returns integers.
    return first[order], np.bincount(of, w, len(first)).astype(np.float64), of


# Sums over prototypes ----------------------------------------------------------------------------


def weighted_sums(prototypes, values, X, n, threads=1, engine="cpu"):
    """Return sums of values over prototypes, weighted by similarity, (n, Q), for the n rows of X.

    values : (M, Q); they are also multiplied by the weights of the prototypes"""
    out, kernels = np.zeros((len(X), values.shape[1], TILE)), []
    for c, of in _nonempty_batches(prototypes):
        weighted = np.ascontiguousarray((prototypes.w[of, None] * values[of]).T)
        weighted = np.pad(weighted, [(0, -size % FOUR) for size in weighted.shape])
        kernels.append((batch_points(prototypes, c, of), weighted))
    for lo in range(0, len(X), TILES_ON_GPU):
        part = place(X[lo : lo + TILES_ON_GPU], engine)
        for kernel in kernels:
            run_kernel(kernel_sums, part, threads, *kernel, out[lo : lo + TILES_ON_GPU])
    return tiles.unpack(out, n)


def impacts(prototypes, X, n, threads=1):
    """Return each prototype's weight times its similarity with each row, (n, M)."""
    out = np.empty((n, len(prototypes)))
    for c, of in _nonempty_batches(prototypes):
        points = batch_points(prototypes, c, of)
        step = max(1, MOST_NUMBERS // (TILE * len(of)))
        for lo in range(0, len(X), step):
            part = X[lo : lo + step]
            values = np.empty((len(part), len(of), TILE))
            run_kernel(kernel_rows, part, threads, points, values)
            rows = slice(lo * TILE, min(n, (lo + step) * TILE))
            out[rows, of[0] : of[-1] + 1] = tiles.unpack(values, rows.stop - rows.start)
    return out


def batch_points(prototypes, c, at):
    """Return batch c = 1, 2, ... of prototypes as Points; at : positions of all its prototypes."""
    t, v = prototypes, prototypes.v[c - 1]
    on = np.flatnonzero(v)
    x = np.ascontiguousarray(t.x)  # avoids another compilation of `similarity_matrix`
    return Points(t.features[on], v[on], similarity_matrix(x, v[on], at, on), t.w[at], t.y[at])


def run_kernel(kernel, X, threads, *args):
    """Run a compiled kernel with arguments `args` on rows X; it writes its results to args[-1]."""
    if on_host(X):
        for_blocks(kernel, -(-len(X) // STEP), X, STEP, *args, threads=threads)
    else:
        X.run(kernel, *args)


def _nonempty_batches(prototypes):
    numbered = ((c, prototypes.of_batch(c)) for c in range(1, prototypes.n_batches + 1))
    return [(c, of) for c, of in numbered if len(of)]


# Estimates from sums -----------------------------------------------------------------------------


def response_values(prototypes):
    """Return the columns (M, Q) whose weighted sums over the prototypes give the estimates.

    For classes these are K indicators; for a numeric response, the columns 1 and y."""
    if prototypes.loss == CLASSES:
        return np.eye(prototypes.n_classes)[prototypes.y.astype(int)]
    return np.column_stack([np.ones(len(prototypes)), prototypes.y])


def null_sums(null, base):
    """Return the null model's part of sums over null model and prototypes, (n, Q).

    For classes: K class probabilities. For a numeric response: weight 1 and response 0.
    null : Prototypes or BatchState, with the null intercepts; base : (n, n_scores) offsets"""
    if null.loss == CLASSES:
        return prior(null.level, base, null.n_classes)
    return np.tile([1.0, 0.0], (len(base), 1))


def link_scores(null, sums, base):
    """Turn sums over prototypes into linear predictors (n, n_scores) (Eq. 2.6 of Ruf 2022).

    sums : (n, Q) weight per class; for a number, total weight and weighted sum of responses
    null : Prototypes or BatchState, with the null intercepts; base : (n, n_scores) offsets"""
    if null.loss != CLASSES:
        return base + null.level + null.scale * (sums[:, 1:] / sums[:, :1])
    log = np.log(np.maximum(sums, 1e-300))
    if base.shape[1] == 1:
        return (log[:, 1] - log[:, 0])[:, None]
    return log - np.log(sums.sum(axis=1, keepdims=True))


def prior(intercept, offset, n_classes):
    """Return class probabilities (n, n_classes) for logits intercept (K,) + offset (n, K)."""
    score = intercept + offset
    if n_classes > 2 or score.shape[1] > 1:
        return softmax(score, axis=1)
    p = expit(score[:, 0])
    return np.column_stack([1.0 - p, p])


@dataclass(frozen=True)
class Mixture:
    """Mixture of the null model and M prototypes that estimates n rows (Eq. 2.4 of Ruf 2022).

    An estimate is shift + (prior + sum_j W_j targets_j) / (1 + sum_j W_j), where W_j is the weight
    of prototype j times its similarity with the row."""

    shift: np.ndarray  # zero for classes; for a number, the null model's mean plus the offset
    prior: np.ndarray  # class probabilities of the null model; zero for a number
    targets: np.ndarray  # one-hot classes of the prototypes, or responses minus the null model

    @classmethod
    def from_prototypes(cls, prototypes, base):
        """Return the Mixture of null model and prototypes; base : (n, n_scores) offsets of rows."""
        if prototypes.loss == CLASSES:
            p0 = null_sums(prototypes, base)
            return cls(np.zeros_like(p0), p0, response_values(prototypes))
        shift = prototypes.level + base
        return cls(shift, np.zeros_like(shift), prototypes.scale * prototypes.y[:, None])

    def estimate(self, total, mass):
        """Return estimates (n, K) from sums over the prototypes.

        total : (n, K) sum of W_j targets_j over prototypes j; mass : (n,) sum of the weights W_j"""
        return self.shift + (self.prior + total) / (1.0 + mass)[:, None]


def estimates_at(prototypes, x, threads):
    """Return estimates (n, K) without offset, and sums of weighted similarities (n,).

    prototypes : Prototypes of the fit; x : (n, A) rows of active features"""
    mixture = Mixture.from_prototypes(prototypes, np.zeros((len(x), len(prototypes.level))))
    active = replace(prototypes, features=np.arange(x.shape[1]))
    values = np.column_stack([mixture.targets, np.ones(len(prototypes))])
    sums = weighted_sums(active, values, tiles.pack(x), len(x), threads)
    return mixture.estimate(sums[:, :-1], sums[:, -1]), sums[:, -1]


def score_nodes(prototypes, features, offset):
    """Return linear predictors of Prototypes for export, expressions of `features` and `offset`."""
    t = prototypes
    values = response_values(t)
    sums = [_kernel_sum(t, values[:, q], features) for q in range(values.shape[1])]
    if t.loss != CLASSES:
        total = weighted(1.0, [1.0], [sums[0]])
        mean = call("over", sums[1], total)
        return [weighted(t.level[0], [1.0, t.scale], [offset, mean], "score")]
    if isinstance(offset, Constant):
        p = prior(t.level, np.zeros((1, len(t.level))), t.n_classes)[0]
        priors = [Constant(float(share)) for share in p]
    else:  # only with two classes
        p = call("logistic", weighted(t.level[0], [1.0], [offset]))
        priors = [weighted(1.0, [-1.0], [p]), p]
    pairs = zip(priors, sums, strict=True)
    shares = [weighted(0.0, [1.0, 1.0], pair) for pair in pairs]
    logs = [call("log_positive", share) for share in shares]
    if len(t.level) > 1:
        return logs
    return [weighted(0.0, [1.0, -1.0], [logs[1], logs[0]], "score")]


def _kernel_sum(t, values, features):
    """Return an export expression: the sum of weight * value * similarity over prototypes.

    t : Prototypes; values : (M,), per prototype; features : expressions of the features"""
    parts = []
    for c in range(1, t.n_batches + 1):
        of = t.of_batch(c)
        of = of[t.w[of] * values[of] != 0.0]
        on = np.flatnonzero(t.v[c - 1])
        if len(of) and not len(on):  # no feature weight: a constant
            parts.append(Constant(float(t.w[of] @ values[of])))
        elif len(of):
            v = t.v[c - 1][on]
            point = tuple(
                weighted(0.0, [s], [features[k]]) for s, k in zip(v, t.features[on], strict=True)
            )
            parts.append(Kernels(point, t.x[of][:, on] * v, t.w[of] * values[of]))
    return weighted(0.0, [1.0] * len(parts), parts) if parts else ZERO
