"""The table of an explanation: what the null model and each prototype bring to one estimate."""

import numpy as np
import pandas as pd

from lodim.errors import ArgumentError
from lodim.models.proset.explain.dominant import dominant_for_classes, dominant_for_numbers
from lodim.models.proset.explain.explanation import OTHERS, PRIOR, PROTOTYPE, QUERY, Explanation
from lodim.models.proset.explain.familiar import quantile_of
from lodim.models.proset.explain.query import active_names, chosen, original, query, targets
from lodim.models.proset.mixture import Mixture


def explain(fit, data, *, features=None, least=1e-3, offset=None):
    """The Explanation of one row of data by a fit."""
    if not isinstance(least, int | float) or not 0 <= least <= 1:
        raise ArgumentError(f"least must be between 0 and 1, not {least!r}")
    at, on = query(fit, data, offset), chosen(fit, features)
    t = fit.estimates
    mixture = Mixture.of(t, at.batch.offset_matrix(fit.family.n_scores))
    impact = fit.impacts(at.batch)[0] if len(t) else np.zeros(0)
    share = impact / (1.0 + impact.sum())
    if fit.levels is None:
        dominant = dominant_for_numbers(impact, t.y)
    else:
        dominant = dominant_for_classes(impact, t.y.astype(int), mixture.prior[0])
    shown = np.flatnonzero((share >= least) & (impact > 0) | dominant)
    shown = shown[np.argsort(-impact[shown], kind="stable")]
    added = share[:, None] * mixture.targets
    estimate = mixture.estimate((impact @ mixture.targets)[None], impact.sum(keepdims=True))[0]
    rows = [
        _query_rows(fit, at, estimate),
        _prior_rows(fit, mixture, impact.sum(), dominant.any()),
        _prototype_rows(fit, impact, dominant, added, shown),
        _other_rows(fit, impact, added, np.setdiff1d(np.arange(len(t)), shown)),
    ]
    frame = _with_features(fit, _joined(fit, rows), at, shown, on)
    return Explanation(
        call=fit.call, response=fit.design.response.name, frame=frame, label=at.label,
        prediction=_prediction(fit, estimate), familiarity=float(impact.sum()),
        quantile=quantile_of(fit, impact.sum()), n_prototypes=len(t),
        n_dominant=int(dominant.sum()), features=list(frame.columns[len(frame.columns) - len(on):]),
    )  # fmt: skip


def _columns(fit):
    """Names of the columns that hold contributions."""
    return ["contribution"] if fit.levels is None else [f"p[{level}]" for level in fit.levels]


def _rows(fit, role, n, added, **columns):
    frame = pd.DataFrame({"role": [role] * n, **columns})
    return pd.concat([frame, pd.DataFrame(added, columns=_columns(fit))], axis=1)


def _query_rows(fit, at, estimate):
    known = None if np.isnan(at.y) else at.y if fit.levels is None else fit.levels[int(at.y)]
    return _rows(fit, QUERY, 1, estimate[None], row=[at.label], target=[known])


def _prior_rows(fit, mixture, mass, dominant):
    """The null model: a row a class, as the report has it; for numbers one, with its mean."""
    if fit.levels is None:
        weight, target, added = [1.0], mixture.shift[0], mixture.shift
    else:
        weight, target = mixture.prior[0], list(fit.levels)
        added = np.diag(mixture.prior[0]) / (1.0 + mass)
    n = len(weight)
    return _rows(
        fit, PRIOR, n, added, target=target, prototype_weight=weight, similarity=np.ones(n),
        impact=weight, dominant=[bool(dominant)] * n,
    )  # fmt: skip


def _prototype_rows(fit, impact, dominant, added, j):
    t = fit.estimates
    target = targets(fit)
    return _rows(
        fit, PROTOTYPE, len(j), added[j], batch=t.batch[j], row=[fit.labels[k] for k in j],
        target=[target[k] for k in j], prototype_weight=t.w[j], similarity=impact[j] / t.w[j],
        impact=impact[j], dominant=dominant[j],
    )  # fmt: skip


def _other_rows(fit, impact, added, j):
    n = min(1, len(j))
    return _rows(
        fit, OTHERS, n, added[j].sum(axis=0, keepdims=True)[:n], row=[f"{len(j)} prototypes"][:n],
        prototype_weight=[fit.estimates.w[j].sum()][:n], impact=[impact[j].sum()][:n],
        dominant=[False][:n],
    )  # fmt: skip


def _joined(fit, rows):
    """All rows as one frame, with what they add up to so far."""
    order = ["role", "batch", "row", "target", "prototype_weight", "similarity", "impact",
             "dominant", *_columns(fit)]  # fmt: skip
    whole = {
        name: [v for part in rows for v in (part[name] if name in part else [None] * len(part))]
        for name in order
    }
    frame = pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in whole.items()})
    for name in ("prototype_weight", "similarity", "impact", *_columns(fit)):
        frame[name] = frame[name].astype(float)
    frame["batch"] = frame["batch"].astype("Int64")
    frame["dominant"] = frame["dominant"].astype("boolean")
    frame["target"] = frame["target"].infer_objects()
    cumulative = frame[_columns(fit)].sum(axis=1).iloc[1:].cumsum()
    frame["cumulative"] = cumulative.reindex(frame.index)
    return frame


def _with_features(fit, frame, at, shown, on):
    """The features of the row and of prototypes beside the other columns."""
    x = original(fit, np.vstack([at.x[None], fit.estimates.x[shown]]))[:, on]
    places = [0, *np.flatnonzero(frame["role"] == PROTOTYPE)]
    for k, name in enumerate(apart([active_names(fit)[a] for a in on], frame.columns)):
        values = np.full(len(frame), np.nan)
        values[places] = x[:, k]
        frame[name] = values
    return frame


def apart(names, taken):
    """Names of features; one that a table has already is marked."""
    return [f"{name} (feature)" if name in taken else name for name in names]


def _prediction(fit, estimate):
    if fit.levels is None:
        return float(estimate[0])
    return pd.Series(estimate, index=pd.Index(fit.levels), name=fit.design.response.name)
