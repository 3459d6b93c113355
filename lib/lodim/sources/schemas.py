"""Columns and types of several files, merged if one type contains the other."""

import json
from collections.abc import Container, Iterable
from typing import Any

from lodim.errors import DataError, MissingExtraError
from lodim.text import first_few


def arrow() -> Any:
    """Return the module pyarrow; raise MissingExtraError if it is not installed."""
    try:
        import pyarrow
    except ImportError:
        what = "pyarrow is needed for Parquet and Arrow files and lazy frames"
        raise MissingExtraError(f"{what}: pip install 'lodim[arrow]'") from None
    return pyarrow


def unify_schemas(schemas: Iterable[tuple[str, Any]]) -> Any:
    """Return the common schema of several files, given pairs (file name, pyarrow Schema)."""
    pa, first, head = arrow(), "", arrow().schema([])
    fields: dict[str, tuple[Any, str]] = {}  # name -> (field, name of the file with its type)
    for name, schema in schemas:
        check_names(name, schema.names)
        columns = [schema.field(one) for one in _features(schema)]
        if not first:
            first, head = name, schema
            fields = {field.name: (field.with_metadata(None), name) for field in columns}
            continue
        check_columns(first, list(fields), name, [field.name for field in columns])
        for field in columns:
            known, origin = fields[field.name]
            both = _unify(known, origin, field, name)
            fields[field.name] = (both, origin if both.type == known.type else name)
    kept = {name for name, (field, _) in fields.items() if field.type == head.field(name).type}
    return pa.schema([field for field, _ in fields.values()], metadata=_notes(head, kept))


def check_names(name: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(one for one in names if names.count(one) > 1)
        raise DataError(f"{name} has two columns called {twice!r}; rename one")


def check_columns(first: str, known: list[str], name: str, names: list[str]) -> None:
    """Raise DataError if the columns `names` of file `name` differ from `known` of file `first`."""
    there, here = set(known), set(names)
    lacking = [one for one in known if one not in here]
    extra = [one for one in names if one not in there]
    if lacking or extra:
        verbs = ("lacks", "has") if lacking else ("has", "lacks")
        what = f"{name} {verbs[0]} {first_few(lacking or extra)}, which {first} {verbs[1]}"
        raise DataError(f"all files must have the same columns; {what}")


def _unify(field: Any, origin: str, other: Any, name: str) -> Any:
    """Return a field whose type covers a column's types in two files; DataError if there is none.

    field, other : pyarrow fields of the column, from the files `origin` and `name`"""
    if field.type == other.type:
        return field
    pa = arrow()
    pairs = ((field, other), (other, field))
    schemas = [pa.schema([_plain(_without_dictionary(*pair))]) for pair in pairs]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        what = f"column {field.name!r} must have the same type in all files"
        both = f"it is {other.type} in {name} and {field.type} in {origin}"
        raise DataError(f"{what}; {both}") from None


def _without_dictionary(field: Any, other: Any) -> Any:
    """Return a pyarrow field, without dictionary encoding if the type of `other` has none."""
    types = arrow().types
    if not types.is_dictionary(field.type) or types.is_null(other.type):
        return field
    if types.is_dictionary(other.type) and other.type.ordered == field.type.ordered:
        return field
    return field.with_type(field.type.value_type)


def in_order(field: Any) -> bool:
    """Return whether a field has categories in an order to keep; a polars Categorical has not."""
    from_polars = any(key.startswith(b"_PL_CATEGORICAL") for key in field.metadata or ())
    return arrow().types.is_dictionary(field.type) and not from_polars


def _plain(field: Any) -> Any:
    """Return a pyarrow field without metadata, and with text views as large strings."""
    pa = arrow()
    kind = field.type
    if "view" in str(kind) and not pa.types.is_nested(kind):
        text = pa.large_string()
        coded = kind != pa.string_view()
        kind = pa.dictionary(kind.index_type, text, kind.ordered) if coded else text
    return field.with_type(kind).with_metadata(None)


def _features(schema: Any) -> list[str]:
    """Return the names of a pyarrow schema's columns, without an index that pandas has written."""
    index = _pandas_metadata(schema).get("index_columns", [])
    return [name for name in schema.names if name not in index]


def select_fields(schema: Any, names: Iterable[str]) -> Any:
    notes = _notes(schema, set(names))
    return arrow().schema([schema.field(name) for name in names], metadata=notes)


def _notes(schema: Any, names: Container[str]) -> dict[str, str] | None:
    """Return pandas' metadata on the columns `names`, as stored in a schema; None if not stored."""
    notes = _pandas_metadata(schema)
    if not notes:
        return None
    columns = [one for one in notes.get("columns", []) if one.get("field_name") in names]
    return {"pandas": json.dumps({**notes, "index_columns": [], "columns": columns})}


def _pandas_metadata(schema: Any) -> dict[str, Any]:
    try:
        return dict(schema.pandas_metadata or {})
    except (ValueError, TypeError):
        return {}


def cast_table(table: Any, schema: Any) -> Any:
    """Return a pyarrow table with the columns, order and types of a schema."""
    table, is_dictionary = table.select(schema.names), arrow().types.is_dictionary
    for i, (now, wanted) in enumerate(zip(table.schema, schema, strict=True)):
        if is_dictionary(wanted.type) and not is_dictionary(now.type):
            values = table[i].cast(wanted.type.value_type)
            table = table.set_column(i, now.name, values.dictionary_encode())
    if table.schema.types != schema.types:
        return table.cast(schema, safe=False)
    return table.replace_schema_metadata(schema.metadata)
