"""What is known of columns from their rows: levels and how often they occur, moments, gaps, tails.

Summaries of parts of the rows are merged in order; factors are learnt from what they say together.

Wild values are numbers of a few rows far outside of all others, which count as their middle. Sums
over rows are set by a single row that is far enough away: a column with one cell of 1e12 has a
standard deviation that makes all other rows equal. Heavy tails are no reason to change data, so
a value is wild only if a gap separates it from the others that is many times their whole range.
Then it says nothing of its row, as a missing value does; at the others' end it would still say too
much, since few rows there set the slopes.
"""

from dataclasses import dataclass, replace

import numpy as np

from lodim import forms
from lodim.design.column_kernels import (
    ALL,
    NO_ROWS,
    as_real,
    column_moments,
    kernel_weights,
    merge_moments,
    read_only,
)
from lodim.design.columns import (
    Column,
    as_float,
    as_levels,
    has_gaps,
    is_missing,
    join_kinds,
    kind_of,
    take,
)
from lodim.engine.blocks import each
from lodim.errors import DataError
from lodim.formula.formula import quote

MOST_LEVELS = 1_000_000  # more make more features than a formula may


@dataclass(frozen=True)
class ColumnRequest:
    """What is to be found out of columns.

    names : of the columns; coded : those whose numbers are taken as levels; summed : those whose
    numbers need moments; ranged : those whose least and greatest number must be found again
    """

    names: tuple[str, ...]
    coded: frozenset = frozenset()
    summed: frozenset = frozenset()
    ranged: frozenset = frozenset()


@dataclass(frozen=True, eq=False)
class Summary:
    """What the complete rows of some data say of a column.

    column : a Column without rows
    n : number of rows; n_missing : of those where it is missing
    n_known, n_gaps : rows of positive weight where it is known, and where it is missing
    levels : those of a category, or those that occur
    counts, mass : (n_levels,) rows and weight of each level
    moments : (5,) of `column_kernels.moments`; None where they were not requested
    extremes : positions among the rows of the least and the greatest number; -1 without
    """

    column: Column
    n: int
    n_missing: int = 0
    n_known: int = 0
    n_gaps: int = 0
    levels: tuple = ()
    counts: np.ndarray | None = None
    mass: np.ndarray | None = None
    moments: np.ndarray | None = None
    extremes: tuple[int, int] = (-1, -1)

    @property
    def used_levels(self):
        """The levels that occur, in order."""
        return tuple(level for level, n in zip(self.levels, self.counts, strict=True) if n)

    def mass_of(self, levels):
        """Weights of some levels, (n_levels,) float64, zero where one does not occur."""
        known = dict(zip(self.levels, self.mass.tolist(), strict=True))
        return np.array([known.get(level, 0.0) for level in levels])


def summarize(table, request):
    """Summaries of columns of a table, a list in the order of their names."""
    names = list(request.names)
    return each(lambda name: _summarize(table, name, request), names, table.n * len(names))


def _summarize(table, name, request):
    column, positive = table.columns[name], table.positive_weight
    n_positive, known, found = table.n if positive is None else int(positive.sum()), None, {}
    found["n_known"] = n_positive
    if has_gaps(table, name):
        known = ~is_missing(column, table.rows)
        n_known = int((known if positive is None else known & positive).sum())
        found |= {"n_missing": int((~known).sum()), "n_known": n_known}
        found["n_gaps"] = n_positive - n_known
    summed = name in request.summed or name in request.ranged
    if column.kind in ("number", "date") and summed:
        found["moments"] = _moments(table, column, known)
    if column.kind == "number" and name in request.ranged:
        found["extremes"] = _extremes(table, column, found["moments"])
    if column.kind == "level" or (column.kind == "number" and name in request.coded):
        found |= _count(table, as_levels(column), known)
    return Summary(kind_of(column), table.n, **found)


def _moments(table, column, known):
    """Moments of the numbers that are known; where gaps are to be filled, of those that count."""
    values, rows, weights = as_real(column.values), table.rows, table.weights
    if known is not None:
        if table.missing == "indicator" and table.positive_weight is not None:
            known = known & table.positive_weight
        if not known.any():
            return np.array(NO_ROWS)
        rows = read_only(rows[known] if rows.size else np.flatnonzero(known))
        weights = None if weights is None else weights[known]
    return np.array(column_moments(values, rows, kernel_weights(weights, table.weight_unit)))


