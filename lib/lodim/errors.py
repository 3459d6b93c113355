"""Errors and warnings of lodim."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class LodimError(Exception):
    """Base class of all errors of lodim."""


class FormulaError(LodimError, ValueError):
    """Error: the formula cannot be parsed, or uses an unknown name."""


class DataError(LodimError, ValueError):
    """Error: the data cannot be used; the message names the column and the value."""


class ArgumentError(LodimError, ValueError):
    """Error: an argument is invalid; the message says what is allowed."""


class StoreError(LodimError):
    """Error: a saved file is corrupt, of another kind, or from a newer version."""


class MissingExtraError(LodimError, ImportError):
    """Error: an optional package is not installed; the message says how to install it."""


class DeviceError(LodimError, RuntimeError):
    """Error: the requested GPU or cluster is not available; the message says why."""


class ConvergenceWarning(UserWarning):
    """Warning: the optimizer stopped before its tolerance was met."""


class DataWarning(UserWarning):
    """Warning: the data can be used, but may not be as intended."""


class ExtrapolationWarning(UserWarning):
    """Warning: predictions are far outside the training data and unreliable."""


@contextmanager
def no_row_warnings() -> Iterator[None]:
    """Suppress ExtrapolationWarning and DataWarning in a `with` block, for rows made by lodim."""
    with warnings.catch_warnings():
        for category in (ExtrapolationWarning, DataWarning):
            warnings.simplefilter("ignore", category)
        yield


def warn_not_converged(message: str) -> None:
    warn(message, ConvergenceWarning)


def warn(message: str, category: type[Warning]) -> None:
    """Issue `message` as a warning of class `category` at the user's line that called lodim."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] == "lodim":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
