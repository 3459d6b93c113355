"""predict() and augment() for data that are not in memory, chunk by chunk, also to files."""

import functools
import inspect
import warnings
from dataclasses import dataclass, replace
from os import fspath
from typing import Any, cast

import numpy as np
import pandas as pd

from lodim.checks import one_of
from lodim.design import factors
from lodim.design.batch import Batch, subset
from lodim.design.frame import (
    convert,
    dict_as_frame,
    frame_kind,
    join_frames,
    read_frame,
    rows_of,
    with_columns,
)
from lodim.design.rows import RowInputs
from lodim.errors import ArgumentError, DataError, warn
from lodim.fitting import output_file
from lodim.sources import read_source
from lodim.typing import F

# arguments of predict() that do not name other columns to read
SHARED = {"type", "offset", "new_levels", "threshold"}
OUTPUT = """output : path, optional
    File to write (.parquet, .csv, .arrow or .feather), whose path is returned instead. `data` may
    then be larger than memory: files and lazy frames are read in chunks. A Dask frame gives a lazy
    result.
"""


def streaming(method: F) -> F:
    """Decorate a method of a fit to accept data larger than memory, in chunks, and `output`."""
    typed = inspect.signature(method).parameters.get("type")  # of predict()

    @functools.wraps(method)
    def streamed(self, data, *arguments, output=None, **keywords):
        data = rows_of(data)
        kind = [*arguments, keywords.get("type", typed and typed.default)][0]
        if typed and kind is not typed.default:  # refused before the data are read
            fits = getattr(self, "fits", {"": self}).values()
            one_of("type", kind, dict.fromkeys(k for fit in fits for k in fit.types))
        call = MethodCall(self, method, arguments, keywords)
        if call.includes_data:
            data = dict_as_frame(data)
        if output is None and type(data).__module__.startswith("dask.dataframe"):
            return _lazily(call, data)
        source = read_source(data)
        if output is not None:
            output_file.check_apart(output, [] if source is None else source.paths)
            parts = call.of_frame(data) if source is None else call.of_source(source)
            with output_file.writing(output) as append:
                for rows, answers in parts:
                    new = pd.DataFrame(answers)
                    append(new if rows is None else with_columns(rows, new, frame_kind(rows)))
            return fspath(output)
        if source is None:
            return method(self, data, *arguments, **keywords)
        frames, answers = zip(*call.of_source(source), strict=True)
        answers = pd.concat(answers, ignore_index=True)
        if not call.includes_data:
            return convert(answers, source.kind)
        return with_columns(join_frames(frames, source.kind), answers, source.kind)

    text = inspect.cleandoc(method.__doc__ or "")
    streamed.__doc__ = text.replace("\n\nReturns\n", f"\n{OUTPUT}\nReturns\n", 1) or None
    return cast(F, streamed)


@dataclass(frozen=True)
class MethodCall:
    """A method of a fit, such as predict, and its arguments without the data."""

    fit: Any
    method: Any
    arguments: tuple
    keywords: dict

    @property
    def includes_data(self):
        return self.method.__name__ == "augment"

    def __call__(self, frame, **offset):
        return self.method(self.fit, frame, *self.arguments, **self.keywords | offset)

    def of_frame(self, data):
        """Call the method, such as predict, for a frame; yield a single pair (rows, result).

        rows : `data` if its columns must still be joined to the result, else None"""
        answers = self(data)
        joins = self.includes_data and not isinstance(data, pd.DataFrame)
        yield (data if joins and hasattr(data, "columns") else None), answers

    def of_source(self, source):
        """Call the method, such as predict, for each chunk of a Source; yield pairs (rows, result).

        rows : the chunk, if its columns must be joined to the result, else None"""
        names, offset = source.names, self.keywords.get("offset")
        if not self.includes_data:
            used = set(self.keywords) <= SHARED
            fits = getattr(self.fit, "fits", {"": self.fit}).values()
            names = {name for fit in fits for name in _features(fit, used)}
        said: dict[type, list[str]] = {}
        empty = True
        for chunk, given in _with_offsets(source, names, offset):
            with warnings.catch_warnings(record=True) as raised:
                warnings.simplefilter("always")
                answers = _with_place_of_errors(self, chunk, source, given)
            for warning in raised:
                said.setdefault(warning.category, []).append(f"{chunk.place}: {warning.message}")
            empty = False
            yield (chunk.frame if self.includes_data else None), answers
        if empty:
            raise DataError("the data has no rows")
        for category, messages in said.items():
            more = f" (and {len(messages) - 1} similar warnings)" if len(messages) > 1 else ""
            warn(messages[0] + more, category)


