"""What a fit knows: the models of its price list and of the penalized path, and each as a step."""

from dataclasses import dataclass

import numpy as np

from lodim.models.costnet.penalty.groups import groups
from lodim.models.costnet.penalty.path import Trace
from lodim.models.costnet.search.frontier import Ladder

PENALIZED = "penalized"  # the rule of a model that is not refitted
DIGITS = 12  # of a sum of prices: .1 + .2 is .3


@dataclass(frozen=True, eq=False)
class Estimates:
    """What a fit knows.

    trace : Trace of the group penalty
    ladder : Ladder of all rules; None where a lambda_ was given
    lasso : Ladder of the weighted lasso alone, to compare with; None likewise
    """

    trace: Trace
    ladder: Ladder | None
    lasso: Ladder | None


@dataclass(frozen=True, eq=False)
class Step:
    """One model, on standardized columns.

    number : its place on the price list, from 1; 0 for a penalized model
    cost : price of all that it needs
    intercept (K,), coef (p, K)
    bought : (V,) bool, nodes of the network that it needs
    deviance : weighted mean over the training rows
    df : number of columns with a coefficient; of several classes a column counts once
    lambda_ : penalty of the trace that selected its terms; NaN where none of these did
    rule : that found it
    bound : no model of its price has a lower deviance; NaN where that is not known
    """

    number: int
    cost: float
    intercept: np.ndarray
    coef: np.ndarray
    bought: np.ndarray
    deviance: float
    df: int
    lambda_: float
    rule: str
    bound: float

    @property
    def used(self):
        """Columns of X that the model reads."""
        return np.flatnonzero(self.coef.any(axis=1))


@dataclass(frozen=True, eq=False)
class Paid:
    """What the L penalized models need: bought (L, V) bool, and its price, cost (L,)."""

    bought: np.ndarray
    cost: np.ndarray

    @classmethod
    def of(cls, trace, network, closure):
        """What the models of a path need, by the copies that have coefficients."""
        node = groups(network, closure, trace.coef.shape[1]).node
        bought = np.zeros((len(trace.lambdas), len(network)), bool)
        for k, latent in enumerate(trace.latent):
            used = node[latent.any(axis=1)]
            bought[k, used[used >= 0]] = True
            bought[k] = network.closed(bought[k])
        return cls(bought, np.array([rounded(network.price(on)) for on in bought]))


def rounded(price):
    """A price as it was meant: without what the sum of floats has added."""
    return float(f"{price:.{DIGITS}g}")


def of_ladder(ladder, k):
    """Model k of a price list."""
    coef, bound = np.ascontiguousarray(ladder.coef[k]), float(ladder.bound[k])
    # Other rules have penalties of their own, which are no place on the path that a fit shows.
    own = ladder.rule[k] == "group"
    return Step(
        number=k + 1, cost=rounded(ladder.cost[k]), intercept=ladder.intercept[k], coef=coef,
        bought=ladder.bought[k], deviance=float(ladder.deviance[k]), df=int(ladder.df[k]),
        lambda_=float(ladder.lambda_[k]) if own else np.nan, rule=ladder.rule[k],
        bound=bound if bound > 0.0 else np.nan,
    )  # fmt: skip


def of_trace(trace, k, paid):
    """Penalized model k of a path, and what it needs."""
    # In one order of memory, whatever solved or saved it: sums then have the same bits.
    coef = np.ascontiguousarray(trace.coef[k])
    df = np.count_nonzero(coef.any(axis=1))
    return Step(
        number=0, cost=float(paid.cost[k]), intercept=trace.intercept[k], coef=coef,
        bought=paid.bought[k], deviance=float(trace.deviance[k]), df=df,
        lambda_=float(trace.lambdas[k]), rule=PENALIZED, bound=np.nan,
    )  # fmt: skip


def place(step, trace):
    """Where a model is: whether on the price list, and at which position."""
    if step.number:
        return [True, step.number - 1]
    return [False, int(np.argmin(np.abs(trace.lambdas - step.lambda_)))]


def at_place(place, estimates, paid):
    """The model at a place that `place` has told."""
    listed, k = place
    return of_ladder(estimates.ladder, k) if listed else of_trace(estimates.trace, k, paid)


def original(step, mean, scale):
    """Intercept (K,) and coefficients (p, K) in units of the data."""
    coef = step.coef / scale[:, None]
    return step.intercept - mean @ coef, coef


def score(step, kept, X, n):
    """Scores (n, K) of tiles X that hold the columns `kept` alone, without an offset."""
    # Row by row in the same order, wherever a row stands.
    out = np.einsum("tqr,qk->trk", X, step.coef[kept])
    return out.reshape(-1, out.shape[2])[:n] + step.intercept
