"""Categories of files: their levels over all of them, as pandas reads them."""

from collections.abc import Sequence
from typing import Any

from lodim.errors import DataWarning, warn
from lodim.sources.schemas import arrow


def gather_levels(pieces: Sequence[Any], schema: Any) -> dict[str, Any]:
    """Levels of each column of categories over all pieces, in the order in which they appear.

    A file's categories come in their order, those that no row has among them. Where it has no more
    than their values, as Parquet has of numbers, they are in the order of the values, with a
    DataWarning where they were declared to be in an order.

    Parameters
    ----------
    pieces : sequence of what has `tables(names)`
    schema : pyarrow Schema over all files
    """
    is_dictionary = arrow().types.is_dictionary
    names = [field.name for field in schema if is_dictionary(field.type)]
    levels: dict[str, dict[Any, None]] = {name: {} for name in names}
    without_order = set()
    tables = (table for piece in pieces for table in piece.tables(names)) if names else ()
    for table in tables:
        for name in names:
            for array in table[name].chunks:
                known = is_dictionary(array.type)
                values = (array.dictionary if known else array.unique()).drop_null()
                levels[name].update(dict.fromkeys(values.to_pandas()))
                without_order |= set() if known or not len(values) else {name}
    for name in sorted(without_order):
        if schema.field(name).type.ordered:
            warn(
                f"the categories of {name!r} are numbers in an order that Parquet does not keep: "
                "they are taken in the order of their values; an Arrow file, or categories of "
                "text, keep another one",
                DataWarning,
            )
    return {
        name: sorted(found) if name in without_order else list(found)
        for name, found in levels.items()
    }


def to_pandas(table: Any, levels: dict[str, Any]) -> Any:
    """A DataFrame of a table, its categories with the levels over all files."""
    frame = table.to_pandas(split_blocks=True, self_destruct=True)
    for name in levels.keys() & set(frame.columns):
        frame[name] = frame[name].cat.set_categories(levels[name])
    return frame
