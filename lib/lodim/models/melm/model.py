"""melm(): the maximum entropy linear manifold, from a formula to a fit."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

from lodim.fitting.fit_model import fitted_by
from lodim.fitting.model import Model, Option, Penalty
from lodim.models.melm import estimate
from lodim.models.melm.assemble import assemble
from lodim.models.melm.classify.rule import calibrated_deviance
from lodim.models.melm.fit import MelmFit
from lodim.models.melm.search.search import MIDDLE
from lodim.models.melm.settings import Settings
from lodim.selection.tuning import choose, preference
from lodim.typing import Data, DType, Engine, Missing, RowValues

GAMMAS = (16.0, 8.0, 4.0, 2.0, 1.0)  # of gamma, tried where none is given
SPREAD = 2.0  # standard errors by which held-out losses may differ and weigh much the same
DOUBTED, SURE = 2.0, 4.0  # standard errors by which no shrinkage is better: to change, to be chosen
LEAST = 0.01  # shrinkage factor in front of none
FEW_DRAWS = 6  # of the folds that compare covariances, at most
FINE = 32  # parts of a step between two values: an answer should not jump with a draw of folds
TIE = 10.0  # deviance of all rows together by which two gammas are as good as equal
SMOOTHEST, SHARPEST = 16.0, 0.125  # of gamma, on a path


REFERENCE = """\
@inproceedings{czarnecki2015melm,
  title     = {Maximum Entropy Linear Manifold for Learning Discriminative Low-dimensional
               Representation},
  author    = {Czarnecki, Wojciech Marian and Jozefowicz, Rafal and Tabor, Jacek},
  booktitle = {Machine Learning and Knowledge Discovery in Databases (ECML PKDD)},
  year      = {2015}
}"""


class Melm(Model):
    """Maximum entropy linear manifold: gamma and covariance are chosen by cross-validation."""

    name = "melm"
    reference = REFERENCE
    settings = Settings
    families = ("binomial", "multinomial", "none")
    penalties: ClassVar = {"gamma": Penalty(lambda *_: SMOOTHEST, SHARPEST / SMOOTHEST)}
    shared_setting = "gamma"
    many_rows = 1_500_000
    options = (
        Option("--k", "k", int, "dimensions of the view; default: 2 at most"),
        Option("--gamma", "gamma", float, "width of the kernels; default: by cross-validation"),
        Option("--starts", "n_starts", int, "starts of the search; default: 17"),
    )
    plots = ("view", "loadings", "starts")
    fit_stages = staticmethod(estimate.fit_stages)
    assemble = staticmethod(assemble)
    reweigh = staticmethod(estimate.reweigh)
    held_out_deviance = staticmethod(calibrated_deviance)

    def validate(self, problem):
        """Raise if the data do not suit the model; the number of dimensions by the rows."""
        return estimate.with_dimensions(super().validate(problem))

    def fit(self, problem):
        """Choose gamma and covariance if they are open, and return the fit of a problem."""
        if problem.settings.gamma is not None or problem.family.name == "none":
            return self.run(problem)
        problem, tried = _chosen(problem)
        found = estimate.fit_view(problem.batch, problem.settings, problem.family, MIDDLE)
        return self.run(problem, tried, found=found)


MODEL = Melm()


def _chosen(problem):
    """The problem with gamma and an open shrinkage factor by cross-validation; the gammas tried."""
    quick = estimate.for_folds(problem)
    draws, tie = estimate.most_draws(problem.batch), TIE / max(1.0, problem.batch.weight_sum)
    given = problem.arguments["covariance"], (problem.arguments["control"] or {})
    if given[0] is None and "shrinkage_factor" not in given[1]:
        quick = _with_shrinkage_factor(quick, min(draws, FEW_DRAWS))
    how = {"spread": SPREAD, "parts": FINE, "tie": tie}
    quick, frame = choose(quick, {"gamma": GAMMAS}, most_draws=draws, **how)
    settings = replace(quick.settings, n_starts=problem.settings.n_starts)
    return problem.settle(settings, chosen=quick.chosen), frame


def _with_shrinkage_factor(problem, draws):
    """The problem with covariances shrunk the less, the surer no shrinkage is better held out."""
    middle = replace(problem, settings=replace(problem.settings, gamma=MIDDLE))
    z = preference(middle, "shrinkage_factor", (1.0, 0.0), most_draws=draws)
    share = min(max(0.0, (z - DOUBTED) / (SURE - DOUBTED)), 1.0)
    factor = LEAST**share if share < 1.0 else 0.0
    return replace(problem, settings=replace(problem.settings, shrinkage_factor=factor))


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
    penalty: bool = False,
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
    """Maximum entropy linear manifold (Czarnecki et al. 2015): the view in which classes part.

    The k-dimensional linear projection V'x with the largest Cauchy-Schwarz divergence between
    kernel density estimates f of the projected classes,
    D(V) = log int f_+^2 + log int f_-^2 - 2 log int f_+ f_- (Section 3). The kernels of a class are
    normal with covariance h^2 cov, cov that of the class and
    h = gamma (4 / (k + 2))^(1 / (k + 4)) n^(-1 / (k + 4)) (Silverman's rule, Section 4). Without a
    response, "~ .", the view of largest or smallest entropy: the first or last principal components
    (Theorems 1 and 2).

    Parameters
    ----------
    formula : str
        Such as "species ~ ." or "echo ~ . - id"; "~ ." for principal components.
        Categories in order (of pandas) have a column for each level but the first, 1 where it is
        reached; C(x) forgets the order.
    data : frame, or path
        pandas, polars, pyarrow, or a dict of columns. What tidy() and glance() give is of its kind.
        Or what is read part by part: Parquet, CSV or Arrow files (a path, a pattern, a folder), a
        pyarrow Dataset, a polars LazyFrame, a Dask DataFrame.
    family : {"binomial", "multinomial"}, optional
        By the response. Numbers other than 0/1 and -1/1 are classes with "multinomial" alone.
    k : int, optional
        Dimensions of the view. Default: 2, a plane, or 1 where the rows (of a class, beside its
        mean) vary in one direction only.
    gamma : float, optional
        Width of the kernels, in those of Silverman's rule: larger ones see less detail. Default:
        chosen by cross-validation.
    covariance : {"shrunk", "ledoit-wolf"}, default="shrunk"
        Covariance of a class, shrunk by the rule of Ledoit and Wolf: "shrunk" towards a multiple
        of the covariance within all classes, which that rule shrinks towards its diagonal;
        "ledoit-wolf" towards a multiple of the identity (the authors' code). With "shrunk" the
        divergence does not change under changes of the features' units, and with a
        `shrinkage_factor` of 0 (see `control`) not under affine maps either (Observation 1).
        If neither gamma nor covariance is given, cross-validation chooses the factor: see Notes.
    divergence : {"sum", "mean"}
        Of several classes: the divergences of all pairs added up, or their mean, pairs weighted by
        the products of class shares.
    entropy : {"max", "min"}
        Without a response: first or last principal components.
    penalty : bool
        Search by Eq. 2, D(V) - |V'V - I|^2 over the features, instead of over whitened coordinates,
        where no penalty is needed. The maximum is the same; the end of a start need not be.
    n_starts : int
        Starts of the search: principal components, the directions of class means, those of class
        covariances, then random sums of rows; the best end is kept. `fit.starts()` has all.
    classifier : "kde" or estimator
        In the view: the densities, with probabilities calibrated; or an estimator with `fit` and
        `predict_proba` as scikit-learn's, of which a copy is fitted to the coordinates.
    weights : column name, array (n,) or "balanced", optional
        Row weights: a row of weight 2 counts as two rows. Weights that sum to less than the number
        of rows that have one, such as shares, are scaled to that sum.
        "balanced": all classes get the same total weight, n / (K n_k) for each of the n_k rows of
        class k (n rows, K classes). Not for a numeric response.
    offset : None
        A view has no score that an offset could be part of: refused.
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
        Scale features to unit standard deviation; they are centred in any case. Principal
        components depend on it; of the divergence only rounding does.
    dtype : {"float64", "float32"}
        Of the stored features; all that follows is in float64.
    seed : int
        Of starts and of the folds; equal seeds give equal bits, whatever `threads` is. Where rows
        and columns stand and what classes are called changes no start and no row that is drawn.
    threads : int, optional
        All that are available by default.
    engine : {"cpu", "cuda", "auto"}
        Where the exact sums over pairs of rows run. "cuda": on an NVIDIA GPU (needs the extra
        `cuda`), which holds a copy of the rows during a search; of more rows than sums are exact
        for, the last search, and `predict`, stay on the CPU. "auto": there if 3,000 rows or more
        are summed over and such a GPU is usable, else on the CPU. The GPU's kernels have been
        compared with the CPU's in Numba's simulator, not yet on hardware.
    sample : int, optional
        So many rows alone, drawn at random by where they stand and `seed`; all by default.
    client : dask.distributed.Client, optional
        Refused: no pass of this model runs on the workers of a cluster. A Dask frame is read here.
    progress : bool, optional
        Show progress on standard error: `True` at once (bars if tqdm is installed), `False` never;
        by default a line after three seconds.
    control : dict, optional
        prior ("shares", which serves accuracy and log-loss, or "equal": the classifier gives all
        classes the same prior probability, which serves balanced accuracy), calibrate (True; False
        leaves the densities and the scores as they are, and spares a search in each fold),
        shrinkage_factor (of covariance="shrunk": how many times the odds s / (1 - s) of the
        intensity s by which the rule of Ledoit and Wolf shrinks the covariance within all classes;
        1 is the rule, 0 leaves that covariance as it is; default: by cross-validation if neither
        gamma nor covariance is given, else 1),
        reference_rows (10,000, training rows that are kept to be drawn, and of
        rare classes up to 30 besides), max_iter (500) and tol (1e-6) of the search: it has
        converged where the largest gradient is at most tol, or two steps in a row raise the
        divergence by at most 1e-9 of it,
        scratch (None; a folder: a file in it holds the features while the model is fitted. By
        default they are in memory, or of files, lazy and Dask frames, where they would take more
        than half of what is free of it, in such a file in the system's temporary folder).

    Returns
    -------
    MelmFit

    Raises
    ------
    FormulaError, DataError, ArgumentError
        DataError also for a numeric response, and where a class has fewer than k + 1 rows.
    MissingExtraError, DeviceError
        engine="cuda" without the extra `cuda`; or no GPU is usable, or it lacks memory.

    See Also
    --------
    MelmFit, cv

    Notes
    -----
    Any basis of the plane has the same divergence. The one that is reported has unit variances
    within classes, without correlation; its first axes are those along which class means differ
    most, and along the others the spreads of classes differ most. The last class is on the positive
    side of the former, if it is on either; along the others, the largest loading is positive, and
    where the largest of both signs are equal (1e-6) the longer tail of the rows is.

    Where gamma is not given, melm chooses among five values by the deviance of held-out rows: five
    folds, drawn twelve times up to 250 rows, 3,000 / n times up to 3,000 and once up to 4,000; one
    fold of five held out beyond, on at most 20,000 rows drawn at random. In folds a search has
    three starts at most, at gamma 4, and from its end goes on to the other values. A value weighs
    exp(-(loss - least loss) / s), s two standard errors of the least loss, or 10 / n if that is
    more: a difference of 10 in the deviance of all n rows. The weighted mean of the values is
    taken, in log, and rounded to a thirty-second of the step between two, so that another draw of
    the folds moves it a little. The scores of a fold are first calibrated, by one factor: a view
    that was made for the training rows is too sure of others, and all the more the narrower its
    kernels are. Before that, on six of these draws at most and at gamma 4, a shrinkage factor of 0
    is compared with 1, if no covariance is given, and rejected if it is no better in the first
    draw. If it is better by z standard errors of the difference, the factor is 0.01^((z - 2) / 2)
    from z = 2 on, and 0 from z = 4 on: so no draw of the folds makes it jump.

    The view of a gamma that was chosen is followed from the best of all starts at gamma 4, in steps
    of an eighth of an octave at most. There most starts end in one view; at smaller gammas there
    are many ends of nearly the same divergence, and a little more or less of gamma, or another
    seed, would make another of them the best. With a gamma that is given, the best end at that
    gamma counts, which may be another view.

    All starts are searched on 2,048 rows, drawn at random where there are more, until two steps in
    a row raise the divergence by at most 1e-4 of it; the best three of their ends go on, over all
    rows. Up to 5,000 rows sums over pairs are exact. Of more they are
    approximated in up to three dimensions, where that costs less and the error, which is measured,
    is at most 0.001; else they are exact up to 16,384 rows, and those of as many drawn at random
    beyond. `summary()` says which.

    The densities that classify are estimated anew in the view, where to "shrunk" covariances of the
    classes that within all classes adds what k + 1 rows would; with kernels of
    the width of least log-loss of training rows that are left out, 10,000 at most and each with all
    its weight, by a parabola through the lowest of five widths and its neighbours; of widths whose
    loss is equal but for rounding (1e-6) the widest. A last search without each of the rows, or
    groups, up to 250 of them, 4,000 rows and five classes, from the view of the fit; of more in
    each of five folds, drawn as often as those for gamma (beyond 4,000 rows in one), with the gamma
    of the fit, calibrates the probabilities of "kde" by one factor of their scores, and
    gives the held-out balanced accuracy and log-loss of print and summary: of rows that had no part
    in the search of the view that classifies them, nor in the factor that their probabilities are
    judged with. Where gamma was chosen, it was on the same rows, though in other folds: new rows
    may be classified a little worse.

    A saved fit holds the class and the k coordinates of all training rows, for the densities; of a
    class of more than 32,768 rows the means of small cells instead, and some of its rows. With as
    many dimensions as features, these can be computed from the coordinates. No setting keeps none.

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
