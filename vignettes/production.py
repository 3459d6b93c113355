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
# How do I run a model on a system without lodim, such as a web service, a database or a device?
# Fits of `glm`, `gbmap`, `proset`, `melm` and `costnet` can be exported as Python code, SQL or
# ONNX. An export contains the whole model, including the transformations of the formula, and makes
# the same predictions as `predict`.

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
# `to_python()` returns the source code of a module that needs only Python. The last part is the
# function `predict`:

# %%
code = fit.to_python()
print(code[code.index("def predict") :])

# %%
module = {}
exec(code, module)
patient = df.loc[0, ["age", "sex", "chest_pain", "max_heart_rate"]].to_dict()
module["predict"](patient), wanted[0]

# %% [markdown]
# A missing value is None or NaN, and is treated as the fit does: here it is imputed, as
# `missing="indicator"` is the default of `gbmap`. If `fit.predict` would raise an error for an
# input, the function raises a `ValueError` with the reason. With `to_python(new_levels="missing")`,
# the function treats an unknown level as missing.

# %%
try:
    module["predict"](patient | {"chest_pain": "none at all"})
except ValueError as error:
    print(error)

# %% [markdown]
# ## A query in SQL
#
# `to_sql()` returns a query for DuckDB or PostgreSQL (`"duckdb"` or `"postgres"`). The query returns
# all columns of the table and adds the predictions: `prediction` for a number, `prob_<class>` for
# classes. If `predict` would raise an error or return NaN for a row, the query returns NULL for
# this row.

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
# The query quotes all names of columns, tables and levels, so they may contain any characters.
#
# ## ONNX
#
# `to_onnx()` returns a model for ONNX Runtime, which runs on servers, in browsers and on phones
# (`pip install "lodim[onnx]"`). The model has one input per column. Numbers are doubles, and NaN is
# a missing number. Categories are strings, and the empty string is a missing category.

# %%
session = onnxruntime.InferenceSession(fit.to_onnx().SerializeToString())
feed = {
    column.name: df[[column.name]].to_numpy(object if "string" in column.type else np.float64)
    for column in session.get_inputs()
}
gap_onnx = np.abs(session.run(None, feed)[0][:, 1] - wanted).max()
gap_onnx

# %% [markdown]
# For all patients, the predictions of the query and of the ONNX model differ from those of
# `predict` by less than 1e-9.
#
# ## What cannot be exported
#
# - A fit of `ripr` predicts by nearest neighbours among the training rows, which cannot be written
#   as a formula. Use `save()` instead.
# - A `melm` fit with a scikit-learn classifier cannot be exported.
# - If the fit has an offset, the offset must be a named column, not an array.
#
# **Privacy.** An export of `proset` contains the prototypes, and an export of `melm` contains the
# coordinates of all training rows, as a saved fit does.
