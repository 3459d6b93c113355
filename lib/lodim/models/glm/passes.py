"""Passes over the rows, span by span, in a basis in which columns are nearly orthogonal.

Of the columns x of a row that are kept, the constant first, a pass sees z = T'x, where T is the
inverse of the triangle R of a QR decomposition of all rows: sums of products z z' then lose no
digits, which those of x do where columns are nearly collinear (Golub & Van Loan 2013, Sect. 5.3).
"""

import numpy as np

from lodim.engine.tiles import TILE
from lodim.models.glm.likelihood import (
    DISPERSED,
    all_scores,
    curvatures,
    information,
    pearson,
    slopes,
    working_weights,
)

CHUNK = 32 * TILE  # rows of one product
WHOLE = 1e-10  # what a leverage of one may lack
N_TOTALS = 2  # deviance, squares of Pearson residuals


def triangle(X, weights):
    """R (1 + p, 1 + p), or of fewer rows, of a QR decomposition of the weighted design matrix."""
    R = np.zeros((0, 1 + X.shape[1]))
    for x, w in _chunks(X, weights):
        R = joined(R, np.sqrt(w)[:, None] * x)
    return R


def joined(R, rows):
    """The triangle of a QR decomposition of a triangle and more rows below it."""
    return np.linalg.qr(np.concatenate([R, rows]), mode="r")


@np.errstate(all="ignore")
def sums(X, y, weights, offset, *, kept, T, family, coef, observed):
    """Sums over the rows of a span, (2 + S q + (S q)^2,); see `parts`.

    Parameters
    ----------
    y, weights : (n,); offset : (n,), (n, K) or None
    kept : (q,) int, columns of the design matrix; T : (q, q)
    coef : (S, q) of z
    observed : whether the information is that at the responses seen, or the expected one
    """
    out = np.zeros(N_TOTALS + coef.size + coef.size**2)
    for z, w, y_z, offset_z in _chunks(X, weights, y, offset, kept=kept, T=T):
        score = _score(z, coef, family, offset_z)
        mean = family.mean(score)
        c = curvatures(family, y_z, w, mean) if observed else None
        out[0] += w @ family.deviance(y_z, score)
        if family.name in DISPERSED:
            out[1] += w @ pearson(family, y_z, mean) ** 2
        out[N_TOTALS:][: coef.size] += (slopes(family, y_z, w, mean).T @ z).ravel()
        out[N_TOTALS + coef.size :] += information(family, z, w, mean, c).ravel()
    return out


def parts(found, coef):
    """What `sums` returns.

    Deviance and squares of Pearson residuals (2,); gradient of the log-likelihood times phi (S q,);
    information (S q, S q).
    """
    size = coef.size
    totals, gradient = found[:N_TOTALS], found[N_TOTALS : N_TOTALS + size]
    return totals, gradient, found[N_TOTALS + size :].reshape(size, size)


@np.errstate(all="ignore")
def squares(X, y, weights, offset, *, kept, T, family, coef, B, power):
    """Number of rows of leverage one, and sum of squared slopes, (1 + (S q)^2,).

    Squares are divided by (1 - h)^power, with h the leverages by the bread B; power 0, 1 or 2.
    """
    out = np.zeros(1 + coef.size**2)
    for z, w, y_z, offset_z in _chunks(X, weights, y, offset, kept=kept, T=T):
        mean = family.mean(_score(z, coef, family, offset_z))
        each = _slopes_of_coefficients(family, z, y_z, w, mean)
        if power:
            h = leverage(z, B, working_weights(family, w, mean))
            out[0] += np.count_nonzero(h > 1.0 - WHOLE)
            each /= (1.0 - h)[:, None] ** (0.5 * power)
        out[1:] += (each.T @ each).ravel()
    return out


@np.errstate(all="ignore")
def cluster_sums(X, y, weights, offset, clusters, *, bounds, kept, T, family, coef):
    """Clusters (g,) of a span that are within bounds, and sums of their slopes (g, S q).

    clusters : (n,) codes; bounds : the first cluster, and the one after the last
    """
    known = np.unique(clusters.astype(np.int64))
    known = known[slice(*np.searchsorted(known, bounds))]
    out = np.zeros((len(known), coef.size))
    if not len(known):
        return known, out
    for z, w, y_z, offset_z, code in _chunks(X, weights, y, offset, clusters, kept=kept, T=T):
        mean = family.mean(_score(z, coef, family, offset_z))
        each = _slopes_of_coefficients(family, z, y_z, w, mean)
        order = np.argsort(code, kind="stable")
        order = order[slice(*np.searchsorted(code[order], bounds))]
        if len(order):
            own, first = np.unique(code[order].astype(np.int64), return_index=True)
            out[np.searchsorted(known, own)] += np.add.reduceat(each[order], first)
    return known, out


def leverage(X, B, curvature):
    """Diagonal of the hat matrix of the rows X (n, q), (n,)."""
    return np.clip(curvature * ((X @ B) * X).sum(axis=1), 0.0, 1.0)


def _chunks(X, weights, *arrays, kept=None, T=None):
    """Yield the rows of weight above zero, some at a time: design matrix, weights and arrays.

    The design matrix is that of the columns `kept` times T, where these are given.
    """
    for start in range(0, len(weights), CHUNK):
        part = slice(start, min(start + CHUNK, len(weights)))
        w = weights[part]
        at = slice(None) if (w > 0.0).all() else np.flatnonzero(w)
        w = w[at]
        if not len(w):
            continue
        of_tiles = np.asarray(X[start // TILE : -(-part.stop // TILE)])
        x = np.ones((1 + X.shape[1], len(of_tiles) * TILE))
        x[1:].reshape(-1, *of_tiles.shape[::2])[:] = of_tiles.transpose(1, 0, 2)
        x = x[:, : part.stop - start][:, at].T
        if kept is not None:
            x = (x if len(kept) == x.shape[1] else x[:, kept]) @ T
        yield x, w, *(None if a is None else a[part][at] for a in arrays)


def _score(z, coef, family, offset):
    """Scores (n, K) of rows, their offset included."""
    score = all_scores(z @ coef.T, family)
    return score if offset is None else score + offset.reshape(len(z), -1)


def _slopes_of_coefficients(family, z, y, weight, mean):
    """Slopes of each row's log-likelihood times phi by the coefficients of z, (n, S q)."""
    each = slopes(family, y, weight, mean)
    return (each[:, :, None] * z[:, None, :]).reshape(len(z), -1)
