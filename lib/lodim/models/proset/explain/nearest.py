"""Find the rows of a frame that are nearest to one row, in a fit's active features."""

import numpy as np
import pandas as pd

from lodim.models.proset.explain.query import active_values, original_units, zero_offset

N_NEAREST = 5  # most rows that are shown


def nearest_rows(fit, query, data):
    """Return the rows of data nearest to a query row (row, target, distance), and their features.

    The distance is sqrt(sum_d (v_d z_d)^2) with z in standard deviations and v the largest feature
    weight of the batches; similarity is exp(-distance^2 / 2). The query row itself is left out.
    """
    batch = fit.design.apply(data, offset=zero_offset(fit), response=True)
    x, labels = active_values(fit, batch), batch.index[batch.rows]
    v = fit.estimates.v.max(axis=0, initial=0.0)
    distance = np.sqrt((((x - query.x) * v) ** 2).sum(axis=1))
    itself = np.array([d == 0 and k == query.label for d, k in zip(distance, labels, strict=True)])
    order = np.argsort(np.where(itself, np.inf, distance), kind="stable")
    order = order[: min(N_NEAREST, batch.n - int(itself.sum()))]
    target = batch.y[order]
    if fit.levels is not None:
        target = np.array(fit.levels, dtype=object)[target.astype(int)]
    frame = pd.DataFrame({"row": labels[order], "target": target, "distance": distance[order]})
    return frame, original_units(fit, x[order])
