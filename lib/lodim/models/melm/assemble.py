"""From a view to a MelmFit, and from a saved state to one."""

import warnings
from dataclasses import replace

from lodim import forms
from lodim.errors import ConvergenceWarning
from lodim.fitting.fit import shared
from lodim.models.melm.classify.density import Densities
from lodim.models.melm.classify.neighbours import Nearest, Neighbours
from lodim.models.melm.classify.rule import Background, Rows, Rule
from lodim.models.melm.estimate import held_out, training
from lodim.models.melm.fit import MelmFit
from lodim.models.melm.settings import Settings
from lodim.models.melm.view import View

MEASURES = ("deviance", "null_deviance", "balanced_accuracy")
HELD = ("held_deviance", "held_balanced_accuracy")  # there where probabilities are calibrated


def assemble(problem, view, log, selection, for_path):
    """The fit of a view; all but one of a path are calibrated on held-out rows."""
    settings, family = problem.settings, problem.family
    if not view.converged:
        warnings.warn(
            "melm did not converge from the start that was best: raise control={'max_iter': ...}",
            ConvergenceWarning,
            stacklevel=4,
        )
    measures = {}
    if family.name != "none":
        if settings.calibrate and not for_path:
            rule, measures = held_out(problem, view)
            view = replace(view, rule=rule)
        measures = {**training(problem, view), "null_deviance": _null(problem), **measures}
    return MelmFit(
        design=problem.design, family=family, settings=settings, estimates=view, log=log,
        measures=measures, selection=selection, n=problem.batch.n, call=problem.call,
        arguments=problem.arguments, chosen=problem.chosen,
    )  # fmt: skip


def _null(problem):
    """Mean deviance of the class shares."""
    batch, family = problem.batch, problem.family
    null = family.null_score(batch.y, batch.weight, batch.offset_matrix(family.n_scores))
    return float(batch.weight @ family.deviance(batch.y, null))


def from_state(state):
    """The fit that `MelmFit.to_state` has written."""
    common = shared(state, "melm")
    design = common["design"]
    view = View(**state["view"] | {"rule": _rule(state["view"]["rule"])})
    view.check(len(design.names), len(design.levels or ()), common["family"].n_scores)
    _check_rest(view, state, design.levels)
    return MelmFit(
        settings=Settings(**state["settings"]), estimates=view, log=state["log"],
        measures=state["measures"], n=state["n"], **common,
    )  # fmt: skip


def _rule(state):
    """The Rule that `MelmFit.to_state` has written."""
    other = state["other"]
    parts = {
        "rows": Rows(**state["rows"]), "densities": Densities(**state["densities"]),
        "background": Background(**state["background"]),
        "other": None if other is None else _nearest(other),
    }  # fmt: skip
    return Rule(**state | parts)


def _nearest(state):
    return Nearest(**state | {"known": Neighbours(**state["known"])})


def _check_rest(view, state, levels):
    """Raise ValueError unless what a file says beside the view fits it."""
    log = {
        "start": forms.several("starts"), "divergence": forms.real("starts"),
        "n_iter": forms.whole("starts"), "converged": forms.flags("starts"),
    }  # fmt: skip
    measures = {} if levels is None else {name: forms.real() for name in MEASURES}
    measures |= {name: forms.real() for name in HELD if levels and name in state["measures"]}
    known = {
        "log": forms.table("starts", **log), "measures": forms.part(measures),
        "n": forms.whole(least=1),
    }  # fmt: skip
    if not forms.check(state, known)["starts"] or len(set(HELD) & set(measures)) == 1:
        raise ValueError("the search has no start, or a measure is missing")
    settings = state["settings"]
    if levels is not None:
        forms.check(settings, {"gamma": forms.real(least=forms.TINY)}, "settings")
        if (settings["classifier"] == "knn") != (view.rule.other is not None):
            raise ValueError("the rule is of another classifier")
