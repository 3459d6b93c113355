"""What is a source, and of which kind."""

from typing import Any

from lodim.sources.files import PARQUET, find_files, is_path, kind_of_files
from lodim.sources.source import Source


def read_source(data: Any) -> Source | None:
    """The data as a source where they are not in memory, else None.

    Parameters
    ----------
    data : path, pattern of paths, folder, or list of these; anything else is a frame in memory

    Raises
    ------
    DataError
        A file cannot be read, the files do not go together, or there is no row; it names the file.
    MissingExtraError
        What reads such data is not installed.
    """
    if is_path(data):
        files = find_files(data)
        if kind_of_files(files) == PARQUET:
            from lodim.sources.parquet_files import read_parquet

            return read_parquet(files)
    return None
