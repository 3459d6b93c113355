"""Shapley values of proset estimates, relative to a reference row."""

import math
from typing import Any

import numpy as np
import pandas as pd

from lodim.checks import as_seed, whole
from lodim.models.proset.explain.query import active_values
from lodim.models.proset.explain.reference import reference_values
from lodim.models.proset.prototypes import Mixture
from lodim.typing import Data, Offset

# The similarity with a prototype is a product over features, so its logarithm is a sum over terms.
# Parts of this sum are computed once, for the values of the row and of the reference.

SAMPLES = 200  # random orders, each with its reverse, if coalitions are too many
REFERENCE = "(reference)"


def shapley(
    fit: Any,
    data: Data,
    *,
    reference: Data | pd.Series | None = None,
    n_permutations: int | None = None,
    seed: int = 0,
    offset: Offset | None = None,
) -> pd.DataFrame:
    """Return Shapley values: how each term moves a row's prediction away from a reference row's.

    The value of a coalition of terms is the prediction if these have the row's values, and all
    others those of a typical row, the reference (Section 4.3.2).

    Parameters
    ----------
    data : frame
        Rows to explain, with the columns of the formula's right side.
    reference : frame of one row, optional
        Complete row like `data` or like the result of `reference()`, by default `reference()`; an
        ArgumentError if omitted for a fit of a path.
    n_permutations : int, optional
        Number of random orders of terms, each with its reverse; by default 200, or all coalitions
        if at most 12 terms differ from the reference.
    seed : int
        Seed of the random orders.
    offset : array (n,) or column name, optional
        Offset of the predictions, also of the reference.

    Returns
    -------
    DataFrame
        Per row of `data` (and class, if more than two): the prediction at the reference, as term
        "(reference)", and one row per term with weight. They add up to `predict(data)`. std_error
        is zero if all coalitions were enumerated. NaN if an input is missing.

    See Also
    --------
    explain, reference

    Examples
    --------
    >>> import lodim as ld
    >>> iris = ld.data("iris")
    >>> fit = ld.proset("species ~ .", iris, lambda_v=0.05)
    >>> fit.shapley(iris[:1]).round(2).iloc[:3]
       row   level          term  shapley  std_error
    0    0  setosa   (reference)     0.00        0.0
    1    0  setosa  petal_length     0.68        0.0
    2    0  setosa   petal_width     0.30        0.0
    """
    if n_permutations is not None:
        whole("n_permutations", n_permutations, least=2)
    seed = as_seed(seed)
    batch, r = fit.design.apply(data, offset=offset), reference_values(fit, reference)
    x, base = active_values(fit, batch), batch.offset_matrix(fit.family.n_scores)
    terms = np.unique(fit.design.term_of[fit.estimates.features])
    names = [REFERENCE, *(fit.design.term_names[k] for k in terms)]
    levels = [fit.design.response.name] if fit.levels is None else list(fit.levels)
    levels = levels[1:] if len(levels) == 2 else levels
    out = np.full((2, len(batch.index), len(levels), len(names)), np.nan)
    for i, row in enumerate(batch.rows):
        # Each row has its own generator: its values do not depend on other rows.
        rng = np.random.default_rng(seed)
        values = _values_of_row(fit, terms, x[i], r, base[i : i + 1], n_permutations, rng)
        out[:, row] = np.swapaxes(values, 1, 2)
    keys = ["row", "level", "term"]
    index = pd.MultiIndex.from_product([range(out.shape[1]), levels, names], names=keys)
    frame = pd.DataFrame({"shapley": out[0].ravel(), "std_error": out[1].ravel()}, index=index)
    frame = frame.reset_index()
    frame["row"] = batch.index[frame["row"]]
    return frame if len(levels) > 1 else frame.drop(columns="level")


