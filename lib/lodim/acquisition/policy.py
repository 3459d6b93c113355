"""Policy: what to measure next for a row, and runs of it on complete rows."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from lodim import forms
from lodim.acquisition import curve as curves
from lodim.acquisition import report
from lodim.acquisition import update as updates
from lodim.acquisition.items import Items, column_items
from lodim.acquisition.mixture import Mixture
from lodim.acquisition.oracle import Oracle, State
from lodim.acquisition.play import Player, trade_off_for
from lodim.acquisition.step import Step
from lodim.acquisition.tree import Tree, grow
from lodim.checks import number, one_of, whole
from lodim.design.design import Design
from lodim.design.frame import as_given, in_pandas
from lodim.engine import tiles
from lodim.errors import ArgumentError, DataError, StoreError
from lodim.fitting import saved, storage
from lodim.prices.network import Network
from lodim.report.tables import Report
from lodim.text import join_words
from lodim.typing import Data, FilePath

DEFAULT = 0.5  # trade-off, as a share of what a unit of price saves if all features are bought
CALIBRATED = 60  # training rows on which the trade-off for a mean budget is found
PLAYED = 200  # training rows of a tree, if no data are given


@forms.record
class Policy:
    """A policy of active feature acquisition.

    Attributes
    ----------
    design, network : Design, Network
        Formula and what it learned; prices and what each purchase needs.
    resources : tuple of str
        Names of what purchases take besides their price.
    mixture : Mixture
        Predictor for any subset of features.
    X, y, weight : arrays
        Training rows, standardized.
    trade_off : float
        Loss that one unit of price must save.
    settings, pending : dict, int
        Settings of the predictor and its held-out loss; rows that `update` added since it learned.

    See Also
    --------
    acquire

    Examples
    --------
    >>> import lodim as ld
    >>> wine = ld.data("wine")
    >>> policy = ld.acquire("cultivar ~ .", wine[::2])
    >>> policy.levels
    ('Barbera', 'Barolo', 'Grignolino')
    """

    mixture: Mixture = forms.part(Mixture)
    network: Network = forms.part(Network)
    X: np.ndarray = forms.real("n", "p", nan=True)
    y: np.ndarray = forms.real("n")
    weight: np.ndarray = forms.real("n", least=forms.TINY)
    centre: float = forms.real()
    scale: float = forms.real(least=forms.TINY)
    trade_off: float = forms.real(least=0)
    resources: tuple[str, ...] = forms.several("R")
    use: np.ndarray = forms.real("R", "V", least=0)
    settings: dict[str, Any] = forms.entries(forms.plain())
    seed: int = forms.whole()
    pending: int = forms.whole(least=0)
    recent: np.ndarray = forms.real("r")
    design: Design = saved.DESIGN

    name = "acquire"

    def _check_fields(self):
        """Raise a ValueError unless the sizes of design, prices, predictor and rows agree."""
        label, K = self.mixture.label, len(self.design.levels or ())
        if K and not np.isin(self.y, np.arange(K)).all():
            raise ValueError("y has codes of no class")
        if not len(label) or not (label < max(K, 1)).all():
            raise ValueError("the components are of other classes than the response")
        if self.design.levels is None and len(self.mixture.cross) != len(label):
            raise ValueError("the components lack covariances with the response")
        if not set(self.design.features) <= set(self.network.names):
            raise ValueError("a column cannot be bought")

    @property
    def levels(self) -> tuple | None:
        """Classes in order; None for a numeric response."""
        return self.design.levels

    @property
    def _frame_kind(self):
        return self.design.frame_kind

    @cached_property
    def _oracle(self):
        names = tuple(self.design.features)
        items = Items(self.network, names, column_items(self.design), self.use)
        n_classes = len(self.levels or ())
        return Oracle(self.X, self.y, self.weight, n_classes, items, self.mixture, self.seed)

    def _with_trade_off(self, trade_off):
        """Return the policy with a trade-off, the loss that one unit of price must save.

        If None, it is half of what one unit of price saves on average if all features are
        bought."""
        if trade_off is None:
            oracle, every = self._oracle, np.arange(self.X.shape[1])
            free = oracle.start(np.full(len(every), np.nan))
            every_item = oracle.items.one_hot(*range(len(oracle.items)))
            price = oracle.items.price(oracle.items.pay(free.paid, every_item))[0]
            at = np.flatnonzero(free.measured[oracle.items.column_item])
            V = np.ascontiguousarray(oracle._filled.T)
            losses = [self.weight @ self.mixture.losses(V[c], self.y, c) for c in (at, every)]
            saved_loss = max(losses[0] - losses[1], 0.0) / self.weight.sum()
            trade_off = DEFAULT * saved_loss * self._loss_unit / price if price > 0.0 else 0.0
        return replace(self, trade_off=float(trade_off))

    @property
    def _loss_unit(self):
        """Factor from the loss of the standardized response to that in its own units."""
        return 1.0 if self.levels else self.scale**2

    def next(self, row: Any, *, budget: float | Mapping[str, float] | None = None) -> Step:
        """Return what to measure next for a partly measured row, or that it is time to stop.

        Parameters
        ----------
        row : frame of one row, Series or dict
            Values of the measured features; others are missing or absent.
        budget : float or dict, optional
            Most to spend on what is still to be bought; see `run`.

        Returns
        -------
        Step
            What to buy, its price, all options, and the prediction for the row.

        Raises
        ------
        DataError
            If there is more than one row, or a value is of another kind than in training.

        See Also
        --------
        run, predict

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine")
        >>> policy = ld.acquire("cultivar ~ .", wine[::2])
        >>> policy.next({"alcohol": 13.0}).options.columns.tolist()
        ['feature', 'price', 'saving', 'buy', 'together', 'unlocks']
        """
        state, items = self._state(row), self._oracle.items
        decision = self._oracle.decide(state, self._alpha(None), self._limit(budget))
        rest, price, loss = decision.singles
        names = np.array(items.names, object)
        options = pd.DataFrame(
            {
                "feature": names[rest],
                "price": price,
                "saving": (decision.loss[0] - loss) * self._loss_unit,
                "buy": rest == decision.item,
                "together": np.isin(rest, decision.chosen),
                "unlocks": [", ".join(names[items.cheaper_after(state, g)]) for g in rest],
            }
        ).sort_values(["buy", "together", "saving"], ascending=False, kind="stable")
        return Step(
            options.reset_index(drop=True),
            self._prediction(state),
            float(decision.loss[0] * self._loss_unit),
            "log-loss" if self.levels else "squared error",
        )

    def predict(self, row: Any) -> pd.Series:
        """Return the prediction for a partly measured row.

        Parameters
        ----------
        row : frame of one row, Series or dict

        Returns
        -------
        Series
            Probabilities by class; or fit and se, the mean and standard deviation of a number.

        See Also
        --------
        next

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine")
        >>> policy = ld.acquire("cultivar ~ .", wine[::2])
        >>> policy.predict({}).round(2).tolist()
        [0.27, 0.34, 0.39]
        """
        return self._prediction(self._state(row))

    @as_given
    def run(
        self,
        data: Data,
        *,
        budget: float | Mapping[str, float] | None = None,
        mean_budget: float | None = None,
        trade_off: float | None = None,
    ) -> pd.DataFrame:
        """Play the policy on complete rows: buy features one by one, and predict at the end.

        Parameters
        ----------
        data : frame
            Rows with all features; the policy looks only at those that it buys.
        budget : float or dict, optional
            Largest total price per row. A dict has a limit for "price" and for resources.
        mean_budget : float, optional
            Mean price per row: the trade-off at which training rows cost at most this on average.
        trade_off : float, optional
            By default that of the policy.

        Returns
        -------
        DataFrame
            One row per row: .bought, the features in the order of purchase; .price, the total
            price; the use of each resource; and the prediction, with the columns of `predict`.

        Raises
        ------
        ArgumentError
            If a budget or `trade_off` is negative, a budget names no resource, or both
            `mean_budget` and `trade_off` are given.
        DataError
            If a column is missing or of another kind.

        See Also
        --------
        curve

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine")
        >>> policy = ld.acquire("cultivar ~ .", wine[::2])
        >>> bool((policy.run(wine[1::2][:5], budget=3)[".price"] <= 3).all())
        True
        """
        if mean_budget is not None and trade_off is not None:
            raise ArgumentError("give mean_budget or trade_off, not both: one follows from another")
        limit, alpha = self._limit(budget), self._alpha(trade_off)
        if mean_budget is not None:
            own, mean = self._some_rows(CALIBRATED), number("mean_budget", mean_budget, 0.0)
            alpha = trade_off_for(mean, self._oracle, self.X[own], own, limit)
        batch = self.design.apply(data)
        X = tiles.unpack(batch.X, batch.n)
        played = Player(self._oracle, alpha, limit).play(X)
        names, spent = self._oracle.items.names, np.array([one.spent for one in played])
        columns: dict[str, Any] = {
            ".bought": [" > ".join(names[g] for g in one.items) for one in played]
        }
        spent = spent.reshape(-1, 1 + len(self.use))
        columns |= {f".{name}": spent[:, k] for k, name in enumerate(("price", *self.resources))}
        shown = np.array([self._shown(one.answer) for one in played])
        shown = shown.reshape(-1, len(self._heads))
        columns |= {name: shown[:, k] for k, name in enumerate(self._heads)}
        return pd.DataFrame(columns, batch.index[batch.rows])

    @as_given
    def curve(
        self, data: Data, trade_offs: Any = None, *, frontier: Any = None, myopic: bool = True
    ) -> pd.DataFrame:
        """Measure loss against mean price on rows with known responses that no fit has seen.

        Parameters
        ----------
        data : frame
            Complete rows with the response.
        trade_offs : array, optional
            By default from sixteen times to a tenth of that of the policy.
        frontier : CostnetFit, optional
            Fit of the same response, whose models are measured too.
        myopic : bool, default=True
            Whether to play the policy with one feature at a time, too.

        Returns
        -------
        DataFrame
            Per policy ("policy"; "myopic", one feature at a time; "fixed", the same features for
            all rows; "random", a random order; "all", every feature; "frontier") and trade-off or
            number of features: price, the mean price per row; loss, the mean log-loss or squared
            error; se, its standard error; and accuracy for classes.

        Raises
        ------
        ArgumentError
            If a trade-off is negative, or `frontier` is a fit of another response.
        DataError
            If the data lack the response.

        See Also
        --------
        run, plot

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine")
        >>> policy = ld.acquire("cultivar ~ .", wine[::2])
        >>> policy.curve(wine[1::8], [0.1])["policy"].unique().tolist()
        ['policy', 'myopic', 'fixed', 'random', 'all']
        """
        batch = self.design.apply(data, response=True)
        known = np.flatnonzero(~np.isnan(batch.y))
        if not len(known):
            raise DataError("no row has a known response")
        X = tiles.unpack(batch.X, batch.n)[known]
        y = batch.y[known]
        given = [self.trade_off * share for share in curves.SHARES]
        given = given if trade_offs is None else list(trade_offs)
        given = [number("trade_offs", one, 0.0) for one in given]
        kinds = ["policy", *["myopic"] * myopic, "fixed", "random", "all"]
        frames = [curves.measure(self, X, (y - self.centre) / self.scale, kinds, given)]
        if frontier is not None:
            frames.append(curves.of_frontier(self, frontier, data, batch.rows[known], y))
        return pd.concat(frames, ignore_index=True).dropna(axis=1, how="all")

    def tree(self, data: Data | None = None, *, depth: int = 4) -> Tree:
        """Return the most frequent orders of purchases as a tree.

        Branches are ranges of measured values after which the policy goes on in different ways.

        Parameters
        ----------
        data : frame, optional
            Complete rows to play the policy on. By default up to 200 training rows, each without
            itself among the rows that stand for it.
        depth : int, default=4
            Most purchases in a row.

        Returns
        -------
        Tree

        See Also
        --------
        plot, report

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine")
        >>> tree = ld.acquire("cultivar ~ .", wine[::2]).tree(depth=2)
        >>> bool(0 < tree.agreement <= 1)
        True
        """
        depth, own = whole("depth", depth, 1, 20), None
        if data is None:
            own = self._some_rows(PLAYED)
            X = self.X[own]
        else:
            batch = self.design.apply(data)
            X = tiles.unpack(batch.X, batch.n)
        played = Player(self._oracle, self._alpha(None)).play(X, own)
        return grow(self, X, played, depth)

    def plot(
        self,
        kind: Literal["tree", "curve"] = "tree",
        data: Data | None = None,
        ax: Any = None,
        *,
        depth: int = 4,
        frontier: Any = None,
    ) -> Any:
        """Draw the most frequent orders of purchases as a tree, or loss against price.

        Parameters
        ----------
        kind : {"tree", "curve"}
        data : frame, optional
            Rows to play the policy on; needed for "curve", with the response.
        ax : Axes, optional
        depth : int, default=4
            Most purchases in a row, for "tree".
        frontier : CostnetFit, optional
            For "curve"; see `curve`.

        Returns
        -------
        Axes

        Raises
        ------
        ArgumentError
            If the kind is unknown, or "curve" has no data.

        See Also
        --------
        tree, curve

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine")
        >>> ax = ld.acquire("cultivar ~ .", wine[::2]).plot("tree", depth=2)
        """
        from lodim.acquisition import plots

        one_of("kind", kind, ("tree", "curve"))
        if kind == "tree":
            return plots.tree(self.tree(data, depth=depth), ax)
        if data is None:
            raise ArgumentError("plot of kind 'curve' needs data: rows that no fit has seen")
        return plots.curve(in_pandas(self.curve)(data, frontier=frontier), self, ax)

    def report(self, path: FilePath, data: Data | None = None, *, depth: int = 6) -> None:
        """Write a page that asks for one measurement after the other, by the policy's tree.

        Parameters
        ----------
        path : path
        data : frame, optional
            Rows to play the policy on; see `tree`.
        depth : int, default=6
            Most purchases in a row.

        Raises
        ------
        StoreError
            If the file cannot be written.

        See Also
        --------
        tree, next

        Examples
        --------
        >>> import lodim as ld
        >>> from tempfile import TemporaryDirectory
        >>> policy = ld.acquire("cultivar ~ .", ld.data("wine")[::2])
        >>> with TemporaryDirectory() as folder:
        ...     policy.report(folder + "/wine.html")
        """
        from lodim.acquisition import page

        page.write(self, self.tree(data, depth=depth), path)

    def update(
        self,
        data: Data,
        *,
        window: int | None = None,
        decay: float = 1.0,
        every: int | None = None,
    ) -> "Policy":
        """Return the policy with new rows, whose response is known and features may be missing.

        Once enough rows are new, the predictor is learned again with the same settings.

        Parameters
        ----------
        data : frame
            Rows with the response.
        window : int, optional
            Number of most recent rows to keep; by default all.
        decay : float, default=1
            Factor on the weight of each old row per new row, above 0 and at most 1.
        every : int, optional
            Number of new rows after which the predictor is learned again; by default 5% of the
            rows.

        Returns
        -------
        Policy

        Raises
        ------
        ArgumentError
            If `window`, `decay` or `every` is out of range.
        DataError
            If no row has a response, or a level is new.

        Warns
        -----
        DataWarning
            If the last new rows surprise the predictor far more than held-out training rows did:
            the data have drifted.

        See Also
        --------
        acquire

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine").sample(frac=1, random_state=0)
        >>> policy = ld.acquire("cultivar ~ .", wine[:100])
        >>> len(policy.update(wine[100:150]).y)
        150
        """
        decay = number("decay", decay, forms.TINY, 1.0)
        window = None if window is None else whole("window", window, 10)
        every = None if every is None else whole("every", every, 1)
        return updates.updated(self, data, window, decay, every)

    @as_given
    def tidy(self) -> pd.DataFrame:
        """Return the price of each feature by itself, and what it saves if nothing else is known.

        Returns
        -------
        DataFrame
            feature, price, saving, unlocks: the features whose price falls after this purchase.

        See Also
        --------
        next

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine")
        >>> ld.acquire("cultivar ~ .", wine[::2]).tidy().columns.tolist()
        ['feature', 'price', 'saving', 'unlocks']
        """
        return self.next({}).options[["feature", "price", "saving", "unlocks"]]

    def save(self, path: FilePath) -> None:
        """Save the policy, with its training rows, in one file for `lodim.load`.

        Parameters
        ----------
        path : path

        Raises
        ------
        StoreError
            If the file cannot be written, or the price is a function.

        See Also
        --------
        load

        Examples
        --------
        >>> import lodim as ld
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> wine = ld.data("wine")
        >>> policy = ld.acquire("cultivar ~ .", wine[::2])
        >>> with TemporaryDirectory() as folder:
        ...     policy.save(Path(folder) / "wine.lodim")
        ...     back = ld.load(Path(folder) / "wine.lodim")
        >>> back.tidy().equals(policy.tidy())
        True
        """
        if self.network.set_cost is not None:
            raise StoreError("costs is a function, which a file cannot hold: give a price list")
        storage.write(path, self.name, forms.write(self))

    def summary(self) -> Report:
        """Return a report: the predictor, the trade-off, and each feature's price and saving.

        Returns
        -------
        Report

        See Also
        --------
        tidy, tree

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine")
        >>> print(ld.acquire("cultivar ~ .", wine[::2]).summary().title)
        Policy for Buying Features
        """
        return report.summary(self)

    def __repr__(self):
        return report.text(self)

    @property
    def _heads(self):
        return list(self.levels) if self.levels else ["fit", "se"]

    def _shown(self, answer):
        """Return a prediction of the standardized response in the response's own units."""
        return answer if self.levels else answer * self.scale + [self.centre, 0.0]

    def _prediction(self, state):
        return pd.Series(self._shown(self._oracle.predict(state)), self._heads)

    def _alpha(self, trade_off):
        """Return the trade-off (loss per unit of price) in units of the standardized response."""
        value = self.trade_off if trade_off is None else number("trade_off", trade_off, 0.0)
        return value / self._loss_unit

    def _limit(self, budget):
        """Return the most to spend (1 + R,) on price and each of R resources; None if unlimited."""
        if budget is None:
            return None
        given = budget if isinstance(budget, Mapping) else {"price": budget}
        known = ("price", *self.resources)
        for name in given:
            if name not in known:
                raise ArgumentError(
                    f"budget must have limits of {join_words(known)}, not of {name!r}"
                )
        return np.array([number("budget", given[k], 0.0) if k in given else np.inf for k in known])

    def _some_rows(self, most):
        """Return the positions of at most `most` random training rows."""
        n = len(self.y)
        return np.sort(np.random.default_rng(self.seed).permutation(n)[:most])

    def _state(self, row):
        """Return the State (what is known and paid) of a partly measured row.

        Its known features count as paid."""
        frame = pd.DataFrame(row, index=[0]) if isinstance(row, dict) else row
        frame = frame.to_frame().T.infer_objects() if isinstance(frame, pd.Series) else frame
        if len(frame) != 1:
            raise DataError(f"next() and predict() take one row, not {len(frame)}")
        items = self._oracle.items
        frame = frame.assign(**{k: np.nan for k in items.names if k not in frame})
        batch = self.design.apply(frame)
        x = tiles.unpack(batch.X, 1)[0]
        known = [g for g in range(len(items)) if not np.isnan(x[items.column_item == g]).all()]
        one = items.one_hot(*known)
        nothing = np.zeros(len(items), bool), np.zeros(len(self.network), bool)
        _, paid = items.closed(*nothing, one)
        return State(x, one[0], paid[0])
