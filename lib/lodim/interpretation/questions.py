"""Effects of terms, computed for a fit and for the replicates of a bootstrap."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from lodim.design.factors import Missing, Numeric, needs
from lodim.engine import row_keys
from lodim.interpretation import accumulated_local_effects as ale
from lodim.interpretation import plans
from lodim.progress import steps

MANY_ROWS = 10_000  # from this number of rows on, gradients replace differences over intervals


@dataclass(frozen=True)
class TermEffect:
    """Effect of one term at q points, for K classes or one response."""

    term: str
    values: list  # the q points
    estimate: np.ndarray  # (q, K)
    replicates: np.ndarray  # (R, q, K) estimates of bootstrap replicates
    error: np.ndarray | None = None  # (q, K) standard errors without replicates


@dataclass(frozen=True)
class Along:
    """Intervals of a numeric feature, from which its accumulated local effect is computed.

    The effect changes by width times mean derivative over an interval. In the wide outer intervals,
    differences of predictions are used instead."""

    at: np.ndarray  # (n,) positions of rows in which the feature is known
    weight: np.ndarray
    edges: np.ndarray
    bin_of: np.ndarray  # (n,) interval of each of these rows
    outer: np.ndarray  # (n,) bool, rows in the first and the last interval
    ends: tuple  # those rows at the lower and the upper end of their interval

    @classmethod
    def from_rows(cls, rows, feature):
        """Cut a feature's range into intervals of equal weight, by rows with a value and weight."""
        at = np.flatnonzero(np.isfinite(feature.values) & (rows.weight > 0.0))
        x, weight = feature.values[at], rows.weight[at]
        edges = ale.edges_of(x, weight, ale.BINS) if at.size else np.empty(0)
        if len(edges) < 2:
            return cls(at, weight, edges, at, at, ())
        bin_of = ale.bins_of(x, edges)
        outer = (bin_of == 0) | (bin_of == len(edges) - 2)
        part, lower = rows.take(at[outer]), bin_of[outer]
        ends = tuple(part.with_values(feature, edges[lower + i]) for i in (0, 1))
        return cls(at, weight, edges, bin_of, outer, ends)

    def curve(self, gradient, fit, type):
        """Return the accumulated local effect at the edges, from derivatives (N, K) of all rows."""
        change = gradient[self.at] * np.diff(self.edges)[self.bin_of][:, None]
        low, high = (rows.answers(fit, type) for rows in self.ends)
        change[self.outer] = high - low
        return ale.accumulate(change, self.bin_of, self.weight, len(self.edges) - 1)


