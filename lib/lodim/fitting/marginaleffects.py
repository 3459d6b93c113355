"""A fit as a model of the package marginaleffects, through its interface for models of others."""

import contextlib
import functools

import numpy as np
import pandas as pd

from lodim.design import columns, factors
from lodim.errors import ArgumentError, DataError, DataWarning, MissingExtraError, warn

SCALES = ("response", "link")
# Of a coefficient's standard error, the shift of what marginaleffects takes for the coefficient.
# Its steps for derivatives are 1.5e-8 of that: 1e-4 to 1e-3 standard errors hold out against the
# rounding of slopes, which are themselves differences of predictions 1e-4 apart.
SHIFT = 1e5


def wrap(fit, data, type):
    """The ModelAbstract of marginaleffects over a fit and data; see `Fit.to_marginaleffects`."""
    design = fit._reader
    frame = columns.read_frame(data)
    needed = [*dict.fromkeys([*factors.columns_of(design.response.key), *design.features])]
    if design.offset_given and design.offset is None:
        raise ArgumentError("the offset was an array: fit with a column's name instead")
    needed += [design.offset] if design.offset_given else []
    read = {name: columns.read_column(frame, name) for name in needed}
    for name in frame.names:  # others are of use to group by
        with contextlib.suppress(DataError):
            read[name] = columns.read_column(frame, name)
    as_levels = {factors.column_with_levels(part) for term in design.terms for part in term}
    read = {k: columns.as_levels(v) if k in as_levels else v for k, v in read.items()}
    return _model_class()(fit, type, _complete(read, needed), needed, _texts(read))


def _texts(read):
    """Of columns whose levels are no text, nor true and false, the levels by their text."""
    return {
        name: {str(level): level for level in column.levels}
        for name, column in read.items()
        if column.kind == "level" and not all(isinstance(v, str | bool) for v in column.levels)
    }


def _complete(read, needed):
    """A polars DataFrame of columns, without the rows in which one that is needed is missing."""
    import polars as pl

    frame = pl.DataFrame([_series(pl, column) for column in read.values()])
    whole = frame.drop_nulls(needed)
    if len(whole) < len(frame):
        warn(
            f"{len(frame) - len(whole)} of {len(frame)} rows miss a value of the model, and are "
            "left out",
            DataWarning,
        )
    return whole


def _series(pl, column):
    if column.kind != "level":
        return pl.Series(column.name, column.values, nan_to_null=True)
    if column.levels == (False, True):
        names, kind = [False, True], pl.Boolean
    else:
        names = [str(level) for level in column.levels]
        kind = pl.Enum(names)
    values = np.array([*names, None], object)[column.codes]
    return pl.Series(column.name, values.tolist(), dtype=kind)


@functools.cache
def _model_class():
    """The class, made when it is first asked for: marginaleffects is no dependency of lodim."""
    try:
        import polars as pl
        from marginaleffects.classes import ModelAbstract, ModelVault
    except ImportError as error:
        raise MissingExtraError(
            "to_marginaleffects() needs the package marginaleffects, 0.6 or newer: "
            "pip install marginaleffects"
        ) from error

    class LodimModel(ModelAbstract):
        """A fit of lodim: predictions of data, at its coefficients or near them."""

        _n_offsets = 0  # columns beside the design matrix

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
            # Of a linear model the design matrix, with the offset beside it.
            if self.vault.coef is None:
                return newdata
            X, offset = self.model._matrix(self._frame(newdata))
            self._n_offsets = 0 if offset is None else offset.shape[1]
            return X if offset is None else np.hstack([X, offset])

        def get_predict(self, params, newdata):
            if self.vault.coef is None:
                values = self.model.predict(self._frame(newdata), self._type)
                levels = [*values] if isinstance(values, pd.DataFrame) else None
                return self._long(values.to_numpy(float), levels)
            q = newdata.shape[1] - self._n_offsets
            offset = newdata[:, q:] if self._n_offsets else None
            coef = self._coef + (np.asarray(params) - self.vault.coef)
            values = self.model._at(coef, newdata[:, :q], offset, self._type)
            return self._long(values, self.model.levels)

        def get_autodiff_args(self):
            return "models of lodim"

        def _long(self, values, levels):
            """Predictions (n,) or (n, K) as a frame of one a row, and of each class."""
            rows = pl.Series("rowid", range(len(values)), dtype=pl.Int32)
            if values.ndim == 1:
                return pl.DataFrame([rows, pl.Series("estimate", values)])
            wide = pl.DataFrame({str(k): values[:, j] for j, k in enumerate(levels)})
            long = wide.with_columns(rows).unpivot(
                index="rowid", variable_name="group", value_name="estimate"
            )
            return long.sort("group", "rowid")

        def _frame(self, newdata):
            return {name: self._values(newdata[name]) for name in self._needed}

        def _values(self, series):
            known = self._texts.get(series.name)
            if known is None:
                return series.to_numpy()
            return np.array([known.get(str(v), v) for v in series.to_list()], dtype=object)

    return LodimModel
