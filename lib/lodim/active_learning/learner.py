"""Active learning: suggestion of the rows of a pool to label next, and a rule when to stop."""

import warnings
from collections.abc import Mapping
from typing import Any, Generic, Self

import numpy as np
import pandas as pd

from lodim.active_learning import scores
from lodim.active_learning.labels import (
    check_frames,
    check_labels,
    declare_levels,
    plain,
    to_series,
)
from lodim.active_learning.learning_curves import learning_curves
from lodim.checks import as_seed, one_of, whole
from lodim.design.frame import with_column
from lodim.design.rows import INPUTS, is_balanced
from lodim.errors import ArgumentError, ConvergenceWarning, DataError
from lodim.fitting.argument_names import with_known_arguments
from lodim.fitting.fit_model import model_of, prepare
from lodim.formula.formula import parse
from lodim.progress import showing, steps
from lodim.report.numbers import blank_if_missing
from lodim.report.tables import Table, listing
from lodim.typing import Curve, FitT, Labels, Model, P, Score

HEADS = ["Labelled", "Asked by", "Accuracy", "Log-loss", "Entropy", "Kappa"]  # of the curve


@with_known_arguments
def active(
    model: Model[P, FitT],
    formula: str,
    labelled: pd.DataFrame | None,
    pool: pd.DataFrame,
    score: Score = "diverse",
    test: pd.DataFrame | None = None,
    committee: int = 10,
    agreement: float = 0.99,
    rounds: int = 3,
    target: float | None = None,
    seed: int = 0,
    *args: P.args,
    **arguments: P.kwargs,
) -> "Learner[FitT]":
    """Start active learning: repeatedly suggest the rows whose labels help a model most.

    The method is Algorithm 3.2.1 of Fiterau (2014): fit, label rows with the largest scores, refit.

    Parameters
    ----------
    model : model function
        Any model for classes, such as `lodim.ripr`.
    formula : str
        For example "alert ~ ."; the response must be a column.
    labelled : DataFrame or None
        Rows with known response, of at least two classes. None or a frame without rows is a cold
        start: until the model can be fitted, random rows are suggested, `fit` is None and `teach`
        accepts any class.
    pool : DataFrame
        Rows that can be labelled, with a unique index. A response column is ignored. A feature's
        level counts as missing until a row with it is labelled.
    score : {"diverse", "uncertainty", "margin", "committee", "infogain", "entropy", "random"}
        Default score of `query`, default="diverse"; or a function (fit, rows) -> one number per row
        of the pool. Rows with the largest values are suggested, NaN last.
    test : DataFrame, optional
        Rows with known responses for the learning curve, never used in fits.
    committee : int, default=10
        Number of bootstrap fits in the committee; not used by `ripr`.
    agreement, rounds : float, int
        Thresholds of the stopping rule, see Notes.
    target : float, optional
        Error rate on `test` at which to stop: epsilon of Algorithm 3.2.1.
    seed : int, default=0
        Seed of all random choices, and of the model if it takes a seed.
    **arguments
        Arguments of the model.

    Returns
    -------
    Learner

    Raises
    ------
    ArgumentError
        If an argument is invalid, the response has no classes, or `target` comes without `test`.
    DataError, FormulaError
        If row labels repeat, a labelled row is also in the pool, or it or a test row lacks a label.

    See Also
    --------
    Learner, learning_curves

    Notes
    -----
    Scores of a row with class probabilities p(c | x):

    - "uncertainty" (Eq. 3.2): entropy of the probabilities.
    - "margin": one minus the difference of the two largest probabilities.
    - "entropy": negative entropy, so the most confident rows come first.
    - "committee" (Eq. 3.3): entropy of the classes that several fits predict: the feature sets of
      `ripr`, or else `committee` bootstrap fits.
    - "diverse": rows of high committee score that are far apart, chosen at random one by one as
      in k-means++ (Zhdanov 2019, Ash et al. 2020).
    - "infogain": expected decrease of the pool's total entropy once the label is known, by refits;
      only the 20 most uncertain rows are tried.
    - "random": random scores.

    The vignette on active learning compares the scores. In short: use proset or gbmap with
    "committee", or with "diverse" if labels are noisy. Fiterau (2014) prints arg min for arg max.

    Stopping rule: Cohen's kappa compares successive predictions for rows of the first pool, and its
    mean over `rounds` rounds must be at least `agreement` (Bloodgood and Vijay-Shanker 2009).

    References
    ----------
    Fiterau, M. (2014). Discovering compact and informative structures through data partitioning.
    Ch. 3. Zhdanov, F. (2019). Diverse mini-batch active learning. arXiv:1901.05954. Ash, J. T. et
    al. (2020). Deep batch active learning by diverse, uncertain gradient lower bounds. ICLR.
    Bloodgood, M., Vijay-Shanker, K. (2009). A method for stopping active learning based on
    stabilizing predictions and the need for user-adjustable stopping. CoNLL.

    Examples
    --------
    >>> import lodim as ld
    >>> iris = ld.data("iris").sample(frac=1, random_state=0)
    >>> learner = ld.active(ld.gbmap, "species ~ .", iris[:10], iris[10:], m=2, lambda_=0.1)
    >>> rows = learner.query(5)
    >>> learner.teach(iris.loc[rows.index, "species"]).curve["n_labelled"].tolist()
    [10, 15]
    """
    _check_score(score)
    committee, rounds = whole("committee", committee), whole("rounds", rounds)
    seed = as_seed(seed)
    for name, share in (("agreement", agreement), ("target", 0.5 if target is None else target)):
        if not isinstance(share, int | float) or not 0 <= share <= 1:
            raise ArgumentError(f"{name} must be between 0 and 1, not {share!r}")
    if target is not None and test is None:
        raise ArgumentError("target= is an error on test rows: also give test=")
    response = _response(formula)
    beside = {k: arguments.get(k) for k in INPUTS}
    check_frames(response, labelled, pool, test)
    for name, value in beside.items():
        if not isinstance(value, str | None):
            raise ArgumentError(
                f"{name} must be the name of a column, not an array: `labelled` gains rows"
            )
        if name == "weights" and is_balanced(value, pool):
            continue
        if value is not None and value not in pool:
            raise DataError(
                f"{name}: the pool must have the column {value!r}, like the labelled rows"
            )
    labelled, pool, test = declare_levels(response, labelled, pool, test)
    if labelled is None:
        labelled = with_column(pool.iloc[:0], response, pd.Series(dtype=object))
    if "seed" in model_of(model).settings.__dataclass_fields__:
        arguments["seed"] = seed
    call, frames = (model, formula, response, arguments), (labelled, pool, test)
    return Learner(call, frames, score, committee, (agreement, rounds, target), seed)


