"""The features of a design's terms, written into tiles."""

import itertools
import math
from collections import Counter

import numpy as np

from lodim.design import columns, factors
from lodim.design.column_kernels import ALL, kernel_weights, moments, pack, read_only
from lodim.design.table import expand_rows, known_rows
from lodim.engine.blocks import each
from lodim.errors import DataError

FAR = {"float64": 1e100, "float32": 1e15}  # in size, of what is squared, multiplied and summed
FLAT = 1e-13  # a spread below this part of the size is rounding, not signal
KEPT = 4_000_000  # numbers of factors that are kept between terms


def column_choices(term):
    """For each column of a term, the column of each factor; that of the first runs fastest."""
    widths = [range(factors.width(part)) for part in term]
    return [choice[::-1] for choice in itertools.product(*reversed(widths))]


class _Prepared:
    """What columns are cut from: small ones are kept where several terms need them."""

    def __init__(self, terms, table):
        self.table, self.room, self.kept = table, KEPT, {}
        self.uses = Counter(id(part) for term in terms for part in term)

    def __call__(self, part):
        if id(part) in self.kept:
            return self.kept[id(part)]
        values = factors.prepare(part, self.table)
        if self.uses[id(part)] > 1 and values.size <= self.room:
            self.room -= values.size
            self.kept[id(part)] = values
        return values


def _sources(term, table, prepared):
    """(column, rows) for each feature of a term: the user's array where it is numbers."""
    part, where = known_rows(table, [name for f in term for name in factors.needs(f)])
    if where is ALL:
        yield from _known_sources(term, part, prepared)
    elif not part.n:
        for _ in column_choices(term):
            yield read_only(np.full(table.n, np.nan)), read_only(ALL)
    else:
        for x, rows in _known_sources(term, part, _Prepared((), part)):
            values = expand_rows(columns.take(x, rows), where, table.n)
            yield read_only(values), read_only(ALL)


def _known_sources(term, table, prepared):
    """The same for a table where nothing of the term is missing."""
    if len(term) == 1 and isinstance(term[0], factors.Numeric):
        values = factors.raw_numbers(term[0], table)
        yield read_only(columns.as_float(values)), table.rows
        return
    sources = [prepared(part) for part in term]
    for choice in column_choices(term):
        each = [factors.column(*z) for z in zip(term, sources, choice, strict=True)]
        yield read_only(each[0] if len(each) == 1 else _product(each)), read_only(ALL)


def _product(columns):
    """The product of columns that miss nothing; infinite where it is beyond all numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.multiply.reduce(columns)
    product[np.isnan(product)] = np.inf
    return product


def _each(work, terms, table, p):
    """Do the work of every term, given its first feature; in threads where there is much."""
    widths = [math.prod(map(factors.width, term)) for term in terms]
    firsts = np.cumsum([0, *widths])[:-1].tolist()
    pairs = list(zip(terms, firsts, strict=True))
    each(lambda pair: work(*pair), pairs, table.n * p)


def write(terms, table, X, mean, scale, flat):
    """Write every feature but the constant ones."""
    prepared = _Prepared(terms, table)

    def work(term, first):
        for k, (x, rows) in enumerate(_sources(term, table, prepared), first):
            if not flat[k]:
                _check_near(pack(x, rows, mean[k], scale[k], X, k), term, X.dtype)

    _each(work, terms, table, X.shape[1])


def learn_and_write(terms, table, X, names, weights, standardize):
    """Write every feature, learning its mean and scale: (p,), (p,), and (p,) bool, constant."""
    p = X.shape[1]
    mean, scale, flat = np.zeros(p), np.ones(p), np.zeros(p, bool)
    weights, prepared = kernel_weights(weights), _Prepared(terms, table)

    def work(term, first):
        for k, (x, rows) in enumerate(_sources(term, table, prepared), first):
            mean[k], sd, least, greatest = _moments_of(term, table, x, rows, weights)
            if not (np.isfinite(mean[k]) and np.isfinite(sd)):
                what = f"{names[k]!r} holds numbers up to {greatest:.3g}, too large to be squared"
                raise DataError(f"{what}; divide it by a power of ten")
            if sd <= FLAT * max(abs(least), abs(greatest)):
                flat[k], mean[k] = True, min(max(mean[k], least), greatest)
                continue
            scale[k] = sd if standardize else 1.0
            _check_near(pack(x, rows, mean[k], scale[k], X, k), term, X.dtype)

    _each(work, terms, table, p)
    return mean, scale, flat


def _moments_of(term, table, x, rows, weights):
    """Moments of one column of a term, those of a number where they are known already."""
    if len(term) == 1 and isinstance(term[0], factors.Numeric) and term[0].name in table.moments:
        return table.moments[term[0].name]
    if table.missing == "keep":
        rows, weights = _known_values(x, rows, weights)
    return moments(x, rows, weights)


def _check_near(largest, term, dtype):
    """Raise where a feature is so far from the mean row that distances would be infinite."""
    if largest > FAR[dtype.name]:
        name = ":".join(part.name for part in term)
        raise DataError(
            f"{name!r} holds a number that is {largest:.3g} standard deviations (or units) from "
            "the training rows' mean, too far to be computed with; make it missing or correct it"
        )


def _known_values(x, rows, weights):
    """The rows where x is not missing, and their weights."""
    if rows.size or not np.isnan(x).any():
        return rows, weights
    at = np.flatnonzero(~np.isnan(x))
    return read_only(at), read_only(weights[at] if weights.size else weights)
