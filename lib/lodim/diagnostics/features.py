"""Checks of features: functions of a Subject that return Findings, or a text if skipped."""

import itertools
import math

import numpy as np
import pandas as pd
from scipy.special import gammaln, stdtr
from scipy.stats import rankdata

from lodim.classification import auc
from lodim.design import columns, factors, summaries
from lodim.design.features import places
from lodim.design.frame import read_column, read_frame
from lodim.diagnostics.findings import Finding, rows_in_words, some_names
from lodim.engine import tiles
from lodim.formula.formula import quote
from lodim.report.numbers import significant
from lodim.text import counted

MOST_ROWS = 20_000  # largest number of rows used to compare columns, evenly spaced
MOST_COLUMNS = 3000  # largest number of columns of which all pairs are compared
MIN_ROWS = 20  # smallest number of rows for comparing columns
MOST_CELLS = 100_000  # largest number of cells of a crossing that is counted
LINEAR = "glm", "costnet"


def leak(subject):
    """Find near-perfect predictors of the response in a subject (fit, rows); return Findings."""
    batch, design = subject.answered, subject.fit._reader
    if batch.n < MIN_ROWS:
        return f"fewer than {MIN_ROWS} rows"
    at = _thinned(batch.n)
    X, y = standardized(batch)[at], batch.y[at]
    levels = subject.fit.levels
    if levels is None:
        strengths = [tells_number(x, y) for x in X.T]
    else:
        code = y.astype(int)
        strengths = [tells_classes(x, code, len(levels)) for x in X.T]
    found = [name for s, name in zip(strengths, design.names, strict=True) if s >= SAME]
    if levels is not None:
        most = np.bincount(code).max() / len(code)
        named = zip(design.term_names, places(design.terms), strict=True)
        for name, (first, end, term) in named:  # levels that nearly determine the class
            if not 2 <= end - first <= 100 or not isinstance(term[0], factors.Levels):
                continue
            level = np.unique(X[:, first:end].round(9), axis=0, return_inverse=True)[1].ravel()
            many = RARE_ROWS * (level.max() + 1) <= len(code)
            if many and purity(level, code) >= max(SAME, 0.5 * (1.0 + most)):
                found.append(name)
    sentence = "{} alone predicts the response almost perfectly."
    hint = "Check that it is known before the response. If not, leave it out."
    names = dict.fromkeys(found)
    return [Finding("leak", "problem", sentence.format(name), hint, (name,)) for name in names]


def wild_values(subject):
    """Find values far outside all others in a subject (fit and rows); return a list of Finding."""
    found = []
    for limits, rows, values in subject.wild:
        at = np.isin(rows, subject.counted)
        done = "the fit uses the middle of the other values instead"
        found.append((limits, rows[at], values[at], done, True))
    batch = subject.answered
    if batch is not None and subject.fit.levels is None:
        limits = summaries.find_limits(batch.y, subject.fit.design.response.name)
        if limits is not None:
            at = np.flatnonzero(limits.beyond(batch.y))
            done = "every model uses them as they are"
            found.append((limits, batch.rows[at], batch.y[at], done, False))
    few_rows = summaries.most_wild(len(subject.rows.index))
    hint, findings = "Correct these values, or make them missing.", []
    for limits, at, values, done, of_feature in found:
        if len(at):
            name, labels = limits.feature, list(subject.rows.index[at])
            severity = "note" if of_feature and len(at) <= few_rows else "problem"
            sentence = f"{name} has values far outside all others in {rows_in_words(labels)}: "
            sentence += f"{some_names([significant(v) for v in values])}; {done}."
            where = (name,), tuple(labels)
            findings.append(Finding("wild-values", severity, sentence, hint, *where))
    return findings


