"""The public function proset() and the declaration of the model."""

from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar, Literal

import numpy as np

from lodim.engine.blocks import available_threads
from lodim.errors import warn_not_converged
from lodim.fitting.fit_model import fitted_by, prepare
from lodim.fitting.model import SPREAD, Model, Option, Penalty
from lodim.forms import plain_label
from lodim.models.proset import candidates
from lodim.models.proset.calibration import calibrate
from lodim.models.proset.estimate import combine, fit_stages, largest_v, largest_w
from lodim.models.proset.explain.reference import Typical
from lodim.models.proset.fit import ProsetFit
from lodim.models.proset.settings import Settings
from lodim.selection.racing import fold_means, standard_error
from lodim.selection.tuning import choose, count_draws
from lodim.typing import Data, DType, Engine, Family, Missing, Offset, RowValues

__all__ = ["extend", "proset"]

GRIDS = {  # tried if a penalty is to be chosen, largest first
    "lambda_v": (1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3),
    "lambda_w": (1e-4, 1e-5, 1e-6, 1e-8),
}


REFERENCE = """\
@techreport{ruf2022proset,
  title  = {Prototype set models for supervised learning},
  author = {Ruf, Nikolaus},
  year   = {2022}
}"""


class Proset(Model):
    """The model proset: its settings, and the steps from data to a fit."""

    name = "proset"
    reference = REFERENCE
    settings = Settings
    penalties: ClassVar = {
        "lambda_v": Penalty(largest_v),
        "lambda_w": Penalty(largest_w, ratio=1e-9),
    }
    requirements = (
        ("loss", "a numeric response", lambda problem: problem.family.name == "gaussian"),
        ("lambda_u", "loss='density'", lambda problem: problem.settings.loss == "density"),
    )
    stage_setting = "n_batches"
    patience = 2
    streams = True
    many_rows = 250_000
    options = (
        Option("--lambda-v", "lambda_v", float, "penalty of weights; default: by cross-validation"),
        Option("--lambda-w", "lambda_w", float, "penalty of prototypes; default: 1e-8"),
        Option("--batches", "n_batches", int, "number of batches; default: 1"),
        Option("--loss", "loss", str, "of a numeric response: squared (default) or density"),
    )
    plots = ("weights",)
    fit_stages = staticmethod(fit_stages)
    combine = staticmethod(combine)

    def validate(self, problem):
        problem = super().validate(problem)
        settings, n = problem.settings, max(1, problem.batch.n_positive)
        lambda_w = 1e-6 * min(1.0, 1000.0 / n) if problem.family.name == "gaussian" else 1e-8
        auto = {"lambda_v": 10.0 / n, "lambda_w": lambda_w}
        auto = {name: value for name, value in auto.items() if getattr(settings, name) == "auto"}
        return candidates.check_rows(replace(problem, settings=replace(settings, **auto)))

    def fit(self, problem):
        settings, few = problem.settings, problem.batch.n_positive <= 1000
        given = settings.n_batches is not None and settings.lambda_w is not None
        auto = problem.arguments["lambda_v"] == "auto"
        if auto and settings.loss != "density" and few and given:
            return self.run(*_choose_lambda_v(problem))
        to_choose = [name for name in GRIDS if getattr(settings, name) is None]
        if not to_choose and settings.n_batches is not None:
            return self.run(problem)
        return self.run(*choose(problem, {name: GRIDS[name] for name in to_choose}))

    def selects(self, settings):
        return True

    def assemble(self, problem, prototypes, log, selection, for_path):
        batch = problem.batch
        if not log["converged"].all():
            failed = np.flatnonzero(~log["converged"]) + 1
            warn_not_converged(
                f"proset did not converge in batches {failed.tolist()}: "
                "raise control={'max_iter': ...} or lambda_v"
            )
        calibration = typical = None
        if for_path == SPREAD:
            calibration = calibrate(problem, prototypes, widen=False)
        if not for_path:
            seed, threads = problem.settings.seed, problem.settings.threads or available_threads()
            calibration = calibrate(problem, prototypes)
            typical = Typical.from_batch(batch, prototypes, threads, seed)
            typical = replace(typical, label=plain_label(typical.label))
        return ProsetFit(
            **problem.common(selection),
            estimates=prototypes,
            log=log,
            calibration=calibration,
            typical=typical,
            labels=tuple(plain_label(v) for v in batch.index[prototypes.row]),
            n=batch.n_positive,
            null_deviance=problem.null_deviance(),
        )


