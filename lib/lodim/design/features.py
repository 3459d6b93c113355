"""The features of some terms in all rows: their moments, and their tiles, part by part."""

from functools import partial

import numpy as np

from lodim.design import factors, materialize
from lodim.design import missing as gaps
from lodim.design.column_kernels import merge_moments
from lodim.design.parts import tiles_of


class Features:
    """What the terms of a design make of all rows.

    Where there is one part alone, what is made for the moments is kept for the tiles.
    """

    def __init__(self, terms, fills, parts, missing):
        self.terms, self.fills, self.parts, self.missing = terms, fills, parts, missing
        needed = (name for term in terms for part in term for name in factors.needs(part))
        self.names = list(dict.fromkeys(needed))
        self._kept = {}

    def moments(self, p, facts):
        """Moments of the features (p, 5), those of plain numbers from the facts."""
        found, known, first = np.zeros((p, 5)), np.zeros(p, bool), 0
        for term in self.terms:
            if self._is_known(term, facts):
                found[first], known[first] = facts[term[0].name].moments, True
            first += int(np.prod([factors.width(part) for part in term]))
        if known.all():
            return found
        rest = [term for term in self.terms if not self._is_known(term, facts)]
        names = list(dict.fromkeys(n for term in rest for f in term for n in factors.needs(f)))
        work = partial(self._moments, known=known)
        return np.where(known[:, None], found, merge_moments(self.parts.map(work, names)))

    def _is_known(self, term, facts):
        """Whether a term is a number that nothing stands for where it is missing."""
        if len(term) > 1 or not isinstance(term[0], factors.Numeric):
            return False
        known = facts[term[0].name]
        return known.moments is not None and not (known.n_missing and self.missing == "indicator")

    def _moments(self, span, table, known):
        table, prepared = self._prepared(table)
        return materialize.learn_moments(self.terms, table, len(known), known, prepared)

    def write(self, X, mean, scale, flat):
        """Write the tiles X of all rows."""
        self.parts.map(partial(self._write, X=X, mean=mean, scale=scale, flat=flat), self.names)

    def _write(self, span, table, X, mean, scale, flat):
        table, prepared = self._prepared(table)
        tiles = tiles_of(X, span)
        materialize.write(self.terms, table, tiles, mean, scale, flat, prepared)

    def _prepared(self, table):
        """The table with its gaps filled, and what is made of its columns."""
        if table.n < self.parts.n:
            table = gaps.filled(table, self.fills)
            return table, materialize.Prepared(self.terms, table)
        if not self._kept:
            whole = gaps.filled(table, self.fills)
            self._kept = whole, materialize.Prepared(self.terms, whole, again=True)
        return self._kept
