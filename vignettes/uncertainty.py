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
# How far can I trust a fit? Each section of this page answers one part of this question. For
# example, how much would the estimates differ with other rows? In which range will new responses
# be? (The summary of `glm` has confidence intervals of its own. They are valid if you chose the
# model before you saw the data.)

# %% [markdown]
# ## Uncertainty of estimates: the bootstrap
#
# `ld.bootstrap` refits the model many times to the same rows, each time with random row weights
# (standard exponential). No weight is zero, so no level of a factor is lost. Settings that
# cross-validation has chosen stay fixed.

# %%
import lodim as ld

cars = ld.data("autompg")
fit = ld.gbmap("mpg ~ .", data=cars, m=10, lambda_=0.1)
boot = ld.bootstrap(fit, data=cars, n=200)
boot

# %%
boot.plot()

# %% [markdown]
# The intervals have these limits:
#
# - *Penalty.* A penalty shrinks the estimates in each replicate as much as in the fit. So the
#   interval is around the penalized estimate and may miss the true value.
# - *Settings.* With `reselect=True`, settings are chosen again for each replicate, which takes much
#   longer.
#
# Without a penalty, the standard errors approximate those of the sandwich formula. The next cell
# shows the ratio of both:

# %%
line = ld.glm("mpg ~ weight + horsepower + origin", data=cars)
errors = ld.bootstrap(line, data=cars, n=400).tidy().set_index("term")["std_error"]
robust = line.update(cars, covariance="HC0").tidy().set_index("term")["std_error"]
(errors / robust).round(2)

# %% [markdown]
# `statistic=` may be any function of a fit; the first cell uses the share of the deviance
# explained. `boot.predict` gives an interval for the mean prediction. An interval for the response
# of a new car must be wider.

# %%
ld.bootstrap(line, data=cars, n=100, statistic=lambda one: one.dev_ratio).tidy()

# %%
boot.predict(cars[:3], type="interval", of="mean", level=0.9)

# %% [markdown]
# ## Effects of features
#
# Accumulated local effects show how the prediction changes with a feature. They only compare
# similar cars: a heavy, powerful car with a slightly heavier, powerful car, but never with a light
# one.

# %%
drivers = ld.effects(fit, data=cars, interval=boot, level=0.9)
drivers.plot()

# %%
drivers

# %% [markdown]
# The effect of a pair is the joint effect of two features without their single effects. The first
# plot below shows how the effect of weight differs between model years. Areas without cars are
# blank. `kind=` chooses other effects:
#
# - `"slope"`: the average slope.
# - `"pd"`: partial dependence.
# - `"importance"`: the increase of the deviance if the values of a column are permuted.

# %%
ld.effects(fit, cars, "weight:model_year").plot()

# %%
ld.effects(fit, cars, kind="slope", interval=boot, level=0.9)

# %%
ld.effects(fit, cars, kind="importance").plot()

# %% [markdown]
# ## Intervals for new rows
#
# In which range will the response of a new car be? `ld.conformal` fits the model ten times, each
# time without a tenth of the rows. The residuals of the held-out rows determine the width of the
# intervals (CV+, Barber et al. 2021). This works for every model and assumes no distribution.

# %%
cars = ld.data("autompg").sample(frac=1.0, random_state=0)
known, new = cars[:300], cars[300:]
intervals = ld.conformal(ld.gbmap, "mpg ~ .", known, m=5, lambda_=0.03)
print(intervals)

# %% [markdown]
# The coverage is guaranteed on average over all new cars from the same population. The guaranteed
# coverage, which the print shows, is lower than the level of 90%. In practice the coverage is close
# to 90%. The next cells measure the coverage on 98 held-out cars, with its standard error.
#
# With at least 20 new rows, `predict` warns if the mean of a feature has changed since the training
# rows. The change must exceed a quarter of a standard deviation, and be larger than chance.

# %%
intervals.predict(new.head(3)).round(1)

# %%
intervals.coverage(new).round(2)

# %% [markdown]
# There is no guarantee for a subgroup. All intervals have about the same width, but the responses
# of light cars vary more. The table shows the coverage in four groups of cars by weight. The
# intervals contain the response of all cars in the heaviest quarter, but of fewer cars in the
# lightest quarter.

# %%
intervals.coverage(new, by="weight").round(2)

# %%
intervals.plot("coverage", data=new, by="weight")

# %% [markdown]
# The coverage of subgroups is better with a model that estimates a standard deviation for each row,
# such as `proset`. `ld.conformal` then uses residuals in units of this standard deviation, so the
# width of the intervals varies.

# %%
adapted = ld.conformal(ld.proset, "mpg ~ .", known, lambda_v=1e-3)
adapted.plot(data=new)

