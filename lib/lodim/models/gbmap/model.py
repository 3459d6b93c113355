"""gbmap(): gradient boosting mapping, from a formula to a fit."""

from typing import Any

from lodim.fitting.spec import ModelSpec, Option, Penalty, prepare
from lodim.models.gbmap import boost
from lodim.models.gbmap.assemble import assemble, from_state
from lodim.models.gbmap.fit import GbmapFit
from lodim.models.gbmap.settings import Settings
from lodim.selection.cv import choose
from lodim.selection.path import lambda_grid

__all__ = ["from_state", "gbmap"]

QUICK_LAMBDAS = 9  # penalties tried where none is given


def gbmap(
    formula: str,
    data: Any,
    *,
    family: str | None = None,
    m: int | None = None,
    lambda_: float | None = None,
    beta: float = 10.0,
    l1_ratio: float = 0.0,
    activation: str = "softplus",
    n_starts: int = 2,
    weights: Any = None,
    offset: Any = None,
    missing: str = "indicator",
    standardize: bool = True,
    dtype: str = "float64",
    seed: int = 0,
    threads: int | None = None,
    engine: str = "cpu",
    progress: bool = False,
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
    data : frame
        pandas, polars, or a dict of columns.
    family : {"gaussian", "binomial", "multinomial"}, optional
        Loss (y - f)^2; log-loss of two classes; softmax log-loss of K classes, with one learner a
        class in each boost. Default: by the response.
    m : int, optional
        Number of boosts. Default: chosen with lambda_ by cross-validation.
    lambda_ : float, optional
        Penalty, for features (and a numeric response) in standard deviations. Default: chosen.
    beta : float
        Softness of the softplus, for a response in standard deviations: 1 is smooth, 10 nearly
        a hinge max(0, z).
    l1_ratio : float in [0, 1]
        Share of the L1 penalty; zeros appear among the weights.
    activation : {"softplus", "identity"}
        With "identity" the first boost is ridge or logistic regression and the later ones vanish
        (Lemma 1).
    n_starts : int
        Starts followed for each sign: hinges that promise most, along directions found in the data
        (the slope of the loss, principal Hessian directions, mixtures of rows).
    weights, offset : column name or array (n,), optional
        Row weights; a known part of the score (an array (n, K) for K classes).
    missing : {"indicator", "drop"}
        What becomes of rows that miss a feature. "indicator": a missing number is the mean of the
        training rows, beside a column such as `age[missing]` where training had gaps in it; a
        missing category is a level of its own, or where training had none the mean of its columns.
        "drop": they are left out, and answered by NaN. Rows without response or weight are left
        out in any case.
    standardize : bool
        Scale features to unit standard deviation; they are centred in any case.
    dtype : {"float64", "float32"}
        Of the stored features; sums are in float64.
    seed : int
        Of the folds that choose m and lambda_, and of samples of many rows; equal seeds give equal
        bits, whatever `threads` is. Starts do not depend on it, nor folds on the order of rows or
        columns or on the names of classes.
    threads : int, optional
        All that are available by default.
    engine : {"cpu", "cuda", "auto"}
        Where passes over the features run. "cuda": on an NVIDIA GPU (needs the extra `cuda`), which
        holds a copy of the features during the fit; `predict` goes there in blocks. "auto": there
        if the features take 256 MB or more and such a GPU with room for them is usable, else on
        the CPU; `predict` then stays on the CPU, since it reads new rows once. The GPU's kernels
        have been compared with the CPU's in Numba's simulator, not yet on hardware.
    progress : bool
        Show progress bars (needs tqdm).
    control : dict, optional
        max_iter (500, iterations of a boost at most), tol and ftol (a boost ends where no gradient
        is above tol, or where it can lower the objective by no more than the share ftol, as two
        steps in a row and the curvature say; 1e-8 and 1e-12 up to 65,536 rows, ftol 1e-8 there with
        an L1 penalty or over 510 features; 1e-5 and 1e-6 of more rows; 1e-8 and 1e-13 with the
        identity activation),
        penalize_intercept (False; the authors' code penalizes the weight of the constant too,
        which makes the fit depend on the features' origin), max_stages (50, most boosts tried
        where m is chosen), path_stages (10, boosts of `path` where m is not given),
        reference_rows (10,000, training rows kept for neighbours and drift).

    Returns
    -------
    GbmapFit

    Raises
    ------
    FormulaError, DataError, ArgumentError
    MissingExtraError, DeviceError
        engine="cuda", and numba-cuda is not installed; or no GPU is usable, or X does not fit it.

    Notes
    -----
    Where m or lambda_ is not given, gbmap chooses by the deviance of held-out rows: five folds,
    drawn twice up to 2,000 rows and once up to 4,000; one fold of five held out beyond, on at most
    20,000 rows drawn at random. Nine penalties race: every 10 boosts those leave that are over two
    standard errors behind. Boosts are added until 15 have brought nothing. What is taken is the
    centre of the settings that cannot be told apart: each weighs exp(-2 (loss - least loss) /
    standard error), lambda_ is the weighted mean in log, to half a step of the grid, and m that of
    the boosts there. The least loss itself lies, by the draw of the folds, now here and now there.
    `fit.selection` has the curve.

    Up to 65,536 rows boosts are solved so tightly that the fit is a smooth function of the data:
    rounding then cannot decide where the next boost ends. Learners that lower the objective by less
    than 1e-5 of it add nothing and are left out, but for those of the first boost.

    A numeric response is scaled to unit standard deviation within, so that lambda_ and beta mean
    the same for any unit; estimates and predictions are in the units of the data.

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
    arguments = {k: v for k, v in locals().items() if k not in ("formula", "data")}
    problem = prepare(gbmap, formula, data, arguments)
    selection = None
    if m is None or lambda_ is None:
        grid = {}
        if lambda_ is None:
            # The first quarter (in log) of a path is too near the null model to be chosen.
            grid["lambda_"] = lambda_grid(problem, "lambda_", QUICK_LAMBDAS + 3)[3:]
        problem, selection = choose(problem, grid)
    return SPEC.run(problem, selection)


SPEC = ModelSpec(
    name="gbmap",
    title="gradient boosting mapping: boosted one-layer perceptrons",
    settings=Settings,
    fit_stages=boost.fit_stages,
    combine=boost.combine,
    assemble=assemble,
    penalties={"lambda_": Penalty(boost.lambda_max)},
    stage_setting="m",
    warm_start=True,
    options=(
        Option("--lambda", "lambda_", float, "penalty; default: by cross-validation"),
        Option("--m", "m", int, "number of boosts; default: by cross-validation"),
        Option("--beta", "beta", float, "softness of the softplus; default: 10"),
    ),
    plots=("loss", "effects", "embedding"),
)