@dataclass(frozen=True)
class Question:
    """Requested kind of effect, such as "ale", of a fit and its replicates; `type` is the scale."""

    fits: list  # the fit first, then the replicates
    kind: str
    type: str
    seed: int

    def of(self, rows, features, terms):
        """Return the requested effect of each term, averaged over rows, as a list of TermEffect."""
        if self.kind == "importance":
            return self._importance(rows, features, terms)
        drawn = plans.drawn_rows(self.fits[0], rows, self.seed) if self.kind == "pd" else None
        by_gradient = self._by_gradients(rows, features, terms)
        return [
            by_gradient.get(term) or self._planned(rows, features, term, drawn)
            for term in steps(terms, len(terms), "terms")
        ]

    def _planned(self, rows, features, term, drawn):
        """Return the TermEffect of one term, by predicting rows with changed feature values."""
        if isinstance(term, tuple):
            plan = plans.interaction(rows, [features[name] for name in term])
        elif self.kind == "ale":
            others = [feature for name, feature in features.items() if name != term]
            plan = plans.local_effects(rows, features[term], others)
        elif self.kind == "pd":
            plan = plans.dependence(rows, features[term], drawn)
        else:
            plan = plans.slopes(rows, features[term])
        each = np.array(
            [plan.reduce([r.answers(fit, self.type) for r in plan.changed]) for fit in self.fits]
        )
        label = term if isinstance(term, str) else ":".join(term)
        return TermEffect(label, plan.values, each[0], each[1:])

    def _by_gradients(self, rows, features, terms):
        """Return a dict term -> effect, for terms whose effect needs only derivatives."""
        design, fit = self.fits[0].design, self.fits[0]
        if self.kind != "ale" or "local" not in fit.types or rows.n < MANY_ROWS:
            return {}
        alone = _alone(design)
        served = {}
        for term in terms:
            if isinstance(term, str) and term in alone and features[term].levels is None:
                along = Along.from_rows(rows, features[term])
                if len(along.edges) == ale.BINS + 1:  # only for numbers with many distinct values
                    served[term] = along
        curves = {term: [] for term in served}
        for one in self.fits if served else ():
            gradient = self._gradient(one, rows)
            for term, along in served.items():
                curves[term].append(along.curve(gradient[:, :, alone[term]], one, self.type))
        return {
            term: TermEffect(term, [*served[term].edges], found[0], np.array(found[1:]))
            for term, found in curves.items()
        }

    def _gradient(self, fit, rows):
        """Return derivatives (n, K, p) of predictions with respect to features; NaN if unknown."""
        batch = rows.batch(fit.design)
        family = fit.family
        gradient = fit._predict(batch, "local")[0].reshape(batch.n, family.n_functions, -1)
        gradient = np.repeat(gradient, family.n_scores // family.n_functions, axis=1)
        if self.type == "response" and fit.levels is not None:
            p = family.mean(fit._score(batch)).reshape(batch.n, -1)
            if family.shared_slopes:
                above = expit(fit._score(batch))  # probabilities of classes above a boundary
                steep = (above * (1.0 - above))[:, :, None] * gradient
                gradient = -np.diff(steep, axis=1, prepend=0.0, append=0.0)
            elif p.shape[1] == 1:
                gradient = (p * (1.0 - p))[:, :, None] * gradient
            else:
                mean = np.einsum("nk,nkp->np", p, gradient)[:, None]
                gradient = p[:, :, None] * (gradient - mean)
        if batch.n == rows.n:
            return gradient
        full = np.full((rows.n, *gradient.shape[1:]), np.nan)
        full[batch.rows] = gradient
        return full

    def _importance(self, rows, features, terms):
        orders = permutations(self.fits[0], rows, self.seed)
        bases = [losses(fit, rows) for fit in self.fits]
        found = []
        for term in steps(terms, len(terms), "terms"):
            pairs = zip(self.fits, bases, strict=True)
            rises = (increases(fit, rows, features[term], orders, base) for fit, base in pairs)
            each = np.array([mean_and_error(rise, rows.weight) for rise in rises])
            mean, error = each[:, 0, None, None], each[0, 1].reshape(1, 1)
            found.append(TermEffect(term, ["permuted"], mean[0], mean[1:], error))
        return found


def _alone(design):
    """Return a dict: numeric column that only occurs as its own term -> position of its feature."""
    parts = [part for term in design.terms for part in term if not isinstance(part, Missing)]
    used = [name for part in parts for name in needs(part)]
    place = {}
    for t, term in enumerate(design.terms):
        if len(term) == 1 and isinstance(term[0], Numeric) and used.count(term[0].name) == 1:
            place[term[0].name] = int(np.flatnonzero(design.term_of == t)[0])
    return place


REPEATS = 5  # number of permutations per feature


def losses(fit, rows):
    """Return the deviance (n,) of each row; NaN without response or prediction."""
    batch = rows.batch(fit._reader, response=True)
    known, score = fit._answered(batch)
    full = np.full(rows.n, np.nan)
    full[known.rows] = fit.family.deviance(known.y, score)
    return full


def increases(fit, rows, feature, orders, base):
    """Return the increase of each row's loss, (repeats, n), if a feature's values are permuted.

    `base` (n,) has the losses of the original rows."""
    return np.array(
        [losses(fit, rows.with_values(feature, feature.values[at])) - base for at in orders]
    )


def mean_and_error(increase, weight):
    """Return the weighted mean of increases (repeats, n), and its SE over rows and permutations."""
    known = np.isfinite(increase).all(axis=0) & (weight > 0.0)
    increase, share = increase[:, known], weight[known] / weight[known].sum()
    each = increase @ share
    of_rows = increase.mean(axis=0)
    variance = share**2 @ (of_rows - share @ of_rows) ** 2
    return each.mean(), np.sqrt(variance + each.var(ddof=1) / len(each))


def permutations(fit, rows, seed):
    """Return random permutations (repeats, n) that depend on the rows' content, not their order."""
    batch = rows.batch(fit._reader, response=True)
    key = np.full(rows.n, np.inf)
    key[batch.rows] = row_keys.of_batch(batch, 0)[0]
    order = np.argsort(key, kind="stable")
    orders = np.empty((REPEATS, rows.n), np.int64)
    for one, child in zip(orders, np.random.SeedSequence(seed).spawn(REPEATS), strict=True):
        one[order] = order[np.random.default_rng(child).permutation(rows.n)]
    return orders
