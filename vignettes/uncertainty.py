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
# # From a fit to an honest answer
#
# A fit says what it estimates. This document asks how far to trust it: how much the estimates would
# differ with other rows, which features move the prediction, what a new row may be, which features
# would be selected again, how the model compares with others, and what may be wrong with it.

# %% [markdown]
# ## How sure: the bootstrap
#
# `bootstrap` fits the model again and again to the same rows, each time with other weights, drawn
# from the standard exponential distribution. No weight is zero, so that no level of a factor
# vanishes, as it may by resampling. The settings that cross-validation has chosen are held.

# %%
import lodim as ld

cars = ld.data("autompg")
fit = ld.gbmap("mpg ~ .", data=cars, m=10, lambda_=0.1)
boot = ld.bootstrap(fit, data=cars, n=200)
boot

# %%
boot.plot()

# %% [markdown]
# The notes below the table are part of the answer: a penalty takes as much from each replicate as
# from the fit, so that an interval is around what the fit estimates. With `reselect=True` each
# replicate chooses its own settings, at the price of so many choices. For a model without a
# penalty the standard errors are those of the sandwich formula (and `kind="bca"` corrects limits for
# bias and skewness; where estimates jump, as of boosting, help says why not to):

# %%
line = ld.glm("mpg ~ weight + horsepower + origin", data=cars)
errors = ld.bootstrap(line, data=cars, n=400).tidy().set_index("term")["std_error"]
robust = line.update(cars, covariance="HC0").tidy().set_index("term")["std_error"]
(errors / robust).round(2)

# %% [markdown]
# Any function of a fit can be asked for, and `predict` gives a band of the mean. It is no interval
# of a new car: that would have to hold what cars of the same kind differ by, too.

# %%
ld.bootstrap(line, data=cars, n=100, statistic=lambda one: one.dev_ratio).tidy()

# %%
boot.predict(cars[:3], type="interval", of="mean", level=0.9)

# %% [markdown]
# ## What drives it: effects
#
# Accumulated local effects show how the prediction changes along a feature, among cars that are
# there: heavy cars with much horsepower are compared with a little heavier ones with as much, and
# never with light ones. The replicates of the bootstrap give the bands.

# %%
drivers = ld.effects(fit, data=cars, interval=boot, level=0.9)
drivers.plot()

# %%
drivers

# %% [markdown]
# A pair shows what two features do together, beyond what each does by itself: here what weight
# takes in other model years (and nothing where there are no such cars). `kind="slope"` sums a curve
# up in one number, `kind="pd"` is partial dependence, and `kind="importance"` says what the deviance
# would lose without a column.

# %%
ld.effects(fit, cars, "weight:model_year").plot()

# %%
ld.effects(fit, cars, kind="slope", interval=boot, level=0.9)

# %%
ld.effects(fit, cars, kind="importance").plot()

# %% [markdown]
# ## Intervals for new rows
#
# A model says what is expected of a car, and not how far from it the car may be. `ld.conformal` fits
# the model ten times, each time without a tenth of the rows, and takes the residuals of the rows
# that were left out for the measure (cv+, Barber et al. 2021). It works for every model, and assumes
# no distribution.

# %%
cars = ld.data("autompg").sample(frac=1.0, random_state=0)
known, new = cars[:300], cars[300:]
intervals = ld.conformal(ld.gbmap, "mpg ~ .", known, m=5, lambda_=0.03)
print(intervals)

# %% [markdown]
# What is promised is of all new cars together, if they are drawn as these were. `predict` warns if
# at least 20 new rows clearly differ: if the mean of a feature has moved by a quarter of a standard
# deviation, and by more than chance (false alarms: at most about 1 in 1,000). The theorem is
# cautious, in practice the share covered is close to the level. Cars that were kept back tell how
# close; the error is that of 98 cars.

# %%
intervals.predict(new.head(3)).round(1)

# %%
intervals.coverage(new).round(2)

# %% [markdown]
# Nothing is promised for a kind of car. Heavy cars are alike, and light ones are not, while all
# intervals are of about one width: the heaviest quarter is always covered, the lightest less often.

# %%
intervals.coverage(new, by="weight").round(2)

# %%
intervals.plot("coverage", data=new, by="weight")

# %% [markdown]
# A model that knows where responses vary more helps: `proset` has a standard deviation for each row,
# and the residuals that are compared are in units of it.

# %%
adapted = ld.conformal(ld.proset, "mpg ~ .", known, lambda_v=1e-3)
adapted.plot(data=new)

# %% [markdown]
# Other levels need no new fit, and a file keeps all: `intervals.predict(new, level=0.8)`,
# `intervals.save("cars.lodim")`. Of patients with several rows, or clinics, give `groups=`: what is
# promised is then of rows of new patients.
#
# ## Sets of classes
#
# Where the response has classes, the answer is a set of them: one where the row is clear, several
# where it is not.

# %%
flowers = ld.data("iris").sample(frac=1.0, random_state=0)
sets = ld.conformal(
    ld.gbmap, "species ~ sepal_length + sepal_width", flowers[:100], m=2, lambda_=0.1
)
sets.predict(flowers[100:104])

# %%
sets.plot(data=flowers[100:])

