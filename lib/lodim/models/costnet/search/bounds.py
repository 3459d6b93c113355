"""Lower bounds of the deviance at a price, from a relaxation of least squares."""

from dataclasses import dataclass

import numpy as np

from lodim.models.costnet.search.candidates import ROUNDING, affordable

SAFE = 1.0 - 1e-9  # factor of the diagonal that is split off, for rounding
LEVELS = 8  # prices for which a relaxation is solved; others use the next higher price
CUTS = 8  # cuts of the relaxation at each price
MOVE = 0.2  # share of the way to a linear program's solution, for the next cut
TOLERANCE = 1e-6  # share of the null deviance, for solvers' tolerances
SEPARATED = 1e-2  # share of the null deviance below which classes may be separated


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Perspective relaxation: mean squared error, convex in shares z in [0, 1] of the columns used.

    With gram = rest + diag(split), rest positive semidefinite, and target b (products with y),

            F(z) = min over w of null + w'rest w + sum_j split_j w_j^2 / z_j - 2 b'w

    is convex. It equals the deviance of the least-squares fit if all z are 0 or 1 (Günlük and
    Linderoth 2010). `null` is the deviance without a column."""

    rest: np.ndarray
    split: np.ndarray
    target: np.ndarray
    null: float

    @classmethod
    def from_gram(cls, gram, target, null):
        """Return the relaxation for q centred columns with a Gram matrix (q, q).

        target (q,) : products of the columns with y; null : deviance without a column"""
        values, vectors = np.linalg.eigh(gram)
        values = np.maximum(values, 1e-12 * values[-1:].max(initial=0.0))
        split = 1.0 / np.maximum(((vectors / values) * vectors).sum(axis=1), 1e-300)
        root = np.sqrt(split)
        least = np.linalg.eigvalsh(gram / np.outer(root, root))[:1].max(initial=0.0)
        split = split * max(least * SAFE - 1e-12, 0.0)
        return cls(gram - np.diag(split), split, target, float(null))

    @property
    def vacuous(self):
        """Whether columns are so collinear that the bound is useless."""
        return not len(self.split) or self.split.min() <= 1e-10 * np.diag(self.rest).max()

    def solve(self, z):
        """Return the best coefficients w (q,) if column j is used with the share z_j in [0, 1]."""
        root = np.sqrt(z)
        inner = self.rest * np.outer(root, root)
        inner[np.diag_indices_from(inner)] += self.split
        return root * np.linalg.solve(inner, root * self.target)

    def cut(self, w):
        """Return c and h (q,) of a lower bound c - h'z of the deviance at shares z of columns.

        It is exact at the shares for which the coefficients w (q,) are optimal."""
        slope = self.rest @ w - self.target
        return self.null - w @ self.rest @ w, slope**2 / self.split


def lower_bounds(search, prices):
    """Return a function of prices (M,) that gives lower bounds of the mean deviance at each.

    At each price only columns that it can pay for count. Refitting all of them gives a bound; for a
    numeric response a relaxation gives a tighter one. Bounds are computed at a few prices, since a
    bound is valid for lower prices too."""
    # More prices are solved for small models, whose bounds differ most.
    at = np.unique(np.geomspace(1, len(prices), LEVELS).round().astype(int)) - 1
    levels = np.sort(np.asarray(prices, float))[at]
    values = [0.0 if search.space.screened else _lower_bound(search, price) for price in levels]
    values = np.maximum.accumulate(values[::-1])[::-1]

    def lower(price):
        next_level = np.searchsorted(levels * (1.0 + ROUNDING), price)
        return np.append(values, 0.0)[next_level]

    return lower


def raised_bounds(lower, budgets, optima):
    """Return `lower` (function prices -> bounds of the deviance), raised by proven optima.

    optima (B,) are the least deviances within the budgets (B,)."""

    def raised(price):
        out = np.array(lower(price))
        for budget, least in zip(budgets, optima, strict=True):
            out = np.where(affordable(price, budget), np.maximum(out, least), out)
        return out

    return raised


def _lower_bound(search, price):
    """Return a lower bound of the mean deviance at one price."""
    space, refits = search.space, search.final
    used, null = affordable(space.single_price, price), refits.null.deviance
    if not used.any():
        return null * (1.0 - TOLERANCE)
    on = space.columns_of(used)
    if refits.data.family.name != "gaussian":
        least = refits(on).deviance
        return 0.0 if least < SEPARATED * null else least - 1e-3 * null
    gram, target = refits.at_null.gram[np.ix_(on, on)], refits.at_null.target[on, 0]
    least = max(0.0, null - float(target @ np.linalg.pinv(gram, hermitian=True) @ target))
    if space.network.set_cost is None and not affordable(space.price(used), price):
        relaxation = Relaxation.from_gram(gram, target, null)
        if not relaxation.vacuous:
            least = max(least, _relaxed_bound(space, used, on, relaxation, price))
    return least - TOLERANCE * null


def _relaxed_bound(space, used, on, relaxation, price):
    """Return a lower bound of the deviance at a price, from linear bounds of a relaxation.

    used (m,) marks the nodes that the price can pay for; `on` are their columns."""
    candidates = np.flatnonzero(used)
    program = ShareProgram(space, candidates, price)
    owns = np.zeros((len(on), len(candidates)))
    for i, g in enumerate(candidates):
        owns[np.searchsorted(on, space.at[space.start[g] : space.start[g + 1]]), i] = 1.0
    total = space.incidence[candidates].any(axis=0) @ space.cost
    share = np.full(len(candidates), min(1.0, price / max(total, 1e-300)))
    least = -np.inf
    for _ in range(CUTS):
        c, h = relaxation.cut(relaxation.solve(np.minimum(1.0, owns @ share)))
        least, solution = program.solve_with_cut(c, owns.T @ h)
        share = (1.0 - MOVE) * share + MOVE * solution
    return least


class ShareProgram:
    """Linear program: smallest eta over shares within a price, under cuts eta >= c - h'share.

    Shares in [0, 1] say how much a column is used. A cut is a linear lower bound of the deviance
    eta. Other variables are the shares of needed nodes and of purchases."""

    def __init__(self, space, candidates, price):
        network = space.network
        nodes = np.flatnonzero(network.needs[space.candidates[candidates]].any(axis=0))
        at = {int(v): i for i, v in enumerate(nodes)}
        things = {int(b): len(nodes) + i for i, b in enumerate(np.unique(network.base[nodes]))}
        self.rows = [{at[v]: 1.0, at[u]: -1.0} for v in at for u in network.parents[v]]
        self.rows += [{at[v]: 1.0, things[int(network.base[v])]: -1.0} for v in at]
        self.right = [*([0.0] * len(self.rows)), price]
        self.rows.append({column: float(network.cost[b]) for b, column in things.items()})
        self.position = np.array([at[int(v)] for v in space.candidates[candidates]])
        self.n = len(nodes) + len(things) + 1

    def solve_with_cut(self, c, h):
        """Add a cut eta >= c - h'share; return the smallest eta, and the columns' shares at it."""
        from scipy.optimize import linprog  # a fifth of a second to import
        from scipy.sparse import csr_matrix

        cut = {int(i): 0.0 for i in self.position}
        for i, each in zip(self.position, h, strict=True):
            cut[int(i)] -= float(each)
        self.rows.append(cut | {self.n - 1: -1.0})
        self.right.append(-float(c))
        entry = [(r, k, value) for r, row in enumerate(self.rows) for k, value in row.items()]
        r, k, value = (np.array(part) for part in zip(*entry, strict=True))
        matrix = csr_matrix((value, (r, k)), shape=(len(self.rows), self.n))
        bounds = [(0.0, 1.0)] * (self.n - 1) + [(None, None)]
        objective = np.zeros(self.n)
        objective[-1] = 1.0
        end = linprog(objective, A_ub=matrix, b_ub=self.right, bounds=bounds, method="highs")
        if end.status != 0:
            return -np.inf, np.zeros(len(self.position))
        return float(end.fun), end.x[self.position]