def missing_code(subject):
    """Find numbers such as -999 for missing values in a subject (fit, rows); return Findings."""
    frame, findings = read_frame(subject.data), []
    wild = {limits.feature for limits, at, _ in subject.wild if len(at)}
    for name in _plain_numbers(subject.design):
        if name in wild:
            continue
        x = columns.as_float(read_column(frame, name).values)[subject.rows.rows]
        values, counts = np.unique(x[~np.isnan(x)], return_counts=True)
        for end, others in ((0, values[1:]), (-1, values[:-1])):
            if len(others) < 2 or counts[end] < 2:
                continue
            gap = abs(others - values[end]).min()
            code = f"{values[end]:.12g}"
            if gap <= others[-1] - others[0] or code.strip("-9"):
                continue
            low, high = significant(others[0], 6), significant(others[-1], 6)
            sentence = f"{name} is {code} in {counts[end]} rows, far from its other values ({low} "
            sentence += f"to {high}). This number seems to stand for missing values."
            hint = f"Make these values missing: data[{name!r}].mask(data[{name!r}] == {code})."
            findings.append(Finding("missing-code", "problem", sentence, hint, (name,)))
    return findings


def copies(subject):
    """Find pairs of nearly equal features in a subject (fit and rows); return a list of Finding."""
    design, batch = subject.design, subject.rows
    if batch.n < MIN_ROWS:
        return f"fewer than {MIN_ROWS} rows"
    if len(design.names) > MOST_COLUMNS:
        return f"more than {MOST_COLUMNS:,} features"
    X = standardized(batch)[_thinned(batch.n)]
    marks = [any(isinstance(part, factors.Missing) for part in term) for term in design.terms]
    needs = [{name for part in term for name in factors.needs(part)} for term in design.terms]
    pairs = near_copies(X, [None if marks[t] else needs[t] for t in design.term_of])
    if not pairs:
        return []
    names = [(design.names[i], design.names[j]) for i, j, _ in pairs]
    named = some_names([f"{a} with {b}" for a, b in names])
    sentence = f"{counted(len(pairs), 'pair')} of features correlated by {SAME} or more: {named}."
    hint = "The fit may use either of the two by chance: interpret both together, or leave one out."
    terms = tuple(dict.fromkeys(itertools.chain.from_iterable(names)))
    return [Finding("copies", "note", sentence, hint, terms)]


def identifier(subject):
    """Find columns that identify rows in a subject (fit and rows); return a list of Finding."""
    frame, rows, found = read_frame(subject.data), subject.rows.rows, []
    if len(rows) < MIN_ROWS:
        return f"fewer than {MIN_ROWS} rows"
    for name in filter(factors.is_called_identifier, _plain_numbers(subject.design)):
        x = columns.as_float(read_column(frame, name).values)[rows]
        if factors.identifies(x[~np.isnan(x)]):
            found.append(name)
    sentence = f"{{}} seems to be an identifier: {len(rows)} rows have integers that hardly "
    sentence += "ever repeat."
    hint = "Leave it out: '. - {}'. It only explains the order of the rows."
    texts = [(sentence.format(name), hint.format(quote(name)), (name,)) for name in found]
    return [Finding("identifier", "problem", *text) for text in texts]


def _plain_numbers(design):
    plain = (term[0] for term in design.terms if len(term) == 1)
    return [part.name for part in plain if isinstance(part, factors.Numeric)]


def duplicates(subject):
    """Find rows equal to an earlier row in a subject (fit and rows); return a list of Finding."""
    batch, response = subject.rows, np.zeros(len(subject.rows.index))
    if batch.n < MIN_ROWS:
        return f"fewer than {MIN_ROWS} rows"
    if subject.answered is not None:
        response[subject.answered.rows] = subject.answered.y
    X = standardized(batch)
    again = repeats(np.column_stack([X, response[batch.rows]]), X)
    if not len(again):
        return []
    labels = list(batch.index[batch.rows[again]])
    sentence = (
        f"{rows_in_words(labels)} have the same features and response as an earlier row. "
        "Held-out rows then have copies among the training rows, so held-out losses are too low."
    )
    hint = "Leave the copies out, or give groups= so that copies are held out together."
    return [Finding("duplicates", "note", sentence, hint, (), tuple(labels))]


