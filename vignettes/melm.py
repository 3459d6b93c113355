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
# `melm` (Czarnecki, Jozefowicz and Tabor 2015) looks for the flat view of the data, a linear
# projection to k dimensions, in which classes overlap least. What it makes large is the
# Cauchy-Schwarz divergence between kernel density estimates f of the projected classes,
#
# > D(V) = log ∫ f₊² + log ∫ f₋² − 2 log ∫ f₊ f₋,
#
# zero where the densities are equal, and without limit where they do not touch. Principal
# components do not look at the classes at all, and discriminant analysis looks at their means
# alone. Densities see more: a class may surround the other, or lie in two parts.
#
# This document looks at radar echoes, compares the view with those of principal components and
# discriminant analysis, and then looks at wines of three kinds.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier

import lodim as ld

pd.set_option("display.precision", 3)

echoes = ld.data("ionosphere")
echoes.shape

# %% [markdown]
# 34 numbers describe a radar echo from the ionosphere; it is good where it shows structure, and
# bad where the signal passed through. Every third echo is kept out, to evaluate.

# %%
kept = np.arange(len(echoes)) % 3 == 0
train, test = echoes[~kept], echoes[kept]
fit = ld.melm("quality ~ .", data=train)
print(fit)

# %% [markdown]
# `gamma` is the width of the kernels, in those of Silverman's rule; it was not given, so that it
# was chosen by cross-validation. The balanced accuracy is the mean over the classes of the share
# that is classified rightly. `held out`: each row is classified by a view that was searched on the
# others (of more than 250 rows, on those outside its fold). That of the training rows is of the view
# that was made for them, and among 33 features there is always some view in which few training rows
# overlap. The first is nearer to what new rows will have, but it is no test of the whole call:
# `gamma` was chosen on the same rows. Rows that had no part in anything, as those of `test`, say
# more.
#
# ## The view

# %%
ax = fit.plot()

# %% [markdown]
# Each point is an echo. The lines are where a class is densest, around half and nine tenths of its
# rows; the ground has the colour of the class that would be chosen, and is white where there are no
# rows to judge by. The good echoes are like each other; the bad ones are all around.
#
# Arrows are the *loadings* of the features, the largest ones: one standard deviation more in a
# feature moves an echo along its arrow (all arrows are stretched by the same factor). They are
# coefficients, as in a regression: where features say almost the same, two large ones may cancel.
# `arrows="correlations"` draws the correlation of each feature with both coordinates instead.

# %%
ax = fit.plot("loadings", of="correlations")

# %% [markdown]
# ## Beside principal components and discriminant analysis
#
# Principal components are `melm` without a response (Theorem 1 of the paper: of all normal
# densities of projections, theirs have the largest entropy). Fisher's discriminant has a single
# direction for two classes; the largest principal component of what is left is the second here.

# %%
pca = ld.melm("~ . - quality", data=train)


def discriminant(data):
    """Fisher's direction, and the first principal component of what is left."""
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
# In each of the views the same rule classifies, kernel densities: `melm` of two features in two
# dimensions has no view to search for.

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
# The last column is the balanced accuracy on the echoes that were kept out of everything. The
# discriminant can use nothing but means; that bad echoes are scattered all around the good ones is
# what densities see.
#
# ## Summary

# %%
print(fit.summary())

# %% [markdown]
# **Divergence** is the *fitting term*, twice the cross entropy of the two densities, less the
# *regularizing term*, the sum of their own entropies. The first is large where densities do not
# overlap, the second small where each class is compact.
#
# **Loadings** are given per standard deviation and per unit of the features; `r` are correlations.
#
# **Pairs of classes** has the bound of Theorem 3: on the unit cube the likelihood of a balanced
# misclassification is at most exp(−½ H₂ˣ), H₂ˣ the cross entropy. Kernels reach beyond any box, and
# what the densities hold outside is added. It is a bound for these densities, of training rows; it
# is no estimate for new ones.
#
# **Starts.** D has several local maxima. The search begins from principal components, from the
# directions of class means, of class covariances, and from random ones, and keeps the best end.
# Where hardly any other start ends near the best, more of them (`n_starts=`) may find a better one.
# Where gamma is chosen, as here, they are searched at gamma 4, where most of them end in one view,
# and the best is followed in small steps to the gamma that was chosen: views of nearly the same
# divergence would else take turns with it, and with the seed. `fit.update(train, gamma=...)` takes
# the best end at that gamma.

# %%
ax = fit.plot("starts")

# %% [markdown]
# ## Width and dimensions
#
# Narrow kernels can follow any gap between training rows; with wide ones a class is nearly normal,
# and only its mean and covariance count. Cross-validation decides:

# %%
cv = ld.cv(ld.melm, "quality ~ .", data=train, n_lambda=7, folds=5, n_starts=5)
print(cv)
ax = cv.plot()

# %% [markdown]
# The held-out deviance is that of calibrated scores: densities of a view that was made for the
# training rows are too sure of others, more so the narrower they are.
#
# How many dimensions are worth it? `grid` takes any settings:

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
# Of several classes the divergences of all pairs are added up.

# %%
wine = ld.data("wine")
cultivars = ld.melm("cultivar ~ .", data=wine, gamma=1.0)
ax = cultivars.plot()

# %%
cultivars.pairs()

# %% [markdown]
# A pair that is far apart already, as Barbera and Barolo, has by far the largest divergence, and a
# sum cares for it as much as for the others. `divergence="mean"` weighs pairs by the shares of
# their classes. In the view, flavanoids part Barolo from Barbera, alcohol, proline and colour both
# of them from Grignolino.
#
# `tidy()` has the loadings as a frame, and `augment()` puts coordinates and predictions beside the
# data, for pictures of one's own:

# %%
cultivars.augment(wine).filter(regex=r"cultivar|^\.").head(3)

# %% [markdown]
# The same wines without a look at their cultivars, by principal components:

# %%
blind = ld.melm("~ . - cultivar", data=wine)
ax = blind.plot()

# %% [markdown]
# ## Classifiers, and files
#
# Any estimator with `fit` and `predict_proba` can classify in the view, such as those of
# scikit-learn. By default the densities classify, with calibrated probabilities.

# %%
voted = fit.update(train, classifier=KNeighborsClassifier(5), gamma=fit.settings.gamma)
pd.concat({"densities": fit.evaluate(test), "neighbours": voted.evaluate(test)}).droplevel(1)

# %% [markdown]
# A fit is saved in one file, without pickle (not with an estimator of another library). It holds
# the coordinates of the training rows, at most 10,000 of them, not their features.

# %%
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "echoes.lodim"
    fit.save(file)
    again = ld.load(file)
    print(f"{file.stat().st_size / 1024:.0f} KiB")
print(f"equal predictions: {fit.predict(test).equals(again.predict(test))}")
