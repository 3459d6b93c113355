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
# # Prototypes for numbers: means, intervals and densities
#
# How can prototypes predict a number and a prediction interval? `proset` predicts from a few
# weighted training rows, the prototypes. The methods on this page are lodim's own. The page
# predicts the strength of concrete, checks the coverage of the intervals on four data sets, and
# ends with a response that has two modes.
#
# There are two losses. In the formulas, the response y is standardized. x_j and y_j are the
# features and the response of prototype j, and w_j is its weight. G is the similarity of two rows.
# B(x) = 1 + Σ_j w_j G(x − x_j) is the total weight.
#
# **`loss="squared"`** (the default) minimizes the mean squared error. The prediction m(x) is a
# weighted mean of the prototypes' responses and of 0, the mean of all standardized responses:
#
# > m(x) = Σ_j w_j G(x − x_j) y_j / B(x),
# > s²(x) = (s₀² + Σ_j w_j G(x − x_j) e_j²) / B(x).
#
# The variance s²(x) is a weighted mean, too. The leave-one-out residual of prototype j is e_j, and
# s₀² is the mean squared leave-one-out residual of all training rows. A quantile of the response is
# m(x) + s(x) q, where q is the same quantile of the training residuals, each divided by its s. On
# new rows, residuals are larger than on training rows. `proset` estimates by how much, with fits to
# four fifths of the rows, and increases s accordingly.
#
# **`loss="density"`** maximizes the likelihood of a whole distribution. The distribution is a
# mixture of normal distributions, centred at the responses of the prototypes, with a common
# standard deviation 1/u:
#
# > p(y | x) = (N(y; 0, 1) + Σ_j w_j G(x − x_j) N(y; y_j, 1/u²)) / B(x).
#
# `proset` estimates u together with the weights. Each batch of prototypes has its own u. With
# `loss="density"` the distribution may have several modes, but its mean is a less accurate
# prediction than that of `loss="squared"`. Its quantiles are calibrated in the way described above.
# If many responses are equal whole numbers, `proset` raises an error, because the density would be
# unbounded there.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import lodim as ld

pd.set_option("display.precision", 4)

# %% [markdown]
# ## Strength of concrete
#
# The response is the strength of concrete (MPa). The features are the components of the mixture
# (kg/m³) and the age (days). Every third row is held out. Most samples were tested within weeks and
# a few after a year, so log(age) measures similarity better than age.

# %%
concrete = ld.data("concrete")
third = np.arange(len(concrete)) % 3 == 0
mixtures, new = concrete[~third], concrete[third]
formula = "strength ~ . - age + np.log(age)"
strength = ld.proset(formula, data=mixtures)
density = ld.proset(formula, data=mixtures, loss="density")
print(strength)
pd.concat({f.settings.loss: f.evaluate(new) for f in (strength, density)}).droplevel(1)

# %% [markdown]
# In the last table, `deviance` is the mean squared error and `dev_ratio` is R², both on the
# held-out rows. The next cells show predictions with their uncertainty, and the prototypes that
# determine one prediction.

# %%
first = new.iloc[:4]
parts = {
    "observed": first["strength"],
    "mean": strength.predict(first),
    "sd": np.sqrt(strength.predict(first, "variance")),
}
intervals = strength.predict(first, "interval", level=0.9).add_suffix(" 90%")
pd.concat([pd.DataFrame(parts), intervals, strength.predict(first, "quantile")], axis=1)

# %%
print(strength.explain(first.iloc[[0]], features=4))

# %%
ax = strength.plot("surface", features=["np.log(age)", "cement"])

# %% [markdown]
# ## Are the intervals right?
#
# The plots show the share of held-out rows inside their intervals, for many levels. Above the
# diagonal the intervals are too wide. The grey band is two standard errors for the smallest data
# set. There are only two data sets for "density", because the responses of the other two are whole
# numbers.

# %%
levels = np.linspace(0.05, 0.95, 19)


def coverage(fitted, rows, response):
    """Return the share of rows whose response is inside the interval, for each level."""
    y = rows[response].to_numpy()
    at = [fitted.predict(rows, "interval", level=level).to_numpy() for level in levels]
    return np.array([((y >= i[:, 0]) & (y <= i[:, 1])).mean() for i in at])


