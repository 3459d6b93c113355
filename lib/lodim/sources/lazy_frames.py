"""polars LazyFrames as data that each pass computes again; an error is raised if rows change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from lodim.errors import DataError
from lodim.sources import ROWS_PER_CHUNK, Chunk, Piece, Source


class Fingerprint:
    """Sums of hashes per column, weighted by row position, to detect changed or moved rows."""

    def __init__(self) -> None:
        self.sums: dict[str, int] = {}

    def add(self, frame: Any, first: int) -> None:
        """Add a chunk of rows; first : position of its first row."""
        weight = 2 * np.arange(first, first + len(frame), dtype=np.uint64) + np.uint64(1)
        for name in frame.columns:
            total = int(np.sum(_hashes(frame[name]) * weight, dtype=np.uint64))
            self.sums[name] = (self.sums.get(name, 0) + total) % 2**64

    def compare(self, other: "Fingerprint", place: str) -> None:
        """Raise DataError if a column's sum differs from that of `other`; keep sums of new columns.

        place : name of the data in the error"""
        for name, total in other.sums.items():
            if self.sums.setdefault(name, total) != total:
                what = f"{place} gave other rows, or another order of rows"
                again = f"when it was computed again (column {name!r})"
                raise DataError(f"{what}, {again}: write it to a Parquet file, or sort it")


def _hashes(values: Any) -> np.ndarray:
    """Return a hash per value of a pandas or polars Series, (n,) uint64; 0 if it has no hash."""
    if isinstance(values, pd.Series):
        try:
            return pd.util.hash_pandas_object(values, index=False).to_numpy()
        except TypeError:  # lists and similar values
            return np.zeros(len(values), np.uint64)
    if not (values.dtype.is_numeric() or str(values.dtype) in ("Boolean", "String")):
        return np.zeros(len(values), np.uint64)
    return np.asarray(values.hash().to_numpy())


DESCRIPTION = "the LazyFrame"


@dataclass(frozen=True)
class Query(Piece):
    """A polars LazyFrame, computed in each pass; `seen` has hash sums that reveal changes."""

    place: str
    n: None
    frame: Any
    seen: Fingerprint = field(compare=False)

    def read(self, names: Sequence[str]) -> Iterator[Chunk]:
        position, rows = 0, Fingerprint()
        for frame in self._frames(list(names)):
            rows.add(frame, position)
            yield Chunk(frame, position, self.place)
            position += len(frame)
        self.seen.compare(rows, self.place)

    def _frames(self, names: list[str]) -> Iterator[Any]:
        try:
            for frame in _batches(self.frame.select(names)):
                for start in range(0, len(frame), ROWS_PER_CHUNK):
                    yield frame.slice(start, ROWS_PER_CHUNK)
        except Exception as error:  # an error of the query, or of a file that it reads
            raise DataError(f"{self.place} cannot be computed: {error}") from error


def _batches(frame: Any) -> Iterator[Any]:
    if hasattr(frame, "collect_batches"):
        yield from frame.collect_batches(chunk_size=ROWS_PER_CHUNK, maintain_order=True)
        return
    start = 0
    while len(batch := frame.slice(start, ROWS_PER_CHUNK).collect()):
        yield batch
        start += len(batch)


def read_lazy(frame: Any) -> Source:
    try:
        names = tuple(frame.collect_schema().names())
    except Exception as error:
        raise DataError(f"{DESCRIPTION} cannot be computed: {error}") from error
    return Source(names, (Query(DESCRIPTION, None, frame, Fingerprint()),), "polars")
