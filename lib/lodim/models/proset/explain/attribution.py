"""Reference row and Shapley values of a fit, as frames."""

import numpy as np
import pandas as pd

from lodim.errors import ArgumentError, DataError
from lodim.models.proset.explain import shapley
from lodim.models.proset.explain.query import active, active_names, original, query, zero_offset
from lodim.models.proset.explain.reference import central
from lodim.models.proset.mixture import Mixture

SAMPLES = 200  # orders, each with its reverse, where there are too many coalitions
REFERENCE = "(reference)"


def reference(fit, data=None):
    """A frame of one row; see `Explained.reference`."""
    if data is None:
        x, label = _own(fit)
    else:
        batch = fit.design.apply(data, offset=zero_offset(fit))
        if not batch.n:
            raise DataError("no complete row to choose a reference from")
        i = central(fit.estimates, active(fit, batch), fit._threads)
        x, label = active(fit, batch)[i], batch.index[batch.rows[i]]
    return pd.DataFrame(original(fit, x[None]), index=[label], columns=active_names(fit))


def reference_of(fit, given):
    """Standardized active features (A,) of a reference: chosen, or given as a frame of one row."""
    if given is None:
        return _own(fit)[0]
    names, on = active_names(fit), fit.estimates.features
    if isinstance(given, pd.DataFrame) and set(names) <= set(given.columns):
        values = given[names].to_numpy(float)
        if values.shape[0] != 1 or not np.isfinite(values).all():
            raise ArgumentError("reference must be one row without missing values")
        return (values[0] - fit.design.mean[on]) / fit.design.scale[on]
    return query(fit, given, zero_offset(fit), what="reference").x


def _own(fit):
    """The reference that the fit has chosen among its training rows: features, and label."""
    if fit.typical is None:
        raise ArgumentError(
            "this fit knows no typical row (it is part of a path): pass data, or a reference"
        )
    return fit.typical.x, fit.typical.label


def shapley_values(fit, data, reference=None, n_permutations=None, seed=0, offset=None):
    """A frame with a row for each row of data, class and term; see `Explained.shapley`."""
    if n_permutations is not None and (
        not isinstance(n_permutations, int | np.integer) or n_permutations < 2
    ):
        raise ArgumentError(f"n_permutations must be a whole number from 2, not {n_permutations!r}")
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ArgumentError(f"seed must be a whole number from 0, not {seed!r}")
    batch, r = fit.design.apply(data, offset=offset), reference_of(fit, reference)
    x, base = active(fit, batch), batch.offset_matrix(fit.family.n_scores)
    # A generator of its own for each row: its values do not depend on the rows beside it.
    values = [
        _of_row(fit, x[i], r, base[i : i + 1], n_permutations, np.random.default_rng(seed))
        for i in range(batch.n)
    ]
    terms = [fit.design.term_names[k] for k in _terms(fit)]
    levels = _levels(fit)
    shape = (len(batch.index), len(levels), 1 + len(terms))
    out = np.full((2, *shape), np.nan)
    for i, both in zip(batch.rows, values, strict=True):
        out[:, i] = np.swapaxes(both, 1, 2)
    index = pd.MultiIndex.from_product(
        [range(shape[0]), levels, [REFERENCE, *terms]], names=["row", "level", "term"]
    )
    frame = pd.DataFrame({"shapley": out[0].ravel(), "std_error": out[1].ravel()}, index=index)
    frame = frame.reset_index()
    frame["row"] = batch.index[frame["row"]]
    return frame if len(levels) > 1 else frame.drop(columns="level")


def _terms(fit):
    """Terms of the design that have active features."""
    return np.unique(fit.design.term_of[fit.estimates.features])


def _levels(fit):
    """The classes that have a column of their own, as type="response" of predict gives them."""
    if fit.levels is None:
        return [fit.design.response.name]
    return list(fit.levels) if len(fit.levels) > 2 else [fit.levels[1]]


def _of_row(fit, x, r, base, n_permutations, rng):
    """Shapley values and their standard errors: (2, 1 + P, K), the reference's estimate first."""
    t, terms = fit.estimates, _terms(fit)
    player = np.searchsorted(terms, fit.design.term_of[t.features])
    mixture = Mixture.of(t, base)
    ends = [shapley.half_squares(at, t, player, len(terms)) for at in (x, r)]
    out = np.zeros((2, 1 + len(terms), mixture.targets.shape[1]))
    # Terms that are at the reference already move nothing.
    moving = np.unique(player[x != r])
    fixed = np.setdiff1d(np.arange(len(terms)), moving)
    w = t.w * np.exp(-ends[1][:, fixed].sum(axis=1))
    value = shapley.game(ends[0][:, moving], ends[1][:, moving], w, mixture)
    out[0, 0] = value(np.zeros((1, len(moving)), bool))[0]
    if n_permutations is None and len(moving) <= shapley.MOST_EXACT:
        out[0, 1 + moving] = shapley.exact(value, len(moving))
    elif len(moving):
        both = shapley.sampled(value, len(moving), n_permutations or SAMPLES, rng)
        out[:, 1 + moving] = both
    two = fit.levels is not None and len(fit.levels) == 2
    return out[:, :, 1:] if two else out
