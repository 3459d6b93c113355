"""Policy: what to measure next for a row, and runs of it on complete rows."""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from lodim import forms
from lodim.acquisition.items import Items, column_items
from lodim.acquisition.mixture import Mixture
from lodim.acquisition.oracle import Oracle, State
from lodim.checks import number
from lodim.design.design import Design
from lodim.design.frame import as_given
from lodim.engine import tiles
from lodim.errors import DataError, StoreError
from lodim.fitting import saved, storage
from lodim.prices.network import Network
from lodim.report.tables import Table, listing
from lodim.typing import Data, FilePath

DEFAULT = 0.1  # trade-off, as a share of what a unit of price saves if all features are bought
SHARES = (4.0, 2.0, 1.0, 0.5, 0.25)  # of the trade-off of a policy, along its curve


@forms.record
class Policy:
    """A policy of active feature acquisition.

    Attributes
    ----------
    design : Design
        Formula and what it learned.
    network : Network
        Prices and what each purchase needs.
    mixture : Mixture
        Predictor for any subset of features.
    X, y, weight : arrays
        Training rows, standardized.
    trade_off : float
        Loss that one unit of price must save.
    settings : dict
        Settings of the predictor and its loss on held-out rows.

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
    settings: dict[str, Any] = forms.entries(forms.plain())
    seed: int = forms.whole()
    design: Design = saved.DESIGN

    name = "acquire"

    def _check_fields(self):
        """Raise a ValueError unless the parts fit together."""
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
        items = Items(self.network, tuple(self.design.features), column_items(self.design))
        n_classes = len(self.levels or ())
        return Oracle(self.X, self.y, self.weight, n_classes, items, self.mixture, self.seed)

    def _with_trade_off(self, trade_off):
        """Return the policy with a trade-off; None is DEFAULT times the mean saving of all."""
        if trade_off is None:
            oracle, every = self._oracle, np.arange(self.X.shape[1])
            start = oracle.start(np.full(len(every), np.nan))
            price = oracle.items.price(np.ones(len(self.network), bool)[None] & self._base)[0]
            V = np.ascontiguousarray(np.nan_to_num(self.X).T)
            least = self.weight @ self.mixture.losses(V, self.y, every)
            free = start.columns
            most = self.weight @ self.mixture.losses(V[free], self.y, free)
            saved_loss = max(most - least, 0.0) / self.weight.sum()
            trade_off = DEFAULT * saved_loss * self._loss_unit / price if price > 0.0 else 0.0
        return replace(self, trade_off=float(trade_off))

    @property
    def _base(self):
        return self.network.base == np.arange(len(self.network))

    @property
    def _loss_unit(self):
        """Loss of the response's own units per unit of loss of the standardized response."""
        return 1.0 if self.levels else self.scale**2

    def next(self, row: Any, *, budget: float = np.inf) -> pd.DataFrame:
        """Return what may be measured next for a partly measured row, the best first.

        Parameters
        ----------
        row : frame of one row, Series or dict
            Values of the measured features; others are missing or absent.
        budget : float, optional
            Largest price of what is still to be bought.

        Returns
        -------
        DataFrame
            One row per feature that is not measured: feature; price; saving, the expected fall of
            the loss from this feature alone; buy, True for the feature to buy next (none: stop);
            together, True for those to be bought with it.

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
        >>> policy.next({"alcohol": 13.0}).columns.tolist()
        ['feature', 'price', 'saving', 'buy', 'together']
        """
        budget = number("budget", budget, 0.0) if budget != np.inf else budget
        decision = self._oracle.decide(self._state(row), self._alpha(None), budget)
        rest, price, loss = decision.singles
        names = np.array(self._oracle.items.names, object)
        frame = pd.DataFrame(
            {
                "feature": names[rest],
                "price": price,
                "saving": (decision.loss[0] - loss) * self._loss_unit,
                "buy": rest == decision.item,
                "together": np.isin(rest, decision.chosen),
            }
        )
        keys = ["buy", "together", "saving"]
        return frame.sort_values(keys, ascending=False, kind="stable", ignore_index=True)

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
        return pd.Series(self._shown(self._oracle.predict(self._state(row))), self._heads)

    @as_given
    def run(
        self, data: Data, *, budget: float | None = None, trade_off: float | None = None
    ) -> pd.DataFrame:
        """Play the policy on complete rows: buy features one by one, and predict at the end.

        Parameters
        ----------
        data : frame
            Rows with all features; the policy looks only at those that it buys.
        budget : float, optional
            Largest total price per row; by default without limit.
        trade_off : float, optional
            By default that of the policy.

        Returns
        -------
        DataFrame
            One row per row: .bought, the features in the order of purchase; .price, the total
            price; and the prediction, with the columns of `predict`.

        Raises
        ------
        ArgumentError
            If `budget` or `trade_off` is negative.
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
        limit = np.inf if budget is None else number("budget", budget, 0.0)
        batch = self.design.apply(data)
        X = tiles.unpack(batch.X, batch.n).astype(np.float64)
        played = [self._play(x, limit, self._alpha(trade_off)) for x in X]
        names = self._oracle.items.names
        bought = [" > ".join(names[g] for g in items) for items, _, _ in played]
        shown = [self._shown(answer) for _, _, answer in played]
        frame = pd.DataFrame(shown, batch.index[batch.rows], self._heads)
        frame.insert(0, ".bought", bought)
        frame.insert(1, ".price", [price for _, price, _ in played])
        return frame

    @as_given
    def curve(self, data: Data, trade_offs: Any = None) -> pd.DataFrame:
        """Measure loss against mean price on rows with known responses that no fit has seen.

        Parameters
        ----------
        data : frame
            Complete rows with the response.
        trade_offs : array, optional
            By default from four times to a quarter of that of the policy.

        Returns
        -------
        DataFrame
            Per policy ("policy", "myopic": one feature at a time, "all": every feature) and
            trade-off: price, the mean price per row; loss, the mean log-loss or squared error;
            se, its standard error; and accuracy for classes.

        Raises
        ------
        DataError
            If the data lack the response.

        See Also
        --------
        run

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine")
        >>> policy = ld.acquire("cultivar ~ .", wine[::2])
        >>> policy.curve(wine[1::8], [0.1])["policy"].tolist()
        ['policy', 'myopic', 'all']
        """
        batch = self.design.apply(data, response=True)
        known = np.flatnonzero(~np.isnan(batch.y))
        if not len(known):
            raise DataError("no row has a known response")
        X = tiles.unpack(batch.X, batch.n).astype(np.float64)[known]
        y = (batch.y[known] - self.centre) / self.scale
        given = [share * self.trade_off for share in SHARES] if trade_offs is None else trade_offs
        rows = []
        for kind in ("policy", "myopic"):
            for trade_off in given:
                alpha = self._alpha(float(trade_off))
                played = [self._play(x, np.inf, alpha, kind == "myopic") for x in X]
                rows.append([kind, float(trade_off), *self._measured(played, y)])
        rows.append(["all", 0.0, *self._measured([self._all(x) for x in X], y)])
        return pd.DataFrame(
            rows, columns=["policy", "trade_off", "price", "loss", "se", "accuracy"]
        ).dropna(axis=1, how="all")

    @as_given
    def tidy(self) -> pd.DataFrame:
        """Return the price of each feature by itself, and what it saves if nothing else is known.

        Returns
        -------
        DataFrame
            feature, price, saving.

        See Also
        --------
        next

        Examples
        --------
        >>> import lodim as ld
        >>> wine = ld.data("wine")
        >>> ld.acquire("cultivar ~ .", wine[::2]).tidy().columns.tolist()
        ['feature', 'price', 'saving']
        """
        return self.next({})[["feature", "price", "saving"]]

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

    def __repr__(self):
        call = f"acquire({self.design.formula!r}, data=df)"
        lines = [
            f"Rows: {len(self.y)}; trade-off: {self.trade_off:.4g} loss per unit of price",
            f"Held-out loss from random subsets of features: {self.settings['loss']:.4g}",
        ]
        frame = self.next({}).set_index("feature").rename_axis(None)[["price", "saving"]]
        frame.columns = ["Price", "Saving alone"]
        return listing(call, lines, Table("", frame), whole="tidy()")

    @property
    def _heads(self):
        return list(self.levels) if self.levels else ["fit", "se"]

    def _shown(self, answer):
        """A prediction in units of the response."""
        return answer if self.levels else answer * self.scale + [self.centre, 0.0]

    def _alpha(self, trade_off):
        """The trade-off in units of the standardized response."""
        value = self.trade_off if trade_off is None else number("trade_off", trade_off, 0.0)
        return value / self._loss_unit

    def _state(self, row):
        """The State of a partly measured row; its features count as paid."""
        frame = pd.DataFrame(row, index=[0]) if isinstance(row, dict) else row
        frame = frame.to_frame().T.infer_objects() if isinstance(frame, pd.Series) else frame
        if len(frame) != 1:
            raise DataError(f"next() and predict() take one row, not {len(frame)}")
        items = self._oracle.items
        frame = frame.assign(**{k: np.nan for k in items.names if k not in frame})
        batch = self.design.apply(frame)
        x = tiles.unpack(batch.X, 1)[0].astype(np.float64)
        known = [g for g in range(len(items)) if not np.isnan(x[items.column_item == g]).all()]
        one = items.one_hot([known])
        nothing = np.zeros(len(items), bool), np.zeros(len(self.network), bool)
        _, paid = items.closed(*nothing, one)
        return State(x, one[0], paid[0])

    def _play(self, x, limit, alpha, myopic=False):
        """Items bought for a row with values x (p,), their price, and the prediction."""
        oracle, bought = self._oracle, []
        state = oracle.start(x)
        while not state.measured.all():
            left = limit - oracle.items.price(state.paid)
            decision = oracle.decide(state, alpha, left, myopic)
            if decision.item < 0:
                break
            bought.append(decision.item)
            state = oracle.buy(state, decision.item, x)
        return bought, float(oracle.items.price(state.paid)), oracle.predict(state)

    def _all(self, x):
        """What `_play` returns if everything is bought."""
        oracle = self._oracle
        one = oracle.items.one_hot([range(len(oracle.items))])
        paid = oracle.items.pay(np.zeros(len(self.network), bool), one)[0]
        state = State(x, one[0], paid)
        return [], float(oracle.items.price(paid)), oracle.predict(state)

    def _measured(self, played, y):
        """Mean price and loss of played rows, standard error of the loss, and accuracy."""
        answers = np.array([answer for _, _, answer in played])
        if self.levels:
            loss = -np.log(np.maximum(answers[np.arange(len(y)), y.astype(int)], 1e-4))
            accuracy = float((answers.argmax(axis=1) == y).mean())
        else:
            loss, accuracy = (answers[:, 0] - y) ** 2 * self._loss_unit, np.nan
        se = loss.std(ddof=1) / np.sqrt(len(y)) if len(y) > 1 else np.nan
        price = float(np.mean([price for _, price, _ in played]))
        return price, float(loss.mean()), float(se), accuracy
