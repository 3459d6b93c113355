"""The features of some terms in all rows: their moments, and their tiles, part by part."""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from lodim.design import factors, materialize, summaries
from lodim.design.chunks import TableParts, tiles_of
from lodim.design.column_kernels import merge_moments
from lodim.design.in_place import columns_in_place, tiles_in_place
from lodim.design.rows import filled
from lodim.design.terms import widths


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
        return self._learn_moments(found, known, {})

    def limits(self, names, moments):
        """Limits of the features that have wild values, given the moments (p, 5) of all: a tuple.

        Of numbers, as they are or computed: what levels and splines make has a range.
        """
        positive = self.parts.positive_weight
        n = self.parts.n if positive is None else int(positive.sum())
        numbers = np.array([is_number(term) for term in self.terms], bool)[self._term_of]
        at = np.flatnonzero(numbers & summaries.may_be_wild(moments, n))
        if not at.size:
            return ()
        size = summaries.tail_size(n)
        work = partial(materialize.learn_tails, at=frozenset(at.tolist()), size=size)
        found = self._map(work, self._with(at))
        tails = [summaries.Tails.merged([part[k] for part in found], size) for k in at.tolist()]
        limits = [tail.limits(names[k]) for k, tail in zip(at.tolist(), tails, strict=True)]
        return tuple(one for one in limits if one is not None)

    def moments_within(self, limits, moments):
        """Moments (p, 5) of the features within limits, a dict by position, given those without."""
        known = np.ones(len(moments), bool)
        known[np.isin(self._term_of, self._term_of[list(limits)])] = False
        return self._learn_moments(moments, known, limits)

    def _learn_moments(self, found, known, limits):
        """Moments (p, 5), of which those of the features that are `known` (p,) are found."""
        if known.all():
            return found
        work = partial(materialize.learn_moments, known=known, limits=limits)
        parts = self._map(work, self._with(np.flatnonzero(~known)))
        return np.where(known[:, None], found, merge_moments(parts))

    def _map(self, work, terms):
        """A list of work(terms, table, prepared) of the parts; columns of some terms are read."""
        names = _needed(terms)
        if self.parts.in_one:
            return self.parts.map(lambda _, table: work(self.terms, *self._prepared(table)), names)
        here = partial(of_part, terms=self.terms, fills=self.fills, missing=self.missing)
        return self.parts.map(partial(here, work=work), names)

    def _prepared(self, table):
        """The table of all rows and what its columns are cut from, which are kept."""
        if self._kept is None:
            whole = filled(replace(table, missing=self.missing), self.fills)
            self._kept = whole, materialize.Prepared(self.terms, whole, again=True)
        return self._kept

    @property
    def _term_of(self):
        return np.repeat(np.arange(len(self.terms)), np.array(widths(self.terms), int))

    def _with(self, at):
        """The terms that have features at some positions."""
        return [self.terms[t] for t in np.unique(self._term_of[at])]

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

    def write(self, X, mean, scale, flat, limits):
        """Write the tiles X of all rows; limits are (lower, upper, middle) by position, a dict."""
        if self._kept is not None:
            materialize.write(
                self.terms, self._kept[0], X, mean, scale, flat, limits, self._kept[1]
            )
            return
        work = partial(_write, terms=self.terms, fills=self.fills, X=X, limits=limits)
        self.parts.map(partial(work, mean=mean, scale=scale, flat=flat), _needed(self.terms))


def columns_within(facts, parts):
    """Facts of columns, a list: of numbers with wild values the moments are those within limits."""
    numbers = [name for name, known in facts.items() if known.moments is not None]
    columns = Features(tuple((factors.Numeric(name),) for name in numbers), (), parts, "keep")
    moments = np.array([facts[name].moments for name in numbers]).reshape(-1, 5)
    limits = summaries.limits_by_position(columns.limits(numbers, moments), numbers)
    within = columns.moments_within(limits, moments) if limits else moments
    known = facts | {numbers[k]: replace(facts[numbers[k]], moments=within[k]) for k in limits}
    return list(known.values())


def is_known(term, facts, missing):
    """Whether a term is a number that nothing stands for where it is missing."""
    if len(term) > 1 or not isinstance(term[0], factors.Numeric):
        return False
    known = facts[term[0].name]
    return known.moments is not None and not (known.n_missing and missing == "indicator")


def is_number(term):
    """Whether a term is a product of which some factor is a number: a column, or one computed."""
    single = [part for part in term if not isinstance(part, factors.Levels | factors.Missing)]
    return bool(single) and all(factors.width(part) == 1 for part in single)


def _needed(terms):
    """Names of the columns that terms read, each once."""
    return list(dict.fromkeys(n for term in terms for part in term for n in factors.needs(part)))


def of_part(_, table, terms, fills, missing, work):
    """What `work` makes of some terms in a part, which may be on a worker."""
    return work(terms, filled(replace(table, missing=missing), fills))


def _write(span, table, terms, fills, X, mean, scale, flat, limits):
    table = filled(table, fills)
    materialize.write(terms, table, tiles_of(X, span), mean, scale, flat, limits)
