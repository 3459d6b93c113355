"""Runs what a fit is written as, in Python, DuckDB, PostgreSQL and ONNX Runtime."""

import io

import numpy as np
import pandas as pd


def expected(fit, data, **arguments):
    """What predict() says, (n, K) of classes or (n, 1)."""
    if fit.levels is not None:
        return fit.predict(data, "prob", **arguments).to_numpy(float)
    return np.asarray(fit.predict(data, **arguments), float).reshape(len(data), -1)


def in_python(fit, data, **arguments):
    """Answers of the module, in a namespace without anything."""
    scope = {"__builtins__": __builtins__}
    exec(compile(fit.to_python(**arguments), "model.py", "exec"), scope)
    answers = [scope["predict"](row) for row in data.to_dict("records")]
    return np.array([[*a.values()] if isinstance(a, dict) else [a] for a in answers], float)


def _new_columns(result, data):
    result = result.sort_values("row of the test").drop(columns=data.columns)
    return result.to_numpy(float)


def in_duckdb(fit, data, dialect="duckdb", name='a "table"; DROP TABLE x', **arguments):
    """Answers of the query in DuckDB, by the order of the rows."""
    import duckdb

    data = data.assign(**{"row of the test": range(len(data))})
    with duckdb.connect() as con:
        con.register("frame", data)
        con.execute(f'CREATE TABLE "{name.replace(chr(34), chr(34) * 2)}" AS SELECT * FROM frame')
        return _new_columns(con.execute(fit.to_sql(dialect, name, **arguments)).df(), data)


def in_onnx(fit, data, **arguments):
    """Answers of ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = fit.to_onnx(**arguments).SerializeToString()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = {}
    for column in session.get_inputs():
        values = data[column.name]
        if column.type == "tensor(string)":
            values = np.array(["" if pd.isna(v) else str(v) for v in values], object)
        else:
            values = pd.to_numeric(values.astype(object).where(values.notna(), np.nan))
            values = values.to_numpy(np.float64)
        feed[column.name] = values[:, None]
    return session.run(None, feed)[0]


TARGETS = {"python": (in_python, 1e-12), "duckdb": (in_duckdb, 1e-9), "onnx": (in_onnx, 1e-6)}


def gap(found, wanted):
    """Largest difference, by the size of the answers where that is above one; inf of other gaps."""
    if (np.isnan(found) != np.isnan(wanted)).any():
        return np.inf
    known = wanted[~np.isnan(wanted)]
    size = max(1.0, np.abs(known).max(initial=0.0))
    return np.abs(found[~np.isnan(wanted)] - known).max(initial=0.0) / size


# PostgreSQL, where a server is at hand -------------------------------------------------------


def _literal(value):
    if value is None or value is pd.NA or value != value:
        return "NULL"
    if isinstance(value, str):
        return "E'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    return str(bool(value)) if isinstance(value, bool | np.bool_) else repr(float(value))


def in_postgres(server, fit, data, **arguments):
    """Answers of the query in a PostgreSQL of pgserver."""
    data = data.assign(**{"row of the test": range(len(data))})
    kinds = []
    for column in data:
        values = data[column].dropna()
        truth = all(isinstance(v, bool | np.bool_) for v in values)
        kind = "text" if any(isinstance(v, str) for v in values) else "float8"
        kinds.append("boolean" if truth and len(values) else kind)
    names = ['"' + c.replace('"', '""') + '"' for c in data]
    columns = ", ".join(map(" ".join, zip(names, kinds, strict=True)))
    rows = [f"({', '.join(map(_literal, row))})" for row in data.to_numpy(object)]
    query = fit.to_sql("postgres", ("s p", "t"), **arguments).rstrip()
    script = f"""DROP SCHEMA IF EXISTS "s p" CASCADE; CREATE SCHEMA "s p";
    CREATE TABLE "s p"."t" ({columns}); INSERT INTO "s p"."t" VALUES {",".join(rows)};
    CREATE TEMP TABLE answers AS {query};
    COPY (SELECT * FROM answers ORDER BY "row of the test") TO STDOUT (FORMAT csv);"""
    lines = server.psql(script).splitlines()
    table = pd.read_csv(io.StringIO("\n".join(line for line in lines if "," in line)), header=None)
    return table.iloc[:, len(data.columns) :].to_numpy(float)
