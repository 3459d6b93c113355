"""Checks of a fit that need no data."""

from lodim.diagnostics.findings import Finding, some_names
from lodim.report import phrases
from lodim.report.numbers import significant

MANY_DROPPED = 0.1  # share of dropped rows above which they are reported


def convergence(subject):
    """Return a finding if the optimizer of a fit did not reach its tolerance."""
    if subject.fit.converged or subject.fit._separated:
        return []
    sentence = "The optimizer stopped before its tolerance was met."
    hint = (
        "Allow more iterations (control=), change penalties, or scale the features; see summary()."
    )
    return [Finding("convergence", "problem", sentence, hint)]


def separation(subject):
    """Return a finding if coefficients are infinite because the classes are separated."""
    fit = subject.fit
    if not fit._separates:
        return "only for glm with classes, as other models have finite estimates"
    if not fit._separated:
        return []
    have = "has" if len(fit._separated) == 1 else "have"
    sentence = f"The classes are separated: {some_names(fit._separated)} {have} no finite estimate."
    hint = "Do not trust probabilities of 0 and 1. A penalized model such as costnet has finite "
    hint += "estimates. Or leave the terms out."
    return [Finding("separation", "problem", sentence, hint, tuple(fit._separated))]


def dropped_rows(subject):
    """Return a finding if many rows were dropped for missing values."""
    fit = subject.fit
    dropped, n = fit.design.n_dropped, fit.n + fit.design.n_dropped
    if dropped <= MANY_DROPPED * n:
        return []
    hint = "Check whether these rows differ from the others."
    if phrases.dropped(fit):
        hint = f"{phrases.dropped(fit)[0]}."
    sentence = (
        f"{dropped} of {n} rows were dropped because of missing values ({100 * dropped / n:.0f}%)."
    )
    return [Finding("dropped-rows", "note", sentence, hint)]


def constant(subject):
    """Return a finding if features are constant in the training rows."""
    names = subject.fit.design.constant
    if not names:
        return []
    sentence = "Features without effect, because they are constant in the training rows: "
    sentence += f"{some_names(names)}."
    hint = "Leave them out, or find out why they do not vary."
    return [Finding("constant", "note", sentence, hint, tuple(names))]


def grid_end(subject):
    """Return findings about penalties with the lowest held-out loss at the smallest one tried."""
    fit = subject.fit
    if fit.selection is None:
        return "no setting was chosen by cross-validation"
    findings = []
    for name, value in phrases.at_smallest(fit):
        sentence = f"The lowest held-out loss is at the smallest {name} that was tried, "
        sentence += f"{significant(value)}."
        hint = f"ld.cv with a grid of {name} tries smaller ones."
        findings.append(Finding("grid-end", "note", sentence, hint, (name,)))
    return findings
