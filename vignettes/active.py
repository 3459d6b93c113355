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
# # Learning from few labels
#
# If labels are expensive, which rows should an expert label next? In active learning (Fiterau 2014,
# ch. 3) the model suggests these rows. With `ripr`, the expert also sees the few features in which
# the model compares each row.
#
# `ld.active` needs a few labelled rows, a pool of unlabelled rows, and a lodim model for classes.
# The example is radar returns from the ionosphere, which are good (they show structure) or bad. A
# quarter of the rows is held out for testing. Of the remaining rows, 24 have known labels.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import lodim as ld

pd.set_option("display.precision", 4)

radar = ld.data("ionosphere")
rng = np.random.default_rng(3)
order = rng.permutation(len(radar))
test, rest = radar.iloc[order[:88]], radar.iloc[order[88:]]
labelled, pool = rest.iloc[:24], rest.iloc[24:]
answers = pool["quality"]  # what the expert would say

# %%
learner = ld.active(ld.ripr, "quality ~ .", labelled=labelled, pool=pool, test=test)
print(learner)

# %% [markdown]
# ## Ask for labels
#
# `query` returns the rows of the pool to label next, with their score, the predicted class, and the
# view with most weight. (In this example `pool` has a column of labels, which `query` ignores.)

# %%
asked = learner.query(6)
asked.iloc[:, :3]

# %% [markdown]
# The explanation and the plot show the first of these rows, as a star, in the views of the current
# model.

# %%
print(learner.fit.explain(asked.iloc[[0]]))

# %%
axes = learner.fit.plot(row=asked.iloc[[0]])

# %% [markdown]
# `teach` receives the new labels, indexed by row label, and refits the model.

# %%
learner.teach(answers[asked.index])
print(learner)

# %% [markdown]
# `teach` raises an error if a row is not in the pool, if it already has a label, or if the new
# label is missing:

# %%
try:
    learner.teach({asked.index[0]: "good"})
except ld.DataError as error:
    print(error)

# %% [markdown]
# ## When to stop
#
# `learner.stop` is None as long as more labels are useful. Without further labels the error of a
# model is unknown, but one can measure whether new labels still change its predictions. `Kappa` is
# the agreement between the predictions of this round and of the previous round for the rows of the
# first pool (Cohen's kappa). The rule says stop when the mean of kappa over three rounds is at
# least 0.99 (Bloodgood and Vijay-Shanker 2009). `agreement=` and `rounds=` change these limits. If
# you give test rows, `target=` is an error that is low enough to stop.
#
# `replay` simulates a run with known labels: it repeats `query` and `teach`.

# %%
while learner.stop is None and len(learner.pool):
    learner.replay(answers[learner.pool.index], 12, rounds=1)
print(learner)

# %%
ax = learner.plot()

# %% [markdown]
# ## Which score?
#
# - `"uncertainty"`: rows whose classes are most evenly probable (Eq. 3.2).
# - `"committee"`: rows on which the views of `ripr` disagree (Eq. 3.3). For other models, rows on
#   which fits to bootstrap samples disagree.
# - `"diverse"`, the default: rows with a high committee score that are also far from each other and
#   from labelled rows. They are drawn as k-means++ draws centres.
# - `"infogain"`: rows whose label is expected to lower the entropy of the predictions for all other
#   rows most.
# - `"margin"`: rows whose two most probable classes have the most similar probabilities.
# - `"entropy"`: the opposite of uncertainty: rows whose predicted class is most probable.
# - `"random"`: random rows.
# - Your own function of the fit and the rows of the pool, which returns a number for each row.
#
# One run is not enough to compare scores. Here each score is used from the same first rows, for
# several random splits, and `learning_curves` tests the paired differences.

