"""GbmapFit: the fit that gbmap() returns."""

import warnings
from copy import copy
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from lodim import forms
from lodim.checks import flag, one_of, whole
from lodim.design.frame import in_pandas
from lodim.errors import ArgumentError, ExtrapolationWarning, warn
from lodim.family.family import LARGEST_LOG
from lodim.fitting import saved
from lodim.fitting.fit import Fit
from lodim.forms import plain_label
from lodim.models.gbmap import neighbourhood, report
from lodim.models.gbmap.embedding import KINDS, Reference
from lodim.models.gbmap.learners import LOG, REFIT_LOG, Effects, WeakLearners, score_nodes
from lodim.models.gbmap.settings import Settings
from lodim.text import feature_columns
from lodim.typing import Data, FilePath, NewLevels, Offset, Prediction

PlotKind: TypeAlias = Literal["loss", "effects", "local", "embedding", "drift", "calibration"]


class GbmapFit(Fit):
    """A fitted gradient boosting mapping.

    Attributes
    ----------
    estimates : WeakLearners
        Weak learners, for standardized features.
    log : dict of arrays (M,)
        Per learner: objective, deviance (before a joint fit), grad_norm, n_iter, n_eval, converged,
        newton (False for L-BFGS). For many rows also resolution, the smallest gain pursued.
    effects : Effects
        Averages of the local coefficients over the training rows.
    reference : Reference or None
        Training rows for neighbours and drift (at most control's `reference_rows`).
    n, null_deviance : number of rows with positive weight; mean deviance with only an intercept
    calibration : dict of arrays (101,) or None
        Percentiles of the drift indicators "difference" and "distance" of held-out rows. None
        without `reference`, and if both m and lambda_ were given.
    response_range : array (2,) or None
        Range of the training response at an offset of zero. It is None for classes, in a fit
        returned by its method `first`, and with control={"reference_rows": 0}.
    refit_log : dict or None
        Joint fit, if any: value (objective), deviance, grad_norm, n_iter, n_eval, converged, and
        gain, the relative decrease of the held-out deviance (NaN if not measured).
    selection : DataFrame or None
        The cross-validation that chose m or lambda_.

    See Also
    --------
    gbmap, cv, path

    Examples
    --------
    >>> import lodim as ld
    >>> fit = ld.gbmap("mpg ~ weight + model_year", ld.data("autompg"), m=3, lambda_=0.1)
    >>> fit.log["deviance"].round(2).tolist()
    [9.74, 9.19, 9.14]
    """

    name = "gbmap"
    _estimate_name = "mean local coefficient"
    _biased_by = "the penalty lambda_"
    types = ("response", "link", "class", "prob", "embedding", "local")
    _without_offset = ("embedding", "local")

    estimates: WeakLearners = forms.part(WeakLearners)
    settings = saved.settings(
        Settings,
        m=forms.whole(least=1),
        lambda_=forms.real(least=0),
        monotone=forms.optional(forms.several("p", forms.choice(-1, 0, 1))),
    )
    log: dict[str, np.ndarray] = forms.table("M", LOG)
    effects: Effects = forms.part(Effects)
    reference: Reference | None = forms.optional(forms.part(Reference))
    n: int = forms.whole(least=1)
    null_deviance: float = forms.squares()
    calibration: dict[str, np.ndarray] | None = forms.optional(
        forms.part(dict.fromkeys(KINDS, forms.real(101)))
    )
    refit_log: dict[str, Any] | None = forms.optional(forms.part(REFIT_LOG))
    response_range: np.ndarray | None = forms.optional(forms.ascending(forms.real(2)))

    def _check_fields(self):
        super()._check_fields()
        m, last = self.settings.m, self.estimates.stage[-1]
        if m < last:
            raise ValueError(f"settings.m is {m}, and the last boost {last}")

    # The contract of Fit -----------------------------------------------------------------------

    def _score(self, batch):
        score = self.estimates.score(batch.X, batch.n, self._threads, self._engine)
        return score + batch.offset_matrix(self.family.n_scores)

    def _expressions(self, features, offset):
        return score_nodes(self.estimates, features, offset), ()

    def predict(
        self,
        data: Data,
        type: Prediction | Literal["embedding", "local"] = "response",
        *,
        offset: Offset | None = None,
        new_levels: NewLevels = "error",
        threshold: float | None = None,
        clip: bool = False,
        output: FilePath | None = None,
    ) -> pd.Series | pd.DataFrame:
        """Return predictions with one row for each row of `data`, in its order and with its index.

        Parameters
        ----------
        data : frame
            Rows to predict, with the columns of the formula's right side.
        type : str
            "response": mean, or probability of the second of two classes or of each class. "link":
            linear predictors. "class": most probable class. "prob": all probabilities. "embedding":
            learners' values f_1(x) to f_m(x). "local": slopes of "link" per unit of a feature.
        offset, new_levels, threshold
            Known part of the linear predictor, array or column name; "error" or "missing" for
            levels not in training; probability from which the second of two classes is predicted.
        clip : bool, default=False
            Limit predicted numbers (without the offset) to the range of the training response.

        Returns
        -------
        Series or DataFrame
            NaN (None for classes) in rows where an input is missing.

        Warns
        -----
        ExtrapolationWarning
            If a predicted number is outside the training range by more than a quarter of the range,
            and by more than `drift_threshold()`, if known; with a log link, by the whole range.

        See Also
        --------
        augment, evaluate, drift

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.gbmap("mpg ~ weight + model_year", cars, m=3, lambda_=0.1)
        >>> fit.predict(cars[:2]).round(2).tolist()
        [14.04, 13.64]
        >>> fit.predict(cars[:2], "local").round(4)
           weight  model_year
        0 -0.0037      0.3145
        1 -0.0009      0.0146
        """
        if not flag("clip", clip):
            return self._predict_rows(data, type, offset, new_levels, threshold)
        if self.levels is not None or type not in ("response", "link"):
            raise ArgumentError("clip=True needs a numeric response")
        if self.response_range is None:
            raise ArgumentError(
                "clip=True needs the range of the training response, which this fit does not "
                "store (it is a first(m), or was fitted with reference_rows=0): fit again"
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            values = self._predict_rows(data, "link", offset, new_levels, threshold)
        known, limits = 0.0, self.family.score(self.response_range)[:, 0]
        if self.design.offset_given:
            batch = self._reader.apply(data, offset=offset, new_levels=new_levels)
            known = self._in_all_rows(batch, batch.offset_matrix(1)[:, 0], values.name)
        values = (values - known).clip(*limits) + known
        if self.family.link == "log" and type == "response":
            return np.exp(values.clip(upper=LARGEST_LOG))
        return values

    def _selected_features(self):
        return np.flatnonzero((self.estimates.theta[:, 2:] != 0.0).any(axis=0))

    def _predict(self, batch, type):
        if type in ("response", "link") and self.response_range is not None:
            score = self._score(batch)
            self._warn_of_extrapolation(batch, self.family.mean(score - batch.offset_matrix(1)))
            values = self.family.mean(score) if type == "response" else score[:, 0]
            return values, self.design.response.name
        if type == "embedding":
            return self._embed(batch), self._coordinates
        if type == "local":
            slopes = self.estimates.slopes(batch.X, batch.n, self._threads)
            gradient = np.stack(self.estimates.gradients(slopes), axis=1)
            values = (gradient / self.design.scale).reshape(batch.n, self.effects.mean.size)
            return values, self._by_level(self.design.names)
        return super()._predict(batch, type)

    def tidy(self) -> pd.DataFrame:
        """Return a row per feature (and class): its slope averaged over the training rows.

        estimate and estimate_abs (mean of absolute slopes) are in units of the link per unit of the
        feature; std_estimate and std_estimate_abs per standard deviation of the feature.

        See Also
        --------
        glance, coef, predict

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.gbmap("mpg ~ weight + model_year", ld.data("autompg"), m=3, lambda_=0.1)
        >>> fit.tidy().round(3)
                 term  estimate  estimate_abs  std_estimate  std_estimate_abs
        0      weight    -0.007         0.007        -6.078             6.082
        1  model_year     0.720         0.737         2.659             2.722
        """
        scale, e = self.design.scale, self.effects
        frame = pd.DataFrame({"term": list(self.design.names) * self.family.n_functions})
        if self.family.n_functions > 1:
            frame.insert(0, "level", np.repeat(np.array(self.levels, object), len(scale)))
        frame["estimate"] = (e.mean / scale).ravel()
        frame["estimate_abs"] = (e.mean_abs / scale).ravel()
        frame["std_estimate"], frame["std_estimate_abs"] = e.mean.ravel(), e.mean_abs.ravel()
        return frame

    def learners(self) -> pd.DataFrame:
        """Return a table with one row per weak learner a + b g(w_0 + w'x).

        Columns: boost (step of the boosting, from 1); level (class, if several); a; b; norm |w|;
        active, the weighted share of rows with w_0 + w'x > 0 (1 if g is linear); n_iter; converged;
        deviance and dev_ratio after this step, before a joint fit of all learners. a and |w| are
        in units of the link, for features in standard deviations.

        See Also
        --------
        projections, tidy

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.gbmap("mpg ~ weight + model_year", ld.data("autompg"), m=3, lambda_=0.1)
        >>> fit.learners().round(2).iloc[:, :4]
           boost      a  b  norm
        0      1  13.68  1  7.20
        1      2  -0.52  1  1.97
        2      3  -0.28  1  0.60
        """
        e = self.estimates
        frame = pd.DataFrame({"boost": e.stage})
        if self.family.n_functions > 1:
            frame["level"] = np.array(self.levels, dtype=object)[e.target]
        frame["a"], frame["b"] = e.scale * e.theta[:, 0], e.sign.astype(int)
        frame["norm"] = e.scale * np.linalg.norm(e.w, axis=1)
        frame["active"] = self.effects.active
        for name in ("n_iter", "converged", "deviance"):
            frame[name] = self.log[name]
        frame["dev_ratio"] = self._explained(self.log["deviance"])
        return frame

    def projections(self) -> pd.DataFrame:
        """Return the weights of the features in each learner, one row per learner.

        Learner j is a_j + b_j g(w_0j + w_j'x), g being the softplus or the identity. `(Intercept)`
        is w_0j; w_j is in units of the link per unit of each feature. For a numeric response, the
        sharpness of g is beta divided by the standard deviation of (response - offset).

        See Also
        --------
        learners

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.gbmap("mpg ~ weight + model_year", ld.data("autompg"), m=3, lambda_=0.1)
        >>> fit.projections().round(4)
                 (Intercept)  weight  model_year
        learner
        f1          -32.2728 -0.0077      0.8441
        f2           -7.4585 -0.0022      0.1692
        f3           11.2748  0.0001     -0.1621
        """
        e, d = self.estimates, self.design
        w = e.scale * e.w / d.scale
        constant = e.scale * e.theta[:, 1] - w @ d.mean
        return pd.DataFrame(
            np.column_stack([constant, w]),
            index=pd.Index(self._coordinates, name="learner"),
            columns=["(Intercept)", *d.names],
        )

    def glance(self) -> pd.DataFrame:
        """Return one row: family, n, p, m, lambda_, beta, df, mean deviances, optimizer results.

        df counts nonzero weights; deviance and null_deviance are means over (weighted) rows.

        See Also
        --------
        tidy, learners, summary

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.gbmap("mpg ~ weight + model_year", ld.data("autompg"), m=3, lambda_=0.1)
        >>> fit.glance()[["n", "p", "m", "dev_ratio"]].round(2)
             n  p  m  dev_ratio
        0  398  2  3       0.85
        """
        own = {name: getattr(self.settings, name) for name in ("m", "lambda_", "l1_ratio", "beta")}
        n_eval = int(self.log["n_eval"].sum()) + (self.refit_log or {"n_eval": 0})["n_eval"]
        return self._glance(own | {"df": self.df}, {"n_eval": n_eval})

    _summary = report.summary
    _listing = report.listing
    _in_words = report.words
    _pictures = report.pictures

    def _plots(self):
        from lodim.models.gbmap.plots import KINDS

        return KINDS

    def plot(self, kind: PlotKind | None = None, ax: Any = None, **arguments: Any) -> Any:
        """Draw on matplotlib Axes and return them.

        Parameters
        ----------
        kind : str, optional
            By default the first kind that takes the arguments. Kinds and their arguments:
            "loss": training loss after each boost.
            "effects" (top=15): mean slope of each feature.
            "embedding" (data=None): two principal components of the learners' values.
            "local" (data, row=0, top=15): slopes of the features at one row.
            "drift" (data, threshold=None, limit=None): drift indicator against loss. Losses above
            `limit` count as bad predictions; `threshold` is the indicator that is marked.
            "calibration" (data, level=None, bins=10, offset=None): observed share of a class
            against its predicted probability.
        ax : Axes, optional
            New axes by default.
        **arguments
            Arguments of the kind; an ArgumentError if one is unknown or missing, or a plot needs
            training rows and the fit keeps none.

        See Also
        --------
        report, lodim.Path.plot, lodim.CV.plot

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.gbmap("mpg ~ weight + model_year", ld.data("autompg"), m=3, lambda_=0.1)
        >>> ax = fit.plot("effects")
        """
        return super().plot(kind, ax, **arguments)

    # What only gbmap has -----------------------------------------------------------------------

    def _complexity(self):
        used = np.abs(self.estimates.w).max(axis=0, initial=0.0) > 0
        return {"features": int(used.sum()), "parts": len(self.estimates), "part": "learners"}

    @property
    def df(self) -> int:
        """Number of nonzero weights of all learners."""
        return int(np.count_nonzero(self.estimates.w))

    @property
    def _n_free(self):
        return self.df + len(self.estimates)  # each learner has a constant

    def staged(
        self, data: Data, type: Prediction = "response", *, offset: Offset | None = None
    ) -> dict[int, pd.Series | pd.DataFrame]:
        """Return the predictions after each boost, as a dict {number of boosts: predictions}.

        After a joint fit, entry j is from the jointly fitted learners of the first j boosts.

        Parameters
        ----------
        data : frame
            Rows to predict, with the columns of the formula's right side.
        type : {"response", "link", "class", "prob"}
        offset : array (n,) or column name, optional
            Known part of the linear predictor.

        See Also
        --------
        first, predict

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.gbmap("mpg ~ weight + model_year", cars, m=3, lambda_=0.1)
        >>> {m: p.round(1).tolist() for m, p in fit.staged(cars[:2]).items()}
        {1: [14.2, 13.8], 2: [13.7, 13.3], 3: [14.0, 13.6]}
        """
        one_of("type", type, Fit.types)
        stages = range(1, self.settings.m + 1)
        return {j: in_pandas(self.first(j).predict)(data, type, offset=offset) for j in stages}

    def first(self, m: int) -> "GbmapFit":
        """Return the fit of the first m boosts, which do not depend on later boosts.

        After a joint fit they do depend on later boosts, so the result is only a partial sum.

        Parameters
        ----------
        m : int
            From 1 to the m of this fit.

        Returns
        -------
        GbmapFit
            Without effects and training rows, so its `neighbours` and `drift` raise an error.

        See Also
        --------
        staged, learners

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.gbmap("mpg ~ weight + model_year", ld.data("autompg"), m=3, lambda_=0.1)
        >>> len(fit.first(1).learners())
        1
        """
        m = whole("m", m, most=self.settings.m)
        fit = copy(self)
        fit.settings = replace(self.settings, m=m)
        fit.estimates = self.estimates.select(self.estimates.stage <= m)
        size, unknown = len(fit.estimates), np.full_like(self.effects.mean, np.nan)
        fit.log = {name: v[:size] for name, v in self.log.items()}
        if self.refit_log is not None:
            fit.log["deviance"], fit.refit_log = np.full(size, np.nan), None
        active = self.effects.active[:size]
        fit.effects = replace(self.effects, mean=unknown, mean_abs=unknown, active=active)
        fit.reference = fit.calibration = fit.selection = fit.response_range = None
        fit.chosen = {}
        return fit

    def regions(self, data: Data) -> pd.DataFrame:
        """Return the linear regions that contain rows of `data`, most populated first.

        All rows of a region have the same active learners, those with w_0j + w_j'x > 0.

        Parameters
        ----------
        data : frame
            With the columns of the formula's right side.

        Returns
        -------
        DataFrame
            Active learners, n and share of rows, and linear coefficients sum_j b_j w_j (for beta ->
            infinity), in units of the link per unit of a feature.

        See Also
        --------
        predict, learners

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.gbmap("mpg ~ weight + model_year", cars, m=3, lambda_=0.1)
        >>> fit.regions(cars).iloc[:, :3].head(2)
          active    n     share
        0     f1  172  0.432161
        1  f1 f2  140  0.351759
        """
        batch, e = self._apply(data), self.estimates
        active = e.active(e.slopes(batch.X, batch.n, self._threads))
        patterns, counts = np.unique(active, axis=0, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        patterns, counts = patterns[order], counts[order]
        names = np.array(self._coordinates, dtype=object)
        frame = pd.DataFrame({"active": [" ".join(names[p]) or "none" for p in patterns]})
        frame["n"], frame["share"] = counts, counts / max(1, batch.n)
        w = e.scale * e.sign[:, None] * e.w / self.design.scale
        parts = [patterns[:, e.target == k] @ w[e.target == k] for k in range(e.n_scores)]
        columns = feature_columns(self._by_level(self.design.names), frame)
        return pd.concat([frame, pd.DataFrame(np.hstack(parts), columns=columns)], axis=1)

    # By the embedding, functions of a fit and data ---------------------------------------------

    distance = neighbourhood.distance
    neighbours = neighbourhood.neighbours
    drift = neighbourhood.drift
    drift_threshold = neighbourhood.drift_threshold

    # Shared by the above -----------------------------------------------------------------------

    @property
    def _deviance(self):
        return super()._deviance if self.refit_log is None else self.refit_log["deviance"]

    def _warn_of_extrapolation(self, batch, f):
        low, high = self.response_range
        beyond = np.maximum(low - f, f - high)
        # A share of the training range, but more than rounding errors of a sum of learners.
        share = 1.0 if self.family.link == "log" else 0.25
        least = max(share * (high - low), 1e-12 * self.estimates.scale)
        if self.calibration is not None and self.family.link == "identity":
            least = max(least, self.drift_threshold())
        far = np.flatnonzero(beyond > least)
        if not far.size:
            return
        worst = far[np.argmax(beyond[far])]
        name = self.design.response.name + " at an offset of zero" * self.design.offset_given
        row = plain_label(batch.index[batch.rows[worst]])
        warn(
            f"{far.size} of {batch.n} rows have predictions far outside the training range of "
            f"{name}, {low:.6g} to {high:.6g}; the farthest is {f[worst]:.6g} in row {row!r}. "
            "The fit extrapolates there: see drift(), or predict with clip=True",
            ExtrapolationWarning,
        )

    @property
    def _coordinates(self):
        """Names of the learners: f1, f2, ...; with several classes f1[level], ...."""
        e = self.estimates
        if self.family.n_functions == 1:
            return [f"f{j}" for j in e.stage]
        return [f"f{j}[{self.levels[k]}]" for j, k in zip(e.stage, e.target, strict=True)]

    def _by_level(self, names):
        if self.family.n_functions == 1:
            return list(names)
        return pd.MultiIndex.from_product([list(self.levels), list(names)])

    def _zero_offset(self):
        return {"offset": 0.0} if self.design.offset_given else {}

    def _apply(self, data):
        """Return new data as a numeric Batch with offset zero."""
        return self.design.apply(data, **self._zero_offset())

    def _embed(self, batch):
        return self.estimates.embedding(batch.X, batch.n, self._threads, self._engine)

    def _reference_rows(self, k=1):
        if self.reference is None:
            raise ArgumentError(
                "this fit stores no training rows (it is part of a path, a first(m), or was "
                "fitted with reference_rows=0): fit again for neighbours and drift"
            )
        whole("k", k, most=len(self.reference.y))
        return self.reference
