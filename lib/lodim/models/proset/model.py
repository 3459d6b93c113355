"""proset(): prototype sets, from a formula to a fit."""

from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar, Literal

from lodim.fitting.fit_model import fitted_by, prepare
from lodim.fitting.model import Model, Option, Penalty
from lodim.models.proset import candidates
from lodim.models.proset.assemble import assemble
from lodim.models.proset.choice import choose_lambda_v
from lodim.models.proset.estimate import combine, fit_stages, largest_v, largest_w
from lodim.models.proset.fit import ProsetFit
from lodim.models.proset.settings import Settings
from lodim.selection.tuning import choose
from lodim.typing import Data, DType, Engine, Family, Missing, Offset, RowValues

__all__ = ["extend", "proset"]

FEW_ROWS = 1000  # up to here lambda_v is chosen by cross-validation where nothing is said
GRIDS = {  # tried where a penalty is to be chosen, largest first
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
    """Prototype sets: penalties and the number of batches can be chosen by cross-validation."""

    name = "proset"
    reference = REFERENCE
    settings = Settings
    penalties: ClassVar = {
        "lambda_v": Penalty(largest_v),
        "lambda_w": Penalty(largest_w, ratio=1e-9),
    }
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
    assemble = staticmethod(assemble)

    def validate(self, problem):
        """Raise if rows are too few; penalties that are "auto" by the number of rows."""
        problem = super().validate(problem)
        settings, n = problem.settings, max(1, problem.batch.n_positive)
        lambda_w = 1e-6 * min(1.0, 1000.0 / n) if problem.family.name == "gaussian" else 1e-8
        auto = {"lambda_v": 10.0 / n, "lambda_w": lambda_w}
        auto = {name: value for name, value in auto.items() if getattr(settings, name) == "auto"}
        return candidates.check_rows(replace(problem, settings=replace(settings, **auto)))

    def fit(self, problem):
        """Choose penalties and number of batches if they are open, and return the fit."""
        settings, few = problem.settings, problem.batch.n_positive <= FEW_ROWS
        given = settings.n_batches is not None and settings.lambda_w is not None
        auto = problem.arguments["lambda_v"] == "auto"
        if auto and settings.loss != "density" and few and given:
            return self.run(*choose_lambda_v(problem))
        to_choose = [name for name in GRIDS if getattr(settings, name) is None]
        if not to_choose and settings.n_batches is not None:
            return self.run(problem)
        return self.run(*choose(problem, {name: GRIDS[name] for name in to_choose}))

    def selects(self, settings):
        """Features without a weight play no part."""
        return True


MODEL = Proset()


def extend(fit, data, n_batches):
    """The fit with batches added to those it has; `data` holds the rows of the fit."""
    arguments = fit._call_arguments({"n_batches": n_batches})
    problem = prepare(MODEL, fit.design.formula, data, arguments)
    # The call may have left penalties open: the batches to come take those that were chosen.
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
    """Prototype sets (Ruf 2022): a model made of a few weighted training rows.

    p_k(x) = (p0_k + sum_j 1[y_j = k] w_j G(x - x_j)) / (1 + sum_j w_j G(x - x_j)) (Eq. 2.4), with
    p0 the class shares, x_j the prototypes, w_j > 0 their weights and G(z) = exp(-1/2 sum_d
    (v_d z_d)^2) (Eq. 2.3): what is like a prototype is of its class, what is like none has the
    shares of the whole. Features with v_d = 0 play no part.

    Prototypes come in batches, each with its own v. Up to `n_candidates` rows all are candidates,
    beyond that those drawn (Algorithm 2.1). All rows score them, each without the candidate that it
    is itself: v and w minimize the rows' mean negative log-likelihood plus lambda_v ((1 -
    l1_ratio_v) / 2 sum_d v_d^2 + l1_ratio_v sum_d v_d) and the same of w (Eq. 2.8), over v, w >= 0.
    Candidates that keep a weight are prototypes.

    Parameters
    ----------
    formula : str
        Such as "species ~ .", "np.log(price) ~ . - id".
        Categories in order (of pandas) have a column for each level but the first, 1 where it is
        reached; C(x) forgets the order.
    data : frame, or path
        pandas, polars, pyarrow, or a dict of columns. What tidy() and glance() give is of its kind.
        Or what is read part by part: Parquet, CSV or Arrow files (a path, a pattern, a folder), a
        pyarrow Dataset, a polars LazyFrame, a Dask DataFrame.
    family : {"gaussian", "binomial", "multinomial"}, optional
        By default that of the response's kind.
    n_batches : int, optional
        Most batches. None: chosen by cross-validation.
    n_candidates : int
        Most candidates of each batch. Where there are more rows, they are drawn as evenly as
        possible from the easy and the hard rows of each class.
    lambda_v, lambda_w : float, "auto" or None
        Penalties of feature weights (for features in standard deviations) and of prototypes'
        weights. "auto": up to 1,000 rows lambda_v is chosen by cross-validation of the first batch
        among 100, 30, 10, 3 and 1 over n, with two to eight draws of the folds, as many as it takes
        to know what all would choose (but not with loss="density", nor beside lambda_w=None or
        n_batches=None); where no value is better held out than the null model by two standard
        errors of the difference, it is so large that the fit is the null model. Beyond, and in
        `path` and `cv`, it is 10 / n. lambda_w is 1e-8; for a number 1e-6, times 1000 / n beyond
        1,000 rows. None: chosen by cross-validation. (The author's are 1e-3 and 1e-8: on small and
        noisy data the class shares alone then have the better held-out likelihood.)
    l1_ratio_v, l1_ratio_w : float in [0, 1]
        Shares of their L1 penalties.
    loss : {"squared", "density"}
        Of a numeric response: see Notes.
    weights : column name, array (n,) or "balanced", optional
        Row weights, which enter likelihood and class shares.
        "balanced": all classes get the same total weight, n / (K n_k) for each of the n_k rows of
        class k (n rows, K classes). Not for a numeric response.
    offset : column name or array (n,), optional
        A known part of the score of the null model p0 (an array (n, K) for K classes), or of a
        numeric response.
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
        Of the stored features.
    seed : int
        Of the candidates that are drawn and of the folds; equal seeds give equal bits, whatever
        `threads` is. Up to `n_candidates` rows it matters to the choice of penalties alone.
    threads : int, optional
        All that are available by default.
    engine : {"cpu", "cuda", "auto"}
        Where passes over the scoring rows run. "cuda": on an NVIDIA GPU (needs the extra `cuda`),
        which holds a copy of their features while a batch is fitted; `predict` and `familiarity`
        go there in blocks (variances and the quantiles of loss="density" do not). "auto": there if
        the features take 256 MB or more, in the precision of the fit, and such a GPU with room for
        them is usable, else on the CPU; `predict` then stays on the CPU, since it reads new rows
        once. The GPU's kernels have been compared with the CPU's in Numba's simulator, not yet on
        hardware.
    sample : int, optional
        So many rows alone, drawn at random by where they stand and `seed`; all by default.
    client : dask.distributed.Client, optional
        Refused: no pass of this model runs on the workers of a cluster. A Dask frame is read here.
    progress : bool, optional
        Show progress on standard error: `True` at once (bars if tqdm is installed), `False` never;
        by default a line after three seconds.
    control : dict, optional
        max_fraction (None; a number, the author's is 0.5: most of a group that are candidates, eta,
        which do not score then), hard_share (0.1, rows of each class that are its hard ones),
        max_rows (None, rows drawn for each batch, stratified), worth (2, standard errors by which
        features new to a later batch must lower the loss; fewer suit small data without noise
        features),
        precision ("float64", of the fit's arithmetic within a tile of 64 rows; "float32" is faster,
        but its rounding may decide between two near minima; sums are in float64, and predictions in
        `dtype`), max_iter (5,000 evaluations), tol and ftol (1e-6 and 1e-9: a batch has converged
        where no projected gradient by v and w, in the units of (4) below, is above `tol`, or five
        steps in a row lower the objective by at most `ftol` of its size each), lambda_u (1e-3,
        penalty of u^2 / 2 with loss="density"), max_stages (10, most batches tried where n_batches
        is chosen), path_stages (1, batches of `path` where n_batches is None),
        scratch (None; a folder: a file in it holds the features while the model is fitted. By
        default they are in memory, or of files, lazy and Dask frames, where they would take more
        than half of what is free of it, in such a file in the system's temporary folder).

    Returns
    -------
    ProsetFit

    Raises
    ------
    FormulaError, DataError, ArgumentError
        DataError also where a class has too few rows to be both candidate and scoring row
        (condition 2.14): three, or more by max_fraction; or loss="density", and most rows share
        their response, a whole number, with others.
    MissingExtraError, DeviceError
        engine="cuda" without the extra `cuda`; or no GPU is usable, or X does not fit it.

    See Also
    --------
    ProsetFit, cv, path

    Notes
    -----
    A numeric response (Ruf's chapter 3 is empty; this is lodim's own). With y in standard
    deviations from its mean, and B(x) = 1 + sum_j w_j G(x - x_j):

    - loss="squared": the mean m(x) = sum_j w_j G(x - x_j) y_j / B(x) minimizes the mean square of
      y - m(x). The variance is s^2(x) = (s0^2 + sum_j w_j G(x - x_j) e_j^2) / B(x), e_j the
      residual of prototype j where it is itself left out; quantiles are m + s q, q those of the
      rows' residuals in units of s, each without itself as a prototype.
    - loss="density": p(y | x) = (N(y; 0, 1) + sum_j w_j G(x - x_j) N(y; y_j, 1 / u^2)) / B(x), a
      mixture of normals, maximizes the likelihood; u is fitted with each batch. It can have several
      modes; its mean is less exact. Quantiles are its own, at the levels that the rows' responses
      have in their distributions, each without itself.

    Errors are widened as those of new rows are beyond those of the rows that weights are fitted to,
    by fits to four fifths of the rows (beyond 4,000 rows one of them, else five).

    What differs from Ruf's equations: (1) Candidates score too, each without itself, where Ruf's do
    not: of few rows, half are too few to be prototypes and half too few to score them, and which
    half a row falls into would move the estimates (control={"max_fraction": 0.5} is Ruf's way). (2)
    Hard rows are those of the lowest 10 % of the probability of their class (a later change of the
    author's) instead of those classified wrongly; with max_fraction scoring rows stand for their
    group, not for their class. (3) Later batches may use features without weight so far only if
    these lower the rows' loss by two standard errors: gains of later batches are small, and else
    noise comes in. Without any feature of weight there are no prototypes. (4) w is optimized in
    units of sqrt(J) for J candidates, 10 sqrt(J) for classes; most evaluations leave out candidates
    (and later features) without weight by which the loss would not fall, and at the end these are
    asked again. (5) A first descent is over v_d^2, with the L1 penalty of v_d rounded off below
    0.1: at v_d = 0 the loss has no slope by v_d, so that a feature that one long step cuts off
    would be lost for good, and which ones are cut would hang on rounding. The descent that is
    reported goes on from there. (6) Candidates are drawn by what the rows hold: the order of rows
    and of columns and the names of classes play no part.

    Search. Algorithm 2.2 of the report is two calls of `cv` with folds=5 and rule="1se": over a
    frame of 50 log-uniform pairs lambda_v, lambda_w, the largest product first, with n_batches=1;
    then over grid={"n_batches": [1, ..., 10]}. The author's later search is one: grid={"lambda_v":
    np.logspace(-6, -1, 11), "n_batches": [1, ..., 10]}; rule="1se" prefers a large lambda_v, then
    few batches. Batches of a point share one run.

    The first batch brings most. No batch depends on a later one: `update(data, n_batches=...)` adds
    batches to a fit and leaves the earlier ones as they are.

    A saved fit holds training rows: the prototypes and a typical row, with their row labels, their
    values in the active features and the prototypes' responses. No setting keeps none.

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
