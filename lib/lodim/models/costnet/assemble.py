"""From a price list to a CostnetFit, and from a saved state to one."""

import warnings

import numpy as np

from lodim.errors import ConvergenceWarning
from lodim.models.costnet import price_list
from lodim.models.costnet import state as saved
from lodim.models.costnet.fit import CostnetFit


def assemble(problem, estimates, log, selection, for_path):
    """The fit of a price list; the model that it chooses is that of its budget, or of lambda_."""
    batch, family, settings = problem.batch, problem.family, problem.settings
    null = family.null_score(batch.y, batch.weight, batch.offset_matrix(family.n_scores))
    trace, network = estimates.trace, settings.network
    _warn(trace)
    paid = price_list.Paid.of(trace, network, settings.closure)
    # A budget that cross-validation has chosen after the search has not limited it.
    limited = problem.arguments["budget"] is not None
    return CostnetFit(
        design=problem.design, family=family, settings=settings, estimates=estimates, paid=paid,
        step=_step(estimates, settings, paid), limit=settings.budget if limited else np.inf,
        total=_everything(network), selection=selection, n=batch.n,
        lightest=float(batch.weight[batch.weight > 0.0].min()),
        null_deviance=float(batch.weight @ family.deviance(batch.y, null)),
        call=_call(problem), arguments=problem.arguments, chosen=problem.chosen,
    )  # fmt: skip


def _step(estimates, settings, paid):
    if settings.lambda_ is not None:
        return price_list.of_trace(estimates.trace, 0, paid)
    budget = np.inf if settings.budget is None else settings.budget
    return price_list.of_ladder(estimates.ladder, estimates.ladder.at(budget))


def _everything(network):
    """Price of all that one model can need: of each series the source that adds most to it."""
    on = np.ones(len(network), bool)
    for series in np.unique(network.series[network.series >= 0]):
        serving = np.flatnonzero(network.series == series)
        of = network.base[serving]
        without = [on & ~network.needs[:, serving[of != one]].any(axis=1) for one in np.unique(of)]
        on = max(without, key=network.price)
    return price_list.rounded(network.price(on))


def _call(problem):
    """The call, with the name of a cost function that has one."""
    name = getattr(problem.settings.costs, "__name__", "")
    if not name.isidentifier():
        return problem.call
    return problem.call.replace("costs=...", f"costs={name}", 1)


def _warn(trace):
    if not trace.converged.all():
        failed, of = np.count_nonzero(~trace.converged), trace.converged.size
        warnings.warn(
            f"costnet did not converge at {failed} of {of} penalties: "
            "raise control={'max_iter': ...} or lambda_min_ratio",
            ConvergenceWarning,
            stacklevel=5,
        )


def from_state(state):
    """The fit that `CostnetFit.to_state` has written."""
    return CostnetFit(**saved.read(state))
