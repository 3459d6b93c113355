"""Checked settings of costnet."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lodim.checks import (
    INFINITY,
    MOST_ROWS,
    check,
    check_choice,
    check_count,
    check_seed,
    check_share,
    check_size,
    check_threads,
    listed,
    sizes,
)
from lodim.errors import ArgumentError
from lodim.fitting.model import Needs
from lodim.models.costnet.search.candidates import CRITERIA, DEFAULT
from lodim.prices import parse
from lodim.prices.network import Network

RULES = ("group", "lasso", "greedy")
OF_LAMBDAS = ("n_lambda", "lambda_min_ratio")  # without effect if `lambdas` is given
OF_FRONTIER = ("lambdas", *OF_LAMBDAS, "relax", "rules", "criterion")  # or if `lambda_` is given


@dataclass(frozen=True)
class Settings:
    """Checked settings of a costnet fit, with mappings (costs etc.) as tuples of pairs."""

    costs: Any
    depends_on: Any
    alternatives: Any
    budget: Any  # an ascending tuple if cross-validation tries several
    lambda_: float | None
    lambdas: Any
    n_lambda: int
    lambda_min_ratio: float | None
    l1_ratio: float
    relax: float | None
    rules: Any
    dependents: str
    solver: str
    seed: int
    threads: int | None
    criterion: str = DEFAULT
    max_iter: int = 200
    tol: float = 1e-7
    monotone: dict | tuple | None = None  # as given, or signs once the columns are known
    network: Any = None  # graph of dependencies and prices

    def __post_init__(self):
        for name in ("costs", "depends_on", "alternatives"):
            object.__setattr__(self, name, getattr(parse, name)(getattr(self, name)))
        if not (self.network is None or isinstance(self.network, Network)):
            raise ArgumentError("network cannot be given: it is computed from costs and depends_on")
        # Only cross-validation gives several, once the network is known; a user gives one.
        several = isinstance(self.budget, tuple) and self.network is not None
        no_limit = isinstance(self.budget, float) and self.budget == INFINITY
        if not (self.budget is None or several or no_limit):
            check_size(self, "budget")
        if self.lambda_ is not None:
            check_size(self, "lambda_")
            if self.budget not in (None, (None,)):
                raise ArgumentError("give either a budget or lambda_: a lambda_ has no frontier")
        check_count(self, "n_lambda", 2)
        if self.lambda_min_ratio is not None:
            words = "above 0 and below 1"
            check(self, "lambda_min_ratio", float, lambda v: 0 < v < 1, words)
        if self.lambdas is not None:
            distinct = np.unique(sizes("lambdas", self.lambdas))
            object.__setattr__(self, "lambdas", tuple(distinct[::-1].tolist()))
        object.__setattr__(self, "rules", _in_fixed_order(self.rules))
        if self.relax is not None:
            check_share(self, "relax")
        check(self, "l1_ratio", (int, float), lambda v: 0 < v <= 1, "above 0, and at most 1")
        check_choice(self, "dependents", ("all", "direct"))
        check_choice(self, "solver", ("auto", "cvxpy"))
        check_choice(self, "criterion", CRITERIA)
        check_seed(self)
        check_threads(self)
        check_count(self, "max_iter", most=MOST_ROWS)
        check(self, "tol", (int, float), lambda v: 0 < v < 1, "between 0 and 1")


def _in_fixed_order(rules):
    names = [rules] if isinstance(rules, str) else listed(rules)
    for rule in [rules] if names is None else names:
        if not isinstance(rule, str) or rule not in RULES:
            raise ArgumentError(f"rules must be some of {', '.join(RULES)}, not {rule!r:.80}")
    if not names:
        raise ArgumentError(f"rules must be at least one of {', '.join(RULES)}")
    return tuple(rule for rule in RULES if rule in names)


def needs(problem, n):
    """Estimate the Needs of a fit to n rows: memory, and passes over the data."""
    K, p = problem.family.n_scores, len(problem.design.names)
    if problem.family.name == "gaussian":
        return Needs(40, 9_000_000 + 350_000 * p, (2, 3))
    if K == 1:
        return Needs(28, 11_000_000 + 1_400_000 * p, None)
    return Needs(8 * (2 * K**2 + 5 * K), 600_000 * p, None)
