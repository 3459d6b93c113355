"""Dask DataFrames as data that are read partition by partition."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from lodim.errors import DataError
from lodim.sources import ROWS_PER_CHUNK, Chunk, Piece, Source
from lodim.sources.lazy_frames import Fingerprint


@dataclass(frozen=True)
class Partition(Piece):
    """Partition (consecutive rows) of a Dask DataFrame; `delayed` computes it as a pandas frame."""

    place: str
    n: None
    delayed: Any
    dtypes: dict[str, Any] = field(compare=False)
    # dict column -> categories over all partitions, if unknown to Dask
    levels: dict[str, list[Any]]
    # hash sums of its rows in earlier passes, to detect changes
    seen: Fingerprint = field(compare=False)

    def read(self, names: Sequence[str]) -> Iterator[Chunk]:
        """Yield the rows in chunks with the given columns; the whole partition is in memory."""
        try:
            frame = self.delayed.compute(scheduler=_scheduler())
        except Exception as error:  # any error of the graph
            raise DataError(f"{self.place} cannot be computed: {error}") from error
        lacking = [name for name in names if name not in frame.columns]
        if lacking:
            what = f"{self.place} must have the column {lacking[0]!r}"
            raise DataError(f"{what}, like the Dask DataFrame")
        frame = frame[list(names)]
        is_numeric = pd.api.types.is_numeric_dtype
        for name in names:
            dtype, wanted = frame[name].dtype, self.dtypes[name]
            if is_numeric(dtype) != is_numeric(wanted):
                what = f"column {name!r} must be {wanted}, as in the Dask DataFrame"
                raise DataError(f"{what}; it is {dtype} in {self.place}")
            if name in self.levels:
                kind = pd.CategoricalDtype(self.levels[name], dtype.ordered)
                frame = frame.astype({name: kind})
        rows = Fingerprint()
        rows.add(frame, 0)
        self.seen.compare(rows, self.place)
        for start in range(0, len(frame), ROWS_PER_CHUNK):
            yield Chunk(frame.iloc[start : start + ROWS_PER_CHUNK], start, self.place)


@dataclass(frozen=True)
class DaskSource(Source):
    """A Dask DataFrame as data that are read in chunks; the frame is kept as `frame`."""

    frame: Any = field(default=None, compare=False, repr=False)

    def select(self, names: Sequence[str]) -> Source:
        if tuple(names) == self.names:
            return self
        frame, old = self.frame[list(names)], self.pieces
        delayed = _partitions(frame)
        if len(delayed) != len(old):  # Dask may combine small files if it reads few columns
            old = tuple(
                replace(old[0], place=f"partition {k + 1}", seen=Fingerprint())  # type: ignore
                for k in range(len(delayed))
            )
        pieces = zip(old, delayed, strict=True)
        some = tuple(replace(piece, delayed=one) for piece, one in pieces)  # type: ignore[type-var]
        return replace(self, names=tuple(names), pieces=some, frame=frame)


def read_dask(frame: Any) -> Source:
    names = tuple(map(str, frame.columns))
    if list(names) != list(frame.columns) or len(set(names)) < len(names):
        raise DataError("the columns of a Dask DataFrame must have distinct names that are strings")
    levels = _gather_levels(frame)
    dtypes = {name: frame.dtypes[name] for name in names}
    pieces = []
    for k, one in enumerate(_partitions(frame)):
        pieces.append(Partition(f"partition {k + 1}", None, one, dtypes, levels, Fingerprint()))
    return DaskSource(names, tuple(pieces), "dask", frame=frame)


def _partitions(frame: Any) -> list[Any]:
    """Return one Delayed per partition of a Dask frame, with only the tasks that it needs."""
    from dask.delayed import Delayed
    from dask.optimization import cull

    best = frame.optimize()
    graph = dict(best.__dask_graph__())
    return [Delayed(key, cull(graph, [key])[0]) for key in best.__dask_keys__()]


def _gather_levels(frame: Any) -> dict[str, list[Any]]:
    """Return a dict column -> categories over all partitions, if Dask does not know them."""
    import dask

    names = [name for name, kind in frame.dtypes.items() if isinstance(kind, pd.CategoricalDtype)]
    names = [name for name in names if not frame[name].cat.known]
    if not names:
        return {}
    of_each = dask.compute(*map(dask.delayed(_levels), _partitions(frame[names])))
    levels: dict[str, dict[Any, None]] = {name: {} for name in names}
    for found in of_each:
        for name in names:
            levels[name].update(dict.fromkeys(found[name]))
    return {name: list(found) for name, found in levels.items()}


def _levels(frame: pd.DataFrame) -> dict[str, list[Any]]:
    return {name: list(frame[name].cat.categories) for name in frame.columns}


def _scheduler():
    """Return the scheduler to compute a partition: "synchronous" on a worker, else None."""
    try:
        from distributed import get_worker

        get_worker()
    except (ImportError, ValueError):
        return None
    return "synchronous"
