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
# # Uncertainty and comparison
#
# How far can I trust a fit? This page answers six questions: how much estimates would differ with
# other rows, which features change the predictions, what a new row may be, which features would be
# selected again, how the model compares with others, and what may be wrong with it.

# %% [markdown]
# ## Uncertainty of estimates: the bootstrap
#
# `bootstrap` refits the model to the same rows many times, each time with other random weights from
# the standard exponential distribution. No weight is zero, so no level of a factor vanishes, as it
# may with resampling. Settings chosen by cross-validation stay fixed.

# %%
import lodim as ld

cars = ld.data("autompg")
fit = ld.gbmap("mpg ~ .", data=cars, m=10, lambda_=0.1)
boot = ld.bootstrap(fit, data=cars, n=200)
boot

# %%
boot.plot()

# %% [markdown]
# The notes below the table are part of the result: a penalty shrinks each replicate as much as the
# fit, so the interval surrounds the penalized estimate. With `reselect=True` each replicate chooses
# its own settings, which takes that many choices. Without a penalty the standard errors approximate
# the sandwich formula. `kind="bca"` corrects limits for bias and skewness; the help explains why
# not to use it if estimates jump, as in boosting.

# %%
line = ld.glm("mpg ~ weight + horsepower + origin", data=cars)
errors = ld.bootstrap(line, data=cars, n=400).tidy().set_index("term")["std_error"]
robust = line.update(cars, covariance="HC0").tidy().set_index("term")["std_error"]
(errors / robust).round(2)

# %% [markdown]
# `statistic=` takes any function of a fit, and `predict` gives a band for the mean. It is no
# interval for a new car, which would also have to cover the spread of similar cars.

# %%
ld.bootstrap(line, data=cars, n=100, statistic=lambda one: one.dev_ratio).tidy()

# %%
boot.predict(cars[:3], type="interval", of="mean", level=0.9)

# %% [markdown]
# ## Effects of features
#
# Accumulated local effects show how the prediction changes along a feature among existing cars:
# heavy, powerful cars are compared with slightly heavier, powerful cars, never with light ones. The
# bootstrap replicates give the bands.

# %%
drivers = ld.effects(fit, data=cars, interval=boot, level=0.9)
drivers.plot()

# %%
drivers

# %% [markdown]
# A pair shows the joint effect of two features beyond their single effects: here how the effect of
# weight differs between model years (blank if there are no such cars). `kind="slope"` summarizes a
# curve in one number, `kind="pd"` is partial dependence, and `kind="importance"` is the loss of
# deviance without a column.

# %%
ld.effects(fit, cars, "weight:model_year").plot()

# %%
ld.effects(fit, cars, kind="slope", interval=boot, level=0.9)

# %%
ld.effects(fit, cars, kind="importance").plot()

# %% [markdown]
# ## Intervals for new rows
#
# A prediction is the expected value for a car, not the range in which the car may be.
# `ld.conformal` fits the model ten times, each time without a tenth of the rows. The residuals of
# the rows left out determine the intervals (CV+, Barber et al. 2021). It works for every model, and
# assumes no distribution.

# %%
cars = ld.data("autompg").sample(frac=1.0, random_state=0)
known, new = cars[:300], cars[300:]
intervals = ld.conformal(ld.gbmap, "mpg ~ .", known, m=5, lambda_=0.03)
print(intervals)

# %% [markdown]
# The coverage holds on average over all new cars, if they come from the same population. `predict`
# warns if at least 20 new rows clearly differ: if the mean of a feature has moved by a quarter of a
# standard deviation, and by more than chance (false alarms: at most about 1 in 1,000). The
# guaranteed level is conservative; in practice coverage is close to the nominal level. Below it is
# measured on 98 kept-out cars, with its standard error.

# %%
intervals.predict(new.head(3)).round(1)

# %%
intervals.coverage(new).round(2)

# %% [markdown]
# There is no guarantee for a subgroup. Heavy cars resemble each other, light ones do not, and all
# intervals have about the same width: the heaviest quarter is always covered, the lightest less
# often.

# %%
intervals.coverage(new, by="weight").round(2)

# %%
intervals.plot("coverage", data=new, by="weight")

# %% [markdown]
# A model that estimates where responses vary more improves this: `proset` has a standard deviation
# for each row, and residuals are measured in units of it.

# %%
adapted = ld.conformal(ld.proset, "mpg ~ .", known, lambda_v=1e-3)
adapted.plot(data=new)

# %% [markdown]
# Other levels need no new fit, and a file keeps everything: `intervals.predict(new, level=0.8)`,
# `intervals.save("cars.lodim")`. If patients or clinics have several rows, give `groups=`: the
# guarantee is then for rows of new patients.
#
# ## Sets of classes
#
# If the response has classes, the prediction is a set of them: one class for a clear row, several
# for an unclear one.

# %%
flowers = ld.data("iris").sample(frac=1.0, random_state=0)
sets = ld.conformal(
    ld.gbmap, "species ~ sepal_length + sepal_width", flowers[:100], m=2, lambda_=0.1
)
sets.predict(flowers[100:104])

# %%
sets.plot(data=flowers[100:])

# %% [markdown]
# The guarantee is for all rows together: a rare class may be covered less often. With `by="class"`
# each class is compared with its own held-out rows, and is covered at the level. A set may be
# empty; `coverage` and the print give the share of empty sets.

