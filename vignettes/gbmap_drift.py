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
# # Drift, and the difference of two models
#
# How can I notice that new data differ from the training data? And where do two models disagree?
# The learners of a `gbmap` model, whose sum is the prediction, help to answer both questions.
#
# ## Drift
#
# The *drift indicator* of a row x is |f(x) − mean response of the k nearest training rows|, with k
# = 5 (Sect. 4.5). If x is far from the training rows, the prediction f(x) is an extrapolation, but
# the mean response of the neighbours is not. So the two differ, and the indicator is large. The
# indicator does not need the response of x. With `kind="distance"`, the indicator is the mean
# distance to the k neighbours.
#
# `predict` warns if a numeric prediction is far outside the range of the training responses.
# `clip=True` limits predictions to this range.
#
# In the example, we fit a model to cars of the earlier model years, and compute the indicator for
# later cars.

# %%
import pandas as pd

import lodim as ld

pd.set_option("display.precision", 4)

cars = ld.data("autompg")
complete = cars.dropna()

# %%
seen = complete["model_year"] <= 76
early, late = complete[seen], complete[~seen]
watch = ld.gbmap("mpg ~ .", data=early)
threshold = watch.drift_threshold()
print(f"rows: {len(early)} early, {len(late)} late")
print(f"threshold, the 95% quantile of the indicator over out-of-fold early rows: {threshold:.2f}")

# %%
alarm = watch.drift(late) > threshold
alarm.groupby(late["model_year"]).mean().rename("share of rows above the threshold").to_frame()

# %% [markdown]
# The table shows the share of late cars whose indicator is above the threshold.
# Without a change this would be 5%. Was the alarm right? Here we know the responses of the late
# cars, and so their losses. A loss is called large above the 95% quantile of the losses of the
# early cars. In the plot, each point is a late car, and the ROC curve shows how well the indicator
# detects large losses.

# %%
limit = watch.augment(early)[".loss"].quantile(0.95)
ax = watch.plot("drift", data=late, threshold=threshold, limit=limit)

# %%
groups = {
    "early (training)": early,
    "late": late,
    "late, below the threshold": late[~alarm],
    "late, above the threshold": late[alarm],
}
pd.concat({name: watch.evaluate(rows) for name, rows in groups.items()}).droplevel(1)

# %% [markdown]
# A low drift indicator does not prove that nothing has changed. The relation between response and
# features can change while the features stay the same, and no indicator without responses can
# detect this. Here cars of later years go farther at the same weight. So predictions for cars whose
# indicator is below the threshold are as wrong as those for cars above it.
#
# ## Difference of two models
#
# Where do two models differ, and in which features? Fit a third model: the response is the
# prediction of the second model, and `offset=` is the prediction of the first model (Sect. 5.1).
# The learners of the third model then describe the difference. Here, the first model is linear
# (`activation="identity"`, one boost), and the second is a default fit.

# %%
fit = ld.gbmap("mpg ~ .", data=cars)
linear = ld.gbmap("mpg ~ .", data=complete, m=1, lambda_=1e-3, activation="identity")
models = complete.drop(columns="mpg").assign(
    first=linear.predict(complete), second=fit.predict(complete)
)
difference = ld.gbmap("second ~ .", data=models, offset="first", m=4, lambda_=0.1)
print(difference)

# %% [markdown]
# The learners approximate the difference between the two models. `%Dev` in the print is now the
# explained percentage of the squared difference. The next table shows regions in which the difference is linear, the largest
# region first. In the region `none` all learners are constant, so the two models differ only by a
# constant.

# %%
regions = difference.regions(models)
regions.head(5).set_index("active").astype(object).T

# %%
ax = difference.plot("effects")

# %% [markdown]
# ## What the indicator does not mean
#
# The drift indicator has the unit of the score; for a numeric response, this is the unit of the
# response. Its threshold is a quantile of the indicator over the training rows, and not a
# statistical test.
