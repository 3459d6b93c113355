"""GbmapFit: what gbmap() returns."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd

from lodim.checks import one_of, positive, share, whole
from lodim.engine.blocks import available_threads
from lodim.errors import ArgumentError, DataError
from lodim.fitting.fit import Fit
from lodim.models.gbmap import embedding as distance
from lodim.models.gbmap import learners as rows
from lodim.models.gbmap import report
from lodim.models.gbmap.embedding import indicator
from lodim.models.gbmap.learners import Effects


class GbmapFit(Fit):
    """A fitted gradient boosting mapping.

    Attributes
    ----------
    estimates : Boosts
        The weak learners, on standardized features.
    log : dict of arrays (M,)
        For each learner: objective, deviance after its boost, grad_norm, n_iter, n_eval, converged.
    effects : Effects
        Averages of the local coefficients over the training rows.
    reference : Reference or None
        Training rows for neighbours and drift (at most control's `reference_rows`).
    n, null_deviance : rows used, and mean deviance of the model with an intercept alone
    calibration : array (101,) or None
        Percentiles of the drift indicator (k = 5) over out-of-fold training rows; None where m and
        lambda_ were both given, since then nothing is fitted out of fold.
    selection : DataFrame or None
        The cross-validation that chose m or lambda_.
    """

    name = "gbmap"
    estimate_name = "mean local coefficient"
    types = ("response", "link", "class", "prob", "embedding", "local")
    without_offset = ("embedding", "local")

    def __init__(self, *, log, effects, reference, n, null_deviance, calibration=None, **shared):
        super().__init__(**shared)
        self.log, self.effects, self.reference = log, effects, reference
        self.n, self.null_deviance, self.calibration = n, null_deviance, calibration

    # The contract of Fit -----------------------------------------------------------------------

    def _score(self, batch):
        score = rows.score(self.estimates, batch.X, batch.n, self._threads, self._engine)
        return self._with_offset(score, batch)

    def _predict(self, batch, type):
        if type == "embedding":
            return self.embed(batch), self.coordinates
        if type == "local":
            gradient = rows.local(self.estimates, batch.X, batch.n, self._threads)
            values = (gradient / self.design.scale).reshape(batch.n, self.effects.mean.size)
            return values, self._by_level(self.design.names)
        return super()._predict(batch, type)

    def tidy(self) -> pd.DataFrame:
        """A row a feature (and class): mean and mean absolute local coefficient.

        estimate, estimate_abs are in units of the link per unit of the feature; std_estimate,
        std_estimate_abs per standard deviation of the feature.
        """
        scale, e = self.design.scale, self.effects
        frame = pd.DataFrame({"term": list(self.design.names) * self.family.n_scores})
        if self.family.n_scores > 1:
            frame.insert(0, "level", np.repeat(np.array(self.levels, object), len(scale)))
        frame["estimate"] = (e.mean / scale).ravel()
        frame["estimate_abs"] = (e.mean_abs / scale).ravel()
        frame["std_estimate"], frame["std_estimate_abs"] = e.mean.ravel(), e.mean_abs.ravel()
        return frame

    def learners(self) -> pd.DataFrame:
        """A row a weak learner: boost, (level), a, b, |w|, share of rows active, loss, dev_ratio.

        a and |w| are in units of the link, |w| for features in standard deviations.
        """
        t = self.estimates
        frame = pd.DataFrame({"boost": t.stage})
        if self.family.n_scores > 1:
            frame["level"] = np.array(self.levels, dtype=object)[t.target]
        frame["a"], frame["b"] = t.scale * t.theta[:, 0], t.sign.astype(int)
        frame["norm"] = t.scale * np.linalg.norm(t.theta[:, 2:], axis=1)
        frame["active"] = self.effects.active
        frame["n_iter"], frame["converged"] = self.log["n_iter"], self.log["converged"]
        frame["deviance"] = self.log["deviance"]
        frame["dev_ratio"] = self._explained(self.log["deviance"])
        return frame

    def projections(self) -> pd.DataFrame:
        """The weights w_j in units of the link per unit of each feature: (M, 1 + p) frame.

        `(Intercept)` is the weight of the constant; f_j(x) = a_j + b_j g(w_j'x~) with a_j of
        `learners()` and the softness beta divided by the response's standard deviation.
        """
        t, d = self.estimates, self.design
        w = t.scale * t.theta[:, 2:] / d.scale
        constant = t.scale * t.theta[:, 1] - w @ d.mean
        return pd.DataFrame(
            np.column_stack([constant, w]),
            index=pd.Index(self.coordinates, name="learner"),
            columns=["(Intercept)", *d.names],
        )

    def glance(self) -> pd.DataFrame:
        """One row: family, n, p, m, lambda_, beta, df, mean deviances, how the optimizer ended.

        df counts nonzero weights; deviance and null_deviance are means over (weighted) rows.
        """
        s, log = self.settings, self.log
        row = {
            "family": self.family.name, "n": self.n, "n_dropped": self.design.n_dropped,
            "p": len(self.design.names), "m": s.m, "lambda_": s.lambda_, "l1_ratio": s.l1_ratio,
            "beta": s.beta, "df": self.df, "deviance": log["deviance"][-1],
            "null_deviance": self.null_deviance, "dev_ratio": self.dev_ratio,
            "converged": self.converged, "n_eval": int(log["n_eval"].sum()),
        }  # fmt: skip
        return pd.DataFrame([row])

    def _summary(self, full):
        return report.summary(self, full)

    def _listing(self):
        return report.listing(self)

    def to_state(self):
        return self._shared_state() | {
            "settings": asdict(self.settings),
            "boosts": vars(self.estimates), "log": self.log, "effects": vars(self.effects),
            "reference": None if self.reference is None else vars(self.reference),
            "n": self.n, "null_deviance": self.null_deviance, "calibration": self.calibration,
        }  # fmt: skip

    def plot(self, kind=None, ax=None, **arguments):
        """Draw on matplotlib Axes and return them.

        kind : "loss" (default), training loss by boost; "effects" (top=15), effect of each feature;
        "local" (data, row), explanation of one row; "embedding" (data=None), its first two
        principal components; "drift" (data, threshold=None, limit=None), indicator against loss.
        """
        from lodim.models.gbmap import plots

        return plots.draw(self, kind, ax, **arguments)

    # What only gbmap has -----------------------------------------------------------------------

    @property
    def coordinates(self):
        """Names of the embedding's coordinates: f1, f2, ..., or f1[level], ... of classes."""
        t = self.estimates
        if self.family.n_scores == 1:
            return [f"f{j}" for j in t.stage]
        return [f"f{j}[{self.levels[k]}]" for j, k in zip(t.stage, t.target, strict=True)]

    @property
    def df(self):
        """Number of nonzero weights of all projections."""
        return int(np.count_nonzero(self.estimates.theta[:, 2:]))

    @property
    def dev_ratio(self):
        """Share of the null deviance explained; NaN where there is none."""
        return float(self._explained(self.log["deviance"][-1]))

    @property
    def converged(self):
        """Whether the optimizer met its tolerance in every boost."""
        return bool(self.log["converged"].all())

    def staged(self, data: Any, type: str = "response", *, offset: Any = None) -> dict:
        """Predictions after each boost: a dict boost -> prediction, as `predict` gives them."""
        one_of("type", type, Fit.types)
        return {j: self.first(j).predict(data, type, offset=offset) for j in self._boosts()}

    def first(self, m: int) -> "GbmapFit":
        """The fit of the first m boosts: earlier boosts do not depend on later ones.

        Its effects and reference rows are left out; neighbours need a refit.
        """
        m = whole("m", m, most=self.settings.m)
        boosts = self.estimates.first(m)
        keep = slice(0, len(boosts.sign))
        return GbmapFit(
            log={name: v[keep] for name, v in self.log.items()}, reference=None, n=self.n,
            effects=Effects(
                np.full_like(self.effects.mean, np.nan), np.full_like(self.effects.mean, np.nan),
                self.effects.active[keep],
            ),
            null_deviance=self.null_deviance, design=self.design, family=self.family,
            settings=replace(self.settings, m=m), estimates=boosts, selection=None,
            call=self.call, arguments=self.arguments,
        )  # fmt: skip

    def distance(self, data, other=None, *, kind="embedding", tolerance=None):
        """Distances between the rows of `data` and of `other` (default: of `data`).

        Parameters
        ----------
        kind : {"embedding", "path"}
            Eq. 7 of Patron et al. (2024), sum_j |f_j(x) - f_j(x')|; or Eq. 6, the total change of
            f on the segment from x to x'. Both bound |f(x) - f(x')| from above, and path <=
            embedding (Eq. 8).
        tolerance : float, optional
            Largest error of a path distance, in units of the link; by default 1e-6 of the standard
            deviation of a numeric response, else 1e-6.

        Returns
        -------
        DataFrame (rows of data, rows of other), NaN where inputs are missing.
        """
        one_of("kind", kind, ("embedding", "path"))
        tolerance = 1e-6 * self.estimates.scale if tolerance is None else tolerance
        tolerance = positive("tolerance", tolerance)
        ends = [
            self.design.apply(d, **self.zero_offset())
            for d in (data, data if other is None else other)
        ]
        t = self.estimates
        if kind == "embedding":
            values = distance.embedding_distance(*map(self.embed, ends))
        else:
            Z, W = (rows.projections(t, b.X, b.n) for b in ends)
            values = distance.path_distances(Z, W, t, tolerance)
        full = np.full([len(b.index) for b in ends], np.nan)
        full[np.ix_(ends[0].rows, ends[1].rows)] = values
        return pd.DataFrame(full, index=ends[0].index, columns=ends[1].index)

    def neighbours(self, data: Any, k: int = 10) -> pd.Series | pd.DataFrame:
        """Mean response of the k nearest training rows in the embedding (Eq. 7's metric).

        A numeric response (less its offset, if one was used) is averaged; classes give their
        shares, a column each. Each training row counts once, whatever its weight.
        """
        batch = self.design.apply(data, **self.zero_offset())
        y = self.training_rows(k).y[self._nearest(batch, k)]
        if self.levels is None:
            return self._spread(batch, y.mean(axis=1), self.design.response.name)
        share = np.stack([(y == c).mean(axis=1) for c in range(len(self.levels))], axis=1)
        return self._spread(batch, share, list(self.levels))

    def drift(self, data: Any, k: int = 5) -> pd.Series:
        """Drift indicator |f(x) - f_kNN(x)| of each row: large where the fit extrapolates.

        Near the training data a row's score and the mean of its k nearest training rows agree;
        away from them f grows linearly while the neighbours stay (Patron et al. 2024, Sect. 4.5).
        A numeric response averages the neighbours' y, classes average their scores f(x_i); with
        several scores the largest difference counts. Needs no response. The offset of the fit is
        left out on both sides. Each training row counts once, whatever its weight.

        Returns
        -------
        Series, in units of the link
        """
        batch = self.design.apply(data, **self.zero_offset())
        values = indicator(
            self.estimates, self.training_rows(k), batch.X, batch.n, k, self.levels is None,
            self._threads,
        )  # fmt: skip
        return self._spread(batch, values, ".drift")

    def drift_threshold(self, data: Any = None, *, k: int = 5, quantile: float = 0.95) -> float:
        """Quantile of the drift indicator over rows that the fit has not seen.

        Those of `data`; without it, the out-of-fold training rows of a fit that chose its own m or
        lambda_ (k = 5 then).
        """
        quantile, k = share("quantile", quantile), whole("k", k)
        if data is not None:
            indicator = self.drift(data, k).dropna()
            if indicator.empty:
                raise DataError("no complete row to take the quantile of")
            return float(indicator.quantile(quantile))
        if self.calibration is None or k != 5:
            raise ArgumentError(
                "pass `data`, rows that the fit has not seen: no out-of-fold rows are at hand "
                f"for k={k} (they are when gbmap chooses m or lambda_, for k=5)"
            )
        return float(np.interp(100.0 * quantile, np.arange(101), self.calibration))

    def regions(self, data: Any) -> pd.DataFrame:
        """The linear regions that rows fall in, most populated first.

        A region is an activation pattern {j : w_j'x~ > 0}. `active` lists its learners, `n` and
        `share` count rows, then the linear coefficients sum_j b_j w_j of the region (the limit
        beta -> infinity), in units of the link per unit of each feature.
        """
        batch = self.design.apply(data, **self.zero_offset())
        on = rows.pattern(self.estimates, batch.X, batch.n, self._threads)
        patterns, counts = np.unique(on, axis=0, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        t, names = self.estimates, np.array(self.coordinates, dtype=object)
        frame = pd.DataFrame(
            {
                "active": [" ".join(names[p]) or "none" for p in patterns[order]],
                "n": counts[order],
                "share": counts[order] / max(1, batch.n),
            }
        )
        w = t.scale * t.sign[:, None] * t.theta[:, 2:] / self.design.scale
        parts = [patterns[order][:, t.target == k] @ w[t.target == k] for k in range(t.n_scores)]
        columns = self._by_level(self.design.names)
        return pd.concat([frame, pd.DataFrame(np.hstack(parts), columns=columns)], axis=1)

    # Shared by the above -----------------------------------------------------------------------

    @property
    def _threads(self):
        return self.settings.threads or available_threads()

    @property
    def _engine(self):
        # To move new rows to a GPU takes longer than to read them here: only where asked.
        return "cuda" if self.settings.engine == "cuda" else "cpu"

    def _boosts(self):
        return range(1, self.settings.m + 1)

    def _by_level(self, names):
        if self.family.n_scores == 1:
            return list(names)
        return pd.MultiIndex.from_product([list(self.levels), list(names)])

    def zero_offset(self):
        """Arguments that leave the offset out of the numbers of new data."""
        return {"offset": 0.0} if self.design.offset_given else {}

    def _with_offset(self, score, batch):
        return score + batch.offset_matrix(self.family.n_scores)

    def training_rows(self, k=1):
        """The Reference, at least k rows of it."""
        if self.reference is None:
            raise ArgumentError(
                "this fit keeps no training rows (it is part of a path, a first(m), or was fitted "
                "with reference_rows=0): fit it anew for neighbours and drift"
            )
        whole("k", k, most=len(self.reference.y))
        return self.reference

    def embed(self, batch):
        """Embedding (n, M) of the rows of a batch."""
        return rows.embedding(self.estimates, batch.X, batch.n, self._threads, self._engine)

    def _nearest(self, batch, k):
        return distance.neighbours(self.reference.embedding, self.embed(batch), k)[1]
