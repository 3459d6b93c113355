"""Types in the signatures of public functions."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np
import pandas as pd


class HasColumns(Protocol):
    """A table of pandas, polars, pyarrow, Dask or another package that narwhals reads."""

    @property
    def columns(self) -> Any:
        """The columns or their names."""


class HasSchema(Protocol):
    """A Dataset of pyarrow."""

    @property
    def schema(self) -> Any:
        """The names and types of the columns."""


class HasArray(Protocol):
    """An array of NumPy, or what converts to one, such as a Series."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the values as an array."""


FilePath: TypeAlias = str | PathLike[str]
Data: TypeAlias = (
    HasColumns | HasSchema | Mapping[str, Any] | FilePath | Sequence[FilePath] | pd.Series
)  # a Series is one row
Values: TypeAlias = HasArray | Sequence[Any]
RowValues: TypeAlias = str | Values  # name of a column, or a value per row

DType: TypeAlias = Literal["float64", "float32"] | type[float] | type[np.float32]
Engine: TypeAlias = Literal["cpu", "cuda", "auto"]
Family: TypeAlias = Literal["gaussian", "binomial", "multinomial"]
Missing: TypeAlias = Literal["indicator", "drop"]
Offset: TypeAlias = RowValues | float
NewLevels: TypeAlias = Literal["error", "missing"]
Curve: TypeAlias = Literal["curve", "winloss"]
Labels: TypeAlias = HasColumns | HasArray | Mapping[Any, Any]  # by row label
Scale: TypeAlias = Literal["response", "link"]
Prediction: TypeAlias = Literal["response", "link", "class", "prob"]  # models add others
Score: TypeAlias = (
    Literal["diverse", "uncertainty", "margin", "committee", "infogain", "entropy", "random"]
    | Callable[[Any, Any], Any]  # of a fit and rows of a frame
)

F = TypeVar("F", bound=Callable[..., Any])  # what a decorator returns unchanged
R = TypeVar("R")

# A model function, from whose signature type checkers know its other arguments (P) and its fit.
P = ParamSpec("P")
FitT = TypeVar("FitT", bound=Any)
FitT_co = TypeVar("FitT_co", bound=Any, covariant=True)
Model: TypeAlias = Callable[Concatenate[str, Any, P], FitT]
