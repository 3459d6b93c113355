"""Policy that says what to measure next for a row, and its simulation on complete rows."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from lodim import forms
from lodim.acquisition import curve as curves
from lodim.acquisition import report
from lodim.acquisition.items import Items, column_items
from lodim.acquisition.mixture import Mixture, recent_surprises
from lodim.acquisition.oracle import Oracle, State
from lodim.acquisition.play import play, play_within
from lodim.acquisition.tree import Step, Tree, grow
from lodim.checks import flag, listed, number, one_of, sizes, whole
from lodim.design.design import Design
from lodim.design.frame import as_given, in_pandas, read_frame
from lodim.engine import tiles
from lodim.errors import ArgumentError, DataError, DataWarning, StoreError, warn
from lodim.fitting import saved, storage
from lodim.prices.network import Network
from lodim.report.tables import Report
from lodim.text import first_few, join_words, suggestion
from lodim.typing import Data, FilePath

DEFAULT = 0.5  # trade-off, as a share of what a unit of price saves if all features are bought
CALIBRATED = 60  # training rows on which the trade-off for a mean budget is found
PLAYED = 200  # training rows of a tree, if no data are given
REFIT = 0.05  # share of new rows from which `update` learns the predictor again


@forms.record
class Policy:
    """Rule that chooses the next feature to measure for a row (active feature acquisition).

    Attributes
    ----------
    trade_off : float
        Loss that one unit of price must save.
    levels : tuple or None
        Classes; None for a numeric response.
    X, y, weight : arrays (n, p), (n,), (n,)
        Standardized training rows and their weights.
    resources : tuple of str
        Names of resources that purchases use besides money.
    settings : dict
        Settings of the predictor and its held-out loss.

    See Also
    --------
    acquire

    Examples
    --------
    >>> import lodim as ld
    >>> policy = ld.acquire("cultivar ~ .", ld.data("wine")[::2])
    >>> policy.levels
    ('Barbera', 'Barolo', 'Grignolino')
    """

    mixture: Mixture = forms.part(Mixture)
    network: Network = forms.part(Network)
    X: np.ndarray = forms.real("n", "p", nan=True)
    y: np.ndarray = forms.real("n")
    weight: np.ndarray = forms.real("n", least=forms.TINY)
    centre: float = forms.real()  # y is (response - centre) / scale
    scale: float = forms.real(least=forms.TINY)
    trade_off: float = forms.real(least=0)
    resources: tuple[str, ...] = forms.several("R")
    use: np.ndarray = forms.real("R", "V", least=0)  # of each resource by each purchase
    settings: dict[str, Any] = forms.entries(forms.plain())
    seed: int = forms.whole()
    pending: int = forms.whole(least=0)  # new rows since the last refit of the predictor
    recent: np.ndarray = forms.real("r")  # loss minus expected loss of recent rows
    call: str = forms.text()
    design: Design = saved.DESIGN

    name = "acquire"

    def _check_fields(self):
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
        X = self.mixture.features(self.X)
        return Oracle(X, self.y, self.weight, n_classes, items, self.mixture, self.seed)

    def _with_trade_off(self, trade_off):
        """Return a copy of the policy with another trade-off between loss and price.

        trade_off : loss that one unit of price must save; None derives it from the training rows"""
        # The default is half of the saving per unit of price if all features are bought.
        if trade_off is None:
            oracle, every = self._oracle, np.arange(self.X.shape[1])
            free = oracle.start(np.full(len(every), np.nan))
            every_item = oracle.items.one_hot(*range(len(oracle.items)))
            price = oracle.items.price(oracle.items.pay(free.paid, every_item))[0]
            at = np.flatnonzero(free.measured[oracle.items.column_item])
            V, mixture = oracle.filled, self.mixture
            losses = [self.weight @ mixture.losses(V[c], self.y, c)[0] for c in (at, every)]
            saved_loss = max(losses[0] - losses[1], 0.0) / self.weight.sum()
            trade_off = DEFAULT * saved_loss * self._loss_unit / price if price > 0.0 else 0.0
        return replace(self, trade_off=float(trade_off))

    @property
    def _loss_unit(self):
        """Factor that converts a loss of the standardized response to the response's units."""
        return 1.0 if self.levels else self.scale**2

    def next(self, row: Any, *, budget: float | Mapping[str, float] | None = None) -> Step:
        """Return what to measure next for a partly measured row, or that it is time to stop.

        Parameters
        ----------
        row : frame of one row, Series or dict
            Values of the measured features; others are missing or absent. A Series or dict may
            only have columns of the formula.
        budget : float or dict, optional
            Largest total price of all further purchases; a dict as in `run`.

        Returns
        -------
        Step
            Feature to buy, its price, all options, and the current prediction.

        Raises
        ------
        DataError
            If there is more than one row, a name is unknown, or a column has another type.

        See Also
        --------
        run, predict

        Examples
        --------
        >>> import lodim as ld
        >>> policy = ld.acquire("cultivar ~ .", ld.data("wine")[::2])
        >>> policy.next({"alcohol": 13.0}).options.columns.tolist()
        ['feature', 'price', 'saving', 'buy', 'together', 'unlocks']
        """
        state, items = self._state(row), self._oracle.items
        decision = self._oracle.decide(state, self._alpha(None), self._limit(budget))
        rest, price, loss = decision.singles
        names, saving = np.array(items.names, object), (decision.loss[0] - loss) * self._loss_unit
        buy, together = rest == decision.item, np.isin(rest, decision.chosen)
        unlocks = [", ".join(names[items.cheaper_after(state, g)]) for g in rest]
        free = self._oracle.buy(state, (), state.x).measured[rest]
        order = np.lexsort((-saving, ~together, ~buy))
        columns = {"feature": names[rest], "price": price, "saving": saving, "buy": buy}
        columns |= {"together": together, "unlocks": np.array(unlocks, object)}
        return Step(
            pd.DataFrame({name: values[order] for name, values in columns.items()}),
            self._prediction(state),
            float(decision.loss[0] * self._loss_unit),
            "log-loss" if self.levels else "squared error",
            tuple(names[rest[free]]),
            budget is not None,
        )

    def predict(self, row: Any) -> pd.Series:
        """Return the prediction for a partly measured row.

        Parameters
        ----------
        row : frame of one row, Series or dict

        Returns
        -------
        Series
            Probability of each class; or fit (mean) and se (standard deviation) of a number.

        See Also
        --------
        next

        Examples
        --------
        >>> import lodim as ld
        >>> policy = ld.acquire("cultivar ~ .", ld.data("wine")[::2])
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
        """Simulate the policy on complete rows: buy features one by one, then predict.

        Parameters
        ----------
        data : frame
            Rows with all features. The policy reads only the values that it buys.
        budget : float or dict, optional
            Largest total price per row. A dict has a limit for "price" and for resources.
        mean_budget : float, optional
            Largest mean price per training row; a trade-off that gives this mean is then found.
            If no single one does, random parts of the rows use a higher and a lower trade-off.
        trade_off : float, optional
            Loss that one unit of price must save; by default the policy's `trade_off`.

        Returns
        -------
        DataFrame
            One line per row of data: .bought (features in order of purchase), .price (total
            price), the use of each resource, and the prediction as in `predict`.

        Raises
        ------
        ArgumentError, DataError
            If a budget or `trade_off` is invalid, both `mean_budget` and `trade_off` are given, or
            a column is missing or has another type than in training.

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
        batch = self.design.apply(data)
        X = self.mixture.features(tiles.unpack(batch.X, batch.n))
        if mean_budget is None:
            played = play(self._oracle, X, alpha, limit=limit)
        else:
            own, mean = self._some_rows(CALIBRATED), number("mean_budget", mean_budget, 0.0)
            played = play_within(mean, self._oracle, X, own, limit)
        names, heads = self._oracle.items.names, [f".{name}" for name in ("price", *self.resources)]
        bought = [" > ".join(names[g] for g in one.items) for one in played]
        spent = np.reshape([one.spent for one in played], (-1, len(heads)))
        shown = np.reshape([self._shown(one.answer) for one in played], (-1, len(self._heads)))
        numbers = pd.DataFrame(np.hstack([spent, shown]), columns=[*heads, *self._heads])
        numbers.insert(0, ".bought", bought)
        return numbers.set_axis(batch.index[batch.rows])

    @as_given
    def curve(
        self, data: Data, trade_offs: Any = None, *, frontier: Any = None, myopic: bool = True
    ) -> pd.DataFrame:
        """Return loss against mean price on test rows, for the policy and for simpler rules.

        Parameters
        ----------
        data : frame
            Complete test rows with the response.
        trade_offs : array, optional
            Values of `trade_off` to try; by default 16 to 0.1 times the policy's own.
        frontier : CostnetFit, optional
            Fit of the same response; each of its models is measured too.
        myopic : bool, default=True
            Whether to include the policy that looks only one feature ahead.

        Returns
        -------
        DataFrame
            One line per rule and trade-off or number of features. Column policy: "policy";
            "myopic" (one feature ahead); "fixed" (same features for all rows); "random" (random
            order); "all"; "frontier". Further columns: mean price and loss, se, accuracy.

        Raises
        ------
        ArgumentError, DataError
            If a trade-off is negative, `frontier` is no CostnetFit of the same response, or `data`
            lack the response.

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
        X = self.mixture.features(tiles.unpack(batch.X, batch.n)[known])
        y = batch.y[known]
        usual = [self.trade_off * share for share in curves.SHARES]
        given = sizes("trade_offs", usual if trade_offs is None else trade_offs)
        kinds = ["policy", *["myopic"] * flag("myopic", myopic), "fixed", "random", "all"]
        runs = [*curves.by_rule(self, X, (y - self.centre) / self.scale, kinds, given)]
        if frontier is not None:
            runs += curves.frontier_by_row(self, frontier, data, batch.rows[known], y)
        return curves.summary(runs).dropna(axis=1, how="all")

    def tree(self, data: Data | None = None, *, depth: int = 4) -> Tree:
        """Return the most frequent sequences of purchases as a tree, by ranges of measured values.

        Parameters
        ----------
        data : frame, optional
            Complete rows on which the policy is simulated; by default up to 200 training rows.
        depth : int, default=4
            Largest number of purchases on a path.

        See Also
        --------
        plot, report

        Examples
        --------
        >>> import lodim as ld
        >>> tree = ld.acquire("cultivar ~ .", ld.data("wine")[::2]).tree(depth=2)
        >>> bool(0 < tree.agreement <= 1)
        True
        """
        depth, own = whole("depth", depth, 1, 20), None
        if data is None:
            own = self._some_rows(PLAYED)
            X = self.X[own]
        else:
            batch = self.design.apply(data)
            if not batch.n:
                raise DataError("the data has no rows")
            X = tiles.unpack(batch.X, batch.n)
        played = play(self._oracle, self.mixture.features(X), self._alpha(None), own=own)
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
            Complete rows on which the policy is simulated. "curve" needs them, with the response
            (otherwise an ArgumentError).
        ax : Axes, optional
        depth : int, default=4
            Largest number of purchases on a path of the tree.
        frontier : CostnetFit, optional
            Fit that "curve" draws too.

        Returns
        -------
        Axes

        See Also
        --------
        tree, curve

        Examples
        --------
        >>> import lodim as ld
        >>> ax = ld.acquire("cultivar ~ .", ld.data("wine")[::2]).plot("tree", depth=2)
        """
        from lodim.acquisition import plots

        one_of("kind", kind, ("tree", "curve"))
        if kind == "tree":
            return plots.tree(self.tree(data, depth=depth), ax)
        if data is None:
            raise ArgumentError("plot of kind 'curve' needs data: rows that no fit has seen")
        return plots.curve(in_pandas(self.curve)(data, frontier=frontier), self, ax)

    def report(self, path: FilePath, data: Data | None = None, *, depth: int = 6) -> None:
        """Write an HTML page that asks for one measurement after the other, as in `tree`.

        Parameters
        ----------
        path : path
        data : frame, optional
            Complete rows on which the policy is simulated; see `tree`.
        depth : int, default=6
            Largest number of purchases on a path.

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
        report.write(self, self.tree(data, depth=depth), path)

    def update(
        self,
        data: Data,
        *,
        window: int | None = None,
        decay: float = 1.0,
        every: int | None = None,
    ) -> "Policy":
        """Return a policy that has also learned from new rows.

        Parameters
        ----------
        data : frame
            New rows with the response; features may be missing.
        window : int, optional
            Number of most recent rows to keep; by default all.
        decay : float, default=1
            Factor by which each new row reduces the weight of older rows, in (0, 1].
        every : int, optional
            Number of new rows after which the predictor is refitted; by default 5% of the rows.

        Raises
        ------
        ArgumentError, DataError
            If a number is out of range, no row has a response, or a level is new.

        Warns
        -----
        DataWarning
            If recent rows are predicted much worse than held-out training rows were (drift), or no
            kept row has a certain class.

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
        batch = self.design.apply(data, response=True)
        used = np.flatnonzero(~np.isnan(batch.y) & (batch.row_weights > 0.0))
        if not len(used):
            raise DataError("no row has a known response")
        X = tiles.unpack(batch.X, batch.n)[used]
        y = (batch.y[used] - self.centre) / self.scale
        n_classes = len(self.levels or ())
        recent = recent_surprises(self.mixture, X, y, n_classes, self.recent, self.settings)
        rows = [np.vstack([self.X, X]), np.append(self.y, y)]
        rows.append(np.append(self.weight * decay ** len(y), batch.row_weights[used]))
        kept = np.flatnonzero(rows[2] >= forms.TINY)[-window if window else 0 :]
        X, y, weight = (one[kept] for one in rows)
        lost = [level for k, level in enumerate(self.levels or ()) if k not in y]
        if lost:
            warn(
                f"no kept row has the class {first_few(lost)}, so refitted policies cannot predict "
                "it: choose a larger window",
                DataWarning,
            )
        new = replace(
            self, X=X, y=y, weight=weight, pending=self.pending + len(used), recent=recent
        )
        if new.pending < (every or max(1, int(REFIT * len(y)))):
            return new
        X = self.mixture.features(X)
        fit = self.mixture.refit(X, y, weight, self.seed, self.settings)
        return replace(new, mixture=fit, pending=0)

    @as_given
    def tidy(self) -> pd.DataFrame:
        """Return price and saving (expected fall of the loss) of each feature before any is known.

        `unlocks` lists the features whose price falls after its purchase.

        See Also
        --------
        next

        Examples
        --------
        >>> import lodim as ld
        >>> ld.acquire("cultivar ~ .", ld.data("wine")[::2]).tidy().columns.tolist()
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
        >>> from tempfile import TemporaryDirectory
        >>> policy = ld.acquire("cultivar ~ .", ld.data("wine")[::2])
        >>> with TemporaryDirectory() as folder:
        ...     policy.save(folder + "/wine.lodim")
        """
        if self.network.set_cost is not None:
            raise StoreError("costs is a function, which a file cannot hold: give a price list")
        storage.write(path, self.name, forms.write(self))

    def summary(self) -> Report:
        """Return a printable report: predictor, trade-off, price and saving of each feature.

        See Also
        --------
        tidy, tree

        Examples
        --------
        >>> import lodim as ld
        >>> print(ld.acquire("cultivar ~ .", ld.data("wine")[::2]).summary().title)
        Policy for Buying Features
        """
        return report.summary(self)

    def __repr__(self):
        return report.text(self)

    @property
    def _heads(self):
        return list(self.levels) if self.levels else ["fit", "se"]

    def _shown(self, answer):
        """Convert `answer`, a mean and SD, to the response's units; keep class probabilities."""
        return answer if self.levels else answer * self.scale + [self.centre, 0.0]

    def _prediction(self, state):
        return pd.Series(self._shown(self._oracle.predict(state)), self._heads)

    def _alpha(self, trade_off):
        """Convert a trade-off to the scale of the standardized response.

        trade_off : loss that one unit of price must save; None for that of this policy"""
        value = self.trade_off if trade_off is None else number("trade_off", trade_off, 0.0)
        return value / self._loss_unit

    def _limit(self, budget):
        """Return a budget as an array: limits of price and of each resource; None if unlimited."""
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
        n = len(self.y)
        return np.sort(np.random.default_rng(self.seed).permutation(n)[:most])

    def _state(self, row):
        """Return the State of a row (frame, Series, dict); known features count as paid."""
        named = isinstance(row, Mapping | pd.Series)
        if isinstance(row, Mapping):
            row = {name: [one] if listed(one) is None else one for name, one in row.items()}
        frame = read_frame(row)
        if frame.names and len(frame.index) != 1:
            raise DataError(f"next() and predict() take one row, not {len(frame.index)}")
        items, design = self._oracle.items, self.design
        if named:
            known = {*design.columns_needed([design.weights]), *design.left_out}
            for name in frame.names:
                if name not in known:
                    hint = suggestion(name, items.names)
                    raise DataError(f"there is no column {name!r} in the formula; {hint}")
        x = np.full(len(items.column_item), np.nan)
        given = np.array([name in frame.names for name in items.names])[items.column_item]
        if given.any():
            design, given = self.design.restrict(np.flatnonzero(given))
            x[given] = tiles.unpack(design.apply(frame).X, 1)[0]
        known = [g for g in range(len(items)) if not np.isnan(x[items.column_item == g]).all()]
        one = items.one_hot(*known)
        paid = items.pay(np.zeros(len(self.network), bool), one)
        return State(self.mixture.features(x[None])[0], one[0], paid[0])
