"""From estimates to a GlmFit."""

from lodim.errors import DataWarning, warn, warn_not_converged
from lodim.models.glm.fit import GlmFit
from lodim.models.glm.report import NAMED, SATURATED
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
