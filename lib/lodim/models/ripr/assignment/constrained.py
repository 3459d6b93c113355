"""The assignment problem stated in CVXPY: the reference, and the way to constraints of one's own.

One step of Algorithm 2.1.1 of Fiterau (2014) with given penalties delta:

    minimize  sum_i w_i ((L*_i - u_i)^2 + lambda delta'b_i) + switch w sum_i 1/2 |b_i - b_(i-1)|_1

over rows b_i >= 0 that sum to one, u_i = l_i'b_i; the last term (Sect. 4.2) is for rows in order of
time. Where assignments are hard, b_i in {0, 1}, the squares are linear in b_i and this is a
mixed-integer linear problem.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lodim.errors import ArgumentError
from lodim.models.ripr.assignment.solve import TOLERANCE


@dataclass(frozen=True)
class Limits:
    """What an assignment must keep to, all linear.

    cost : (d*,) price of each view; with budget, a number or (n,): sum_j cost_j B_ij <= budget_i
    groups : (n,) labels: rows of the same group share their weights
    switch : penalty of each switch of views between consecutive rows, as of a row of mean weight
    hard : one view for each row
    further : callable, B (a CVXPY variable, n x d*) -> list of CVXPY constraints
    """

    cost: np.ndarray | None = None
    budget: Any = None
    groups: np.ndarray | None = None
    switch: float = 0.0
    hard: bool = False
    further: Callable[[Any], list] | None = None


@dataclass(frozen=True)
class Mixture:
    """An assignment that limits may spread over any number of views.

    B : (n, d*), rows sum to one, but for those that no view can serve: to zero
    mass : (d*,) share of the rows' weight that each view serves
    objective : F plus the penalty of switches, by round
    """

    B: np.ndarray
    mass: np.ndarray
    lambda_: float
    objective: np.ndarray
    converged: bool
    limits: Limits = field(repr=False)

    def matrix(self):
        """B, as of an `Assignment` with all views."""
        return self.B


def solve(L, delta, lambda_, limits=None, *, weight=None, **solver):
    """One step: B (n, d*) and its value, by Clarabel (hard: HiGHS).

    Parameters
    ----------
    L : array (n, d*)
        Losses, infinite where a view cannot serve.
    delta : array (d*,)
        Penalties of the views.
    lambda_ : float
    limits : Limits, optional
    weight : array (n,), optional
        Weights of the rows; ones.
    **solver
        Handed to CVXPY's `solve`.

    Raises
    ------
    ArgumentError
        Where no assignment keeps to the limits.
    """
    cp = _cvxpy()
    limits, n = limits or Limits(), len(L)
    weight = np.ones(n) if weight is None else np.asarray(weight, float)
    open_ = np.isfinite(L)
    served = open_.any(axis=1)
    known = np.where(open_, L, 0.0)
    best = np.where(served, np.where(open_, L, np.inf).min(axis=1), 0.0)
    B = cp.Variable(L.shape, boolean=True) if limits.hard else cp.Variable(L.shape, nonneg=True)
    cost = lambda_ * weight[:, None] * delta
    if limits.hard:
        squares = weight[:, None] * (known - best[:, None]) ** 2
        objective = cp.sum(cp.multiply(squares + cost, B))
    else:
        u = cp.sum(cp.multiply(known, B), axis=1)
        residual = cp.multiply(np.sqrt(weight), u - best)
        objective = cp.sum_squares(residual) + cp.sum(cp.multiply(cost, B))
    if limits.switch:
        price = limits.switch * weight.sum() / np.count_nonzero(weight)
        objective += 0.5 * price * cp.sum(cp.abs(cp.diff(B, axis=0)))
    rules = [cp.sum(B, axis=1) == served.astype(float), *_rules(B, limits, served)]
    if not open_.all():
        rules.append(cp.multiply((~open_).astype(float), B) == 0)
    problem = cp.Problem(cp.Minimize(objective), rules)
    problem.solve(**({"solver": cp.HIGHS if limits.hard else cp.CLARABEL} | solver))
    if B.value is None:
        raise ArgumentError(f"no assignment keeps to the limits: the problem is {problem.status}")
    found = np.where(open_, np.clip(B.value, 0.0, 1.0), 0.0)
    return np.rint(found) if limits.hard else found, float(problem.value)


def _rules(B, limits, served):
    """The user's constraints; rows that no view can serve keep to any."""
    rules = []
    if (limits.cost is None) != (limits.budget is None):
        raise ArgumentError("cost and budget go together: the price of each view, the most of each")
    if limits.cost is not None:
        rules.append(B @ np.asarray(limits.cost, float) <= limits.budget)
    if limits.groups is not None:
        rows = np.flatnonzero(served)
        _, first, of = np.unique(limits.groups[rows], return_index=True, return_inverse=True)
        later = rows[first[of]] != rows
        if later.any():
            rules.append(B[rows[later]] == B[rows[first[of]][later]])
    if limits.further is not None:
        rules += limits.further(B)
    return rules


def _cvxpy():
    import cvxpy  # a second and a half to import

    return cvxpy


def assign(L, lambda_, limits=None, *, weight=None, max_iter=50, tol=1e-6, **solver):
    """Algorithm 2.1.1 within limits; parameters as for `solve` and `assign.assign`.

    The objective never rises by more than the solver's tolerance.

    Returns
    -------
    Mixture
    """
    limits = limits or Limits()
    weight = np.ones(len(L)) if weight is None else np.asarray(weight, float)
    weight = np.where(np.isfinite(L).any(axis=1), weight, 0.0)
    W, delta, log, converged = weight.sum(), np.ones(L.shape[1]), [], False
    for _ in range(max_iter):
        B, value = solve(L, delta, lambda_, limits, weight=weight, **solver)
        mass = np.einsum("i,ij->j", weight, B) / W
        # The tangent at delta, which the step has minimized, becomes the concave penalty itself.
        log.append(value + lambda_ * W * (1.0 - mass @ mass / 2.0 - delta @ mass))
        moved, delta = np.abs(1.0 - mass - delta).max(), 1.0 - mass
        if moved <= max(tol, TOLERANCE):
            converged = True
            break
    return Mixture(B, mass, float(lambda_), np.array(log), converged, limits)
