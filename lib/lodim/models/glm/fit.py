"""GlmFit: the fit that glm() returns."""

from copy import copy
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from lodim import forms
from lodim.checks import flag, one_of, share
from lodim.errors import ArgumentError, DataWarning, warn
from lodim.fitting import saved
from lodim.fitting.fit import Fit
from lodim.models.glm import intervals, report
from lodim.models.glm.described import Described
from lodim.models.glm.estimates import LOG, Diagnostics, Estimates, design_matrix, score_nodes
from lodim.models.glm.likelihood import all_scores
from lodim.models.glm.settings import Settings
from lodim.report.tables import Report
from lodim.text import first_few
from lodim.typing import Data, FilePath, NewLevels, Offset, Prediction

LEVEL = 0.95
RATIOS = ("estimate", "conf_low", "conf_high")  # tidy(exponentiate=True): exp() of these
MEASURES: tuple[str, ...] = ("df", "df_resid", "deviance", "null_deviance", "dev_ratio")
MEASURES += ("log_likelihood", "aic", "bic", "dispersion", "converged")  # of glance()
PlotKind: TypeAlias = Literal["coefficients", "residuals", "qq", "leverage", "calibration"]


class GlmFit(Described, Fit):
    """Generalized linear model fitted by maximum likelihood, with standard errors and tests.

    Attributes
    ----------
    estimates : Estimates
        Coefficients on centred, scaled features and their covariance; `tidy` has the data's units.
    n, df, df_resid : int
        Rows with positive weight; estimated coefficients; residual degrees of freedom.
    dispersion : float
        Pearson's estimate for gaussian (the residual variance), gamma and tweedie. For quantile and
        huber, the covariance of the estimates is this number times (X'X)^-1. Otherwise 1.
    theta, theta_error : float
        Parameter of the negative binomial with its standard error; NaN for other families.
    deviance, null_deviance : float
        Deviance of this and of the intercept-only model: sums over the rows, as in R.
    log_likelihood, aic, bic : float
        As in R: estimated dispersion or theta is a parameter. NaN for tweedie, quantile, huber.
    diagnostics : Diagnostics or None
        Residuals, leverages and Cook's distances of training rows, as `plot` shows them.
    aliased : dict of str to str
        Terms that are linear combinations of earlier ones, not estimated, such as {"x2": "x1"}.
    separated : list of str
        Terms whose maximum likelihood estimate is infinite.

    See Also
    --------
    glm, GlmFit.anova, GlmFit.drop1

    Examples
    --------
    >>> import lodim as ld
    >>> fit = ld.glm("mpg ~ weight + model_year", ld.data("autompg"))
    >>> fit.n, fit.df, round(fit.aic, 1)
    (398, 3, 2116.7)
    """

    name = "glm"
    _estimate_name = "coefficient"
    _level = LEVEL  # confidence of the intervals of summary()
    _answers_all = False  # True: predict rows that are not estimable too

    settings = saved.settings(Settings)
    estimates: Estimates = forms.part(Estimates)
    diagnostics: Diagnostics | None = forms.optional(forms.part(Diagnostics))
    null_deviance: float = forms.squares()
    log: dict[str, Any] = forms.part(LOG)

    # The contract of Fit -----------------------------------------------------------------------

    @property
    def types(self) -> tuple[str, ...]:  # type: ignore[override]
        """Values of `type` that predict() accepts for the family."""
        if self.levels is None:
            return ("response", "link", "interval")
        classes = ("response", "link", "class", "prob")
        return classes if self.family.several_classes else (*classes, "interval")

    def _score(self, batch):
        X = design_matrix(batch)
        score = self.estimates.score(X, self.family)
        unknown = ~self.estimates.is_estimable(X)
        if not self._answers_all:
            score[unknown] = np.nan
        elif unknown.any():
            names = first_few(list(self.aliased))
            what = (
                f"{unknown.sum()} of {len(X)} rows need a coefficient that could not be estimated"
            )
            warn(f"{what} ({names}): they are predicted with coefficient zero", DataWarning)
        return score + batch.offset_matrix(self.family.n_scores)

    def _expressions(self, features, offset):
        return score_nodes(self.estimates, self.family, features, offset)

    def predict(
        self,
        data: Data,
        type: Prediction | Literal["interval"] = "response",
        *,
        offset: Offset | None = None,
        level: float | None = None,
        new_levels: NewLevels = "error",
        threshold: float | None = None,
        rank_deficient: Literal["missing", "zero"] = "missing",
        output: FilePath | None = None,
    ) -> pd.Series | pd.DataFrame:
        """Return predictions with one row for each row of `data`, in its order and with its index.

        Parameters
        ----------
        data : frame
            New data; needs the columns of the formula's right side, and of the offset if any.
        type : str
            "response": mean (or quantile) of the response, or probabilities (of the second of two
            classes, or of each). "link": linear predictors; for ordered classes the log-odds of
            each class or a higher one. "class": most probable class. "prob": probability of each
            class. "interval" (for numbers and two classes): columns fit, lower and upper, the
            confidence interval of the mean or quantile; for numbers also new_lower and new_upper, a
            prediction interval for a new observation of weight one (not for proportions, tweedie,
            quantile and huber).
        offset : array (n,) or column name, optional
            Known part of the linear predictor of these rows.
        level : float
            Confidence level for type="interval"; 0.95 by default.
        new_levels : {"error", "missing"}
            Levels that did not occur in training: an error, or treated as missing.
        threshold : float, optional
            Probability from which the second of two classes is predicted, for type="class". If a
            missed case costs c times a false alarm, use 1 / (1 + c).
        rank_deficient : {"missing", "zero"}, default="missing"
            Prediction of rows in which an aliased column is not the same combination of other
            columns as in training: missing, or with the aliased coefficient taken as zero and a
            warning, as in R. Intervals are always missing.

        Returns
        -------
        Series or DataFrame
            NaN (None for classes) in rows where an input is missing, or by `rank_deficient`.

        Warns
        -----
        DataWarning
            If rank_deficient="zero" and some rows are not estimable. Also for new_lower and
            new_upper with covariance="HC0" to "HC3": they assume the family's variance in all rows.

        See Also
        --------
        augment, evaluate

        Notes
        -----
        Intervals of the mean are symmetric on the scale of the link. The prediction interval is
        exact for a gaussian family with nonrobust errors; with robust errors, its variance is the
        sum of the robust variance of the mean and the dispersion, with Satterthwaite's degrees of
        freedom. For poisson and gamma, the limits are quantiles of the family's distribution mixed
        over the normal distribution of the linear predictor.

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.glm("mpg ~ weight + model_year", cars)
        >>> fit.predict(cars[:2], "interval").round(1)
            fit  lower  upper  new_lower  new_upper
        0  15.4   14.8   16.1        8.6       22.2
        1  14.2   13.5   14.8        7.4       20.9
        """
        one_of("rank_deficient", rank_deficient, ("missing", "zero"))
        if type != "interval":
            if level is not None:
                raise ArgumentError(f"level= needs type='interval', not {type!r}")
            fit = copy(self)
            fit._answers_all = rank_deficient == "zero"
            return fit._predict_rows(data, type, offset, new_levels, threshold)
        self._check_threshold(threshold, type)
        level = share("level", LEVEL if level is None else level)
        batch = self.design.apply(data, offset=offset, new_levels=new_levels)
        score = self._score(batch)[:, 0]
        error, df = self.estimates.standard_error(design_matrix(batch)), self._df_of_t
        reach = intervals.critical(level, df) * error
        ends = (score, score - reach, score + reach)
        parts = [np.column_stack([self.family.mean(end[:, None]) for end in ends])]
        names = ["fit", "lower", "upper"]
        unknown = self.family.m_estimation or self.family.name in ("binomial", "tweedie")
        if self.levels is None and not unknown:
            if self.log["covariance"].startswith("HC"):
                warn(
                    f"new_lower and new_upper assume the variance of the {self.family.name} "
                    f"family, although covariance={self.log['covariance']!r} does not; "
                    "lodim.conformal gives intervals without this assumption",
                    DataWarning,
                )
            variance = self.dispersion, self.df_resid
            parts += [intervals.of_observation(self.family, score, error, level, df, *variance)]
            names += ["new_lower", "new_upper"]
        return self._in_all_rows(batch, np.hstack(parts), names)

    def tidy(self, level: float = LEVEL, exponentiate: bool = False) -> pd.DataFrame:
        """Return one row per coefficient, in units of the data, with standard error and test.

        Parameters
        ----------
        level : float, default=0.95
            Confidence of the limits.
        exponentiate : bool, default=False
            Apply exp() to `estimate`, `conf_low` and `conf_high` (not to `std_error`, as in R's
            broom): odds ratios for binomial and multinomial, ratios of means for a log link. An
            ArgumentError for the identity link (gaussian, quantile, huber).

        Returns
        -------
        DataFrame
            Columns: term, estimate, std_error, statistic (t if the dispersion is estimated, else
            z), p_value (two-sided), conf_low, conf_high; for several unordered classes also level,
            compared with the first. With ordered classes, the last terms are thresholds, such as
            "low|high". All values are NaN for aliased terms, all but estimate for separated ones.

        See Also
        --------
        covariance, glance

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.glm("mpg ~ weight + model_year", ld.data("autompg"))
        >>> fit.tidy().round(4).iloc[:, :3]
                  term  estimate  std_error
        0  (Intercept)  -14.1980     3.9677
        1       weight   -0.0067     0.0002
        2   model_year    0.7566     0.0490
        """
        level = share("level", level)
        flag("exponentiate", exponentiate)
        if exponentiate and self.family.link == "identity":
            what = "exponentiate=True needs a log, logit or softmax link"
            raise ArgumentError(f"{what}; family {self.family.name!r} has the identity link")
        coef, _, error = self.estimates.in_units_of_data(self.design.mean, self.design.scale)
        error[self._infinite] = np.nan
        if self.family.shared_slopes:
            coef, error = self._ordered_terms(coef), np.abs(self._ordered_terms(error))
        columns = intervals.inference(coef, error, self._df_of_t, level)
        if exponentiate:
            with np.errstate(over="ignore"):
                columns |= {name: np.exp(columns[name]) for name in RATIOS}
        frames, terms, kept = [], self._terms, self.estimates.kept
        if self.family.shared_slopes:
            terms = [*terms[1:], *self._thresholds]
            kept = np.append(kept[1:] - 1, np.arange(len(self.design.names), len(terms)))
        for s in range(coef.shape[1]):
            frame = pd.DataFrame({name: values[:, s] for name, values in columns.items()})
            frame.index = kept
            frame = frame.reindex(range(len(terms))).reset_index(drop=True)
            frame.insert(0, "term", terms)
            if coef.shape[1] > 1:
                frame.insert(0, "level", self.design.levels[s + 1])
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def glance(self) -> pd.DataFrame:
        """Return one row: family, sizes, df, deviances, likelihood, AIC, BIC, dispersion.

        deviance (residual, with df_resid degrees of freedom) and null_deviance are sums over the
        rows, as in R; other models have means. log_likelihood, aic and bic are NaN for tweedie,
        quantile and huber, of which lodim computes no likelihood.

        See Also
        --------
        tidy, anova, drop1, summary

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.glm("mpg ~ weight + model_year", ld.data("autompg"))
        >>> fit.glance()[["n", "df", "aic"]].round(1)
             n  df     aic
        0  398   3  2116.7
        """
        row = {"family": self.family.name, "n": self.n, "n_dropped": self.design.n_dropped}
        row |= {"p": len(self.design.names)} | {name: getattr(self, name) for name in MEASURES}
        return pd.DataFrame([row])

    def summary(self, *, full: bool = False, level: float = LEVEL) -> Report:
        """Return a printed report of the fit: text, HTML in notebooks, LaTeX by `as_latex()`.

        Parameters
        ----------
        full : bool, default=False
            Show all rows of every table instead of the first ones.
        level : float, default=0.95
            Confidence of the intervals.

        See Also
        --------
        tidy, glance, report

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.glm("mpg ~ weight + model_year", ld.data("autompg"))
        >>> str(fit.summary(level=0.9)).count("90% interval")
        1
        """
        fit = copy(self)
        fit._level = share("level", level)
        return super(GlmFit, fit).summary(full=full)

    _summary = report.summary
    _listing = report.listing
    _in_words = report.words
    _pictures = report.pictures

    def _plots(self):
        from lodim.models.glm.plots import KINDS

        return KINDS

    def plot(self, kind: PlotKind | None = None, ax: Any = None, **arguments: Any) -> Any:
        """Draw on matplotlib Axes and return them.

        Parameters
        ----------
        kind : str
            By default "coefficients". Kinds and their arguments:
            "coefficients" (top=20, level=0.95): estimates per standard deviation with intervals.
            "residuals" (named=3): deviance residuals against fitted values.
            "qq" (named=3): quantiles of deviance residuals against normal quantiles.
            "leverage" (named=3): Pearson residuals against leverages, with lines of Cook's distance
            0.5 and 1 if rows are close to them.
            "calibration" (data, level=None, bins=10, offset=None): observed share of a class
            against its predicted probability.
            The `named` most extreme rows are labelled.
        ax : Axes, optional

        See Also
        --------
        augment, report

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.glm("mpg ~ weight + model_year", ld.data("autompg"))
        >>> ax = fit.plot("residuals")
        """
        return super().plot(kind, ax, **arguments)

    def _linear(self):
        coef, cov, _ = self.estimates.in_units_of_data(self.design.mean, self.design.scale)
        names = self._kept_terms
        if coef.shape[1] > 1:
            names = [f"{level}: {term}" for level in self.levels[1:] for term in names]
        if self.separated or not np.isfinite(cov).all():
            return None
        return coef.ravel(order="F"), cov, np.array(names)

    def _ordered_terms(self, values):
        """Return a column of slopes, then thresholds, from values (q, S), intercepts in row 0."""
        return np.append(values[1:, 0], -values[0])[:, None]

    def _matrix(self, data):
        """Return (unscaled design matrix, offset or None); rows without a prediction have NaN."""
        batch = self.design.apply(data)
        X = design_matrix(batch)
        X[~self.estimates.is_estimable(X)] = np.nan
        X[:, 1:] = X[:, 1:] * self.design.scale + self.design.mean
        full = np.full((len(batch.index), len(self.estimates.kept)), np.nan)
        full[batch.rows] = X[:, self.estimates.kept]
        if not self.design.offset_given:
            return full, None
        offset = np.full((len(full), self.family.n_scores), np.nan)
        offset[batch.rows] = batch.offset_matrix(self.family.n_scores)
        return full, offset

    def _predictions_of(self, coef, X, offset, type):
        """Predict rows by given coefficients: means for `type` "response", else linear predictors.

        coef : coefficients of unscaled features, one linear predictor after another
        X : design matrix, with the constant"""
        score = all_scores(X @ coef.reshape(X.shape[1], -1, order="F"), self.family)
        score = score if offset is None else score + offset
        if type == "response":
            return self.family.mean(score)
        return score[:, 0] if score.shape[1] == 1 else score

    @property
    def __maketables_vcov_info__(self):
        return {"vcov_type": self.log["covariance"]}

    @property
    def _separates(self):
        return self.family.link != "identity" and self.family.name != "gamma"

    # What only glm has -------------------------------------------------------------------------

    def covariance(self) -> pd.DataFrame:
        """Return the covariance of the estimated coefficients, in units of the data.

        Entries that exceed double precision are infinite; those of separated terms are NaN.

        See Also
        --------
        tidy

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.glm("mpg ~ weight + model_year", ld.data("autompg"))
        >>> fit.covariance().round(5)
        term         (Intercept)   weight  model_year
        term
        (Intercept)     15.74248 -0.00038    -0.19187
        weight          -0.00038  0.00000     0.00000
        model_year      -0.19187  0.00000     0.00240
        """
        coef, cov, _ = self.estimates.in_units_of_data(self.design.mean, self.design.scale)
        names, known = pd.Index(self._kept_terms, name="term"), ~self._infinite.T.ravel()
        if self.family.shared_slopes:
            known = np.append(~self._infinite[1:, 0], ~self._infinite[0])
            A = np.stack([self._ordered_terms(e.reshape(coef.T.shape).T) for e in np.eye(len(cov))])
            names = pd.Index([*names[1:], *self._thresholds], name="term")
            cov = A[..., 0].T @ cov @ A[..., 0]
        elif coef.shape[1] > 1:
            levels = self.design.levels[1:]
            names = pd.MultiIndex.from_product([levels, names], names=["level", "term"])
        cov = np.where(np.outer(known, known), cov, np.nan)
        return pd.DataFrame(cov, index=names, columns=names)

    def anova(
        self, other: "GlmFit | None" = None, *, data: Data | None = None, **changes: Any
    ) -> pd.DataFrame:
        """Test the terms of this fit one after another, or compare it with another nested fit.

        Parameters
        ----------
        other : GlmFit, optional
            Nested fit of the same response, family and rows. Default: test the terms of this fit.
        data : frame, optional
            The training rows; needed without `other`, except for gaussian with nonrobust errors.
        **changes
            Weights, offset and clusters, if they were arrays in the call of `glm`.

        Returns
        -------
        DataFrame
            Without `other`, as R's anova(fit, test=...) (type I): one row per term, terms with
            fewer factors first. Columns: term, df, explained (decrease of the deviance by the
            term), df_resid, deviance (residual sum over rows), the statistic and p_value.

            With `other`: one row per fit, the smaller fit first. Columns: formula, df_resid,
            deviance, df, the statistic and p_value.

            The statistic is F if the dispersion is estimated: the decrease of the deviance per df
            over the dispersion of the larger (or this) fit. Otherwise it is LR, the decrease
            itself, with a chi-square test (McCullagh & Nelder 1989, Sect. 2.3 and 8.3). Two fits
            of "negative_binomial" are compared by log_likelihood instead of deviance, as in R:
            each has its own theta. Tests of the terms of one fit keep its theta.

            Robust errors, "quantile" and "huber" have no such tests. They give Wald tests (wald_F
            or wald_chi2) without deviances, as in R's quantreg, by the covariance of the estimates
            in the larger fit, or in the model with this term and all earlier ones.

        Raises
        ------
        ArgumentError
            If two fits are not nested, or have different rows, families or kinds of covariance.
            If `data` is needed, or does not contain the training rows.

        See Also
        --------
        drop1, glance, update

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.glm("mpg ~ weight + model_year", cars)
        >>> fit.anova().iloc[:, :5].round(1)
                  term   df  explained  df_resid  deviance
        0  (Intercept)  NaN        NaN       397   24252.6
        1       weight  1.0    16777.8       396    7474.8
        2   model_year  1.0     2815.0       395    4659.8
        >>> more = fit.update(cars, formula=". ~ . + origin")
        >>> fit.anova(more).iloc[:, 1:].round(4)
           df_resid   deviance   df        F  p_value
        0       395  4659.8381  NaN      NaN      NaN
        1       393  4378.5468  2.0  12.6238      0.0
        """
        from lodim.models.glm import anova

        if other is None:
            return anova.sequential(self, data, changes)
        if data is not None or changes:
            raise ArgumentError(
                "data and arrays of its rows cannot be given together with another fit"
            )
        return anova.compare(self, other)

    def drop1(self, *, data: Data | None = None, **changes: Any) -> pd.DataFrame:
        """Test each term alone: compare the fit with the model without the term.

        As in R, a term is not dropped if another term contains its factors, as x:z contains x; and
        aliased columns of other terms replace dropped columns of which they are made.

        Parameters
        ----------
        data : frame, optional
            The training rows (otherwise an ArgumentError); gaussian fits and Wald tests need none.
        **changes
            Weights, offset and clusters, if they were arrays in the call of `glm`.

        Returns
        -------
        DataFrame
            A row "(none)" for the fit, and one row per term: term, df, deviance (sum over rows) and
            aic of the model without the term, statistic and p_value as in `anova`. With robust
            errors, "quantile" or "huber", one row per term: term, df, wald_F or wald_chi2, p_value.

        See Also
        --------
        anova, tidy

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.glm("mpg ~ weight + origin", ld.data("autompg"))
        >>> fit.drop1().round(2)
             term   df  deviance      aic       F  p_value
        0  (none)  NaN   7239.31  2294.01     NaN      NaN
        1  weight  1.0  16179.75  2612.09  486.58      0.0
        2  origin  2.0   7474.81  2302.75    6.41      0.0
        """
        from lodim.models.glm import anova

        return anova.single(self, data, changes)