# %%
scores = ("random", "diverse", "uncertainty", "committee", "infogain", "entropy")
runs = {score: [] for score in scores}
for seed in range(8):
    shuffled = radar.sample(frac=1.0, random_state=seed)
    held_out, known, unknown = shuffled[:88], shuffled[88:112], shuffled[112:]
    for score in scores:
        run = ld.active(
            ld.ripr, "quality ~ .", known, unknown, test=held_out, score=score, seed=seed
        )
        runs[score].append(run.replay(unknown["quality"], 24, rounds=7))
curves = ld.learning_curves(runs)
print(curves)

# %%
figure, axes = plt.subplots(1, 2, figsize=(11.5, 4.2), layout="constrained")
curves.plot(ax=axes[0])
ax = curves.plot("winloss", axes[1], of="diverse")

# %% [markdown]
# `Area` is the mean accuracy over a learning curve. `Difference` is the mean difference in area
# from random choice in the same run, and `p` is from the paired t test. The plot on the right is
# the win/loss graph of the thesis (Figs. 7.6 and 7.7): it shows −log₁₀ p after each round, above
# zero if `"diverse"` is better. Between the dashed lines the difference is not significant.
#
# The differences between scores are small compared with the differences between random splits. One
# run proves nothing, and eight runs prove little: `benchmarks/active.py` has more runs, on five
# data sets.
#
# ## Rows with random labels
#
# Scores that select uncertain rows also select rows whose label is pure noise. In this synthetic
# example, two views determine the class of most rows. The other rows lie close together and have
# random labels. The score `"diverse"` selects distant rows, so it asks for only a few labels of
# this cluster.


# %%
def noisy(seed, n_noise=100):
    """Rows of two informative views, and a heap of rows with random labels."""
    rows = ld.informative_views(2, 200, seed=seed)
    draw = np.random.default_rng([seed, 1])
    columns = rows.columns.drop("y")
    heap = pd.DataFrame(0.5 + 0.06 * draw.normal(size=(n_noise, len(columns))), columns=columns)
    heap["y"] = draw.integers(0, 2, n_noise)
    tested = rows.sample(150, random_state=seed)
    both = pd.concat([rows.drop(tested.index), heap], ignore_index=True)
    return both.sample(frac=1.0, random_state=seed), tested


heaps = {score: [] for score in scores}
for seed in range(6):
    shuffled, tested = noisy(seed)
    for score in scores:
        run = ld.active(
            ld.ripr, "y ~ .", shuffled[:40], shuffled[40:], test=tested, score=score, seed=seed
        )
        heaps[score].append(run.replay(shuffled["y"][40:], 30, rounds=6))
noise = ld.learning_curves(heaps)
print(noise)

# %%
ax = noise.plot()

# %% [markdown]
# ## Other models
#
# `ld.active` works with any classifier of lodim. Its committee consists of fits to bootstrap
# samples. The table has the gain in mean accuracy over random choice (`benchmarks/active.py`, 10
# repetitions, 12 to 108 labels).
#
# | model and data | "committee" | "diverse" | "uncertainty", "margin" |
# |---|---|---|---|
# | proset, ionosphere | 0.038 (p = 3e-4) | 0.026 (p = 0.003) | 0.018 (p = 0.009) |
# | gbmap, heart | 0.018 to 0.019 (not significant) | 0.012 (not significant) | 0.018 to 0.019 (not significant) |
#
# proset on heart has no significant difference either. So use "committee", or "diverse" if labels
# may be wrong. If ten more fits per round take too long, use "margin" or "uncertainty".

# %%
proset = ld.active(ld.proset, "quality ~ .", labelled, pool, test=test, committee=5, lambda_v=0.05)
print(proset.replay(answers, 24, rounds=3))

# %% [markdown]
# ## Without any labels
#
# If you give `None` instead of labelled rows, the first queries are random, until there are enough
# labels to fit the model.

# %%
cold = ld.active(ld.proset, "quality ~ .", None, pool, test=test, lambda_v=0.05, score="margin")
print(cold.replay(answers, 12, rounds=3))
