"""Prototypes as expressions: sums of kernels, Eq. 2.4."""

import numpy as np

from lodim.export.expression import ZERO, Constant, Kernels, call, weighted
from lodim.models.proset.kernels.cpu import CLASSES
from lodim.models.proset.prototypes import prior, response_values


def scores(prototypes, features, offset):
    """Link scores of standardized features, a list of K nodes."""
    t = prototypes
    values = response_values(t)
    sums = [_kernel_sum(t, values[:, q], features) for q in range(values.shape[1])]
    if t.loss != CLASSES:
        total = weighted(1.0, [1.0], [sums[0]])
        mean = call("over", sums[1], total)
        return [weighted(t.level[0], [1.0, t.scale], [offset, mean], "score")]
    pairs = zip(_prior(t, offset), sums, strict=True)
    shares = [weighted(0.0, [1.0, 1.0], pair) for pair in pairs]
    logs = [call("log_positive", share) for share in shares]
    if len(t.level) > 1:
        return logs
    return [weighted(0.0, [1.0, -1.0], [logs[1], logs[0]], "score")]


def _kernel_sum(t, values, features):
    """sum_j w_j G_j(x) values_j over all batches."""
    parts = []
    for c in range(1, t.n_batches + 1):
        of = t.of_batch(c)
        of = of[t.w[of] * values[of] != 0.0]
        on = np.flatnonzero(t.v[c - 1])
        if len(of) and not len(on):  # the same everywhere
            parts.append(Constant(float(t.w[of] @ values[of])))
        elif len(of):
            v = t.v[c - 1][on]
            point = tuple(
                weighted(0.0, [s], [features[k]]) for s, k in zip(v, t.features[on], strict=True)
            )
            parts.append(Kernels(point, t.x[of][:, on] * v, t.w[of] * values[of]))
    return weighted(0.0, [1.0] * len(parts), parts) if parts else ZERO


def _prior(t, offset):
    """Probabilities of the null model, a list of nodes."""
    if isinstance(offset, Constant):
        return [
            Constant(float(p)) for p in prior(t.level, np.zeros((1, len(t.level))), t.n_classes)[0]
        ]
    p = call("logistic", weighted(t.level[0], [1.0], [offset]))  # several classes take no column
    return [weighted(1.0, [-1.0], [p]), p]
