"""From estimates to a GlmFit, and from a saved state to one."""

import numpy as np

from lodim import forms
from lodim.errors import DataWarning, warn, warn_not_converged
from lodim.fitting.saved import read_shared_state
from lodim.models.glm.estimates import Diagnostics, Estimates
from lodim.models.glm.fit import GlmFit
from lodim.models.glm.report import NAMED, SATURATED
from lodim.models.glm.settings import COVARIANCES, Settings
from lodim.text import first_names


def assemble(problem, estimates, log, selection, for_path):
    """The fit of estimates."""
    log = dict(log)
    fit = GlmFit(
        **problem.common(selection),
        estimates=estimates,
        diagnostics=log.pop("diagnostics"),
        log=log,
        null_deviance=problem.null_deviance(),
    )
    if fit.separated:
        warn_not_converged(
            "the response is separated: no finite estimate exists for "
            f"{first_names(fit.separated, NAMED)}; the values are where the iterations stopped"
        )
    elif not fit.converged:
        warn_not_converged("glm did not converge: raise control={'max_iter': ...}")
    elif fit.df_resid == 0:
        warn(SATURATED, DataWarning)
    return fit


def from_state(state):
    """The fit that `GlmFit._to_state` has written."""
    common = read_shared_state(state, "glm")
    estimates = Estimates(**state["estimates"])
    estimates.check(len(common["design"].names), common["family"].n_scores)
    _check_rest(state)
    kept = state["diagnostics"]
    return GlmFit(
        settings=forms.make(Settings, state["settings"], "settings"),
        estimates=estimates,
        log=state["log"],
        null_deviance=state["null_deviance"],
        diagnostics=None if kept is None else Diagnostics(**kept),
        **common,
    )


def _check_rest(state):
    """Raise ValueError unless what a file says beside the estimates has its form."""
    count, number = forms.whole(), forms.real(nan=True)
    log = {
        "converged": forms.flags(),
        "n_iter": count,
        "n": forms.whole(least=1),
        "df": count,
        "df_resid": count,
        "rows": forms.text,
        "dispersion": forms.squares(nan=True),
        "deviance": forms.squares(),
        "log_likelihood": forms.squares(),
        "sum_weights": number,
        "covariance": forms.choice(*COVARIANCES),
        "n_clusters": count,
        "whole": forms.flags(),
    }
    row = {"label": forms.several("r", forms.plain)}
    row |= {name: forms.real("r", nan=True, least=-np.inf, most=np.inf) for name in ROW}
    known = {
        "log": forms.part(log),
        "null_deviance": forms.squares(),
        "diagnostics": forms.optional(forms.part(row)),
    }
    forms.check(state, known)


ROW = ("fitted", "deviance", "pearson", "leverage", "cook")  # of Diagnostics, beside the label
