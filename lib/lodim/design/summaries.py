"""Summaries of columns: levels, moments, missing values and outliers, merged over chunks."""

from dataclasses import dataclass, replace

import numpy as np

from lodim import forms
from lodim.design import columns
from lodim.design.column_kernels import (
    ALL_ROWS,
    NO_ROWS,
    as_real,
    kernel_weights,
    merge_moments,
    moments,
    read_only,
)
from lodim.engine.blocks import each
from lodim.errors import DataError
from lodim.formula.formula import quote

MOST_LEVELS = 1_000_000  # with more levels a formula would have too many features


@dataclass(frozen=True)
class ColumnRequest:
    """Columns to summarize, and those of them for which more statistics are needed.

    coded : columns whose distinct numbers are counted
    ranged : columns for which the rows of the smallest and largest number are found"""

    names: tuple[str, ...]
    coded: frozenset = frozenset()
    ranged: frozenset = frozenset()


@dataclass(frozen=True, eq=False)
class Summary:
    """Statistics of one column over the complete rows, from which terms of the formula learn."""

    column: columns.Column  # its name and kind, as a Column without values
    n: int
    n_missing: int = 0
    # n_known, n_gaps: number of rows of positive weight with a value, and without
    n_known: int = 0
    n_gaps: int = 0
    levels: tuple = ()  # levels of a category, or distinct numbers if requested; else empty
    # counts, mass: (n_levels,) number of rows, and total weight, of each level; None without levels
    counts: np.ndarray | None = None
    mass: np.ndarray | None = None
    # (5,) sum of weights, mean, sum of squared deviations, minimum, maximum; or None
    moments: np.ndarray | None = None
    # positions of the rows with the smallest and the largest number; -1 if unknown
    extremes: tuple[int, int] = (-1, -1)

    @property
    def used_levels(self):
        """Levels that occur in the rows, in order."""
        return tuple(level for level, n in zip(self.levels, self.counts, strict=True) if n)


def summarize(table, request):
    """Return a dict column -> Summary (counts, moments etc.) of the columns named in `request`."""

    def of_column(name):
        column, known, found = table.columns[name], None, {"n_known": table.n_positive}
        if columns.has_gaps(table, name):
            known = ~columns.is_missing(column, table.rows)
            n_known = int(table.weighted(known).sum())
            found = {"n_missing": int((~known).sum()), "n_known": n_known}
            found["n_gaps"] = table.n_positive - n_known
        if column.kind in ("number", "date"):
            found["moments"] = _moments(table, column, known)
        if column.kind == "number" and name in request.ranged:
            x = columns.as_float(columns.take(column.values, table.rows))
            counts = True if table.positive_weight is None else table.positive_weight
            ends = [(x == end) & counts for end in found["moments"][3:]]
            found["extremes"] = tuple(int(at.argmax()) if at.any() else -1 for at in ends)
        if column.kind == "level" or (column.kind == "number" and name in request.coded):
            found |= _count(table, columns.as_levels(column), known)
        return Summary(columns.kind_of(column), table.n, **found)

    found = each(of_column, request.names, table.n * len(request.names))
    return dict(zip(request.names, found, strict=True))


def _moments(table, column, known):
    """Return a column's total weight, mean, sum of squared deviations, minimum, maximum, (5,).

    known : (n,) bool, rows with a value, or None for all"""
    values, rows, weights = as_real(column.values), table.rows, table.weights
    if known is not None:
        if table.missing == "indicator" and table.positive_weight is not None:
            known = known & table.positive_weight
        if not known.any():
            return np.array(NO_ROWS)
        rows = read_only(rows[known] if rows.size else np.flatnonzero(known))
        weights = None if weights is None else weights[known]
    return np.array(moments(values, rows, kernel_weights(weights, table.weight_unit)))


def _count(table, column, known):
    """Count the rows of each level of a column; return a dict of levels, counts and total weights.

    known : (n,) bool, rows to count, or None for all; declared levels without rows stay"""
    codes, weights = columns.take(column.codes, table.rows), table.weights
    if known is not None:
        codes, weights = codes[known], None if weights is None else weights[known]
    size = len(column.levels)
    counts = np.bincount(codes, minlength=size)
    mass = counts.astype(float) if weights is None else np.bincount(codes, weights, size)
    if column.declared:
        return {"levels": column.levels, "counts": counts, "mass": mass}
    used = np.flatnonzero(counts)
    levels = tuple(column.levels[i] for i in used)
    return {"levels": levels, "counts": counts[used], "mass": mass[used]}


