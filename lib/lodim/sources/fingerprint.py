"""Whether rows that are computed anew at each pass are the same rows in the same order."""

from typing import Any

import numpy as np
import pandas as pd

from lodim.errors import DataError


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
