"""Effects of terms, computed for a fit and for the replicates of a bootstrap."""

from dataclasses import dataclass

import numpy as np

from lodim.engine import row_keys
from lodim.interpretation import plans
from lodim.progress import steps


@dataclass(frozen=True)
class TermEffect:
    """Effect of one term at q points, for K classes or one response."""

    term: str
    values: list  # the q points
    estimate: np.ndarray  # (q, K)
    replicates: np.ndarray  # (R, q, K) estimates of bootstrap replicates
    error: np.ndarray | None = None  # (q, K) standard errors without replicates


@dataclass(frozen=True)
class Question:
    """Request for effects of one kind, such as "ale", of a fit and its bootstrap replicates."""

    fits: list  # the fit first, then the replicates
    kind: str
    type: str
    seed: int

    def of(self, rows, features, terms):
        """Return a list of TermEffects, one per term: estimates at several values of the term.

        rows : Rows to average over; features : dict name -> Feature; terms : names or name pairs"""
        if self.kind == "importance":
            return self._importance(rows, features, terms)
        if self.kind == "pd":
            drawn = plans.drawn_rows(self.fits[0], rows, self.seed)
        found = []
        for term in steps(terms, len(terms), "terms"):
            if isinstance(term, tuple):
                plan = plans.interaction(rows, [features[name] for name in term])
            elif self.kind == "ale":
                others = [feature for name, feature in features.items() if name != term]
                plan = plans.local_effects(rows, features[term], others)
            elif self.kind == "pd":
                plan = plans.dependence(rows, features[term], drawn)
            else:
                plan = plans.slopes(rows, features[term])
            answers = ([one.answers(fit, self.type) for one in plan.changed] for fit in self.fits)
            each = np.array(list(map(plan.reduce, answers)))
            label = term if isinstance(term, str) else ":".join(term)
            found.append(TermEffect(label, plan.values, each[0], each[1:]))
        return found

    def _importance(self, rows, features, terms):
        """Return a TermEffect per term: the increase of the mean deviance if it is permuted."""
        # Permutations depend on the rows' content, not on their order.
        batch, key = rows.batch(self.fits[0]._reader, response=True), np.full(rows.n, np.inf)
        if batch.n:
            key[batch.rows] = row_keys.of_batch(batch, 0)[0]
        order, orders = np.argsort(key, kind="stable"), np.empty((REPEATS, rows.n), np.int64)
        seeds = np.random.SeedSequence(self.seed).spawn(REPEATS)
        for one, child in zip(orders, seeds, strict=True):
            one[order] = order[np.random.default_rng(child).permutation(rows.n)]
        bases = [losses(fit, rows) for fit in self.fits]
        found = []
        for term in steps(terms, len(terms), "terms"):
            each, feature = [], features[term]
            for fit, base in zip(self.fits, bases, strict=True):
                permuted = (rows.with_values(feature, feature.values[at]) for at in orders)
                increase = np.array([losses(fit, one) - base for one in permuted])
                each.append(mean_and_error(increase, rows.weight))
            each = np.array(each)
            mean, error = each[:, 0, None, None], each[0, 1].reshape(1, 1)
            found.append(TermEffect(term, ["permuted"], mean[0], mean[1:], error))
        return found


REPEATS = 5  # number of permutations per feature


def losses(fit, rows):
    """Return the deviance (n,) of each row; NaN without response or prediction."""
    batch = rows.batch(fit._reader, response=True)
    known, score = fit._answered(batch)
    full = np.full(rows.n, np.nan)
    full[known.rows] = fit.family.deviance(known.y, score)
    return full


def mean_and_error(increase, weight):
    """Return the weighted mean increase of the loss when a feature is permuted, and its SE.

    increase : (repeats, n); rows with NaN are left out. The SE covers rows and permutations."""
    known = np.isfinite(increase).all(axis=0)
    if known.sum() < 2:  # nothing to permute
        return np.nan, np.nan
    increase, share = increase[:, known], weight[known] / weight[known].sum()
    each = increase @ share
    of_rows = increase.mean(axis=0)
    variance = share**2 @ (of_rows - share @ of_rows) ** 2
    return each.mean(), np.sqrt(variance + each.var(ddof=1) / len(each))
