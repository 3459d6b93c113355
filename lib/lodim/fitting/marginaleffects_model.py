"""A fit as a model of the package marginaleffects; imported only if that package is used."""

import contextlib
from importlib.metadata import version

import numpy as np
import pandas as pd
import polars as pl
from marginaleffects.classes import ModelAbstract, ModelVault

from lodim.design import columns, factors
from lodim.design.frame import in_pandas, read_column, read_frame
from lodim.errors import ArgumentError, DataError, DataWarning, MissingExtraError, warn

# Shift of the coefficients passed to marginaleffects, in standard errors.
# Its steps for derivatives are 1.5e-8 of the coefficient. With the shift they are 1e-4 to 1e-3
# standard errors, large compared with the rounding errors of slopes.
SHIFT = 1e5


def wrap(fit, data, type):
    """Return a fit, with data and `type` of predictions, as a model for marginaleffects."""
    known, polars = version("marginaleffects"), pl.__version__
    if known.startswith("0.6.") and not polars.startswith(("0.", "1.")):
        what = f"marginaleffects {known} does not work with polars {polars}"
        raise MissingExtraError(f"{what}: pip install 'polars<2'")
    design = fit._reader
    frame = read_frame(data)
    needed = [*dict.fromkeys([*factors.columns_of(design.response.key), *design.features])]
    if design.offset_given and design.offset is None:
        raise ArgumentError("the offset must be the name of a column, not an array: fit again")
    needed += [design.offset] if design.offset_given else []
    read = {name: read_column(frame, name) for name in needed}
    for name in frame.names:  # other columns may be used for grouping
        with contextlib.suppress(DataError):
            read[name] = read_column(frame, name)
    as_levels = {factors.column_with_levels(part) for term in design.terms for part in term}
    read = {k: columns.as_levels(v) if k in as_levels else v for k, v in read.items()}
    return LodimModel(fit, type, complete_rows(read, needed), needed, _texts(read))


def _texts(read):
    """Return a dict column -> {text: level}, such as {"1.0": 1.0}, to convert texts back to levels.

    read : dict name -> Column; those without levels, or with text or bool levels, are left out"""
    return {
        name: {str(level): level for level in column.levels}
        for name, column in read.items()
        if column.kind == "level" and not all(isinstance(v, str | bool) for v in column.levels)
    }


class LodimModel(ModelAbstract):
    """A fit and its data with the interface that the package marginaleffects expects."""

    _n_offsets = 0  # columns in addition to the design matrix

    def __init__(self, fit, type, data, needed, texts):
        self._type, self._needed, self._texts = type, needed[1:], texts
        coef, cov, names = fit._linear() or (None, None, None)
        if coef is not None:
            self._coef, self._shift = coef, SHIFT * np.sqrt(np.diag(cov))
            coef = coef + self._shift
        super().__init__(
            fit,
            ModelVault(
                coef=coef,
                coefnames=names,
                vcov=cov,
                formula=lambda frame: (None, frame),  # get_exog() does without one
                modeldata=data,
                package="lodim",
                variable_names=[needed[0], *fit._reader.features],
            ),
        )

    @property
    def df_resid(self):
        return float(getattr(self.model, "_df_of_t", np.inf))

    def get_vcov(self, vcov=True):
        if not isinstance(vcov, bool):
            raise ArgumentError(
                f"vcov must be True, False or a matrix, not {vcov!r}: the covariance is that "
                "of the fit, such as glm(..., covariance='HC3')"
            )
        return self.vault.vcov if vcov else None

    def get_exog(self, newdata):
        # For a linear model, the design matrix and the offset.
        if self.vault.coef is None:
            return newdata
        X, offset = self.model._matrix(self._frame(newdata))
        self._n_offsets = 0 if offset is None else offset.shape[1]
        return X if offset is None else np.hstack([X, offset])

    def get_predict(self, params, newdata):
        if self.vault.coef is None:
            values = in_pandas(self.model.predict)(self._frame(newdata), self._type)
            levels = [*values] if isinstance(values, pd.DataFrame) else None
            return self._long(values.to_numpy(float), levels)
        q = newdata.shape[1] - self._n_offsets
        offset = newdata[:, q:] if self._n_offsets else None
        coef = self._coef + (np.asarray(params) - self.vault.coef)
        values = self.model._predictions_of(coef, newdata[:, :q], offset, self._type)
        return self._long(values, self.model.levels)

    def get_autodiff_args(self):
        return "models of lodim"

    def _long(self, values, levels):
        """Return predictions (n,), or (n, K) for K `levels`, as a polars frame in long format."""
        rows = pl.Series("rowid", range(len(values)), dtype=pl.Int32)
        if values.ndim == 1:
            return pl.DataFrame([rows, pl.Series("estimate", values)])
        wide = pl.DataFrame({str(k): values[:, j] for j, k in enumerate(levels)})
        names = {"index": "rowid", "variable_name": "group", "value_name": "estimate"}
        long = wide.with_columns(rows).unpivot(**names)
        return long.sort("group", "rowid")

    def _frame(self, newdata):
        return {name: self._values(newdata[name]) for name in self._needed}

    def _values(self, series):
        known = self._texts.get(series.name)
        if known is None:
            return series.to_numpy()
        return np.array([known.get(str(v), v) for v in series.to_list()], dtype=object)


def complete_rows(read, needed):
    """Return a dict of Columns as a polars frame, without rows that miss a value in `needed`."""
    frame = pl.DataFrame([_series(column) for column in read.values()])
    whole = frame.drop_nulls(needed)
    if len(whole) < len(frame):
        some = f"{len(frame) - len(whole)} of {len(frame)} rows"
        warn(f"{some} have missing values and are left out", DataWarning)
    return whole


def _series(column):
    if column.kind != "level":
        return pl.Series(column.name, column.values, nan_to_null=True)
    if column.levels == (False, True):
        names, kind = [False, True], pl.Boolean
    else:
        names = [str(level) for level in column.levels]
        kind = pl.Enum(names)
    values = np.array([*names, None], object)[column.codes]
    return pl.Series(column.name, values.tolist(), dtype=kind)
