"""Methods of all fits that use other packages of lodim: plot, check, report and exports."""

import itertools
from abc import ABC
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from lodim.checks import one_of
from lodim.design.batch import with_positive_weight
from lodim.design.factors import column_with_levels
from lodim.design.frame import in_pandas
from lodim.diagnostics.findings import Checks
from lodim.errors import ArgumentError, MissingExtraError
from lodim.fitting.registry import MODELS
from lodim.typing import Data, FilePath, NewLevels, Offset, Scale

# Names in maketables -> columns of tidy() and of glance()
TABLE_COLUMNS = {"b": "estimate", "se": "std_error", "t": "statistic", "p": "p_value"}
TABLE_COLUMNS |= {"ci95l": "conf_low", "ci95u": "conf_high"}
TABLE_FIGURES = {"N": "n", "ll": "log_likelihood"}
TABLE_FIGURES |= {name: name for name in ("aic", "bic", "df_resid", "deviance", "null_deviance")}
INTERCEPT = "Intercept"  # name in other packages


class Delegates(ABC):
    """Base class of every fit, with methods whose code is in other packages of lodim."""

    name: str
    design: Any
    family: Any
    _separates = False  # whether maximum likelihood estimates can be infinite
    _separated: Any = ()  # terms with infinite estimates
    _cooks_distance: Any = None  # labels and distances of the training rows, or None

    # Provided by each model --------------------------------------------------------------------

    def _expressions(self, features, offset):
        """Return expressions of linear predictors, and conditions under which a prediction is NaN.

        features, offset : expressions of the scaled features and of the offset"""
        raise ArgumentError(f"a fit of {self.name} cannot be exported: use save()")

    def _in_words(self) -> list[str]:
        return [f"{self.name}: {MODELS[self.name]}."]

    def _pictures(self, data) -> list[Any]:
        """Return the pictures of the model for its HTML page, with rows of `data` if given."""
        return []

    def _plots(self) -> dict[str, Any]:
        """Return the model's own kinds of plots, as a dict kind -> function (fit, ax, ...)."""
        return {}

    def _linear(self):
        """Return coefficients (q,), covariance (q, q) and names of a linear model; else None."""
        return None

    # Shared by all models ----------------------------------------------------------------------

    @property
    def _reader(self) -> Any:
        """Design that computes the features of new data, but only those that predictions use."""
        return self.design

    def plot(self, kind: Any = None, ax: Any = None, **arguments: Any) -> Any:
        """Draw a plot of a fit and return its matplotlib Axes.

        kind : such as "calibration"; by default the first kind that accepts the arguments
        ax : Axes to draw on; arguments : arguments of the kind, such as `data`

        See Also
        --------
        report
        """
        from lodim.plot import axes, lines

        kinds = self._plots() | {"calibration": lines.calibration}
        return axes.draw(kinds, kind, self, ax, arguments)

    def check(
        self, data: Data | None = None, *, offset: Offset | None = None, ignore: Sequence[str] = ()
    ) -> Checks:
        """Look for problems of the fit, of its training rows, or of new rows.

        Parameters
        ----------
        data : frame, optional
            Training rows or new rows, with or without the response; None checks only the fit.
        offset : array (n,) or column name, optional
        ignore : tuple of str, default=()
            Codes of checks to skip.

        Returns
        -------
        Checks
            Iterable of findings with code, severity ("problem" or "note"), sentence, hint, terms
            and rows. Its print also lists which checks were made, and why others were not.

        Raises
        ------
        ArgumentError, DataError
            If a code is unknown, a column is missing or of another kind, or no row is complete.

        See Also
        --------
        evaluate, lodim.compare

        Notes
        -----
        The table on the page "How to read the output" says when each check finds something:

        - of the fit: convergence, separation, dropped-rows, constant, grid-end, overfit
        - of any rows: wild-values, missing-code, copies; with the response: leak
        - of the training rows: identifier, duplicates, collinearity, rare-level, empty-cells,
          dispersion, zeros, influence
        - of new rows: extrapolation, drift; with the response: calibration

        Checks that involve chance give a false alarm with probability 0.001.

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.glm("mpg ~ weight + model_year", cars)
        >>> fit.check(cars).codes
        ()
        >>> fit.check(cars[cars["model_year"] > 78]).codes
        ('drift',)
        """
        from lodim.diagnostics.checks import run

        return run(self, data, offset, ignore)

    def _probabilities(self, data, offset):
        """Return the rows' class probabilities (n, K), observed codes (n,) and weights (n,)."""
        batch = with_positive_weight(self._reader.apply(data, offset=offset, response=True))
        batch, _ = self._answered(batch)
        return self._predict(batch, "prob")[0], batch.y.astype(int), batch.row_weights

    def to_python(self, *, new_levels: NewLevels = "error") -> str:
        """Return the fit as a module of plain Python, which needs no package.

        Parameters
        ----------
        new_levels : {"error", "missing"}, default="error"
            Treatment of new levels, as in `predict`.

        Returns
        -------
        str
            Source of a module with predict(row), where row is a dict of values by column; None
            or NaN is missing. It returns the value of `predict`: a number, or a dict by class or
            coordinate. Rows that `predict` refuses raise a ValueError, as do numbers beyond 1e90.
            The text of a `proset` or `melm` contains training rows (prototypes, coordinates).

        Raises
        ------
        ArgumentError
            For models without a formula: `ripr`, `melm` with an estimator, or an offset array.

        See Also
        --------
        to_sql, to_onnx

        Examples
        --------
        >>> import lodim as ld
        >>> cars = {"weight": [1.0, 2.0, 3.0, 4.0], "mpg": [40.0, 31.0, 22.0, 9.0]}
        >>> code = ld.glm("mpg ~ weight", data=cars).to_python()
        >>> module = {}
        >>> exec(code, module)
        >>> round(module["predict"]({"weight": 2.5}), 6)
        25.5
        """
        from lodim.export import python

        return python.write(self._equation(new_levels))

    def to_sql(
        self,
        dialect: Literal["duckdb", "postgres"] = "duckdb",
        table: str | tuple[str, ...] = "data",
        *,
        new_levels: NewLevels = "error",
    ) -> str:
        """Return the fit as a query that adds predictions to the columns of a table.

        Parameters
        ----------
        dialect : {"duckdb", "postgres"}
            PostgreSQL needs version 12 or newer.
        table : str or tuple of str
            Name of the table, or of schema and table; always quoted.
        new_levels : {"error", "missing"}, default="error"
            New levels give NULL, or count as missing values.

        Returns
        -------
        str
            Query that returns the table's columns with `prediction`, or `prob_<class>` for each
            class. They are NULL if `predict` gives NaN, or if `to_python` would refuse the row.
            Rows have no order, so keep a key in the table.

        Raises
        ------
        ArgumentError
            As `to_python`, or for another dialect.

        See Also
        --------
        to_python, to_onnx

        Examples
        --------
        >>> import lodim as ld
        >>> cars = {"weight": [1.0, 2.0, 3.0, 4.0], "mpg": [40.0, 31.0, 22.0, 9.0]}
        >>> query = ld.glm("mpg ~ weight", data=cars).to_sql("postgres", table="cars")
        >>> print(query.splitlines()[2])
        SELECT data.*, answers.*
        """
        from lodim.export import sql

        one_of("dialect", dialect, sql.DIALECTS)
        return sql.write(self._equation(new_levels), dialect, table)

    def to_onnx(self, *, new_levels: NewLevels = "error") -> Any:
        """Return the fit as an ONNX model; needs the extra `onnx`.

        Parameters
        ----------
        new_levels : {"error", "missing"}, default="error"
            New levels give NaN, or count as missing values.

        Returns
        -------
        onnx.ModelProto
            Model of opset 17, with an input (n, 1) per column: doubles (missing: NaN) or strings
            (missing: empty). The output is `prediction` (n, 1), or `probabilities` (n, K) for K
            classes (a JSON list in the metadata). It is NaN if `predict` returns NaN or the module
            of `to_python` raises an error. Some functions, such as arctan, have single precision.

        Raises
        ------
        ArgumentError
            As `to_python`, or if the fit uses no column, compares text, or has an empty level.
        MissingExtraError
            If onnx is not installed.

        See Also
        --------
        to_python, to_sql

        Examples
        --------
        >>> import lodim as ld
        >>> cars = {"weight": [1.0, 2.0, 3.0, 4.0], "mpg": [40.0, 31.0, 22.0, 9.0]}
        >>> model = ld.glm("mpg ~ weight", data=cars).to_onnx()
        >>> [column.name for column in model.graph.input]
        ['weight']
        """
        from lodim.export import onnx

        return onnx.write(self._equation(new_levels))

    def _equation(self, new_levels):
        """Return the Equation (expression tree) of the fit; `new_levels` is as in `predict`."""
        from lodim.export.equation import build

        return build(self.name, self._reader, self.family, new_levels, self._expressions)

    def to_marginaleffects(self, data: Data, type: Scale = "response") -> Any:
        """Return the fit as a model for slopes() and other functions of marginaleffects.

        Parameters
        ----------
        data : frame
            Rows over which effects are averaged, usually training rows, without incomplete ones.
        type : {"response", "link"}, default="response"
            Scale of the predictions.

        Returns
        -------
        ModelAbstract
            Model of the package marginaleffects. Only `glm` has standard errors.

        Raises
        ------
        ArgumentError, MissingExtraError
            If the formula has no response, the offset was an array, or marginaleffects is not
            installed (or is version 0.6 with polars 2).

        See Also
        --------
        tidy, predict

        Examples
        --------
        >>> from marginaleffects import avg_slopes  # doctest: +SKIP
        >>> avg_slopes(fit.to_marginaleffects(cars), by="origin")  # doctest: +SKIP
        """
        one_of("type", type, ("response", "link"))
        if self.design.response is None:
            raise ArgumentError("marginal effects need a response on the left of '~'")
        try:
            from lodim.fitting.marginaleffects_model import wrap
        except ImportError as error:
            what = "to_marginaleffects() needs the package marginaleffects, 0.6 or newer"
            raise MissingExtraError(f"{what}: pip install marginaleffects 'polars<2'") from error
        return wrap(self, data, type)

    def report(self, path: FilePath, data: Data | None = None) -> None:
        """Write an HTML page about the fit to one file, which needs no network.

        It shows the model, its pictures, effects and summary, and predicts for values that the
        reader sets. With `data` the file holds up to 1,000 of its rows, unweighted, and ranges.

        Parameters
        ----------
        path : path
            File to write or replace, such as "cars.html".
        data : frame, optional
            Rows to show, as for `predict`; with responses the page also evaluates the fit. Without
            data, ranges of columns are guessed from means and standard deviations.

        Raises
        ------
        MissingExtraError, StoreError
            If the extra `report` (altair, jinja2) is missing, or the file cannot be written.

        See Also
        --------
        summary

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.glm("mpg ~ weight + origin", data=cars)
        >>> fit.report("cars.html", cars)  # doctest: +SKIP
        """
        from lodim.page import page

        page.write(self, path, data)

    # Interface of maketables, under its names.

    @property
    def __maketables_coef_table__(self):
        frame = self._of_tables()
        keys = [c for c in ("level", "dimension") if c in frame]
        # maketables names the level features of a factor such as origin[T.USA].
        known = {"(Intercept)": INTERCEPT}
        for part in itertools.chain.from_iterable(self.design.terms):
            coded = column_with_levels(part) and part.matrix is None
            if coded and len(part.labels) < len(part.levels):
                known |= {f"{part.name}[{k}]": f"{part.name}[T.{k}]" for k in part.labels}
        terms = [":".join(known.get(part, part) for part in t.split(":")) for t in frame["term"]]
        names = pd.Series(terms, index=frame.index)
        for key in keys:
            names = frame[key].astype(str) + " | " + names
        found = {new: frame.get(old, np.nan) for new, old in TABLE_COLUMNS.items()}
        return pd.DataFrame(found, dtype=float).set_axis(pd.Index(names, name="Coefficient"))

    @property
    def __maketables_depvar__(self):
        return "" if self.design.response is None else self.design.response.name

    @property
    def __maketables_default_stat_keys__(self):
        return ["N", "r2" if self.family.name in ("gaussian", "none") else "pseudo_r2"]

    def __maketables_stat__(self, key):
        if key in ("r2", "pseudo_r2"):
            return self.dev_ratio if key in self.__maketables_default_stat_keys__ else None
        row = in_pandas(self.glance)().iloc[0]
        value = row.get(TABLE_FIGURES.get(key, ""))
        return None if value is None or pd.isna(value) else value.item()
