"""The public function gbmap() and the declaration of the model."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from lodim.design.terms import directions
from lodim.fitting.fit_model import fitted_by
from lodim.fitting.model import Model, Option, Penalty, lambda_grid
from lodim.models.gbmap import boost, refit
from lodim.models.gbmap.assemble import assemble
from lodim.models.gbmap.fit import GbmapFit
from lodim.models.gbmap.settings import ROUND, Settings, is_wide, needs
from lodim.selection.tuning import choose
from lodim.typing import Data, DType, Engine, Family, Missing, NumberFamily, Offset, RowValues

N_LAMBDAS = 23  # penalties on the grid
FURTHER = 2  # number of penalties tried next if an end is best


REFERENCE = r"""@article{patron2024gbmap,
  title   = {Gradient Boosting Mapping for Dimensionality Reduction and Feature Extraction},
  author  = {Patron, Anri and Prasad, Ayush and Luu, Hoang Phuc Hau and Puolam{\"a}ki, Kai},
  journal = {arXiv preprint arXiv:2405.08486},
  year    = {2024}
}"""


class Gbmap(Model):
    """The model gbmap: its settings, and the steps from data to a fit."""

    name = "gbmap"
    reference = REFERENCE
    families = (*Model.families, "poisson", "gamma", "tweedie", "quantile", "huber", "ordinal")
    settings = Settings
    penalties: ClassVar = {"lambda_": Penalty(boost.lambda_max)}
    stage_setting = "m"
    learning: ClassVar = {"compress_tails": True}
    warm_start = True
    compiled_stages = True
    streams = True
    on_workers = True
    options = (
        Option("--lambda", "lambda_", float, "penalty; default: by cross-validation"),
        Option("--m", "m", int, "number of boosts; default: by cross-validation"),
        Option("--beta", "beta", float, "sharpness of the softplus; default: 10"),
    )
    plots = ("loss", "effects", "embedding")
    fit_stages = staticmethod(refit.fit_stages)
    combine = staticmethod(refit.combine)
    assemble = staticmethod(assemble)
    reweigh = staticmethod(refit.reweigh)
    needs = staticmethod(needs)

    def validate(self, problem):
        problem = super().validate(problem)
        if isinstance(problem.settings.monotone, dict):
            way = directions(problem.settings.monotone, problem.design, problem.family)
            problem = replace(problem, settings=replace(problem.settings, monotone=way))
        settings = problem.settings
        if not (settings.joint and settings.m is None):
            return problem
        m = refit.count_learners(problem.batch, problem.family.n_functions) or ROUND[0]
        return replace(problem, settings=replace(settings, m=m))

    def counts_stages(self, settings):
        return not settings.joint

    def fit(self, problem):
        settings = problem.settings
        if settings.lambda_ is not None and problem.arguments["m"] is not None:
            return self.run(problem)
        problem, selection, gain = _choose(problem)
        fit = self.run(problem, selection)
        if fit.refit_log is not None:
            fit.refit_log["gain"] = gain
        return fit

    def selects(self, settings):
        return settings.l1_ratio > 0.0


MODEL = Gbmap()


def _choose(problem):
    """Choose `m`, `lambda_`, `refit` by cross-validation; return the new Problem, losses and gain.

    losses : DataFrame of the settings tried
    gain : relative fall of the deviance by a joint fit, or NaN"""
    settings, K, losses, found = problem.settings, problem.family.n_functions, {}, {}
    m, first_guess = settings.m or refit.count_learners(problem.batch, K), None
    kinds = {"none": settings.m, "joint": m} if settings.refittable and m else {"none": settings.m}
    for kind in [settings.refit] if settings.refit else kinds:
        tried = replace(problem, settings=replace(settings, refit=kind, m=kinds[kind]))
        found[kind] = chosen, table = _search(tried, first_guess)
        losses[kind] = np.average(table["mean"], weights=table["weight"])
        first_guess = chosen.settings.lambda_
    gain = 1.0 - losses["joint"] / max(losses["none"], 1e-300) if len(losses) > 1 else np.nan
    # Joint fits must lower the held-out deviance by 2%.
    best = next(iter(found)) if len(found) == 1 else "joint" if gain >= 0.02 else "none"
    return *found[best], float(gain)


def _search(problem, first_guess):
    """Choose m and lambda_, starting near `first_guess`; return the new Problem and loss table."""
    exact, batch = problem.settings, problem.batch
    n, p = batch.n, batch.X.shape[1]
    tried = replace(problem, settings=exact.for_comparison(n, p))
    how = {"most_draws": 1 if is_wide(n, p) or exact.joint else None, "runs": {}}
    if exact.lambda_ is not None:
        chosen, table = choose(tried, {}, **how)
    else:
        values = lambda_grid(problem, "lambda_", N_LAMBDAS, 1e-12)
        at = None if first_guess is None else int(np.abs(np.log(values / first_guess)).argmin())
        # Penalties tried first; the loop adds some if the best one is at an end.
        lo, hi = (3, 12) if at is None else (max(0, at - 1), min(N_LAMBDAS, at + 4))
        margin = 2 if exact.joint else 1  # smaller penalties tried than the best one
        while True:
            chosen, table = choose(tried, {"lambda_": values[lo:hi]}, **how)
            best, tried_before = lo + int(table["weight"].argmax()), (lo, hi)
            lo = max(0, lo - FURTHER) if best == lo else lo
            hi = min(N_LAMBDAS, hi + FURTHER) if best >= hi - margin else hi
            if (lo, hi) == tried_before:
                break
    given = {name: getattr(exact, name) for name in ("tol", "ftol", "n_starts", "max_iter")}
    return replace(chosen, settings=replace(chosen.settings, **given)), table


@fitted_by(MODEL)
def gbmap(
    formula: str,
    data: Data,
    *,
    family: NumberFamily | Family | Literal["ordinal"] | None = None,
    power: float | None = None,
    quantile: float | None = None,
    m: int | None = None,
    lambda_: float | None = None,
    beta: float = 10.0,
    l1_ratio: float = 0.0,
    activation: Literal["softplus", "identity"] = "softplus",
    n_starts: int = 2,
    refit: Literal["none", "joint"] | None = None,
    monotone: dict[str, Literal["increasing", "decreasing"]] | None = None,
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
    """Fit a gradient boosting mapping (Patron et al. 2024): a sum of boosted bends.

    Each learner is flat on one side of a hyperplane and linear on the other, with a rounded bend.
    So every row has a slope for each feature, and the learners' values embed the rows (Eqs. 5-8).

    f(x) = offset + sum_{j=1..m} f_j(x). Learner j is f_j(x) = a_j + b_j g(w_j'x~), where
    x~ = (1, x), b_j is -1 or 1, and g(z) = log(1 + exp(beta z)) / beta (Eqs. 1-2). Boost j
    minimizes the mean loss of f_1 + ... + f_j plus lambda_ mean_k((1 - l1_ratio) w_jk^2 +
    l1_ratio |w_jk|) over (a_j, w_j) for both signs b_j, and keeps the better one (Eqs. 3-4).

    Parameters
    ----------
    formula : str
        Such as "mpg ~ .", "np.log(price) ~ . - id", "y ~ x1 * x2 + bs(age, df=4)". Ordered pandas
        categories get a 0/1 column per threshold; C(x) ignores the order. With ".", a column x
        with heavy tails enters as np.arcsinh((x - center) / spread).
    data : frame, path or other source
        pandas, polars or pyarrow table, dict of columns, file path or pattern, pyarrow Dataset,
        polars LazyFrame or Dask DataFrame.
    family : str, optional
        "gaussian", "binomial" or "multinomial" (one learner per class in each boost), by default as
        the response suggests. With a log link: "poisson" for counts (the log exposure is an
        offset), "gamma" for positive amounts, "tweedie" for amounts of which some are zero.
        "quantile": a quantile of a number. "huber": a number with outliers; the loss is linear in
        residuals above 1.345 robust standard deviations. "ordinal": at least three classes in order
        (an ordered pandas category, or numbers); the log-odds of a class above a threshold are f(x)
        minus the threshold.
    power, quantile : float, optional
        Power (1 to 2) of the mean in the variance of "tweedie"; quantile to predict, such as 0.9.
    m : int, optional
        Number of boosts; by default chosen with lambda_ by cross-validation.
    lambda_ : float, optional
        Penalty on the weights, for features (and a numeric response) in standard deviations. By
        default chosen by cross-validation.
    beta : float, default=10
        Sharpness of the bends: 1 is smooth, 10 is nearly max(0, z).
    l1_ratio : float in [0, 1], default=0
        Share of the L1 penalty, which sets some weights to zero. The ridge has no factor 1/2, so
        l1_ratio=r corresponds to alpha = r / (2 - r) in glmnet.
    activation : {"softplus", "identity"}, default="softplus"
        With "identity" the first boost is ridge or logistic regression, and later ones vanish.
    n_starts : int, default=2
        Number of data-based starting points optimized for each sign.
    refit : {"none", "joint"}, optional
        "joint" optimizes all learners together after the last boost. By default the better one on
        held-out rows if m or lambda_ is omitted, else "none".
    monotone : dict, optional
        Columns with a monotone effect for every row, such as {"age": "increasing"}: numbers or
        ordered categories in no other term. Needs l1_ratio=0, and a number, two or ordered classes
        as the response.
    weights : column name, array (n,) or "balanced", optional
        Row weights. "balanced" gives all K classes equal total weight.
    offset : column name or array (n,), optional
        Known part of the linear predictor (an array (n, K) for K classes).
    missing : {"indicator", "drop"}, default="indicator"
        "indicator": a missing number becomes the training mean, and a column such as `age[missing]`
        marks it; a missing category is a level. "drop" drops the row, predicted as NaN.
    groups : column name or array (n,), optional
        Rows with equal values stay together in cross-validation.
    standardize : bool, default=True
        Scale features to unit standard deviation; they are always centred. If False, values that
        are given per standard deviation are per unit of the feature.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the stored features.
    seed : int, default=0
        Seed of the folds and of row samples. Results do not depend on the number of threads, the
        order of rows or columns, or the names of classes.
    threads, sample : int, optional
        Number of threads, and of randomly drawn rows to fit; all by default.
    engine : {"cpu", "cuda", "auto"}, default="cpu"
        Where to compute. "cuda" uses an NVIDIA GPU (extra `cuda`; only tested in Numba's
        simulator), also in `predict`. "auto" uses a GPU if one is usable and features take at least
        256 MB.
    client : dask.distributed.Client, optional
        Dask cluster that holds the features of files or a Dask frame.
    progress : bool, optional
        Show progress: True at once, False never, default after three seconds.
    control : dict, optional
        Settings of the algorithm, explained on the page "How gbmap works".

    Returns
    -------
    GbmapFit

    Raises
    ------
    FormulaError, DataError, ArgumentError, MissingExtraError, DeviceError

    See Also
    --------
    GbmapFit, cv, path

    Notes
    -----
    There are no standard errors or p-values; use `bootstrap`. Far from the training rows f is
    linear, and `predict` warns (see `clip`). `fit.selection` shows how settings were chosen.

    A saved fit holds the response and embedding of up to 10,000 training rows, for neighbours and
    drift; with as many learners as features these determine the features.
    control={"reference_rows": 0} keeps none.

    References
    ----------
    Patron, Prasad, Luu & Puolamaki (2024). Gradient Boosting Mapping for Dimensionality Reduction
    and Feature Extraction.

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> fit = ld.gbmap("mpg ~ weight + model_year", cars, m=3, lambda_=0.1)
    >>> fit.predict(cars[:2]).round(1).tolist()
    [14.0, 13.6]
    """
