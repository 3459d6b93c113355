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
# Labels are expensive: which rows should an expert label next? Active learning (Fiterau 2014, ch.
# 3) lets the model suggest them. With `ripr` the expert is also shown the few features in which to
# look at each row.
#
# `ld.active` needs a few labelled rows, a pool of unlabelled ones, and any lodim model for classes.
# The example is radar returns from the ionosphere, good (they show structure) or bad. A quarter of
# the rows is kept out for testing; of the others, 24 labels are known.

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
# ## Asking
#
# `query` returns the rows of the pool to label next: their score, the predicted class, and the view
# in which to look at them. (`pool` has a column of labels here, which is ignored.)

# %%
asked = learner.query(6)
asked.iloc[:, :3]

# %% [markdown]
# The expert sees the first row as the star, in the views of the current model.

# %%
print(learner.fit.explain(asked.iloc[[0]]))

# %%
axes = learner.fit.plot(row=asked.iloc[[0]])

# %% [markdown]
# `teach` takes the labels by row label, and the model is refitted from scratch.

# %%
learner.teach(answers[asked.index])
print(learner)

# %% [markdown]
# `teach` raises an error for a row that is not in the pool, a row that already has a label, and a
# missing label:

# %%
try:
    learner.teach({asked.index[0]: "good"})
except ld.DataError as error:
    print(error)

# %% [markdown]
# ## When to stop
#
# `learner.stop` is None until the rule says stop. Without further labels one cannot know the error
# of a model, but one can see whether more labels still change it. `Kappa` compares the predictions
# for the first pool with those of the round before (Cohen's kappa). The rule stops once its mean
# over three rounds reaches 0.99 (Bloodgood and Vijay-Shanker 2009). `agreement=` and `rounds=`
# change the limits; with test rows, `target=` is an acceptable error.
#
# `replay` queries and teaches from known labels, to simulate a run:

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
# - `"committee"`: rows on which the views of the model disagree (Eq. 3.3); of other models, fits to
#   bootstraps.
# - `"diverse"`, the default: such rows too, drawn so that they are far from each other and from
#   those that are labelled, as k-means++ draws centres.
# - `"infogain"`: rows whose label is expected to lower the entropy of all others most.
# - `"margin"`: rows whose two most probable classes are closest.
# - `"entropy"`: the opposite of uncertainty: rows that are likely to fit the model.
# - `"random"`.
# - A function of one's own, of the fit and the rows of the pool: it gives a number for each row.
#
# One run is not enough to compare scores. `learning_curves` repeats each of them from the same
# first rows, and tests their paired differences.

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
# `Area` is the mean height of a curve. `Difference` compares it with that of random choice, run by
# run, and `p` is from the paired t test. The plots on the right are the win/loss graphs of the
# thesis (Figs. 7.6 and 7.7): −log₁₀ p after each round, above zero if `"diverse"` wins. Between the
# dashed lines the difference is not significant.
#
# The differences are small compared with those between first samples. A single run proves nothing,
# and eight prove little: `benchmarks/active.py` runs more, on five data sets.
#
# ## Noise that cannot be learnt
#
# A score that looks for doubt finds noise. In these synthetic rows, two views determine the class
# of most rows; the others lie close together and have random labels. A batch of distant rows asks
# about such a cluster only a few times.


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
# Any classifier of lodim can be used; its committee is fitted to bootstraps. Gains over random
# choice in mean accuracy (`benchmarks/active.py`, 10 repetitions, 12 to 108 labels): proset on
# ionosphere 0.038 with "committee" (p = 3e-4), 0.026 with "diverse" (p = 0.003), 0.018 with
# "uncertainty" and "margin" (p = 0.009); no significant difference on heart. gbmap on heart 0.018
# to 0.019 with "committee", "uncertainty" and "margin", 0.012 with "diverse" (p from 0.12). So use
# "committee", or "diverse", which is safe if labels are noisy; "margin" or "uncertainty" if ten
# more fits per round take too long.

# %%
proset = ld.active(ld.proset, "quality ~ .", labelled, pool, test=test, committee=5, lambda_v=0.05)
print(proset.replay(answers, 24, rounds=3))

# %% [markdown]
# ## Without any labels
#
# With `None` for the labelled rows, the first queries are random, until the model can be fitted.

# %%
cold = ld.active(ld.proset, "quality ~ .", None, pool, test=test, lambda_v=0.05, score="margin")
print(cold.replay(answers, 12, rounds=3))
