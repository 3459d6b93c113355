"""The best model within a budget, with a proof, for small problems."""

from dataclasses import dataclass

import numpy as np

from lodim.errors import ArgumentError, DataError
from lodim.models.costnet.search import sweep
from lodim.models.costnet.search.candidates import affordable
from lodim.models.costnet.search.moves import Search, SearchState

MOST_EXHAUSTIVE = 15  # most candidates whose subsets are all examined
MOST_PROGRAM = 60  # most candidates of a mixed-integer program
MOST_CUTS = 1000
TOL = 1e-9  # tolerance, relative to the null deviance
SAFE = 1.0 - 1e-9  # factor of the diagonal that is split off, for rounding


def optimum(search: Search, budget: float) -> SearchState:
    """Return the model (SearchState) with the lowest deviance within a budget, with proof."""
    space, n = search.space, len(search.space)
    if n <= MOST_EXHAUSTIVE and search.refits is search.final:
        return exhaustive(search, budget)
    data = search.refits.data
    numeric = data.family.name == "gaussian" and space.network.set_cost is None
    numeric &= not data.sign.any()
    if not numeric or n > MOST_PROGRAM or space.screened:
        most = MOST_PROGRAM if numeric else MOST_EXHAUSTIVE
        raise ArgumentError(
            f"rules='exact' is for at most {MOST_EXHAUSTIVE} affordable features, or "
            f"{MOST_PROGRAM} with a numeric response, a price per feature and no monotone=, not "
            f"{n}: lower the budget until {most} are affordable, or use other rules"
        )
    return best_subset(search, budget)


def exhaustive(search: Search, budget: float) -> SearchState:
    """Return the model (SearchState) of lowest deviance within a budget, by trying all selections.

    A selection is skipped if adding a candidate gives another one within the budget, because a
    further column never increases the deviance."""
    space, m = search.space, len(search.space)
    subsets = (np.arange(2**m)[:, None] >> np.arange(m)) & 1 > 0
    subsets = subsets[[_has_single_sources(space, used) for used in subsets]]
    if space.network.set_cost is None:
        prices = (subsets @ space.incidence > 0.0) @ space.cost
    else:
        prices = np.array([space.price(used) for used in subsets])
    states = (search.state(used) for used in _maximal(subsets[affordable(prices, budget)]))
    return min(states, key=lambda state: state.deviance)


def _has_single_sources(space, used):
    """Return whether the candidates in `used` need at most one source per set of alternatives."""
    return all(len(np.unique(column[column >= 0])) <= 1 for column in space.source[used].T)


def _maximal(subsets):
    """Yield the subsets that no other subset extends by one more element."""
    known = {row.tobytes() for row in subsets}
    for row in subsets:
        larger = np.repeat(row[None], len(row), axis=0)
        larger[np.arange(len(row)), np.arange(len(row))] = True
        if not any(other.tobytes() in known for other in larger[~row]):
            yield row


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Lower bound of the mean squared error if the q columns are used with shares z in [0, 1].

    The Gram matrix of the columns is rest + diag(split), with `rest` positive semidefinite; b is
    `target`, their products with y. The bound (perspective relaxation)

            F(z) = min over w of null + w'rest w + sum_j split_j w_j^2 / z_j - 2 b'w

    is convex in z. It is the error of the least-squares fit if all z are 0 or 1 (Günlük and
    Linderoth 2010). `null` is the error without a column."""

    rest: np.ndarray  # (q, q)
    split: np.ndarray  # (q,)
    target: np.ndarray  # (q,)
    null: float

    @classmethod
    def from_gram(cls, gram, target, null):
        """Return the bound for q centred columns with a Gram matrix (q, q).

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
        """Return the coefficients w (q,) at the minimum that defines the bound F(z)."""
        root = np.sqrt(z)
        inner = self.rest * np.outer(root, root)
        inner[np.diag_indices_from(inner)] += self.split
        return root * np.linalg.solve(inner, root * self.target)

    def cut(self, w):
        """Return c and h (q,) of a linear lower bound c - h'z of the mean squared error.

        It equals F(z) at the shares z for which the coefficients w (q,) are optimal."""
        slope = self.rest @ w - self.target
        return self.null - w @ self.rest @ w, slope**2 / self.split


