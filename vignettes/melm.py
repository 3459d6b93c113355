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
# # Maximum entropy linear manifold
#
# Can I see the classes apart in one picture? `melm` (Czarnecki, Jozefowicz and Tabor 2015) projects
# all features linearly to k coordinates, in which the classes overlap least. Kernel densities
# estimate where the projected rows of each class lie. `melm` maximizes the Cauchy-Schwarz
# divergence between the densities of the classes. It is zero for equal densities, and infinite for
# densities that do not overlap. [How melm works](../theory/melm) has the formula.
#
# Other projections use less information: principal components ignore the classes, and discriminant
# analysis uses only their means. Densities also show that one class surrounds the other, or
# consists of two parts.
#
# This page compares the picture of `melm` with principal components and discriminant analysis, for
# radar echoes. The second example is three cultivars of wine.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier

import lodim as ld

pd.set_option("display.precision", 3)

echoes = ld.data("ionosphere")
echoes.shape

# %% [markdown]
# 34 numbers describe a radar echo from the ionosphere. An echo is good if it shows structure, and
# bad if the signal passed through. Every third echo is held out for the evaluation.

# %%
kept = np.arange(len(echoes)) % 3 == 0
train, test = echoes[~kept], echoes[kept]
fit = ld.melm("quality ~ .", data=train)
print(fit)

# %% [markdown]
# In the print, `gamma` is the width of the kernels relative to Silverman's rule; here
# cross-validation chose it. The balanced accuracy is the share of rows that are classified
# correctly, averaged over classes. The print has two balanced accuracies:
#
# - `training rows`: the view (projection) that was fitted to all rows classifies each row. This
#   figure is too high: among 33 features there is always a view in which few training rows overlap.
# - `held out`: a view that was fitted without the row (or its fold) classifies the row. New rows
#   will be classified about as well, or slightly worse, because `gamma` was chosen on the same
#   rows.
#
# ## The view

# %%
ax = fit.plot()

# %% [markdown]
# Each point is an echo. The contour lines of a class enclose about half and nine tenths of its
# rows. The background has the colour of the predicted class; it is white far from all rows. Good
# echoes resemble each other, and bad echoes lie around them.
#
# Arrows show the largest *loadings* of features. If a feature increases by one standard deviation,
# the point of an echo moves along its arrow. (All arrows are stretched by the same factor.) If two
# features measure almost the same, their loadings may be large and cancel each other.
# `arrows="correlations"` draws correlations with the coordinates instead.

# %%
ax = fit.plot("loadings", of="correlations")

# %% [markdown]
# ## Comparison with principal components and discriminant analysis
#
# The next plots show two other projections. Without a response, `melm` returns principal components
# (Theorem 1 of the paper). For two classes, Fisher's discriminant analysis has only one direction.
# As second axis we use the first principal component of the data after this direction was removed.

# %%
pca = ld.melm("~ . - quality", data=train)


def discriminant(data):
    """Return Fisher's direction, and the first principal component of the remaining data."""
    X = train.drop(columns=["quality", "a02"])
    Z, good = (X - X.mean()) / X.std(), train["quality"] == "good"
    within = Z.where(good, Z - Z[~good].mean()).where(~good, Z - Z[good].mean())
    w = np.linalg.lstsq(np.cov(within.T), Z[good].mean() - Z[~good].mean(), rcond=None)[0]
    w /= np.linalg.norm(w)
    rest = Z - np.outer(Z @ w, w)
    V = np.column_stack([w, np.linalg.svd(rest, full_matrices=False)[2][0]])
    new = (data[X.columns] - X.mean()) / X.std()
    return pd.DataFrame(new.to_numpy() @ V, columns=["x1", "x2"], index=data.index)


views = {
    "principal components": lambda data: pca.predict(data),
    "discriminant": discriminant,
    "melm": lambda data: fit.predict(data, "projection"),
}

# %% [markdown]
# To classify the rows in each of these plots, we call `melm` with the two coordinates of the plot
# as the only features. Then there is nothing to project, and `melm` only estimates the densities.

