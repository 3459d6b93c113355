"""Predictions of rows that are not in memory, a chunk of them at a time, and into files.

`streaming` makes predict() and augment() of every model take sources and `output`; evaluate() adds
the sums of chunks.
"""

import functools
import inspect
import warnings
from dataclasses import dataclass, replace
from os import fspath
from typing import Any, cast

import numpy as np
import pandas as pd

from lodim.design import factors
from lodim.design.batch import subset
from lodim.design.frame import convert, frame_kind, join_frames, read_frame, rows_of, with_columns
from lodim.design.rows import RowInputs
from lodim.errors import ArgumentError, DataError, warn
from lodim.fitting import output_file
from lodim.fitting.evaluation import Evaluation
from lodim.sources.read import read_source
from lodim.typing import F

DASK = "dask"
SHARED = {"type", "offset", "new_levels", "threshold"}  # of predict(), which ask for no columns
OUTPUT = """output : path, optional
    File to write instead, a row for each row of `data`: Parquet, CSV or Arrow by its ending
    (.parquet, .csv, .arrow, .feather). It is there once it is whole; the path is returned. Files,
    patterns of files and lazy frames as `data` are read in chunks: memory holds a few of these,
    and without `output` the result. Of a Dask frame the result is a lazy one.
"""


def streaming(method: F) -> F:
    """A method (fit, data, ...) -> frame of the rows of data that takes sources, and `output`.

    The method names `output` in its signature, and is not given it.
    """

    @functools.wraps(method)
    def streamed(self, data, *arguments, output=None, **keywords):
        data = rows_of(data)
        call = MethodCall(self, method, arguments, keywords)
        if output is None and type(data).__module__.startswith("dask.dataframe"):
            return _lazily(call, data)
        source = read_source(data)
        if output is not None:
            output_file.check_apart(output, [] if source is None else source.paths)
            parts = call.of_frame(data) if source is None else call.of_source(source)
            return _write(output, parts)
        if source is None:
            return method(self, data, *arguments, **keywords)
        return _together(call, source)

    streamed.__doc__ = _with_output(method.__doc__)
    return cast(F, streamed)


def _with_output(text):
    """A docstring with `output` as the last of the parameters."""
    if not text or "\nReturns\n" not in inspect.cleandoc(text):
        return text
    text = inspect.cleandoc(text)
    head, rest = text.split("\n\nReturns\n", 1)
    return f"{head}\n{OUTPUT}\nReturns\n{rest}"


@dataclass(frozen=True)
class MethodCall:
    """A call of a method of a fit, all but its data."""

    fit: Any
    method: Any
    arguments: tuple
    keywords: dict

    @property
    def beside(self):
        """Whether the answers go beside the columns of the data."""
        return self.method.__name__ == "augment"

    def __call__(self, frame, **offset):
        return self.method(self.fit, frame, *self.arguments, **self.keywords | offset)

    def of_frame(self, data):
        """The answers for a frame in memory: one pair as `of_source` has them."""
        answers = self(data)
        beside = self.beside and not isinstance(data, pd.DataFrame) and hasattr(data, "columns")
        yield (data if beside else None), answers

    def of_source(self, source):
        """Pairs: of each chunk the columns that the answers go beside, or None, and the answers.

        Raises
        ------
        DataError
            As the method does; names the place and the row.
        """
        names = source.names if self.beside else self._names(source)
        offsets = _Offsets(self.keywords.get("offset"))
        said: dict[type, list[str]] = {}
        empty = True
        for chunk in source.chunks(names):
            n = len(chunk.frame)
            offset = offsets.next(n, chunk.place)
            with warnings.catch_warnings(record=True) as raised:
                warnings.simplefilter("always")
                answers = _placed(self, chunk, source, offset)
            for warning in raised:
                said.setdefault(warning.category, []).append(f"{chunk.place}: {warning.message}")
            if len(answers) != n:
                raise DataError(f"{chunk.place}: {len(answers)} answers to {n} rows")
            empty = False
            yield (chunk.frame if self.beside else None), answers
        if empty:
            raise DataError("the data has no rows")
        offsets.check_all_used()
        for category, messages in said.items():
            more = f" (and {len(messages) - 1} more of the kind)" if len(messages) > 1 else ""
            warn(messages[0] + more, category)

    def _names(self, source):
        """Columns of a source that the method reads; all of them where it will miss one."""
        fits = getattr(self.fit, "fits", {"": self.fit}).values()
        shared = set(self.keywords) <= SHARED
        wanted = {name for fit in fits for name in _features(fit, shared)}
        offset = self.keywords.get("offset")
        wanted |= {offset} if isinstance(offset, str) else set()
        return [name for name in source.names if name in wanted]


def _features(fit, as_fitted):
    """Columns that predictions of a fit, and its offset, are made of."""
    design = fit._reader if as_fitted else fit.design
    return [*design.features, *([design.offset] if design.offset else [])]


class _Offsets:
    """The parts of an offset that chunks need; arrays go by the order of the rows."""

    def __init__(self, offset):
        if isinstance(offset, (pd.Series, pd.DataFrame)):
            if not offset.index.equals(pd.RangeIndex(len(offset))):
                raise DataError("offset has row labels, and files have none: give an array")
            offset = offset.to_numpy(dtype=np.float64, na_value=np.nan)
        self.is_array = not (offset is None or isinstance(offset, str) or np.ndim(offset) == 0)
        self.offset, self.first = offset, 0

    def next(self, n, place):
        """Keywords with the offset of the next n rows, where it is an array."""
        if not self.is_array:
            return {}
        part = np.asarray(self.offset[self.first : self.first + n])
        self.first += n
        if len(part) < n:
            raise DataError(
                f"offset has {len(self.offset)} values, and the data has more rows ({place})"
            )
        return {"offset": part}

    def check_all_used(self):
        if self.is_array and self.first < len(self.offset):
            raise DataError(
                f"offset has {len(self.offset)} values, and the data has {self.first} rows"
            )


