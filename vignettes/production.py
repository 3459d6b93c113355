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
# A model that is good enough to be used stands where lodim does not: in a service, in a database, in
# a device. Fits of `glm`, `gbmap`, `proset`, `melm` and `costnet` write themselves out in three
# languages. Each text holds all of the model, the formula's transformations too, and answers as
# `predict` does.

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
# `to_python()` gives a module that needs Python alone: the columns, what stands where one is
# missing, the features, the learners, the answer. It can be read, and it can be reviewed.

# %%
code = fit.to_python()
print(code[code.index("def predict") :])

# %%
module = {}
exec(code, module)
patient = df.loc[0, ["age", "sex", "chest_pain", "max_heart_rate"]].to_dict()
module["predict"](patient), wanted[0]

# %% [markdown]
# A missing value is None or NaN, and answered as the fit was asked to (`missing="indicator"`, the
# default of `gbmap`, fills it). What `predict` would refuse is a `ValueError` that says why; with
# `new_levels="missing"` an unknown level is a missing value here too.

# %%
try:
    module["predict"](patient | {"chest_pain": "none at all"})
except ValueError as error:
    print(error)

# %% [markdown]
# ## A query
#
# `to_sql()` writes one query for DuckDB or PostgreSQL. It passes on all columns of the table, and
# puts the answers beside them: `prediction` of a number, `prob_<class>` of classes. One bad row does
# not end a query: where `predict` would refuse it, or gives NaN, there is NULL.

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
# Names of columns, tables and levels are quoted, whatever letters they have.
#
# ## ONNX
#
# `to_onnx()` (`pip install "lodim[onnx]"`) gives a model that ONNX Runtime reads, on servers, in
# browsers and on phones: an input for each column, numbers as doubles with NaN where they are
# missing, texts as strings that are empty there.

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
# ## What cannot be written out
#
# A fit of `ripr` answers by neighbours among the training rows, which is no formula: `save()` keeps
# them. A `melm` with an estimator of scikit-learn answers by that. What is written of `proset` holds the
# prototypes, of `melm` the coordinates of all training rows: as much as the file that `save()`
# writes says of single rows. An offset needs the name of a column.
