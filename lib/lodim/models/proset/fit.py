"""ProsetFit: the fit that proset() returns."""

from copy import copy
from dataclasses import replace
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import pandas as pd

from lodim import forms
from lodim.checks import numbers, shares
from lodim.errors import ArgumentError
from lodim.fitting import saved
from lodim.fitting.fit import Fit
from lodim.fitting.registry import model_module
from lodim.models.proset import distribution, report
from lodim.models.proset.cpu_kernels import CLASSES, DENSITY, SQUARED
from lodim.models.proset.distribution import Calibration
from lodim.models.proset.explain import explanation, query, reference, shapley, workbook
from lodim.models.proset.prototypes import (
    LOG,
    Prototypes,
    impacts,
    link_scores,
    null_sums,
    response_values,
    score_nodes,
    weighted_sums,
)
from lodim.models.proset.settings import Settings
from lodim.typing import Data, FilePath, NewLevels, Offset, Prediction, Values

PlotKind: TypeAlias = Literal["weights", "map", "scatter", "surface", "shapley", "calibration"]


class ProsetFit(Fit):
    """Prototype set fitted to data: a model made of a few weighted training rows (prototypes).

    Attributes
    ----------
    estimates : Prototypes
        The weighted training rows, for standardized features, and the feature weights.
    log : dict of arrays (B,)
        Per batch (prototypes fitted together): objective, deviance of the training rows (each
        without its own prototype), grad_norm, n_iter, n_eval, converged, n_candidates (rows that
        may become prototypes), n_scoring (rows whose loss is minimized).
    calibration : Calibration or None
        Percentiles of familiarity and errors; None for fits of a path.
    typical : Typical or None
        A typical training row, as a reference; None for fits of a path.
    labels : tuple
        Row label of each prototype in the training data.
    n, null_deviance : number of rows with positive weight; mean deviance with only an intercept

    See Also
    --------
    proset, cv, path

    Examples
    --------
    >>> import lodim as ld
    >>> fit = ld.proset("species ~ .", ld.data("iris"), lambda_v=0.05)
    >>> fit.labels
    (13, 22, 62, 67, 80, 109, 118)
    """

    name = "proset"
    _estimate_name = "feature weight"
    _biased_by = "its penalties"
    _without_offset = ("familiarity", "variance")

    estimates: Prototypes = forms.part(Prototypes)
    settings = saved.settings(
        Settings,
        n_batches=forms.whole(least="B"),
        lambda_v=forms.real(least=0),
        lambda_w=forms.real(least=0),
    )
    log: dict[str, np.ndarray] = forms.table("B", LOG)
    calibration: Calibration | None = forms.optional(forms.part(Calibration))
    typical: reference.Typical | None = forms.optional(forms.part(reference.Typical))
    labels: tuple[Any, ...] = forms.several("M", forms.plain())
    n: int = forms.whole(least=1)
    null_deviance: float = forms.squares()

    def _check_fields(self):
        super()._check_fields()
        if self.calibration is not None:
            loss, known = self.estimates.loss, self.calibration
            expected = 101 * (loss != CLASSES), len(self.estimates) * (loss == SQUARED)
            if (len(known.levels), len(known.variance)) != expected:
                raise ValueError(f"calibration.levels, calibration.variance need sizes {expected}")

    # The contract of Fit -----------------------------------------------------------------------

    @property
    def types(self) -> tuple[str, ...]:  # type: ignore[override]
        """Values of `type` that predict() accepts for the family."""
        if self.levels is not None:
            return ("response", "link", "class", "prob", "familiarity")
        return ("response", "link", "familiarity", "variance", "interval", "quantile")

    def _score(self, batch):
        t, base = self.estimates, batch.offset_matrix(self.family.n_scores)
        values = response_values(t)
        sums = weighted_sums(t, values, batch.X, batch.n, self._threads, self._engine)
        return link_scores(t, null_sums(t, base) + sums, base)

    def _expressions(self, features, offset):
        return score_nodes(self.estimates, features, offset), ()

    def predict(
        self,
        data: Data,
        type: Prediction | Literal["familiarity", "variance", "interval", "quantile"] = "response",
        *,
        offset: Offset | None = None,
        level: float | None = None,
        quantiles: float | Values | None = None,
        new_levels: NewLevels = "error",
        threshold: float | None = None,
        output: FilePath | None = None,
    ) -> pd.Series | pd.DataFrame:
        """Return predictions with one row for each row of `data`, in its order and with its index.

        Parameters
        ----------
        data : frame
            Rows to predict, with the columns of the formula's right side.
        type : str
            "response": a number, the probability of the second of two classes, or a column per
            class. "link": linear predictors, such as log-odds. "class": most probable class.
            "prob": probabilities of all classes. "familiarity": weighted similarity to the
            prototypes (Eq. 4.5). For a numeric response also "variance", "interval" (columns lower
            and upper) and "quantile" (a column per quantile).
        level : float
            Share of responses that an interval should contain; 0.9 by default.
        quantiles : list of floats
            For type="quantile"; 0.05, 0.5 and 0.95 by default.
        offset, new_levels, threshold
            Known part of the linear predictor, array or column name; "error" or "missing" for
            levels not in training; probability from which the second of two classes is predicted.

        Returns
        -------
        Series or DataFrame
            NaN (None for classes) in rows where an input is missing.

        Raises
        ------
        ArgumentError
            If the family has no such type, or the type takes no level or quantiles; or if the fit
            is part of a path, which has no variances, intervals and quantiles.

        See Also
        --------
        augment, evaluate, familiarity

        Examples
        --------
        >>> import lodim as ld
        >>> iris = ld.data("iris")
        >>> fit = ld.proset("species ~ .", iris, lambda_v=0.05)
        >>> fit.predict(iris[:2]).round(2)
           setosa  versicolor  virginica
        0    0.99        0.01        0.0
        1    0.99        0.01        0.0
        """
        for name, value, of in (("level", level, "interval"), ("quantiles", quantiles, "quantile")):
            if value is not None and type != of:
                raise ArgumentError(f"{name}= needs type={of!r}, not {type!r}")
        if type == "interval":
            (level,) = shares("level", 0.9 if level is None else level)
            at, names = np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level]), ["lower", "upper"]
        elif type == "quantile":
            at = shares("quantiles", (0.05, 0.5, 0.95) if quantiles is None else quantiles)
            names = [f"q{q:g}" for q in at]
        else:
            return self._predict_rows(data, type, offset, new_levels, threshold)
        self._check_threshold(threshold, type)
        batch = self.design.apply(data, offset=offset, new_levels=new_levels)
        return self._in_all_rows(batch, self._quantiles_of_rows(batch, at), names)

    def _predict(self, batch, type):
        if type == "familiarity":
            return self._familiarity(batch), "familiarity"
        if type == "variance":
            return self._variance(batch), f"variance of {self.design.response.name}"
        return super()._predict(batch, type)

    def tidy(self) -> pd.DataFrame:
        """Return one row per feature with its weight, the largest over the batches.

        estimate is per unit of the feature, std_estimate per standard deviation: the similarity
        with a prototype is exp(-1/2) at a difference of 1 / estimate. `batches` counts the batches
        (prototypes fitted together) that use the feature.

        See Also
        --------
        feature_weights, glance

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.proset("species ~ .", ld.data("iris"), lambda_v=0.05)
        >>> fit.tidy().round(2)
                   term  estimate  std_estimate  batches
        0  sepal_length      0.00          0.00        0
        1   sepal_width      0.00          0.00        0
        2  petal_length      0.84          1.47        1
        3   petal_width      2.00          1.52        1
        """
        v = self.feature_weights()
        frame = pd.DataFrame({"term": list(self.design.names)})
        frame["estimate"] = v.max(axis=0, initial=0.0) / self.design.scale
        frame["std_estimate"], frame["batches"] = v.max(axis=0, initial=0.0), (v > 0).sum(axis=0)
        return frame

    def batches(self) -> pd.DataFrame:
        """Return sizes, deviance and optimizer results per batch (prototypes fitted together).

        Candidates are the training rows that could become prototypes.

        See Also
        --------
        export, tidy

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.proset("species ~ .", ld.data("iris"), lambda_v=0.05)
        >>> fit.batches()[["n_candidates", "n_prototypes", "n_features"]]
           n_candidates  n_prototypes  n_features
        0           150             7           2
        """
        t, log = self.estimates, self.log
        frame = pd.DataFrame({"batch": np.arange(1, t.n_batches + 1)})
        frame["n_candidates"], frame["n_scoring"] = log["n_candidates"], log["n_scoring"]
        frame["n_prototypes"] = np.bincount(t.batch, minlength=t.n_batches + 1)[1:]
        frame["n_features"] = (t.v > 0).sum(axis=1)
        frame["n_eval"], frame["converged"] = log["n_eval"], log["converged"]
        frame["deviance"] = log["deviance"]
        frame["dev_ratio"] = self._explained(log["deviance"])
        return frame

    def glance(self) -> pd.DataFrame:
        """Return one row: family, sizes, penalties, df, mean deviances, optimizer results.

        df counts features of positive weight; deviance leaves out each row's own prototype.

        See Also
        --------
        tidy, batches, summary

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.proset("species ~ .", ld.data("iris"), lambda_v=0.05)
        >>> fit.glance().iloc[:, :5]
                family    n  n_dropped  p  n_batches
        0  multinomial  150          0  4          1
        """
        s, t = self.settings, self.estimates
        own = {"n_batches": t.n_batches, "n_prototypes": len(t)}
        own |= {"lambda_v": s.lambda_v, "lambda_w": s.lambda_w, "df": self.df}
        return self._glance(own, {"n_eval": int(self.log["n_eval"].sum())})

    _summary = report.summary
    _listing = report.listing
    _in_words = report.words
    _pictures = report.pictures

    def _plots(self):
        from lodim.models.proset.plots import KINDS

        return KINDS

    def _losses(self, batch, score):
        losses = super()._losses(batch, score)
        if self.estimates.loss == DENSITY:
            losses["nll"] = -np.log(np.maximum(self._density(batch, batch.y), 1e-300))
        return losses

    def update(self, data: Data, **changes: Any) -> Self:
        """Fit the same model to `data`, with some arguments of the call changed.

        If only `n_batches` increases, this fit's batches of prototypes are reused, new ones added.

        Parameters
        ----------
        data : frame
            New data; if batches are added, the training rows of this fit.
        **changes
            Arguments of `proset`, or `formula`, in which dots stand for the fit's formula.

        Returns
        -------
        ProsetFit

        Raises
        ------
        ArgumentError, DataError
            If an argument of the call was an array, which a fit does not keep, or batches are added
            and `data` has other rows or another response than the fit.

        See Also
        --------
        proset

        Examples
        --------
        >>> import lodim as ld
        >>> iris = ld.data("iris")
        >>> fit = ld.proset("species ~ .", iris, lambda_v=0.05)
        >>> fit.update(iris, lambda_v=0.1).settings.lambda_v
        0.1
        """
        more = changes.get("n_batches")
        alone = set(changes) == {"n_batches"} and isinstance(more, int)
        if alone and more > self.settings.n_batches:
            return model_module(self.name).extend(self, data, more)
        return super().update(data, **changes)

    # What only proset has ----------------------------------------------------------------------

    def _complexity(self):
        return {"features": self.df, "parts": len(self.estimates), "part": "prototypes"}

    @property
    def df(self) -> int:
        """Number of features with positive weight."""
        return len(self.estimates.features)

    @property
    def _n_free(self):
        return self.df + len(self.estimates)

    def feature_weights(self) -> np.ndarray:
        """Return the weights of p features, per standard deviation, in each batch, (B, p).

        See Also
        --------
        tidy

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.proset("species ~ .", ld.data("iris"), lambda_v=0.05)
        >>> fit.feature_weights().round(2)
        array([[0.  , 0.  , 1.47, 1.52]])
        """
        t = self.estimates
        v = np.zeros((t.n_batches, len(self.design.names)))
        v[:, t.features] = t.v
        return v

    def density(
        self, data: Data, at: float | Values, *, offset: Offset | None = None
    ) -> pd.DataFrame:
        """Return the density of a numeric response at some values, for a fit with loss="density".

        Parameters
        ----------
        data : frame
            Rows with the columns of the formula's right side.
        at : float or list of floats
            Values of the response; an ArgumentError if they are not numbers, or for another loss.
        offset : array (n,) or column name, optional
            Known part of the response's mean.

        Returns
        -------
        DataFrame
            One column per value of `at`; NaN in rows where an input is missing.

        See Also
        --------
        predict

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.proset("mpg ~ weight", cars, lambda_v=0.01, loss="density")
        >>> fit.density(cars[:2], at=[15.0, 20.0]).round(3)
            15.0   20.0
        0  0.075  0.117
        1  0.134  0.074
        """
        if self.estimates.loss != DENSITY:
            raise ArgumentError("density() needs a numeric response and loss='density'")
        batch, at = self.design.apply(data, offset=offset), numbers("at", at)
        values = np.column_stack([self._density(batch, y) for y in at])
        return self._in_all_rows(batch, values, list(at))

    def shrink(self) -> "ProsetFit":
        """Return an equivalent fit that needs only the columns of its active features.

        Active features have positive weight. Predictions stay identical, bit for bit. Rows with
        missing values only in dropped terms can now be predicted.

        See Also
        --------
        tidy

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.proset("species ~ .", ld.data("iris"), lambda_v=0.05)
        >>> fit.shrink().design.names
        ('petal_length', 'petal_width')
        """
        t = self.estimates
        design, kept = self.design.restrict(t.features)
        if len(kept) == len(self.design.names):
            return self
        small = copy(self)
        small.design, small.call = design, f"{self.call}.shrink()"
        small.estimates = replace(t, features=np.searchsorted(kept, t.features))
        return small

    def plot(self, kind: PlotKind | None = None, ax: Any = None, **arguments: Any) -> Any:
        """Draw on matplotlib Axes and return them.

        Parameters
        ----------
        kind : str, optional
            By default the first kind that takes the arguments. Kinds and their arguments:
            "weights" (top=20): feature weights by batch.
            "map" (data=None, row=None, batch=1, named=0): prototypes of a batch by weighted PCA
            (Eqs. 4.1-4.4), rows of `data`, and the prototypes' impact on `row`, a frame of one row.
            "scatter" (features=None, data=None, row=None, named=0): two active features.
            "surface" (features=None, reference=None, level=None): estimates over two features.
            "shapley" (data, row=0, reference=None, level=None, top=15): Shapley values of one row.
            "calibration" (data, level=None, bins=10, offset=None): observed and predicted shares.
            `top` is the number of features or terms, `named` the number of prototypes with labels,
            `level` the class whose probability is drawn.
        ax : Axes, optional
            New axes by default.
        **arguments
            Arguments of the kind; an ArgumentError if one is unknown, or there is nothing to draw.

        See Also
        --------
        explain, report, lodim.Path.plot

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.proset("species ~ .", ld.data("iris"), lambda_v=0.05)
        >>> ax = fit.plot("weights")
        """
        return super().plot(kind, ax, **arguments)

    # Explanations, functions of a fit and data -------------------------------------------------

    explain = explanation.explain
    export = explanation.export
    familiarity = query.familiarity
    reference = reference.reference
    shapley = shapley.shapley
    to_excel = workbook.to_excel

    # Shared by the above -----------------------------------------------------------------------

    def _impacts(self, batch):
        return impacts(self.estimates, batch.X, batch.n, self._threads)

    def _familiarity(self, batch):
        t = self.estimates
        ones = np.ones((len(t), 1))
        return weighted_sums(t, ones, batch.X, batch.n, self._threads, self._engine)[:, 0]

    def _centre(self, batch):
        """Return the null model's mean of a numeric response for each row, (n,)."""
        return (batch.offset_matrix(1) + self.estimates.level)[:, 0]

    @property
    def _conformity(self):
        if self.levels is not None:
            return super()._conformity
        own = ("normalized", "quantile")
        return (*(own[::-1] if self.estimates.loss == DENSITY else own), "absolute")

    def _spread_of_rows(self, batch):
        return np.sqrt(self._variance(batch))

    def _variance(self, batch):
        t, known = self.estimates, self._calibrated()
        moments = distribution.mean_and_variance(t, known, batch.X, batch.n, self._threads)
        return t.scale**2 * moments[1]

    def _quantiles_of_rows(self, batch, probabilities):
        t, known = self.estimates, self._calibrated()
        z = distribution.quantiles(t, known, batch.X, batch.n, probabilities, self._threads)
        return self._centre(batch)[:, None] + t.scale * z

    def _selected_features(self):
        return self.estimates.features

    def _density(self, batch, y):
        """Return the density of the numeric response at y, a number or (n,), for each row."""
        t = self.estimates
        z = (y - self._centre(batch)) / t.scale
        return distribution.density(t, batch.X, batch.n, z, self._threads) / t.scale

    def _calibrated(self):
        if self.calibration is None:
            raise ArgumentError(
                "this fit stores no calibration, as it is part of a path: fit again for "
                "variances, intervals and quantiles"
            )
        return self.calibration
