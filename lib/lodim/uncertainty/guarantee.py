"""The coverage guarantee of conformal prediction: numbers, and text about it."""

import numpy as np
import pandas as pd

from lodim import forms
from lodim.classification import wilson
from lodim.design.columns import as_float, as_levels
from lodim.design.frame import read_column, read_frame
from lodim.errors import ArgumentError
from lodim.text import counted, join_words

METHODS = ("cv+", "split", "jackknife+")


@forms.record
class Guarantee:
    """How conformal intervals or sets were made, and the coverage that this guarantees."""

    method: str = forms.choice(*METHODS)
    n_fits: int = forms.size("F")  # fits, each without some rows
    n_units: int = forms.whole(least=1)  # held-out rows or groups
    unit: str = forms.choice("row", "group")
    chosen: tuple[str, ...] = forms.several(None)  # settings chosen by cross-validation
    within: bool = forms.flags()  # whether each fit chose them from its own rows
    weighted: bool = forms.flags()
    by: str | None = forms.choice(None, "class")  # "class": each class has its own quantile

    def least(self, level):
        """Return the guaranteed coverage at a level (Barber et al. 2021, Theorems 1 and 4)."""
        alpha, n, K = 1.0 - level, self.n_units, self.n_fits
        if self.method == "split":
            return level
        slack = 0.0
        if self.method == "cv+":
            slack = min(2.0 * (1.0 - 1.0 / K) / (n / K + 1.0), (1.0 - K / n) / (K + 1.0))
        return max(0.0, 1.0 - 2.0 * alpha - slack)

    def made(self):
        """Return one line of text on how intervals or sets were made."""
        rows = counted(self.n_units, self.unit)
        return {
            "cv+": f"Method: CV+ with {self.n_fits} folds of {rows}",
            "jackknife+": f"Method: jackknife+, leaving out each of {rows}",
            "split": f"Method: split, one fit and {rows} held out",
        }[self.method]

    def words(self, level):
        """Return lines of text on the coverage that is guaranteed at a level."""
        new = "new rows" if self.unit == "row" else "rows of new groups"
        least = f"at least {_percent(self.least(level))} guaranteed"
        about = "" if self.method == "split" else f"about {_percent(level)} in practice"
        drawn = f"{self.unit}s" if self.unit == "row" else "whole groups"
        if self.by == "class":  # the theorem of cv+ counts all rows
            share, rows = about or least, "new rows of each class together"
        else:
            share, rows = ", ".join(filter(None, (least, about))), f"all {new} together"
        lines = [
            f"Coverage at level {level:g}: {share}, over {rows} (not within subgroups), if they "
            f"come from the same population as the {drawn} of the data"
        ]
        if self.chosen and self.method != "split":
            how = "by each fit" if self.within else "once, on all rows, and fixed in the folds"
            lines.append(f"Chosen {how}: {join_words(self.chosen)}")
        if self.weighted:
            lines.append("Training rows have their weights, a new row has the mean weight")
        return lines


def _percent(share):
    return f"{100.0 * share:.1f}".removesuffix(".0") + "%"


ERRORS = ("std_error", "conf_low", "conf_high")
FEW_VALUES = 10  # numbers with at most this many distinct values: each value is a group


def groups_of(data, by, batch):
    """Return a dict: label of a group -> positions of its rows in the batch.

    by : column name or array that defines groups; a number with many values is cut into quarters"""
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
    """Return coverage with standard error and limits, and the means of `means`, as a dict.

    covered (n,) : whether rows are covered; weight (n,) : of the rows; means : dict of arrays
        (n,)"""
    n, total = int((weight > 0).sum()), weight.sum()
    if not total > 0:
        return {"n": n, "coverage": np.nan} | dict.fromkeys((*ERRORS, *means), np.nan)
    p, rows = weight @ covered / total, total**2 / (weight @ weight)  # effective number of rows
    errors = np.sqrt(p * (1.0 - p) / rows), *wilson(p, rows)
    averages = {name: np.average(values, weights=weight) for name, values in means.items()}
    return {"n": n, "coverage": p} | dict(zip(ERRORS, errors, strict=True)) | averages
