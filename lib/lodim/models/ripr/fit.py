"""RiprFit: the fit that ripr() returns."""

from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from lodim import forms
from lodim.errors import ArgumentError
from lodim.fitting import saved
from lodim.fitting.fit import Fit
from lodim.models.ripr import explanation, report
from lodim.models.ripr.assigned_views import ClassViews, ClusterViews, NumberViews
from lodim.models.ripr.ensemble import CLASSES, CLUSTERS, LOG, Record, task_of
from lodim.models.ripr.explanation import by_code
from lodim.models.ripr.settings import Settings
from lodim.models.ripr.voting_views import VotingViews
from lodim.text import feature_columns
from lodim.typing import Data, FilePath, NewLevels, Offset, Prediction

PlotKind: TypeAlias = Literal["view", "shares", "objective", "calibration"]


class RiprFit(Fit):
    """Fitted views: sets of one to three features in which neighbours predict.

    Attributes
    ----------
    estimates : Ensemble
        The views, the training rows' features in them, and the view of each row.
    log : dict
        objective: value per round of the search, or leave-one-out loss with 0, 1, ... views that
        vote; converged; compared, possible: numbers of views; sampled: number of rows for the
        choice; flat: positions of features whose standard deviation is due to a few outliers.
    record : Record
        Leave-one-out results of the training rows.
    labels : tuple
        Labels of the training rows.

    See Also
    --------
    ripr, cv

    Notes
    -----
    A training row passed to predict(), augment() or evaluate() is among its own neighbours, at
    distance 0; the fit's own errors are leave-one-out. With method="assignment", evaluate() ignores
    rows that miss a feature in every view.

    Examples
    --------
    >>> import lodim as ld
    >>> fit = ld.ripr("species ~ .", ld.data("iris"), max_dim=2, k=10)
    >>> fit.view_names
    ['petal_length, petal_width']
    """

    name = "ripr"
    _estimate_name = "share of the rows"
    _predicts_steps = True

    estimates = forms.one_of(VotingViews, ClassViews, NumberViews, ClusterViews)
    settings = saved.settings(Settings, lambda_=forms.optional(forms.real(least=0)))
    log: dict[str, Any] = forms.part(LOG)
    record: Record = forms.part(Record)
    labels: tuple[Any, ...] = forms.several("n", forms.plain())

    def _check_fields(self):
        super()._check_fields()
        e, s = self.estimates, self.settings
        if (e.task, e.method, e.k) != (task_of(self.family), s.method, s.k):
            raise ValueError("the ensemble is not the one that the response and the settings need")
        if not len(self.log["objective"]):
            raise ValueError("the search has no round")

    # The contract of Fit -----------------------------------------------------------------------

    @property
    def types(self) -> tuple[str, ...]:  # type: ignore[override]
        """Values of `type` that predict() accepts for the response."""
        return {
            CLASSES: ("response", "link", "class", "prob", "view"),
            CLUSTERS: ("cluster", "view"),
        }.get(self.estimates.task, ("response", "link", "view"))

    def _answers(self, batch):
        e = self.estimates
        return batch.once(e, lambda: e.query(e.rows(batch), self._threads))

    def _score(self, batch):
        return self._answers(batch).score

    def _selected_features(self):
        t = self.estimates
        return np.flatnonzero(np.isin(t.axis_of, t.features[np.unique(t.views[t.views >= 0])]))

    def _selected_views(self):
        t = self.estimates
        axes = [t.features[view[view >= 0]] for view in t.views]
        return [np.flatnonzero(np.isin(t.axis_of, on)) for on in axes]

    def _expressions(self, features, offset):
        raise ArgumentError(
            "a fit of ripr cannot be exported, because it predicts by neighbours among all "
            "training rows: use save()"
        )

    def predict(
        self,
        data: Data,
        type: Prediction | Literal["view", "cluster"] | None = None,
        *,
        offset: Offset | None = None,
        new_levels: NewLevels = "error",
        threshold: float | None = None,
        output: FilePath | None = None,
    ) -> pd.Series | pd.DataFrame:
        """Return predictions with one row for each row of `data`, in its order and with its index.

        Parameters
        ----------
        data : frame
            New data; needs the columns of the formula's right side. Values may be missing.
        type : str, optional
            "response" (the default): a number, the probability of the second of two classes, or one
            column per class. "link": linear predictors, such as log-odds. "class": the most
            probable class (in ties, the largest). "prob": one column with the probability of each
            class. "view": the view (feature set) that predicts the row, or has most evidence.
            Without a response: "cluster" (default), such as "2.1", the first in view 2; or "view".
        offset : None
            Not allowed: ripr fits no offset.
        new_levels, threshold
            "error" or "missing" for levels not in training; probability from which the second of
            two classes is predicted.

        Returns
        -------
        Series or DataFrame
            NaN (None for classes, views, clusters) in rows that miss a feature in every view. If
            views vote, these rows get the prediction of the null model.

        See Also
        --------
        votes, explain, evaluate

        Examples
        --------
        >>> import lodim as ld
        >>> iris = ld.data("iris")
        >>> fit = ld.ripr("species ~ .", iris, max_dim=2, k=10)
        >>> fit.predict(iris[:2], "view").tolist()
        ['petal_length, petal_width', 'petal_length, petal_width']
        """
        if type is None:
            type = "cluster" if self.estimates.task == CLUSTERS else "response"
        return self._predict_rows(data, type, offset, new_levels, threshold)

    def _predict(self, batch, type):
        answers = self._answers(batch)
        if type == "view":
            return by_code(self.view_names, answers.view), "view"
        if type == "cluster":
            e = self.estimates
            where = e.assign(e.rows(batch), answers.view)[0]
            return by_code(e.cluster_names, where), "cluster"
        if type == "class":
            return by_code(self.levels, answers.code), self.design.response.name
        return super()._predict(batch, type)

    def augment(
        self,
        data: Data,
        *,
        offset: Offset | None = None,
        new_levels: NewLevels = "error",
        output: FilePath | None = None,
    ) -> pd.DataFrame:
        """Return `data` with predictions, residuals and predicting views as further columns.

        Parameters
        ----------
        data : frame
            As for predict(), with the response if the formula has one.
        offset, new_levels
            As in `predict`.

        Returns
        -------
        DataFrame
            `data` with .fitted, .resid, .loss, .class (for classes) and .view, the view (feature
            set) that predicts the row or has most weight; without a response, .cluster and .view.

        See Also
        --------
        predict, evaluate

        Examples
        --------
        >>> import lodim as ld
        >>> iris = ld.data("iris")
        >>> fit = ld.ripr("species ~ .", iris, max_dim=2, k=10)
        >>> fit.augment(iris[:2]).columns[-3:].tolist()
        ['.loss', '.class', '.view']
        """
        return self._augment_rows(data, offset, new_levels)

    def _new_columns(self, data, offset, new_levels):
        batch, kinds, old = self.design.apply(data, new_levels=new_levels), ["view"], None
        if self.estimates.task == CLUSTERS:
            kinds = ["cluster", "view"]
        else:
            known = self.design.apply(data, offset=offset, response=True, new_levels=new_levels)
            old = self._columns_of(known)
            batch = known if known.n == batch.n else batch  # neighbours are searched once
        new = {f".{kind}": self._in_all_rows(batch, *self._predict(batch, kind)) for kind in kinds}
        return pd.DataFrame(new) if old is None else old.assign(**new)

    def assignment(self) -> pd.DataFrame:
        """Return which share of each training row is assigned to each view (feature set).

        The shares of a row sum to one; if views vote, they are shares of the evidence for its
        leave-one-out prediction. Rows without any complete view have zeros; with
        method="assignment", so have rows of weight zero and rows without a numeric response.

        See Also
        --------
        votes, tidy

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.ripr("species ~ .", ld.data("iris"), max_dim=1, k=10, lambda_=0.01)
        >>> fit.assignment().shape
        (150, 2)
        """
        index = pd.Index(self.labels)
        return pd.DataFrame(self.estimates.assignment, index=index, columns=self.view_names)

    def votes(self, data: Data) -> pd.DataFrame:
        """Return the prediction of each view (feature set) for each row.

        Parameters
        ----------
        data : frame
            New data, as for predict().

        Returns
        -------
        DataFrame
            One column per view: its most probable class, or a number; None or NaN if the row misses
            a feature of the view. An ArgumentError if the formula has no response.

        See Also
        --------
        explain, tidy

        Examples
        --------
        >>> import lodim as ld
        >>> iris = ld.data("iris")
        >>> ld.ripr("species ~ .", iris, max_dim=2, k=10).votes(iris[:1]).shape
        (1, 1)
        """
        if self.estimates.task == CLUSTERS:
            raise ArgumentError("votes() needs a response on the left of '~'")
        batch = self.design.apply(data)
        value = self._answers(batch).value
        if self.levels is not None:
            value = by_code(self.levels, value)
        return self._in_all_rows(batch, value, self.view_names)

    def tidy(self) -> pd.DataFrame:
        """Return one row per view (feature set): share of rows, error, weight, number of features.

        estimate is the share of the training rows that the view predicts or, if views vote, for
        which it has most weight. error is the leave-one-out error of these rows: share wrong, or
        mean squared error; for clusters, the mean squared distance to their centre. weight is the
        mean over all rows of the view's share in `assignment()`.

        See Also
        --------
        votes, glance

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.ripr("species ~ .", ld.data("iris"), max_dim=2, k=10)
        >>> fit.tidy().round(2).iloc[:, :4]
                                term  estimate  error  weight
        0  petal_length, petal_width       1.0   0.04     1.0
        """
        e, dim = self.estimates, (self.estimates.views >= 0).sum(axis=1)
        columns = {"estimate": e.share, "error": self.record.error, "weight": e.mass, "dim": dim}
        return pd.DataFrame({"term": self.view_names} | columns)

    def glance(self) -> pd.DataFrame:
        """Return one row: family, sizes, views, lambda_, df, mean deviances, error, convergence.

        deviance, error and dev_ratio are leave-one-out results, in views (feature sets) chosen with
        the same rows; error is only for rows with all features of some view. Without a response,
        deviance is the mean squared distance to the cluster centres. df counts the features in use;
        lambda_ is NaN without a penalty.

        See Also
        --------
        tidy, summary

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.ripr("species ~ .", ld.data("iris"), max_dim=2, k=10)
        >>> fit.glance()[["n", "p", "n_views", "k"]]
             n  p  n_views   k
        0  150  4        1  10
        """
        s, r = self.settings, self.record
        row = {
            "family": self.family.name,
            "n": self.n,
            "n_dropped": self.design.n_dropped,
            "n_unlabelled": r.unlabelled,
            "n_without_view": r.blind,
            "p": len(self.design.names),
            "n_views": len(self.estimates),
            "n_compared": self.log["compared"],
            "n_possible": self.log["possible"],
            "k": s.k,
            "lambda_": np.nan if s.lambda_ is None else s.lambda_,
            "df": self.df,
            "deviance": r.deviance,
            "null_deviance": self._null_deviance,
            "dev_ratio": self.dev_ratio,
            "error": r.overall,
            "converged": self.converged,
            "n_rounds": len(self.log["objective"]),
        }
        return pd.DataFrame([row])

    _summary = report.summary
    _listing = report.listing
    _in_words = report.words
    _pictures = report.pictures

    def _plots(self):
        from lodim.models.ripr.plots import KINDS

        return KINDS

    # What only ripr has ------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of training rows."""
        return self.record.n

    def _complexity(self):
        return {"features": self.df, "parts": len(self.estimates), "part": "views"}

    @property
    def df(self) -> int:
        """Number of features that the views (feature sets) use."""
        return len(self.estimates.features)

    @property
    def _null_deviance(self):
        return self.record.null_deviance

    @property
    def _deviance(self):
        return self.record.deviance

    @property
    def view_names(self) -> list[str]:
        """Names of the views (feature sets): their features, separated by commas."""
        return [", ".join(names) for names in self.view_features]

    @property
    def view_features(self) -> list[tuple[str, ...]]:
        """Feature names of each view (feature set), as a list of tuples."""
        e, names = self.estimates, self.axis_names
        return [tuple(names[f] for f in e.features[e.columns(j)]) for j in range(len(e))]

    @property
    def axis_names(self) -> list[str]:
        """Names of the axes of views: a numeric feature is one axis, and so is a whole factor."""
        d, first = self.design, np.flatnonzero(np.diff(self.estimates.axis_of, prepend=-1))
        whole = np.bincount(self.estimates.axis_of) > 1
        return [
            d.term_names[d.term_of[f]] if several else d.names[f]
            for f, several in zip(first, whole, strict=True)
        ]

    def clusters(self) -> pd.DataFrame:
        """Return one row per cluster: view, rows, share, mean squared distance, centre by feature.

        Centres are in original units, NaN for features that the view (feature set) lacks; distances
        are in standard deviations. An ArgumentError if the formula has a response.

        See Also
        --------
        predict, lodim.ripr

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.ripr("~ petal_length + petal_width", ld.data("iris"), n_clusters=3, n_views=1)
        >>> fit.clusters()["petal_width"].round(1).tolist()
        [0.2, 1.3, 2.1]
        """
        e = self.estimates
        if e.task != CLUSTERS:
            raise ArgumentError("clusters() needs a formula without a response, such as '~ .'")
        where, squared = e.assign(e.X, e.assigned_view)
        rows = [(where == q) & (e.weight > 0) for q in range(len(e.centres))]
        frame = pd.DataFrame({"cluster": e.cluster_names})
        frame["view"] = [self.view_names[j] for j in e.centre_view]
        frame["n"] = [int(of.sum()) for of in rows]
        frame["share"] = frame["n"] / max(1, frame["n"].sum())
        frame["distortion"] = [squared[of].mean() if of.any() else np.nan for of in rows]
        own = e.views[e.centre_view]
        names = feature_columns([self.design.names[f] for f in e.features], frame)
        for a, (f, name) in enumerate(zip(e.features, names, strict=True)):
            centre = np.where(own == a, e.centres, 0.0).sum(axis=1) * self.design.scale[f]
            centre = np.where((own == a).any(axis=1), centre, np.nan)
            frame[name] = centre + self.design.mean[f]
        return frame

    explain = explanation.explain

    def plot(self, kind: PlotKind | None = None, ax: Any = None, **arguments: Any) -> Any:
        """Draw a plot and return its Axes.

        Parameters
        ----------
        kind : {"view", "shares", "objective", "calibration"}, optional
            By default the first kind that takes the arguments. "view": the views (feature sets)
            side by side; rows that the view predicts are solid. "shares": share of the rows and
            error of each view. "objective": leave-one-out loss by number of views; for
            `method="assignment"`, the criterion that the assignment of rows to views minimizes,
            by round of the algorithm. "calibration": observed share of a class by its predicted
            probability, in groups of `data`.
        ax : Axes, optional
            New axes by default. For "view", an array with one for each view.
        **arguments
            For "view": `row`, one row of new data, shown as a star with its neighbours; `top`, the
            number of views (at most 6); `data`, other rows than the training rows. For
            "calibration": `data` (needed); `level`, a class; `bins`, the number of groups (10). An
            unknown argument raises an ArgumentError.

        Returns
        -------
        Axes
            For "view" an array of Axes.

        See Also
        --------
        explain, report

        Examples
        --------
        >>> import lodim as ld
        >>> axes = ld.ripr("species ~ .", ld.data("iris"), max_dim=2, k=10).plot("view")
        """
        return super().plot(kind, ax, **arguments)
