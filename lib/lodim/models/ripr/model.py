"""ripr(): a handful of views, each for its part of the data, from a formula to a fit."""

from typing import Any, ClassVar, Literal

from lodim.errors import ArgumentError
from lodim.fitting.citation import FITERAU
from lodim.fitting.fit_model import fitted_by
from lodim.fitting.model import Model, Option, Penalty
from lodim.models.ripr.assemble import assemble
from lodim.models.ripr.estimate import (
    checked,
    cv_grid,
    fit_shared,
    fit_stages,
    largest_lambda,
    refuse_unused_arguments,
)
from lodim.models.ripr.fit import RiprFit
from lodim.models.ripr.multi_fit import RiprFits
from lodim.models.ripr.settings import Settings
from lodim.typing import Data, Family, Missing, RowValues


class Ripr(Model):
    """Informative projections: the method chooses its own penalty, or number of views."""

    name = "ripr"
    reference = FITERAU
    settings = Settings
    families = (*Model.families, "none")
    missing = (*Model.missing, "keep")
    penalties: ClassVar = {"lambda_": Penalty(largest_lambda, ratio=1e-3, needed=False)}
    shared_setting = "lambda_"
    several_responses = True
    many_rows = 150_000
    options = (
        Option("--lambda", "lambda_", float, "penalty; default: chosen by the method"),
        Option("--max-dim", "max_dim", int, "features of a view, at most 3; default: 3"),
        Option("--min-dim", "min_dim", int, "features of a view, at least; default: 1"),
        Option("--k", "k", int, "neighbours; default: about the root of the rows"),
        Option("--method", "method", str, "vote, or assignment as in the thesis; default: vote"),
        Option("--views", "n_views", int, "views, at most"),
        Option("--clusters", "n_clusters", int, "clusters in each view, without a response"),
    )
    plots = ("view", "shares")
    fit_stages = staticmethod(fit_stages)
    assemble = staticmethod(assemble)
    cv_grid = staticmethod(cv_grid)

    def validate(self, problem):
        """Raise if the arguments do not suit each other or the data; settings by the data."""
        return checked(super().validate(problem))

    def fit_together(self, problems):
        """Return the fits of several responses, which share their views."""
        for name in ("family", "order", "constraints"):
            if problems[0].arguments[name] is not None:
                raise ArgumentError(f"{name} is for one response; leave it out")
        refuse_unused_arguments(problems)
        pairs = zip(problems, fit_shared(problems), strict=True)
        fits = [self.run(problem, found=estimates) for problem, estimates in pairs]
        return RiprFits({fit.design.response.name: fit for fit in fits})

    def selects(self, settings):
        """Views are made of some of the features."""
        return True


MODEL = Ripr()