def collinearity(subject):
    """Find collinear numeric features of a subject (fit and rows); return a list of Finding."""
    if subject.fit.name not in LINEAR:
        return f"only for {' and '.join(LINEAR)}, which have coefficients"
    design, batch = subject.design, subject.rows
    parts = [design.terms[t] for t in design.term_of]
    at = [k for k, (x, *more) in enumerate(parts) if not more and isinstance(x, factors.Numeric)]
    if batch.n < max(MIN_ROWS, 2 * len(at)):
        return "fewer than two rows for each feature"
    if len(at) > MOST_COLUMNS:
        return f"more than {MOST_COLUMNS:,} features"
    factor = inflation(standardized(batch)[_thinned(batch.n)][:, at])
    high = np.flatnonzero(factor > INFLATED)
    if not len(high):
        return []
    order = high[np.argsort(-factor[high], kind="stable")]
    names = [design.names[at[j]] for j in order]
    told = [f"{name} {significant(factor[j], 3)}" for name, j in zip(names, order, strict=True)]
    sentence = f"{counted(len(names), 'feature')} with a variance inflation factor above "
    sentence += f"{INFLATED:g}: {some_names(told)}."
    hint = "Their coefficients are uncertain and may have the wrong sign; predictions are less "
    hint += "affected. Leave some features out, or use a penalty."
    return [Finding("collinearity", "note", sentence, hint, tuple(names))]


def empty_cells(subject):
    """Find interaction cells with 0 or 1 rows in a Subject (fit and rows); return Findings."""
    design, found = subject.design, []
    frame, rows = read_frame(subject.data), subject.rows.rows
    crossed = [[factors.column_with_levels(part) for part in term] for term in design.terms]
    for names in (names for names in crossed if len(names) > 1 and None not in names):
        read = [columns.as_levels(read_column(frame, name)) for name in names]
        codes = np.array([column.codes[rows] for column in read])
        shape = tuple(len(column.levels) for column in read)
        if math.prod(shape) > MOST_CELLS or (codes < 0).any():
            continue
        counts = np.bincount(np.ravel_multi_index(codes, shape), minlength=math.prod(shape))
        for cell in np.flatnonzero(counts < 2):
            at = np.unravel_index(cell, shape)
            levels = [c.levels[k] for c, k in zip(read, at, strict=True)]
            what = " and ".join(f"{n} = {v}" for n, v in zip(names, levels, strict=True))
            found.append(f"{what} ({counts[cell]})")
    if not found:
        return []
    cells = counted(len(found), "combination")
    sentence = f"{cells} of crossed levels with no row or one: {some_names(found)}."
    hint = "Their interaction can hardly be estimated: merge levels, or leave the interaction out."
    return [Finding("empty-cells", "note", sentence, hint, tuple(found))]


def rare_level(subject):
    """Find levels and classes with few rows of a subject (fit, rows); return a list of Finding."""
    batch, found = subject.rows, []
    for name, levels, counts in _level_counts(subject.design, subject.data, batch.rows):
        found += [f"{name} = {level}" for level in levels if 0 < counts.get(level, 0) < RARE_ROWS]
    fit = subject.fit
    if fit.levels is not None and subject.answered is not None:
        counts = np.bincount(subject.answered.y.astype(int), minlength=len(fit.levels))
        response = fit.design.response.name
        sizes = zip(fit.levels, counts, strict=True)
        found += [f"{response} = {level}" for level, n in sizes if n < RARE_ROWS]
    if not found:
        return []
    levels = counted(len(found), "level")
    sentence = f"{levels} with fewer than {RARE_ROWS} rows: {some_names(found)}."
    hint = "Merge similar levels; estimates for these levels are based on few rows."
    return [Finding("rare-level", "note", sentence, hint, tuple(found))]


def _level_counts(design, data, rows):
    """Yield (column, training levels, dict level -> count in `rows`) per column with levels."""
    frame, parts = read_frame(data), itertools.chain.from_iterable(design.terms)
    named = {factors.column_with_levels(part): part for part in parts}
    for name, part in named.items():
        if name is None:
            continue
        column = columns.as_levels(read_column(frame, name))
        codes = column.codes[rows]
        counts = np.bincount(codes[codes >= 0], minlength=len(column.levels))
        yield name, part.levels, dict(zip(column.levels, counts.tolist(), strict=True))