def _features(fit, only_used):
    """Return columns of a fit's features and offset, only those used to predict if `only_used`."""
    design = fit._reader if only_used else fit.design
    return [*design.features, *([design.offset] if design.offset else [])]


def _offset_array(offset):
    """Return an offset (n,) or (n, K) as an array; None for a column name, a number or None."""
    if isinstance(offset, (pd.Series, pd.DataFrame)):
        if not offset.index.equals(pd.RangeIndex(len(offset))):
            raise DataError("offset of files must have no row labels: give offset.to_numpy()")
        return offset.to_numpy(dtype=np.float64, na_value=np.nan)
    return None if isinstance(offset, str) or np.ndim(offset) == 0 else offset


def _with_offsets(source, wanted, offset):
    """Read a Source in chunks; yield each Chunk with a dict of its rows' offset.

    wanted : columns to read
    offset : array, column name or None; unless an array, the dict is empty
    Raise DataError unless an array has one value per row."""
    wanted = {*wanted, offset if isinstance(offset, str) else None}
    # A chunk without columns would have no rows.
    names = [name for name in source.names if name in wanted] or source.names[:1]
    values, first = _offset_array(offset), 0
    has = 0 if values is None else len(values)
    what = f"offset must have one value per row; it has {has} values, and the data has"
    for chunk in source.chunks(names):
        stop = first + len(chunk.frame)
        if values is not None and has < stop:
            raise DataError(f"{what} more rows ({chunk.place})")
        yield chunk, {} if values is None else {"offset": np.asarray(values[first:stop])}
        first = stop
    if 0 < first < has:
        raise DataError(f"{what} {first} rows")


def _frame(chunk, source, stop=None):
    """Return a Chunk of a Source as a Frame labelled by row number.

    stop : number of leading rows to return; None means all"""
    data = chunk.frame
    if stop is not None:
        data = data.iloc[:stop] if isinstance(data, pd.DataFrame) else data[:stop]
    frame = read_frame(data)
    index = frame.index
    if source.kind != "dask":
        index = pd.RangeIndex(chunk.first, chunk.first + len(index))
    return replace(frame, index=index, names=tuple(source.names))


