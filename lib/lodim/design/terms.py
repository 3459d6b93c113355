"""Terms of a formula, such as x or a:b: learned from data, counted, named, and made monotone."""

import itertools
import math
from collections import Counter
from functools import partial

import numpy as np

from lodim.design import factors
from lodim.design.chunks import draw_positions
from lodim.design.columns import as_float, known_rows, take
from lodim.design.expressions import evaluate, tree
from lodim.design.factors import Expression, Levels, Missing, Numeric
from lodim.design.frame import FEW_LEVELS, check_text
from lodim.design.rows import TO_ORDER, filled, indicators
from lodim.design.summaries import ColumnRequest, find_limits, merge, summarize_values
from lodim.errors import ArgumentError, DataError, DataWarning, warn
from lodim.formula.formula import compressed, is_compressed, quote
from lodim.text import feature_columns, first_few, suggestion

MAX_FEATURES = 1_000_000
MAX_LETTERS = 25_000_000  # largest total length of the features' names
# Largest number of features: FEATURES_PER_COLUMN per column is always allowed; beyond it
# MANY_FEATURES in all, with at most MANY_NUMBERS numbers in all rows (0.8 GB).
FEATURES_PER_COLUMN, MANY_FEATURES, MANY_NUMBERS = 100, 100_000, 100_000_000
SAMPLE = 1_000_000  # largest number of rows from which splines, centres and scales are learned
WAYS = {"increasing": 1, "decreasing": -1}
KURTOSIS = 6.0  # least kurtosis of a heavy-tailed column (benchmarks/heavy_tails.py)
QUARTILE = 0.6745  # median of the absolute values of standard normal numbers
TAIL_TIED = 1e-9  # largest difference of values that count as equal, as a share of their range
TAIL_SAMPLE = 100_000  # largest number of rows from which the constants are computed


def columns_of(keys):
    """Return the distinct columns of terms, including those inside calls, as a list.

    keys : terms, each a tuple of factors: (column, None), or (None, text of a call)"""
    every = dict.fromkeys(key for term in keys for key in term)
    return list(dict.fromkeys(name for key in every for name in factors.columns_of(key)))


def column_request(keys):
    """Return the columns of terms (`keys`), and which statistics they need, as a ColumnRequest."""
    coded = [code for code in _codes(keys) if factors.is_category(code)]
    return ColumnRequest(
        tuple(columns_of(keys)),
        frozenset(factors.column_in(code) for code in coded) - {None},
        frozenset(columns_of([_learning(keys)])),
    )


def _codes(keys):
    """Return the distinct texts in `keys`: terms, tuples of (column, None) or (None, call text)."""
    return [code for _, code in dict.fromkeys(itertools.chain.from_iterable(keys)) if code]


def _learning(keys):
    """Return the factors of terms (`keys`) that learn constants, such as knots of bs(x)."""
    codes = [c for c in _codes(keys) if not factors.is_category(c) and factors.remembers(c)]
    return [(None, code) for code in codes]


def warn_of_row_names(keys, summaries, written):
    """Warn about columns that seem to name rows; return their Summaries.

    keys : terms, as tuples of (column, None) or (None, text of a call)
    summaries : dict column -> Summary (statistics)
    written : columns that the formula names itself, without warning"""
    names = dict.fromkeys(name for term in keys for name, code in term if code is None)
    found = [summaries[n] for n in names if n not in written and factors.names_rows(summaries[n])]
    for one in found:
        called = factors.is_called_identifier(one.column.name)
        if not (called and all(str(level).isdigit() for level in one.used_levels)):
            check_text(one.column, one.used_levels, one.n - one.n_missing)
        name = quote(one.column.name)
        cure = f"write '. - {name}' to confirm, or '. + C({name})' to use its levels"
        warn(f"{factors.row_names(one)}. It is left out of '.'; {cure}", DataWarning)
    return found