def _extremes(table, column, found):
    """Positions of the first rows of positive weight with the least and the greatest number."""
    x, positive = as_float(take(column.values, table.rows)), table.positive_weight
    places = []
    for size in found[3:]:
        at = np.flatnonzero(x == size if positive is None else (x == size) & positive)
        places.append(int(at[0]) if at.size else -1)
    return tuple(places)


def _count(table, column, known):
    """Rows and weights of levels; without those of rows that are not used, unless declared."""
    codes, weights = take(column.codes, table.rows), table.weights
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
    """Summaries of numbers that have been computed of the known rows among n, taken as levels."""
    column, positive = Column(name, "number", values), table.positive_weight
    n_known = table.n if positive is None else int(positive.sum())
    counted = _count(replace(table, rows=ALL), as_levels(column), None)
    return Summary(kind_of(column), n, n - table.n, n_known, **counted)


def merge(parts_found):
    """Summaries of columns over all rows, a list, from the lists of the parts in order.

    Raises
    ------
    DataError
        The parts of a column do not go together, or there are too many levels.
    """
    if len(parts_found) == 1:
        return list(parts_found[0])
    columns = list(zip(*parts_found, strict=True))
    summed = [k for k, parts in enumerate(columns) if any(p.moments is not None for p in parts)]
    found = {}
    if summed:
        of_parts = zip(*(columns[k] for k in summed), strict=True)
        stacks = [[NO_ROWS if p.moments is None else p.moments for p in part] for part in of_parts]
        found = dict(zip(summed, merge_moments(stacks), strict=True))
    return [_merge(parts, found.get(k)) for k, parts in enumerate(columns)]


def _merge(parts, moments):
    column = join_kinds([part.column for part in parts])
    keys = ("n", "n_missing", "n_known", "n_gaps")
    summary = Summary(column, **{key: sum(getattr(part, key) for part in parts) for key in keys})
    if moments is not None:
        summary = replace(summary, moments=moments, extremes=_merge_extremes(parts, moments))
    return replace(summary, **_merge_levels(column, parts))


def _merge_extremes(parts, found):
    """Positions among all rows of the first that have the least and the greatest number."""
    firsts = np.cumsum([0, *(part.n for part in parts)])
    return tuple(
        next(
            (
                int(first) + part.extremes[side]
                for first, part in zip(firsts, parts, strict=False)
                if part.extremes[side] >= 0 and part.moments[3 + side] == found[3 + side]
            ),
            -1,
        )
        for side in range(2)
    )


def _merge_levels(column, parts):
    counted = [part for part in parts if part.counts is not None]
    if not counted:
        return {}
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
    return {"levels": tuple(levels), "counts": counts, "mass": mass}


def check_count(column, n_levels):
    """Raise where a column has more levels than features can be made of."""
    if n_levels > MOST_LEVELS:
        raise DataError(
            f"column {column.name!r} has over {MOST_LEVELS:,} levels, as a name of the rows would; "
            f"leave it out with '- {quote(column.name)}'"
        )


# Of 762 columns of 38 data sets none has a gap of 10 ranges, and one, of identifiers, one of 5.
LARGEST = np.finfo(float).max
GAP = 10.0  # ranges of the other values
FEW_ROWS, SHARE, MOST_ROWS = 3, 0.01, 1000  # that may be wild: 1%, but 3 where that is less
SMALL = 0.1  # of the rows: so many that are wild would not be few
DEPTH = 10  # times the rows that may be wild: so many may differ from the most frequent value


