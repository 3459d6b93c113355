"""Recognition of data that must be read in chunks."""

import sys
from typing import Any

from lodim.sources.files import ARROW, PARQUET, find_files, is_path, kind_of_files
from lodim.sources.source import Source


def read_source(data: Any, sep: str = ",", decimal: str = ".") -> Source | None:
    """Return a Source of data that are not in memory, to read in chunks; None for other data.

    data : path, pattern, folder, list of these, pyarrow Dataset, polars LazyFrame, Dask DataFrame
    sep, decimal : separator and decimal sign of CSV files
    """
    if is_path(data):
        return _read_files(data, sep, decimal)
    if _is(data, "pyarrow.dataset", "Dataset"):
        from lodim.sources.arrow_tables import read_dataset

        return read_dataset(data)
    if _is(data, "polars", "LazyFrame"):
        from lodim.sources.lazy_frames import read_lazy

        return read_lazy(data)
    if _is(data, "dask.dataframe", "DataFrame"):
        from lodim.sources.dask_frames import read_dask

        return read_dask(data)
    return None


def _is(data: object, module: str, name: str) -> bool:
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and isinstance(data, found)


def _read_files(data: Any, sep: str, decimal: str) -> Source:
    """Return a Source of a path, pattern, folder, or list of these; sep and decimal are for CSV."""
    files = find_files(data)
    kind = kind_of_files(files)
    if kind == PARQUET:
        from lodim.sources.arrow_tables import read_parquet

        return read_parquet(files)
    if kind == ARROW:
        from lodim.sources.arrow_tables import read_arrow

        return read_arrow(files)
    from lodim.sources.csv_files import read_csv

    return read_csv(files, sep, decimal)
