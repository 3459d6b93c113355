"""From a view to a MelmFit, and from a saved state to one."""

from dataclasses import replace

from lodim import forms
from lodim.errors import warn_not_converged
from lodim.fitting.saved import read_shared_state
from lodim.models.melm.classify.density import Densities
from lodim.models.melm.classify.rule import Background, Rows, Rule
from lodim.models.melm.estimate import calibrate, training_measures
from lodim.models.melm.fit import MelmFit
from lodim.models.melm.settings import Settings
from lodim.models.melm.view import View

MEASURES = ("deviance", "null_deviance", "balanced_accuracy")
HELD = ("held_deviance", "held_balanced_accuracy")  # there where probabilities are calibrated


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


def from_state(state):
    """The fit that `MelmFit._to_state` has written."""
    common = read_shared_state(state, "melm")
    design = common["design"]
    view = View(**state["view"] | {"rule": _rule(state["view"]["rule"])})
    view.check(len(design.names), len(design.levels or ()), common["family"].n_scores)
    _check_rest(view, state, design.levels)
    results = {name: state[name] for name in ("log", "measures", "n")}
    settings = forms.make(Settings, state["settings"], "settings")
    return MelmFit(settings=settings, estimates=view, **results, **common)


def _rule(state):
    """The Rule that `MelmFit._to_state` has written."""
    kinds = {"rows": Rows, "densities": Densities, "background": Background}
    parts = {name: record(**state[name]) for name, record in kinds.items()}
    return Rule(**state | parts)


def _check_rest(view, state, levels):
    """Raise ValueError unless what a file says beside the view fits it."""
    log = {
        "start": forms.several("starts"),
        "divergence": forms.real("starts"),
        "n_iter": forms.whole("starts"),
        "converged": forms.flags("starts"),
    }
    names = () if levels is None else MEASURES + tuple(n for n in HELD if n in state["measures"])
    measures = forms.part({name: forms.real() for name in names})
    if "gamma" in state["log"]:
        log["gamma"] = forms.real("starts", least=forms.TINY)
    known = {"log": forms.table("starts", **log), "measures": measures, "n": forms.whole(least=1)}
    if not forms.check(state, known)["starts"] or len(set(HELD) & set(names)) == 1:
        raise ValueError("the search has no start, or a measure is missing")
    settings = state["settings"]
    if levels is not None:
        forms.check(settings, {"gamma": forms.real(least=forms.TINY)}, "settings")
        if view.rule.other is not None:
            raise ValueError("the rule is of another classifier")