def best_subset(search: Search, budget: float) -> SearchState:
    """Return the model (SearchState) of lowest deviance within a budget, by integer programming.

    Each step minimizes a lower bound of the deviance over the selections within the budget. The
    bound is the maximum of linear functions of the selection, called cuts. The solution adds a cut
    that is exact at it, until the bound reaches the deviance of a model (Duran and Grossmann 1986).
    """
    space, refits = search.space, search.final
    null, m = refits.null.deviance, len(space)
    at, owns = _independent_columns(space, refits.at_null.gram)
    gram, target = refits.at_null.gram[np.ix_(at, at)], refits.at_null.target[at, 0]
    relaxation = Relaxation.from_gram(gram, target, null)
    if relaxation.vacuous:
        raise DataError(
            "rules='exact' needs features that are not linear combinations of each other"
        )
    best, share, cuts, seen = search.state(np.zeros(m, bool)), np.full(m, 0.5), [], set()
    for _ in range(MOST_CUTS):
        c, h = relaxation.cut(relaxation.solve(np.minimum(1.0, owns @ share)))
        cuts.append((c, owns.T @ h))
        least, used = _master(space, budget, cuts)
        # At a support with a cut, eta is its deviance up to the solver's tolerance.
        if used.tobytes() in seen or least >= best.deviance - TOL * null:
            return best
        seen.add(used.tobytes())
        best, share = min(best, search.state(used), key=lambda s: s.deviance), used.astype(float)
    raise DataError(
        f"rules='exact' did not finish in {MOST_CUTS} iterations: lower the budget, or use other "
        "rules"
    )


def _independent_columns(space, gram):
    """Return the columns (r,) to use, and a matrix (r, m): 1 if the candidate has the column.

    The columns of a candidate are linearly independent, so one level of each category is left out.
    The fit is equal, and the relaxation requires it."""
    kept = []
    for g in range(len(space)):
        columns: list[int] = []
        for j in space.at[space.start[g] : space.start[g + 1]]:
            if sweep.rank(gram, np.array([*columns, j])) > len(columns):
                columns.append(int(j))
        kept.append(columns)
    at = np.unique(np.concatenate(kept)).astype(np.int64)  # copies own the same columns
    owns = np.zeros((len(at), len(space)))
    for g, columns in enumerate(kept):
        owns[np.searchsorted(at, columns), g] = 1.0
    return at, owns


def _master(space, budget, cuts):
    """Return the smallest lower bound of the deviance within a budget, and its selection (m,) bool.

    cuts : list of (c, h); the bound of a selection s is the largest c - h's"""
    import cvxpy as cp  # a second to import, and rarely used

    m, B = space.incidence.shape
    s, z, eta = cp.Variable(m, boolean=True), cp.Variable(B, boolean=True), cp.Variable()
    candidate, thing = np.nonzero(space.incidence)
    constraints = [z[thing] >= s[candidate], space.cost @ z <= budget]
    for sources in space.source.T:
        serving = np.unique(sources[sources >= 0])
        u = cp.Variable(len(serving), boolean=True)
        needing = np.flatnonzero(sources >= 0)
        chosen = u[np.searchsorted(serving, sources[needing])]
        constraints += [cp.sum(u) <= 1, s[needing] <= chosen]
    levels, slopes = np.array([c for c, _ in cuts]), np.array([h for _, h in cuts])
    constraints.append(eta >= levels - slopes @ s)
    cp.Problem(cp.Minimize(eta), constraints).solve(solver=cp.SCIPY)  # prints no banner
    return float(eta.value), np.asarray(s.value) > 0.5