def warn_of_identifiers(keys, parts, summaries, written):
    """Warn about numeric columns that seem to number rows.

    keys : terms, as tuples of (column, None) or (None, text of a call)
    parts : Chunks of the rows
    summaries : dict column -> Summary (statistics)
    written : columns that the formula names itself, without warning"""
    for name in dict.fromkeys(name for term in keys for name, code in term if code is None):
        one, suspect = summaries[name], name not in written and factors.is_called_identifier(name)
        if not suspect or one.column.kind != "number" or one.n - one.n_missing <= FEW_LEVELS:
            continue
        if all(parts.map(partial(_identifies, name), [name])):
            what = f"column {name!r} seems to number the rows: its whole numbers hardly ever repeat"
            cure = f"'. - {quote(name)}' leaves it out, '. + {quote(name)}' confirms it"
            warn(f"{what}. It is a feature of the model; {cure}", DataWarning)


def _identifies(name, _, table):
    x = as_float(take(table.columns[name].values, table.rows))
    return factors.identifies(x[~np.isnan(x)])


def learn(keys, parts, summaries, fills, missing, reference_levels):
    """Learn the terms of a formula from training rows; return (terms, named, n_sampled).

    keys : terms, as tuples of (column, None) or (None, text of a call)
    parts : Chunks of the rows
    summaries : dict column -> Summary
    fills : Fill (replacement of missing values) per column
    missing : "drop", "keep" or "indicator"
    reference_levels : whether to code factors as R does
    terms : tuples of factors (Numeric, Levels etc.)
    named : dict of "names" (of features), "term_names" and "term_of" (term per feature)
    n_sampled : number of rows sampled for splines and means, 0 if not sampled"""
    check_size([math.prod(map(factors.least_width, term)) for term in keys], keys, parts.n)
    # Values of expressions, as in C(np.floor(x)), are counted in all rows.
    counted = [(None, code) for code in _codes(keys) if factors.is_counted(code)]

    def count(_, table):
        table, found = filled(table, fills), {}
        for key in counted:
            part, code = known_rows(table, factors.columns_of(key))[0], key[1]
            values = evaluate(code, tree(code).args[0], part)[:, 0] if part.n else np.zeros(0)
            found[key] = summarize_values(part, code, values, table.n)
        return found

    if counted:
        summaries = summaries | merge(parts.map(count, columns_of([counted])))
    # Means, knots etc. are learned from rows that include the ends of each column.
    table, n_sampled, learning = None, 0, _learning(keys)
    if learning:
        needed = columns_of([learning])
        ends = [place for name in needed for place in summaries[name].extremes if place >= 0]
        rows, is_sample = draw_rows(parts, ends, SAMPLE)
        table = filled(parts.gather(rows, needed), fills)
        n_sampled = table.n if is_sample else 0
    how = summaries, table, missing, reference_levels
    learnt = {key: factors.learn(key, *how) for key in dict.fromkeys(itertools.chain(*keys))}
    terms = tuple(tuple(learnt[key] for key in term) for term in keys)
    if reference_levels:
        reduced, coded = _against_reference(keys), factors.against_reference
        terms = tuple(tuple(coded(learnt[k], k in reduced[term]) for k in term) for term in keys)
    terms += indicators(terms, fills)
    sizes = widths(terms)
    check_size(sizes, keys, parts.n)
    named = dict(zip(("names", "term_names", "term_of"), names(terms, sizes), strict=True))
    return terms, named, n_sampled


def draw_rows(parts, ends, size):
    """Draw about `size` rows; return their positions (None for all) and whether rows are left out.

    parts : Chunks of all rows
    ends : positions of rows that the sample must include"""
    if parts.n <= size:
        return None, False
    rows = parts.table.weighted(np.arange(parts.n))  # without rows of weight zero
    if len(rows) <= size:
        return rows, False
    return np.union1d(rows[draw_positions(len(rows), size, 0)], np.array(ends, np.int64)), True


def _against_reference(keys):
    """Return a dict term -> set of its factors that get no column for their first level.

    keys : terms, as tuples of (column, None) or (None, text of a call)"""
    # The product of the term's other factors, or the intercept, is in the model, too (Chambers &
    # Hastie 1992).
    reduced, covered = {}, {frozenset()}
    for term in sorted(keys, key=len):
        rests = {key: frozenset(term) - {key} for key in term}
        reduced[term] = {key for key, rest in rests.items() if rest in covered}
        # The other factors of a term cannot be part of a later, smaller term.
        covered |= {frozenset(term), *rests.values()}
    return reduced


