"""What lodim says when something is wrong: one root error, each kind in words."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class LodimError(Exception):
    """Root of every error that lodim raises."""


class FormulaError(LodimError, ValueError):
    """The formula cannot be read, or names what is not there."""


class DataError(LodimError, ValueError):
    """The data cannot be used as asked; the message names the column and the value."""


class ArgumentError(LodimError, ValueError):
    """An argument is outside what is allowed; the message says what is."""


class StoreError(LodimError):
    """A saved file is corrupt, of another kind, or from a newer version."""


class MissingExtraError(LodimError, ImportError):
    """An optional dependency is asked for and not installed; the message says how to get it."""


class DeviceError(LodimError, RuntimeError):
    """A GPU or a cluster is asked for, and none can do the work; the message says why."""


class ConvergenceWarning(UserWarning):
    """The optimizer stopped before its tolerance was met."""


class DataWarning(UserWarning):
    """The data can be used, and may not be what was meant."""


class ExtrapolationWarning(UserWarning):
    """Predictions go so far beyond the training data that they are not to be trusted."""


@contextmanager
def no_row_warnings() -> Iterator[None]:
    """No warning of rows that lodim has made itself, or has warned of before."""
    with warnings.catch_warnings():
        for category in (ExtrapolationWarning, DataWarning):
            warnings.simplefilter("ignore", category)
        yield


def warn_not_converged(message: str) -> None:
    """Warn of an optimizer that has not met its tolerance."""
    warn(message, ConvergenceWarning)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that has called lodim, however deep the call is."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] == "lodim":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
