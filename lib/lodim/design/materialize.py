"""The features of a design's terms, written into tiles."""

import itertools
import math
from collections import Counter

import numpy as np

from lodim.design import columns, factors, summaries
from lodim.design.column_kernels import (
    ALL,
    NO_ROWS,
    as_real,
    column_moments,
    kernel_weights,
    pack,
    read_only,
)
from lodim.design.columns import expand_rows, known_rows
from lodim.engine.blocks import each
from lodim.engine.column_tiles import inverses
from lodim.engine.tiles import TILE
from lodim.errors import DataError

FAR = {"float64": 1e100, "float32": 1e15}  # in size, of what is squared, multiplied and summed
FLAT = 1e-13  # a spread below this part of the size is rounding, not signal
KEPT = 4_000_000  # numbers of factors that are kept between terms


def column_choices(term):
    """For each column of a term, the column of each factor; that of the first runs fastest."""
    widths = [range(factors.width(part)) for part in term]
    return [choice[::-1] for choice in itertools.product(*reversed(widths))]


class Prepared:
    """What columns are cut from: small ones are kept where they are needed again.

    again : whether all of the terms will be written once more
    """

    def __init__(self, terms, table, again=False):
        self.table, self.room, self.kept, self.again = table, KEPT, {}, again
        self.uses = Counter(id(part) for term in terms for part in term)

    def __call__(self, part):
        if id(part) in self.kept:
            return self.kept[id(part)]
        values = factors.prepare(part, self.table)
        if (self.again or self.uses[id(part)] > 1) and values.size <= self.room:
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
        for x, rows in _known_sources(term, part, Prepared((), part)):
            values = expand_rows(columns.take(x, rows), where, table.n)
            yield read_only(values), read_only(ALL)


def _known_sources(term, table, prepared):
    """The same for a table where nothing of the term is missing."""
    if len(term) == 1 and isinstance(term[0], factors.Numeric):
        values = factors.raw_numbers(term[0], table)
        yield as_real(values), table.rows
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


def write(terms, table, X, mean, scale, flat, limits, prepared=None):
    """Write every feature but the constant ones into the tiles of the table's rows.

    limits : dict of (lower, upper, middle) by position of the features that have some
    """
    prepared, inverse = prepared or Prepared(terms, table), inverses(scale, X.dtype)

    def work(term, first):
        size = np.empty(TILE)
        for k, source in enumerate(_sources(term, table, prepared), first):
            if not flat[k]:
                x, rows = summaries.apply_limits(*source, limits.get(k))
                pack(x, rows, mean[k], scale[k], inverse[k], X, k, size)
                check_near(size.max(), scale[k], term, X.dtype)

    _each(work, terms, table, X.shape[1])


def learn_moments(terms, table, prepared=None, *, known, limits):
    """Moments of the features in the rows of a table, (p, 5); see `column_kernels.moments`.

    Parameters
    ----------
    known : (p,) bool
        Features whose moments are known: zeros are left there.
    limits : as `write` takes them
    """
    prepared, found = prepared or Prepared(terms, table), np.zeros((len(known), 5))
    weights = kernel_weights(table.weights, table.weight_unit)

    def work(term, first):
        if known[first : first + 1].all():  # a term may have no feature, also the last one
            return
        for k, source in enumerate(_sources(term, table, prepared), first):
            x, rows = summaries.apply_limits(*source, limits.get(k))
            if table.missing == "keep":
                found[k] = _known_moments(x, rows, weights)
            else:
                found[k] = column_moments(x, rows, weights)

    _each(work, terms, table, len(known))
    return found


def numbers(terms, table, p):
    """Features as the terms make them, neither centred nor scaled nor limited, (n, p) float64."""
    prepared, out = Prepared(terms, table), np.empty((table.n, p))

    def work(term, first):
        for k, (x, rows) in enumerate(_sources(term, table, prepared), first):
            out[:, k] = columns.take(x, rows)

    _each(work, terms, table, p)
    return out


def learn_tails(terms, table, prepared=None, *, at, size):
    """The `size` least and greatest values of some features, a dict of Tails by position.

    at : frozenset of positions; rows of weight zero do not count
    """
    prepared, found = prepared or Prepared(terms, table), {}

    def work(term, first):
        if at.isdisjoint(range(first, first + len(column_choices(term)))):
            return
        for k, (x, rows) in enumerate(_sources(term, table, prepared), first):
            if k in at:
                values = columns.as_float(columns.take(x, rows))
                used = ~np.isnan(values)
                if table.positive_weight is not None:
                    used &= table.positive_weight
                found[k] = summaries.Tails.of_values(values[used], size)

    _each(work, terms, table, sum(math.prod(map(factors.width, term)) for term in terms))
    return found


def scaling(found, names, standardize):
    """Mean, scale and size (p,) of features, and which are constant, (p,) bool.

    By their moments (p, 5). The size is the standard deviation in units of the scale; of a
    constant 1.

    Raises
    ------
    DataError
        The numbers of a feature are too large to be squared.
    """
    total, mean, spread, least, greatest = found.T
    with np.errstate(all="ignore"):
        sd = np.sqrt(spread / total)
    wrong = np.flatnonzero(~(np.isfinite(mean) & np.isfinite(sd)))
    if wrong.size:
        k = wrong[0]
        what = f"{names[k]!r} holds numbers up to {greatest[k]:.3g}, too large to be squared"
        raise DataError(f"{what}; divide it by a power of ten")
    flat = sd <= FLAT * np.maximum(abs(least), abs(greatest))
    mean = np.where(flat, np.minimum(np.maximum(mean, least), greatest), mean)
    size, ones = np.where(flat, 1.0, sd), np.ones(len(sd))
    return mean, *((size, ones) if standardize else (ones, size)), flat


def check_near(distance, scale, term, dtype):
    """Raise where a feature is so far from the mean row that distances would be infinite."""
    with np.errstate(over="ignore"):
        largest = distance / scale
    if largest > FAR[dtype.name]:
        name = ":".join(part.name for part in term)
        raise DataError(
            f"{name!r} holds a number that is {largest:.3g} standard deviations (or units) from "
            "the training rows' mean, too far to be computed with; make it missing or correct it"
        )


def _known_moments(x, rows, weights):
    """Moments of the rows where x is not missing."""
    if rows.size or not np.isnan(x).any():
        return column_moments(x, rows, weights)
    at = np.flatnonzero(~np.isnan(x))
    if not at.size:
        return NO_ROWS
    return column_moments(x, read_only(at), read_only(weights[at] if weights.size else weights))