def _with_place_of_errors(function, chunk, source, offset):
    """Return function(frame, **offset) for the rows of a Chunk; a DataError names chunk and row.

    source : Source to which the chunk belongs; offset : {"offset": values of the rows} or {}"""
    frame = _frame(chunk, source)
    try:
        return function(frame, **offset)
    except DataError as error:
        # low, high: number of leading rows that are accepted, and that raise an error
        low, high = -1, len(frame.index)
        while high - low > 1:
            stop = max(0, (low + high) // 2)
            try:
                function(_frame(chunk, source, stop), **{k: v[:stop] for k, v in offset.items()})
                low = stop
            except DataError:
                high = stop
        said = f", row {frame.index[high - 1]}" if high and "in row" not in str(error) else ""
        raise DataError(f"{chunk.place}{said}: {error}") from error


# Results ---------------------------------------------------------------------------------------


def predictions(fit, data, *arguments, **keywords):
    """Yield results of predict(*arguments, **keywords) as pandas frames, one per chunk of data."""
    source = read_source(data)
    call = MethodCall(fit, type(fit).predict, arguments, keywords)
    for _, answers in call.of_frame(data) if source is None else call.of_source(source):
        yield pd.DataFrame(answers)


def _lazily(call, data):
    """Return the result of a MethodCall for a Dask frame as a lazy Dask object."""
    if _offset_array(call.keywords.get("offset")) is not None:
        why = "its partitions have no known length"
        raise ArgumentError(f"offset= of a Dask frame must be a column name: {why}")
    none = call(data._meta)
    name = call.method.__name__
    more = {"fit": call.fit, "name": name, "given": call.arguments, "like": none}
    return data.map_partitions(_of_partition, meta=none, **more, **call.keywords)


def _of_partition(data, *, fit, name, given, like, partition_info=None, **keywords):
    """Call a fit's method for one partition of Dask data.

    name : name of the method
    given, keywords : its other arguments
    like : pandas object with the types of the result
    partition_info : dict from Dask with the partition's number"""
    try:
        answers = getattr(fit, name)(data, *given, **keywords)
    except DataError as error:
        raise DataError(f"partition {partition_info['number'] + 1}: {error}") from error
    return answers.astype(like.dtype if isinstance(like, pd.Series) else like.dtypes)


# Evaluation ------------------------------------------------------------------------------------


def evaluation(fit, data, offset, new_levels):
    """Return the result of fit.evaluate(data, ...) as a pandas frame; data : frame or source"""
    source, how = read_source(data), {"offset": offset, "new_levels": new_levels}
    if source is None:
        batch, score = fit._answered(fit._reader.apply(data, response=True, **how))
        losses = fit._losses(batch, score)
    else:
        batch, score, losses = _scored_source(fit, source, **how)
    if batch.n == 0:
        raise DataError("no complete row to evaluate: give rows without missing values")
    weight = batch.weight
    means = {name: weight @ loss for name, loss in losses.items()}
    base = batch.offset_matrix(score.shape[1])
    null = weight @ fit.family.deviance(batch.y, fit.family.null_score(batch.y, weight, base))
    square = weight @ batch.y**2 if fit.levels is None else None
    varies = square is None or batch.offset is not None or np.ptp(batch.y[weight > 0]) > 0
    deviance = means.pop("deviance")
    # The null deviance of a constant response consists of rounding errors.
    rounding = 1e-9 if square is None else 1e-20 * square
    ratio = 1.0 - deviance / null if varies and null > rounding else np.nan
    row = {"n": batch.n_positive, "deviance": deviance, "dev_ratio": ratio}
    return pd.DataFrame([row | means | fit._measures(batch, score)])


def _scored_source(fit, source, offset, new_levels):
    """Predict the complete rows of a Source and compare predictions with the response.

    Return these rows as a Batch without X, linear predictors (n, K), and a dict of losses (n,)."""
    design, parts = fit.design, []
    wanted = {*_features(fit, True), design.weights, *factors.columns_of(design.response.key)}
    reader = replace(fit._reader, weights=None)

    def scored_rows(frame, offset=offset):
        batch = reader.apply(frame, offset=offset, response=True, new_levels=new_levels)
        weights = RowInputs(weights=design.weights).read(frame).weights
        if weights is not None:
            weights = weights[batch.rows]
            if (weights < 0).any():
                least = np.nanmin(weights)
                raise DataError(f"weights must be 0 or more; the smallest is {least:g}")
            batch = subset(replace(batch, weights=weights), np.flatnonzero(~np.isnan(weights)))
        batch, score = fit._answered(batch)
        return batch, score, fit._losses(batch, score)

    for chunk, given in _with_offsets(source, wanted, offset):
        parts.append(_with_place_of_errors(scored_rows, chunk, source, given))
    if not any(batch.n_positive for batch, *_ in parts):
        weighted = "" if design.weights is None else " with a weight above zero"
        raise DataError(f"no complete row{weighted} to evaluate")
    batches, scores, losses = zip(*parts, strict=True)
    known = {}
    for name in ("y", "weights", "offset"):
        values = [getattr(batch, name) for batch in batches]
        known[name] = None if values[0] is None else np.concatenate(values)
    n = len(known["y"])
    batch = Batch(None, **known, index=pd.RangeIndex(n), rows=np.arange(n))
    losses = {name: np.concatenate([part[name] for part in losses]) for name in losses[0]}
    return batch, np.concatenate(scores), losses
