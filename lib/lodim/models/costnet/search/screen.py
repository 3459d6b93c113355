"""Which nodes of a wide problem a search looks at."""

import numpy as np

from lodim.models.costnet.search.rows import Training

MOST = {"gaussian": 1000, "binomial": 500, "multinomial": 500}  # columns that a search looks at


def keep(batch, family, network, trace):
    """(V,) bool: all nodes, or of too many columns those that promise most.

    These are the nodes of the penalized path's models, then those with the largest score statistic
    at the null model, each with all that it needs, up to MOST columns.
    """
    p, most = batch.X.shape[1], MOST[family.name]
    if p <= most:
        return None
    strength = _score_statistic(batch, family)
    if trace is not None:
        # The earlier a column comes in along the path, the more it promises.
        first = np.where(trace.coef.any(axis=(0, 2)), trace.coef.any(axis=2).argmax(axis=0), p)
        strength = strength / strength.max() + np.where(first < p, 1.0 + p - first, 0.0)
    best = [max((strength[j] for j in columns), default=-np.inf) for columns in network.columns]
    kept, columns = np.zeros(len(network), bool), 0
    for v in np.argsort(best)[::-1]:
        new = np.flatnonzero(network.needs[v] & ~kept)
        columns += sum(len(network.columns[u]) for u in new)
        if columns > most:
            break
        kept[new] = True
    return kept


def _score_statistic(batch, family):
    """(p,) what each column alone would gain at the null model, to first order."""
    training = Training.of(batch, family)
    score = family.null_score(training.y, training.weight, training.base)
    residual, p = training.residual(score), batch.X.shape[1]
    gain, square = np.zeros((p, score.shape[1])), np.zeros(p)
    for rows, X in training.blocks(np.arange(p)):
        gain += X.T @ residual[rows]
        square += training.weight[rows] @ X**2
    return (gain**2).sum(axis=1) / np.maximum(square, 1e-300)
