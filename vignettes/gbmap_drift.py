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
# Will a model that is used for years notice that its data have changed? And where do two models
# disagree? Both questions use the distance of `gbmap`: rows are near if the learners have similar
# values.
#
# ## Drift
#
# Away from the training rows, f and its own nearest neighbours disagree: f extrapolates along its
# slopes, the neighbours' responses do not. So |f(x) − mean of the k nearest training responses|,
# with k = 5 (Sect. 4.5), indicates drift. It needs no response at x. `kind="distance"` is the mean
# distance to these neighbours. `predict` warns if a numeric response is predicted far beyond the
# training range, and `clip=True` keeps it within.
#
# Below, a model is trained on cars of the earlier model years and watches the later ones arrive.

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
# Without change, 5% of the rows are above the threshold by construction. Was the alarm right? Here
# the responses are known, so the losses can be computed. Each point is a late car. A loss is called
# large if it exceeds the 95% quantile of the losses of the early rows.

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
# The ROC curve in the corner rates the indicator as a detector of large losses. A low indicator is
# no proof that nothing changed: the relation of response and features can change while the features
# stay the same, and no indicator without responses can detect that. Here cars of later years go
# farther at the same weight, so those below the threshold are off by as much as those above it.
#
# ## Difference of two models
#
# Where do two models differ, and in which features? Give the predictions of the first model as
# `offset=` and model those of the second (Sect. 5.1): the learners then describe the difference.
# Here the first model is linear (`activation="identity"`, one boost), the second a default fit.

# %%
fit = ld.gbmap("mpg ~ .", data=cars)
linear = ld.gbmap("mpg ~ .", data=complete, m=1, lambda_=1e-3, activation="identity")
models = complete.drop(columns="mpg").assign(
    first=linear.predict(complete), second=fit.predict(complete)
)
difference = ld.gbmap("second ~ .", data=models, offset="first", m=4, lambda_=0.1)
print(difference)

# %% [markdown]
# `%Dev` is now the share of the disagreement that these boosts describe. In the region where all
# learners are flat (`none`) the models agree up to a constant. The largest regions come first:

# %%
regions = difference.regions(models)
regions.head(5).set_index("active").astype(object).T

# %%
ax = difference.plot("effects")

# %% [markdown]
# ## What the indicator does not mean
#
# The drift indicator is in units of the link, and its threshold is a quantile, not a test.
