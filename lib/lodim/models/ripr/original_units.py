"""The numbers of a fit of ripr as users have them: in units of the data, or levels by name."""

import numpy as np


def view_values(fit, X, j):
    """Places X (m, a) in view j in original units, a list of (m,): numbers, or levels."""
    e, d = fit.estimates, fit.design
    out = []
    for a in e.columns(j):
        x = X[:, a]
        if e.mismatch[a] > 0.0:
            names = np.array(level_names(fit, e.features[a]), object)
            out.append(np.append(names, None)[np.where(np.isnan(x), -1, x).astype(int)])
        else:
            feature = int(np.flatnonzero(e.axis_of == e.features[a])[0])
            out.append(x * d.scale[feature] + d.mean[feature])
    return out


def level_names(fit, axis):
    """Names of the levels that the codes 0, 1, ... of a factor's axis stand for."""
    d, own = fit.design, np.flatnonzero(fit.estimates.axis_of == axis)
    return list(d.terms[d.term_of[own[0]]][0].labels)


def cluster_centres(fit, feature):
    """Centres of the clusters in a feature, in original units, (q,); NaN where a view lacks it."""
    e, d = fit.estimates, fit.design
    out = np.full(len(e.centres), np.nan)
    for q, j in enumerate(e.centre_view):
        at = np.flatnonzero(e.features[e.columns(j)] == feature)
        if len(at):
            out[q] = e.centres[q, at[0]] * d.scale[feature] + d.mean[feature]
    return out