observed, fewest = {}, np.inf
for name in ("concrete", "abalone", "autompg", "wine_red"):
    data = ld.data(name).dropna()
    response, out = data.columns[0], np.arange(len(data)) % 3 == 0
    whole = (data[response] % 1 == 0).all()
    for loss in ("squared",) if whole else ("squared", "density"):
        fitted = ld.proset(f"{response} ~ .", data=data[~out], loss=loss)
        observed[loss, f"{name} ({out.sum()} rows)"] = coverage(fitted, data[out], response)
    fewest = min(fewest, out.sum())
observed = pd.DataFrame(observed, index=pd.Index(levels.round(2), name="nominal"))

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), sharey=True, layout="constrained")
chance = 2 * np.sqrt(levels * (1 - levels) / fewest)
for ax, loss in zip(axes, ("squared", "density"), strict=True):
    ax.fill_between(levels, levels - chance, levels + chance, color="0.9")
    ax.axline((0, 0), slope=1, color="0.4", linewidth=0.8)
    colours = [f"C{observed['squared'].columns.get_loc(name)}" for name in observed[loss]]
    observed[loss].plot(ax=ax, legend=loss == "squared", color=colours)
    ax.set(title=f'loss="{loss}"', xlabel="nominal level", ylabel="share of new rows inside")
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.spines[["top", "right"]].set_visible(False)

# %%
observed.loc[[0.5, 0.8, 0.9, 0.95]].T

# %% [markdown]
# With `loss="squared"`, the coverage is right on abalone, concrete and wine_red. On autompg it is
# slightly too high: the 90% intervals contain 96% of the new rows.

# %% [markdown]
# ## Two modes
#
# Rows with the same x may have one of two different responses. Then a mean with an interval is not
# informative. In this example, y is near x or near −x with equal probability:

# %%
rng = np.random.default_rng(0)
x = rng.uniform(0.0, 2.0, 1000)
forked = pd.DataFrame(
    {"y": rng.choice([-1.0, 1.0], 1000) * x + rng.normal(0.0, 0.15, 1000), "x": x}
)
one, two = (ld.proset("y ~ x", data=forked, loss=loss) for loss in ("squared", "density"))
grid = pd.DataFrame({"x": np.linspace(0.0, 2.0, 121)})
at = np.linspace(-2.6, 2.6, 157)

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
for ax, each in zip(axes, (one, two), strict=True):
    ax.scatter(forked["x"], forked["y"], s=3, color="0.5", zorder=2)
    ax.set(title=f'loss="{each.settings.loss}"', xlabel="x", xlim=(0, 2), ylim=(-2.6, 2.6))
interval = one.predict(grid, "interval")
axes[0].fill_between(grid["x"], interval["lower"], interval["upper"], color="C0", alpha=0.2)
axes[0].plot(grid["x"], one.predict(grid), color="C0")
axes[0].set_ylabel("y, mean and 90% interval")
Z = two.density(grid, at).to_numpy().T
mesh = axes[1].contourf(grid["x"], at, Z, levels=12, cmap="Blues", zorder=1)
bar = figure.colorbar(mesh, ax=axes[1], label="density of y at x")

# %% [markdown]
# The intervals on the left have the right coverage, but most values inside never occur. The density
# on the right shows both modes. The table compares the estimated density at x = 1.5 with the true
# density.

# %%
some = np.array([-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0])
true = sum(np.exp(-0.5 * ((some - c) / 0.15) ** 2) for c in (-1.5, 1.5)) / (
    0.3 * np.sqrt(2 * np.pi)
)
estimated = two.density(pd.DataFrame({"x": [1.5]}), some).iloc[0].to_numpy()
pd.DataFrame({"true": true, "estimated": estimated}, index=pd.Index(some, name="y")).T.round(3)

# %% [markdown]
# ## What the intervals do not mean
#
# The coverage of the intervals is right on average over new rows from the same population as the
# training rows. It may be wrong for a given row, especially if the training data contain few
# similar rows.