# %% [markdown]
# `ld.conformal` has further options:
#
# - *Levels.* Other levels need no new fit: `intervals.predict(new, level=0.8)`.
# - *Files.* `intervals.save("cars.lodim")` saves the intervals with all fits.
# - *Groups.* If patients or clinics have several rows, give `groups=`. The guarantee is then for
#   rows of new patients.
#
# ## Sets of classes
#
# If the response has classes, `ld.conformal` predicts a set of classes. The set has one class if
# the prediction is clear, and several classes if it is not.

# %%
flowers = ld.data("iris").sample(frac=1.0, random_state=0)
sets = ld.conformal(
    ld.gbmap, "species ~ sepal_length + sepal_width", flowers[:100], m=2, lambda_=0.1
)
sets.predict(flowers[100:104])

# %%
sets.plot(data=flowers[100:])

# %% [markdown]
# The sets contain the true class with the given probability on average over all rows. For rows of a
# rare class, this probability may be lower. With `by="class"`, each class is compared with held-out
# rows of the same class only, and the guarantee holds for each class. A set may be empty;
# `coverage` and the print show the share of empty sets.

# %%
each = ld.conformal(
    ld.gbmap, "species ~ sepal_length + sepal_width", flowers[:100], by="class", m=2, lambda_=0.1
)
each.coverage(flowers[100:], by="species").round(2)

# %% [markdown]
# ## Stability of selection
#
# With other rows, a model may select other features. `ld.stability` fits the model to many random
# halves of the rows (Shah and Samworth 2013). A feature is called *stable* if at least the share
# `cutoff` of the halves, 0.9 by default, selects it.
#
# A feature without an effect may also be stable by chance. Call a feature weak if its probability
# to be selected is below the average over all features. The print has an upper bound of the
# expected number of weak features among the stable ones.

# %%
found = ld.stability(ld.costnet, "mpg ~ .", cars, lambda_=3.0, n=20)
print(found)

# %%
found.plot()

# %% [markdown]
# ## Comparison of models
#
# `ld.compare` fits every model to the same training rows, and computes its loss on the same
# held-out rows. It adds simple models for comparison: the null model, `glm`, and, if scikit-learn
# is installed, gradient boosting and a random forest. Each model chooses its settings within the
# training rows of each fold.

# %%
heart = ld.data("heart")
table = ld.compare("disease ~ .", heart, ["costnet", "proset"], folds=5)
table

# %% [markdown]
# The lines above the table are the conclusion. `ld.compare` makes two corrections:
#
# - *Standard errors.* Folds share training rows, so the usual standard errors are too small.
#   `compare` more than doubles the variances (Nadeau and Bengio 2003): with ten equal folds, standard
#   errors are 1.45 times the usual ones.
# - *Many models.* The best of many models may be best by chance. So `compare` tests all pairs of
#   models together (model confidence set, Hansen, Lunde and Nason 2011). This test is conservative:
#   in simulations, equal models differed significantly in at most 1.8% of the samples instead of 5%
#   (up to 15% with the usual variances). The price is power: with 200 rows and five models, least
#   squares on three equally important features was significantly better than on two in 21% of the
#   samples (`benchmarks/results/comparison.csv`).

# %%
table.plot()

# %%
table.tidy()[["model", "auc", "auc_se", "difference", "difference_se", "p_value"]].round(3)

# %% [markdown]
# `table.best` is the lodim model with the lowest loss, fitted to all rows at first use. `table.fit`
# returns any other model. `table.losses` has the loss of each row.

# %%
table.best

# %% [markdown]
# The next table is the result for all models with ten folds, `ld.compare("disease ~ .", heart)`. It
# has the mean deviance per row, standard errors in brackets, and the mean number of features and
# parts (learners, prototypes or views):
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
# Only the null model is significantly worse than `gbmap` at the 5% level. `glm` has a high loss,
# but also a large standard error. In four of its ten fits the classes are separated, and a few rows
# with probabilities near 0 have very large losses.
#
# For fuel consumption, `ld.compare("mpg ~ .", ld.data("autompg"))`, `proset` is best. The two
# linear models (`glm`, `costnet`) and the null model are significantly worse. Gradient boosting,
# the random forest, `gbmap` and `ripr` are not.
#
# ## Checks
#
# `fit.check()` looks for common problems of fits and data, such as features that reveal the
# response, collinear features, and drift. It also lists the checks that were not possible, and why.
# Here it finds no problem in the training rows:

# %%
cars = ld.data("autompg")
old, new = cars[cars["model_year"] <= 76], cars[cars["model_year"] > 76]
fit = ld.glm("mpg ~ . - model_year", old)
fit.check(old)

# %% [markdown]
# Cars of later years are lighter, and go farther at the same weight. For these cars, the check
# reports two problems: the features have changed, and the predictions are wrong.

# %%
fit.check(new)

# %% [markdown]
# `fit.check(new, ignore=...)` leaves out findings by their code; `help(fit.check)` lists the codes.
