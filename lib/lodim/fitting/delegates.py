"""Delegates: methods of every fit that other packages carry out: checks, code, tables, a page."""

from abc import ABC
from collections.abc import Sequence
from typing import Any, Literal

from lodim.checks import one_of
from lodim.design.batch import of_positive_weight
from lodim.diagnostics.findings import Checks
from lodim.errors import ArgumentError
from lodim.fitting import maketables
from lodim.fitting.registry import MODELS
from lodim.typing import Data, FilePath, NewLevels, Offset, Scale


class Delegates(ABC):
    """Methods of every fit that other packages carry out."""

    name: str
    design: Any
    family: Any
    _separates = False  # whether estimates can be infinite
    _separated: Any = ()  # terms whose estimates are
    _cooks_distance: Any = None  # labels and distances of the training rows, where they are known

    # What a model brings -----------------------------------------------------------------------

    def _expressions(self, features, offset):
        """The link scores as nodes (see `lodim.export`), and conditions of rows without answer."""
        raise ArgumentError(f"a fit of {self.name} cannot be written out; save() keeps it")

    def _in_words(self) -> list[str]:
        """Sentences that say what the model is."""
        return [f"{self.name}: {MODELS[self.name]}."]

    def _pictures(self, data) -> list[Any]:
        """Pictures of the model itself, for its page; of the rows of `data` where there are any."""
        return []

    def _plots(self) -> dict[str, Any]:
        """Functions (fit, ax, ...) that draw the kinds of plot() but "calibration", by name."""
        return {}

    def _linear(self):
        """Coefficients (q,) that are linear in the score, covariance (q, q) and names, or None."""
        return None

    # What all models share ---------------------------------------------------------------------

    @property
    def _reader(self) -> Any:
        """The design that new data are read with: a model may need but some of the terms."""
        return self.design

    def plot(self, kind: Any = None, ax: Any = None, **arguments: Any) -> Any:
        """Draw a kind of plot, such as "calibration", on matplotlib Axes and return them.

        See Also
        --------
        report
        """
        from lodim.plot import axes, calibration

        kinds = self._plots() | {"calibration": calibration.calibration}
        return axes.draw(kinds, kind, self, ax, arguments)

    def check(
        self,
        data: Data | None = None,
        *,
        offset: Offset | None = None,
        ignore: Sequence[str] = (),
    ) -> Checks:
        """Look for what may be wrong with the fit, with its training rows, or with new ones.

        Parameters
        ----------
        data : frame, optional
            The training rows, or new rows, with the response or without; which they are is seen
            from their number and their means. Without data only what the fit knows is looked at.
        offset : array (n,) or column name, optional
        ignore : tuple of str
            Codes that are not looked at.

        Returns
        -------
        Checks
            An iterable of findings, each with code, severity ("problem" or "note"), sentence, hint,
            terms and rows. Its print says what was found, what was looked at, and why the rest was
            not.

        Raises
        ------
        ArgumentError
            A code is unknown.
        DataError
            A column is missing or of another kind, or no row is complete.

        See Also
        --------
        evaluate, lodim.compare

        Notes
        -----
        Where chance plays a part, what is healthy is found with a probability of 0.001 over all
        features or classes.

        =============  =======================  ============================================
        code           needs                    is found where
        =============  =======================  ============================================
        convergence                             the optimizer stopped before its tolerance
        separation                              (glm) a maximum likelihood estimate is infinite
        dropped-rows                            more than 10 % of the rows miss values, and were
                                                left out
        constant                                a feature did not vary in training
        grid-end                                the least held-out loss is at the smallest penalty
                                                that was tried
        overfit        (new rows with the       more than half of what the fit explains of the
                       response)                training rows is not explained of rows held out (or
                                                new ones), by more than four standard errors
        wild-values    rows                     a feature or a numeric response has values of a few
                                                rows (1%, or 3) that lie farther from all others
                                                than 10 times the range of these; all models but
                                                glm take the middle of the others for them
        leak           rows with the response   one feature has a correlation of .995 with a number
                                                (of values or ranks), an area under the curve of
                                                .995 between all classes; or the levels of one tell
                                                the classes of 99.5 % of the rows
        copies         rows                     two features of different columns have a
                                                correlation of .995 or more
        identifier     the training rows        a column of whole numbers, of which 90 % differ, is
                                                named like an identifier, such as id
        duplicates     the training rows        1 % of the rows repeat an earlier one, features
                                                and response, ten times as many as by chance
        collinearity   the training rows        (glm, costnet) a variance inflation factor of a
                                                number among the numbers is above 10
        rare-level     the training rows        a level or a class has fewer than 5 rows: of five
                                                folds one or more has none
        empty-cells    the training rows        a combination of levels of crossed factors has no
                                                row, or one
        dispersion     the training rows        (glm, poisson) Pearson's statistic over its degrees
                                                of freedom is below 0.5 or above 1.5, by more than
                                                four standard errors
        zeros          the training rows        (glm, poisson) half as many zeros again as the fit
                                                expects, by more than four standard errors
        influence      the training rows        (glm) Cook's distance is above 1; (others) one row
                                                makes 25 % of the deviance
        extrapolation  new rows                 a value is farther from the mean than any of n
                                                training rows can be, sqrt(n - 1) standard
                                                deviations; a level that training had not
        drift          new rows (20)            the mean of a feature has moved by a quarter of a
                                                standard deviation, and by more than chance
        calibration    new rows (40) with the   intercept and slope on the predictions (on their
                       response                 logits) would take away 2 % of the deviance, and
                                                more than chance
        =============  =======================  ============================================

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
        """Probabilities (n, K) of the rows of known class and weight above 0; codes; weights."""
        batch = of_positive_weight(self._reader.apply(data, offset=offset, response=True))
        batch, _ = self._answered(batch)
        return self._predict(batch, "prob")[0], batch.y.astype(int), batch.row_weights

    def to_python(self, *, new_levels: NewLevels = "error") -> str:
        """The fit as a module of plain Python, which needs neither lodim nor another package.

        Parameters
        ----------
        new_levels : {"error", "missing"}
            What a level that training had not is, as `predict` takes it.

        Returns
        -------
        str
            The text of a module with a function predict(row): a dict of values by column gives what
            `predict` does, a number, or for classes a dict of probabilities by class. A missing
            value is None or NaN, and the answer NaN where `predict` gives NaN. What `predict`
            refuses (an unknown level, a text for a number) is a ValueError. Also refused are
            numbers beyond 1e90, and in cc() and before % numbers more than 1e8 periods from zero,
            where languages round differently. Of a view without classes: a dict of coordinates. The
            text holds what `save` says of single training rows: of `proset` the prototypes, of
            `melm` the coordinates of all rows, of other models nothing.

        Raises
        ------
        ArgumentError
            The model cannot be written as a formula: `ripr`; `melm` with an estimator; an
            offset without a column's name.

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
        """The fit as one query, which gives all columns of a table and the predictions.

        Parameters
        ----------
        dialect : {"duckdb", "postgres"}
            PostgreSQL from version 12 on.
        table : str or tuple of str
            Its name, or names of schema and table; quoted, whatever is in them.
        new_levels : {"error", "missing"}
            What a level that training had not is: NULL is predicted, or it is a missing value.

        Returns
        -------
        str
            The query. Beside the table's columns it gives `prediction`, or for classes a column
            `prob_<class>` each; NULL where `predict` gives NaN, and where the
            module of `to_python` would refuse the row.
            Rows come in any order: keep a key in the table.

        Raises
        ------
        ArgumentError
            As of `to_python`; or another dialect.

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
        """The fit as an ONNX model; needs the extra `onnx`.

        Parameters
        ----------
        new_levels : {"error", "missing"}
            What a level that training had not is: NaN is predicted, or it is a missing value.

        Returns
        -------
        onnx.ModelProto
            Of opset 17, which `onnx.save` writes to a file. It has an input of shape (n, 1) for
            each column, by its name: doubles for numbers and truth values (1 and 0), NaN where
            missing; strings for texts, empty where missing. Its output is `prediction` (n, 1), or
            `probabilities` (n, K) with the classes, as JSON, in the model's metadata; NaN where
            `predict` gives NaN, and where the module of `to_python` would refuse the row. Inverse
            trigonometric and hyperbolic functions are in single precision.

        Raises
        ------
        ArgumentError
            As of `to_python`; or the fit reads no column, has an order of texts in its formula, or
            a level that is empty text.
        MissingExtraError
            onnx is not installed.

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
        """What writers print."""
        from lodim.export.equation import build

        return build(self.name, self._reader, self.family, new_levels, self._expressions)

    def to_marginaleffects(self, data: Data, type: Scale = "response") -> Any:
        """The fit as a model of the package marginaleffects, for its functions.

        Such as `avg_slopes(fit.to_marginaleffects(data))`; predictions(), comparisons(), slopes(),
        datagrid() and the avg_ ones take it.

        Parameters
        ----------
        data : frame
            Rows that effects are of, and averaged over, as a rule those of training. Rows that miss
            a value of the model are left out.
        type : {"response", "link"}
            Of the predictions that are compared.

        Returns
        -------
        ModelAbstract
            Of marginaleffects. Of glm estimates have standard errors, by the covariance of the fit;
            other models have no covariance of estimates, and theirs have none.

        Raises
        ------
        ArgumentError
            The formula has no response, or the offset was an array.
        MissingExtraError
            marginaleffects is not installed.

        See Also
        --------
        tidy, predict

        Examples
        --------
        >>> from marginaleffects import avg_slopes  # doctest: +SKIP
        >>> avg_slopes(fit.to_marginaleffects(cars), by="origin")  # doctest: +SKIP
        """
        from lodim.fitting import marginaleffects

        one_of("type", type, marginaleffects.SCALES)
        if self.design.response is None:
            raise ArgumentError("marginal effects are of a response, and the formula has none")
        return marginaleffects.wrap(self, data, type)

    def report(self, path: FilePath, data: Data | None = None) -> None:
        """Write a page about the fit: one HTML file to look at and to send.

        It says in words what the model is, draws its pictures (what the pointer is on is shown)
        and what each column does, has the summary, and predicts for values that the reader sets.
        It needs no other file and no network. With `data` it holds what the pictures show of its
        rows (at most 1,000) and the ranges of its columns; there each row counts once, whatever its
        weight.

        Parameters
        ----------
        path : path
            Of the file, such as "cars.html"; an existing one is replaced.
        data : frame, optional
            Rows to show, as `predict` takes them; with known responses, how well the fit does on
            them. Without data the ranges of columns are guessed from means and standard
            deviations, where the fit knows them.

        Raises
        ------
        MissingExtraError
            The extra `report` (altair, jinja2) is not installed.
        StoreError
            The file cannot be written.

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

    # What maketables asks for, under its names.

    @property
    def __maketables_coef_table__(self):
        return maketables.coefficients(self)

    @property
    def __maketables_depvar__(self):
        return "" if self.design.response is None else self.design.response.name

    @property
    def __maketables_default_stat_keys__(self):
        return maketables.main_figures(self)

    def __maketables_stat__(self, key):
        return maketables.figure(self, key)
