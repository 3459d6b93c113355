"""Axes of the views: a number is one, and so are all levels of a factor.

Two levels are as far apart as two rows of a standardized number are in the mean of squares, so that
a factor weighs what a number does, however many levels it has.
"""

from dataclasses import dataclass

import numpy as np

from lodim.design.factors import Levels

RARE = 1e-6  # chance that two rows differ
APART = 2.0  # of the square root of the mismatch: between codes, so that no two are near


@dataclass(frozen=True, eq=False)
class Axes:
    """Which features of a design make an axis.

    of : (p,) int64, the axis of each feature, ascending; the levels of a factor have the same
    scaled : whether features have unit standard deviation
    """

    of: np.ndarray
    scaled: bool

    @classmethod
    def from_design(cls, design, scaled):
        """An axis for each feature, but one for all levels of a factor that stands alone."""
        same = np.diff(design.term_of, prepend=-1) == 0
        alone = np.array([_is_factor(term) for term in design.terms], bool)
        return cls(np.cumsum(~(same & alone[design.term_of])) - 1, scaled)

    def mismatch(self, A, weight):
        """Squared distance of two levels, (q,), from places A (n, q); zero for numbers.

        The mean squared difference of two rows of a number with unit standard deviation is 2.
        """
        out = np.zeros(A.shape[1])
        for axis in factors(self.of):
            known = ~np.isnan(A[:, axis])
            mass = np.bincount(A[known, axis].astype(int) + 1, weight[known])
            apart = 1.0 - ((mass / max(mass.sum(), 1e-300)) ** 2).sum()
            out[axis] = 2.0 / max(apart, RARE) if self.scaled else 1.0
        return out


def _is_factor(term):
    """Whether a term is a factor by itself, coded by its levels."""
    return len(term) == 1 and isinstance(term[0], Levels) and term[0].matrix is None


def factors(axis_of):
    """Axes of several features, increasing, by the axis of each feature (p,)."""
    return np.flatnonzero(np.bincount(axis_of) > 1)


def places(X, axis_of):
    """Places (n, q) on the axes of rows X (n, p): numbers, and codes of levels; NaN stays.

    A level has the number of its feature among those of the axis; what has no feature is -1.
    """
    out = X[:, np.flatnonzero(np.diff(axis_of, prepend=-1))]
    for axis in factors(axis_of):
        levels = X[:, axis_of == axis]
        code = np.where((levels > 0.0).any(axis=1), levels.argmax(axis=1), -1.0)
        out[:, axis] = np.where(np.isnan(levels).any(axis=1), np.nan, code)
    return out


def spread_codes(A, mismatch):
    """Places A (n, q) with codes of levels farther apart than a mismatch."""
    return A * np.where(mismatch > 0.0, APART * np.sqrt(mismatch), 1.0)
