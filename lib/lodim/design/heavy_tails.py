"""Compression of the heavy-tailed columns that a formula includes by its '.'."""

import numpy as np

from lodim.design.columns import as_float, take
from lodim.design.summaries import find_limits
from lodim.design.terms import draw_rows
from lodim.formula.formula import compressed

KURTOSIS = 6.0  # least kurtosis of a heavy-tailed column (benchmarks/heavy_tails.py)
QUARTILE = 0.6745  # median of the absolute values of standard normal numbers
TIED = 1e-9  # largest difference of values that count as equal, as a share of their range
SAMPLE = 100_000  # largest number of rows from which the constants are computed


def compress(keys, written, parts, summaries):
    """Return a formula's terms, with a compressing function around each heavy-tailed column.

    Terms are tuples of (column, None) or (None, text of a call). Columns that the formula itself
    names, `written`, are left as they are."""
    alone = {term[0][0] for term in keys if len(term) == 1 and term[0][1] is None} - written
    names = [n for n in summaries if n in alone and summaries[n].column.kind == "number"]
    if not names:
        return keys
    table, codes = parts.gather(draw_rows(parts, (), SAMPLE)[0], names), {}
    for name in names:
        x = as_float(take(table.columns[name].values, table.rows))
        weight = np.ones(len(x)) if table.weights is None else table.weights / table.weight_unit
        used = (weight > 0.0) & ~np.isnan(x)
        codes[((name, None),)] = term_of(name, x[used], weight[used])
    return tuple(((None, codes[term]),) if codes.get(term) else term for term in keys)


def term_of(name, x, weight):
    """Return formula text that compresses a column; None if its tails are not heavy."""
    if not len(x):
        return None
    limits = find_limits(x, name)
    inside = np.ones(len(x), bool) if limits is None else ~limits.beyond(x)
    low, high = x[inside].min(), x[inside].max()
    equal = TIED * (high - low)
    has_two_values = (np.minimum(x - low, high - x)[inside] <= equal).all()
    if has_two_values or not _kurtosis(x[inside], weight[inside]) > KURTOSIS:
        return None
    median = _median(x, weight)
    distance = np.abs(x - median)
    other = distance > equal
    spread = _median(distance[other], weight[other]) / QUARTILE
    digits = 2 - int(np.floor(np.log10(spread)))
    center, spread = (round(float(number), digits) for number in (median, spread))
    return compressed(name, center, spread)


def _kurtosis(x, weight):
    """Return the kurtosis of x; 3 for normal numbers, NaN if it cannot be computed."""
    with np.errstate(all="ignore"):
        squares = (x - np.average(x, weights=weight)) ** 2
        squares /= np.average(squares, weights=weight)
        return np.average(squares**2, weights=weight)


def _median(x, weight):
    return np.quantile(x, 0.5, weights=weight, method="inverted_cdf")
