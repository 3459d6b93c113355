"""From a frontier to a CostnetFit."""

from dataclasses import replace

import numpy as np
import pandas as pd

from lodim.errors import warn_not_converged
from lodim.models.costnet.fit import CostnetFit
from lodim.models.costnet.frontier_models import Purchases, rounded


def assemble(problem, estimates, log, selection, for_path):
    """The fit of a frontier; the model that it chooses is that of its budget, or of lambda_."""
    # A budget that is chosen after the search has not limited it.
    limited = problem.settings.budget is not None
    if not limited and problem.settings.lambda_ is None:
        problem, selection = _choose(problem, estimates.frontier, selection)
    batch, settings = problem.batch, problem.settings
    _warn(estimates.path)
    if limited:  # cross-validation may have searched beyond the budget that it has chosen
        estimates = estimates.within(settings.budget)
    paid = Purchases.from_path(estimates.path, settings.network, settings.dependents)
    return CostnetFit(
        **problem.common(selection) | {"call": _call(problem)},
        estimates=estimates,
        paid=paid,
        position=_position(estimates, settings),
        limit=settings.budget if limited else np.inf,
        total=_total_price(settings.network),
        n=batch.n_positive,
        lightest=float(batch.weight[batch.weight > 0.0].min()),
        null_deviance=problem.null_deviance(),
    )


def _choose(problem, frontier, selection):
    """The problem with the budget that held-out rows choose, and the table of those tried."""
    settings, draws = problem.settings, frontier.held_out.shape[1]
    priced = settings.costs is not None
    of_draws = [frontier.best(priced, draw) for draw in range(draws)] if draws > 1 else []
    mean, chosen = frontier.held_out.mean(axis=1), dict.fromkeys(problem.chosen, ())
    if selection is None:
        columns = {"budget": [*map(rounded, frontier.cost)], "mean": mean, "se": frontier.error}
        selection = pd.DataFrame(columns)
        chosen = {"budget": tuple(rounded(frontier.cost[k]) for k in of_draws)}
    budget = rounded(frontier.cost[frontier.best(priced)])
    settings = replace(settings, budget=budget)
    return replace(problem, settings=settings, chosen=chosen), selection


def _position(estimates, settings):
    """The `CostnetFit.position` of the settings' lambda_ or budget."""
    if settings.lambda_ is not None:
        return False, 0
    budget = np.inf if settings.budget is None else settings.budget
    return True, estimates.frontier.index_within(budget)


def _total_price(network):
    """Price of all that one model can need: of each series the source that adds most to it."""
    on = np.ones(len(network), bool)
    for series in np.unique(network.series[network.series >= 0]):
        serving = np.flatnonzero(network.series == series)
        base = network.base[serving]
        rivals = [network.needs[:, serving[base != one]].any(axis=1) for one in np.unique(base)]
        on = max((on & ~rival for rival in rivals), key=network.price)
    return rounded(network.price(on))


def _call(problem):
    """The call, with the name of a cost function that has one."""
    name = getattr(problem.settings.costs, "__name__", "")
    if not name.isidentifier():
        return problem.call
    return problem.call.replace("costs=...", f"costs={name}", 1)


def _warn(path):
    """Warn where a penalty of a path has not converged."""
    if not path.converged.all():
        failed, of = np.count_nonzero(~path.converged), path.converged.size
        warn_not_converged(
            f"costnet did not converge at {failed} of {of} penalties: "
            "raise control={'max_iter': ...} or lambda_min_ratio"
        )
