"""LazyFrames of polars: one piece, computed again in each pass, and a check that its rows stay."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from lodim.errors import DataError
from lodim.sources.source import PART, Chunk, Piece, Source


class Fingerprint:
    """Sums of hashed values by column, weighted by the position of their row.

    Two passes over the same rows in the same order have the same sums for each column of both.
    """

    def __init__(self) -> None:
        self.sums: dict[str, int] = {}

    def add(self, frame: Any, first: int) -> None:
        """Add a chunk of columns, its first row at a position of the whole."""
        weight = 2 * np.arange(first, first + len(frame), dtype=np.uint64) + np.uint64(1)
        for name in frame.columns:
            total = int(np.sum(_hashes(frame[name]) * weight, dtype=np.uint64))
            self.sums[name] = (self.sums.get(name, 0) + total) % 2**64

    def compare(self, other: "Fingerprint", place: str) -> None:
        """Take over the columns of a pass; raise where one is not what it was in an earlier pass.

        Raises
        ------
        DataError
            A column's values, or the order of its rows, have changed.
        """
        for name, total in other.sums.items():
            if self.sums.setdefault(name, total) != total:
                raise DataError(
                    f"{place} gave other rows, or another order of rows, when it was computed "
                    f"again (column {name!r}); write it to a Parquet file, or sort it"
                )


def _hashes(values: Any) -> np.ndarray:
    """A hash of each value of a Series of pandas or polars, (n,) uint64; 0 where there is none."""
    if isinstance(values, pd.Series):
        try:
            return pd.util.hash_pandas_object(values, index=False).to_numpy()
        except TypeError:  # lists and the like
            return np.zeros(len(values), np.uint64)
    if not (values.dtype.is_numeric() or str(values.dtype) in ("Boolean", "String")):
        return np.zeros(len(values), np.uint64)
    return np.asarray(values.hash().to_numpy())


PLACE = "the LazyFrame"


@dataclass(frozen=True)
class Query(Piece):
    """A polars LazyFrame. seen : fingerprint of the rows of the passes before"""

    place: str
    n: None
    frame: Any
    seen: Fingerprint = field(compare=False)

    def read(self, names: Sequence[str]) -> Iterator[Chunk]:
        """Its rows in order, in chunks of these columns."""
        position, rows = 0, Fingerprint()
        for frame in self._frames(list(names)):
            rows.add(frame, position)
            yield Chunk(frame, position, self.place)
            position += len(frame)
        self.seen.compare(rows, self.place)

    def _frames(self, names: list[str]) -> Iterator[Any]:
        """Its rows as polars DataFrames of at most PART rows."""
        try:
            for frame in _batches(self.frame.select(names)):
                yield from (frame.slice(start, PART) for start in range(0, len(frame), PART))
        except DataError:
            raise
        except Exception as error:  # of the query itself, or of a file that it reads
            raise DataError(f"{self.place} cannot be computed: {error}") from error


def _batches(frame: Any) -> Iterator[Any]:
    """The rows of a LazyFrame in order, in the batches that its polars can give."""
    if hasattr(frame, "collect_batches"):
        yield from frame.collect_batches(chunk_size=PART, maintain_order=True)
        return
    start = 0
    while len(batch := frame.slice(start, PART).collect()):
        yield batch
        start += len(batch)


def read_lazy(frame: Any) -> Source:
    """A source of a polars LazyFrame."""
    try:
        names = tuple(frame.collect_schema().names())
    except Exception as error:
        raise DataError(f"{PLACE} cannot be computed: {error}") from error
    return Source(names, (Query(PLACE, None, frame, Fingerprint()),), "polars")
