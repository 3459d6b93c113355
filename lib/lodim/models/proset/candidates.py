"""The draw of candidates and of the rows that score them: Algorithm 2.1 of Ruf (2022)."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.engine.row_keys import shuffled
from lodim.errors import ArgumentError, DataError

TIE = 1e-6  # of the largest goodness: rows that are no further below the quantile are not hard


@dataclass(frozen=True)
class Split:
    """Candidates and scoring rows of a batch.

    candidates, scoring : (J,), (r,) positions, increasing; a row may be both
    scoring_weight : (r,) weights with which the scoring rows stand for all rows
    """

    candidates: np.ndarray
    scoring: np.ndarray
    scoring_weight: np.ndarray

    def in_all_rows(self, at):
        """Return the split of rows at these positions (n,), as positions among all rows."""
        return replace(self, candidates=at[self.candidates], scoring=at[self.scoring])

    @property
    def own(self):
        """Position of each scoring row among the candidates, -1 if it is not one, (r,)."""
        own, each = np.full(len(self.scoring), -1), {"assume_unique": True, "return_indices": True}
        _, row, candidate = np.intersect1d(self.scoring, self.candidates, **each)
        own[row] = candidate
        return own


def easy_and_hard(label, goodness, hard_share):
    """Groups 0..2K-1 that candidates are drawn from, (n,): easy and hard rows of each label.

    label (n,) int, the class (zero for numbers). Hard are the rows whose goodness, how well the
    model so far explains them, is below the quantile `hard_share` within their label. (The report's
    bins of right and wrong rows say nothing of probabilities and leave half of the bins empty at
    first; the author has since taken this quantile too.)
    """
    groups = 2 * label
    for k in np.unique(label):
        of = label == k
        least = np.quantile(goodness[of], hard_share)
        groups[of] += goodness[of] < least - TIE * np.abs(goodness[of]).max()
    return groups


def allocate(sizes, n_candidates, max_fraction):
    """Number of candidates to draw from each group, as even as possible, (G,): Algorithm 2.1.

    At most `max_fraction` of a group, and never all of it: the rest stays to score. None: a group
    may be drawn whole. Whole numbers from the start: shares of less than one half would all round
    to nothing.
    """
    most = sizes
    if max_fraction is not None:
        most = np.minimum(np.rint(max_fraction * sizes), np.maximum(sizes - 1, 0)).astype(int)
    drawn, left = np.zeros(len(sizes), int), int(n_candidates)
    for i, g in enumerate(np.argsort(sizes, kind="stable")):
        drawn[g] = min(left // (len(sizes) - i), most[g])
        left -= drawn[g]
    return drawn


def draw_split(groups, weight, content, settings, seed):
    """Return the Split of the rows, drawn at random within groups; weight (n,) sums to one.

    The rows drawn depend on their `content` (see `row_keys`) and the seed. Without a
    max_fraction all rows score, the candidates too; with one those that are no candidates, which
    have the weight of their whole group, N_k / (N_k - J_k) in Eq. 2.8.
    """
    within = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    # Groups of equal size are ordered by content, not by the names of their classes.
    within.sort(key=lambda rows: content[rows].sum())
    sizes = np.array([len(rows) for rows in within])
    if settings.max_rows is not None and len(groups) > settings.max_rows:
        share = np.rint(settings.max_rows / len(groups) * sizes).astype(int)
        enough = max(2, int(0.5 / (settings.max_fraction or 0.5)) + 1)  # one is a candidate
        sizes = np.minimum(sizes, np.maximum(enough, share))
    counts = allocate(sizes, settings.n_candidates, settings.max_fraction)
    parts = []
    for rows, count, size in zip(within, counts, sizes, strict=True):
        order = rows[shuffled(content[rows], seed)[:size]]
        scoring = order if settings.max_fraction is None else order[count:]
        parts.append((order[:count], scoring, _scaled_to(weight[scoring], weight[rows].sum())))
    drawn, scoring, scoring_weight = (np.concatenate(z) for z in zip(*parts, strict=True))
    order = np.argsort(scoring)
    return Split(np.sort(drawn), scoring[order], scoring_weight[order])


def _scaled_to(weight, whole):
    """Return weights of some rows of a group, scaled to add up to the weight of the whole group."""
    return weight * (whole / weight.sum()) if weight.any() else weight


def check_rows(problem):
    """The problem, if every class has rows to be candidates and rows to score: condition 2.14.

    ceil(N / 2) >= 1 / (2 eta) and ceil(N / 2) > 1 / (2 (1 - eta)), eta the max_fraction, one half
    without one. In the folds of a cross-validation a class with fewer has scoring rows alone. A
    loss that classes do not have is refused too.
    """
    levels = problem.design.response.levels
    _check_loss(problem, levels)
    eta, batch = problem.settings.max_fraction or 0.5, problem.batch
    half = max(np.ceil(0.5 / eta), np.floor(0.5 / (1.0 - eta)) + 1.0)
    least = 2.0 * half - 1.0
    counted = batch.positive_weight
    sizes = np.array([len(counted)])
    if levels:
        sizes = np.bincount(batch.y[counted].astype(int), minlength=len(levels))
    for k, n in enumerate(sizes):
        if n < least:
            who = f"class {levels[k]!r} has" if levels else "there are"
            raise DataError(
                f"{who} {n} rows that count, and proset needs {least:.0f}: some to be prototypes "
                f"and some to score them{_share(problem.settings.max_fraction)}"
            )
    return problem


def _share(max_fraction):
    return "" if max_fraction is None else f" (max_fraction={max_fraction})"


def _check_loss(problem, levels):
    """Raise an ArgumentError where the loss, or the penalty of its widths, would play no part."""
    loss, control = problem.settings.loss, problem.arguments["control"] or {}
    if levels and loss != "squared":
        raise ArgumentError(
            f"loss is for numeric responses, and this one has classes: leave out loss={loss!r}"
        )
    if loss != "density" and "lambda_u" in control:
        raise ArgumentError(
            "control's lambda_u is for loss='density' alone: leave out "
            f"lambda_u={control['lambda_u']!r} with loss={loss!r}"
        )
    if loss == "density":
        _check_continuous(problem)


def _check_continuous(problem):
    """Raise a DataError where the response is of whole numbers that repeat.

    Normals of no width on the repeated values would have a likelihood without bound.
    """
    y = problem.batch.y[problem.batch.positive_weight]
    values, times = np.unique(y, return_counts=True)
    shared = int(times[times > 1].sum())
    if 2 * shared > len(y) and np.array_equal(values, np.rint(values)):
        raise DataError(
            f"{problem.design.response.name!r} has whole numbers, which {shared} of {len(y)} rows "
            "share with others: loss='density' is for continuous responses (normals on repeated "
            "values have a likelihood without bound); take loss='squared', or make classes of them"
        )