MODEL = Proset()


def _choose_lambda_v(problem):
    """Choose lambda_v by cross-validation; return the problem with it, and a table of the values.

    The largest value, nearly the null model, is chosen unless another one is clearly better."""
    s, n = problem.settings, problem.batch.n_positive
    null = largest_v(problem.batch, problem.family, s)
    # Values in between hardly improve the held-out loss; with finer steps the predictions would
    # depend more on the random folds.
    values = [max(null, 300.0 / n), *(step / n for step in (100.0, 30.0, 10.0, 3.0, 1.0))]
    # Rough fits suffice to compare values: 100 evaluations chose the same one on 14 of 15 simulated
    # sets. 1,000 candidates would take twice the time.
    rough = {"max_iter": min(s.max_iter, 50), "n_candidates": min(s.n_candidates, 300)}
    compared = replace(problem, settings=replace(s, lambda_v=None, n_batches=1, **rough))
    runs, draws = {}, count_draws(problem.batch, 3)
    problem, table = choose(compared, {"lambda_v": values}, most_draws=3, runs=runs)
    losses = np.array([run.rows[-1] for run in runs.values()])
    parts = zip(problem.chosen["lambda_v"], np.split(losses, draws, axis=1), strict=False)
    by_draw = tuple(value if _beats_null(part) else values[0] for value, part in parts)
    lambda_v = problem.settings.lambda_v if _beats_null(losses, draws) else values[0]
    settings = replace(s, lambda_v=lambda_v)
    return problem.settle(settings, chosen={"lambda_v": by_draw}), table


def _beats_null(losses, draws=1):
    """Return whether the lowest loss is significantly below the null model's.

    losses : (values, folds, 3) mean loss, weight and SE per fold; the null model comes first
    draws : number of divisions of the rows into folds"""
    change = losses[fold_means(losses).argmin()].copy()
    change[:, 0] -= losses[0, :, 0]
    mean = fold_means(change[None])[0]
    return mean < -2.0 * standard_error(change, mean, draws)


def extend(fit, data, n_batches):
    """Return the fit with batches added, `n_batches` in total; data : the fit's training data"""
    arguments = fit._call_arguments({"n_batches": n_batches})
    problem = prepare(MODEL, fit.design.formula, data, arguments)
    # If the call left penalties open, new batches use the chosen penalties.
    settings = replace(fit.settings, n_batches=n_batches)
    chosen = {name: by_draw for name, by_draw in fit.chosen.items() if name != "n_batches"}
    problem = problem.settle(settings, chosen=chosen)
    previous = fit.estimates, fit.log
    stages = fit_stages(problem.batch, problem.family, settings, previous=previous)
    fitted = combine([part[:2] for part in islice(stages, n_batches)])
    return MODEL.run(problem, fit.selection, found=fitted)


