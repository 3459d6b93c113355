"""LazyFrames of polars: one piece, computed anew at each pass."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lodim.errors import DataError
from lodim.sources.fingerprint import Fingerprint
from lodim.sources.source import PART, Chunk, Piece, Source

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
