"""Fractional random weights: what a row counts in each replicate of a bootstrap."""

from dataclasses import dataclass

import numpy as np

from lodim.engine import row_keys


@dataclass(frozen=True)
class RandomWeights:
    """Standard exponential weights of mean one, times the rows' own.

    No weight is zero, so that no level, class or group vanishes from a replicate (Xu, Gotwalt,
    Hong, King and Meeker 2020).

    base : (n,) weights of the rows
    unit : (n,) what is drawn for each row: rows of a group (or cluster) share a draw. Units are
        ordered by what their rows hold, so that the order of rows makes no difference; -1 of a row
        of weight zero
    n_units : int
    seeds : of each replicate
    """

    base: np.ndarray
    unit: np.ndarray
    n_units: int
    seeds: list[np.random.SeedSequence]

    @classmethod
    def from_batch(cls, batch, n_classes, n, seed):
        """Of n replicates of the rows of a batch."""
        base = batch.row_weights
        key, at = row_keys.of_batch(batch, n_classes)[0], batch.positive_weight
        units = np.arange(batch.n) if batch.units is None else batch.units
        code = np.unique(units[at], return_inverse=True)[1]
        of_unit = np.bincount(code, key[at]) / np.bincount(code)
        rank = np.empty(len(of_unit), np.int64)
        rank[row_keys.shuffled(of_unit, seed)] = np.arange(len(of_unit))
        unit = np.full(batch.n, -1)
        unit[at] = rank[code]
        return cls(base, unit, len(of_unit), np.random.SeedSequence(seed).spawn(n))

    def of_units(self, k):
        """Weights (n_units,) of replicate k, of mean one."""
        draw = np.random.default_rng(self.seeds[k]).exponential(size=self.n_units)
        return draw / draw.mean()

    def of_rows(self, k):
        """Weights (n,) of replicate k."""
        return self.base * np.append(self.of_units(k), 0.0)[self.unit]