@fitted_by(MODEL)
def proset(
    formula: str,
    data: Data,
    *,
    family: Family | None = None,
    n_batches: int | None = 1,
    n_candidates: int = 1000,
    lambda_v: float | Literal["auto"] | None = "auto",
    lambda_w: float | Literal["auto"] | None = "auto",
    l1_ratio_v: float = 0.05,
    l1_ratio_w: float = 0.05,
    loss: Literal["squared", "density"] = "squared",
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
) -> ProsetFit:
    """Fit prototype sets (Ruf 2022): a model made of a few weighted training rows.

    A row that resembles a prototype tends to its class; a row that resembles none gets the class
    shares of the training data. Features without weight are ignored.

    p_k(x) = (p0_k + sum_j 1[y_j = k] w_j G(x - x_j)) / (1 + sum_j w_j G(x - x_j)) (Eq. 2.4), with
    p0 the class shares, x_j the prototypes and w_j > 0 their weights. The similarity is
    G(z) = exp(-1/2 sum_d (v_d z_d)^2), where v_d >= 0 are feature weights (Eq. 2.3).

    Prototypes come in batches, each with its own v. All rows, or `n_candidates` random ones, are
    candidates (Algorithm 2.1). v, w >= 0 minimize the leave-one-out mean negative log-likelihood
    plus lambda_v ((1 - l1_ratio_v) / 2 sum_d v_d^2 + l1_ratio_v sum_d v_d) and the same for w
    (Eq. 2.8). Candidates of positive weight are prototypes.

    Parameters
    ----------
    formula : str
        Such as "species ~ .", "np.log(price) ~ . - id".
        Ordered pandas categories get a 0/1 column per threshold; C(x) ignores the order.
    data : frame, path or other source
        pandas, polars or pyarrow table, dict of columns, file path or pattern, pyarrow Dataset,
        polars LazyFrame or Dask DataFrame.
    family : {"gaussian", "binomial", "multinomial"}, optional
        By default inferred from the response.
    n_batches : int or None, default=1
        Largest number of batches. None: chosen by cross-validation.
    n_candidates : int, default=1000
        Largest number of candidates per batch, drawn evenly from easy and hard rows of each class.
    lambda_v, lambda_w : float, "auto" or None, default="auto"
        Penalties of feature weights (for features in standard deviations) and of prototypes'
        weights. "auto" chooses lambda_v by cross-validation up to 1,000 rows, else it is 10 / n;
        lambda_w is small. None: chosen by cross-validation.
    l1_ratio_v, l1_ratio_w : float in [0, 1], default=0.05
        Share of the L1 penalty in `lambda_v` and in `lambda_w`.
    loss : {"squared", "density"}, default="squared"
        For a numeric response: least squares, or maximum likelihood of a conditional density, for
        which `evaluate` adds nll, the mean -log density.
    weights : column name, array (n,) or "balanced", optional
        Row weights. "balanced" gives all K classes equal total weight.
    offset : column name or array (n,), optional
        Known part of a numeric response, or of the null model's linear predictor ((n, K) for K
        classes).
    missing : {"indicator", "drop"}, default="indicator"
        "indicator": a missing number becomes the training mean, marked in a column such as
        `age[missing]`; a missing category is a level. "drop" drops the row, predicted as NaN.
    groups : column name or array (n,), optional
        Rows with equal values stay together in cross-validation.
    standardize : bool, default=True
        Scale features to unit standard deviation; they are always centred. If False, values that
        are given per standard deviation are per unit of the feature.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the stored features.
    seed : int, default=0
        Seed of candidates and folds. Results do not depend on the number of threads.
    threads, sample : int, optional
        Number of threads, and of randomly drawn rows to fit; all by default.
    engine : {"cpu", "cuda", "auto"}, default="cpu"
        "cuda" uses an NVIDIA GPU (extra `cuda`), also in `predict`, but has only been tested in
        Numba's simulator; "auto" does if one is usable and features take at least 256 MB.
    client : dask.distributed.Client, optional
        Not supported by this model; a Dask frame is read in this process.
    progress : bool, optional
        Show progress: True at once, False never, default after three seconds.
    control : dict, optional
        Settings of the algorithm, explained on the page "How proset works".

    Returns
    -------
    ProsetFit

    Raises
    ------
    FormulaError, DataError, ArgumentError
        DataError also if a class has under three rows (control's max_fraction may need more,
        condition 2.14), or if loss="density" and the response is integers, most of them repeated.
    MissingExtraError, DeviceError
        If engine="cuda" lacks its extra, a usable GPU or GPU memory.

    See Also
    --------
    ProsetFit, cv, path

    Notes
    -----
    The first batch matters most; `update(data, n_batches=...)` adds batches to a fit. The page "How
    proset works" explains the choice of penalties and the model of a numeric response.

    A saved fit holds training rows: the prototypes and a typical row, with their row labels, their
    values in the active features and the prototypes' responses. No setting omits them.

    Examples
    --------
    >>> import lodim as ld
    >>> iris = ld.data("iris")
    >>> fit = ld.proset("species ~ .", iris, lambda_v=0.03)
    >>> fit.shrink().design.features
    ['petal_length', 'petal_width']
    >>> fit.predict(iris.iloc[[0, 100]], "class").tolist()
    ['setosa', 'virginica']

    References
    ----------
    Ruf, N. (2022). Prototype sets: supervised learning with automatic selection of prototypes and
    features.
    """
