"""Rows of data whose columns can be changed, and the predictions for them."""

import itertools
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from lodim.checks import listed
from lodim.design import columns, factors
from lodim.design.chunks import frame_of
from lodim.design.frame import read_column, read_frame
from lodim.design.rows import RowInputs
from lodim.errors import ArgumentError, DataError


@dataclass(frozen=True)
class Feature:
    """A column of the data as numbers: (n,) values, NaN if missing."""

    name: str
    values: np.ndarray  # (n,) float64; positions in `levels` if there are levels
    levels: tuple | None = None  # None for numbers and dates

    def take(self, at):
        return replace(self, values=self.values[at])


@dataclass(frozen=True)
class Rows:
    """Rows to predict: a dict of Columns, weights (n,) and offset; caches its last Batch."""

    columns: dict
    weight: np.ndarray
    offset: np.ndarray | None = None
    _read: dict = field(default_factory=dict)

    @property
    def n(self):
        return len(self.weight)

    def take(self, at):
        held = {name: columns.take(column, at) for name, column in self.columns.items()}
        offset = None if self.offset is None else self.offset[at]
        return Rows(held, self.weight[at], offset)

    def with_values(self, feature, values):
        """Return the rows with other values of a feature: (n,), or one value for all rows."""
        values = np.array(np.broadcast_to(values, self.n), float)
        column = self.columns[feature.name]
        if column.kind == "level":
            column = replace(column, codes=np.where(np.isnan(values), -1, values).astype(int))
        else:
            column = replace(column, values=values, whole=False)
        return replace(self, columns=self.columns | {feature.name: column}, _read={})

    def batch(self, design, response=False):
        """Return the rows as numbers (a Batch): a design's features, and the response if wanted."""
        key = id(design), response
        if key not in self._read:
            self._read.clear()
            offset = {} if self.offset is None else {"offset": self.offset}
            frame = frame_of(self.columns, pd.RangeIndex(self.n))
            self._read[key] = design.apply(frame, response=response, **offset)
        return self._read[key]

    def answers(self, fit, type):
        """Return predictions (n, K) by a fit; type : "response" or "link"; NaN if there is none."""
        batch = self.batch(fit._reader)
        values = fit._predict(batch, type)[0].reshape(batch.n, -1)
        full = np.full((self.n, values.shape[1]), np.nan)
        full[batch.rows] = values
        return full


def read_rows(fit, data, offset, response=False, by=None, replicates=()):
    """Read rows of positive weight; return Rows, and a dict column -> Feature.

    offset : argument of predict(), or None
    response : whether to read the response, too
    by : name of another column to read, or None
    replicates : further fits whose columns to read"""
    design, frame = fit._reader, read_frame(data)
    beside = [name for one in replicates for name in one._reader.features]
    beside += factors.columns_of(design.response.key) if response else []
    beside += [design.offset] if isinstance(design.offset, str) and offset is None else []
    beside += [design.weights] if design.weights in frame.names else []
    beside += [] if by is None else [by]
    held = {name: read_column(frame, name) for name in dict.fromkeys([*design.features, *beside])}
    weight = np.ones(len(frame.index))
    if design.weights in held:
        weight = np.nan_to_num(columns.as_float(held[design.weights].values))
    rows = Rows(held, weight, RowInputs(offset=offset).read(frame).offset)
    rows = rows.take(np.flatnonzero(weight > 0.0))
    if not rows.n:
        raise DataError("no row of the data has a positive weight")
    recoded, features = {}, {}
    numbers = factors.read_as_numbers(itertools.chain(*design.terms))
    for name in design.features:
        column = rows.columns[name]
        if column.kind in ("empty", "date") or (column.kind == "number" and name in numbers):
            features[name] = Feature(name, columns.as_float(column.values))
            continue
        column = columns.as_levels(column)
        used, codes = np.unique(column.codes, return_inverse=True)
        levels = tuple(column.levels[k] for k in used if k >= 0)
        codes = (np.cumsum(used >= 0) - 1)[codes]  # of the levels that occur
        recoded[name] = replace(column, codes=codes, levels=levels)
        features[name] = Feature(name, np.where(codes < 0, np.nan, codes), levels)
    return replace(rows, columns=rows.columns | recoded), features


def features_of(terms, features):
    """Return the user's `terms` as a list of names and pairs of names; for None, all `features`."""
    if terms is None:
        return list(features)
    is_one = isinstance(terms, str) or (isinstance(terms, tuple) and len(terms) == 2)
    asked = [terms] if is_one else listed(terms)
    if not asked:
        raise ArgumentError(f"terms must be names of columns, or pairs of them, not {terms!r:.80}")
    return [_known(term, features) for term in asked]


def _known(term, features):
    if isinstance(term, str) and term in features:
        return term
    pair = tuple(term.split(":")) if isinstance(term, str) else ()
    pair = tuple(term) if isinstance(term, list | tuple) else pair
    known = all(isinstance(name, str) and name in features for name in pair)
    if len(pair) == 2 and known and pair[0] != pair[1]:
        return pair
    what = f"a term must be a column of the fit, or a pair of columns, not {term!r:.80}"
    raise DataError(f"{what}; the columns are {', '.join(map(repr, features))}")
