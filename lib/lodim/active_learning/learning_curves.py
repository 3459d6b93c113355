"""Learning curves: areas under them, paired tests after each round, and plots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from scipy.special import bdtr, stdtr

from lodim.checks import one_of
from lodim.errors import ArgumentError
from lodim.plot.axes import GREY, colour, ensure_axes, tidy, whole_ticks
from lodim.plot.lettering import literal
from lodim.plot.lines import name_ends
from lodim.report.tables import Table, listing, significant
from lodim.typing import Curve

MEASURES = {"accuracy": 1.0, "log_loss": -1.0}  # 1: larger is better; -1: smaller is better


class Run(Protocol):
    """Type of a run of active learning, such as a Learner."""

    @property
    def curve(self) -> pd.DataFrame:
        """Measures after each round, one row per round."""

    @property
    def hits(self) -> list[np.ndarray]:
        """Whether each test row was predicted correctly, (n_test,) bool, one array per round."""


def learning_curves(
    runs: Mapping[str, Run | Sequence[Run]],
    *,
    measure: Literal["accuracy", "log_loss"] = "accuracy",
) -> "LearningCurves":
    """Compare runs of active learning that started with the same rows.

    Parameters
    ----------
    runs : mapping of str to Learner, or to a list of them
        Runs by name, for example by score; a list has one run per repetition. All runs of a
        repetition share their `test` rows. All runs have the same numbers of labelled rows; an
        ArgumentError otherwise.
    measure : {"accuracy", "log_loss"}
        Measure on the test rows, default="accuracy".

    Returns
    -------
    LearningCurves

    See Also
    --------
    LearningCurves, active

    Examples
    --------
    >>> import lodim as ld
    >>> iris = ld.data("iris").sample(frac=1, random_state=0)
    >>> start = ld.ripr, "species ~ .", iris[:10], iris[10:100]
    >>> runs = {s: ld.active(*start, score=s, test=iris[100:]) for s in ("margin", "random")}
    >>> runs = {s: run.replay(iris["species"], n=20, rounds=2) for s, run in runs.items()}
    >>> ld.learning_curves(runs).n_labelled.tolist()
    [10, 30, 50]
    """
    one_of("measure", measure, MEASURES)
    if not isinstance(runs, Mapping):
        raise ArgumentError(f"runs must be a dict of learners by name, not {runs!r:.80}")
    lists = {name: list(v) if isinstance(v, Sequence) else [v] for name, v in runs.items()}
    for run in (run for v in lists.values() for run in v):
        if not hasattr(run, "curve"):
            raise ArgumentError(f"runs must be results of lodim.active, not {run!r:.80}")
    if not lists or min(map(len, lists.values())) == 0:
        raise ArgumentError("runs must name at least one run")
    if len({len(v) for v in lists.values()}) > 1:
        raise ArgumentError("every name must have the same number of runs, one per repetition")
    curves = [run.curve for v in lists.values() for run in v]
    rounds = min(map(len, curves))
    labelled = curves[0]["n_labelled"].to_numpy()[:rounds]
    if any((c["n_labelled"].to_numpy()[:rounds] != labelled).any() for c in curves):
        raise ArgumentError("all runs must have the same numbers of labelled rows")
    if any(c["accuracy"].isna().any() for c in curves):
        raise ArgumentError("a learning curve needs test rows: give test= to active()")
    if any(c[measure].isna().any() for c in curves):
        raise ArgumentError(
            "log_loss is missing in rounds whose fit knows no class of the test rows, as at a cold "
            "start: use measure='accuracy'"
        )
    values = {
        name: np.array([run.curve[measure].to_numpy()[:rounds] for run in v])
        for name, v in lists.items()
    }
    hits = {name: [np.array(run.hits[:rounds]) for run in v] for name, v in lists.items()}
    return LearningCurves(labelled, values, hits, measure)


@dataclass(frozen=True, repr=False)
class LearningCurves:
    """Learning curves of several runs.

    Attributes
    ----------
    n_labelled : (T,) number of labelled rows after each of T rounds
    values : dict of name to array (repetitions, T): the measure after each round
    hits : dict of name to list of (T, n_test) bool: whether each test row was predicted correctly
    measure : "accuracy" or "log_loss"

    See Also
    --------
    learning_curves, Learner

    Examples
    --------
    >>> import lodim as ld
    >>> wine = ld.data("wine").sample(frac=1, random_state=0)
    >>> run = ld.active(ld.ripr, "cultivar ~ .", wine[:15], wine[15:35], test=wine[90:])
    >>> ld.learning_curves({"diverse": run.replay(wine["cultivar"])}).n_labelled.tolist()
    [15, 25, 35]
    """

    n_labelled: np.ndarray
    values: dict[str, np.ndarray]
    hits: dict[str, list[np.ndarray]]
    measure: str

    @property
    def repetitions(self) -> int:
        """Number of runs that each curve averages, such as one per random split of the rows."""
        return len(next(iter(self.values.values())))

    def tidy(self) -> pd.DataFrame:
        """Return the curves in long form: run, n_labelled, mean over the repetitions, and its se.

        See Also
        --------
        areas

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine").sample(frac=1, random_state=0)
        >>> run = ld.active(ld.ripr, "cultivar ~ .", wine[:15], wine[15:35], test=wine[90:])
        >>> ld.learning_curves({"diverse": run.replay(wine["cultivar"])}).tidy().columns.tolist()
        ['run', 'n_labelled', 'mean', 'se']
        """
        frames = []
        for name, v in self.values.items():
            columns = {"mean": v.mean(axis=0), "se": _standard_error(v)}
            frames.append(pd.DataFrame({"run": name, "n_labelled": self.n_labelled} | columns))
        return pd.concat(frames, ignore_index=True)

    def areas(self, against: str | None = None) -> pd.DataFrame:
        """Return the mean height of each curve, and its paired difference from one of the curves.

        Parameters
        ----------
        against : str, optional
            Run to compare with; default: "random" if present, else the first. An ArgumentError if
            there is no such run.

        Returns
        -------
        DataFrame
            One row per run: area (under the curve, divided by the range of n_labelled), se;
            difference from `against`, difference_se; p of the paired t test over repetitions
            (NaN with one repetition).

        See Also
        --------
        wins, tidy

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine").sample(frac=1, random_state=0)
        >>> run = ld.active(ld.ripr, "cultivar ~ .", wine[:15], wine[15:35], test=wine[90:])
        >>> ld.learning_curves({"diverse": run.replay(wine["cultivar"])}).areas().shape
        (1, 5)
        """
        against = self._reference() if against is None else self._known(against)
        areas, n = {}, self.n_labelled
        for name, v in self.values.items():
            width = n[-1] - n[0]
            areas[name] = np.trapezoid(v, n, axis=1) / width if len(n) > 1 else v[:, 0]
        rows = []
        for name, area in areas.items():
            gain = area - areas[against]
            p = np.nan if name == against else float(_paired(gain[:, None])[0])
            se, difference_se = (_standard_error(v[:, None])[0] for v in (area, gain))
            rows.append([area.mean(), se, gain.mean(), difference_se, p])
        columns = ["area", "se", "difference", "difference_se", "p"]
        return pd.DataFrame(rows, columns=columns, index=pd.Index(areas, name="run"))

    def wins(self, of: str) -> pd.DataFrame:
        """Return the significance of one run's wins over the others after each round.

        Parameters
        ----------
        of : str
            Name of the run; an ArgumentError if there is no such run.

        Returns
        -------
        DataFrame
            One row per round and one column per other run: -log10 of a p-value, negative if `of`
            is worse; p < 0.05 above 1.3. The test is a t test over repetitions or, with one, a
            sign test over the test rows that only one of the two runs predicts correctly.

        See Also
        --------
        areas, plot

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine").sample(frac=1, random_state=0)
        >>> start = ld.ripr, "cultivar ~ .", wine[:15], wine[15:35]
        >>> runs = {s: ld.active(*start, score=s, test=wine[90:]) for s in ("margin", "random")}
        >>> runs = {s: run.replay(wine["cultivar"]) for s, run in runs.items()}
        >>> ld.learning_curves(runs).wins("margin").shape
        (3, 1)
        """
        of = self._known(of)
        sign = MEASURES[self.measure]
        columns = {}
        for name in self.values:
            if name == of:
                continue
            gain = sign * (self.values[of] - self.values[name])
            if self.repetitions > 1:
                p, side = _paired(gain), np.sign(gain.mean(axis=0))
            else:
                mine, others = self.hits[of][0], self.hits[name][0]
                a, b = (mine & ~others).sum(axis=1), (others & ~mine).sum(axis=1)
                p = np.minimum(1.0, 2.0 * bdtr(np.minimum(a, b).astype(float), a + b, 0.5))
                p, side = np.where(a + b == 0, 1.0, p), np.sign(a - b)
            columns[name] = side * -np.log10(np.maximum(p, 1e-300))
        return pd.DataFrame(columns, index=pd.Index(self.n_labelled, name="n_labelled"))

    def plot(self, kind: Curve = "curve", ax: Any = None, *, of: str | None = None) -> Any:
        """Draw the learning curves, or the significance of one run's wins.

        Parameters
        ----------
        kind : {"curve", "winloss"}
            Means with standard errors ("curve"), or the result of `wins` ("winloss").
        ax : Axes, optional
        of : str, optional
            Name of the run for "winloss" (with "curve" an ArgumentError); default: the first.

        Returns
        -------
        Axes

        See Also
        --------
        areas, wins

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine").sample(frac=1, random_state=0)
        >>> run = ld.active(ld.ripr, "cultivar ~ .", wine[:15], wine[15:35], test=wine[90:])
        >>> ax = ld.learning_curves({"diverse": run.replay(wine["cultivar"])}).plot()
        """

        one_of("kind", kind, ("curve", "winloss"))
        if kind == "curve":
            if of is not None:
                raise ArgumentError("of= is only for kind='winloss': leave it out")
            return learning(self.tidy(), ax, measure=self.measure)
        of = next(iter(self.values)) if of is None else of
        return winloss(self.wins(of), ax, of=of, runs=list(self.values))

    def _reference(self):
        return "random" if "random" in self.values else next(iter(self.values))

    def _known(self, name):
        if name not in self.values:
            known = ", ".join(map(repr, self.values))
            raise ArgumentError(f"no run is called {name!r}; the names are {known}")
        return name

    def __repr__(self):
        n = self.n_labelled
        lines = [f"Repetitions: {self.repetitions}, {n[0]} to {n[-1]} labelled rows"]
        lines.append(f"Area: mean {self.measure} over the curve")
        frame = self.areas().rename_axis(None)
        frame.columns = ["Area", "SE", "Diff.", "SE(diff)", "p"]
        if len(frame) == 1:
            frame = frame[["Area", "SE"]]
        else:
            lines.append(f"Diff.: area minus that of {self._reference()!r}")
        frame = frame.dropna(axis=1, how="all")
        formats = {head: significant if head == "p" else ".4f" for head in frame}
        return listing("learning curves", lines, Table("", frame, formats), whole="areas()")


def _standard_error(values):
    n = len(values)
    return values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(values.shape[1:], np.nan)


def _paired(gain):
    """Return p-values (rounds,) of t tests of mean 0, by column of gain (repetitions, rounds)."""
    if len(gain) < 2:
        return np.full(gain.shape[1], np.nan)
    mean, error = gain.mean(axis=0), _standard_error(gain)
    t = np.divide(np.abs(mean), error, out=np.full(len(mean), np.inf), where=error > 0)
    t = np.where(mean == 0, 0.0, t)
    return 2.0 * stdtr(len(gain) - 1, -t)


@literal
def learning(frame, ax=None, *, measure):
    """Draw each run's mean `measure` with a band of one SE; frame : `LearningCurves.tidy()`."""
    ax = ensure_axes(ax)
    ends = {}
    for k, (name, part) in enumerate(frame.groupby("run", sort=False)):
        x, mean, se = (part[c].to_numpy() for c in ("n_labelled", "mean", "se"))
        ax.plot(x, mean, "o-", ms=3, lw=1.5, color=colour(k))
        if np.isfinite(se).all():
            ax.fill_between(x, mean - se, mean + se, color=colour(k), alpha=0.15, lw=0)
        ends[name] = (mean[-1], colour(k))
    ax.set_xlabel("labelled rows")
    ax.set_ylabel(f"{measure.replace('_', '-')} on the test rows")
    whole_ticks(ax)
    name_ends(ax, x[-1], ends)
    return tidy(ax)