@forms.record
class Limits:
    """A feature that has wild values in the training rows, and the range of its other values.

    feature : its name
    least, greatest : of the values that are not wild
    middle : halfway between a low and a high quantile of all; it stands for wild values
    n : number of the training rows with wild values
    farthest : the value of these that is farthest away
    """

    feature: str = forms.text()
    least: float = forms.real(least=-LARGEST, most=LARGEST)
    greatest: float = forms.real(least=-LARGEST, most=LARGEST)
    middle: float = forms.real(least=-LARGEST, most=LARGEST)
    n: int = forms.whole(least=1)
    farthest: float = forms.real(least=-LARGEST, most=LARGEST)

    def _check_fields(self):
        """Raise a ValueError unless the limits leave out the farthest value."""
        if not self.least <= self.middle <= self.greatest or not self.beyond(self.farthest):
            raise ValueError(f"limits of {self.feature} do not leave out its farthest value")

    def beyond(self, x):
        """Which numbers (n,) are wild."""
        low, high = self.ends
        return (x < low) | (x > high)

    @property
    def ends(self):
        """The least and the greatest number that is not wild."""
        with np.errstate(over="ignore"):
            gap = GAP * (np.float64(self.greatest) - self.least)
            ends = max(self.least - gap, -LARGEST), min(self.greatest + gap, LARGEST)
        return tuple(map(float, ends))


def most_wild(n):
    """Number of rows, of n, that may be wild."""
    return min(max(FEW_ROWS, int(SHARE * n)), MOST_ROWS, int(SMALL * n))


def tail_size(n):
    """Number of the least, and of the greatest, of n numbers that tell which are wild."""
    return DEPTH * most_wild(n) + 1


def may_be_wild(moments, n):
    """Which features may have wild values by their moments, (p,) bool: few have, of most data.

    If wild values lie beyond GAP ranges of the others, and are few, then the farthest value is this
    many standard deviations from the mean at least.
    """
    total, mean, spread, least, greatest = moments.T
    share = most_wild(n) / max(n, 1)
    deviations = (1.0 - share - 1.0 / GAP) / np.sqrt(share + 1.0 / GAP**2)
    with np.errstate(all="ignore"):
        distance = np.maximum(greatest - mean, mean - least)
        near = distance <= 0.999 * deviations * np.sqrt(spread / total)
    return ~near & (share > 0.0)  # also where squares are beyond all numbers


@dataclass(frozen=True, eq=False)
class Tails:
    """The n numbers of a feature, of which the least and the greatest are known, in order."""

    n: int
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of_values(cls, x, size):
        """Of numbers (n,), the `size` least and greatest."""
        if len(x) > 2 * size:
            parted = np.partition(x, (size - 1, len(x) - size))
            return cls(len(x), np.sort(parted[:size]), np.sort(parted[-size:]))
        x = np.sort(x)
        return cls(len(x), x[:size], x[-size:])

    @classmethod
    def merged(cls, parts, size):
        """Of all rows, from those of parts of them."""
        low = np.sort(np.concatenate([part.low for part in parts]))[:size]
        high = np.sort(np.concatenate([part.high for part in parts]))[-size:]
        return cls(sum(part.n for part in parts), low, high)

    def limits(self, feature):
        """The Limits of the feature; None without wild values.

        All but the outermost values are taken as they are, and then each next one that lies within
        GAP times the range so far: what is left is wild. Where most rows have one value, such as
        zero, those of other values are counted alone: of three that differ none is wild.
        """
        few = most_wild(self.n)
        deep = min(DEPTH * few, (self.n - 1) // 2)
        if few and self.low[deep] == self.high[-1 - deep]:
            others = (self.low[:deep] != self.low[deep]).sum()
            few = min(few, most_wild(int(others + (self.high[-deep:] != self.low[deep]).sum())))
        if not few:
            return None
        low, high = self.low[: few + 1][::-1], self.high[-1 - few :]  # outwards
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
    """The Limits of numbers (n,) under a name; None without wild values."""
    return Tails.of_values(x, tail_size(len(x))).limits(name)


def limits_by_position(limits, names):
    """(lower end, upper end, middle) by the position of the feature among `names`, a dict."""
    place = {name: k for k, name in enumerate(names)} if limits else {}
    return {place[one.feature]: (*one.ends, one.middle) for one in limits}


def apply_limits(x, rows, limits):
    """Numbers (n,) and the rows of them that are used, the middle for wild ones."""
    if limits is None:
        return x, rows
    lower, upper, middle = limits
    x = as_float(take(x, rows))
    return read_only(np.where((x < lower) | (x > upper), middle, x)), read_only(ALL)
