"""What every fit says of its rows: which they are, and how some of them lie."""

import hashlib

import numpy as np

from lodim.engine.blocks import row_spans
from lodim.errors import ArgumentError
from lodim.fitting.storage import plain_label
from lodim.models.glm import covariance
from lodim.models.glm.estimates import Diagnostics
from lodim.models.glm.likelihood import pearson


def fingerprint(batch, family):
    """A short text that tells the rows of a fit from others, in order."""
    y, weights, offset = batch.y, batch.weights, batch.offset
    content, parts = hashlib.sha256(), row_spans(batch.n)

    def add(values):
        for part in parts:
            some = values(part)
            at = slice(None) if weights is None else weights[part] != 0.0
            content.update(np.ascontiguousarray(some[at]).tobytes())

    def of_scores(part):
        out = np.zeros((part.stop - part.start, family.n_scores))
        if offset is not None:
            out += offset[part] if offset.ndim == 2 else offset[part, None]
        return out

    add(lambda part: y[part])
    add(lambda part: np.ones(part.stop - part.start) if weights is None else weights[part])
    add(of_scores)
    return content.hexdigest()[:16]


def kind_of(settings, clusters):
    """The kind of covariance, whose default depends on whether there are clusters."""
    return settings.covariance or ("nonrobust" if clusters is None else "cluster")


def check_covariance(kind, family, n_clusters):
    """Raise unless a kind of covariance suits the family and the number of clusters, or None."""
    if family.name == "multinomial" and kind in ("HC2", "HC3"):
        raise ArgumentError(
            f"covariance={kind!r} divides by leverages, which a response of more than two classes "
            "lacks: choose 'HC0', 'HC1' or clusters"
        )
    if kind == "cluster" and n_clusters is None:
        raise ArgumentError("covariance='cluster' needs clusters=, a column or an array")
    if kind != "cluster" and n_clusters is not None:
        raise ArgumentError(f"clusters are of covariance='cluster'; it is {kind!r}")
    if kind == "cluster" and n_clusters < 2:
        raise ArgumentError("clusters has one value in all rows; a covariance needs two or more")


def diagnostics(batch, family, at, weight, score, dispersion, h, rank):
    """Diagnostics of the rows `at` (r,) of a batch.

    weight, h : (r,) ; score : (r, K); rank : the trace of the hat matrix of all rows
    """
    y, mean = batch.y[at], family.mean(score)
    sd = np.sqrt(np.maximum(dispersion * (1.0 - h), 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        deviance = np.sign(y - mean) * np.sqrt(weight * family.deviance(y, score)) / sd
        standardized = np.sqrt(weight) * pearson(family, y, mean) / sd
        cook = np.where(h < 1.0 - covariance.WHOLE, standardized**2 * h / (1.0 - h) / rank, np.nan)
    labels = tuple(plain_label(label) for label in batch.index[batch.rows[at]])
    return Diagnostics(labels, mean, deviance, standardized, h, cook)
