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
# # How to read the output
#
# What does each label in a printed report mean? `print(fit)` shows a short report, and
# `fit.summary()` a complete one, as text, HTML (in a notebook) or LaTeX (`as_latex()`). Long tables
# omit rows in the middle; `summary(full=True)` shows all rows.

# %%
import lodim as ld

cars = ld.data("autompg")
fit = ld.gbmap("mpg ~ .", data=cars)
print(fit.summary())

# %% [markdown]
# Look at these three entries first:
#
# - `Dev. ratio` is the share of the deviance that the model explains on the *training* rows.
# - `Dev. ratio (held out)` is this share on rows that cross-validation held out. Expect this
#   figure, or slightly less, for new rows.
# - `Converged: yes` means that the optimizer reached its tolerance.
#
# ## Header, all models
#
# | label | meaning |
# |---|---|
# | `Response` | left side of the formula; for two classes, the class whose probability is modelled |
# | `No. observations` | rows used by the fit |
# | `Model` | name of the function |
# | `Rows dropped (NA)` | rows with a missing response or weight; with `missing="drop"` also rows with a missing feature |
# | `Family`, `Link` | distribution and scale: gaussian (squared error, identity), binomial (log-loss, logit), multinomial (log-loss, softmax), poisson, gamma and tweedie (log), quantile and huber (identity), ordinal (cumulative logit) |
# | `Features` | columns of the design matrix: a category has one per level |
# | `Mean null deviance` | deviance per row of the model without features (the mean, or the class shares) |
# | `Mean deviance` | deviance per row of the fit, on the training rows |
# | `Dev. ratio`, `%Dev` | 1 − mean deviance / mean null deviance, as a share or in per cent; R² for a gaussian response |
# | `Dev. ratio (held out)` | this ratio for held-out rows, at the tried settings nearest to those of the fit; slightly too high, as these rows also chose the settings |
# | `Log-loss` | mean negative log-likelihood for classes: half the mean deviance |
# | `Converged` | whether the optimizer met the criterion in the notes |
# | `(by CV)` | cross-validation chose this setting |
#
# Deviance is −2 log-likelihood up to a constant. `glm` prints sums over the training rows, as R
# does. All other models print means per row, and so do `evaluate()`, `cv` and `compare` for `glm`.
#
# ## Tables, model by model
#
# ### gbmap
#
# | label | meaning |
# |---|---|
# | `Boosts (m)` | number of boosts, each of one learner (per class) |
# | `Lambda`, `L1 ratio` | penalty, and its L1 share |
# | `Activation`, `beta` | shape of a learner, and sharpness of its bend |
# | `Joint fit` | whether all learners were optimized together at the end; `(by CV)` if cross-validation compared this with boosts alone |
# | `Nonzero weights`, `Df` | number of weights that are not zero; `Df` counts up to this boost |
# | `Level` | class whose score a learner belongs to |
# | `a`, `b` | constant and sign of a learner: +1 bends f upwards, −1 downwards |
# | `\|w\|` | steepness of the learner: length of its weights, per standard deviation of the features |
# | `Active %` | share of rows on the side where the learner is not flat |
# | `Loss`, `Cum. %Dev` | training loss and deviance explained after this boost (before a joint fit) |
# | `Iter.` | iterations of the optimizer |
# | `Mean`, `Per SD` | slope of f averaged over the training rows, per unit and per standard deviation |
# | `Mean \|.\|`, `\|.\| per SD` | average absolute slope; if it is well above the absolute value of `Mean`, the slope changes sign between rows |
#
# ### proset
#
# | label | meaning |
# |---|---|
# | `Loss` (header) | loss that the weights minimize |
# | `Batches` | groups of prototypes, each with its own feature weights |
# | `Prototypes`, `Active features` | training rows and features with a weight above zero |
# | `Lambda v`, `Lambda w` | penalties of feature weights and of prototype weights |
# | `L1 ratio v`, `L1 ratio w` | L1 shares of these penalties |
# | `Candidates`, `Scoring` | rows that may become prototypes, and rows that the weights are fitted to |
# | `Eval.` | evaluations of the objective |
# | `Weight`, `Per SD` | inverse width of the kernel in a feature, per unit and per standard deviation |
# | `Familiarity` | total weight of the prototypes that resemble a row (the null model has weight 1); the table has quantiles over the training rows |
# | `Simil.`, `Impact` (explain) | similarity of a prototype, and weight times similarity |
# | `*` (explain) | dominant set: the prototypes that determine the class, whatever the others vote |
#
# ### costnet
#
# | label | meaning |
# |---|---|
# | `Priced items`, `Total price` | number of items with a price, and their total price |
# | `Budget` | largest price allowed, or the rule that chose the model |
# | `Cost of the model`, `Cost` | price of a model with everything that it needs |
# | `Df` | columns with a coefficient |
# | `Rule` | search rule that found the model |
# | `Relax` (`r=`) | coefficients are a mean of penalized and refitted ones; this is the share of the refitted ones (1 if not shown) |
# | `%Dev`, `%CV` | deviance explained on training rows and on held-out rows |
# | `Purchases` | items added (+) and dropped (−) since the row above |
# | `Price`, `In the model`, `Needed by` | price of an item; whether the formula uses it; items that need it |
# | `Estimate`, `Per SD` | coefficient per unit and per standard deviation |
# | `*` | model that `predict()` uses |
#
# ### melm
#
# | label | meaning |
# |---|---|
# | `Dimensions (k)` | number of coordinates of the view |
# | `Rank of the features` | number of linearly independent features |
# | `Gamma`, `Covariances` | kernel width relative to Silverman's rule; kind of class covariances |
# | `Divergence` (`Div.`) | what the search maximizes: `Fitting term` (`Fit`) minus `Regularizing term` (`Reg.`) |
# | `Classifier` | classifier in the view |
# | `Bal. accuracy`, `Log-loss` | mean accuracy over classes, and log-loss: `training` and `held out` |
# | `x1/SD` | loading: change of coordinate x1 per standard deviation of a feature |
# | `r(x1)` | correlation of a feature with coordinate x1 |
# | `Overlap` | upper bound of the common area of two class densities |
# | `Bal. acc.` | lower bound of the balanced accuracy, if the densities were the true ones |
# | `Start`, `Below best %` | starting point of the search, and how far its result is below the best divergence |
#
# ### ripr
#
# | label | meaning |
# |---|---|
# | `Dimensions` | features per view |
# | `Views`, `Views compared` | number of views in the model and in the search |
# | `Features used` | features in at least one view; a factor counts once |
# | `Rows unlabelled` | rows without a class, which are only used as neighbours |
# | `Prediction` | how views predict: sum of votes, or one view per row |
# | `Rows without a view` | rows with a missing feature in every view |
# | `Neighbours (k)` | number of neighbours that vote |
# | `Error`, `MSE` | share of wrong classes, or mean squared error; `leave-one-out` unless stated otherwise |
# | `x`, `y`, `z` | features of a view, as on its plot |
# | `%Rows` | share of rows for whose prediction the view has most weight |
# | `%Weight` | mean weight of the view in the predictions of the training rows |
#
# For all printed figures of `ripr`, a row is not among its own neighbours (leave-one-out). But
# these rows also chose the views, so errors on new rows may be larger.
#
# ### glm
#
# | label | meaning |
# |---|---|
# | `Df residuals`, `Df model` | rows minus coefficients; coefficients without the intercept |
# | `Null deviance`, `Residual deviance` | sums over rows |
# | `Log-likelihood`, `AIC`, `BIC` | as in R; not printed for tweedie, quantile and huber, of which lodim computes no likelihood |
# | `Dispersion` | the variance of a row is this number times the variance function of the family: 1 for binomial, Poisson and similar families, otherwise Pearson's X² divided by `Df residuals` |
# | `Dispersion` (quantile, huber) | the covariance of the estimates is this number times (X'X)⁻¹ |
# | `Residual std. error` (gaussian) | square root of the dispersion |
# | `Estimate` | change of the score per unit of the term: of the mean (identity link), the log-odds (logit) or the logarithm of the mean (log). `sex[male]` is the difference from the level of `sex` that is not listed. |
# | `Std. error` | standard error of an estimate; note [1] names its kind |
# | `t`, `z` | estimate over standard error |
# | `P>\|t\|`, `P>\|z\|` | two-sided p-value for the hypothesis that the coefficient is zero |
# | `95% interval` | confidence interval; valid if you chose the model before you saw the data |
#
# ## Results of other functions
#
# | label | printed by | meaning |
# |---|---|---|
# | `Loss`, `SE` | `compare` | mean held-out deviance, and its standard error |
# | `Diff.`, `SE(diff)` | `compare` | difference from the best model, and its standard error |
# | `95% interval` | `compare` | interval for the difference; the intervals hold for all pairs of models together, so they are wider than 1.96 SE(diff); a significantly worse model may have 0 in its interval. To compare two other models, give only these two in `models=` |
# | `Acc.`, `AUC`, `R2` | `compare` | held-out accuracy, area under the ROC curve, R² |
# | `D2` | `compare` | share of the null model's deviance that the model explains on held-out rows, for counts, amounts, quantiles and other losses than squared error (as `d2_tweedie_score` and `d2_pinball_score` in scikit-learn) |
# | `Feat.`, `Parts` | `compare` | mean number of features and of parts (learners, prototypes, views) |
# | `deviance`, `dev_ratio`, `difference` | `compare` (summary) | as `Loss`, `Dev. ratio (held out)` and `Diff.` |
# | `deviance_se`, `dev_ratio_se`, `difference_se` | `compare` (summary) | standard errors of these three |
# | `p_value` | `compare` (summary) | test of the hypothesis that the model is as good as the best one, adjusted for the number of models |
# | `features`, `parts`, `part`, `price`, `seconds` | `compare` (summary) | means over folds: columns of the design matrix, parts and their name, price of the features, time of the fit and predictions |
# | `Call`, `Folds` | `compare` (summary) | call that was repeated, and how rows are held out |
# | `mean`, `se` | `cv` | mean held-out loss and its standard error |
# | `min`, `1se` | `cv` | setting with the lowest loss; simplest setting within one standard error of the lowest loss |
# | `Replicates`, `Weights`, `Seed` | `bootstrap` | number of refits to randomly weighted rows, distribution of the weights, and random seed |
# | `Settings` | `bootstrap` | whether the refits hold the settings of the fit, or choose them again |
# | `Limits` | `bootstrap` | kind and level of the intervals |
# | `estimate` | `bootstrap` | estimate of the fit to all rows |
# | `std_error`, `bias` | `bootstrap` | standard deviation of the replicates, and their mean minus the estimate |
# | `conf_low`, `conf_high` | `bootstrap`, `tidy` | limits of an interval |
# | `Method`, `Fits`, `Rows held out` | `conformal` | how rows are held out, number of fits, and rows with a score |
# | `Score` | `conformal` | conformity score, and its quantile at a level; "lac" is one minus the probability of a class, "aps" adds the probabilities of all classes from the most probable one to it |
# | `Mean width`, `Mean size`, `Empty sets` | `conformal` | size of intervals or sets over the training rows |
# | `Pairs of halves`, `Cutoff`, `Terms` | `stability` | number of random splits of the rows in two, smallest share of a stable term, and number of terms |
# | `Share`, `Stable`, `In fit` | `stability` | share of the random halves of the rows on which the model selects a term; whether this share is at least the cutoff; whether the fit to all rows selects the term |
# | `Of`, `Rows` | `effects` | predicted quantity, and rows over which effects are averaged |
# | `Accumulated local effects` | `effects` | mean changes of the prediction between 40 quantiles of a feature (12 for each feature of a pair); each row is predicted at both ends of its interval |
# | `Partial dependence` | `effects` | mean predictions at 20 quantiles of a feature, over at most 500 rows |
# | `low`, `high`, `range` | `effects` | smallest and largest effect of a feature, and their difference |
# | `at_low`, `at_high` | `effects` | values of the feature with the smallest and the largest effect |
# | `Rows`, `Components` | `acquire` | training rows, and components of the mixture that predicts |
# | `Trade-off` | `acquire` | loss that one unit of price must save; `trade_off` in `curve` |
# | `Held-out loss` | `acquire` | mean loss of held-out rows, of which random subsets of features are known |
# | `Price` | `acquire` | price of a feature, including what it needs and is not yet paid |
# | `Saving alone` | `acquire` | expected decrease of the loss if only this feature is bought |
# | `Unlocks` | `acquire` | features that become cheaper after this purchase |
# | `Free, measure first` | `next` (acquire) | unknown features of price 0; the losses assume that they are known |
# | `Next`, `Then possibly` | `next` (acquire) | feature to buy now, and probable later purchases |
# | `Stop`, `Buy nothing` | `next` (acquire) | no purchase is worth its price; with `Buy nothing`, some unknown features are free |
# | `Prediction`, `Expected log-loss`, `Expected squared error` | `next` (acquire) | prediction from the known features, and its expected loss if nothing more is bought |
# | `policy` | `curve` (acquire) | rule: the policy; `myopic` (one feature ahead); `fixed` (same features for all rows); `random` order; `all` features; `frontier` (models of `costnet`) |
# | `Area`, `SE` | `learning_curves` | mean accuracy or log-loss over a learning curve, and its standard error over repetitions |
# | `Diff.`, `SE(diff)`, `p` | `learning_curves` | difference in area from the run that the print names, its standard error, and p-value of the paired t test over repetitions |
# | `price`, `loss`, `se`, `accuracy` | `curve` (acquire) | means over the test rows, and standard error of the loss |
#
# ## Notes
#
# - **Optimizer**: how the optimization ended. If it did not converge, a `ConvergenceWarning` was
#   raised as well.
# - **... cross-validation over ... settings**: the settings that were tried, and the lowest
#   held-out loss. If the smallest penalty has the lowest loss, the note says so; a still smaller
#   penalty may be better. The chosen setting need not have the lowest loss: it is an average of the
#   settings whose losses are almost as low.
# - **Each of ... sets of random folds alone would choose ...**: how much the choice depends on the
#   random folds. If the values in this line differ much, the data do not determine the setting. For
#   joint fits, wide data and many rows this is not measured; the note then says "on one set of
#   folds". The line does not cover the choice of a joint fit of all learners, which another seed
#   can change too.
# - **Values far outside all others are replaced**: columns, the values, and the range of the other
#   values. The fit uses a value in the middle of the others instead.
# - **Rows dropped for missing values**: columns with missing values, and the number of rows that
#   miss each. A row may miss several columns.
# - **Missing values filled in**: columns with missing values, number of rows, and the imputed
#   value.
#
# ## Checks of `fit.check`
#
# When does [`fit.check`](reference/lodim.GlmFit) report a finding? SE is a standard error; checks
# that involve chance give a false alarm with probability 0.001.
#
# | code | needs | found if |
# |---|---|---|
# | `convergence` | | the optimizer stopped before its tolerance |
# | `separation` | | (`glm`) a maximum likelihood estimate is infinite |
# | `dropped-rows` | | over 10% of the rows were dropped for missing values |
# | `constant` | | a feature did not vary in training |
# | `grid-end` | | the lowest held-out loss is at the smallest penalty |
# | `overfit` | (new rows with the response) | over half of the deviance explained in training is lost on held-out or new rows (by 4 SE) |
# | `wild-values` | rows | at most 3 rows (or 1%) lie farther from the other rows than 10 times the range of those |
# | `missing-code` | rows | a number of nines, such as -999, in two rows or more is farther from the other values than their range |
# | `leak` | rows with the response | one feature nearly determines the response: correlation, AUC or accuracy of at least 0.995 |
# | `copies` | rows | features of two columns correlate by at least 0.995 |
# | `identifier` | the training rows | integers, 90% distinct, with a name such as id |
# | `duplicates` | the training rows | 1% of the rows repeat an earlier one, ten times as many as by chance |
# | `collinearity` | the training rows | (`glm`, `costnet`) a variance inflation factor of a numeric feature is above 10 |
# | `rare-level` | the training rows | a level or class has fewer than 5 rows |
# | `empty-cells` | the training rows | a combination of levels of crossed factors has at most one row |
# | `dispersion` | the training rows | (`glm`, poisson) Pearson's statistic per degree of freedom is below 0.5 or above 1.5 (by 4 SE) |
# | `zeros` | the training rows | (`glm`, poisson) zeros exceed their expected number by half (and by 4 SE) |
# | `influence` | the training rows | (`glm`) Cook's distance is above 1; (others) one row has 25% of the deviance |
# | `extrapolation` | new rows | a value is over sqrt(n − 1) standard deviations from the training mean, or a level is new |
# | `drift` | 20 new rows | a feature's mean has moved by a quarter of a standard deviation, and by more than chance |
# | `calibration` | 40 new rows with the response | recalibration by intercept and slope would reduce deviance by 2%, and by more than chance |
#
# ## Compare features by the column per standard deviation
#
# Which features have the largest effect? Summaries sort features by the size of the estimate per
# standard deviation. This column is called `Per SD`, and `std_estimate` in `tidy()`. For `gbmap` it
# is `|.| per SD`, and `std_estimate_abs` in `tidy()`. With `standardize=False`, these are per unit,
# and summaries lack the column. The estimate itself depends on the model:
#
# | model | what an estimate is |
# |---|---|
# | `glm`, `costnet` | coefficient on the scale of the link |
# | `gbmap` | slope of f, averaged over the training rows |
# | `proset` | weight of the feature in the kernel, its inverse width |
# | `melm` | loading: change of each coordinate per unit of the feature |
# | `ripr` | share of the rows that a view predicts |

# %%
fit.tidy().head()
