"""Coverage as measured: of which rows, and with what error."""

import numpy as np
import pandas as pd

from lodim.classification import wilson
from lodim.design.columns import as_float, as_levels
from lodim.design.frame import read_column, read_frame
from lodim.errors import ArgumentError

ERRORS = ("std_error", "conf_low", "conf_high")
FEW_VALUES = 10  # of a number, each of which is a group


def groups_of(data, by, batch):
    """Positions in a batch of the rows of each group: a dict by label."""
    frame = read_frame(data)
    if isinstance(by, str):
        column = read_column(frame, by)
    else:
        column = read_column(read_frame({"by": by}), "by")
        n = len(column.codes if column.kind == "level" else column.values)
        if n != len(batch.index):
            raise ArgumentError(f"by has {n} entries, the data {len(batch.index)} rows")
    if column.kind == "number":
        values = as_float(column.values)[batch.rows]
        if len(np.unique(values[~np.isnan(values)])) > FEW_VALUES:
            parts = pd.qcut(values, 4, duplicates="drop")
            return {
                f"{one.left:.4g} to {one.right:.4g}": np.flatnonzero(parts == one)
                for one in parts.categories
            }
    column = as_levels(column)
    codes = column.codes[batch.rows]
    found = {one: np.flatnonzero(codes == k) for k, one in enumerate(column.levels)}
    return {label: rows for label, rows in found.items() if len(rows)}


def measured(covered, weight, means):
    """Coverage of some rows with its error, and means of what else is known of them, a dict."""
    n, total = int((weight > 0).sum()), weight.sum()
    if not total > 0:
        return {"n": n, "coverage": np.nan} | dict.fromkeys((*ERRORS, *means), np.nan)
    p, rows = weight @ covered / total, total**2 / (weight @ weight)  # rows of equal weight
    errors = np.sqrt(p * (1.0 - p) / rows), *wilson(p, rows)
    averages = {name: np.average(values, weights=weight) for name, values in means.items()}
    return {"n": n, "coverage": p} | dict(zip(ERRORS, errors, strict=True)) | averages
