"""The assignment problem stated in CVXPY: the reference, and the way to constraints of one's own.

One step of Algorithm 2.1.1 of Fiterau (2014) with given penalties delta:

    minimize  sum_i w_i ((L*_i - u_i)^2 + lambda delta'b_i) + switch w sum_i 1/2 |b_i - b_(i-1)|_1

over rows b_i >= 0 that sum to one, u_i = l_i'b_i; the last term (Sect. 4.2) is for rows in order of
time. Where assignments are hard, b_i in {0, 1}, the squares are linear in b_i and this is a
mixed-integer linear problem.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from lodim.design import factors
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
    rules = [cp.sum(B, axis=1) == served.astype(float), *_user_constraints(B, limits, served)]
    if not open_.all():
        rules.append(cp.multiply((~open_).astype(float), B) == 0)
    problem = cp.Problem(cp.Minimize(objective), rules)
    problem.solve(**({"solver": cp.HIGHS if limits.hard else cp.CLARABEL} | solver))
    if B.value is None:
        raise ArgumentError(f"no assignment keeps to the limits: the problem is {problem.status}")
    found = np.where(open_, np.clip(B.value, 0.0, 1.0), 0.0)
    return np.rint(found) if limits.hard else found, float(problem.value)


def _user_constraints(B, limits, served):
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


# What a user asks for -----------------------------------------------------------------------------


MOST_NAMES = 12  # that a message lists
ENTRIES = ("prices", "budget", "groups", "hard", "further")


@dataclass(frozen=True, eq=False)
class Request:
    """What was asked for, checked.

    names : (p,) of the features
    prices : (q,) of what is paid for, or None
    parts : (q, p) bool, the features that each of these has: a view with any of them pays
    budget : a number, or (N,) one for each row of the data, or None
    groups : (N,) codes, or None
    hard : one view for each row
    further : callable, (B, names of the views) -> list of CVXPY constraints, or None
    """

    names: tuple
    prices: np.ndarray | None
    parts: np.ndarray | None
    budget: Any
    groups: np.ndarray | None
    hard: bool
    further: Callable[[Any, list], list] | None

    @classmethod
    def of(cls, given, design, n):
        """From the dict that a user gives, for n rows of data."""
        if not isinstance(given, dict):
            raise ArgumentError(f"limits must be a dict, not {given!r}")
        unknown = [name for name in given if name not in ENTRIES]
        if unknown:
            raise ArgumentError(
                f"limits has no entry {unknown[0]!r}; it may have: {', '.join(ENTRIES)}"
            )
        if (given.get("prices") is None) != (given.get("budget") is None):
            raise ArgumentError("prices and budget go together: give both to limits, or none")
        hard, further = given.get("hard", False), given.get("further")
        if not isinstance(hard, bool):
            raise ArgumentError(f"hard must be True or False, not {hard!r}")
        _check_further(further)
        return cls(
            design.names, *_prices(given.get("prices"), design), _budget(given.get("budget"), n),
            _groups(given.get("groups"), n), hard, further,
        )  # fmt: skip

    def at(self, views, rows):
        """The Limits of some views (d*, D) and rows (m,), positions in the data."""
        cost = None
        if self.prices is not None:
            has = np.append(self.parts, np.zeros((len(self.parts), 1), bool), axis=1)
            cost = self.prices @ has[:, views].any(axis=2)  # the last column is that of padding
        further = None
        if self.further is not None:
            named = [tuple(self.names[f] for f in view if f >= 0) for view in views]
            further = lambda B: _checked_constraints(self.further(B, named))  # noqa: E731
        return Limits(
            cost=cost, budget=self.budget[rows] if np.ndim(self.budget) else self.budget,
            groups=None if self.groups is None else self.groups[rows], hard=self.hard,
            further=further,
        )  # fmt: skip


def _check_further(further):
    if further is None:
        return
    words = f"further must be a function of two arguments, B and the views, not {further!r}"
    if not callable(further):
        raise ArgumentError(words)
    try:
        inspect.signature(further).bind(None, None)
    except TypeError:
        raise ArgumentError(words) from None
    except ValueError:  # of some functions in C nothing is known
        return


def _checked_constraints(given):
    """The constraints that a user's function has returned."""
    if not isinstance(given, list | tuple):
        raise ArgumentError(f"further must return a list of CVXPY constraints, not {given!r}")
    for rule in given:
        if not hasattr(rule, "dual_variables"):
            raise ArgumentError(f"further must return CVXPY constraints, and {rule!r} is none")
    return list(given)


def _prices(given, design):
    """Prices of columns of the data, or of single features, and the features that each has."""
    if given is None:
        return None, None
    if not isinstance(given, Mapping):
        raise ArgumentError(f"prices must be a dict of columns and their prices, not {given!r}")
    parts = _parts(design)
    unknown = [name for name in given if name not in parts]
    if unknown:
        known = ", ".join([*list(parts)[:MOST_NAMES], *["..."] * (len(parts) > MOST_NAMES)])
        raise ArgumentError(
            f"prices has {unknown[0]!r}, which is no feature and no column of the model; it may "
            f"have: {known}"
        )
    found = np.array([parts[name] for name in given]).reshape(len(given), len(design.names))
    return _numbers(list(given.values()), "prices"), found


def _parts(design):
    """Which features are made of a column (p,), by its name; and each feature by its own."""
    needs = [{name for part in term for name in factors.needs(part)} for term in design.terms]
    made = {name: np.array([name in needs[t] for t in design.term_of]) for name in design.features}
    single = {name: np.array(design.names) == name for name in design.names}
    return single | made


def _budget(given, n):
    if given is None or np.ndim(given) == 0:
        return None if given is None else float(_numbers([given], "budget")[0])
    return _numbers(_of_rows(given, "budget", n), "budget")


def _groups(given, n):
    """Codes of groups; a row without a group is one by itself."""
    if given is None:
        return None
    codes = pd.factorize(pd.Series(list(_of_rows(given, "groups", n)), dtype=object))[0]
    alone = np.flatnonzero(codes < 0)
    codes[alone] = codes.max(initial=-1) + 1 + np.arange(len(alone))
    return codes


def _of_rows(given, name, n):
    """An argument with an entry for each row of the data."""
    if isinstance(given, str) or np.ndim(given) != 1 or len(given) != n:
        raise ArgumentError(f"{name} must have an entry for each of the {n} rows of the data")
    return np.asarray(given)


def _numbers(given, name):
    try:
        out = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be numbers") from None
    if not (np.isfinite(out) & (out >= 0)).all():
        raise ArgumentError(f"{name} must be numbers, 0 or more")
    return out
