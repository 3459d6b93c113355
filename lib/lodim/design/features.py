"""The features of some terms in all rows: their moments, and their tiles, part by part."""

import math
from functools import partial

import numpy as np

from lodim.design import factors, materialize
from lodim.design import missing as gaps
from lodim.design.column_kernels import merge_moments
from lodim.design.in_place import columns_in_place, tiles_in_place
from lodim.design.parts import TableParts, tiles_of


class Features:
    """What the terms of a design make of all rows.

    Where one part has them all, what is made for the moments is kept for the tiles.
    """

    def __init__(self, terms, fills, parts, missing):
        self.terms, self.fills, self.parts, self.missing = terms, fills, parts, missing
        self._kept = None

    def moments(self, p, facts):
        """Moments of the features (p, 5), those of plain numbers from the facts."""
        found, known, first = np.zeros((p, 5)), np.zeros(p, bool), 0
        for term in self.terms:
            if is_known(term, facts, self.missing):
                found[first], known[first] = facts[term[0].name].moments, True
            first += math.prod(map(factors.width, term))
        if known.all():
            return found
        names = _needed(term for term in self.terms if not is_known(term, facts, self.missing))
        work = partial(part_moments, terms=self.terms, fills=self.fills, known=known)
        if self.parts.in_one:
            work = partial(self._moments, known=known)
        return np.where(known[:, None], found, merge_moments(self.parts.map(work, names)))

    def _moments(self, _, table, known):
        whole = gaps.filled(table, self.fills)
        self._kept = whole, materialize.Prepared(self.terms, whole, again=True)
        return materialize.learn_moments(self.terms, whole, known, self._kept[1])

    def in_place(self, dtype):
        """The columns of a frame that are the features, where a fit may read them; or None."""
        if self.missing == "keep" or not isinstance(self.parts, TableParts):
            return None
        table = self.parts.table
        if table.rows.size or not set(_needed(self.terms)) <= table.complete_columns:
            return None
        return columns_in_place(self.terms, table.columns.__getitem__, table.n, dtype)

    def tiles_in_place(self, columns, found, mean, scale, flat, dtype):
        """Tiles of such columns, of moments (p, 5)."""
        least, greatest = found[:, 3], found[:, 4]
        if self.parts.table.weights is not None:  # moments are of the rows that count alone
            least, greatest = np.array([(x.min(), x.max()) for x in columns], np.float64).T
        far = np.maximum(np.abs(least - mean), np.abs(greatest - mean))
        for term, distance, unit, is_flat in zip(self.terms, far, scale, flat, strict=True):
            if not is_flat:
                materialize.check_near(distance, unit, term, np.dtype(dtype))
        return tiles_in_place(columns, mean, scale, flat, dtype)

    def write(self, X, mean, scale, flat):
        """Write the tiles X of all rows."""
        if self._kept is not None:
            materialize.write(self.terms, self._kept[0], X, mean, scale, flat, self._kept[1])
            return
        work = partial(_write, terms=self.terms, fills=self.fills, X=X)
        self.parts.map(partial(work, mean=mean, scale=scale, flat=flat), _needed(self.terms))


def is_known(term, facts, missing):
    """Whether a term is a number that nothing stands for where it is missing."""
    if len(term) > 1 or not isinstance(term[0], factors.Numeric):
        return False
    known = facts[term[0].name]
    return known.moments is not None and not (known.n_missing and missing == "indicator")


def _needed(terms):
    """Names of the columns that terms read, each once."""
    return list(dict.fromkeys(n for term in terms for part in term for n in factors.needs(part)))


def part_moments(_, table, terms, fills, known):
    """Moments of the features in a part, (p, 5); see `materialize.learn_moments`."""
    return materialize.learn_moments(terms, gaps.filled(table, fills), known)


def _write(span, table, terms, fills, X, mean, scale, flat):
    table = gaps.filled(table, fills)
    materialize.write(terms, table, tiles_of(X, span), mean, scale, flat)