def check_size(widths, keys, n):
    """Raise DataError if terms `keys` are too wide for n rows; widths : features per term."""
    p, used = sum(widths), len(columns_of(keys))
    few = p <= FEATURES_PER_COLUMN * used or (p <= MANY_FEATURES and n * p <= MANY_NUMBERS)
    if few and p <= MAX_FEATURES:
        return
    what = f"the formula would have {p:,} features from {used:,} columns, {n * p:,} numbers"
    limits = f"{MANY_FEATURES:,} features and {MANY_NUMBERS:,} numbers in all {n:,} rows"
    if p > MAX_FEATURES:
        limits = f"{MAX_FEATURES:,} features in all"
    many = f"with more than {FEATURES_PER_COLUMN} features per column"
    raise DataError(f"{what}; {many}, at most {limits} are allowed")


def needs(terms):
    """Return the data columns that terms read, each once."""
    return list(dict.fromkeys(n for term in terms for part in term for n in factors.needs(part)))


def widths(terms):
    return [math.prod(map(factors.width, term)) for term in terms]


def names(terms, sizes):
    """Return feature and term names, and each feature's term number; sizes : features per term."""
    letters = sum(w * sum(map(factors.letters, t)) for w, t in zip(sizes, terms, strict=True))
    if letters > MAX_LETTERS:
        what = f"the names of the features would have {letters:,} letters"
        what += f", but at most {MAX_LETTERS:,} are allowed"
        raise DataError(f"{what}: give the columns shorter names, or write shorter expressions")
    labelled, term_of = [], []
    for t, term in enumerate(terms):
        labels = [factors.labels(part) for part in term]
        for choice in column_choices(term):
            labelled.append(":".join(label[j] for label, j in zip(labels, choice, strict=True)))
            term_of.append(t)
    if len(set(labelled)) < len(labelled):
        twice = next(name for name, count in Counter(labelled).items() if count > 1)
        raise DataError(f"two features would be called {twice!r:.200}; rename a column")
    titles = [":".join(map(factors.title, term)) for term in terms]
    labelled, titles = (tuple(feature_columns(n, ("(Intercept)",))) for n in (labelled, titles))
    return labelled, titles, np.array(term_of, np.int64)


def column_choices(term):
    """Return a list with a tuple per feature of a term: the column of each factor to multiply.

    In a term a:b, (1, 0) is column 1 of a times column 0 of b."""
    widths = [range(factors.width(part)) for part in term]
    return [choice[::-1] for choice in itertools.product(*reversed(widths))]


def check_ways(monotone):
    values = monotone.values() if isinstance(monotone, dict) else [None]
    if not all(isinstance(way, str) and way in WAYS for way in values):
        words = 'one direction per column, as in {"age": "increasing"}'
        other = f"of increasing or decreasing, not {' '.join(repr(monotone).split()):.80}"
        raise ArgumentError(f"monotone must be {words}, {other}")