@fitted_by(MODEL)
def ripr(
    formula: str,
    data: Data,
    *,
    family: Family | Literal["none"] | None = None,
    max_dim: int | None = None,
    min_dim: int | None = None,
    k: int | None = None,
    method: Literal["vote", "assignment"] | None = None,
    lambda_: float | None = None,
    alpha: float = 0.99,
    balanced: bool = False,
    learner: Any = None,
    n_clusters: int | None = None,
    n_views: int | None = None,
    max_views: int | None = None,
    weights: RowValues | None = None,
    order: RowValues | None = None,
    missing: Missing | Literal["keep"] = "keep",
    constraints: dict[str, Any] | None = None,
    standardize: bool = True,
    seed: int = 0,
    threads: int | None = None,
    sample: int | None = None,
    client: Any = None,
    progress: bool | None = None,
    control: dict[str, Any] | None = None,
) -> RiprFit | RiprFits:
    """Informative projection recovery (Fiterau 2014): a few views, each for its part of the data.

    A view is a set of one to three features. By default (`method="vote"`) all views answer
    together. In each view the nearest rows vote, and a row's score is prior + t sum_j s_j. Here s_j
    is what view j adds to the prior: log(p_jc / prior_c) for class c, or a difference from the
    mean. Views are taken one after the other by the held-out log-loss (squared error); see Notes.

    With `method="assignment"`, the method of the thesis, one view answers each row. It is used
    without a response, for several responses, and if an argument is given that only it has
    (`lambda_`, `alpha`, `balanced`, `learner`, `order`, `constraints`, and control's).

    Every row is judged in every view by its neighbours there: a loss matrix L (n, d*),
    L*_i = min_j L_ij. Shares B_ij >= 0 of the views in a row, which
    sum to one, minimize sum_i (u_i - L*_i)^2 + lambda sum_ij delta_j B_ij, u_i = sum_j L_ij B_ij,
    with delta_j = 1 - sum_i B_ij / n, the smaller the more rows a view serves (Algorithm 2.1.1);
    delta is updated until the objective settles. Views that keep more than 5 % of the rows make the
    model, and k-NN in them answers queries.

    The response says what the losses are:

    - classes (Eq. 2.5): (nu_k(own class) / nu_k(other classes))^(dim (1 - alpha)), nu_k the
      distance to the k-th nearest neighbour. A query gets the view of the smallest ratio (2.11)
      and the class that is most probable there.
      Rows whose class is missing are used too: their loss is the smallest over the classes.
    - numbers: squared error of the mean of the neighbours, weighted by inverse distance. A query
      gets the view that serves most of its neighbours.
    - none ("~ ."): ((nu_k(rows) / nu_k(uniform sample))^dim / volume)^(1 - alpha), small where rows
      are dense; then k-means in each view, of the rows that it serves. See Notes.

    Parameters
    ----------
    formula : str
        Such as "alert ~ .", "strength ~ . - age + np.log(age)", "~ . - id" without a response, or
        "first + second ~ ." for several responses that share their views.
        Categories in order (of pandas) have a feature for each level but the first, 1 where it is
        reached; C(x) forgets the order.
    data : frame, path or other source
        pandas, polars or pyarrow table, dict of columns, file path or pattern, pyarrow Dataset,
        polars LazyFrame or Dask DataFrame.
        Rows with missing features are used in the views whose features they have. Rows with a
        missing response have no vote; with assignment they are used as said above.
    family : {"gaussian", "binomial", "multinomial"}, optional
        By the response, where it is not given; for one response.
    max_dim, min_dim : int, optional
        Features of a view, at most and at least. Where views vote from 1 to 3 by default: each has
        as many as the rows left out ask for. With assignment 2 (1 where there is but one
        feature): one-feature views lower the precision of recovery.
    k : int, optional
        Neighbours, at most all other rows that count and have a response (in the folds of cv() as
        many as there are); by default the root of the number of rows. Where views vote, half or
        twice that are tried too, and taken where the loss of rows left out is 10 % less; with
        assignment a fourth of it: see Notes.
    method : {"vote", "assignment"}, optional
        "vote": all views answer together, by the votes of the neighbours in each. "assignment": one
        view answers each row, by the ratio of Eq. 2.11 of the thesis. By default as said above.
    lambda_ : float, optional
        Penalty, in units of (1 - alpha)^2 (of the variance of losses, for numbers): larger ones
        keep fewer views. By default the method finds the number of views itself: see Notes.
    alpha : float in [0, 1), default=0.99
        Order of the divergence, near 1; not for a numeric response.
    balanced : bool
        Take the shares of the classes out of the losses (Eq. 2.3 has them, 2.5 does not); for
        classes.
    learner : estimator, optional
        With fit(X, y) and predict(X), as scikit-learn's: one is fitted to the rows that each view
        serves, and answers in it: a classifier (y are codes from 0), a regressor, or without a
        response a clusterer. Errors are then those of the rows that it was fitted to. By default
        the neighbours answer, without a response k-means.
    n_clusters : int, optional
        Clusters of k-means in each view; by default from 1 to 8, by prediction strength: see Notes.
    n_views : int, optional
        Views of the model, at most: 8 by default where views vote; with assignment, those that
        serve most rows are kept of more.
    max_views : int, optional
        Views that are compared, at most: where there are more, those of d features are made from
        the best ones of d - 1, and the print says so. At least the number of features that vary. By
        default 2,000 of each number of features where views vote; with assignment as many as
        take 1 GiB, 8 bytes a row and view (a fit takes about 0.1 GiB beside them).
    weights : column name, array (n,) or "balanced", optional
        Weights of the rows in the objective and in leave-one-out errors; rows of weight zero are
        nobody's neighbours.
        "balanced" gives all K classes equal total weight: n / (K n_k) per row of class k.
    order : column name or array (n,), optional
        Time or another order of the rows: each row then has one view, and switching views between
        rows that follow each other has a price (Sect. 4.2; control's `smooth`). Queries are
        answered as without.
    constraints : dict, optional
        Constraints on the assignment of the training rows: see Notes.
    missing : {"keep", "drop", "indicator"}
        What becomes of rows that miss a feature. "keep": they are used in the views whose features
        they have. "drop": they are left out, and answered by NaN. "indicator": a missing number is
        the mean of the training rows, beside a column such as `age[missing]` where training had
        gaps in it; a missing category is a level of its own. With the latter two, rows without
        response are left out.
    standardize : bool, default=True
        Scale features to unit standard deviation; distances depend on it.
    seed : int, default=0
        Of the uniform sample, of how repeated values are spread, and of k-means; equal seeds give
        equal bits, whatever `threads` is.
    threads : int, optional
        Number of threads; all by default.
    sample : int, optional
        Fit only this many randomly drawn rows; all by default.
    client : dask.distributed.Client, optional
        Not supported by this model; a Dask frame is read in this process.
    progress : bool, optional
        Show progress: True at once, False never, default after three seconds.
    control : dict, optional
        Settings of the algorithm, listed on the page "Algorithms and their constants": `share`,
        `tolerance`, `smooth`, `scratch`.

    Returns
    -------
    RiprFit
        RiprFits where the formula has several responses.

    Raises
    ------
    FormulaError, DataError, ArgumentError

    See Also
    --------
    RiprFit, cv, active

    Notes
    -----
    All choices are made with the rows that the fit's own errors are computed on; `lodim.cv`
    estimates errors on new rows, choosing again in each fold. With several responses (Sect. 4.1)
    the views are shared, but not which rows a view serves. Clusters need not agree with known
    groups.

    The page "Algorithms and their constants" tells how views, k and numbers of clusters are chosen,
    how ties are broken, and has all entries of `control` and `constraints`.

    A saved fit holds all training rows: row labels, responses, weights, and the values of the
    features that the views use. No setting keeps none.

    References
    ----------
    Fiterau, M. (2014). Discovering compact and informative structures through data partitioning.
    Thesis draft, Carnegie Mellon University, ch. 2-4.

    Tibshirani, R. and Walther, G. (2005). Cluster validation by prediction strength. Journal of
    Computational and Graphical Statistics 14, 511-528.

    Tibshirani, R., Walther, G. and Hastie, T. (2001). Estimating the number of clusters in a data
    set via the gap statistic. Journal of the Royal Statistical Society B 63, 411-423.

    Examples
    --------
    >>> import lodim as ld
    >>> iris = ld.data("iris")
    >>> fit = ld.ripr("species ~ .", iris, max_dim=2)
    >>> fit.view_names[0]
    'petal_length, petal_width'
    >>> fit.predict(iris.iloc[[0, 60]], "class").tolist()
    ['setosa', 'versicolor']
    """
