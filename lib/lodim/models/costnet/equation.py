"""A model of costnet's frontier as expressions."""

from lodim.export.expression import weighted


def scores(step, kept, features, offset):
    """Link scores of the standardized features `kept`, a list of K nodes."""
    return [
        weighted(intercept, [*coef, 1.0], [*features, offset], "score")
        for intercept, coef in zip(step.intercept, step.coef[kept].T, strict=True)
    ]