# %%
each = ld.conformal(
    ld.gbmap, "species ~ sepal_length + sepal_width", flowers[:100], by="class", m=2, lambda_=0.1
)
each.coverage(flowers[100:], by="species").round(2)

# %% [markdown]
# ## Stability of selection
#
# With other rows, a model selects other features. `ld.stability` fits it to many halves of the rows
# and counts (Shah and Samworth 2013). It gives no p-values, which mean little after selection, but
# a bound: how many of the rarely selected features are expected above the cutoff.

# %%
found = ld.stability(ld.costnet, "mpg ~ .", cars, lambda_=3.0, n=20)
print(found)

# %%
found.plot()

# %% [markdown]
# ## Comparison of models
#
# `ld.compare` fits every model to the same training rows, scores it on the same held-out rows, and
# adds baselines: the null model, `glm`, and, if scikit-learn is installed, gradient boosting and a
# random forest. Each call is a default one. What it chooses (penalties, features, its own folds),
# it chooses within the training rows.

# %%
heart = ld.data("heart")
table = ld.compare("disease ~ .", heart, ["costnet", "proset"], folds=5)
table

# %% [markdown]
# The lines above the table are the conclusion. Folds share training rows, so the usual standard
# errors are too small; here variances are more than doubled (Nadeau and Bengio 2003). The best of
# many models is partly best by luck. So all pairs of models are compared at once, with the
# correlation of their losses (the model confidence set of Hansen, Lunde and Nason 2011). This is
# conservative: in simulations equal models differed significantly in less than 2% of the samples
# instead of 5%. With a few hundred rows only clear differences are significant.

# %%
table.plot()

# %%
table.tidy()[["model", "auc", "auc_se", "difference", "difference_se", "p_value"]].round(3)

# %% [markdown]
# `table.best` is the best lodim model, fitted to all rows at first use, and `table.fit` returns any
# other. `table.losses` has the losses of each row.

# %%
table.best

# %% [markdown]
# The tables show all models with ten folds, as `ld.compare("disease ~ .", heart)` gives them (mean
# deviance per row, standard errors in brackets, and the mean size of the fits):
#
# | heart | deviance | difference | accuracy | AUC | features | parts |
# |---|---|---|---|---|---|---|
# | gbmap | 0.765 (0.095) | | 0.838 | 0.912 | 24 | 11.5 learners |
# | costnet | 0.791 (0.100) | 0.026 (0.023) | 0.832 | 0.910 | 16.5 | |
# | forest | 0.802 (0.077) | 0.037 (0.040) | 0.812 | 0.898 | | |
# | ripr | 0.809 (0.110) | 0.044 (0.054) | 0.805 | 0.905 | 10.1 | 5.9 views |
# | melm | 0.822 (0.096) | 0.056 (0.025) | 0.838 | 0.901 | 24 | 2 dimensions |
# | proset | 0.835 (0.091) | 0.069 (0.033) | 0.835 | 0.898 | 6.7 | 4.6 prototypes |
# | boosting | 1.060 (0.187) | 0.295 (0.128) | 0.809 | 0.883 | | |
# | null | 1.380 (0.014) | 0.614 (0.095) | 0.541 | 0.500 | 0 | |
# | glm | 1.765 (0.718) | 1.000 (0.705) | 0.822 | 0.890 | 20 | |
#
# Only the null model is significantly worse than gbmap at 5%. `glm` is not: four of its ten fits
# are separated, and a few rows with probabilities near 0 make its deviance and its standard error
# large. A model of five prototypes and seven features is not significantly worse on these 303 rows.
# For fuel consumption, `ld.compare("mpg ~ .", ld.data("autompg"))`, the deviance is the squared
# error:
#
# | autompg | deviance | difference | R2 | features | parts |
# |---|---|---|---|---|---|
# | proset | 6.68 (1.15) | | 0.891 | 6.6 | 55 prototypes |
# | boosting | 7.49 (1.53) | 0.81 (0.75) | 0.878 | | |
# | forest | 7.60 (1.56) | 0.92 (0.74) | 0.876 | | |
# | gbmap | 7.83 (1.13) | 1.15 (0.54) | 0.872 | 10 | 17.2 learners |
# | ripr | 8.25 (1.25) | 1.57 (0.83) | 0.865 | 4.1 | 2.4 views |
# | glm | 11.38 (1.45) | 4.71 (1.19) | 0.814 | 9 | |
# | costnet | 11.39 (1.54) | 4.71 (1.23) | 0.814 | 5.1 | |
# | null | 61.33 (5.43) | 54.65 (5.20) | 0.000 | 0 | |
#
# Here the two linear models and the null model are significantly worse than the best; the other
# differences are not significant.
#
# ## Checks
#
# `fit.check()` looks for the problems that a statistician would look for before trusting a fit. It
# also lists what it could not check, and why. Here it finds nothing in the training rows:

# %%
cars = ld.data("autompg")
old, new = cars[cars["model_year"] <= 76], cars[cars["model_year"] > 76]
fit = ld.glm("mpg ~ . - model_year", old)
fit.check(old)

# %% [markdown]
# Cars of later years are lighter, and go farther at the same weight. The check finds both: the
# features have moved, and the predictions are off.

# %%
fit.check(new)

# %% [markdown]
# `ignore=` leaves out findings by their code; `help(fit.check)` lists the codes.
