"""A glm as expressions: the linear predictor, and the rows that it cannot answer."""

import numpy as np

from lodim.export.expression import ONE, ZERO, Constant, call, labelled, weighted
from lodim.models.glm.estimates import MADE


def scores(estimates, family, features, offset):
    """Link scores of standardized features, a list of K nodes, and rows that are not estimable."""
    X = [ONE, *features]
    columns = [X[j] for j in estimates.kept]
    linear = [weighted(0.0, [*b, 1.0], [*columns, offset], "score") for b in estimates.coef.T]
    if family.name == "multinomial":
        linear.insert(0, offset)
    return linear, _not_estimable(estimates, X, columns)


def _not_estimable(estimates, X, columns):
    """Conditions of rows where a column left out is not what it was in the training rows."""
    left_out = np.setdiff1d(np.arange(len(X)), estimates.kept)
    found = []
    for j, made_of in zip(left_out, estimates.combination.T, strict=True):
        made = weighted(0.0, made_of, columns)
        if X[j] is ZERO and isinstance(made, Constant):
            continue
        sizes = [ONE if c is ONE else call("abs", c) for c in columns if c is not ZERO]
        weights = [abs(w) for w, c in zip(made_of, columns, strict=True) if c is not ZERO]
        size = weighted(1.0, [1.0, *weights], [call("abs", made), *sizes])
        gap = call("abs", call("sub", X[j], made))
        far = call("gt", gap, weighted(0.0, [MADE], [size]))
        found.append(labelled(far, "not estimable"))
    return found
