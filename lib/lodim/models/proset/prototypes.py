"""The estimates of proset, weighted training points, and what follows from them row by row."""

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
from lodim.models.proset.kernels.cpu import (
    CLASSES,
    DENSITY,
    SQUARED,
    kernel_rows,
    kernel_sums,
    scaled,
)
from lodim.models.proset.objective import padded

KINDS = {CLASSES: "classes", SQUARED: "squared", DENSITY: "density"}
STEP = 4  # tiles that a thread takes at a time
PART = 16 * TILES_PER_BLOCK  # tiles that are on a GPU at a time
MOST_NUMBERS = 2**23  # of a temporary: bounds the memory of predictions


@dataclass(frozen=True)
class Prototypes:
    """M prototypes in B batches, on standardized features.

    features : (A,) int, features with a weight above zero in some batch; no other enters
    x : (M, A) the prototypes' features; y : (M,) class code, or (y - offset - level) / scale
    w : (M,) weights; batch : (M,) int, from 1
    row : (M,) int, position in the training data of the first row that each stands for
    member, member_of : (R,) int, all rows that were merged, and the prototype they are in
    v : (B, A) feature weights, per standard deviation; u : (B,) widths' inverses of loss="density"
    level : (K,) score of the null model beside the offset; scale : sd of a numeric response, else 1
    loss : code of `kernels`; n_classes : number of classes, 0 for a numeric response
    """

    features: np.ndarray
    x: np.ndarray
    y: np.ndarray
    w: np.ndarray
    batch: np.ndarray
    row: np.ndarray
    member: np.ndarray
    member_of: np.ndarray
    v: np.ndarray
    u: np.ndarray
    level: np.ndarray
    scale: float
    loss: int
    n_classes: int

    def __len__(self):
        return len(self.w)

    @property
    def n_batches(self):
        """Number of batches."""
        return len(self.v)

    def of_batch(self, c):
        """Positions of the prototypes of batch c, from 1."""
        return np.flatnonzero(self.batch == c)

    def first(self, n_batches):
        """The prototypes of the first batches; earlier ones do not depend on later ones."""
        keep = self.batch <= n_batches
        place = np.cumsum(keep) - 1
        held = keep[self.member_of] if len(self.member_of) else np.zeros(0, bool)
        parts = {name: getattr(self, name)[keep] for name in ("x", "y", "w", "batch", "row")}
        return replace(
            self, **parts, member=self.member[held], member_of=place[self.member_of[held]],
            v=self.v[:n_batches], u=self.u[:n_batches],
        )  # fmt: skip

    def only(self, c):
        """Batch c, from 1, by itself."""
        of = self.of_batch(c)
        place = np.full(len(self), -1)
        place[of] = np.arange(len(of))
        held = np.isin(self.member_of, of)
        parts = {name: getattr(self, name)[of] for name in ("x", "y", "w", "row")}
        return replace(
            self, **parts, batch=np.ones(len(of), np.int64), member=self.member[held],
            member_of=place[self.member_of[held]], v=self.v[c - 1 : c], u=self.u[c - 1 : c],
        )  # fmt: skip

    def over_all(self, x):
        """The same with all p features, x (M, p)."""
        v = np.zeros((len(self.v), x.shape[1]))
        v[:, self.features] = self.v
        return replace(self, features=np.arange(x.shape[1]), x=x, v=v)

    def check(self, p, family):
        """Raise ValueError unless the fields fit each other, p features and the family."""
        K = family.n_scores
        n_classes = {"gaussian": 0, "binomial": 2}.get(family.name, K)
        M, B = len(self.w), len(self.v)
        known = {
            "features": forms.ascending(forms.whole("A", most=p - 1), strictly=True),
            "w": forms.real("M", least=0), "x": forms.real("M", "A"),
            "y": forms.codes("M", n_classes) if n_classes else forms.real("M"),
            "batch": forms.ascending(forms.whole("M", least=1, most=B)),
            "row": forms.whole("M"), "member": forms.whole("R"),
            "member_of": forms.whole("R", most=M - 1), "v": forms.real("B", "A", least=0),
            "u": forms.real("B", least=0), "level": forms.real(K),
            "scale": forms.real(least=forms.TINY), "n_classes": forms.choice(n_classes),
            "loss": forms.choice(*((CLASSES,) if n_classes else (SQUARED, DENSITY))),
        }  # fmt: skip
        if not forms.check(self, known)["B"]:
            raise ValueError("there is no batch")


