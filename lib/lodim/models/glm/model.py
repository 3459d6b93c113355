"""glm(): a generalized linear model, from a formula to a fit."""

from typing import Any, ClassVar, Literal

from lodim.errors import DataWarning, warn, warn_not_converged
from lodim.fitting.fit_model import fitted_by
from lodim.fitting.model import Model, Option
from lodim.models.glm.estimate import fit_stages
from lodim.models.glm.fit import GlmFit
from lodim.models.glm.report import NAMED, SATURATED
from lodim.models.glm.settings import Settings, check_trials, needs
from lodim.text import first_names
from lodim.typing import Data, Family, Missing, Offset, RowValues

REFERENCE = """\
@inproceedings{seabold2010statsmodels,
  title     = {statsmodels: Econometric and statistical modeling with {P}ython},
  author    = {Seabold, Skipper and Perktold, Josef},
  booktitle = {Proceedings of the 9th Python in Science Conference},
  year      = {2010}
}"""


class Glm(Model):
    """Generalized linear model: it has no penalty and chooses nothing."""

    name = "glm"
    reference = REFERENCE
    settings = Settings
    families = ("gaussian", "binomial", "multinomial", "poisson", "gamma")
    learning: ClassVar = {"reference_levels": True}
    streams = True
    on_workers = True
    options = (
        Option("--covariance", "covariance", str, "nonrobust (default), HC0 to HC3, or cluster"),
        Option("--clusters", "clusters", str, "column of what rows belong to", "COLUMN"),
    )
    plots = ("coefficients", "residuals", "qq", "leverage")
    validate = staticmethod(check_trials)
    fit_stages = staticmethod(fit_stages)
    needs = staticmethod(needs)

    def assemble(self, problem, estimates, log, selection, for_path):
        """The fit of estimates."""
        log = dict(log)
        fit = GlmFit(
            **problem.common(selection),
            estimates=estimates,
            diagnostics=log.pop("diagnostics"),
            log=log,
            null_deviance=problem.null_deviance(),
        )
        if fit.separated:
            warn_not_converged(
                "the response is separated: no finite estimate exists for "
                f"{first_names(fit.separated, NAMED)}; the values are where the iterations stopped"
            )
        elif not fit.converged:
            warn_not_converged("glm did not converge: raise control={'max_iter': ...}")
        elif fit.df_resid == 0:
            warn(SATURATED, DataWarning)
        return fit


MODEL = Glm()


