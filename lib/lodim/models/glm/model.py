"""The public function glm() and the model's declaration."""

from typing import Any, ClassVar, Literal, get_args

from lodim.errors import DataWarning, warn, warn_not_converged
from lodim.fitting.fit_model import fitted_by, in_memory
from lodim.fitting.model import Model, Option
from lodim.models.glm.estimate import fit_stages, state_of_residuals, theta_error, with_parameter
from lodim.models.glm.fit import GlmFit
from lodim.models.glm.report import NAMED, SATURATED, exact_fit
from lodim.models.glm.settings import Settings, needs
from lodim.text import first_names
from lodim.typing import Data, Family, Missing, NumberFamily, Offset, RowValues

REFERENCE = """\
@inproceedings{seabold2010statsmodels,
  title     = {statsmodels: Econometric and statistical modeling with {P}ython},
  author    = {Seabold, Skipper and Perktold, Josef},
  booktitle = {Proceedings of the 9th Python in Science Conference},
  year      = {2010}
}"""


class Glm(Model):
    """The model glm: its settings, and the steps from data to a fit."""

    name = "glm"
    reference = REFERENCE
    settings = Settings
    families = (*Model.families, *get_args(NumberFamily), "negative_binomial", "ordinal")
    learning: ClassVar = {"reference_levels": True}
    streams = True
    on_workers = True
    options = (
        Option("--covariance", "covariance", str, "nonrobust (default), HC0 to HC3, or cluster"),
        Option("--clusters", "clusters", str, "column of clusters", "COLUMN"),
    )
    plots = ("coefficients", "residuals", "qq", "leverage")
    fit_stages = staticmethod(fit_stages)
    needs = staticmethod(needs)

    def validate(self, problem):
        batch = problem.batch
        if problem.family.name == "quantile":
            batch = in_memory("family='quantile' of glm", batch)
        return problem.with_rows(batch)

    def learn_family(self, batch, family, settings):
        family = super().learn_family(batch, family, settings)
        return with_parameter(batch, family, settings) if family.learn is not None else family

    def assemble(self, problem, estimates, log, selection, for_path):
        exact, changes = state_of_residuals(problem, estimates)
        log = log | {"theta_error": theta_error(problem, estimates)}
        log |= {"exact": log["exact"] or exact, "converged": log["converged"] and not changes}
        fit = GlmFit(
            **problem.common(selection),
            estimates=estimates,
            diagnostics=log.pop("diagnostics"),
            log=log,
            null_deviance=problem.null_deviance() * log["sum_weights"],
        )
        if fit.separated:
            warn_not_converged(
                "the response is separated: no finite estimate exists for "
                f"{first_names(fit.separated, NAMED)}; leave these terms out, or use a penalized "
                "model"
            )
        elif not fit.converged:
            warn_not_converged("glm did not converge: raise control={'max_iter': ...}")
        elif fit.df_resid == 0:
            warn(SATURATED, DataWarning)
        elif log["exact"]:
            warn(exact_fit(fit), DataWarning)
        return fit


MODEL = Glm()


