"""Wild values: numbers of a few rows far outside of all others, which count as their middle.

Sums over rows are set by a single row that is far enough away: a column with one cell of 1e12 has a
standard deviation that makes all other rows equal. Heavy tails are no reason to change data, so
a value is wild only if a gap separates it from the others that is many times their whole range.
Then it says nothing of its row, as a missing value does; at the others' end it would still say too
much, since few rows there set the slopes.
"""

from dataclasses import dataclass

import numpy as np

from lodim import forms
from lodim.design.column_kernels import ALL, read_only
from lodim.design.columns import as_float, take

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


def most(n):
    """Number of rows, of n, that may be wild."""
    return min(max(FEW_ROWS, int(SHARE * n)), MOST_ROWS, int(SMALL * n))


def tail_size(n):
    """Number of the least, and of the greatest, of n numbers that tell which are wild."""
    return DEPTH * most(n) + 1


def suspects(moments, n):
    """Which features may have wild values by their moments, (p,) bool: few have, of most data.

    If wild values lie beyond GAP ranges of the others, and are few, then the farthest value is this
    many standard deviations from the mean at least.
    """
    total, mean, spread, least, greatest = moments.T
    share = most(n) / max(n, 1)
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
        few = most(self.n)
        deep = min(DEPTH * few, (self.n - 1) // 2)
        if few and self.low[deep] == self.high[-1 - deep]:
            others = (self.low[:deep] != self.low[deep]).sum()
            few = min(few, most(int(others + (self.high[-deep:] != self.low[deep]).sum())))
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


def of_numbers(x, name):
    """The Limits of numbers (n,) under a name; None without wild values."""
    return Tails.of_values(x, tail_size(len(x))).limits(name)


def by_position(limits, names):
    """(lower end, upper end, middle) by the position of the feature among `names`, a dict."""
    place = {name: k for k, name in enumerate(names)} if limits else {}
    return {place[one.feature]: (*one.ends, one.middle) for one in limits}


def within(x, rows, limits):
    """Numbers (n,) and the rows of them that are used, the middle for wild ones."""
    if limits is None:
        return x, rows
    lower, upper, middle = limits
    x = as_float(take(x, rows))
    return read_only(np.where((x < lower) | (x > upper), middle, x)), read_only(ALL)
