# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A fit in production
#
# How do I run a model where lodim is not installed: in a service, a database or a device? Fits of
# `glm`, `gbmap`, `proset`, `melm` and `costnet` can be exported in three forms. Each contains the
# whole model, with the transformations of the formula, and predicts as `predict` does.

# %%
import duckdb
import numpy as np
import onnxruntime

import lodim as ld

df = ld.data("heart")
fit = ld.gbmap(
    "disease ~ cr(age, df=3) + sex + chest_pain + max_heart_rate", data=df, m=2, lambda_=0.1
)
wanted = fit.predict(df)

# %% [markdown]
# ## Plain Python
#
# `to_python()` returns a module that needs only Python: columns, imputed values, features, learners
# and prediction. It can be read and reviewed.

# %%
code = fit.to_python()
print(code[code.index("def predict") :])

# %%
module = {}
exec(code, module)
patient = df.loc[0, ["age", "sex", "chest_pain", "max_heart_rate"]].to_dict()
module["predict"](patient), wanted[0]

# %% [markdown]
# A missing value is None or NaN, and is treated as in the fit (`missing="indicator"`, the default
# of `gbmap`, imputes it). An input that `predict` refuses raises a `ValueError` with the reason.
# With `new_levels="missing"` an unknown level counts as missing here, too.

# %%
try:
    module["predict"](patient | {"chest_pain": "none at all"})
except ValueError as error:
    print(error)

# %% [markdown]
# ## A query
#
# `to_sql()` writes one query for DuckDB or PostgreSQL. It keeps all columns of the table and adds
# the predictions: `prediction` for a number, `prob_<class>` for classes. A bad row does not stop
# the query: if `predict` would refuse it or return NaN, the result is NULL.

# %%
query = fit.to_sql("duckdb", table="patients")
print(query[:600], "...")

# %%
with duckdb.connect() as database:
    database.register("patients", df.reset_index(names="row"))
    answers = database.execute(query).df().set_index("row").sort_index()
gap_sql = np.abs(answers["prob_present"] - wanted).max()
gap_sql

# %% [markdown]
# Names of columns, tables and levels are quoted, in any script.
#
# ## ONNX
#
# `to_onnx()` (`pip install "lodim[onnx]"`) returns a model for ONNX Runtime, on servers, in
# browsers and on phones. It has one input per column: doubles with NaN for missing numbers, and
# strings, empty if missing.

# %%
session = onnxruntime.InferenceSession(fit.to_onnx().SerializeToString())
feed = {
    column.name: df[[column.name]].to_numpy(object if "string" in column.type else np.float64)
    for column in session.get_inputs()
}
gap_onnx = np.abs(session.run(None, feed)[0][:, 1] - wanted).max()
gap_onnx

# %% [markdown]
# Query and ONNX model answered all patients as `predict` did, to 1e-9.
#
# ## What cannot be exported
#
# A fit of `ripr` predicts by neighbours among the training rows, which is no formula; use `save()`.
# A `melm` fit with a scikit-learn estimator cannot be exported either. An export of `proset`
# contains the prototypes, one of `melm` the coordinates of all training rows: the same information
# on single rows as a saved fit. An offset must be a column with a name.