def summarize_values(table, name, values, n):
    """Return a Summary of an expression's values, with each distinct number as a level.

    table : Table of the rows with a value
    values : (n_rows,) value of each of these rows
    n : number of all rows"""
    column = columns.Column(name, "number", values)
    counted = _count(replace(table, rows=ALL_ROWS), columns.as_levels(column), None)
    return Summary(columns.kind_of(column), n, n - table.n, table.n_positive, **counted)


def merge(chunks):
    """Merge dicts of column Summaries, one dict per consecutive chunk of rows, into one dict."""
    if len(chunks) == 1:
        return chunks[0]
    found = {name: [chunk[name] for chunk in chunks] for name in chunks[0]}
    summed = [k for k, own in found.items() if any(part.moments is not None for part in own)]
    known = [[NO_ROWS if c[k].moments is None else c[k].moments for k in summed] for c in chunks]
    moments = dict(zip(summed, merge_moments(known), strict=True)) if summed else {}
    return {name: _merge(parts, moments.get(name)) for name, parts in found.items()}


def _merge(parts, moments):
    """Merge the Summaries `parts` of a column, one per chunk in order; return that of all rows.

    moments : (5,) weight sum, mean, squared deviations, minimum, maximum; None if there are none"""
    column = columns.join_kinds([part.column for part in parts])
    keys = ("n", "n_missing", "n_known", "n_gaps")
    summary = Summary(column, **{key: sum(getattr(part, key) for part in parts) for key in keys})
    if moments is not None:
        ends, first = [-1, -1], 0  # positions of the rows with the minimum and the maximum
        for part in parts:
            for side, at in enumerate(part.extremes):
                if ends[side] < 0 <= at and part.moments[3 + side] == moments[3 + side]:
                    ends[side] = first + at
            first += part.n
        summary = replace(summary, moments=moments, extremes=tuple(ends))
    counted = [part for part in parts if part.counts is not None]
    if not counted:
        return summary
    floats = column.kind == "number" and not column.whole
    levels = {level for part in counted for level in part.levels}
    levels = column.levels if column.declared else sorted(map(float, levels) if floats else levels)
    check_count(column, len(levels))
    place = {level: i for i, level in enumerate(levels)}
    counts, mass = np.zeros(len(levels), np.int64), np.zeros(len(levels))
    for part in counted:
        at = [place[level] for level in part.levels]
        counts[at] += part.counts
        mass[at] += part.mass
    return replace(summary, levels=tuple(levels), counts=counts, mass=mass)


def check_count(column, n_levels):
    if n_levels > MOST_LEVELS:
        what = f"column {column.name!r} has over {MOST_LEVELS:,} levels"
        cure = f"leave it out with '- {quote(column.name)}'"
        raise DataError(f"{what}, so it seems to be row names; {cure}")


# In 762 columns of 38 data sets no gap reaches 10 ranges; one gap, of identifiers, reaches 5.
LARGEST = np.finfo(float).max
GAP = 10.0  # smallest gap to the other values, in multiples of their range
FEW_ROWS, SHARE, MOST_ROWS = 3, 0.01, 1000  # rows that may be wild: 1%, at least 3
SMALL = 0.1  # largest share of rows that may have wild values
DEPTH = 10  # depth of the examined tails, in multiples of `most_wild`


@forms.record
class Limits:
    """Range of a feature's training values without extreme outliers ("wild" values)."""

    feature: str = forms.text()
    least: float = forms.real(least=-LARGEST, most=LARGEST)
    greatest: float = forms.real(least=-LARGEST, most=LARGEST)
    # value that replaces wild values: mean of a low and a high quantile of all values
    middle: float = forms.real(least=-LARGEST, most=LARGEST)
    # n, farthest: number of training rows with wild values, and the most distant one
    n: int = forms.whole(least=1)
    farthest: float = forms.real(least=-LARGEST, most=LARGEST)

    def _check_fields(self):
        if not self.least <= self.middle <= self.greatest or not self.beyond(self.farthest):
            raise ValueError(f"limits of {self.feature} do not leave out its farthest value")

    def beyond(self, x):
        """Return which of the numbers x (n,) are extreme outliers, outside of the bounds `ends`."""
        low, high = self.ends
        return (x < low) | (x > high)

    @property
    def ends(self):
        """Lower and upper bound; a number outside is an extreme outlier."""
        with np.errstate(over="ignore"):
            gap = GAP * (np.float64(self.greatest) - self.least)
            ends = max(self.least - gap, -LARGEST), min(self.greatest + gap, LARGEST)
        return tuple(map(float, ends))


