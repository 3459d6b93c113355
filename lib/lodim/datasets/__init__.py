"""Data sets: `data()` lists those that come with lodim, and `data("name")` reads one."""

from difflib import get_close_matches
from pathlib import Path

import pandas as pd

from lodim.errors import ArgumentError

# An installed package has the files in the folder csv; a source checkout in data.
_HERE = Path(__file__).resolve().parent
_FOLDERS = (_HERE / "csv", _HERE.parents[2] / "data")


def data(name: str | None = None) -> pd.DataFrame:
    """Read one of the data sets that come with lodim, or list them all.

    Parameters
    ----------
    name : str, optional
        Name of a data set, or of a price list such as "heart_costs"; otherwise an ArgumentError.

    Returns
    -------
    DataFrame
        The data set: the response first, categories as text, missing values as NaN, in the original
        units. Without `name`, one row per data set: name, n, p, response, task ("regression",
        "binary" or "multiclass") and title. A price list has name, cost and needs of each item.
        Sources, licences and units: data/README.md.

    See Also
    --------
    monitoring, friedman1

    Examples
    --------
    >>> import lodim as ld
    >>> ld.data("autompg").shape
    (398, 8)
    """
    index = _read("index")
    if name is None:
        return index
    names = index["name"].tolist() + sorted(path.stem for path in _folder().glob("*_costs.csv"))
    if not isinstance(name, str) or name not in names:
        near = get_close_matches(str(name), names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        known = ", ".join(names)
        raise ArgumentError(f"no data set is called {name!r:.80}.{hint} There are: {known}.")
    return _read(name)


def _read(stem: str) -> pd.DataFrame:
    # Only an empty cell is missing: "none" and "NA" are levels like any other.
    return pd.read_csv(_folder() / f"{stem}.csv", keep_default_na=False, na_values=[""])


def _folder() -> Path:
    for folder in _FOLDERS:
        if (folder / "index.csv").is_file():
            return folder
    raise FileNotFoundError(f"the data sets of lodim are not installed: no index.csv in {_FOLDERS}")
