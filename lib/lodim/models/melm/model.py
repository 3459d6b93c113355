"""The public function melm() and the model's declaration."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

from lodim.errors import warn_not_converged
from lodim.fitting.fit_model import fitted_by
from lodim.fitting.model import Model, Option, Penalty
from lodim.models.melm import estimate
from lodim.models.melm.fit import MelmFit
from lodim.models.melm.rule import calibrated_deviance
from lodim.models.melm.search import MIDDLE
from lodim.models.melm.settings import FOR_CLASSES, Settings
from lodim.models.melm.whitening import SHRUNK
from lodim.selection.tuning import choose
from lodim.typing import Data, DType, Engine, Missing, RowValues

GAMMAS = (16.0, 4.0, 1.0)  # values of gamma tried by default
FINE = 32  # interpolated values per step: a smooth mean depends little on the random folds


REFERENCE = """\
@inproceedings{czarnecki2015melm,
  title     = {Maximum Entropy Linear Manifold for Learning Discriminative Low-dimensional
               Representation},
  author    = {Czarnecki, Wojciech Marian and Jozefowicz, Rafal and Tabor, Jacek},
  booktitle = {Machine Learning and Knowledge Discovery in Databases (ECML PKDD)},
  year      = {2015}
}"""


class Melm(Model):
    """The model melm: its settings, and the steps from data to a fit."""

    name = "melm"
    reference = REFERENCE
    settings = Settings
    families = ("binomial", "multinomial", "none")
    penalties: ClassVar = {"gamma": Penalty(lambda *_: GAMMAS[0], 1 / 128)}  # 16 to 0.125
    requirements = (
        *((name, "classes", lambda p: p.family.name != "none") for name in FOR_CLASSES),
        ("entropy", "a formula without a response", lambda p: p.family.name == "none"),
        ("shrinkage_factor", "covariance='shrunk'", lambda p: p.settings.covariance == SHRUNK),
        ("prior", "classifier='kde'", lambda p: p.settings.has_builtin_classifier),
    )
    shared_setting = "gamma"
    many_rows = 1_500_000
    options = (
        Option("--k", "k", int, "dimensions of the view; default: 2 at most"),
        Option("--gamma", "gamma", float, "width of the kernels; default: by cross-validation"),
        Option("--starts", "n_starts", int, "number of starts of the search; default: 17"),
    )
    plots = ("view", "loadings", "starts")
    fit_stages = staticmethod(estimate.fit_stages)
    reweigh = staticmethod(estimate.reweigh)
    held_out_deviance = staticmethod(calibrated_deviance)

    def validate(self, problem):
        return estimate.validate(super().validate(problem))

    def fit(self, problem):
        if problem.settings.gamma is not None or problem.family.name == "none":
            return self.run(problem)
        # Losses within 2 SEs get similar weights; a difference of 10 in total deviance is a tie.
        how = {"spread": 2.0, "parts": FINE, "tie": 10.0 / max(1.0, problem.batch.weight_sum)}
        draws = estimate.most_draws(problem.batch)
        quick = estimate.for_folds(problem)
        quick, tried = choose(quick, {"gamma": GAMMAS}, most_draws=draws, **how)
        settings = replace(quick.settings, n_starts=problem.settings.n_starts)
        problem = problem.settle(settings, chosen=quick.chosen)
        found = estimate.fit_view(problem.batch, problem.settings, problem.family, MIDDLE)
        return self.run(problem, tried, found=found)

    def assemble(self, problem, view, log, selection, for_path):
        settings, family = problem.settings, problem.family
        if not view.converged:
            warn_not_converged(
                "melm did not converge from the best starting point: increase "
                "control={'max_iter': ...}"
            )
        measures = {}
        if family.name != "none":
            if settings.calibrate and not for_path:
                rule, measures = estimate.calibrate(problem, view, log)
                view = replace(view, rule=rule)
            trained = estimate.training_measures(problem, view)
            measures = {**trained, "null_deviance": problem.null_deviance(), **measures}
        results = {"estimates": view, "log": log, "measures": measures}
        return MelmFit(n=problem.batch.n_positive, **results, **problem.common(selection))


MODEL = Melm()


@fitted_by(MODEL)
def melm(
    formula: str,
    data: Data,
    *,
    family: Literal["binomial", "multinomial", "none"] | None = None,
    k: int | None = None,
    gamma: float | None = None,
    covariance: Literal["shrunk", "ledoit-wolf"] | None = None,
    divergence: Literal["sum", "mean"] = "sum",
    entropy: Literal["max", "min"] = "max",
    n_starts: int = 17,
    classifier: Any = "kde",
    weights: RowValues | None = None,
    offset: None = None,
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
) -> MelmFit:
    """Fit a maximum entropy linear manifold (Czarnecki et al. 2015): a view that separates classes.

    The view is the k-dimensional linear projection V'x in which the densities of the classes
    overlap least: it maximizes the Cauchy-Schwarz divergence of kernel density estimates f_+ and
    f_- of two classes, log int f_+^2 + log int f_-^2 - 2 log int f_+ f_- (Section 3). The kernels
    have h^2 times the covariance of a class of n rows, where h = gamma (4 / (k + 2))^(1 / (k + 4))
    n^(-1 / (k + 4)) (Silverman's rule, Section 4). Without a response, "~ .", the view consists of
    the first or last principal components (Theorems 1 and 2).

    Parameters
    ----------
    formula : str
        Such as "species ~ ." or "echo ~ . - id"; "~ ." for principal components.
        Ordered pandas categories get a 0/1 column per threshold; C(x) ignores the order.
    data : frame, path or other source
        pandas, polars or pyarrow table, dict of columns, file path or pattern, pyarrow Dataset,
        polars LazyFrame or Dask DataFrame.
    family : {"binomial", "multinomial"}, optional
        By default inferred from the response. Numbers other than 0/1 and -1/1 need "multinomial".
    k : int, optional
        Dimension of the view; by default 2, or 1 if the rows vary in one direction only.
    gamma : float, optional
        Kernel width relative to Silverman's; wider shows less detail. By default cross-validated.
    covariance : {"shrunk", "ledoit-wolf"}, default="shrunk"
        Covariance of a class, shrunk by the rule of Ledoit and Wolf. "shrunk": towards the pooled
        covariance within classes, itself shrunk towards its diagonal, so that the divergence does
        not depend on the features' units. "ledoit-wolf": towards a multiple of the identity (the
        authors' code).
    divergence : {"sum", "mean"}, default="sum"
        For several classes: sum over all pairs, or mean weighted by products of class shares.
    entropy : {"max", "min"}, default="max"
        Without a response: first or last principal components.
    n_starts : int, default=17
        Number of starting points: principal components, directions of class means and covariances,
        then random sums of rows. The best result is kept.
    classifier : "kde" or estimator, default="kde"
        Classifier in the view: the densities, calibrated; or a scikit-learn estimator with `fit`
        and `predict_proba`, of which a copy is fitted to the coordinates.
    weights : column name, array (n,) or "balanced", optional
        Row weights; a row of weight 2 counts as two rows. Weights whose sum is below the number of
        rows are scaled to it. "balanced" gives all K classes equal total weight.
    offset : None
        Not allowed, since a view has no score.
    missing : {"indicator", "drop"}, default="indicator"
        "indicator": a missing number becomes the training mean, with an indicator column such as
        `age[missing]`; a missing category is a level. "drop" drops the row, predicted as NaN. Rows
        without response or weight are always dropped.
    groups : column name or array (n,), optional
        Rows with equal values are held out together in cross-validation.
    standardize : bool, default=True
        Scale centred features to unit SD; this affects principal components, not the divergence.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the stored features; computations use float64.
    seed : int, default=0
        Seed of starts and folds. Results do not depend on the number of threads, the order of rows
        or columns, or the names of classes.
    threads, sample : int, optional
        Number of threads, and of randomly drawn rows to fit; all by default.
    engine : {"cpu", "cuda", "auto"}, default="cpu"
        Where to compute. "cuda" uses an NVIDIA GPU (extra `cuda`; only tested in Numba's simulator)
        for the search. "auto" uses a GPU from 3,000 rows on if one is usable.
    client : dask.distributed.Client, optional
        Not supported by this model; a Dask frame is read in this process.
    progress : bool, optional
        Show progress: True at once, False never, default after three seconds.
    control : dict, optional
        Settings of the algorithm, listed on the page "How melm works": `prior`,
        `calibrate`, `shrinkage_factor`, `reference_rows`, `max_iter`, `tol`, `scratch`.

    Returns
    -------
    MelmFit

    Raises
    ------
    FormulaError, DataError, ArgumentError
        DataError also for a numeric response, or a class with fewer than k + 1 rows.
    MissingExtraError, DeviceError
        If engine="cuda" lacks its extra, a usable GPU or GPU memory.

    See Also
    --------
    MelmFit, cv

    Notes
    -----
    All bases of the view have the same divergence. In the reported one, coordinates are
    uncorrelated with unit variances within classes; the first axes separate class means, the others
    class spreads. New rows may be classified slightly worse than the printed held-out rows, as
    gamma was chosen with the same rows.

    A saved fit holds the class and the k coordinates of all training rows, or of only some rows and
    cell means for a class of over 32,768 rows. If there are as many dimensions as features, the
    coordinates determine the features. No setting omits them.

    References
    ----------
    Czarnecki, W. M., Jozefowicz, R. & Tabor, J. (2015). Maximum Entropy Linear Manifold for
    Learning Discriminative Low-dimensional Representation. ECML PKDD.

    Examples
    --------
    >>> import lodim as ld
    >>> flowers = ld.data("iris")
    >>> fit = ld.melm("species ~ .", flowers, gamma=1.0, n_starts=4, control={"calibrate": False})
    >>> fit.axes, round(fit.divergence, 1)
    (['x1', 'x2'], 288.8)
    >>> fit.predict(flowers[49:52], "class").tolist()
    ['setosa', 'versicolor', 'versicolor']
    """