class Learner(Generic[FitT]):
    """Model fitted to the labelled rows, together with a pool of rows to label.

    Attributes
    ----------
    fit : Fit or None
        Model of the labelled rows; None after a cold start, until it can be fitted.
    labelled, pool, test : DataFrames
        Labelled rows, rows to label, and test rows (or None).
    curve : DataFrame
        One row per fit. Columns: n_labelled; asked (score that chose the last rows); accuracy on
        test rows (a missing prediction counts as wrong); log_loss on test rows of known classes;
        entropy (mean over the pool); agreement (Cohen's kappa with the previous predictions).
    hits : list of (n_test,) bool arrays
        Whether each fit predicted each test row correctly.

    See Also
    --------
    active, LearningCurves

    Examples
    --------
    >>> import lodim as ld
    >>> wine = ld.data("wine").sample(frac=1, random_state=0)
    >>> learner = ld.active(ld.ripr, "cultivar ~ .", wine[:15], wine[15:90], test=wine[90:])
    >>> len(learner.query(5))
    5
    """

    fit: FitT | None
    labelled: pd.DataFrame
    pool: pd.DataFrame
    test: pd.DataFrame | None
    hits: list[np.ndarray]

    def __init__(self, call, frames, score, size, stop, seed):
        self.model, self.formula, self.response, self.arguments = call
        self.labelled, pool, self.test = frames
        self.pool = pool.drop(columns=self.response, errors="ignore")
        self.score, self.size, self.seed, self._stop = score, size, seed, stop
        self._asked, self._before = "", None  # score of the last query; predictions of the last fit
        self.fit, self._cold = None, self.labelled.empty
        rng = np.random.default_rng([seed, 0])
        watched = rng.permutation(len(pool))[:2000]  # their predictions decide when to stop
        self._watched = self.pool.iloc[np.sort(watched)]
        self._rows: list[dict] = []
        self.hits = []
        self._learn("")

    def query(self, n: int = 10, score: Score | None = None) -> pd.DataFrame:
        """Return the rows of the pool to label next, highest score first ("diverse": random order).

        Parameters
        ----------
        n : int, default=10
            Number of rows; fewer if the pool has fewer.
        score : str or function, optional
            See `lodim.active`; default: the learner's `score`.

        Returns
        -------
        DataFrame
            Rows of the pool, preceded by the columns .score, .class (prediction; None without a
            fit) and, for `ripr`, .view (the feature set that predicts the row).

        Raises
        ------
        ArgumentError, DataError
            If `n` or `score` is invalid, or the pool is empty.

        See Also
        --------
        teach, replay

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine").sample(frac=1, random_state=0)
        >>> learner = ld.active(ld.ripr, "cultivar ~ .", wine[:15], wine[15:])
        >>> len(learner.query(2))
        2
        """
        score = self.score if score is None else score
        _check_score(score)
        n = whole("n", n)
        if self.pool.empty:
            raise DataError("the pool is empty: all rows are labelled")
        score = "random" if self.fit is None else score
        rng = np.random.default_rng([self.seed, len(self.labelled), 1])
        if callable(score):
            value = scores.user_score(score, self)
        else:
            with showing(self.arguments.get("progress"), "query"):
                value = np.asarray(getattr(scores, score)(self, rng), float)
        if score == "diverse":
            X, known = (scores.features(self.fit, rows) for rows in (self.pool, self.labelled))
            at = scores.far_apart(value, X, known, n, rng)
        else:
            at = scores.top(value, n, rng)
        self._asked = _name_of(score)
        rows = self.pool.iloc[at]
        new = {".score": value[at], ".class": None}
        if self.fit is not None:
            new[".class"] = self.fit.predict(rows, "class").to_numpy()
            if "view" in self.fit.types:
                new[".view"] = self.fit.predict(rows, "view").to_numpy()
        rows = rows.drop(columns=list(new), errors="ignore")  # of an earlier query
        return pd.concat([pd.DataFrame(new, index=rows.index), rows], axis=1)

    def teach(self, labels: Labels, *, new: bool = False) -> Self:
        """Add labels of rows of the pool, refit the model, and return the learner itself.

        Parameters
        ----------
        labels : Series or mapping
            Classes by row label of the pool.
        new : bool, default=False
            Accept classes that no labelled row has, which otherwise raise an error.

        Raises
        ------
        DataError
            If a row is not in the pool, occurs twice or has no label, or a class is new. The
            learner then stays unchanged.

        See Also
        --------
        query, replay

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine").sample(frac=1, random_state=0)
        >>> learner = ld.active(ld.ripr, "cultivar ~ .", wine[:15], wine[15:])
        >>> rows = learner.query(3)
        >>> len(learner.teach(wine.loc[rows.index, "cultivar"]).labelled)
        18
        """
        known = check_labels(labels, self, new)
        rows = with_column(self.pool.loc[known.index], self.response, known)
        rows = rows[[c for c in self.labelled.columns if c in rows]]
        before, labelled = (self.labelled, self.pool), self.labelled
        kind = labelled[self.response].dtype
        if isinstance(kind, pd.CategoricalDtype):
            levels = kind.categories.union(known.unique(), sort=False)
            kind = {self.response: pd.CategoricalDtype(levels, kind.ordered)}
            labelled, rows = labelled.astype(kind), rows.astype(kind)
        self.labelled = rows if labelled.empty else pd.concat([labelled, rows])
        self.pool = self.pool.drop(index=known.index)
        try:
            self._learn(self._asked)
        except Exception:
            self.labelled, self.pool = before
            raise
        return self

    def replay(
        self,
        labels: Labels,
        n: int = 10,
        *,
        score: Score | None = None,
        rounds: int | None = None,
    ) -> Self:
        """Evaluate a score: query rows and teach their known labels, round after round.

        Parameters
        ----------
        labels : Series
            Class of every row of the pool, by row label; a DataError if one is missing.
        n : int, default=10
            Rows per round.
        score : str or function, optional
            Score of `query`; default: the learner's `score`.
        rounds : int, optional
            Number of rounds; by default until the pool is empty.

        Returns
        -------
        Learner
            Itself.

        See Also
        --------
        query, teach

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine").sample(frac=1, random_state=0)
        >>> learner = ld.active(ld.ripr, "cultivar ~ .", wine[:15], wine[15:90], test=wine[90:])
        >>> len(learner.replay(wine["cultivar"], rounds=1).pool)
        65
        """
        known = to_series(labels, self.response)
        unknown = self.pool.index.difference(known.index)
        if len(unknown):
            raise DataError(
                f"labels must have all rows of the pool; row {plain(unknown[0])!r} has no label"
            )
        most = -(-len(self.pool) // whole("n", n))
        most = most if rounds is None else min(most, whole("rounds", rounds))
        with showing(self.arguments.get("progress"), "replay"):
            for _ in steps(range(most), most, "rounds"):
                self.teach(known.loc[self.query(n, score).index], new=True)
        return self

    @property
    def curve(self) -> pd.DataFrame:
        """Learning curve so far, one row per fit."""
        return pd.DataFrame(self._rows)

    @property
    def stop(self) -> str | None:
        """Reason to stop labelling; None as long as there is none. See Notes of `lodim.active`."""
        agreement, rounds, target = self._stop
        last = self._rows[-1]
        if target is not None and 1.0 - last["accuracy"] <= target:
            return f"the error on the test rows, {1.0 - last['accuracy']:.3f}, is at most {target}"
        if self.pool.empty:
            return "the pool is empty"
        recent = [row["agreement"] for row in self._rows[-rounds:]]
        if len(self._rows) > rounds and np.mean(recent) >= agreement:
            return (
                f"predictions are stable: mean kappa {np.mean(recent):.3f} with the previous "
                f"round, over {rounds} rounds"
            )
        return None

    def plot(
        self, kind: Curve = "curve", ax: Any = None, *, against: Mapping[str, Any] | None = None
    ) -> Any:
        """Draw the learning curve or its comparison with other runs, and return the Axes.

        Parameters
        ----------
        kind : {"curve", "winloss"}
            The learning curve, or the significance of wins over other runs.
        ax : Axes, optional
        against : mapping of str to Learner
            Other runs by name, all started with the same rows (see `lodim.learning_curves`), which
            "winloss" needs; an ArgumentError otherwise.

        See Also
        --------
        replay, lodim.LearningCurves.plot

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine").sample(frac=1, random_state=0)
        >>> learner = ld.active(ld.ripr, "cultivar ~ .", wine[:15], wine[15:90], test=wine[90:])
        >>> ax = learner.replay(wine["cultivar"], rounds=1).plot()
        """
        one_of("kind", kind, ("curve", "winloss"))
        name = self._name()
        if against is not None and not isinstance(against, Mapping):
            raise ArgumentError(f"against must be a dict of learners by name, not {against!r:.80}")
        others = dict(against or {})
        if name in others:
            raise ArgumentError(
                f"against has the name {name!r}, which is the name of this run: give the other "
                "run another name"
            )
        if kind == "winloss" and not others:
            raise ArgumentError(
                "a win/loss plot needs another run: give against={'random': learner}"
            )
        curves = learning_curves({name: self, **others})
        return curves.plot(kind, ax, of=name if kind == "winloss" else None)

    def _fitted(self, labelled):
        model = model_of(self.model)
        with showing(self.arguments.get("progress"), model.name):
            problem = prepare(model, self.formula, labelled, self.arguments)
            if problem.design.levels is None:
                has = "a response with classes; this response is numeric"
                raise ArgumentError(f"active learning needs {has}")
            return model.fit(problem)

    def _fitted_for_scores(self, labelled):
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            return self._fitted(labelled)

    def _learn(self, score_name):
        """Fit the model and extend the learning curve; score_name : of the last query, or ""."""
        fit, now = self._fit_or_none(), None
        row = {"n_labelled": len(self.labelled), "asked": score_name}
        row |= dict.fromkeys(("accuracy", "log_loss", "entropy", "agreement"), np.nan)
        if fit is not None:
            now = fit.predict(self._watched, "class").to_numpy(dtype=object)
            if self._before is not None:
                row["agreement"] = cohen_kappa(self._before, now)
            entropies = [] if self.pool.empty else scores.entropies(fit, self.pool)
            if np.isfinite(entropies).any():
                row["entropy"] = float(np.nanmean(entropies))
        if self.test is not None:
            loss, hits = self._on_test(fit)
            row |= {"log_loss": loss, "accuracy": float(np.mean(hits))}
            self.hits.append(hits)
        self.fit, self._before, self._asked = fit, now, ""
        self._rows.append(row)

    def _fit_or_none(self):
        """Return a fit to the labelled rows; None if they are still too few after a cold start."""
        cold = self._cold and self.fit is None
        if cold and self.labelled[self.response].nunique() < 2:
            return None
        try:
            return self._fitted(self.labelled)
        except DataError:
            if cold:
                return None
            raise

    def _on_test(self, fit):
        """Return the log-loss on test rows, and whether each is predicted correctly, (n_test,).

        fit : model fit, or None for a loss of NaN and all False
        The log-loss is over rows whose class the fit knows."""
        if fit is None:
            return np.nan, np.zeros(len(self.test), bool)
        known = self.test[self.test[self.response].isin(fit.levels)]
        loss = float(fit.evaluate(known)["log_loss"].iloc[0]) if len(known) else np.nan
        predicted = fit.predict(self.test, "class").to_numpy(dtype=object)
        return loss, predicted == self.test[self.response].to_numpy(dtype=object)

    def _name(self):
        """Return the name of the score that chose the queried rows, or "mixed" for several."""
        asked = {row["asked"] for row in self._rows if row["asked"]}
        return asked.pop() if len(asked) == 1 else "mixed" if asked else _name_of(self.score)

    def __repr__(self):
        rows = f"{len(self.labelled)} labelled, {len(self.pool)} in the pool"
        lines = [f"Rows: {rows}; score: {_name_of(self.score)}", f"Stop: {self.stop or 'not yet'}"]
        if self.fit is None:
            lines.append("No fit yet: there are too few labels, so queries are random")
        frame = self.curve.set_axis(HEADS, axis=1).dropna(axis=1, how="all")
        frame.index = range(len(frame))
        formats = {head: blank_if_missing for head in HEADS[2:] if head in frame}
        call = f"active({self.model.__name__}, {self.formula!r}, labelled, pool)"
        return listing(call, lines, Table("", frame, formats), whole="curve")


def _check_score(score):
    if not callable(score) or isinstance(score, type):
        one_of("score", score, scores.SCORES)


def _name_of(score):
    return score if isinstance(score, str) else getattr(score, "__name__", "function")


def _response(formula):
    """Return the name of the response column; raise ArgumentError if the response is no column."""
    response = parse(formula).response
    if response is None:
        raise ArgumentError(
            f"active learning needs a response on the left of '~'; the formula is {formula!r}"
        )
    if response.kind != "column":
        raise ArgumentError(
            f"the response must be a column, for which labels can be given, not {response.text}"
        )
    return response.text


def cohen_kappa(a, b):
    """Return Cohen's kappa of predicted classes a and b (n,), over rows that have both."""
    known = ~(pd.isna(a) | pd.isna(b))
    a, b = a[known], b[known]
    if not len(a):
        return np.nan
    chance = sum((a == c).mean() * (b == c).mean() for c in set(a) | set(b))
    return 1.0 if chance == 1.0 else float(((a == b).mean() - chance) / (1.0 - chance))
