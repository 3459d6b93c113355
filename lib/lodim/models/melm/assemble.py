"""From a view to a MelmFit."""

from dataclasses import replace

from lodim.errors import warn_not_converged
from lodim.models.melm.estimate import calibrate, training_measures
from lodim.models.melm.fit import MelmFit


def assemble(problem, view, log, selection, for_path):
    """The MelmFit of a view, calibrated on held-out rows unless it is for a path."""
    settings, family = problem.settings, problem.family
    if not view.converged:
        warn_not_converged(
            "melm did not converge from the start that was best: raise control={'max_iter': ...}"
        )
    measures = {}
    if family.name != "none":
        if settings.calibrate and not for_path:
            rule, measures = calibrate(problem, view, log)
            view = replace(view, rule=rule)
        trained = training_measures(problem, view)
        measures = {**trained, "null_deviance": problem.null_deviance(), **measures}
    results = {"estimates": view, "log": log, "measures": measures}
    return MelmFit(n=problem.batch.n_positive, **results, **problem.common(selection))
