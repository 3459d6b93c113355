"""What lodim says when something is wrong: one root error, each kind in words."""


class LodimError(Exception):
    """Root of every error that lodim raises."""


class FormulaError(LodimError):
    """The formula cannot be read, or names what is not there."""


class DataError(LodimError):
    """The data cannot be used as asked; the message names the column and the value."""


class ArgumentError(LodimError, ValueError):
    """An argument is outside what is allowed; the message says what is."""


class StoreError(LodimError):
    """A saved file is corrupt, of another kind, or from a newer version."""


class MissingExtraError(LodimError, ImportError):
    """An optional dependency is asked for and not installed; the message says how to get it."""


class DeviceError(LodimError, RuntimeError):
    """A GPU is asked for, and there is none that can do the work; the message says why."""


class ConvergenceWarning(UserWarning):
    """The optimizer stopped before its tolerance was met."""
