"""MelmFit: the fit that melm() returns."""

from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from lodim import forms
from lodim.design.frame import in_pandas
from lodim.errors import ArgumentError
from lodim.export.expression import weighted
from lodim.fitting import saved
from lodim.fitting.fit import Fit
from lodim.fitting.streamed import evaluation
from lodim.models.melm import report
from lodim.models.melm.rule import balanced_accuracy, score_nodes
from lodim.models.melm.settings import CLASSIFIER, Settings
from lodim.models.melm.view import LOG, View, project
from lodim.typing import Data, FilePath, NewLevels, Prediction

PlotKind: TypeAlias = Literal["view", "loadings", "starts", "calibration"]

MEASURES = ("deviance", "null_deviance", "balanced_accuracy")
HELD = ("held_deviance", "held_balanced_accuracy")  # measures if probabilities are calibrated


class MelmFit(Fit):
    """Linear projection that separates classes, with the classifier in it.

    Attributes
    ----------
    estimates : View
        Directions for standardized features, and the classifier.
    log : dict of arrays (n_starts,)
        Per start, the best first: start (kind), divergence (or entropy), n_iter, converged.
    measures : dict
        deviance, null_deviance, balanced_accuracy of the training rows (each left out of the
        densities), and held_deviance and held_balanced_accuracy of held-out rows, if calibrated.
        Empty without a response.
    n : number of rows with positive weight
    selection : DataFrame or None
        The cross-validation that chose gamma.

    See Also
    --------
    melm, cv

    Examples
    --------
    >>> import lodim as ld
    >>> fit = ld.melm("cultivar ~ alcohol + flavanoids + proline", ld.data("wine"), gamma=1.0, k=2)
    >>> round(fit.measures["held_balanced_accuracy"], 3)
    0.946
    """

    name = "melm"
    _estimate_name = "loading"
    _biased_by = "the width of its kernels"

    settings = saved.settings(
        Settings, gamma=forms.optional(forms.real(least=forms.TINY)), classifier=CLASSIFIER
    )
    estimates: View = forms.part(View)
    log: dict[str, Any] = forms.table("starts", LOG, gamma=forms.real("starts", least=forms.TINY))
    measures: dict[str, float] = forms.entries(forms.real())
    n: int = forms.whole(least=1)

    def _check_fields(self):
        super()._check_fields()
        measures = () if self.levels is None else MEASURES
        if set(self.measures) not in ({*measures}, {*measures, *HELD}):
            raise ValueError(f"measures has {sorted(self.measures)}, not {sorted(measures)}")
        if not len(self.log["start"]):
            raise ValueError("the search has no start")
        if self.levels is not None and self.settings.gamma is None:
            raise ValueError("settings.gamma is None")

    # The contract of Fit -----------------------------------------------------------------------

    @property
    def types(self) -> tuple[str, ...]:  # type: ignore[override]
        """Values of `type` that predict() accepts; fewer without a response."""
        if self.levels is None:
            return ("projection", "density")
        return ("response", "link", "class", "prob", "projection", "density")

    def _score(self, batch):
        return self.estimates.rule.scores(self._coordinates(batch), self.settings.n_threads)

    def _expressions(self, features, offset):
        named = zip(self.estimates.V.T, self.axes, strict=True)
        Z = [weighted(0.0, v, features, name) for v, name in named]
        if self.levels is None:
            return list(zip(self.axes, Z, strict=True)), ()
        return score_nodes(self.estimates.rule, Z), ()

    def predict(
        self,
        data: Data,
        type: Prediction | Literal["projection", "density"] | None = None,
        *,
        offset: None = None,
        new_levels: NewLevels = "error",
        threshold: float | None = None,
        output: FilePath | None = None,
    ) -> pd.Series | pd.DataFrame:
        """Return predictions with one row for each row of `data`, in its order and with its index.

        Parameters
        ----------
        data : frame
            New data; needs the columns of the formula's right side.
        type : str, optional
            "response" (the default): probability of the second of two classes, or of each class.
            "link": linear predictors, such as log-odds. "class": most probable class. "prob":
            probability of each class. "projection": coordinates x1, ..., xk, the default without a
            response. "density": log density there of each class (without a response: of all rows).
        offset : None
            Not allowed, since there is no score to which it could be added.
        new_levels, threshold
            "error" or "missing" for levels not in training; probability from which the second of
            two classes is predicted.

        Returns
        -------
        Series or DataFrame
            NaN (None for classes) in rows where an input is missing.

        Raises
        ------
        ArgumentError
            If an offset is given, or if `type` needs classes and the formula has no response.

        See Also
        --------
        augment, evaluate

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine")
        >>> fit = ld.melm("cultivar ~ alcohol + flavanoids + proline", wine, gamma=1.0, k=2)
        >>> fit.predict(wine[:2], "class").tolist()
        ['Barolo', 'Barolo']
        >>> fit.predict(wine[:2], "projection").round(1).abs()
            x1   x2
        0  3.2  0.8
        1  2.1  0.4
        """
        asked = self.types[0] if type is None else type
        return self._predict_rows(data, asked, offset, new_levels, threshold)

    def _predict(self, batch, type):
        if type == "projection":
            return self._coordinates(batch), self.axes
        if type == "density":
            Z = self._coordinates(batch)
            f = self.estimates.rule.log_density(Z, self.settings.n_threads)
            return (f[:, 0], "density") if self.levels is None else (f, list(self.levels))
        return super()._predict(batch, type)

    def _coordinates(self, batch):
        return project(self.estimates.V, batch.X, batch.n)

    def tidy(self) -> pd.DataFrame:
        """Return the loadings, one row for each dimension and feature.

        estimate is the change of the coordinate per unit of the feature, std_estimate per standard
        deviation; correlation is the correlation of feature and coordinate in the training rows.

        See Also
        --------
        coef, glance

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.melm("cultivar ~ alcohol + flavanoids + proline", ld.data("wine"), gamma=1.0)
        >>> fit.tidy().columns.tolist()
        ['dimension', 'term', 'estimate', 'std_estimate', 'correlation']
        """
        v, names = self.estimates, list(self.design.names)
        return pd.DataFrame(
            {
                "dimension": np.repeat(np.array(self.axes, object), len(names)),
                "term": names * v.k,
                "estimate": (v.V.T / self.design.scale).ravel(),
                "std_estimate": (v.V.T * v.deviation).ravel(),
                "correlation": v.correlation.T.ravel(),
            }
        )

    def _comparable(self, reference):
        turned = self.estimates.turned_to(reference.estimates)
        loading = (turned.T / self.design.scale).ravel()
        return in_pandas(self.tidy)().assign(estimate=loading)

    def coef(self) -> pd.Series:
        """Return the loadings by dimension and term, per unit of the feature.

        See Also
        --------
        tidy

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.melm("cultivar ~ alcohol + flavanoids + proline", ld.data("wine"), gamma=1.0)
        >>> fit.coef().shape
        (6,)
        """
        return in_pandas(self.tidy)().set_index(["dimension", "term"])["estimate"]

    def glance(self) -> pd.DataFrame:
        """Return one row of results: size of the data, settings, and how well classes separate.

        gamma is the kernel width in the divergence, relative to Silverman's. divergence = fitting -
        regularizing: fitting is large if classes overlap little, regularizing if they are wide.
        For deviance and balanced_accuracy, kernel densities leave out the row that they classify.
        df = k (rank - k), where rank is the number of directions in which rows vary. Without a
        response there is an entropy, and dev_ratio is the share of variance in the projection.

        See Also
        --------
        tidy, pairs, summary

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.melm("cultivar ~ alcohol + flavanoids + proline", ld.data("wine"), gamma=1.0)
        >>> fit.glance()[["n", "p", "k", "gamma"]]
             n  p  k  gamma
        0  178  3  2    1.0
        """
        v, d, gamma = self.estimates, self.design, self.settings.gamma
        row = {"family": self.family.name, "n": self.n, "n_dropped": d.n_dropped}
        row |= {"p": len(d.names), "k": v.k, "gamma": gamma, "df": self.df}
        if self.levels is None:
            row |= {"gamma": np.nan, "entropy": self.entropy, "dev_ratio": self.dev_ratio}
        else:
            fitting, regularizing = self.terms
            row |= {"divergence": fitting - regularizing, "fitting": fitting}
            row |= {"regularizing": regularizing, "dev_ratio": self.dev_ratio} | self.measures
        return pd.DataFrame([row | {"converged": self.converged}])

    def augment(  # type: ignore[override]
        self,
        data: Data,
        *,
        offset: None = None,
        new_levels: NewLevels = "error",
        output: FilePath | None = None,
    ) -> pd.DataFrame:
        """Return `data` with predictions and coordinates as further columns.

        Parameters
        ----------
        data : frame
            Needs the columns of the formula; columns of the new names are replaced.
        offset, new_levels
            As in `predict`.

        Returns
        -------
        DataFrame
            `data` with .fitted, .resid, .loss, .class and .x1, ..., .xk; without a response only
            with the coordinates.

        See Also
        --------
        predict, evaluate

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine")
        >>> fit = ld.melm("cultivar ~ alcohol + flavanoids + proline", wine, gamma=1.0, k=2)
        >>> fit.augment(wine[:2]).columns[-4:].tolist()
        ['.loss', '.class', '.x1', '.x2']
        """
        return self._augment_rows(data, offset, new_levels)

    def _new_columns(self, data, offset, new_levels):
        Z = self._predict_rows(data, "projection", None, new_levels, None).add_prefix(".")
        if self.levels is None:
            return Z
        return pd.concat([super()._new_columns(data, offset, new_levels), Z], axis=1)

    def evaluate(  # type: ignore[override]
        self, data: Data, *, offset: None = None, new_levels: NewLevels = "error"
    ) -> pd.DataFrame:
        """Return mean losses, accuracy and AUC for data with known classes, in one row.

        Parameters
        ----------
        data : frame
            Needs the columns of the formula, including the response.
        offset, new_levels
            As in `predict`.

        Returns
        -------
        DataFrame
            One row: n, deviance, dev_ratio, accuracy, log_loss, auc and balanced_accuracy (share of
            correctly classified rows of a class, averaged over the classes).

        Raises
        ------
        ArgumentError, DataError
            If the formula has no response, an offset is given, or no row of weight > 0 is complete.

        See Also
        --------
        predict, augment

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine")
        >>> fit = ld.melm("cultivar ~ alcohol + flavanoids + proline", wine, gamma=1.0, k=2)
        >>> fit.evaluate(wine).round(2)
             n  deviance  dev_ratio  accuracy  log_loss  auc  balanced_accuracy
        0  178       0.2       0.91      0.97       0.1  1.0               0.97
        """
        if self.levels is None:
            raise ArgumentError("evaluate() needs a response on the left of '~'")
        return evaluation(self, data, offset, new_levels)

    def _measures(self, batch, score):
        balanced = balanced_accuracy(batch.y, batch.weight, score)
        return super()._measures(batch, score) | {"balanced_accuracy": balanced}

    _summary = report.summary
    _listing = report.listing
    _in_words = report.words
    _pictures = report.pictures

    def _plots(self):
        from lodim.models.melm.plots import KINDS

        return KINDS

    def plot(self, kind: PlotKind | None = None, ax: Any = None, **arguments: Any) -> Any:
        """Draw on matplotlib Axes and return them.

        Parameters
        ----------
        kind : {"view", "loadings", "starts", "calibration"}, optional
            By default "view". Kinds and their arguments:
            "view" (data=None, dimensions=None, arrows="loadings", top=8, contours=True): the rows
            of `data` (by default training rows) in one to three dimensions of the projection;
            `dimensions` has their numbers, from 1. Also densities and decision boundary, and the
            `top` longest arrows, for "loadings", "correlations" or None. Three dimensions show
            only rows and arrows.
            "loadings" (top=15, of="loadings"): loadings or "correlations" by dimension.
            "starts": the divergence that each start of the search reached.
            "calibration" (data, level=None, bins=10): observed share of a class (by default the
            second of two, or all of several) against its predicted probability.
        ax : Axes, optional
            New axes by default. For a view of three dimensions they need projection="3d".
        **arguments
            Arguments of the kind.

        Raises
        ------
        ArgumentError, DataError
            If an argument is invalid, or `data` has no complete row.

        See Also
        --------
        pairs, report

        Examples
        --------
        >>> import lodim as ld
        >>> ax = ld.melm("cultivar ~ alcohol + proline", ld.data("wine"), gamma=1.0, k=2).plot()
        """
        return super().plot(kind, ax, **arguments)

    # What only melm has ------------------------------------------------------------------------

    @property
    def axes(self) -> list[str]:
        """Names of a row's k coordinates in the fit's projection: x1, ..., xk."""
        return [f"x{j + 1}" for j in range(self.estimates.k)]

    @property
    def terms(self) -> tuple[float, float]:
        """The two terms of divergence = fitting - regularizing, as (fitting, regularizing)."""
        pairs: Any = self.pairs()
        weight = pairs["weight"]
        return float(weight @ pairs["fitting"]), float(weight @ pairs["regularizing"])

    @property
    def divergence(self) -> float:
        """Cauchy-Schwarz divergence of the class densities; larger values mean less overlap.

        For several classes it is the sum over pairs, or with divergence="mean" their average."""
        fitting, regularizing = self.terms
        return fitting - regularizing

    @property
    def entropy(self) -> float | None:
        """Renyi's quadratic entropy of a projection without classes (Eq. 1); None with classes."""
        return -float(self.estimates.potential[0, 0]) if self.levels is None else None

    def _complexity(self):
        features = len(self.design.names) - len(self.design.constant)
        return {"features": features, "parts": len(self.axes), "part": "dimensions"}

    @property
    def df(self) -> int:
        """Parameters of the projection: k (rank - k) if the rows vary in `rank` directions."""
        return self.estimates.k * (self.estimates.rank - self.estimates.k)

    def _held_out_deviance(self):
        return self.measures.get("held_deviance")

    @property
    def _deviance(self):
        return self.measures["deviance"]

    @property
    def _null_deviance(self):
        return self.measures["null_deviance"]

    @property
    def dev_ratio(self) -> float:
        """Share of the null deviance explained; without classes the share of the variance."""
        if self.levels is None:
            v = self.estimates
            return float((v.spread**2).sum() / (v.total or np.nan))
        return super().dev_ratio

    @property
    def converged(self) -> bool:
        """Whether the search that found this projection reached its tolerance."""
        return self.estimates.converged

    def pairs(self) -> pd.DataFrame:
        """Return divergence, its two terms and bounds of the overlap for each pair of classes.

        divergence = fitting - regularizing; weight is the pair's weight in the fit's divergence.
        overlap is an upper bound (Theorem 3) of the integral of the smaller of the two estimated
        densities. balanced_accuracy = 1 - overlap / 2 would be a lower bound of the classifier's
        accuracy if the estimated densities were true.

        See Also
        --------
        glance

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.melm("cultivar ~ alcohol + flavanoids + proline", ld.data("wine"), gamma=1.0)
        >>> fit.pairs().round(2).iloc[:, :3]
             first      second  divergence
        0  Barbera      Barolo       19.01
        1  Barbera  Grignolino        3.94
        2   Barolo  Grignolino        6.84
        """
        if self.levels is None:
            raise ArgumentError("this needs classes; the formula has no response")
        v, names = self.estimates, np.array([*self.levels], object)
        a, b = np.triu_indices(len(v.size), 1)
        fitting, entropies = -2.0 * v.potential[a, b], -np.diag(v.potential)
        regularizing, share = entropies[a] + entropies[b], v.size[a] * v.size[b]
        columns = {"first": names[a], "second": names[b], "divergence": fitting - regularizing}
        columns |= {"fitting": fitting, "regularizing": regularizing, "overlap": v.overlap[a, b]}
        mean = self.settings.divergence == "mean"
        columns["weight"] = share / share.sum() if mean else 1.0
        return pd.DataFrame(columns | {"balanced_accuracy": 1.0 - 0.5 * v.overlap[a, b]})

    def starts(self) -> pd.DataFrame:
        """Return a DataFrame of starts, best first: start (kind), divergence, n_iter, converged.

        Only the best three are searched to the final tolerance. If gamma was tuned, column gamma
        has the kernel width of these searches; the best one then moved on to the tuned gamma.
        Without a response, the only row is "pca", with the entropy in column divergence.

        See Also
        --------
        glance

        Examples
        --------
        >>> import lodim as ld
        >>> formula = "cultivar ~ alcohol + flavanoids + proline"
        >>> len(ld.melm(formula, ld.data("wine"), gamma=1.0, k=2).starts())
        17
        """
        return pd.DataFrame({name: list(values) for name, values in self.log.items()})
