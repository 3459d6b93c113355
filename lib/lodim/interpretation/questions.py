"""What is asked of a fit, and of the replicates of a bootstrap, for effects."""

from dataclasses import dataclass

import numpy as np

from lodim.design.factors import Missing, Numeric, needs
from lodim.interpretation import accumulated_local_effects as ale
from lodim.interpretation import importance, plans

MANY_ROWS = 10_000  # from here up gradients of rows stand for differences across their intervals


@dataclass(frozen=True)
class Found:
    """Effects of one term: estimates (q, K), and of each replicate (R, q, K).

    error : (q, K) standard errors that are known without replicates, or None
    """

    term: str
    values: list
    estimate: np.ndarray
    replicates: np.ndarray
    error: np.ndarray | None = None


@dataclass(frozen=True)
class Question:
    """What is asked of a fit and of its replicates, `fits`, the fit first."""

    fits: list
    kind: str
    type: str
    seed: int

    def of(self, rows, features, terms):
        """What is Found of each term."""
        if self.kind == "importance":
            return self._importance(rows, features, terms)
        drawn = plans.drawn_rows(self.fits[0], rows, self.seed) if self.kind == "pd" else None
        by_gradient = self._by_gradients(rows, features, terms)
        return [by_gradient.get(term) or self._planned(rows, features, term, drawn)
                for term in terms]  # fmt: skip

    def _planned(self, rows, features, term, drawn):
        """Of one term, by predictions of changed rows."""
        if isinstance(term, tuple):
            plan = plans.interaction(rows, [features[name] for name in term])
        elif self.kind == "ale":
            others = [
                (f.values, len(f.levels or ())) for name, f in features.items() if name != term
            ]
            plan = plans.local_effects(rows, features[term], others)
        elif self.kind == "pd":
            plan = plans.dependence(rows, features[term], drawn)
        else:
            plan = plans.slopes(rows, features[term])
        each = np.array(
            [plan.reduce([r.answers(fit, self.type) for r in plan.changed]) for fit in self.fits]
        )
        label = term if isinstance(term, str) else ":".join(term)
        return Found(label, plan.values, each[0], each[1:])

    def _by_gradients(self, rows, features, terms):
        """Of the terms that gradients of many rows serve, all in one pass for each fit."""
        design, fit = self.fits[0].design, self.fits[0]
        if self.kind != "ale" or "local" not in fit.types or rows.n < MANY_ROWS:
            return {}
        alone = _alone(design)
        served = {}
        for term in terms:
            if isinstance(term, str) and term in alone and features[term].levels is None:
                at = np.flatnonzero(np.isfinite(features[term].values) & (rows.weight > 0.0))
                x = features[term].values[at]
                edges = ale.edges_of(x, rows.weight[at], ale.BINS) if at.size else np.empty(0)
                if len(edges) == ale.BINS + 1:  # a number of few values has few slopes to see
                    served[term] = at, edges, ale.bins_of(x, edges)
        each = {term: [] for term in served}
        for one in self.fits if served else ():
            gradient = self._gradient(one, rows)
            for term, (at, edges, bin_of) in served.items():
                change = gradient[at, :, alone[term]] * np.diff(edges)[bin_of][:, None]
                curve = ale.accumulate(change, bin_of, rows.weight[at], ale.BINS)
                each[term].append(curve)
        return {
            term: Found(term, [*served[term][1]], curves[0], np.array(curves[1:]))
            for term, curves in each.items()
        }

    def _gradient(self, fit, rows):
        """Derivatives (n, K, p) of predictions by the design's features; NaN without."""
        batch = rows.batch(fit.design)
        gradient = fit._predict(batch, "local")[0].reshape(batch.n, fit.family.n_scores, -1)
        if self.type == "response" and fit.levels is not None:
            p = fit.family.mean(fit._score(batch)).reshape(batch.n, -1)
            if p.shape[1] == 1:
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
        orders = importance.permutations(self.fits[0], rows, self.seed)
        bases = [importance.losses(fit, rows) for fit in self.fits]
        found = []
        for term in terms:
            each = np.array([
                importance.mean_and_error(
                    importance.increases(fit, rows, features[term], orders, base), rows.weight
                )
                for fit, base in zip(self.fits, bases, strict=True)
            ])  # fmt: skip
            mean, error = each[:, 0, None, None], each[0, 1].reshape(1, 1)
            found.append(Found(term, ["permuted"], mean[0], mean[1:], error))
        return found


def _alone(design):
    """Places in the design of the numbers that are a term of their own and in no other term.

    But for that which says where they are missing: rows with a value have none of it.
    """
    parts = [part for term in design.terms for part in term if not isinstance(part, Missing)]
    used = [name for part in parts for name in needs(part)]
    place = {}
    for t, term in enumerate(design.terms):
        if len(term) == 1 and isinstance(term[0], Numeric) and used.count(term[0].name) == 1:
            place[term[0].name] = int(np.flatnonzero(design.term_of == t)[0])
    return place
