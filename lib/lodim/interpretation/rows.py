"""Rows of data whose columns can be changed, and the predictions for them."""

import itertools
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from lodim.checks import listed
from lodim.design import columns, factors
from lodim.design.frame import read_column, read_frame
from lodim.design.rows import RowInputs
from lodim.errors import ArgumentError, DataError


@dataclass(frozen=True)
class Feature:
    """A column of the data as numbers: (n,) values, NaN if missing."""

    name: str
    values: np.ndarray  # (n,) float64; positions in `levels` if there are levels
    levels: tuple | None = None  # None for numbers
    ordered: bool = False  # whether the order of levels was declared
    dates: bool = False  # whether values are days since 1970-01-01

    def take(self, at):
        return replace(self, values=self.values[at])


@dataclass(frozen=True)
class Rows:
    """Rows to predict: a dict of columns, weights (n,) and offset; caches its last Batch."""

    columns: dict
    weight: np.ndarray
    offset: np.ndarray | None = None
    _read: dict = field(default_factory=dict)

    @property
    def n(self):
        return len(self.weight)

    def take(self, at):
        held = {name: values[at] for name, values in self.columns.items()}
        offset = None if self.offset is None else self.offset[at]
        return Rows(held, self.weight[at], offset)

    def with_values(self, feature, values):
        """Return the rows with other values of a feature: (n,), or one value for all rows."""
        values = np.broadcast_to(values, self.n)
        columns = self.columns | {feature.name: _column(feature, values)}
        return replace(self, columns=columns, _read={})

    def batch(self, design, response=False):
        """Return the rows as numbers (a Batch): a design's features, and the response if wanted."""
        key = id(design), response
        if key not in self._read:
            self._read.clear()
            offset = {} if self.offset is None else {"offset": self.offset}
            self._read[key] = design.apply(self.columns, response=response, **offset)
        return self._read[key]

    def answers(self, fit, type):
        """Return predictions (n, K) of a fit, of type "response" or "link"; NaN if unknown."""
        batch = self.batch(fit._reader)
        values = fit._predict(batch, type)[0].reshape(batch.n, -1)
        full = np.full((self.n, values.shape[1]), np.nan)
        full[batch.rows] = values
        return full


def read_rows(fit, data, offset, response=False, replicates=()):
    """Return the data as Rows, and {column: Feature} for the columns that the fit uses.

    The Rows also have the columns of `replicates` (fits), and of the response if `response`."""
    design, frame = fit._reader, read_frame(data)
    needed = list(design.features)
    beside = [name for one in replicates for name in one._reader.features]
    beside += factors.columns_of(design.response.key) if response else []
    beside += [design.offset] if isinstance(design.offset, str) and offset is None else []
    beside += [design.weights] if design.weights in frame.names else []
    read = {name: read_column(frame, name) for name in dict.fromkeys([*needed, *beside])}
    n = len(frame.index)
    features = {name: _feature(read[name], design, n) for name in needed}
    held = {name: _column(features[name], features[name].values) for name in needed}
    held |= {name: _plain(read[name], n) for name in beside if name not in held}
    weight = np.ones(n)
    if design.weights in read:
        weight = np.nan_to_num(columns.as_float(read[design.weights].values))
    return Rows(held, weight, RowInputs(offset=offset).read(frame).offset), features


def _feature(column, design, n):
    """Return a Column of n rows as a Feature, with levels unless the design reads it as number."""
    if column.kind == "empty":
        return Feature(column.name, np.full(n, np.nan))
    if column.kind == "date":
        return Feature(column.name, column.values, dates=True)
    parts = [part for part in itertools.chain(*design.terms) if column.name in factors.needs(part)]
    if column.kind == "number" and any(factors.is_read_as_number(p, column.name) for p in parts):
        return Feature(column.name, columns.as_float(column.values))
    column = columns.as_levels(column)
    used, codes = np.unique(column.codes, return_inverse=True)
    values = np.where(used < 0, np.nan, np.cumsum(used >= 0) - 1.0)[codes]
    levels = tuple(column.levels[k] for k in used if k >= 0)
    return Feature(column.name, values, levels, column.ordered)


def _column(feature, values):
    """Return a feature's values in the type of a column of data: dates, numbers or categories."""
    if feature.dates:
        return columns.to_moments(values)
    if feature.levels is None:
        return np.array(values, float)
    codes = np.where(np.isfinite(values), values, -1).astype(int)
    return _coded(codes, feature.levels, feature.ordered)


def _plain(column, n):
    """Return a Column as data for pandas, such as a Categorical; n : number of rows."""
    if column.kind == "level":
        return _coded(column.codes, column.levels, column.ordered)
    if column.kind == "date":
        return columns.to_moments(column.values)
    return np.full(n, np.nan) if column.kind == "empty" else np.asarray(column.values)


def _coded(codes, levels, ordered):
    """Return the levels of `codes` (-1: missing) as an array: booleans, floats or a Categorical."""
    if levels and all(isinstance(level, bool) for level in levels):
        return pd.array([*levels, None], dtype="boolean")[codes]
    if levels and all(isinstance(level, int | float) for level in levels) and not ordered:
        return np.array([*levels, np.nan], float)[codes]
    return pd.Categorical.from_codes(codes, list(levels), ordered=ordered)


def features_of(terms, features):
    """Return requested terms as names, or pairs of names, of the `features`; None means all."""
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
