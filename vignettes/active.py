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
# If labels are expensive, which rows should an expert label next? In active learning, a model
# suggests these rows (Fiterau 2014, ch. 3). With `ripr`, the expert also sees the features in which
# the model compares each row with others.
#
# `ld.active` needs a few labelled rows, a *pool* of rows without labels, and a lodim model for
# classes. The example is radar returns from the ionosphere. A return is good (it shows structure)
# or bad. A quarter of the rows is held out for testing. 24 of the remaining rows have known labels.
# `max_dim=2` makes the fits faster: each view has at most two features.

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
answers = pool["quality"]  # labels that the expert would give

# %%
settings = {"max_dim": 2, "agreement": 0.96}
learner = ld.active(ld.ripr, "quality ~ .", labelled, pool, test=test, **settings)
print(learner)

# %% [markdown]
# ## Ask for labels
#
# `query` returns the rows of the pool to label next. The columns are the score of each row, the
# predicted class, and the view (one or two features) with most weight in the prediction. (Here
# `pool` has a column of labels, which `query` ignores.)

# %%
asked = learner.query(6)
asked.iloc[:, :3]

# %% [markdown]
# The next two cells explain the prediction for the first of these rows. In the plot, the row is a
# star.

# %%
print(learner.fit.explain(asked.iloc[[0]]))

# %%
axes = learner.fit.plot(row=asked.iloc[[0]])

# %% [markdown]
# `teach` receives the new labels, indexed by the row labels of the pool, and refits the model.

# %%
learner.teach(answers[asked.index])
print(learner)

# %% [markdown]
# `teach` raises an error if a row is not in the pool, already has a label, or gets no label:

# %%
try:
    learner.teach({asked.index[0]: "good"})
except ld.DataError as error:
    print(error)

# %% [markdown]
# ## When to stop
#
# `learner.stop` is None as long as more labels are useful. `Kappa` in the print shows whether new
# labels still change the predictions. It is Cohen's kappa: the agreement between the predictions of
# this round and of the previous round for the rows of the initial pool (at most 2,000 random ones).
# The rule is to stop when the mean of kappa over three rounds is at least 0.99 (Bloodgood and
# Vijay-Shanker 2009). `agreement=` and `rounds=` change these limits; the example has
# `agreement=0.96`. If you have test rows, you can instead give an error that is low enough:
# `target=`.
#
# `replay` simulates active learning with known labels: it repeats `query` and `teach`. Here it
# stops after eight rounds, with 156 labels:

# %%
while learner.stop is None and len(learner.pool):
    learner.replay(answers[learner.pool.index], 18, rounds=1)
print(learner)

# %%
ax = learner.plot()

# %% [markdown]
# ## Which score?
#
# `score=` chooses how rows of the pool are ranked:
#
# - `"uncertainty"`: rows whose classes are most evenly probable (Eq. 3.2).
# - `"committee"`: rows on which the members of a committee disagree (Eq. 3.3). Members are the views
#   of `ripr`; for other models, fits to bootstrap samples.
# - `"diverse"`, the default: rows with a high committee score that are also far from each other and
#   from labelled rows.
# - `"infogain"`: rows whose label is expected to reduce most the uncertainty (entropy) of the
#   predictions for all other rows.
# - `"margin"`: rows whose two most probable classes have the most similar probabilities.
# - `"entropy"`: rows with the lowest entropy of the class probabilities, whose prediction is most
#   certain. (Other packages give this name to the opposite choice, here `"uncertainty"`.)
# - `"random"`: random rows.
# - Your own function of the fit and the rows of the pool, which returns a number for each row.
#
# One run is not enough to compare scores, the rules that select rows to label. The next cell makes
# five random splits of the rows. In each split, every score starts from the same 24 labelled rows.
# Within each split, `learning_curves` then compares, by a paired test, the accuracies of the fits
# that result from each score. (`k=10`, the number of neighbours, makes the fits faster.)

# %%
scores = ("random", "diverse", "uncertainty", "entropy")
settings = {"max_dim": 2, "k": 10}
runs = {score: [] for score in scores}
for seed in range(5):
    shuffled = radar.sample(frac=1.0, random_state=seed)
    held_out, known, unknown = shuffled[:88], shuffled[88:112], shuffled[112:]
    chosen = {"test": held_out, "seed": seed, **settings}
    for score in scores:
        run = ld.active(ld.ripr, "quality ~ .", known, unknown, score=score, **chosen)
        runs[score].append(run.replay(unknown["quality"], 24, rounds=4))
