"""Effects of the features of a fit on its predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import ndtri

from lodim.checks import as_seed, flag, one_of, share, whole
from lodim.design import columns
from lodim.design.frame import PANDAS, as_given
from lodim.errors import ArgumentError, DataError, no_row_warnings
from lodim.fitting.argument_names import with_known_arguments
from lodim.fitting.fit import Fit, check_fit
from lodim.interpretation.questions import Question
from lodim.interpretation.rows import features_of, read_rows
from lodim.progress import steps
from lodim.report import phrases
from lodim.report.tables import FitResult, Report, Table, listing, significant
from lodim.text import counted, first_names
from lodim.typing import Data, Offset, Scale
from lodim.uncertainty.replicates import Bootstrap, percentile, standard_errors

KINDS = {
    "ale": "accumulated local effects",
    "pd": "partial dependence",
    "slope": "average slopes",
    "importance": "permutation importance",
}
CURVES = ("ale", "pd")
MEANINGS = {  # notes below the table
    "ale": "Change of the prediction along each feature, among existing rows; the mean is zero.",
    "pd": "Mean prediction if all rows had this value, even if it is unlikely for them.",
}
LEVEL = 0.95  # default confidence level
TYPES = ("response", "link")
MOST_GROUPS = 50
RUG = 200  # number of values of a numeric feature that a plot shows
NAMED = 20


@with_known_arguments
def effects(
    fit: Fit,
    data: Data,
    terms: str | tuple[str, str] | Sequence[str | tuple[str, str]] | None = None,
    *,
    kind: Literal["ale", "pd", "slope", "importance"] = "ale",
    type: Scale | None = None,
    by: str | None = None,
    interval: Bootstrap[Any] | None = None,
    level: float = LEVEL,
    offset: Offset | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> "Effects":
    """Estimate the effect of each feature on the predictions of a fit of any model.

    Parameters
    ----------
    fit : Fit
        Fit with a response.
    data : frame
        Rows over which effects are averaged (by the fit's weights column), usually training rows.
    terms : str, pair of str, or list of these; optional
        Columns of the data. A pair of numbers, ("a", "b") or "a:b", is their interaction, for kind
        "ale". By default all columns that the fit uses.
    kind : {"ale", "pd", "slope", "importance"}, default="ale"
        "ale": accumulated local effects (Apley and Zhu 2020), changes of the prediction along a
        feature for existing rows, with mean zero. Levels are in declared order, or else ordered by
        similarity. "pd": partial dependence, the mean prediction if all rows had the same value;
        with correlated features this includes impossible rows. "slope": mean derivative with
        respect to a number; for levels mean change from the most frequent level. "importance":
        increase of the mean deviance if the values of a column are permuted; needs the response.
    type : {"response", "link"}, default="response"
        Scale of the predictions: mean of the response (probabilities for classes), or link scale.
    by : column name, optional
        Separate effects for the rows of each value of a column.
    interval : Bootstrap, optional
        Result of `lodim.bootstrap` for this fit, for confidence limits.
    level : float, default=0.95
        Confidence level; needs `interval`.
    offset : array (N,), number or column name, optional
        Offset of the rows, if the fit had an array as offset.
    seed : int, default=0
        Seed of the rows sampled for "pd", and of permutations.
    progress : bool, optional
        Show progress: True at once, False never, default after three seconds.

    Returns
    -------
    Effects

    Raises
    ------
    ArgumentError, DataError
        If the fit has no response; `interval` belongs to another fit, stores no fits or has too few
        replicates for `level`; for slopes of `ripr`, whose predictions are step functions; or if a
        term is not a column of the fit, or a column is missing.

    See Also
    --------
    Effects, bootstrap

    Notes
    -----
    For a pair of features, points without rows nearby are NaN. Importance on training rows shows
    which columns the fit uses, not the accuracy lost on new rows. Rows with a missing feature or
    weight zero are ignored. Effects describe the fit; they need not be causal.

    References
    ----------
    Apley & Zhu (2020). Visualizing the effects of predictor variables in black box supervised
    learning models. JRSS B 82, 1059-1086.
    Friedman (2001). Greedy function approximation. Annals of Statistics 29, 1189-1232.
    Breiman (2001). Random forests. Machine Learning 45, 5-32.

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> fit = ld.gbmap("mpg ~ weight + origin", cars, m=3, lambda_=0.1)
    >>> ld.effects(fit, cars, "origin").tidy()[["value", "estimate"]].round(2)
        value  estimate
    0   Japan      1.37
    1  Europe      0.43
    2     USA     -0.56
    """
    _check_call(fit, kind, type, interval, by)
    level = share("level", level) if interval is None else interval._level(level)
    seed = as_seed(seed)
    replicates = [] if interval is None else interval._kept()
    rows, features = read_rows(fit, data, offset, kind == "importance", by, replicates)
    if interval is None and kind != "importance" and level != LEVEL:
        raise ArgumentError(f"level={level:g} needs intervals: also give interval=")
    terms = features_of(terms, features)
    if not terms:
        raise ArgumentError(f"this fit of {fit.name} uses no column, so there are no effects")
    if kind != "ale" and any(isinstance(term, tuple) for term in terms):
        raise ArgumentError(f"a pair of features needs kind='ale', not {kind!r}")
    ask = Question([fit, *replicates], kind, TYPES[0] if type is None else type, seed)
    groups = {None: np.arange(rows.n)} if by is None else _groups(by, rows.columns[by])
    frames = []
    with no_row_warnings():
        for name, at in steps(groups.items(), len(groups), "groups"):
            held = {key: feature.take(at) for key, feature in features.items()}
            found = ask.of(rows.take(at) if by is not None else rows, held, terms)
            frame = pd.concat([_tidy(fit, one, level) for one in found], ignore_index=True)
            if by is not None:
                frame.insert(0, "group", name)
            frames.append(frame)
    frame = pd.concat(frames, ignore_index=True)
    if kind == "importance" and frame["estimate"].isna().all():
        raise DataError("permutation importance needs at least two rows with a response")
    shown = {name for term in terms for name in ([term] if isinstance(term, str) else term)}
    rugs = {name: _rug(features[name]) for name in shown}
    spreads = {name: _spread(features[name], rows.weight) for name in shown}
    how = kind, ask.type, by, level, interval is not None
    return Effects(fit, frame, *how, rows.n, rugs, spreads)


def _check_call(fit, kind, type, interval, by):
    one_of("kind", kind, KINDS)
    check_fit(fit)
    if fit.design.response is None:
        raise ArgumentError("effects need a response, and the formula of this fit has none")
    if type is not None:
        one_of("type", type, TYPES)
        if kind == "importance":
            why = "which is in units of the deviance"
            raise ArgumentError(f"type= cannot be given with kind='importance', {why}")
    if kind == "slope" and fit._predicts_steps:
        what = f"the predictions of {fit.name} are piecewise constant"
        raise ArgumentError(f"{what}, so they have no slope: use kind='ale'")
    if interval is not None and getattr(interval, "fit", None) is not fit:
        words = "the result of lodim.bootstrap of this fit"
        raise ArgumentError(f"interval must be {words}, not {interval!r:.60}")
    if by is not None and not isinstance(by, str):
        raise ArgumentError(f"by must be the name of a column, not {by!r:.80}")


def _groups(by, column):
    """Return a dict: level of a Column -> positions of its rows; by : the name of the column."""
    column = columns.as_levels(column)
    codes = np.unique(column.codes[column.codes >= 0])
    groups = {column.levels[k]: np.flatnonzero(column.codes == k) for k in codes}
    if not 0 < len(groups) <= MOST_GROUPS:
        raise ArgumentError(f"by={by!r} must have 1 to {MOST_GROUPS} values, not {len(groups)}")
    return groups


def _tidy(fit, found, level):
    """Return the TermEffect `found` as a frame, a row per point and class; level : confidence."""
    q, K = found.estimate.shape
    pair = isinstance(found.values[0], tuple) if found.values else False
    frame = pd.DataFrame({"term": [found.term] * q})
    frame["value"] = [value[0] for value in found.values] if pair else found.values
    if pair:
        frame["value_2"] = [value[1] for value in found.values]
    if K > 1:
        of_classes = len(fit.levels) == K  # ordered classes have one linear predictor less
        names = fit.levels if of_classes else fit.family.score_names(fit.levels)
        frame = pd.concat([frame.assign(**{"class": name}) for name in names])
    frame["estimate"] = found.estimate.T.ravel()
    low = high = error = np.full(q * K, np.nan)
    if len(found.replicates):
        flat = found.replicates.transpose(0, 2, 1).reshape(len(found.replicates), -1)
        error, (low, high) = standard_errors(flat), percentile(flat, level)
    elif found.error is not None:
        error = found.error.T.ravel()
        half = ndtri(0.5 + 0.5 * level) * error
        low, high = frame["estimate"] - half, frame["estimate"] + half
    return frame.assign(std_error=error, conf_low=low, conf_high=high)


def _place(row):
    if "value_2" not in row or pd.isna(row["value_2"]):
        return significant(row["value"])
    return f"{significant(row['value'])}, {significant(row['value_2'])}"


def _rug(feature):
    """Return values that show a feature's distribution: quantiles of a number, shares of levels."""
    known = feature.values[np.isfinite(feature.values)]
    if feature.levels is not None:
        count = np.bincount(known.astype(int), minlength=len(feature.levels))
        return dict(zip(feature.levels, count / max(count.sum(), 1), strict=True))
    some = known[:: max(1, len(known) // (10 * RUG))]
    return np.quantile(some, np.linspace(0.0, 1.0, RUG)) if known.size else known


def _spread(feature, weight):
    known = np.isfinite(feature.values)
    if feature.levels is not None or not known.any():
        return 1.0
    x, w = feature.values[known], weight[known]
    return float(np.sqrt(np.average((x - np.average(x, weights=w)) ** 2, weights=w)))


@dataclass(frozen=True, repr=False, eq=False)
class Effects(FitResult):
    """Effects of the features of a fit on its predictions.

    Attributes
    ----------
    fit : Fit
    frame : DataFrame
        Result of `tidy`.
    kind, type, by, level
        Arguments of `effects`.
    replicated : bool
        Whether the limits come from a bootstrap.
    n : int
        Number of rows of the data.
    rugs : dict
        Quantiles of each numeric feature, and shares of the levels of all other features, by name.
    spreads : dict
        Standard deviation of each numeric feature; 1 for a feature with levels.

    See Also
    --------
    effects, Bootstrap

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> found = ld.effects(ld.glm("mpg ~ weight + model_year", cars), cars)
    >>> found.tidy().columns.tolist()[:4]
    ['term', 'value', 'estimate', 'std_error']
    """

    fit: Any
    frame: pd.DataFrame
    kind: str
    type: str
    by: str | None
    level: float
    replicated: bool
    n: int
    rugs: dict[str, Any]
    spreads: dict[str, float]

    @as_given
    def tidy(self) -> pd.DataFrame:
        """Return the effects as a data frame, one row per point of each effect.

        Returns
        -------
        DataFrame
            Columns: group (value of `by`, if given), term, value (of the feature; for slopes the
            comparison), value_2 (for pairs), class (if there are more than two), estimate,
            std_error, conf_low, conf_high. Errors and limits come from `interval`. Without an
            interval they are NaN; only "importance" has errors, over rows and permutations, and
            normal limits. In frames other than pandas, `value` is text if some terms have
            numbers and others levels.

        See Also
        --------
        ranges, plot

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> found = ld.effects(ld.glm("mpg ~ weight + model_year", cars), cars)
        >>> found.tidy()["term"].unique().tolist()
        ['weight', 'model_year']
        """
        frame = self.frame.copy()
        if self._frame_kind != PANDAS and frame["value"].dtype == object:
            frame["value"] = [str(value) for value in frame["value"]]
        return frame

    def ranges(self) -> pd.DataFrame:
        """Return the range of each curve, the widest first.

        Returns
        -------
        DataFrame
            One row per curve: group (if any), term, class (if any), low and high (smallest and
            largest estimate), at_low and at_high (their feature values), and range (high - low). An
            ArgumentError for a kind without curves.

        See Also
        --------
        tidy, plot

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> found = ld.effects(ld.glm("mpg ~ weight + model_year", cars), cars)
        >>> found.ranges().shape[0]
        2
        """
        if self.kind not in CURVES:
            raise ArgumentError(f"kind={self.kind!r} has no curves: tidy() has its estimates")
        keys = [name for name in ("group", "term", "class") if name in self.frame]
        rows = []
        for names, part in self.frame.groupby(keys, sort=False):
            ends = part.loc[[part["estimate"].idxmin(), part["estimate"].idxmax()]]
            places = [_place(row) for _, row in ends.iterrows()]
            rows.append([*names, *ends["estimate"], *places, np.ptp(ends["estimate"])])
        frame = pd.DataFrame(rows, columns=[*keys, "low", "high", "at_low", "at_high", "range"])
        return frame.sort_values("range", ascending=False, kind="stable", ignore_index=True)

    def summary(self, *, full: bool = False) -> Report:
        """Return a report of the effects that prints as a table.

        Parameters
        ----------
        full : bool, default=False
            Show all rows of tables with more than 30 rows.

        See Also
        --------
        tidy, ranges

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> found = ld.effects(ld.glm("mpg ~ weight + model_year", cars), cars)
        >>> print(found.summary().as_text().splitlines()[0].strip())
        Accumulated local effects
        """
        flag("full", full)
        response = self.fit.design.response.name
        header = {"Model": self.fit.name, "Response": response, "Rows": str(self.n)}
        header |= {"Of": self._scale}
        title = KINDS[self.kind].capitalize()
        return Report(title, tuple(header.items()), [self._table()], self._notes(), full)

    def plot(self, term: str | None = None, ax: Any = None, *, top: int = 9) -> Any:
        """Draw the curves with a rug of the data; slopes and importance as points.

        Parameters
        ----------
        term : str, optional
            Term to draw (an ArgumentError if unknown); default: all terms, one panel per term.
        ax : Axes, optional
            Axes to draw on, for a single panel; an ArgumentError for several panels.
        top : int, default=9
            Largest number of terms drawn, those with the widest curves. For slopes and importance:
            number of estimates drawn, the largest.

        Returns
        -------
        Axes, or an array of Axes

        See Also
        --------
        ranges

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> ax = ld.effects(ld.glm("mpg ~ weight + model_year", cars), cars).plot("weight")
        """
        from lodim.interpretation import plots

        known = list(dict.fromkeys(self.frame["term"]))
        if not (term is None or (isinstance(term, str) and term in known)):
            terms = first_names(known, NAMED)
            raise ArgumentError(f"there is no term {term!r:.80}; the terms are {terms}")
        top = whole("top", top)
        if self.kind not in CURVES:
            return plots.points(self, ax, term=term, top=top)
        if term is None and len(known) > 1:
            if ax is not None:
                raise ArgumentError("ax= needs a single term: give term=")
            return plots.panels(self, None, top=top)
        return plots.curve(self, ax, term=known[0] if term is None else term)

    # Shared by the above --------------------------------------------------------------------------

    @property
    def _scale(self):
        if self.kind == "importance":
            return "the mean deviance"
        if self.type == "link":
            return phrases.scale(self.fit)
        return phrases.modelled(self.fit) if "class" not in self.frame else "the probability"

    def _table(self, notes=()):
        shown = self.ranges() if self.kind in CURVES else self.frame.dropna(axis=1, how="all")
        shown = shown.drop(columns="value") if self.kind == "importance" else shown
        return Table("", shown.set_index("term").rename_axis(None), notes=notes)

    def _notes(self):
        notes = [MEANINGS[self.kind]] if self.kind in MEANINGS else []
        if self.replicated:
            limits = f"{100.0 * self.level:g}% limits from bootstrap replicates"
            notes.append(f"{limits}, with the limitations of the bootstrap.")
        elif self.kind == "importance":
            what = "Standard errors over rows and permutations for this fit"
            notes.append(f"{what}; they do not include the uncertainty of the fit.")
        return notes

    def __repr__(self):
        lines = [f"{KINDS[self.kind].capitalize()} on {self._scale}, {counted(self.n, 'row')}"]
        lines += [f"By {self.by}"] if self.by else []
        table = self._table(self._notes())
        return listing(f"effects of {self.fit.call}", lines, table, whole="tidy()")