@fitted_by(MODEL)
def glm(
    formula: str,
    data: Data,
    *,
    family: Family | NumberFamily | Literal["negative_binomial", "ordinal"] | None = None,
    power: float | None = None,
    quantile: float | None = None,
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
    """Fit a generalized linear model by maximum likelihood, with standard errors and tests.

    With link g, the model is g(E y) = offset + b_0 + x'b, without a penalty.

    Parameters
    ----------
    formula : str
        Such as "mpg ~ .", "np.log(price) ~ . - id", "y ~ x1 * x2 + bs(age, df=4)". A factor has a
        column for each level except the reference, the first or by C(x, Treatment("b")). In an
        interaction it has all levels, as in R, unless the same interaction without this factor is
        an earlier term. Ordered pandas categories are coded by orthogonal polynomials; C(x) ignores
        the order.
    data : frame, path or other source
        pandas, polars or pyarrow table, dict of columns, file path or pattern, pyarrow Dataset,
        polars LazyFrame or Dask DataFrame.
    family : str, optional
        "gaussian", "binomial" or "multinomial", by default depending on the response: identity
        link; logit of the second of two classes; logits of K classes against the first. With a log
        link: "poisson" for counts; "negative_binomial" for counts with variance mu + mu^2 / theta,
        theta estimated; "gamma" for numbers above 0; "tweedie" for amounts of which some are 0.
        "ordinal" for at least three classes in order (an ordered pandas category, or numbers): the
        log-odds of a class above a threshold are x'b minus the threshold, as in R's polr.
        "quantile": x'b is a quantile of a number; its check loss is exact here, but smoothed in
        `gbmap` and `costnet`. "huber": a number with outliers; the loss is linear in residuals
        above 1.345 robust standard deviations of the residuals, as in statsmodels' RLM.
    power, quantile : float, optional
        Power (1 to 2) of the mean in the variance of "tweedie"; quantile to predict, such as 0.9.
    weights : column name, array (n,) or "balanced", optional
        Prior weights, as in R: the variance of a row is dispersion times V(mean) divided by its
        weight. A row of weight 2 gives the estimates of two rows, but counts as one row in n,
        degrees of freedom, BIC and robust errors. Rows of weight 0 do not count.
        "balanced" gives all K classes equal total weight. For proportions (family="binomial"), the
        weights are the numbers of trials, as in R.
    offset : column name or array (n,), optional
        Known part of the linear predictor (an array (n, K) for K classes).
    missing : {"drop", "indicator"}, default="drop"
        "indicator": a missing number becomes the training mean, with an indicator column such as
        `age[missing]`; a missing category is a level. "drop" drops the row, predicted as NaN. Rows
        without response or weight are always dropped.
    covariance : {"nonrobust", "HC0", "HC1", "HC2", "HC3", "cluster"}, optional
        "nonrobust" assumes the model's variances; "HC0" to "HC3" are robust to other variances,
        "cluster" to dependence within clusters. By default "cluster" if clusters are given,
        otherwise "nonrobust", the only choice for "quantile" and "huber".
    clusters : column name or array (n,), optional
        Cluster of each row; a `.` in the formula does not include this column.
    sample : int, optional
        Fit only this many rows, drawn at random with a fixed seed; all by default.
    client : dask.distributed.Client, optional
        Dask cluster that holds the features of files or a Dask frame.
    progress : bool, optional
        Show progress: True at once, False never, default after three seconds.
    control : dict, optional
        Settings explained on the page "How glm works": `max_iter`, `diagnostic_rows`, `scratch`.

    Returns
    -------
    GlmFit

    Raises
    ------
    FormulaError, DataError, ArgumentError

    Warns
    -----
    ConvergenceWarning
        If the iterations did not converge, or the response is separated (infinite estimates).
    DataWarning
        If there are as many coefficients as rows, if the model fits the response exactly (standard
        errors are then rounding errors), if proportions times numbers of trials are not
        whole numbers, or if a feature has a few values far from all others (see Notes).

    See Also
    --------
    GlmFit

    Notes
    -----
    Columns that are linear combinations of earlier columns are dropped and listed in `fit.aliased`,
    as by R's glm. Inference uses the t distribution if the dispersion is estimated (gaussian,
    gamma, tweedie; Pearson's X2 over the residual degrees of freedom), with the residual degrees of
    freedom, or G - 1 for G clusters; else the normal distribution.

    Standard errors for "quantile" and "huber" assume errors of the same distribution in all rows.
    They are those of statsmodels (vcov="iid" of QuantReg, cov="H1" of RLM) with the t distribution.
    For "quantile", all rows must fit into memory; with weights, errors must be inversely
    proportional to the weights, as in R's quantreg. Extreme quantiles of few rows have no standard
    errors (NaN): 0.9 needs at least 42 rows.

    A few values of a feature that are far from all others are replaced by the middle of the others,
    with a warning. R uses them unchanged, and so does a term such as `np.log(x)`.

    For proportions, residual deviance, degrees of freedom, AIC and BIC are per group of trials, as
    in R; other deviances are means per trial. Predictions are probabilities.

    A saved fit holds label, mean, residuals, leverage and Cook's distance of at most
    `diagnostic_rows` training rows. control={"diagnostic_rows": 0} keeps none.

    References
    ----------
    McCullagh & Nelder (1989). Generalized Linear Models, 2nd ed. MacKinnon & White (1985). Some
    heteroskedasticity-consistent covariance matrix estimators. Seabold & Perktold (2010).
    statsmodels: econometric and statistical modeling with Python. Koenker (2005). Quantile
    Regression. Huber & Ronchetti (2009). Robust Statistics, 2nd ed.

    Examples
    --------
    >>> import lodim as ld
    >>> fit = ld.glm("mpg ~ weight", ld.data("autompg"))
    >>> fit.tidy()[["term", "estimate", "std_error", "p_value"]].round(3)
              term  estimate  std_error  p_value
    0  (Intercept)    46.317      0.795      0.0
    1       weight    -0.008      0.000      0.0
    """
