"""gbmap(): gradient boosting mapping, from a formula to a fit."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from lodim.fitting.fit_model import fitted_by
from lodim.fitting.model import Model, Option, Penalty, lambda_grid
from lodim.models.gbmap import boost
from lodim.models.gbmap.assemble import assemble
from lodim.models.gbmap.fit import GbmapFit
from lodim.models.gbmap.refit import reweigh
from lodim.models.gbmap.settings import Settings, is_wide, needs
from lodim.selection.tuning import choose
from lodim.typing import Data, DType, Engine, Family, Missing, Offset, RowValues

QUICK_LAMBDAS = 9  # penalties tried where none is given
SMALLER = 4  # and beyond them, where the least does best


REFERENCE = r"""@article{patron2024gbmap,
  title   = {Gradient Boosting Mapping for Dimensionality Reduction and Feature Extraction},
  author  = {Patron, Anri and Prasad, Ayush and Luu, Hoang Phuc Hau and Puolam{\"a}ki, Kai},
  journal = {arXiv preprint arXiv:2405.08486},
  year    = {2024}
}"""


class Gbmap(Model):
    """Gradient boosting mapping: m and lambda_ are chosen by cross-validation."""

    name = "gbmap"
    reference = REFERENCE
    settings = Settings
    penalties: ClassVar = {"lambda_": Penalty(boost.lambda_max)}
    stage_setting = "m"
    after_stages = ("refit",)
    warm_start = True
    compiled_stages = True
    streams = True
    in_place = True
    on_workers = True
    options = (
        Option("--lambda", "lambda_", float, "penalty; default: by cross-validation"),
        Option("--m", "m", int, "number of boosts; default: by cross-validation"),
        Option("--beta", "beta", float, "softness of the softplus; default: 10"),
    )
    plots = ("loss", "effects", "embedding")
    fit_stages = staticmethod(boost.fit_stages)
    combine = staticmethod(boost.combine)
    assemble = staticmethod(assemble)
    reweigh = staticmethod(reweigh)
    needs = staticmethod(needs)

    def fit(self, problem):
        """Choose m and lambda_ if they are open, and return the fit of a problem."""
        open_, selection = problem.settings.lambda_ is None, None
        if open_ or problem.settings.m is None:
            problem, selection = _choose(problem, open_)
        return self.run(problem, selection)

    def selects(self, settings):
        """Whether weights may be zero."""
        return settings.l1_ratio > 0.0


MODEL = Gbmap()


def _choose(problem, is_open):
    """The problem with m and lambda_ chosen, and the table of what was tried.

    Where lambda_ is open and the least that was tried does best, smaller ones are tried too.
    """
    exact, batch, grid = problem.settings, problem.batch, {}
    n, p = batch.n, batch.X.shape[1]
    if is_open:
        # The first quarter (in log) of a path is too near the null model to be chosen.
        grid["lambda_"] = lambda_grid(problem, "lambda_", QUICK_LAMBDAS + 3)[3:]
    tried = replace(problem, settings=exact.for_comparison(n, p))
    how = {"most_draws": 1 if is_wide(n, p) else None, "runs": {}}
    chosen, selection = choose(tried, grid, **how)
    if is_open and selection["weight"].idxmax() == len(selection) - 1:
        values = grid["lambda_"]
        beyond = values[-1] * (values[-1] / values[-2]) ** np.arange(1, SMALLER + 1)
        chosen, selection = choose(tried, {"lambda_": np.r_[values[3:], beyond]}, **how)
    given = {name: getattr(exact, name) for name in ("tol", "ftol", "n_starts")}
    return replace(chosen, settings=replace(chosen.settings, **given)), selection


@fitted_by(MODEL)
def gbmap(
    formula: str,
    data: Data,
    *,
    family: Family | None = None,
    m: int | None = None,
    lambda_: float | None = None,
    beta: float = 10.0,
    l1_ratio: float = 0.0,
    activation: Literal["softplus", "identity"] = "softplus",
    n_starts: int = 2,
    refit: Literal["none", "joint"] | None = None,
    weights: RowValues | None = None,
    offset: Offset | None = None,
    missing: Missing = "indicator",
    groups: RowValues | None = None,
    standardize: bool = True,
    dtype: DType = "float64",
    seed: int = 0,
    threads: int | None = None,
    engine: Engine = "cpu",
    sample: int | None = None,
    client: Any = None,
    progress: bool | None = None,
    control: dict[str, Any] | None = None,
) -> GbmapFit:
    """Gradient boosting mapping (Patron et al. 2024): boosted one-layer perceptrons.

    f(x) = offset + sum_{j=1..m} f_j(x), f_j(x) = a_j + b_j g(w_j'x~), x~ = (1, x),
    b_j in {-1, 1}, g(z) = log(1 + exp(beta z)) / beta (Eqs. 1-2). Boost j minimizes the mean loss
    of f_1 + ... + f_j plus lambda_ mean_k((1 - l1_ratio) w_jk^2 + l1_ratio |w_jk|) over (a_j, w_j)
    for both signs and keeps the better (Eqs. 3-4). Its learners are an embedding whose L1 distance
    ignores what does not matter for the response (Eqs. 5-8).

    Parameters
    ----------
    formula : str
        Such as "mpg ~ .", "np.log(price) ~ . - id", "y ~ x1 * x2 + bs(age, df=4)".
        Categories in order (of pandas) have a column for each level but the first, 1 where it is
        reached; C(x) forgets the order.
    data : frame, or path
        pandas, polars, pyarrow, or a dict of columns. What tidy() and glance() give is of its kind.
        Or what is read part by part: Parquet, CSV or Arrow files (a path, a pattern, a folder), a
        pyarrow Dataset, a polars LazyFrame, a Dask DataFrame.
    family : {"gaussian", "binomial", "multinomial"}, optional
        Loss (y - f)^2; log-loss of two classes; softmax log-loss of K classes, with one learner a
        class in each boost. Default: by the response.
    m : int, optional
        Number of boosts. Default: chosen with lambda_ by cross-validation.
    lambda_ : float, optional
        Penalty, for features (and a numeric response) in standard deviations. Default: chosen.
    beta : float
        Softness of the softplus, for a response in standard deviations: 1 is smooth, 10 nearly
        a hinge max(0, z). Without effect with the identity activation.
    l1_ratio : float in [0, 1]
        Share of the L1 penalty; zeros appear among the weights. The ridge has no factor 1/2, so
        that l1_ratio=r weighs both parts as alpha = r / (2 - r) does in glmnet.
    activation : {"softplus", "identity"}
        With "identity" the first boost is ridge or logistic regression and the later ones vanish
        (Lemma 1).
    n_starts : int
        Starts followed for each sign: hinges that promise most, along directions found in the data
        (the slope of the loss, principal Hessian directions, mixtures of rows). With the identity
        activation all end alike.
    refit : {"none", "joint"}, optional
        "joint": after the last boost all (a_j, w_j) are fitted together from where they are, by
        Newton's method, on the CPU: the mean loss plus the sum of the boosts' penalties falls to a
        minimum. Default: chosen, see Notes.
    weights : column name, array (n,) or "balanced", optional
        Row weights.
        "balanced": all classes get the same total weight, n / (K n_k) for each of the n_k rows of
        class k (n rows, K classes). Not for a numeric response.
    offset : column name or array (n,), optional
        A known part of the score (an array (n, K) for K classes).
    missing : {"indicator", "drop"}
        What becomes of rows that miss a feature. "indicator": a missing number is the mean of the
        training rows, beside a column such as `age[missing]` where training had gaps in it; a
        missing category is a level of its own, or where training had none the mean of its columns.
        "drop": they are left out, and answered by NaN. Rows without response or weight are left
        out in any case.
    groups : column name or array (n,), optional
        Rows of equal values, such as those of a patient, are held out together wherever folds are
        drawn. A row without a group is refused.
    standardize : bool
        Scale features to unit standard deviation; they are centred in any case.
    dtype : {"float64", "float32"}
        Of the stored features; sums are in float64.
    seed : int
        Of the folds that choose m and lambda_, and of samples of many rows; equal seeds give equal
        bits, whatever `threads` is. Starts do not depend on it, nor folds on the order of rows or
        columns or on the names of classes.
        On autompg, diabetes and heart 8 seeds moved predictions by 0.06, 0.04 and 0.03 residual
        standard deviations (root mean square), those of LassoCV or LogisticRegressionCV by 0.06,
        0.04 and 0.00, of random forests by 0.06, 0.08 and 0.09, and of HistGradientBoosting with
        early stopping by 0.19, 0.22 and 0.20 (`benchmarks/seeds.py`).
    threads : int, optional
        All that are available by default.
    engine : {"cpu", "cuda", "auto"}
        Where passes over the features run. "cuda": on an NVIDIA GPU (needs the extra `cuda`), which
        holds a copy of the features during the fit; `predict` goes there in blocks. "auto": there
        if the features take 256 MB or more and such a GPU with room for them is usable, else on
        the CPU; `predict` then stays on the CPU, since it reads new rows once. The GPU's kernels
        have been compared with the CPU's in Numba's simulator, not yet on hardware.
    sample : int, optional
        So many rows alone, drawn at random by where they stand and `seed`; all by default.
    client : dask.distributed.Client, optional
        Its workers hold the features, where `data` are files that they can read, or a Dask frame.
    progress : bool, optional
        Show progress on standard error: `True` at once (bars if tqdm is installed), `False` never;
        by default a line after three seconds.
    control : dict, optional
        max_iter (500, most evaluations of a learner after its starts have been compared), tol and
        ftol (a boost ends where no gradient is above tol, or where it can lower the objective by no
        more than the share ftol, as two steps in a row and the curvature say; 1e-8 and 1e-12 up to
        65,536 rows, ftol 1e-8 there with an L1 penalty or over 510 features; of more rows see
        Notes, with an L1 penalty 1e-5 and 1e-6; 1e-8 and 1e-13 with the identity activation),
        penalize_intercept (False; the authors' code penalizes the weight of the constant too,
        which makes the fit depend on the features' origin), max_stages (100, most boosts tried
        where m is chosen), path_stages (10, boosts of `path` where m is not given),
        reference_rows (10,000, training rows kept for neighbours and drift),
        scratch (None; a folder: a file in it holds the features while the model is fitted. By
        default they are in memory, or of files, lazy and Dask frames, where they would take more
        than half of what is free of it, in such a file in the system's temporary folder).

    Returns
    -------
    GbmapFit

    Raises
    ------
    FormulaError, DataError, ArgumentError
    MissingExtraError, DeviceError
        engine="cuda" without the extra `cuda`; or no GPU is usable, or X does not fit it.

    See Also
    --------
    GbmapFit, cv, path

    Notes
    -----
    Where m or lambda_ is not given, gbmap chooses by the deviance of held-out rows: five folds,
    drawn twice up to 2,000 rows and once up to 4,000; one fold of five held out beyond, on at most
    20,000 rows drawn at random. Nine penalties race: every 10 boosts those leave that are over two
    standard errors behind, and after any boost those that are over four behind and rise. Boosts are
    added until 15 have lowered the loss by no more than a twentieth of its standard error, or
    `max_stages` are tried. What is taken is the centre of the settings that cannot be told apart:
    each weighs exp(-2 (loss - least loss) / standard error), lambda_ is the weighted mean in log,
    to half a step of the grid, and m that of the boosts there, to the nearest of 1, 2, ..., 10, 12,
    15, 20, 25, 30, 40, 50, 60, 80, 100. The least loss itself lies, by the draw of the folds, now
    here and now there. `fit.selection` has the curve. Where the least penalty does best, four
    smaller ones are tried too; `summary` says where a choice stands at the edge. Fits of folds
    follow one start for each sign; from 64 columns (and rows) on the folds are drawn once, and
    their fits end at tol 1e-5 and ftol 1e-6, rounded to 12 bits.

    A boost is best beside the earlier ones alone. A joint refit makes every learner best beside all
    others, at the same m and lambda_: the embedding's coordinates are then those of the refitted
    learners, and `staged` and `first` give their partial sums, which are no boosting path and
    predict poorly until the last. Where m or lambda_ is open and `refit` is not given, five folds
    (one beyond 4,000 rows) compare the deviance of held-out rows with and without it: it is made
    where it lowers that by at least 2 %. It is not tried with fewer than four rows a
    parameter, d = m (2 + p) of each score, since it then hangs on rounding in which of many minima
    it ends; nor where d is over 1,000, n d^2 over 2.5e9, under an L1 penalty or with the identity
    activation; nor where m and lambda_ are given, as in the paper. refit="joint" is made always.
    `path` and `cv` compare boosts before a refit.

    Up to 65,536 rows boosts are solved so tightly that the fit is a smooth function of the data:
    rounding then cannot decide where the next boost ends. Up to 4,096 rows of fewer than 64 columns
    (without L1 penalty) they are solved by Newton's method, in few steps; all others by L-BFGS,
    whose many steps may lead from starts that rounding sets apart to other minima: starts are
    rounded to 12 bits of the largest weight, and up to 510 columns ends are followed to the last
    digit by a few of Newton's steps (unless tol or ftol are given). Of more rows, a boost ends
    where ten further steps promise to lower the objective by no more than a quarter of
    the standard error of the mean loss (unless tol or ftol are given); from 64 features on it
    begins in the span of the principal Hessian directions of all rows, or of 16,384 rows where
    these are 128 a feature.

    Learners that lower the objective by less than 1e-5 of it add nothing and are left out, but for
    those of the first boost; before a joint refit those of boosts that lower the deviance by less
    than 1e-3 of it.

    A numeric response is scaled to unit standard deviation within, so that lambda_ and beta mean
    the same for any unit; estimates and predictions are in the units of the data.

    Away from the training rows f is linear: `predict` warns of rows whose response it puts far
    beyond the training range, and keeps them within it with clip=True.

    A saved fit holds, of single training rows, the response and the embedding, from which features
    can be computed where there are as many learners as features: of at most `reference_rows` rows,
    which neighbours and drift need. control={"reference_rows": 0} keeps none.

    References
    ----------
    Patron, Prasad, Luu & Puolamaki (2024). Gradient Boosting Mapping for Dimensionality Reduction
    and Feature Extraction.

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> fit = ld.gbmap("mpg ~ weight + model_year", cars, m=3, lambda_=0.1)
    >>> fit.coef().round(3).to_dict()
    {'weight': -0.007, 'model_year': 0.72}
    >>> fit.predict(cars[:2]).round(1).tolist()
    [14.0, 13.6]
    """
