"""Assignment of rows to views (feature sets) under constraints, by CVXPY."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lodim.design import factors
from lodim.errors import ArgumentError

ENTRIES = ("prices", "budget", "groups", "hard", "further")


@dataclass(frozen=True)
class ViewConstraints:
    """Linear constraints on the assignment of rows to views (feature sets)."""

    # cost, budget: price of each view, and largest price of a row's views; None without prices
    cost: np.ndarray | None = None
    budget: Any = None
    groups: np.ndarray | None = None  # labels; rows of the same group have the same assignment
    hard: bool = False  # whether each row has one view
    # function of the CVXPY variable (rows, views) that returns CVXPY constraints
    extra: Callable[[Any], list] | None = None

    def rules(self, B, served):
        """Return the CVXPY constraints as a list; B is the variable (rows, views), shares of views.

        served : (rows,) bool, rows with a finite loss; only these must agree within a group"""
        rules = []
        if self.cost is not None:
            rules.append(B @ np.asarray(self.cost, float) <= self.budget)
        if self.groups is not None:
            rows = np.flatnonzero(served)
            _, first, of = np.unique(self.groups[rows], return_index=True, return_inverse=True)
            later = rows[first[of]] != rows
            if later.any():
                rules.append(B[rows[later]] == B[rows[first[of]][later]])
        if self.extra is None:
            return rules
        extra = self.extra(B)
        if not isinstance(extra, list | tuple):
            raise ArgumentError(f"further must return a list of CVXPY constraints, not {extra!r}")
        for rule in extra:
            if not hasattr(rule, "dual_variables"):
                raise ArgumentError(f"further must return CVXPY constraints, not {rule!r}")
        return [*rules, *extra]


@dataclass(frozen=True)
class Mixture:
    """Assignment of rows to views (feature sets); a row may have several views."""

    B: np.ndarray  # (rows, views) shares of the views, with sum one, or zero if no loss is finite
    mass: np.ndarray  # share of the rows' weight that is assigned to each view
    objective: np.ndarray  # squared excess losses plus penalty, after each round
    converged: bool

    def matrix(self):
        return self.B


def solve(L, delta, lambda_, constraints=None, *, weight=None, **solver):
    """Assign rows to views (feature sets) by a convex program; return shares and the objective.

    L, delta : (rows, views) losses, and (views,) penalties in units of lambda_
    constraints : ViewConstraints or None
    solver : keyword arguments of CVXPY's solve()
    Raise ArgumentError if no shares (rows, views) satisfy the constraints."""
    import cvxpy as cp  # a second and a half to import

    c = constraints or ViewConstraints()
    weight = np.ones(len(L)) if weight is None else np.asarray(weight, float)
    finite = np.isfinite(L)
    served, known = finite.any(axis=1), np.where(finite, L, 0.0)
    best = np.where(served, np.where(finite, L, np.inf).min(axis=1), 0.0)
    cost = lambda_ * weight[:, None] * delta
    if c.hard:
        B = cp.Variable(L.shape, boolean=True)
        squares = weight[:, None] * (known - best[:, None]) ** 2
        objective = cp.sum(cp.multiply(squares + cost, B))
    else:
        B = cp.Variable(L.shape, nonneg=True)
        u = cp.sum(cp.multiply(known, B), axis=1)
        residual = cp.multiply(np.sqrt(weight), u - best)
        objective = cp.sum_squares(residual) + cp.sum(cp.multiply(cost, B))
    rules = [cp.sum(B, axis=1) == served.astype(float), *c.rules(B, served)]
    if not finite.all():
        rules.append(cp.multiply((~finite).astype(float), B) == 0)
    problem = cp.Problem(cp.Minimize(objective), rules)
    # HiGHS by way of SciPy: called directly it writes its licence to the standard output
    problem.solve(**({"solver": cp.SCIPY if c.hard else cp.CLARABEL} | solver))
    if B.value is None:
        raise ArgumentError(
            f"no assignment satisfies the constraints ({problem.status}): relax them"
        )
    solution = np.where(finite, np.clip(B.value, 0.0, 1.0), 0.0)
    return np.rint(solution) if c.hard else solution, float(problem.value)


def assign(L, lambda_, constraints=None, *, weight=None):
    """Assign rows to views (feature sets) under ViewConstraints; return their shares, a Mixture.

    L : (rows, views) losses; a row's penalty is lambda_ * (1 - its view's share of the rows)
    weight : (rows,), by default ones"""
    weight = np.ones(len(L)) if weight is None else np.asarray(weight, float)
    weight = np.where(np.isfinite(L).any(axis=1), weight, 0.0)
    W, delta, log, converged = weight.sum(), np.ones(L.shape[1]), [], False
    for _ in range(50):
        B, value = solve(L, delta, lambda_, constraints, weight=weight)
        mass = np.einsum("i,ij->j", weight, B) / W
        # The step minimized the tangent at delta; the log has the concave penalty itself.
        log.append(value + lambda_ * W * (1.0 - mass @ mass / 2.0 - delta @ mass))
        change, delta = np.abs(1.0 - mass - delta).max(), 1.0 - mass
        if change <= 1e-6:
            converged = True
            break
    return Mixture(B, mass, np.array(log), converged)


# What a user asks for ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Constraints:
    """Checked constraints of a user on the assignment of rows to views (feature sets)."""

    names: tuple
    # prices, parts: prices, and bool (prices, features): a view with any feature of a price pays it
    prices: np.ndarray | None
    parts: np.ndarray | None
    budget: Any  # largest price of a row's views: a number, one per row of the data, or None
    # codes per row of the data; rows of a group have the same assignment; or None
    groups: np.ndarray | None
    hard: bool  # whether each row has one view
    # function (shares of views in rows, features of each view) -> CVXPY constraints
    further: Callable[[Any, list], list] | None

    @classmethod
    def from_dict(cls, entries, design, n):
        """Check a user's dict of constraints, `entries`, for n rows of data; return Constraints."""
        unknown = [name for name in entries if name not in ENTRIES]
        if unknown:
            raise ArgumentError(
                f"constraints must only have the entries {', '.join(ENTRIES)}, not {unknown[0]!r}"
            )
        prices, budget = entries.get("prices"), entries.get("budget")
        if (prices is None) != (budget is None):
            raise ArgumentError(
                "prices and budget must be given together: give both in constraints, or none"
            )
        hard, further = entries.get("hard", False), entries.get("further")
        if not isinstance(hard, bool):
            raise ArgumentError(f"hard must be True or False, not {hard!r}")
        if further is not None:
            words = f"further must be a function of two arguments, B and the views, not {further!r}"
            if not callable(further):
                raise ArgumentError(words)
            try:
                inspect.signature(further).bind(None, None)
            except TypeError:
                raise ArgumentError(words) from None
            except ValueError:  # some functions in C have no signature
                pass
        prices, parts = _prices(prices, design)
        budget, groups = _budget(budget, n), _groups(entries.get("groups"), n)
        return cls(design.names, prices, parts, budget, groups, hard, further)

    def on_views(self, views, rows):
        """Return the ViewConstraints for some views (feature positions) and rows (positions)."""
        cost, extra, budget = None, None, self.budget
        if self.prices is not None:
            has = np.append(self.parts, np.zeros((len(self.parts), 1), bool), axis=1)
            cost = self.prices @ has[:, views].any(axis=2)  # the last column is for padding
        if self.further is not None:
            named = [tuple(self.names[f] for f in view if f >= 0) for view in views]
            extra = lambda B: self.further(B, named)  # noqa: E731
        budget = budget[rows] if np.ndim(budget) else budget
        groups = None if self.groups is None else self.groups[rows]
        return ViewConstraints(cost, budget, groups, hard=self.hard, extra=extra)