def directions(monotone, design, family):
    """Return 1 (increasing), -1 or 0 (free) per feature from the dict `monotone`; None if empty.

    Raise ArgumentError if a column of `monotone` is in no term or several, or has no order."""
    if not monotone:
        return None
    if family.n_functions > 1:
        what = f"monotone= needs a numeric response or two classes, not {family.n_scores} classes"
        raise ArgumentError(f"{what}: leave monotone= out")
    found = np.zeros(len(design.names), int)
    # An indicator of missing values does not use the values.
    used = [needs([[p for p in term if not isinstance(p, Missing)]]) for term in design.terms]
    for name, way in monotone.items():
        own = [k for k, names in enumerate(used) if name in names]
        if not own:
            hint = suggestion(name, design.features)
            raise ArgumentError(f"monotone: {name!r} is not in the formula; {hint}")
        if len(own) != 1 or not _keeps_order(design.terms[own[0]], name):
            has = ", ".join(design.term_names[k] for k in own)
            wanted = f"monotone= needs {name!r} as a numeric column or an ordered category that is "
            wanted += f"not part of other terms, but the formula has {has}"
            cure = "leave the column out of monotone=, or out of other terms"
            part, *others = design.terms[own[0]]
            is_column = not others and isinstance(part, Levels) and not part.called
            if len(own) == 1 and is_column and part.missing is not None:
                wanted = f"monotone= needs categories without missing values, but {name!r} has some"
                cure = "fill them in, or give missing='drop'"
            elif len(own) == 1 and is_column and part.matrix is None:
                has = f"{name!r} has the levels {first_few(part.levels, 3)} in no order"
                wanted, cure = f"monotone= needs levels in order, but {has}", TO_ORDER
            raise ArgumentError(f"{wanted}: {cure}")
        found[np.asarray(design.term_of) == own[0]] = WAYS[way]
    return tuple(found.tolist())


def _keeps_order(term, name):
    """Return whether a term is column `name` with ordered values: numbers, ordered levels, bool."""
    if len(term) != 1 or isinstance(term[0], Numeric):
        return len(term) == 1
    factor = term[0]
    if isinstance(factor, Expression):
        return is_compressed(factor.name, name)
    if not isinstance(factor, Levels) or factor.called or factor.missing is not None:
        return False
    if factor.matrix is None:
        return set(map(type, factor.levels)) == {bool}
    return bool((np.diff(factor.matrix, axis=0) >= 0.0).all())


def compress(keys, written, parts, summaries):
    """Replace columns with heavy tails by their arcsinh; return the new terms.

    keys : terms, as tuples of (column, None) or (None, text of a call)
    written : columns that the formula names itself, which stay
    parts : Chunks of the rows
    summaries : dict column -> Summary (statistics)"""
    alone = {term[0][0] for term in keys if len(term) == 1 and term[0][1] is None} - written
    names = [n for n in summaries if n in alone and summaries[n].column.kind == "number"]
    if not names:
        return keys
    table, codes = parts.gather(draw_rows(parts, (), TAIL_SAMPLE)[0], names), {}
    for name in names:
        x = as_float(take(table.columns[name].values, table.rows))
        weight = np.ones(len(x)) if table.weights is None else table.weights / table.weight_unit
        used = (weight > 0.0) & ~np.isnan(x)
        codes[((name, None),)] = compressing_text(name, x[used], weight[used])
    return tuple(((None, codes[term]),) if codes.get(term) else term for term in keys)


def compressing_text(name, x, weight):
    """Return text such as "np.arcsinh((age - 9) / 5)" for a column; None without heavy tails."""
    if not len(x) or _kurtosis(x, weight) <= KURTOSIS:  # before the outliers, which raise it
        return None
    limits = find_limits(x, name)
    inside = np.ones(len(x), bool) if limits is None else ~limits.beyond(x)
    low, high = x[inside].min(), x[inside].max()
    equal = TAIL_TIED * (high - low)
    has_two_values = (np.minimum(x - low, high - x)[inside] <= equal).all()
    if has_two_values or not _kurtosis(x[inside], weight[inside]) > KURTOSIS:
        return None
    median = _median(x, weight)
    distance = np.abs(x - median)
    other = distance > equal
    spread = _median(distance[other], weight[other]) / QUARTILE
    # Recorded numbers often lie halfway between two roundings: their last bits must not decide.
    median, spread = median + TAIL_TIED * spread, spread * (1.0 + TAIL_TIED)
    digits = 2 - int(np.floor(np.log10(spread)))
    center, spread = (round(float(number), digits) for number in (median, spread))
    return compressed(name, center, spread)


def _kurtosis(x, weight):
    with np.errstate(all="ignore"):
        squares = (x - np.average(x, weights=weight)) ** 2
        return weight.sum() * ((weight * squares) @ squares) / (weight @ squares) ** 2


def _median(x, weight):
    return np.quantile(x, 0.5, weights=weight, method="inverted_cdf")
