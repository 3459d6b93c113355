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
# # Gallery
#
# One picture for each kind of plot, below the lines that made it. Every plot takes `ax=` and
# returns the Axes (of several panels, an array of them), so that titles, limits and files are
# matplotlib's. The kinds of a fit are those of `fit.plot(kind)`.

# %%
import lodim as ld

cars, cells, heart = ld.data("autompg"), ld.data("breast_cancer"), ld.data("heart")
wine = ld.data("wine")

# %% [markdown]
# ## glm

# %%
line = ld.glm("mpg ~ weight + horsepower + model_year + origin", data=cars)
ax = line.plot("coefficients")

# %%
ax = line.plot("residuals")

# %%
ax = line.plot("qq")

# %%
ax = line.plot("leverage")

# %%
risk = ld.glm("disease ~ age + sex + max_heart_rate + st_depression", data=heart[::2])
ax = risk.plot("calibration", data=heart[1::2], bins=5)

# %% [markdown]
# ## gbmap

# %%
boosts = ld.gbmap("mpg ~ .", data=cars)
ax = boosts.plot("loss")

# %%
ax = boosts.plot("effects")

# %%
ax = boosts.plot("local", data=cars, row=0)

# %%
ax = boosts.plot("embedding")

# %%
early, late = cars[cars["model_year"] < 78], cars[cars["model_year"] >= 78]
ax = ld.gbmap("mpg ~ . - model_year", data=early).plot("drift", data=late)

# %% [markdown]
# ## proset

# %%
prototypes = ld.proset("diagnosis ~ .", data=cells, lambda_v=0.03)
ax = prototypes.plot("weights")

# %%
ax = prototypes.plot("map", data=cells, row=cells.loc[[297]])

# %%
ax = prototypes.plot("scatter", data=cells)

# %%
ax = prototypes.plot("surface")

# %%
ax = prototypes.plot("shapley", data=cells, row=297)

# %% [markdown]
# ## costnet

# %%
prices = ld.data("heart_costs").set_index("name")
list_ = ld.costnet("disease ~ .", data=heart, costs=prices["cost"], depends_on=prices["needs"])
ax = list_.plot("cost")

# %%
ax = list_.plot("graph")

# %%
ax = list_.plot("path")

# %% [markdown]
# ## melm

# %%
view = ld.melm("cultivar ~ .", data=wine, gamma=1.0)
ax = view.plot("view")

# %%
ax = view.plot("loadings")

# %%
ax = view.plot("starts")

# %% [markdown]
# ## ripr

# %%
views = ld.ripr("cultivar ~ .", data=wine)
ax = views.plot("view")

# %%
ax = views.plot("shares")

# %%
ratio = ld.ripr("cultivar ~ .", data=wine, method="assignment", lambda_=0.01)
ax = ratio.plot("objective")

# %% [markdown]
# ## path and cv

# %%
ax = ld.path(ld.gbmap, "mpg ~ .", data=cars, m=3, n_lambda=30).plot()

# %%
ax = ld.cv(ld.gbmap, "mpg ~ .", data=cars, m=5).plot()

# %% [markdown]
# ## bootstrap

# %%
few = ld.gbmap("mpg ~ .", data=cars, m=5, lambda_=0.1)
boot = ld.bootstrap(few, data=cars, n=60)
ax = boot.plot()

# %% [markdown]
# ## effects

# %%
curves = ld.effects(few, cars, ["weight", "model_year", "origin"], interval=boot, level=0.9)
ax = curves.plot()

# %%
ax = curves.plot("origin")

# %%
ax = ld.effects(few, cars, "weight:model_year").plot()

# %%
ax = ld.effects(few, cars, kind="slope", interval=boot, level=0.9).plot()

# %%
ax = ld.effects(few, cars, kind="importance").plot()

# %% [markdown]
# ## conformal

# %%
known, new = cars[::2], cars[1::2]
intervals = ld.conformal(ld.gbmap, "mpg ~ .", known, m=5, lambda_=0.1)
ax = intervals.plot("intervals", data=new)

# %%
ax = intervals.plot("coverage", data=new, by="weight")

# %%
sets = ld.conformal(ld.gbmap, "cultivar ~ alcohol + hue", wine[::2], m=2, lambda_=0.1)
ax = sets.plot(data=wine[1::2])

# %% [markdown]
# ## stability

# %%
ax = ld.stability(ld.costnet, "mpg ~ .", cars, lambda_=3.0, n=20).plot()

# %% [markdown]
# ## compare

# %%
calls = {"gbmap": (ld.gbmap, {"m": 10, "lambda_": 0.1}), "ripr": (ld.ripr, {"max_dim": 1})}
ax = ld.compare("mpg ~ .", cars, calls, folds=5).plot()

# %% [markdown]
# ## active

# %%
labelled, pool = wine.iloc[::18], wine.drop(wine.index[::18])
learner = ld.active(ld.ripr, "cultivar ~ .", labelled, pool, test=wine, score="uncertainty")
learner.replay(pool["cultivar"], rounds=6)
ax = learner.plot()

# %%
chance = ld.active(ld.ripr, "cultivar ~ .", labelled, pool, test=wine, score="random")
ax = learner.plot("winloss", against={"random": chance.replay(pool["cultivar"], rounds=6)})
