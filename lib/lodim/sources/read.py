"""Recognize data that are read in chunks, and make their source."""

import sys
from typing import Any

from lodim.sources.files import ARROW, PARQUET, find_files, is_path, kind_of_files
from lodim.sources.source import Source


def read_source(data: Any, sep: str = ",", decimal: str = ".") -> Source | None:
    """Return a source of data that are not in memory, else None.

    Parameters
    ----------
    data : path, pattern, folder, list of these, pyarrow Dataset, polars LazyFrame, Dask DataFrame
        Files: Parquet, Arrow (Feather) or CSV. Those of a pattern or folder are sorted by name.
        Anything else is a frame in memory.
    sep, decimal : str
        Separator and decimal sign of CSV files.

    Returns
    -------
    Source or None

    Raises
    ------
    DataError
        If a file cannot be read, files are inconsistent, or there is no row.
    MissingExtraError
        If the reader of such data is not installed.

    Notes
    -----
    CSV files are read once for the kinds of their columns. Of other files, the footers and the
    categorical columns are read; of lazy frames, only the categories.
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
    """Return whether data are of a class, which requires that their module is already imported."""
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and isinstance(data, found)


def _read_files(data: Any, sep: str, decimal: str) -> Source:
    """Return a source of the files that a path, a pattern, a folder or a list of these means."""
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
