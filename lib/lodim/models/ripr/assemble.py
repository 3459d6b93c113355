"""From an ensemble to a RiprFit, and from a saved state to one."""

from dataclasses import replace

import numpy as np

from lodim import forms
from lodim.errors import warn_not_converged
from lodim.fitting.saved import read_shared_state
from lodim.fitting.storage import plain_label
from lodim.models.ripr.answers.assigned_views import ClassViews, ClusterViews, NumberViews
from lodim.models.ripr.assignment.view_search import flat_features, task_of
from lodim.models.ripr.ensemble import Record, record
from lodim.models.ripr.fit import RiprFit
from lodim.models.ripr.settings import VOTE, Settings
from lodim.models.ripr.vote.voting_views import VotingViews

ASSIGNED = {kind.task: kind for kind in (ClassViews, NumberViews, ClusterViews)}


def assemble(problem, ensemble, log, selection, for_path):
    """The fit of an ensemble."""
    if not log["converged"]:
        warn_not_converged("the search for views did not converge; another lambda_ may")
    batch, lambda_ = problem.batch, problem.settings.lambda_
    if lambda_ is None and ensemble.method != VOTE and not np.isnan(ensemble.lambda_):
        lambda_ = ensemble.lambda_  # NaN: no penalty found the views
    chosen = {"lambda_": lambda_, "k": ensemble.k, "method": ensemble.method}
    settings = replace(problem.settings, **chosen, constraints=None, axes=None)
    return RiprFit(
        **replace(problem, settings=settings).common(selection),
        estimates=ensemble,
        log=log | {"flat": flat_features(batch)},
        record=record(ensemble, problem.family),
        labels=[plain_label(label) for label in batch.index[batch.rows]],
    )


def from_state(state):
    """The fit that `RiprFit._to_state` has written."""
    common = read_shared_state(state, "ripr")
    design = common["design"]
    p = len(design.names)
    if state["settings"]["method"] == VOTE:
        ensemble = forms.make(VotingViews, state["ensemble"], "ensemble")
    else:
        kind = ASSIGNED[task_of(common["family"])]
        ensemble = forms.make(kind, state["ensemble"], "ensemble", local_learners=())
    results = Record(**state["record"])
    ensemble.check(p, len(design.levels or ()), common["family"].n_scores)
    results.check(ensemble.n, len(ensemble))
    log = {
        "objective": forms.real("rounds"),
        "converged": forms.flags(),
        "compared": forms.whole(),
        "possible": forms.whole(most=forms.LARGEST),
        "flat": forms.whole("flat", most=p - 1),
        "sampled": forms.whole(),
    }
    known = {"log": forms.part(log), "labels": forms.several(ensemble.n, forms.plain)}
    if not forms.check(state, known)["rounds"]:
        raise ValueError("the search has no round")
    chosen = {"k": forms.choice(ensemble.k), "lambda_": forms.optional(forms.real(least=0))}
    forms.check(state["settings"], chosen, "settings")
    settings, labels = forms.make(Settings, state["settings"], "settings"), list(state["labels"])
    more = {"log": state["log"], "record": results, "labels": labels}
    return RiprFit(settings=settings, estimates=ensemble, **more, **common)