@fitted_by(MODEL)
def glm(
    formula: str,
    data: Data,
    *,
    family: Family | Literal["poisson", "gamma"] | None = None,
    weights: RowValues | None = None,
    offset: Offset | None = None,
    missing: Missing = "drop",
    covariance: Literal["nonrobust", "HC0", "HC1", "HC2", "HC3", "cluster"] | None = None,
    clusters: RowValues | None = None,
    sample: int | None = None,
    client: Any = None,
    progress: bool | None = None,
    control: dict[str, Any] | None = None,
) -> GlmFit:
    """Generalized linear model by maximum likelihood, with its inference.

    g(E y) = offset + b_0 + x'b, without a penalty: least squares, logistic, multinomial logistic,
    Poisson and gamma regression by statsmodels (of many rows: see Notes), behind the formulas of
    lodim.

    Parameters
    ----------
    formula : str
        Such as "mpg ~ .", "np.log(price) ~ . - id", "y ~ x1 * x2 + bs(age, df=4)". A factor has a
        column for each level but the first, the reference; C(x, Treatment("b")) names another.
        In an interaction it has all levels if the rest of the term is no part of an earlier term,
        as in R.
        Categories in order (of pandas) have orthogonal polynomials, as R's contr.poly; C(x) forgets
        the order.
    data : frame, path or other source
        pandas, polars or pyarrow table, dict of columns, file path or pattern, pyarrow Dataset,
        polars LazyFrame or Dask DataFrame.
    family : {"gaussian", "binomial", "multinomial", "poisson", "gamma"}, optional
        Identity link; logit of the second of two classes; scores of K classes against the first;
        log link of counts; log link of numbers above 0. Default: one of the first three, by the
        response.
    weights : column name, array (n,) or "balanced", optional
        Prior weights, as R's: the variance of a row is dispersion times V(mean) over its weight.
        A class or a count of weight 2 gives the estimates, nonrobust errors and AIC of two rows; it
        is one row for n, degrees of freedom, BIC and robust errors. Rows of weight 0 do not count.
        With family="binomial" and a response of proportions (between 0 and 1, and not only 0 and
        1), the weights are the numbers of trials, as in R.
        "balanced" gives all K classes equal total weight: n / (K n_k) per row of class k.
    offset : column name or array (n,), optional
        A known part of the score (an array (n, K) for K classes).
    missing : {"drop", "indicator"}
        Treatment of missing features. "indicator": a missing number becomes the training mean, with
        an indicator column such as `age[missing]` if training had missing values; a missing
        category is a level. "drop" drops the row, predicted as NaN. Rows without response or weight
        are always dropped.
    covariance : {"nonrobust", "HC0", "HC1", "HC2", "HC3", "cluster"}, optional
        Covariance of the coefficients: assuming the model's variances; robust to variances that
        differ between rows; robust to dependence within clusters. By default "cluster" if
        clusters are given, else "nonrobust".
    clusters : column name or array (n,), optional
        Which rows belong together; a `.` in the formula leaves the column out.
    sample : int, optional
        So many rows alone, drawn at random by where they stand and a fixed seed; all by default.
    client : dask.distributed.Client, optional
        Dask cluster that holds the features of files or a Dask frame.
    progress : bool, optional
        Show progress: True at once, False never, default after three seconds.
    control : dict, optional
        Settings of the algorithm, listed on the page "How glm works": `max_iter`,
        `diagnostic_rows`, `scratch`.

    Returns
    -------
    GlmFit

    Raises
    ------
    FormulaError, DataError, ArgumentError

    Warns
    -----
    ConvergenceWarning
        The iterations did not converge, or the response is separated: then the terms are named
        that have no finite estimate.
    DataWarning
        There are as many coefficients as rows; proportions times numbers of trials are not whole
        numbers of successes; or a feature has a few values far outside all others (see Notes).

    See Also
    --------
    GlmFit

    Notes
    -----
    Columns that are linear combinations of earlier ones are dropped and listed in `fit.aliased`, as
    by R's glm (tolerance 1e-7). Inference uses the t distribution if the dispersion is estimated
    (gaussian, gamma), with the residual degrees of freedom, or G - 1 for G clusters; else the
    normal distribution. The dispersion is Pearson's X2 over the residual degrees of freedom.

    The middle of the other values replaces a few values of a feature that are more than ten ranges
    away from all others, with a warning, as in all models of lodim. R uses such values unchanged; a
    transformation such as `np.log(x)` in the formula keeps them.

    For proportions, residual deviance, degrees of freedom, AIC and BIC are per group of trials, as
    in R; other deviances are means per trial. Predictions are probabilities. Fits to more than
    65,536 rows do not use statsmodels; see the page "How glm works".

    A saved fit holds label, mean, residuals, leverage and Cook's distance of at most
    `diagnostic_rows` training rows. control={"diagnostic_rows": 0} keeps none.

    References
    ----------
    McCullagh & Nelder (1989). Generalized Linear Models, 2nd ed.
    MacKinnon & White (1985). Some heteroskedasticity-consistent covariance matrix estimators with
    improved finite sample properties.
    Seabold & Perktold (2010). statsmodels: econometric and statistical modeling with Python.

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> fit = ld.glm("mpg ~ weight + origin", cars)
    >>> fit.tidy()[["term", "estimate", "std_error", "p_value"]].round(3)
                term  estimate  std_error  p_value
    0    (Intercept)    44.911      0.926    0.000
    1         weight    -0.007      0.000    0.000
    2  origin[Japan]     1.140      0.707    0.107
    3    origin[USA]    -1.215      0.652    0.063
    >>> fit.predict(cars.head(2), "interval").round(2)
         fit  lower  upper  new_lower  new_upper
    0  19.09  18.54  19.63      10.64      27.53
    1  17.76  17.19  18.33       9.31      26.20
    >>> ld.glm("mpg ~ weight", cars).anova(fit).round(3)
                     formula  df_resid  deviance   df      F  p_value
    0           mpg ~ weight       396  7474.814  NaN    NaN      NaN
    1  mpg ~ weight + origin       394  7239.311  2.0  6.409    0.002
    """