curves = ld.learning_curves(runs)
print(curves)

# %%
figure, axes = plt.subplots(1, 2, figsize=(11.5, 4.2), layout="constrained")
curves.plot(ax=axes[0])
ax = curves.plot("winloss", axes[1], of="diverse")

# %% [markdown]
# The printed table compares each score with random choice. `Area` is the mean accuracy over a
# learning curve, and `SE` its standard error over splits. `Diff.` is the mean difference in area
# from random choice in the same split, and `p` the p-value of its paired t test.
#
# In the plot on the right, each line compares `"diverse"` with another score. Above zero,
# `"diverse"` has the higher mean accuracy, below zero the lower one. The distance from zero is
# −log₁₀ of the p-value of the difference. Between the dashed lines the difference is not
# significant.
#
# Here `"entropy"` selects the rows with the lowest entropy, whose class is already clear (see the
# list above). It is worse than random choice (p = 0.004). The other differences from random choice,
# 0.01 and less, are not significant: the standard error over random splits is as large. Five splits
# are few; `benchmarks/active.py` has more, on five data sets.
#
# ## Rows with random labels
#
# Scores that select uncertain rows also select rows whose label is random. The next cell generates
# an example. Two views (pairs of features) determine the class of most rows. The other rows lie
# close together and have random labels. The score `"diverse"` selects rows that are far apart, so
# it asks for only a few of these useless labels. In four random samples, its mean accuracy is 0.05
# above that of random choice (p = 0.02). `"uncertainty"` is 0.03 above random choice, which is
# not significant.


# %%
def noisy(seed, n_noise=100):
    """Return rows of two informative views, and a cluster of rows with random labels."""
    rows = ld.informative_views(2, 200, seed=seed)
    draw = np.random.default_rng([seed, 1])
    columns = rows.columns.drop("y")
    heap = pd.DataFrame(0.5 + 0.06 * draw.normal(size=(n_noise, len(columns))), columns=columns)
    heap["y"] = draw.integers(0, 2, n_noise)
    tested = rows.sample(150, random_state=seed)
    both = pd.concat([rows.drop(tested.index), heap], ignore_index=True)
    return both.sample(frac=1.0, random_state=seed), tested


heaps = {score: [] for score in scores}
for seed in range(4):
    shuffled, tested = noisy(seed)
    chosen = {"test": tested, "seed": seed, **settings}
    for score in scores:
        run = ld.active(ld.ripr, "y ~ .", shuffled[:40], shuffled[40:], score=score, **chosen)
        heaps[score].append(run.replay(shuffled["y"][40:], 30, rounds=4))
noise = ld.learning_curves(heaps)
print(noise)

# %%
ax = noise.plot()

# %% [markdown]
# ## Other models
#
# `ld.active` works with any classifier of lodim. For models other than `ripr`, the score
# `"committee"` uses fits to bootstrap samples. The table has the gain in mean accuracy over random
# choice (`benchmarks/active.py`, 10 repetitions, 12 to 108 labels).
#
# | model and data | "committee" | "diverse" | "uncertainty", "margin" |
# |---|---|---|---|
# | proset, ionosphere | 0.038 (p = 3e-4) | 0.026 (p = 0.003) | 0.018 (p = 0.009) |
# | gbmap, heart | 0.018 to 0.019 (not significant) | 0.012 (not significant) | 0.018 to 0.019 (not significant) |
#
# The table omits the fits of `proset` to heart, where no score differs significantly from random
# choice. In the table, no score gains more than `"committee"`. So use `"committee"`, or `"diverse"`
# if labels may be wrong. Both need ten more fits per round; if these take too long, use `"margin"`
# or `"uncertainty"`.

# %%
proset = ld.active(ld.proset, "quality ~ .", labelled, pool, test=test, committee=5, lambda_v=0.05)
print(proset.replay(answers, 24, rounds=3))

# %% [markdown]
# ## Without any labels
#
# If you give `None` instead of labelled rows, the first queries are random rows, until there are
# enough labels for a fit.

# %%
cold = ld.active(ld.proset, "quality ~ .", None, pool, test=test, lambda_v=0.05, score="margin")
print(cold.replay(answers, 12, rounds=3))
