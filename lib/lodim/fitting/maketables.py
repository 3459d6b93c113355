"""Interface for the package maketables: coefficients, and statistics by name."""

import itertools

import numpy as np
import pandas as pd

from lodim.design.factors import column_with_levels
from lodim.design.frame import in_pandas

# Names in maketables -> columns of tidy() and of glance()
COLUMNS = {"b": "estimate", "se": "std_error", "t": "statistic", "p": "p_value"}
COLUMNS |= {"ci95l": "conf_low", "ci95u": "conf_high"}
FIGURES = {"N": "n", "ll": "log_likelihood"}
FIGURES |= {name: name for name in ("aic", "bic", "df_resid", "deviance", "null_deviance")}
INTERCEPT = "Intercept"  # name in other packages


def coefficients(fit):
    """Return the estimates of a fit with the column names of maketables: b, se, t, p."""
    frame = fit._of_tables()
    keys = [c for c in ("level", "dimension") if c in frame]
    known = _references(fit.design) | {"(Intercept)": INTERCEPT}
    terms = [":".join(known.get(part, part) for part in t.split(":")) for t in frame["term"]]
    names = pd.Series(terms, index=frame.index)
    for key in keys:
        names = frame[key].astype(str) + " | " + names
    found = {new: frame.get(old, np.nan) for new, old in COLUMNS.items()}
    return pd.DataFrame(found, dtype=float).set_axis(pd.Index(names, name="Coefficient"))


def figure(fit, key):
    """Return a statistic of the fit by its name in maketables; None if there is none."""
    if key in ("r2", "pseudo_r2"):
        return fit.dev_ratio if key == main_figures(fit)[1] else None
    row = in_pandas(fit.glance)().iloc[0]
    value = row.get(FIGURES.get(key, ""))
    return None if value is None or pd.isna(value) else value.item()


def main_figures(fit):
    """Return the names of the statistics that tables show by default."""
    return ["N", "r2" if fit.levels is None else "pseudo_r2"]


def _references(design):
    """Return a dict: feature -> name in other packages, as origin[USA] -> origin[T.USA]."""
    names = {}
    for part in itertools.chain.from_iterable(design.terms):
        if column_with_levels(part) and part.matrix is None and len(part.labels) < len(part.levels):
            names |= {f"{part.name}[{k}]": f"{part.name}[T.{k}]" for k in part.labels}
    return names