def extrapolation(subject):
    """Find rows of a subject (fit, rows) outside training ranges or levels; return Findings."""
    design, batch, found = subject.fit._reader, subject.read, []
    X = standardized(batch)
    raw = X * design.scale + design.mean
    is_binary = ((np.abs(raw) < 1e-6) | (np.abs(raw - 1.0) < 1e-6)).all(axis=0)
    far = beyond(X, subject.fit.n) & ~is_binary
    if far.any():
        names = [design.names[j] for j in np.flatnonzero(far.any(axis=0))]
        rows = list(batch.index[batch.rows[np.flatnonzero(far.any(axis=1))]])
        what = f"{rows_in_words(rows)} outside the range of the training rows"
        hint = "Their predictions are extrapolations: check the values and their units."
        sentence, where = f"{what}: {some_names(names)}.", (tuple(names), tuple(rows))
        found.append(Finding("extrapolation", "problem", sentence, hint, *where))
    for name, sentence in unseen_levels(design, subject.data, subject.counted):
        hint = "predict() refuses them, or treats them as missing (new_levels='missing')."
        found.append(Finding("extrapolation", "problem", sentence, hint, (name,)))
    return found


def unseen_levels(design, data, rows):
    """Yield (column, sentence) per column whose `rows` have levels that no training row has."""
    for name, levels, counts in _level_counts(design, data, rows):
        unseen = {level: n for level, n in counts.items() if n and level not in levels}
        if unseen:
            what = f"{counted(sum(unseen.values()), 'row')} with levels of {name}"
            yield name, f"{what} that no training row has: {some_names(map(repr, unseen))}."


def drift(subject):
    """Find features with changed means in new rows of a subject (fit, rows); return Findings."""
    moved = moved_means(subject.fit, subject.read)
    if isinstance(moved, str) or not moved:
        return moved or []
    means, shifts = counted(len(moved), "mean"), shifts_in_words(moved)
    sentence = f"{means} changed, in standard deviations of the training rows: {shifts}."
    hint = "The fit may be out of date: check whether its loss on such rows has increased."
    return [Finding("drift", "problem", sentence, hint, tuple(moved))]


def moved_means(fit, batch):
    """Return significant changes of feature means since training, as a dict name -> change.

    batch : the new rows. Changes are in standard deviations, the largest first.
    If no test is possible, return a text that says why."""
    # The least change is `SHIFT`.
    if batch.n < LEAST_NEW:
        return f"fewer than {LEAST_NEW} rows"
    if fit.arguments.get("weights") is not None:
        return "the fit is weighted, so its means are weighted means"
    if fit.arguments.get("standardize") is False:
        return "the fit with standardize=False stores no standard deviations"
    shift, has_moved = moved(standardized(batch), fit.n)
    order = np.argsort(-np.abs(shift), kind="stable")
    return {fit._reader.names[j]: float(shift[j]) for j in order if has_moved[j]}


def shifts_in_words(moved):
    """Return a phrase with the first few features in `moved`, a dict name -> shift of the mean."""
    return some_names([f"{name} by {significant(shift, 2)}" for name, shift in moved.items()])


def standardized(batch):
    """Return the standardized features of a batch, (n, p); missing values are zero (the mean)."""
    return np.nan_to_num(tiles.unpack(batch.X, batch.n).astype(np.float64))


def _thinned(n):
    return np.unique(np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(int))


CHANCE = 1e-3  # probability of a finding in healthy data, over all features
SAME = 0.995  # correlation above which features, or a feature and the response, are the same
RARE_ROWS = 5  # levels with fewer rows are absent from one of five folds
SHIFT = 0.25  # smallest shift of a mean that is reported, in standard deviations
LEAST_NEW = 20  # smallest number of new rows whose mean is compared
REPEATED = 0.01  # smallest share of repeated rows that is reported
CHANCE_TIMES = 10.0  # ... and how many times the number expected by chance
INFLATED = 10.0  # variance inflation factor above which a feature is reported