def join(parts):
    """One record of batches that hold all p features: those without weight are left out."""
    first = parts[0]
    v = np.concatenate([part.v for part in parts])
    features = np.flatnonzero(v.any(axis=0))
    start = np.cumsum([0, *(len(part) for part in parts)])[:-1]
    whole = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("y", "w", "row", "member", "u")
    }
    before = np.cumsum([0, *(part.n_batches for part in parts)])[:-1]
    batch = [part.batch + b for part, b in zip(parts, before, strict=True)]
    member_of = [part.member_of + s for part, s in zip(parts, start, strict=True)]
    return replace(
        first, **whole, features=features, v=v[:, features],
        x=np.concatenate([part.x[:, features] for part in parts]),
        batch=np.concatenate(batch), member_of=np.concatenate(member_of),
    )  # fmt: skip


def sums(prototypes, values, tiles, n, threads=1, engine="cpu"):
    """sum_j w_j G_j(x) values_jq of each row, (n, Q); values (M, Q). All estimates are of these."""
    out, kernels = np.zeros((len(tiles), values.shape[1], TILE)), []
    for c, of in _batches(prototypes):
        active, v, V = _kernel(prototypes, c, of)
        weighted = padded((prototypes.w[of, None] * values[of]).T)
        kernels.append((active, v, V, len(of), _widened(weighted, len(V))))
    for lo in range(0, len(tiles), PART):
        part = place(tiles[lo : lo + PART], engine)
        for kernel in kernels:
            _over(kernel_sums, part, threads, *kernel, out[lo : lo + PART])
    return out.transpose(0, 2, 1).reshape(-1, values.shape[1])[:n]