# %% [markdown]
# The promise is of all rows together: a class that the model seldom predicts may be covered less. With
# `by="class"` each class is compared with its own held-out rows, and each is covered at the level. A
# set may be empty; `coverage` and the print give the share of such sets.

# %%
each = ld.conformal(
    ld.gbmap, "species ~ sepal_length + sepal_width", flowers[:100], by="class", m=2, lambda_=0.1
)
each.coverage(flowers[100:], by="species").round(2)

# %% [markdown]
# ## What is selected again and again
#
# A model that selects features selects others when some rows are others. `ld.stability` fits it to
# many halves of the rows and counts (Shah and Samworth 2013). It gives no p-values, which after a
# selection mean little, but a bound: how many of the features that are seldom selected may be
# expected above the cutoff.

# %%
found = ld.stability(ld.costnet, "mpg ~ .", cars, lambda_=3.0, n=20)
print(found)

# %%
found.plot()

# %% [markdown]
# ## Compared with what
#
# `ld.compare` fits every model to the same training rows, scores it on the same rows held out, and
# puts baselines beside: the null model, `glm`, and where scikit-learn is installed gradient boosting
# and a random forest. Each call is a default one, and what it chooses (penalties, features, folds of
# its own) it chooses within the training rows.

# %%
heart = ld.data("heart")
table = ld.compare("disease ~ .", heart, ["costnet", "proset"], folds=5)
table

# %% [markdown]
# The lines above the table are the conclusion. Folds share training rows, so that the usual
# standard errors are too small: here variances are more than doubled (Nadeau and Bengio 2003). And
# the best of many is best by luck too, so all pairs of models are judged at once, with the
# correlation of their losses (the model confidence set of Hansen, Lunde and Nason 2011). That is
# conservative: in simulations equal models differed significantly in less than 2% of the samples,
# where 5% are allowed, and with a few hundred rows only clear differences are significant.

# %%
table.plot()

# %%
table.tidy()[["model", "auc", "auc_se", "difference", "difference_se", "p_value"]].round(3)

# %% [markdown]
# `table.best` is the best model of lodim, fitted to all rows when it is first asked for, `table.fit`
# any other; `table.losses` has a row for each row of the data, and tells who is wrong where.

# %%
table.best

# %% [markdown]
# All models in ten folds, as `ld.compare("disease ~ .", heart)` gives them (mean deviance of a row;
# standard errors in brackets; what the fits need is a mean over the folds):
#
# | heart | deviance | difference | accuracy | AUC | features | parts |
# |---|---|---|---|---|---|---|
# | gbmap | .765 (.095) | | .838 | .912 | 24 | 11.5 learners |
# | costnet | .791 (.100) | .026 (.023) | .832 | .910 | 16.5 | |
# | forest | .802 (.077) | .037 (.040) | .812 | .898 | | |
# | ripr | .809 (.110) | .044 (.054) | .805 | .905 | 10.1 | 5.9 views |
# | melm | .822 (.096) | .056 (.025) | .838 | .901 | 24 | 2 dimensions |
# | proset | .835 (.091) | .069 (.033) | .835 | .898 | 6.7 | 4.6 prototypes |
# | boosting | 1.060 (.187) | .295 (.128) | .809 | .883 | | |
# | null | 1.380 (.014) | .614 (.095) | .541 | .500 | 0 | |
# | glm | 1.765 (.718) | 1.000 (.705) | .822 | .890 | 20 | |
#
# Only the null model is significantly worse than gbmap at 5%. `glm` is not: four of its ten fits are
# separated, and a few rows with probabilities near 0 make its deviance, and its error, large. Who
# needs five prototypes of seven features loses nothing that these 303 rows can show. Fuel
# consumption, `ld.compare("mpg ~ .", ld.data("autompg"))`, where the deviance is the squared error:
#
# | autompg | deviance | difference | R2 | features | parts |
# |---|---|---|---|---|---|
# | proset | 6.68 (1.15) | | .891 | 6.6 | 55 prototypes |
# | boosting | 7.49 (1.53) | .81 (.75) | .878 | | |
# | forest | 7.60 (1.56) | .92 (.74) | .876 | | |
# | gbmap | 7.83 (1.13) | 1.15 (.54) | .872 | 10 | 17.2 learners |
# | ripr | 8.25 (1.25) | 1.57 (.83) | .865 | 4.1 | 2.4 views |
# | glm | 11.38 (1.45) | 4.71 (1.19) | .814 | 9 | |
# | costnet | 11.39 (1.54) | 4.71 (1.23) | .814 | 5.1 | |
# | null | 61.33 (5.43) | 54.65 (5.20) | .000 | 0 | |
#
# Here the two linear models and the null model are significantly worse than the best; the other
# differences are not significant.
#
# ## What may be wrong
#
# `fit.check()` looks for what a statistician would look for before believing a fit, and says what it
# could not look for, and why. With the training rows nothing is found here:

# %%
cars = ld.data("autompg")
old, new = cars[cars["model_year"] <= 76], cars[cars["model_year"] > 76]
fit = ld.glm("mpg ~ . - model_year", old)
fit.check(old)

# %% [markdown]
# Cars of later years are lighter, and go farther with the same weight. Both are seen: the features
# have moved, and the predictions are off.

# %%
fit.check(new)

# %% [markdown]
# A finding has a code, and `ignore=` leaves codes out; `help(fit.check)` has their table.
