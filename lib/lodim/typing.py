"""Types in the signatures of public functions."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np
import pandas as pd


class HasColumns(Protocol):
    """Type of a table: pandas, polars, pyarrow, Dask or another package that narwhals can read."""

    @property
    def columns(self) -> Any:
        """Names of the columns or, in pyarrow, the columns themselves."""


class HasSchema(Protocol):
    """Type of an object with a `schema`, such as a pyarrow Dataset."""

    @property
    def schema(self) -> Any:
        """Names and types of the columns."""


class HasArray(Protocol):
    """Type of a NumPy array, or of an object that converts to one, such as a Series."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the values as a NumPy array."""


FilePath: TypeAlias = str | PathLike[str]
Data: TypeAlias = (
    HasColumns | HasSchema | Mapping[str, Any] | FilePath | Sequence[FilePath] | pd.Series
)  # a Series is one row
Values: TypeAlias = HasArray | Sequence[Any]
RowValues: TypeAlias = str | Values  # name of a column, or a value per row

DType: TypeAlias = Literal["float64", "float32"] | type[float] | type[np.float32]
Engine: TypeAlias = Literal["cpu", "cuda", "auto"]
Family: TypeAlias = Literal["gaussian", "binomial", "multinomial"]
NumberFamily: TypeAlias = Literal["poisson", "gamma", "tweedie", "quantile", "huber"]
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

F = TypeVar("F", bound=Callable[..., Any])  # function type that a decorator keeps
R = TypeVar("R")

# A model function; type checkers take its other arguments (P) and its fit from the signature.
P = ParamSpec("P")
FitT = TypeVar("FitT", bound=Any)
FitT_co = TypeVar("FitT_co", bound=Any, covariant=True)
Model: TypeAlias = Callable[Concatenate[str, Any, P], FitT]