def impacts(prototypes, tiles, n, threads=1):
    """w_j G_j(x): what each prototype adds to its target in each row, (n, M)."""
    out = np.empty((n, len(prototypes)))
    for c, of in _batches(prototypes):
        active, v, V = _kernel(prototypes, c, of)
        step = max(1, MOST_NUMBERS // (TILE * len(of)))
        for lo in range(0, len(tiles), step):
            part = tiles[lo : lo + step]
            one = np.empty((len(part), len(of), TILE))
            _over(kernel_rows, part, threads, active, v, V, prototypes.w[of], one)
            rows = slice(lo * TILE, min(n, (lo + step) * TILE))
            flat = one.transpose(0, 2, 1).reshape(-1, len(of))
            out[rows, of[0] : of[-1] + 1] = flat[: rows.stop - rows.start]
    return out


def _batches(prototypes):
    """Number and positions of each batch that has prototypes."""
    numbered = ((c, prototypes.of_batch(c)) for c in range(1, prototypes.n_batches + 1))
    return [(c, of) for c, of in numbered if len(of)]


def _kernel(prototypes, c, of):
    """The kernels' view of a batch: active features, v, and the prototypes `scaled`."""
    v = prototypes.v[c - 1]
    on = np.flatnonzero(v)
    return prototypes.features[on], v[on], scaled(prototypes.x, v[on], of, on)


def _widened(values, width):
    out = np.zeros((len(values), width))
    out[:, : values.shape[1]] = values
    return out


def _over(kernel, tiles, threads, *args):
    if on_host(tiles):
        for_blocks(kernel, -(-len(tiles) // STEP), tiles, STEP, *args, threads=threads)
    else:
        tiles.run(kernel, *args)


# Classes -----------------------------------------------------------------------------------------


def prior(level, base, n_classes):
    """p0_k: probabilities of the null model with each row's offset, (n, n_classes)."""
    score = level + base
    if n_classes > 2 or score.shape[1] > 1:
        return softmax(score, axis=1)
    p = expit(score[:, 0])
    return np.column_stack([1.0 - p, p])


def one_hot(prototypes):
    """(M, n_classes), one where a prototype is of the class."""
    return np.eye(prototypes.n_classes)[prototypes.y.astype(int)]


def class_scores(q, n_scores):
    """Scores of unnormalized probabilities q (n, K), Eq. 2.6: the logit, or logarithms."""
    log = np.log(np.maximum(q, 1e-300))
    if n_scores == 1:
        return (log[:, 1] - log[:, 0])[:, None]
    return log - np.log(q.sum(axis=1, keepdims=True))


SAME = 1e-6  # largest difference, in features times their weights and in the target
CELL = SAME / 16  # points of one cell are taken for one: what is near SAME may fall either way


def merge(points, w):
    """One prototype for each group of equal ones: connected components of max-norm <= SAME.

    Parameters
    ----------
    points : array (J, D + 1)
        Active features times their weights, and the target.
    w : array (J,)

    Returns
    -------
    first, w, of : arrays (M,), (M,), (J,)
        Position of the first member of each group, in increasing order; the sum of its weights; the
        group of each prototype.
    """
    # However often a point is repeated, the tree sees it once: pairs would grow as the square.
    cells = np.floor(points / CELL)
    some, cell = np.unique(cells, axis=0, return_index=True, return_inverse=True)[1:]
    pairs = cKDTree(points[some]).query_pairs(SAME, p=np.inf, output_type="ndarray")
    graph = coo_array((np.ones(len(pairs)), pairs.T), shape=(len(some), len(some)))
    group = connected_components(graph, directed=False)[1][cell.ravel()]
    first, group = np.unique(group, return_index=True, return_inverse=True)[1:]
    order = np.argsort(first)
    of = np.argsort(order)[group.ravel()]
    # Without any weights NumPy's bincount gives whole numbers.
    return first[order], np.bincount(of, w, len(first)).astype(np.float64), of


class HeldOut:
    """Running sums over the prototypes for the rows of a batch.

    q (n, K): unnormalized probabilities of Eq. 2.6; of a numeric response (1 + sum_j w_j G_j,
    sum_j w_j G_j y_j).
    """

    def __init__(self, batch, training):
        self._batch, self._training = batch, training
        base = batch.offset_matrix(training.family.n_scores)
        self._base = base
        if training.loss == CLASSES:
            self._q = prior(training.level, base, training.n_classes)
        else:
            self._q = np.column_stack([np.ones(batch.n), np.zeros(batch.n)])

    def add(self, part):
        """Add a batch of prototypes."""
        values = one_hot(part) if part.loss == CLASSES else moments(part)
        batch = self._batch
        self._q = self._q + sums(part, values, batch.X, batch.n, self._training.threads)

    def score(self):
        """Link scores, (n, n_scores)."""
        t = self._training
        if t.loss == CLASSES:
            return class_scores(self._q, t.family.n_scores)
        return self._base + t.level + t.scale * (self._q[:, 1:] / self._q[:, :1])


def moments(prototypes):
    """One and the target of each prototype, (M, 2)."""
    return np.column_stack([np.ones(len(prototypes)), prototypes.y])


@dataclass(frozen=True)
class Mixture:
    """shift + (prior + sum_j W_j targets_j) / (1 + sum_j W_j), W_j = w_j G_j(x), for n rows.

    Classes: the prior is p0, a target one where a prototype is of the class. Numbers: the shift is
    the null model's mean (with each row's offset), a target the distance from it.

    shift, prior : (n, K); targets : (M, K)
    """

    shift: np.ndarray
    prior: np.ndarray
    targets: np.ndarray

    @classmethod
    def of(cls, prototypes, base):
        """The mixture of rows with an offset, base (n, n_scores)."""
        if prototypes.loss == CLASSES:
            p0 = prior(prototypes.level, base, prototypes.n_classes)
            return cls(np.zeros_like(p0), p0, one_hot(prototypes))
        shift = prototypes.level + base
        return cls(shift, np.zeros_like(shift), prototypes.scale * prototypes.y[:, None])

    def estimate(self, total, mass):
        """Estimates (n, K) from sum_j W_j targets_j (n, K) and sum_j W_j (n,)."""
        return self.shift + (self.prior + total) / (1.0 + mass)[:, None]


def sums_at(prototypes, x, threads):
    """sum_j W_j targets_j and sum_j W_j at points x (n, A) of the active features alone."""
    targets = Mixture.of(prototypes, np.zeros((1, len(prototypes.level)))).targets
    narrow = replace(prototypes, features=np.arange(x.shape[1]))
    values = np.column_stack([targets, np.ones(len(prototypes))])
    S = sums(narrow, values, tiles.pack(x), len(x), threads)
    return S[:, :-1], S[:, -1]
