"""Checks of a fit without data."""

from lodim.diagnostics.findings import Finding, few
from lodim.report import phrases
from lodim.report.numbers import significant

MANY_DROPPED = 0.1  # of the rows


def convergence(subject):
    """Whether the optimizer met its tolerance."""
    if subject.fit.converged or subject.fit._separated:
        return []
    return [
        Finding(
            "convergence", "problem", "The optimizer stopped before its tolerance was met.",
            "More iterations (control=), other penalties, or features on one scale; see summary().",
        )
    ]  # fmt: skip


def separation(subject):
    """Whether coefficients are infinite."""
    fit = subject.fit
    if not fit._separates:
        return "is for glm with classes: other models have finite estimates"
    if not fit._separated:
        return []
    have = "has" if len(fit._separated) == 1 else "have"
    return [
        Finding(
            "separation", "problem",
            f"The classes are separated: {few(fit._separated)} {have} no finite estimate.",
            "Probabilities of 0 and 1 are not to be believed; a penalized model such as costnet "
            "has finite ones, or leave the terms out.", tuple(fit._separated),
        )
    ]  # fmt: skip


def dropped_rows(subject):
    """Whether many rows were left out for missing values."""
    fit = subject.fit
    dropped, n = fit.design.n_dropped, fit.n + fit.design.n_dropped
    if dropped <= MANY_DROPPED * n:
        return []
    hint = "See whether they differ from the others."
    if phrases.dropped(fit):
        hint = f"{phrases.dropped(fit)[0]}."
    sentence = (
        f"{dropped} of {n} rows were left out for missing values ({100 * dropped / n:.0f} %)."
    )
    return [Finding("dropped-rows", "note", sentence, hint)]


def constant(subject):
    """Whether features do not vary."""
    names = subject.fit.design.constant
    if not names:
        return []
    sentence = f"Without effect, as they did not vary in the training rows: {few(names)}."
    hint = "Leave them out, or find out why they do not vary."
    return [Finding("constant", "note", sentence, hint, tuple(names))]


def grid_end(subject):
    """Whether the least held-out loss is at the smallest penalty that was tried."""
    fit = subject.fit
    if fit.selection is None:
        return "no setting was chosen by cross-validation"
    return [
        Finding(
            "grid-end", "note",
            f"The least held-out loss is at the smallest {name} that was tried, "
            f"{significant(value)}.", f"ld.cv with a grid of {name} tries smaller ones.", (name,),
        )
        for name, value in phrases.at_smallest(fit)
    ]  # fmt: skip