def _values_of_row(fit, terms, x, r, base, n_permutations, rng):
    """Return Shapley values of P terms for one row, and their standard errors, (2, 1 + P, K).

    Index 0 of the second axis is the prediction for the reference row.
    x, r : (A,) active features of the row and of the reference; base : (1, K) offset
    terms : (P,) positions of the terms in the design
    n_permutations : number of random orders; None to choose it"""
    t, mixture = fit.estimates, Mixture.from_prototypes(fit.estimates, base)
    player = np.searchsorted(terms, fit.design.term_of[t.features])
    # (M, P): how much each term lowers the log similarity with each prototype.
    v, member = t.v[t.batch - 1], np.equal.outer(player, np.arange(len(terms))).astype(float)
    at_row, at_reference = (0.5 * (v * (at - t.x)) ** 2 @ member for at in (x, r))
    out = np.zeros((2, 1 + len(terms), mixture.targets.shape[1]))
    # Terms with the reference's values have Shapley value zero.
    moving = np.unique(player[x != r])
    fixed = np.setdiff1d(np.arange(len(terms)), moving)
    w = t.w * np.exp(-at_reference[:, fixed].sum(axis=1))
    at_row, at_reference = at_row[:, moving], at_reference[:, moving]

    def value(S):
        """Return predictions (C, K) for C mixtures of the explained row and the reference row.

        S : (C, P) bool, terms with the values of the explained row; others have the reference's"""
        predictions = np.empty((len(S), mixture.targets.shape[1]))
        step = max(1, 2**22 // max(1, len(w)))  # bounds the memory
        for lo in range(0, len(S), step):
            s = S[lo : lo + step].astype(float)
            W = w * np.exp(-(s @ at_row.T + (1.0 - s) @ at_reference.T))
            predictions[lo : lo + step] = mixture.estimate(W @ mixture.targets, W.sum(axis=1))
        return predictions

    out[0, 0] = value(np.zeros((1, len(moving)), bool))[0]
    if n_permutations is None and len(moving) <= 12:  # 4,096 coalitions
        out[0, 1 + moving] = exact_values(value, len(moving))
    elif len(moving):
        out[:, 1 + moving] = sampled_values(value, len(moving), n_permutations or SAMPLES, rng)
    return out[:, :, 1:] if fit.levels is not None and len(fit.levels) == 2 else out


def exact_values(value, P):
    """Return the exact Shapley values (P, K) of P terms, from predictions for all sets of terms.

    value : value(S) returns predictions (C, K) for C sets of terms, the rows of a bool matrix S"""
    code = np.arange(2**P)
    S = (code[:, None] >> np.arange(P)) & 1 == 1
    v, size = value(S), S.sum(axis=1)
    weight = np.array([1.0 / (P * math.comb(P - 1, s)) for s in range(P)])
    phi = np.empty((P, v.shape[1]))
    for i in range(P):
        without = code[~S[:, i]]
        phi[i] = weight[size[without]] @ (v[without | 1 << i] - v[without])
    return phi


def sampled_values(value, P, n_permutations, rng):
    """Estimate Shapley values of P terms from random orders; return them and their SE, (P, K) each.

    n_permutations : number of random orders, each also used in reverse
    value : value(S) returns predictions (C, K) for C sets of terms, the rows of a bool matrix S"""
    pairs = []
    for _ in range(n_permutations):
        order = rng.permutation(P)
        pairs.append(0.5 * (_steps(value, order) + _steps(value, order[::-1])))
    pairs = np.array(pairs)
    error = pairs.std(axis=0, ddof=1) / math.sqrt(n_permutations)
    return pairs.mean(axis=0), error


def _steps(value, order):
    """Add P terms one by one in `order`; return how much each changes the prediction, (P, K).

    value : value(S) returns predictions (C, K) for C sets of terms, the rows of a bool matrix S"""
    P = len(order)
    S = np.zeros((P + 1, P), bool)
    S[:, order] = np.arange(P + 1)[:, None] > np.arange(P)
    steps = np.empty((P, value(S[:1]).shape[1]))
    steps[order] = np.diff(value(S), axis=0)
    return steps
