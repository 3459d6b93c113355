"""Runs what a fit is written as, in Python, DuckDB, PostgreSQL and ONNX Runtime."""

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
