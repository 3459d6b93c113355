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
# # How sure
#
# From a fit to an honest answer: what new rows may be, and which features would be selected again.

# %%
import lodim as ld

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
# What is promised is of all new cars together, if they are drawn as these were. The theorem is
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
