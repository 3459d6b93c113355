"""Lower bounds of the deviance at a price, and the relaxation of least squares behind them."""

from dataclasses import dataclass

import numpy as np

from lodim.models.costnet.search.candidates import ROUNDING, affordable

SAFE = 1.0 - 1e-9  # of the diagonal that is split off, against rounding
LEVELS = 8  # prices for which a relaxation is solved; the others take that of the next higher
CUTS = 8  # cuts of the relaxation at each price
MOVE = 0.2  # of the way to a linear program's solution, from which the next cut is taken
TOLERANCE = 1e-6  # of the null deviance, for the tolerances of solvers
SEPARATED = 1e-2  # share of the null deviance below which classes may be separated entirely


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Perspective relaxation: mean square of a model, convex in shares z in [0, 1] of its columns.

    With gram = rest + diag(split), rest positive semidefinite, and the target b,

        F(z) = min over w of null + w'rest w + sum_j split_j w_j^2 / z_j - 2 b'w

    is convex, and the deviance of the support's own least squares where z is 0 or 1 (Günlük and
    Linderoth 2010). A split near the column's variance given all others makes it tight.

    rest : (q, q); split : (q,); target : (q,); null : deviance without a column
    """

    rest: np.ndarray
    split: np.ndarray
    target: np.ndarray
    null: float

    @classmethod
    def from_gram(cls, gram, target, null):
        """The relaxation of columns with a Gram matrix (q, q) and target (q,), centred."""
        values, vectors = np.linalg.eigh(gram)
        values = np.maximum(values, 1e-12 * values[-1:].max(initial=0.0))
        split = 1.0 / np.maximum(((vectors / values) * vectors).sum(axis=1), 1e-300)
        root = np.sqrt(split)
        least = np.linalg.eigvalsh(gram / np.outer(root, root))[:1].max(initial=0.0)
        split = split * max(least * SAFE - 1e-12, 0.0)
        return cls(gram - np.diag(split), split, target, float(null))

    @property
    def vacuous(self):
        """Whether collinear columns leave nothing to split off."""
        return not len(self.split) or self.split.min() <= 1e-10 * np.diag(self.rest).max()

    def solve(self, z):
        """The coefficients w at shares z, (q,)."""
        root = np.sqrt(z)
        inner = self.rest * np.outer(root, root)
        inner[np.diag_indices_from(inner)] += self.split
        return root * np.linalg.solve(inner, root * self.target)

    def cut(self, w):
        """(c, h (q,)) with F(z) >= c - h'z for all z, whatever w (q,) is; best that of a near z."""
        slope = self.rest @ w - self.target
        return self.null - w @ self.rest @ w, slope**2 / self.split


def lower_bounds(search, prices):
    """Lower bounds of the mean deviance, as a function of prices, from those at some (M,).

    At each price only candidates count that it pays for by themselves. The refit of all of these is
    a bound. For a numeric response the perspective relaxation is a tighter one: its cuts in the
    shares of the candidates, minimized over all shares that the price pays for, each candidate's
    being at most that of what it needs. The bound of a higher price is one as well, since a lower
    price buys nothing more.
    """
    # Most prices are solved for where models are few and their bounds differ most.
    at = np.unique(np.geomspace(1, len(prices), LEVELS).round().astype(int)) - 1
    levels = np.sort(np.asarray(prices, float))[at]
    values = [0.0 if search.space.screened else _lower_bound(search, price) for price in levels]
    values = np.maximum.accumulate(values[::-1])[::-1]

    def lower(price):
        next_level = np.searchsorted(levels * (1.0 + ROUNDING), price)
        return np.append(values, 0.0)[next_level]

    return lower


def raised_bounds(lower, budgets, optima):
    """The bounds `lower`, raised to the least deviances (B,) that are known of budgets (B,)."""

    def raised(price):
        out = np.array(lower(price))
        for budget, least in zip(budgets, optima, strict=True):
            out = np.where(affordable(price, budget), np.maximum(out, least), out)
        return out

    return raised


def _lower_bound(search, price):
    """Lower bound of the mean deviance at one price."""
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
    """The least that the cuts of a relaxation allow at a price, of the candidates `used`."""
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
    """min eta over shares of candidates that a price pays for, under cuts eta >= c - h'share.

    The variables are the shares of the nodes that candidates need, those of things (of which copies
    are one), and eta.
    """

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
        """The least eta and the shares of the candidates there, with one more cut."""
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
