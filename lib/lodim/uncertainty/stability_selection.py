"""Stability selection: terms that most half-samples of the rows select, with error bounds."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np
import pandas as pd

from lodim.checks import as_seed, whole
from lodim.design.frame import as_given
from lodim.errors import ArgumentError, DataError
from lodim.fitting.argument_names import with_known_arguments
from lodim.fitting.fit_model import in_memory, model_of, prepare, with_own
from lodim.report.tables import FitResult, Report, Table, listing, significant
from lodim.selection.folds import assign_draws, count_units
from lodim.selection.tuning import side_by_side
from lodim.text import counted
from lodim.typing import Data, FitT, FitT_co, Model, P, RowValues
from lodim.uncertainty.refits import fit_parts, settled

ROUNDING = 1e-9
FAR = 1e5  # parameter above which the tails of r-concave distributions do not change


def worst_case(q, p, cutoff):
    """Return a bound on the expected number of terms that are stable by chance.

    q : mean number of terms that a half of the rows selects
    p : number of terms
    cutoff : smallest share of halves that select a stable term"""
    # Shah and Samworth (2013), Theorem 1.
    return q**2 / (p * (2.0 * cutoff - 1.0))


def unimodal(q, p, cutoff, n_pairs):
    """Return a bound on the expected number of terms stable by chance; NaN if there is none.

    q : mean number of terms that a half of the rows selects
    p : number of terms
    cutoff : smallest share of halves that select a stable term"""
    theta, B = q / p, n_pairs
    # The share of pairs in which both halves select a term must be unimodal in distribution.
    # The bound needs a small q and a large cutoff (Shah and Samworth 2013, Theorem 2).
    least = min(0.5 + theta**2, 0.5 + 0.5 / B + 0.75 * theta**2)
    if theta > 3.0**-0.5 or cutoff <= least:
        return np.nan
    if cutoff <= 0.75:
        return q**2 / p / (2.0 * (2.0 * cutoff - 1.0 - 0.5 / B))
    return q**2 / p * 4.0 * (1.0 - cutoff + 0.5 / B) / (1.0 + 1.0 / B)


def r_concave(q, p, cutoff, n_pairs):
    """Return a bound on the expected number of terms stable by chance; NaN if there is none.

    q : mean number of terms that a half of the rows selects
    p : number of terms
    cutoff : smallest share of halves that select a stable term"""
    # The share of 2 n_pairs halves that select a term must be (-1/4)-concave in distribution, and
    # the share of pairs in which both do (-1/2)-concave (Shah and Samworth 2013, Eq. 8).
    theta, B = q / p, n_pairs
    t = int(np.ceil(cutoff * 2.0 * B - ROUNDING))
    most = min(largest_tail(theta**2, t - B, B, 0.5), largest_tail(theta, t, 2 * B, 0.25))
    return p * most if most < 1.0 else np.nan


def largest_tail(mean, t, B, r):
    """Return the largest possible P(X >= t / B) of a random variable X with the given mean.

    X has values 0, 1 / B, ..., 1; its probabilities to the power -r are convex. t, B : integers"""
    # Shah and Samworth (2013), App. A.4.
    from scipy.optimize import brentq, minimize_scalar

    eta, s = mean * B, -1.0 / r
    first = int(np.ceil(2.0 * eta)) + 1
    if t < first or first > B:
        return 1.0
    if eta == 0.0:
        return 0.0

    # At the maximum, B X is a mixture of D(k) and D(k + 1): D(k) has the weights below, 0 to k.
    def excess(a, k):
        weight = (1.0 + np.arange(k + 1) / a) ** s
        return np.arange(k + 1) @ weight / weight.sum() - eta

    def tail(a, k):
        j = np.arange(k + 1)
        weight = (1.0 + j / a) ** s
        return 1.0 - (k + 1.0 - eta) * weight[:t].sum() / ((k + 1.0 - j) @ weight)

    ends = {first - 1: FAR}
    for k in range(first, B + 1):
        ends[k] = brentq(excess, 1e-8, ends[k - 1], args=(k,), xtol=1e-14)
    best = tail(ends[B], B)
    for k in range(max(first, t), B):
        low, high = ends[k + 1], ends[k]
        found = minimize_scalar(lambda a, k=k: -tail(a, k), bounds=(low, high), method="bounded")
        best = max(best, -found.fun, tail(low, k), tail(high, k))
    return float(min(1.0, best))


SELECTING = "costnet, proset, ripr, and gbmap with l1_ratio above 0"


@with_known_arguments
def stability(
    model: Model[P, FitT],
    formula: str,
    data: Data,
    cutoff: float = 0.9,
    n: int = 50,
    groups: RowValues | None = None,
    seed: int = 0,
    progress: bool | None = None,
    *args: P.args,
    **arguments: P.kwargs,
) -> "Stability[FitT]":
    """Measure how often each term is selected in random half-samples of the rows.

    The rows are split into halves `n` times, and the model is fitted to both halves: complementary
    pairs (Shah and Samworth 2013). A term is stable if at least a share `cutoff` of the fits use
    it. The share is not a p-value; `Stability.bounds` limits the expected number of stable terms
    whose selection probability is below average.

    Parameters
    ----------
    model : model function
        Model that selects features: `costnet`, `proset` (features of positive weight), `ripr`
        (features of its views, and views), `gbmap` with l1_ratio above 0.
    formula, data, **arguments
        Arguments of the model. Settings that you do not give are chosen once, on all rows. A larger
        penalty or smaller budget selects fewer terms, and the bounds are lower. `costnet` is fast
        with lambda_; with a budget each half repeats the search.
    cutoff : float, default=0.9
        Smallest share of the fits that makes a term stable, above 0.5 and at most 1.
    n : int, default=50
        Number of pairs of halves; the model is fitted 2 n times.
    groups : column name or array (n,), optional
        Rows with equal values stay in the same half.
    seed : int, default=0
        Seed of the halves (stratified by class), and of the model if it takes a seed.
    progress : bool, optional
        Show progress: True at once, False never, default after three seconds.

    Returns
    -------
    Stability

    Raises
    ------
    ArgumentError, FormulaError, DataError
        If the model does not select features or raises it, or an argument is out of range.

    See Also
    --------
    Stability, bootstrap, cv

    Notes
    -----
    If a half selects q of p terms on average, the expected number of stable terms with selection
    probability at most q / p is at most q^2 / (p (2 cutoff - 1)), for any model (Theorem 1).
    Theorem 2 and Section 3.3 are sharper if the shares are unimodal or r-concave, as they nearly
    are in practice. The bound is of little use if most terms have an effect.

    References
    ----------
    Meinshausen & Buhlmann (2010). Stability selection. JRSS B 72.
    Shah & Samworth (2013). Variable selection with error control: another look at stability
    selection. JRSS B 75.

    Examples
    --------
    >>> import lodim as ld
    >>> found = ld.stability(ld.costnet, "mpg ~ .", ld.data("autompg"), lambda_=1.0, n=10)
    >>> found.stable
    ['weight', 'model_year', 'origin']
    >>> round(found.bounds["worst case"], 2)
    2.63
    """
    right = isinstance(cutoff, int | float | np.number) and not isinstance(cutoff, bool)
    if not right or not 0.5 < cutoff <= 1.0:
        raise ArgumentError(f"cutoff must be above 0.5 and at most 1, not {cutoff!r}")
    n, seed = whole("n", n), as_seed(seed)
    of = model_of(model)
    problem = prepare(of, formula, data, with_own(of, arguments, seed=seed), groups=groups)
    problem = replace(problem, batch=in_memory("stability()", problem.batch))
    if not of.selects(problem.settings):
        needs = f"stability needs a model that selects features ({SELECTING})"
        raise ArgumentError(f"{needs}, not {of.name}, which uses all")
    if count_units(problem.batch) < 2:
        what = "at least two rows or groups must have a positive weight"
        raise DataError(f"{what}, to be split into halves")
    full = of.fit(problem)
    halves = assign_draws(problem.batch, 2, problem.design.levels, seed, n)
    held_out = [half == k for half in halves for k in (0, 1)]
    how = {"choose": False, "light": True, "jobs": side_by_side(problem), "what": "fits to halves"}
    own = settled(problem, full)
    selected = fit_parts(own, held_out, lambda fit, _: (_terms(fit), _views(fit)), **how)
    frame, views = _frames(selected, full, cutoff)
    q = sum(len(terms) for terms, _ in selected) / len(selected)
    return Stability(full, frame, float(cutoff), n, q, views)


def _terms(fit):
    return np.unique(fit.design.term_of[fit._selected_features()])


def _views(fit):
    return {tuple(np.unique(fit.design.term_of[view]).tolist()) for view in fit._selected_views()}


def _frames(selected, full, cutoff):
    """Return the frame of tidy(), and one of views (feature sets) or None, largest share first.

    selected : per half of the rows, positions of its terms, and views as tuples of positions
    full : fit to all rows
    cutoff : smallest share of halves that select a stable term"""
    names = full.design.term_names
    count = np.bincount(np.concatenate([terms for terms, _ in selected]), minlength=len(names))
    share = count / len(selected)
    frame = pd.DataFrame({"term": list(names), "share": share})
    frame["stable"] = share >= cutoff - ROUNDING
    frame["in_fit"] = np.isin(np.arange(len(names)), _terms(full))
    frame = frame.iloc[np.argsort(-share, kind="stable")].reset_index(drop=True)
    counts = Counter(view for _, views in selected for view in views)
    if not counts:
        return frame, None
    order, own = sorted(counts, key=lambda view: (-counts[view], view)), _views(full)
    views = pd.DataFrame({"view": [", ".join(names[t] for t in view) for view in order]})
    views["share"] = [counts[view] / len(selected) for view in order]
    views["in_fit"] = [view in own for view in order]
    return frame, views


@dataclass(frozen=True, repr=False)
class Stability(FitResult, Generic[FitT_co]):
    """Selection frequencies of terms in half-samples of the rows.

    Attributes
    ----------
    fit : Fit
        Fit to all rows, with the same settings.
    frame : DataFrame
        Result of tidy().
    cutoff : float
        Smallest share of the halves that makes a term stable.
    n : int
        Number of pairs of halves.
    n_selected : float
        Mean number of terms that a half selects.
    views : DataFrame or None
        For ripr, one row per view: view, share, in_fit.

    See Also
    --------
    stability, costnet

    Examples
    --------
    >>> import lodim as ld
    >>> ld.stability(ld.costnet, "mpg ~ .", ld.data("autompg"), lambda_=1.0, n=5).stable
    ['weight', 'model_year', 'origin']
    """

    fit: FitT_co
    frame: pd.DataFrame
    cutoff: float
    n: int
    n_selected: float
    views: pd.DataFrame | None

    @property
    def stable(self) -> list[str]:
        """Stable terms, most often selected first."""
        return self.frame["term"][self.frame["stable"]].tolist()

    @property
    def bounds(self) -> dict[str, float]:
        """Bounds on the expected number of terms stable by chance; NaN if not applicable.

        The keys are the assumptions: "worst case" (none), "unimodal" and "r-concave"."""
        q, p = self.n_selected, len(self.frame)
        sharper = {"unimodal": unimodal, "r-concave": r_concave}
        bounds = {name: bound(q, p, self.cutoff, self.n) for name, bound in sharper.items()}
        return {"worst case": worst_case(q, p, self.cutoff)} | bounds

    @as_given
    def tidy(self) -> pd.DataFrame:
        """Return the selection frequency of each term.

        Returns
        -------
        DataFrame
            Columns: term; share of the halves that select it; stable, whether the share is at least
            `cutoff`; in_fit, whether the fit to all rows uses the term. Most often selected first.

        See Also
        --------
        summary, plot

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> ld.stability(ld.costnet, "mpg ~ .", cars, lambda_=3.0, n=5).tidy().columns.tolist()
        ['term', 'share', 'stable', 'in_fit']
        """
        return self.frame.copy()

    def plot(self, ax: Any = None, *, top: int = 30) -> Any:
        """Draw the share of the halves that select each term, with the cutoff.

        Parameters
        ----------
        ax : Axes, optional
        top : int, default=30
            Largest number of terms drawn, most often selected first.

        Returns
        -------
        Axes

        See Also
        --------
        tidy

        Examples
        --------
        >>> import lodim as ld
        >>> ax = ld.stability(ld.costnet, "mpg ~ .", ld.data("autompg"), lambda_=3.0, n=5).plot()
        """
        from lodim.uncertainty.plots import draw_stability

        return draw_stability(self, ax, top)

    def summary(self) -> Report:
        """Return a report: settings, shares and bounds.

        See Also
        --------
        tidy

        Examples
        --------
        >>> import lodim as ld
        >>> ld.stability(ld.costnet, "mpg ~ .", ld.data("autompg"), lambda_=3, n=5).summary().title
        'Stability selection'
        """
        response = self.fit.design.response
        header = {"Model": self.fit.name, "Response": response.name if response else "none"}
        header |= {"Pairs of halves": str(self.n), "Cutoff": f"{self.cutoff:g}"}
        header |= {"Terms": str(len(self.frame)), "Stable": str(len(self.stable))}
        notes = tuple(f"{line}." for line in (self.fit.call, *self._words()))
        return Report("Stability selection", tuple(header.items()), self._tables(), notes, False)

    def __repr__(self):
        made = f"{counted(self.n, 'complementary pair')} of halves; stable from {self.cutoff:g} on"
        lines = [made, *self._words()]
        return listing(f"stability of {self.fit.call}", lines, self._tables()[0], whole="tidy()")

    def _words(self):
        """Return lines of text: mean number of selected terms, bounds on terms stable by chance."""
        q, p, bounds = self.n_selected, len(self.frame), self.bounds
        known = [k for k in ("unimodal", "r-concave") if np.isfinite(bounds[k])]
        more = [f"{significant(bounds[k])} if shares are {k}" for k in known]
        if q == 0.0:
            what = f"No fit to a half selects any of {counted(p, 'term')}, with the settings of "
            what += "the fit to all rows: their penalty is too large (or budget too small) for "
            what += "half of the rows, or no term is related to the response"
            return [f"{what}. Try a smaller penalty or a larger budget"]
        some, worst = counted(p, "term"), significant(bounds["worst case"])
        lines = [
            f"A fit to a half selects {significant(q)} of {some} on average, with the settings of "
            "the fit to all rows",
            f"Among the terms selected less often than that average, at most {worst} are expected "
            "to be stable" + "".join(f", {text}" for text in more),
        ]
        if bounds["worst case"] >= p and not more:
            lines[1] = (
                "So many terms say nothing on which are stable by chance: a larger penalty or a "
                "smaller budget selects fewer"
            )
        if not self.stable:
            largest = significant(self.frame["share"].max())
            cure = "A smaller penalty or a larger budget selects more terms, with a larger bound"
            lines.append(f"No term is stable: the largest share is {largest}. {cure}")
        return lines

    def _tables(self):
        shown = self.frame.set_index("term").rename_axis(None)
        shown.columns = ["Share", "Stable", "In fit"]
        yes = dict.fromkeys(("Stable", "In fit"), lambda v: "yes" if v else "")
        tables = [Table("", shown, {"Share": ".2f"} | yes)]
        if self.views is not None:
            views = self.views.set_index("view").rename_axis(None)
            views.columns = ["Share", "In fit"]
            tables.append(Table("Views", views, {"Share": ".2f", "In fit": yes["In fit"]}))
        return tables
