"""Dask DataFrames: a piece is a partition with only the part of the graph that computes it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from lodim.errors import DataError
from lodim.sources.lazy_frames import Fingerprint
from lodim.sources.source import PART, Chunk, Piece, Source


@dataclass(frozen=True)
class Partition(Piece):
    """A partition of a Dask DataFrame.

    delayed : Delayed of dask that computes it; dtypes : as the Dask DataFrame states them
    levels : categories over all partitions, of the columns whose own are not known before
    seen : fingerprint of its rows in earlier passes
    """

    place: str
    n: None
    delayed: Any
    dtypes: dict[str, Any] = field(compare=False)
    levels: dict[str, list[Any]]
    seen: Fingerprint = field(compare=False)

    def read(self, names: Sequence[str]) -> Iterator[Chunk]:
        """Yield the rows in chunks of these columns; the whole partition is in memory meanwhile."""
        frame = self._compute(list(names))
        rows = Fingerprint()
        rows.add(frame, 0)
        self.seen.compare(rows, self.place)
        for start in range(0, len(frame), PART):
            yield Chunk(frame.iloc[start : start + PART], start, self.place)

    def _compute(self, names: list[str]) -> pd.DataFrame:
        """Compute the columns of the partition."""
        try:
            frame = self.delayed.compute(scheduler=_scheduler())
        except Exception as error:  # any error of the graph
            raise DataError(f"{self.place} cannot be computed: {error}") from error
        lacking = [name for name in names if name not in frame.columns]
        if lacking:
            raise DataError(f"{self.place} lacks {lacking[0]!r}, which the Dask DataFrame has")
        frame = frame[names]
        for name in names:
            self._check_kind(name, frame[name].dtype)
            if name in self.levels:
                recoded = frame[name].cat.set_categories(self.levels[name])
                frame = frame.assign(**{name: recoded})
        return frame

    def _check_kind(self, name: str, dtype: Any) -> None:
        """Raise if a column holds text where Dask states numbers, or the reverse."""
        is_numeric = pd.api.types.is_numeric_dtype
        if is_numeric(dtype) != is_numeric(self.dtypes[name]):
            raise DataError(
                f"column {name!r} holds {dtype} in {self.place}, where the Dask DataFrame has "
                f"{self.dtypes[name]}"
            )


@dataclass(frozen=True)
class DaskSource(Source):
    """The source of a Dask DataFrame, `frame`."""

    frame: Any = field(default=None, compare=False, repr=False)

    def select(self, names: Sequence[str]) -> Source:
        """Return the source of some columns; its partitions compute no others if Dask can tell."""
        if tuple(names) == self.names:
            return self
        frame, old = self.frame[list(names)], self.pieces
        delayed = _partitions(frame)
        if len(delayed) != len(old):  # Dask may join small files if it reads few columns
            old = tuple(
                replace(old[0], place=f"partition {k + 1}", seen=Fingerprint())  # type: ignore
                for k in range(len(delayed))
            )
        pieces = zip(old, delayed, strict=True)
        some = tuple(replace(piece, delayed=one) for piece, one in pieces)  # type: ignore[type-var]
        return replace(self, names=tuple(names), pieces=some, frame=frame)


def read_dask(frame: Any) -> Source:
    """Return a source of a Dask DataFrame: its partitions in their order."""
    names = tuple(map(str, frame.columns))
    if list(names) != list(frame.columns) or len(set(names)) < len(names):
        raise DataError("the columns of a Dask DataFrame must have distinct names that are strings")
    levels = _gather_levels(frame)
    dtypes = {name: frame.dtypes[name] for name in names}
    pieces = tuple(
        Partition(f"partition {k + 1}", None, one, dtypes, levels, Fingerprint())
        for k, one in enumerate(_partitions(frame))
    )
    return DaskSource(names, pieces, "dask", frame=frame)


def _partitions(frame: Any) -> list[Any]:
    """Return a Delayed per partition with only the part of the graph that it needs."""
    from dask.delayed import Delayed
    from dask.optimization import cull

    best = frame.optimize()
    graph = dict(best.__dask_graph__())
    return [Delayed(key, cull(graph, [key])[0]) for key in best.__dask_keys__()]


def _gather_levels(frame: Any) -> dict[str, list[Any]]:
    """Return categories over all partitions, in order of appearance, where Dask knows none."""
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
    """Return the categories of each column of a partition."""
    return {name: list(frame[name].cat.categories) for name in frame.columns}


def _scheduler():
    """Return the scheduler of a partition: within a task, the worker itself."""
    try:
        from distributed import get_worker
    except ImportError:
        return None
    try:
        get_worker()
    except ValueError:
        return None
    return "synchronous"