def _frame(chunk, source, stop=None):
    """The columns of a chunk, or of its first rows; rows are named by their position in the piece.

    A Dask partition keeps its labels.
    """
    data = chunk.frame
    if stop is not None:
        data = data.iloc[:stop] if isinstance(data, pd.DataFrame) else data[:stop]
    frame = read_frame(data)
    index = frame.index
    if source.kind != DASK:
        index = pd.RangeIndex(chunk.first, chunk.first + len(index))
    return replace(frame, index=index, names=tuple(source.names))


def _placed(answer, chunk, source, offset):
    """What `answer` says of a chunk; an error of the data with the place and the row of it."""
    frame = _frame(chunk, source)
    try:
        return answer(frame, **offset)
    except DataError as error:
        row = _first_refused(answer, chunk, source, offset)
        said = "" if row is None or "in row" in str(error) else f", row {frame.index[row]}"
        raise DataError(f"{chunk.place}{said}: {error}") from error


def _first_refused(answer, chunk, source, offset):
    """Position of the first row of a chunk that is refused; None where it is not for its rows."""
    low, high = -1, len(_frame(chunk, source).index)  # so many first rows are answered, refused
    while high - low > 1:
        stop = max(0, (low + high) // 2)
        try:
            answer(_frame(chunk, source, stop), **{k: v[:stop] for k, v in offset.items()})
            low = stop
        except DataError:
            high = stop
    return high - 1 if high else None


# What becomes of the answers -------------------------------------------------------------------


def _write(path, parts):
    """Write the answers, beside the columns that go with them; return the path."""
    with output_file.writing(path) as append:
        for data, answers in parts:
            append(_beside(data, answers))
    return fspath(path)


def predictions(fit, data, *arguments, **keywords):
    """What predict() answers, as frames of pandas: one of a frame in memory, one a chunk else."""
    source = read_source(data)
    call = MethodCall(fit, type(fit).predict, arguments, keywords)
    for _, answers in call.of_frame(data) if source is None else call.of_source(source):
        yield pd.DataFrame(answers)


def _beside(data, answers):
    """The answers to a chunk as a frame, beside the columns of `data` where it is not None."""
    new = pd.DataFrame(answers)
    if data is None:
        return new
    return with_columns(data, new, frame_kind(data))


def _together(call, source):
    """The answers to all chunks below each other, of the kind of the source."""
    data, answers = zip(*call.of_source(source), strict=True)
    answers = pd.concat(answers, ignore_index=True)
    if not call.beside:
        return convert(answers, source.kind)
    return with_columns(join_frames(data, source.kind), answers, source.kind)


def _lazily(call, data):
    """The answers to a Dask frame as one, in which nothing is computed yet."""
    if _Offsets(call.keywords.get("offset")).is_array:
        raise ArgumentError(
            "offset= of a Dask frame is the name of a column: its partitions have no known length"
        )
    none = call(data._meta)
    name = call.method.__name__
    more = {"fit": call.fit, "name": name, "given": call.arguments, "like": none}
    return data.map_partitions(_of_partition, meta=none, **more, **call.keywords)


def _of_partition(data, *, fit, name, given, like, partition_info=None, **keywords):
    """The answers to a partition, in the dtypes that an empty one has."""
    try:
        answers = getattr(fit, name)(data, *given, **keywords)
    except DataError as error:
        if partition_info is None:
            raise
        raise DataError(f"partition {partition_info['number'] + 1}: {error}") from error
    return answers.astype(like.dtype if isinstance(like, pd.Series) else like.dtypes)


# Evaluation ------------------------------------------------------------------------------------


def evaluation(fit, source, offset):
    """The Evaluation of a fit on a source: sums over its chunks.

    Raises
    ------
    DataError
        No row is complete, or none has a weight above zero.
    """
    offsets, total = _Offsets(offset), None
    design = fit.design
    wanted = {*_features(fit, True), design.weights, *factors.columns_of(design.response.key)}
    wanted |= {offset} if isinstance(offset, str) else set()

    def of_chunk(frame, offset=offset):
        return _evaluation_of_rows(fit, frame, offset)

    for chunk in source.chunks([name for name in source.names if name in wanted]):
        given = offsets.next(len(chunk.frame), chunk.place)
        part = _placed(of_chunk, chunk, source, given)
        total = part if total is None else total + part
    offsets.check_all_used()
    if total is None or total.n == 0:
        weighted = "" if design.weights is None else " with a weight above zero"
        raise DataError(f"no complete row{weighted} to evaluate")
    return total


def _evaluation_of_rows(fit, frame, offset):
    """Sums over the rows of a chunk, all of which may have weight zero."""
    reader = replace(fit._reader, weights=None)
    batch = reader.apply(frame, offset=offset, response=True)
    weights = RowInputs(weights=fit.design.weights).read(frame).weights
    weights = np.ones(batch.n) if weights is None else weights[batch.rows]
    if (weights < 0).any():
        raise DataError(f"weights are not negative, and one is {np.nanmin(weights):g}")
    known = ~np.isnan(weights)
    batch, weights = subset(batch, np.flatnonzero(known)), weights[known]
    answered, score = fit._answered(replace(batch, weights=weights))
    return Evaluation.of_rows(
        fit.family,
        answered.y,
        answered.weights,
        None if answered.offset is None else answered.offset_matrix(score.shape[1]),
        score,
        fit._losses(answered, score),
    )