def repeats(rows, X):
    """Return the positions of rows that equal an earlier row; none if chance explains them.

    rows : (n, q) features and response; X : features alone, to estimate the number by chance"""
    n = len(rows)
    again = np.flatnonzero(pd.DataFrame(rows).duplicated().to_numpy())
    if len(again) < max(2, REPEATED * n):
        return again[:0]
    agree = [(np.unique(x, return_counts=True)[1] ** 2.0).sum() / n**2 for x in X.T]
    expected = 0.5 * n**2 * np.prod(np.sort(agree)[:3])
    return again if len(again) > CHANCE_TIMES * (expected + 0.1) else again[:0]


def inflation(X):
    """Return variance inflation factors (p,) of features (n, p); 1 for constant features."""
    spread, factors = X.std(axis=0), np.ones(X.shape[1])
    use = np.flatnonzero(spread > 1e-9)
    if len(use) > 1:
        Z = (X[:, use] - X[:, use].mean(axis=0)) / spread[use]
        values, vectors = np.linalg.eigh(Z.T @ Z / len(Z))
        factors[use] = (vectors**2 / np.maximum(values, 1e-12)).sum(axis=1)
    return factors


def near_copies(X, sources):
    """Find pairs of columns of X that are nearly copies; return a list of (i, j, correlation).

    sources : per column of X, the set of its data columns; None to skip the column"""
    spread = X.std(axis=0)
    use = np.flatnonzero((spread > 1e-9) & np.array([s is not None for s in sources], bool))
    Z = (X[:, use] - X[:, use].mean(axis=0)) / spread[use]
    found = []
    for a in range(len(use)):
        r = Z[:, a] @ Z[:, a + 1 :] / len(Z)
        for b in np.flatnonzero(np.abs(r) >= SAME) + a + 1:
            i, j = int(use[a]), int(use[b])
            # Columns computed from the same data column are no copies.
            if not sources[i] & sources[j]:
                found.append((i, j, float(r[b - a - 1])))
    return found


def tells_number(x, y):
    return max(abs(_correlation(x, y)), abs(_correlation(rankdata(x), rankdata(y))))


def tells_classes(x, code, n_classes):
    """Measure how well a feature separates classes: the smallest AUC over pairs of classes.

    x : (n,) values of the feature; code : (n,) class codes of the rows
    Return 0 if two classes have so few rows that chance may separate them."""
    least = 1.0
    for a in range(n_classes):
        for b in range(a):
            either = (code == a) | (code == b)
            of_a = code[either] == a
            n, m = int(of_a.sum()), int((~of_a).sum())
            if gammaln(n + m + 1) - gammaln(n + 1) - gammaln(m + 1) < np.log(2e3 / CHANCE):
                return 0.0
            area = auc(of_a, x[either], np.ones(n + m))
            least = min(least, max(area, 1.0 - area))
    return least


def purity(level, code):
    """Return the share of rows whose class `code` is the most frequent one of their `level`."""
    counts = np.zeros((level.max() + 1, code.max() + 1))
    np.add.at(counts, (level, code), 1.0)
    return counts.max(axis=1).sum() / len(level)


def _correlation(x, y):
    x, y = x - x.mean(), y - y.mean()
    size = np.sqrt((x @ x) * (y @ y))
    return x @ y / size if size > 0 else 0.0


def moved(X, n_training):
    """Return the means (p,) of new rows, and whether each differs from the mean in training.

    X : new rows, standardized as in training; n_training : number of training rows"""
    # A mean differs if it is at least `SHIFT` in absolute value, and significant by a t test.
    shift = X.mean(axis=0)
    error = np.sqrt(np.maximum(1.0, X.var(axis=0)) * (1.0 / len(X) + 1.0 / n_training))
    p = 2.0 * stdtr(max(min(len(X), n_training) - 1, 1), -np.abs(shift) / error)
    return shift, (np.abs(shift) >= SHIFT) & (p < CHANCE / X.shape[1])


def beyond(X, n_training):
    """Return which standardized |X| exceed sqrt(n_training - 1), as no training row can, (n, p)."""
    # At most sqrt(n_training - 1) in absolute value (Samuelson 1968)
    return np.abs(X) > np.sqrt(max(n_training - 1, 1)) * (1.0 + 1e-9)