@literal
def winloss(frame, ax=None, *, of, runs):
    """Draw how significantly one run wins over each other run, as a line per other run.

    of : name of this run
    frame : result of wins(of), with a column per other run
    runs : names of all runs, for the colours"""
    ax = ensure_axes(ax)
    ends, x = {}, frame.index.to_numpy()
    for name in frame:
        color = colour(runs.index(name))
        ax.plot(x, frame[name], "o-", ms=3, lw=1.5, color=color)
        ends[f"against {name}"] = (frame[name].iloc[-1], color)
    limit = -np.log10(0.05)
    top = 1.1 * max(2.0 * limit, np.abs(frame.to_numpy()).max())
    ax.axhspan(-limit, limit, color=GREY, alpha=0.12, lw=0)
    ax.axhline(0.0, color="black", lw=0.6)
    style = {"transform": ax.transAxes, "fontsize": 9, "color": GREY}
    for side, word, va in ((1, "wins", "top"), (-1, "loses", "bottom")):
        ax.axhline(side * limit, color="black", lw=0.8, ls="--")
        ax.text(0.01, 0.5 + 0.47 * side, f"{of} {word}", va=va, **style)
    ax.set_ylim(-top, top)
    ax.set_xlabel("labelled rows")
    ax.set_ylabel("−log₁₀ p, with the sign of the difference")
    ax.set_title(
        "dashed: p = 0.05; between the lines the difference is not significant", fontsize=9
    )
    name_ends(ax, x[-1], ends)
    return tidy(ax)
