"""A fit as a model of the package marginaleffects, by its interface for foreign models."""

import contextlib

from lodim.design import columns, factors
from lodim.design.frame import read_column, read_frame
from lodim.errors import ArgumentError, DataError, MissingExtraError

SCALES = ("response", "link")


def wrap(fit, data, type):
    """Return a fit and data as the ModelAbstract that the package marginaleffects expects."""
    design = fit._reader
    frame = read_frame(data)
    needed = [*dict.fromkeys([*factors.columns_of(design.response.key), *design.features])]
    if design.offset_given and design.offset is None:
        raise ArgumentError("the offset must be the name of a column, not an array: fit again")
    needed += [design.offset] if design.offset_given else []
    read = {name: read_column(frame, name) for name in needed}
    for name in frame.names:  # other columns may be used for grouping
        with contextlib.suppress(DataError):
            read[name] = read_column(frame, name)
    as_levels = {factors.column_with_levels(part) for term in design.terms for part in term}
    read = {k: columns.as_levels(v) if k in as_levels else v for k, v in read.items()}
    try:
        from lodim.fitting.marginaleffects_model import LodimModel, complete_rows
    except ImportError as error:
        raise MissingExtraError(
            "to_marginaleffects() needs the package marginaleffects, 0.6 or newer: "
            "pip install marginaleffects"
        ) from error
    return LodimModel(fit, type, complete_rows(read, needed), needed, _texts(read))


def _texts(read):
    """Return a dict column -> (dict text -> level), for levels that are neither text nor bool."""
    return {
        name: {str(level): level for level in column.levels}
        for name, column in read.items()
        if column.kind == "level" and not all(isinstance(v, str | bool) for v in column.levels)
    }
