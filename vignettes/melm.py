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
# Can I see the classes apart in one picture? `melm` (Czarnecki, Jozefowicz and Tabor 2015) looks
# for the linear projection to k dimensions in which classes overlap least. It maximizes the
# Cauchy-Schwarz divergence between kernel density estimates f of the projected classes,
#
# > D(V) = log ∫ f₊² + log ∫ f₋² − 2 log ∫ f₊ f₋,
#
# The divergence is zero for equal densities, and unbounded for densities that do not touch.
# Principal components ignore the classes, and discriminant analysis uses only their means.
# Densities show more: one class may surround the other, or have two parts.
#
# This page analyses radar echoes, compares the view with those of principal components and
# discriminant analysis, and then looks at three cultivars of wine.

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
# 34 numbers describe a radar echo from the ionosphere. An echo is good if it shows structure, and
# bad if the signal passed through. Every third echo is kept out for the evaluation.

# %%
kept = np.arange(len(echoes)) % 3 == 0
train, test = echoes[~kept], echoes[kept]
fit = ld.melm("quality ~ .", data=train)
print(fit)

# %% [markdown]
# `gamma` is the width of the kernels relative to Silverman's rule; here cross-validation chose it.
# The balanced accuracy is the mean over classes of the share classified correctly. For `held out`,
# each row is classified by a view fitted without it (with more than 250 rows, without its fold).
# For `training rows` it is the view made for them: among 33 features there is always some view in
# which few training rows overlap. The held-out figure is closer to that of new rows, but slightly
# optimistic, because `gamma` was chosen on the same rows. The rows of `test` took part in nothing.
#
# ## The view

# %%
ax = fit.plot()

# %% [markdown]
# Each point is an echo. The lines surround about half and nine tenths of the rows of a class. The
# background has the colour of the predicted class; it is white far from all rows. Good echoes
# resemble each other, bad ones lie all around.
#
# Arrows are the *loadings* of the features, the largest ones: one more standard deviation of a
# feature moves an echo along its arrow (all arrows are stretched by the same factor). Loadings are
# coefficients, as in a regression: if features measure almost the same, two large ones may cancel.
# `arrows="correlations"` draws correlations with the coordinates instead.

# %%
ax = fit.plot("loadings", of="correlations")

# %% [markdown]
# ## Comparison with principal components and discriminant analysis
#
# `melm` without a response gives principal components (Theorem 1 of the paper: their normal
# densities have the largest entropy). Fisher's discriminant has one direction for two classes; the
# second axis here is the largest principal component of the remainder.

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
# The same rule classifies in each view: kernel densities. (`melm` of two features in two dimensions
# has nothing to search.)

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
# The last column is the balanced accuracy on the kept-out echoes. The discriminant only uses means;
# it cannot use the fact that bad echoes lie all around the good ones.
#
# ## Summary

# %%
print(fit.summary())

# %% [markdown]
# **Divergence** is the *fitting term*, twice the cross entropy of the two densities, minus the
# *regularizing term*, the sum of their entropies. The fitting term is large if densities do not
# overlap, the regularizing term is small if each class is compact.
#
# **Loadings** are per standard deviation of the features; `tidy()` also has them per unit. `r` are
# correlations.
#
# **Pairs of classes** has the bound of Theorem 3: on the unit cube the probability of a balanced
# misclassification is at most exp(−½ H₂ˣ), where H₂ˣ is the cross entropy. Kernels extend beyond
# any box, and their mass outside is added. The bound holds for these densities of training rows; it
# is no estimate for new rows.
#
# **Starts.** D has several local maxima. The search starts from principal components, directions of
# class means, directions of class covariances, and random directions, and keeps the best end. If
# few starts end near the best one, more starts (`n_starts=`) may find a better one. If gamma is
# chosen, as here, starts are searched at gamma 4, where most of them end in one view. The best is
# followed in small steps to the chosen gamma; otherwise the seed would decide between views of
# nearly equal divergence. `fit.update(train, gamma=...)` uses the best end at that gamma.

# %%
ax = fit.plot("starts")

# %% [markdown]
# ## Width and dimensions
#
# Narrow kernels can follow any gap between training rows. With wide kernels a class is nearly
# normal, and only its mean and covariance count. Cross-validation compares the widths:

# %%
cv = ld.cv(ld.melm, "quality ~ .", data=train, n_lambda=7, folds=5, n_starts=5)
print(cv)
ax = cv.plot()

# %% [markdown]
# The held-out deviance is computed from calibrated scores. Without calibration, densities in a view
# made for the training rows are overconfident on new rows, and more so for narrow kernels.
#
# How many dimensions are useful? `grid` takes any settings:

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
# For several classes the divergences of all pairs are added.

# %%
wine = ld.data("wine")
cultivars = ld.melm("cultivar ~ .", data=wine, gamma=1.0)
ax = cultivars.plot()

# %%
cultivars.pairs()

# %% [markdown]
# A pair that is far apart already, as Barbera and Barolo, has by far the largest divergence, and
# still counts in the sum like the others. `divergence="mean"` weights pairs by the shares of their
# classes. In the view, flavanoids separate Barolo from Barbera; alcohol, proline and colour
# separate both from Grignolino.
#
# `tidy()` returns the loadings as a frame. `augment()` adds coordinates and predictions to the
# data, for your own plots:

# %%
cultivars.augment(wine).filter(regex=r"cultivar|^\.").head(3)

# %% [markdown]
# The same wines by principal components, which ignore the cultivars:

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
# A fit is saved in one file, without pickle (not with an estimator of another library).
# [Files](basics) lists what it holds of the training rows.

# %%
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "echoes.lodim"
    fit.save(file)
    again = ld.load(file)
    print(f"{file.stat().st_size / 1024:.0f} KiB")
print(f"equal predictions: {fit.predict(test).equals(again.predict(test))}")