# %%
figure, panels = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
rows = {}
for (name, view), panel in zip(views.items(), panels, strict=True):
    plane, new = (view(part).assign(quality=part["quality"]) for part in (train, test))
    within = ld.melm("quality ~ x1 + x2", data=plane, gamma=1.0)
    within.plot(ax=panel, arrows=None)
    panel.set_title(name)
    panel.get_legend().remove()
    rows[name] = {
        "divergence": within.divergence,
        "training": within.evaluate(plane)["balanced_accuracy"][0],
        "new echoes": within.evaluate(new)["balanced_accuracy"][0],
    }

# %%
pd.DataFrame(rows).T

# %% [markdown]
# The last column is the balanced accuracy on the held-out echoes. Discriminant analysis only uses
# means, so it ignores that bad echoes lie around the good ones.
#
# ## Summary

# %%
print(fit.summary())

# %% [markdown]
# **Divergence** is the *fitting term* minus the *regularizing term*. The fitting term is large if
# the two densities do not overlap. The regularizing term is small if each class is compact.
#
# **Loadings** are per standard deviation of the features; `tidy()` also returns loadings per unit.
# `r` is the correlation of a feature with a coordinate.
#
# **Pairs of classes** shows an upper bound of the overlap ∫ min(f, g) of the estimated densities f
# and g of two classes (`Overlap`). If f and g were the true densities, half of it would be an upper
# bound of the balanced error rate. So do not read it as an error estimate for new rows.
#
# This bound of the overlap is exp(−½ H₂ˣ), where H₂ˣ = −log ∫ f g is the quadratic cross entropy
# (Theorem 3). The theorem needs densities that are zero outside a box of volume 1, but kernel
# densities are positive everywhere. So `melm` scales the view such that a box around the rows has
# volume 1, and adds to the bound the probability of f and g outside this box.
#
# **Starts.** The divergence has several local maxima. `melm` searches from several starting points
# and keeps the best maximum. If only few starts reach a divergence near the best, more starts
# (`n_starts=`) may find a better view.

# %%
ax = fit.plot("starts")

# %% [markdown]
# ## Width and dimensions
#
# The argument `gamma` is the width of the kernels relative to Silverman's rule. With narrow
# kernels, the densities follow any gap between training rows. With wide kernels, the density of a
# class is nearly normal, so only its mean and covariance matter. Cross-validation compares kernel
# widths:

# %%
cv = ld.cv(ld.melm, "quality ~ .", data=train, n_lambda=7, folds=5, n_starts=5)
print(cv)
ax = cv.plot()

# %% [markdown]
# `cv` calibrates the scores before it computes the held-out deviance. Without calibration, the
# probabilities are too extreme on new rows, because the view was fitted to the training rows.
#
# How many dimensions are useful? `ld.cv` can compare any settings with `grid=`:

# %%
by_k = ld.cv(
    ld.melm,
    "quality ~ .",
    data=train,
    grid={"k": [1, 2, 3], "gamma": [fit.settings.gamma]},
    folds=5,
    n_starts=5,
)
by_k.tidy()

# %% [markdown]
# ## Three classes
#
# For several classes, `melm` maximizes the sum of the divergences of all pairs of classes.

# %%
wine = ld.data("wine")
cultivars = ld.melm("cultivar ~ .", data=wine, gamma=1.0)
ax = cultivars.plot()

# %%
cultivars.pairs()

# %% [markdown]
# The divergence between two cultivars is larger if their densities overlap less. Barbera and
# Barolo, which are far apart, have by far the largest divergence. Each pair has the same weight in
# the sum; `divergence="mean"` weights pairs by the shares of their classes. In the view, flavanoids
# separate Barolo from Barbera. Alcohol, proline and colour separate both from Grignolino.
#
# `augment()` adds coordinates and predictions to the data, for your own plots, and `tidy()` returns
# the loadings:

# %%
cultivars.augment(wine).filter(regex=r"cultivar|^\.").head(3)

# %% [markdown]
# For comparison, the wines on their principal components, which ignore the cultivars:

# %%
blind = ld.melm("~ . - cultivar", data=wine)
ax = blind.plot()

# %% [markdown]
# ## Other classifiers
#
# By default the class densities classify the rows, with calibrated probabilities. You can instead
# give another classifier: any estimator with `fit` and `predict_proba`, such as one of
# scikit-learn.

# %%
voted = fit.update(train, classifier=KNeighborsClassifier(5), gamma=fit.settings.gamma)
pd.concat({"densities": fit.evaluate(test), "neighbours": voted.evaluate(test)}).droplevel(1)