def most_wild(n):
    """Return how many of n rows, at most, may be extreme outliers of a feature."""
    return min(max(FEW_ROWS, int(SHARE * n)), MOST_ROWS, int(SMALL * n))


def tail_size(n):
    """Return how many of the smallest (or largest) of n numbers are examined for outliers."""
    return DEPTH * most_wild(n) + 1


def may_be_wild(moments, n):
    """Return which features, (p,) bool, may have extreme outliers, given their moments (p, 5)."""
    total, mean, spread, least, greatest = moments.T
    share = most_wild(n) / max(n, 1)
    deviations = (1.0 - share - 1.0 / GAP) / np.sqrt(share + 1.0 / GAP**2)
    with np.errstate(all="ignore"):
        distance = np.maximum(greatest - mean, mean - least)
        near = distance <= 0.999 * deviations * np.sqrt(spread / total)
    return ~near & (share > 0.0)  # also if squares overflow


@dataclass(frozen=True, eq=False)
class Tails:
    """The smallest and the largest of the n values of a feature, sorted, to find outliers."""

    n: int
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of_values(cls, x, size):
        if len(x) > 2 * size:
            parted = np.partition(x, (size - 1, len(x) - size))
            return cls(len(x), np.sort(parted[:size]), np.sort(parted[-size:]))
        x = np.sort(x)
        return cls(len(x), x[:size], x[-size:])

    @classmethod
    def merged(cls, parts, size):
        """Join `parts`, Tails of chunks; keep the `size` smallest and `size` largest values."""
        low = np.sort(np.concatenate([part.low for part in parts]))[:size]
        high = np.sort(np.concatenate([part.high for part in parts]))[-size:]
        return cls(sum(part.n for part in parts), low, high)

    def limits(self, feature):
        """Return Limits, a feature's range without extreme outliers; None if it has no outliers."""
        few = most_wild(self.n)
        deep = min(DEPTH * few, (self.n - 1) // 2)
        if few and self.low[deep] == self.high[-1 - deep]:
            others = (self.low[:deep] != self.low[deep]).sum()
            few = min(few, most_wild(int(others + (self.high[-deep:] != self.low[deep]).sum())))
        if not few:
            return None
        low, high = self.low[: few + 1][::-1], self.high[-1 - few :]  # from the inside outwards
        i = j = 0
        while True:
            within = GAP * (high[j] - low[i])
            if i < few and low[i] - low[i + 1] <= within:
                i += 1
            elif j < few and high[j + 1] - high[j] <= within:
                j += 1
            else:
                break
        below, above = few - i, few - j
        if not 0 < below + above <= few:
            return None
        farthest = low[-1] if low[i] - low[-1] > high[-1] - high[j] else high[-1]
        middle = 0.5 * self.low[deep] + 0.5 * self.high[-1 - deep]
        parts = low[i], high[j], middle, below + above, farthest
        return Limits(feature, *(part.item() for part in map(np.asarray, parts)))


def find_limits(x, name):
    """Return the Limits of x (n,): its range without extreme outliers; None if x has none."""
    return Tails.of_values(x, tail_size(len(x))).limits(name)


def limits_by_position(limits, names):
    """Convert a list of Limits to a dict: position in `names` -> (lower, upper, middle)."""
    place = {name: k for k, name in enumerate(names)} if limits else {}
    return {place[one.feature]: (*one.ends, one.middle) for one in limits}


def apply_limits(x, rows, limits):
    """Replace the outliers of a feature; return new values and row positions.

    rows : position in x per row, empty for 0, 1, 2 etc.
    limits : (lower, upper, replacement of outliers), None for no change"""
    if limits is None:
        return x, rows
    lower, upper, middle = limits
    x = columns.as_float(columns.take(x, rows))
    return read_only(np.where((x < lower) | (x > upper), middle, x)), read_only(ALL_ROWS)