def _prices(prices, design):
    """Check a user's dict of prices; return q prices, and which features pay each, (q, p) bool.

    prices : dict from feature or data column to price, or None; design : Design of p features"""
    if prices is None:
        return None, None
    if not isinstance(prices, Mapping):
        raise ArgumentError(f"prices must be a dict of column to price, not {prices!r}")
    # Which features use each data column, or are the feature of this name
    needs = [{name for part in term for name in factors.needs(part)} for term in design.terms]
    parts = {name: np.array(design.names) == name for name in design.names}
    for name in design.features:
        parts[name] = np.array([name in needs[t] for t in design.term_of])
    unknown = [name for name in prices if name not in parts]
    if unknown:
        known = ", ".join([*list(parts)[:12], *["..."] * (len(parts) > 12)])
        raise ArgumentError(
            f"prices must be for features or columns of the model ({known}), not {unknown[0]!r}"
        )
    has = np.array([parts[name] for name in prices]).reshape(len(prices), len(design.names))
    return _numbers(list(prices.values()), "prices"), has


def _budget(budget, n):
    if budget is None or np.ndim(budget) == 0:
        return None if budget is None else float(_numbers([budget], "budget")[0])
    return _numbers(_by_row(budget, "budget", n), "budget")


def _groups(groups, n):
    """Return codes (n,) of a user's groups; a row without a group gets its own code."""
    if groups is None:
        return None
    codes = pd.factorize(pd.Series(list(_by_row(groups, "groups", n)), dtype=object))[0]
    alone = np.flatnonzero(codes < 0)
    codes[alone] = codes.max(initial=-1) + 1 + np.arange(len(alone))
    return codes


def _by_row(entries, name, n):
    if isinstance(entries, str) or np.ndim(entries) != 1 or len(entries) != n:
        raise ArgumentError(f"{name} must have an entry for each of the {n} rows of the data")
    return np.asarray(entries)


def _numbers(values, name):
    try:
        out = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be numbers") from None
    if not (np.isfinite(out) & (out >= 0)).all():
        raise ArgumentError(f"{name} must be numbers of at least 0")
    return out
