"""The checks of a fit: the list of all checks, what each needs, and how they are run on data."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lodim.design.batch import Batch, subset, with_positive_weight
from lodim.design.design import Design
from lodim.design.frame import read_frame
from lodim.design.rows import RowInputs
from lodim.diagnostics import features, predictions
from lodim.diagnostics.findings import Checks, Finding, some_names
from lodim.errors import ArgumentError, DataError, no_row_warnings
from lodim.report import phrases
from lodim.report.numbers import significant

CENTRED = 1e-4  # tolerance, in standard deviations: features of training rows have mean zero
MANY_DROPPED = 0.1  # share of dropped rows above which they are reported


def convergence(subject):
    """Check whether the fit of a subject (fit and rows) converged; return a list of Finding."""
    if subject.fit.converged or subject.fit._separated:
        return []
    sentence = "The optimizer stopped before its tolerance was met."
    hint = "Allow more iterations (control=), change penalties, or scale features; see summary()."
    return [Finding("convergence", "problem", sentence, hint)]


def separation(subject):
    """Find infinite coefficients in a subject (fit and rows); return Findings, or why skipped."""
    fit = subject.fit
    if not fit._separates:
        return "only for glm with classes or counts, as other fits have finite estimates"
    if not fit._separated:
        return []
    have = "has" if len(fit._separated) == 1 else "have"
    names = some_names(fit._separated)
    sentence = f"The response is separated: {names} {have} no finite estimate."
    extreme = "means near 0" if fit.levels is None else "probabilities near 0 or 1"
    hint = f"Do not trust {extreme}. A penalized model such as costnet has finite estimates. Or "
    hint += "leave the terms out."
    return [Finding("separation", "problem", sentence, hint, tuple(fit._separated))]


def dropped_rows(subject):
    """Check whether a subject's fit has dropped many rows; return a list of Finding."""
    fit = subject.fit
    dropped, n = fit.design.n_dropped, fit.n + fit.design.n_dropped
    if dropped <= MANY_DROPPED * n:
        return []
    hint = "Check whether these rows differ from the others."
    if phrases.dropped(fit):
        hint = f"{phrases.dropped(fit)[0]}."
    share = f"{dropped} of {n} rows ({100 * dropped / n:.0f}%)"
    sentence = f"{share} were dropped for missing values ({phrases.lacking(fit.design)})."
    return [Finding("dropped-rows", "note", sentence, hint)]


def constant(subject):
    """Find features of a subject (fit, rows) that are constant in training; return Findings."""
    names = subject.fit.design.constant
    if not names:
        return []
    sentence = "Features without effect, because they are constant in the training rows: "
    sentence += f"{some_names(names)}."
    hint = "Leave them out, or find out why they do not vary."
    return [Finding("constant", "note", sentence, hint, tuple(names))]


def grid_end(subject):
    """Find penalties of a subject's fit at a grid's low end; return Findings or why skipped."""
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


CHECKS = {  # code -> (needed data, function of a Subject)
    "convergence": ("fit", convergence),
    "separation": ("fit", separation),
    "dropped-rows": ("fit", dropped_rows),
    "constant": ("fit", constant),
    "grid-end": ("fit", grid_end),
    "overfit": ("fit", predictions.overfit),
    "wild-values": ("rows", features.wild_values),
    "missing-code": ("rows", features.missing_code),
    "leak": ("answers", features.leak),
    "copies": ("rows", features.copies),
    "identifier": ("training", features.identifier),
    "duplicates": ("training", features.duplicates),
    "collinearity": ("training", features.collinearity),
    "rare-level": ("training", features.rare_level),
    "empty-cells": ("training", features.empty_cells),
    "dispersion": ("training answers", predictions.dispersion),
    "zeros": ("training answers", predictions.zeros),
    "influence": ("training answers", predictions.influence),
    "extrapolation": ("new", features.extrapolation),
    "drift": ("new", features.drift),
    "calibration": ("new answers", predictions.calibration),
}
NEEDS = {
    "rows": "needs data: check(data)",
    "answers": "needs data with the response",
    "training": "needs the training rows: check(training)",
    "training answers": "needs the training rows: check(training)",
    "new": "needs new rows: check(new)",
    "new answers": "needs new rows with the response",
}


