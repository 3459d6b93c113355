"""Which data are a source, and of which kind."""

import sys
from typing import Any

from lodim.sources.files import ARROW, PARQUET, find_files, is_path, kind_of_files
from lodim.sources.source import Source


def read_source(data: Any, sep: str = ",", decimal: str = ".") -> Source | None:
    """The data as a source where they are not in memory, else None.

    Parameters
    ----------
    data : path, pattern, folder, list of these, pyarrow Dataset, polars LazyFrame, Dask DataFrame
        Files: Parquet, Arrow (Feather) or CSV. Those of a pattern or folder are sorted by name.
        Anything else is a frame in memory.
    sep, decimal : str
        Of CSV files: what stands between cells, and before decimals.

    Returns
    -------
    Source or None

    Raises
    ------
    DataError
        A file cannot be read, the files do not go together, or there is no row; it names the file.
    MissingExtraError
        What reads such data is not installed.

    Notes
    -----
    CSV files are read once, for the kinds of their columns; of other files the footers and those
    columns are read that are categories. Of lazy frames nothing is computed but the categories.
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
    """Whether some data are of a class; what made them has imported its module."""
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and isinstance(data, found)


def _read_files(data: Any, sep: str, decimal: str) -> Source:
    """A source of the files that a path, a pattern, a folder or a list of these means."""
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
