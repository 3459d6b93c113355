"""Random choice of candidates (possible prototypes) and of scoring rows (whose loss counts)."""

from dataclasses import dataclass

import numpy as np

from lodim.engine.row_keys import shuffled
from lodim.errors import DataError
from lodim.text import counted


@dataclass(frozen=True)
class Split:
    """Candidates (rows that may become prototypes) and scoring rows (whose loss counts)."""

    candidates: np.ndarray  # (J,), increasing positions
    scoring: np.ndarray  # (r,), increasing positions; a row may be in both
    scoring_weight: np.ndarray  # (r,), scaled to represent all rows

    @property
    def own(self):
        """Position in `candidates` of each scoring row, (r,); -1 if it is not one of them."""
        own, each = np.full(len(self.scoring), -1), {"assume_unique": True, "return_indices": True}
        _, row, candidate = np.intersect1d(self.scoring, self.candidates, **each)
        own[row] = candidate
        return own


def allocate(sizes, n_candidates, max_fraction):
    """Return how many of n_candidates to draw from each group of rows, as equally as possible.

    sizes : number of rows of each group
    max_fraction : largest share of a group to draw (then never all rows); None for no limit"""
    most = sizes
    if max_fraction is not None:
        most = np.minimum(np.rint(max_fraction * sizes), np.maximum(sizes - 1, 0)).astype(int)
    drawn, left = np.zeros(len(sizes), int), int(n_candidates)
    for i, g in enumerate(np.argsort(sizes, kind="stable")):
        drawn[g] = min(left // (len(sizes) - i), most[g])
        left -= drawn[g]
    return drawn


def draw_split(groups, weight, content, settings, seed):
    """Draw candidates (possible prototypes) and scoring rows (whose loss counts); return a Split.

    Both are drawn from each group. groups : (n,) group of each row; weight : (n,) row weights
    content : (n,) numbers computed from row values, so that the order of rows does not matter"""
    within = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    # Groups of equal size are ordered by content, not by class names.
    within.sort(key=lambda rows: content[rows].sum())
    sizes = np.array([len(rows) for rows in within])
    if settings.max_rows is not None and len(groups) > settings.max_rows:
        share = np.rint(settings.max_rows / len(groups) * sizes).astype(int)
        enough = max(2, int(0.5 / (settings.max_fraction or 0.5)) + 1)  # at least one candidate
        sizes = np.minimum(sizes, np.maximum(enough, share))
    counts = allocate(sizes, settings.n_candidates, settings.max_fraction)
    parts = []
    for rows, count, size in zip(within, counts, sizes, strict=True):
        order = rows[shuffled(content[rows], seed)[:size]]
        scoring = order if settings.max_fraction is None else order[count:]
        own, whole = weight[scoring], weight[rows].sum()
        own = own * (whole / own.sum()) if own.any() else own
        parts.append((order[:count], scoring, own))
    drawn, scoring, scoring_weight = (np.concatenate(z) for z in zip(*parts, strict=True))
    order = np.argsort(scoring)
    return Split(np.sort(drawn), scoring[order], scoring_weight[order])


def check_rows(problem):
    """Return the problem; raise if a class has too few rows, or the loss is unsuitable."""
    response, y = problem.design.response, problem.batch.y[problem.batch.positive_weight]
    if problem.settings.loss == "density":
        values, times = np.unique(y, return_counts=True)
        shared = int(times[times > 1].sum())
        if 2 * shared > len(y) and np.array_equal(values, np.rint(values)):
            raise DataError(
                f"{response.name!r} has repeated whole numbers in {shared} of {len(y)} rows: "
                "loss='density' is for continuous responses (repeated values have an unbounded "
                "likelihood); use loss='squared', or convert the values to classes"
            )
    eta, levels, sizes = problem.settings.max_fraction or 0.5, response.levels, [len(y)]
    half = max(np.ceil(0.5 / eta), np.floor(0.5 / (1.0 - eta)) + 1.0)
    least = 2.0 * half - 1.0
    if levels:
        sizes = np.bincount(y.astype(int), minlength=len(levels))
    for k, n in enumerate(sizes):
        if n < least:
            who = f"class {levels[k]!r} has" if levels else "there are"
            raise DataError(
                f"{who} {counted(n, 'row')} with a positive weight, but proset needs at least "
                f"{least:.0f}, as candidates and to fit the weights"
                + (f" (max_fraction={eta})" if problem.settings.max_fraction else "")
            )
    return problem