@dataclass(frozen=True)
class Subject:
    """A fit, and the rows of data on which it is checked."""

    fit: Any
    design: Design  # of all features if the data have them, else of the features that the fit reads
    data: Any = None  # the data frame
    counted: np.ndarray | None = None  # positions in `data` of the rows with positive weight
    rows: Batch | None = None  # the rows as numbers, made by `design`
    read: Batch | None = None  # the rows with the features that the fit reads
    answered: Batch | None = None  # the rows with known response
    score: np.ndarray | None = None  # (n, K) link scores of `answered`
    training: bool = False  # whether they are the training rows of the fit

    @cached_property
    def wild(self):
        """Extreme values of the data, as a list of (Limits of a feature, positions, values)."""
        return self.design.wild_rows(self.data)

    @property
    def has(self):
        """Names of the inputs that are available for checks, such as "rows" or "new answers"."""
        found = {"fit"}
        if self.rows is not None:
            age = "training" if self.training else "new"
            found |= {"rows", age}
            if self.answered is not None:
                found |= {"answers", f"{age} answers"}
        return found


def run(fit, data, offset, ignore):
    """Check a fit; return Checks, the findings.

    data : frame whose rows are also compared with the fit, or None; offset : its rows' offset
    ignore : code of a check, or several, to leave out"""
    given = (ignore,) if isinstance(ignore, str) else ignore
    if not isinstance(given, list | tuple | set | frozenset):
        raise ArgumentError(f"ignore must be codes of checks, not {ignore!r:.80}")
    for code in given:
        if not isinstance(code, str) or code not in CHECKS:
            raise ArgumentError(f"ignore must be among {', '.join(CHECKS)}, not {code!r:.80}")
    ignored = tuple(code for code in CHECKS if code in given)
    with no_row_warnings():  # findings report the same
        subject = Subject(fit, fit.design) if data is None else _subject(fit, data, offset)
    findings, looked_at, not_looked_at = [], [], {}
    for code, (needs, look) in CHECKS.items():
        if code in ignored:
            continue
        found = look(subject) if needs in subject.has else NEEDS[needs]
        if isinstance(found, str):
            not_looked_at[code] = found
        else:
            looked_at.append(code)
            findings += found
    findings.sort(key=lambda finding: finding.severity != "problem")
    kind = fit.design.frame_kind
    return Checks(fit.call, tuple(findings), tuple(looked_at), not_looked_at, ignored, kind)


def _subject(fit, data, offset):
    """Return the Subject for checks of a fit on new data.

    data : frame with the new rows; offset : their offset, or None"""
    frame, reader, name = read_frame(data), fit._reader, fit.design.weights
    design = fit.design if set(fit.design.features) <= set(frame.names) else reader
    answered = score = None
    if reader.has_response(data):
        batch = reader.apply(data, offset=offset, response=True, new_levels="missing")
        answered, score = fit._answered(with_positive_weight(batch))
        answered = answered if answered.n else None
    weights = RowInputs(weights=name if name in frame.names else None).read(frame).weights

    def read_by(design):
        batch = design.apply(data, offset=offset, new_levels="missing")
        if weights is None:
            return batch
        own = weights[batch.rows]
        return subset(replace(batch, weights=own), np.flatnonzero(~np.isnan(own)))

    every = read_by(design)
    rows = with_positive_weight(every)
    in_all = np.arange(len(every.index)) if weights is None else np.flatnonzero(weights > 0)
    if rows.n == 0:
        new = [sentence for _, sentence in features.unseen_levels(design, data, in_all)]
        what = "data must have a row without missing values or new levels to check"
        raise DataError("; ".join([what, *new]))
    read = rows if design is reader else with_positive_weight(read_by(reader))
    if answered is not None:
        every = design.apply(data, offset=offset, response=True, new_levels="missing")
    training = fit.n == every.n_positive
    # A fit keeps no array of weights, so then the number of rows must suffice.
    if training and (fit.arguments.get("weights") is None or design.weights is not None):
        means = every.weight @ features.standardized(every)
        training = bool((np.abs(means) < CENTRED).all())
    return Subject(fit, design, data, in_all, rows, read, answered, score, training)
