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
    data : frame, or path
        pandas, polars, pyarrow, or a dict of columns. What tidy() and glance() give is of its kind.
        Or what is read part by part: Parquet, CSV or Arrow files (a path, a pattern, a folder), a
        pyarrow Dataset, a polars LazyFrame, a Dask DataFrame.
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
        "balanced": all classes get the same total weight, n / (K n_k) for each of the n_k rows of
        class k (n rows, K classes). Not for a numeric response.
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
    standardize : bool
        Scale features to unit standard deviation; distances depend on it.
    seed : int
        Of the uniform sample, of how repeated values are spread, and of k-means; equal seeds give
        equal bits, whatever `threads` is.
    threads : int, optional
        All that are available by default.
    sample : int, optional
        So many rows alone, drawn at random by where they stand and `seed`; all by default.
    client : dask.distributed.Client, optional
        Refused: no pass of this model runs on the workers of a cluster. A Dask frame is read here.
    progress : bool, optional
        Show progress on standard error: `True` at once (bars if tqdm is installed), `False` never;
        by default a line after three seconds.
    control : dict, optional
        share (0.05, mass that a view must exceed to be kept), tolerance (0.5, standard errors that
        the error at the chosen lambda_ may be above the least), smooth (1, price of a switch in
        units of the penalty),
        scratch (None; a folder: a file in it holds the features while the model is fitted. By
        default they are in memory, or of files, lazy and Dask frames, where they would take more
        than half of what is free of it, in such a file in the system's temporary folder).

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
    Votes. The k nearest rows of a view vote with the weight 1 - d^2 / (1.1 nu^2), d their distance
    and nu that of the k-th; rows that are tied there share the places that are left, and two rows
    with the shares of the classes in all data (or their mean) join every vote. The 200 views of the
    least loss by themselves, on at most 1,000 rows drawn at random, are candidates, and on 2,000
    the next view is that with which the loss of the rows, each without itself, is least; it must
    take 1 % of the loss and .1 % of the null model's off, and one of more features must be better
    by .5 %. The factor t is that of the least loss of all rows, with one row in n_c + 2 of a class
    of n_c rows taken to be of another. A row lacks what the views say whose features it has not:
    without any it gets the prior, and predict(type="view") None. The view of a row is that which
    says most for its answer. All levels of a factor are one axis: two levels are as far apart as
    two rows of a number are in the mean of squares.

    Rule, weights, k, and numbers above were chosen on ten data sets (heart, german_credit,
    ionosphere, liver, diabetes of two kinds, vowels, breast tissue, cars, concrete), where halves
    predict the others: mean accuracy or R2 .753, of 10-NN on all features .669.

    Choice of views with assignment. With a lambda_, Algorithm 2.1.1 finds them. Without, of a
    path of penalties (.03 to 30 units, and on until one view is left, or a smaller penalty selects
    the same views) the largest is taken at which the error of rows left out is within `tolerance`
    standard errors of the least. For classes it has a rival, forward selection: of the 60 views
    that err least by themselves, with a fourth of the root of the number of rows as k, one after
    the other is taken that leaves the least doubt of the rows' classes, while errors fall by more
    than their root. It is the model where it errs less: with as many views by more than half a
    standard error of the difference, with more of them by one more for each. No lambda_ gives these
    views again: it is NaN in glance(), and the print says how they were found. All this is done
    with the rows that the fit's own errors are of. What they will be of new rows, `lodim.cv`
    estimates, which chooses anew for each fold; beside penalties its grid has None, the method's
    own choice. `lodim.path` walks along penalties alone. Both take one response.

    Ties. Values, distances and losses that differ by rounding alone are equal. Where the k-th
    neighbour of a class is at the very place of a row, a ratio of distances says nothing: the rows
    there are counted, and the ratio is (n_other + 1/2) / (n_own + 1/2). Of more rows at the k-th
    distance than there is room for each votes in part; where views or classes are tied, each is
    right in part when errors are counted. Of equal views the one with fewer features is taken, and
    a row goes to that which serves more; of equally probable classes it gets that of more training
    rows. So neither the order of rows and columns nor the names of the classes have a say.

    Probabilities. In the view that serves a row, p_c is proportional to ratio_c^(-s dim) vote_c^t
    with the ratios of Eq. 2.11 and the shares of the classes among the k nearest rows; s and t
    minimize the deviance of the training rows, each without itself. The most probable class need
    not be that of the smallest ratio, which Eq. 2.11 takes.

    Several responses (Sect. 4.1): one loss matrix each; the mass of a view is that over the rows of
    all of them, so that they share views without sharing which rows a view serves.

    Clusters. Two features that repeat one measurement are dense beside a sample over the box that
    bounds them. Their loss is therefore divided by the volume, as a share of that box, of the one
    along the view's principal components: the reference of the gap statistic (Tibshirani et al.
    2001, Sect. 3, b). The number of clusters in a view is the largest of which the prediction
    strength (Tibshirani and Walther 2005, who advise .8 to .9) is .85 or more, a mean over ten
    random halvings of the rows that it serves (2,000 of them at most): k-means of one half must
    keep together .85 of the pairs of rows that are together in a cluster of the other. On 360
    synthetic samples of 1 to 8 groups it found the number in 93 %, the Calinski-Harabasz index in
    72 % (`benchmarks/ripr.py numbers`). lambda_ is 2, which on synthetic data with one, two and
    three informative views and copies of features came nearest to the groups. Clusters of rows that
    a view serves need not be groups that are known otherwise.

    Constraints. CVXPY finds the assignment, first over all views and then among those that are
    kept. A round takes seconds for 500 rows and 435 views, so `max_views` may help. Queries are
    answered as without constraints. Entries, all of them linear in B:

    - "prices", a dict by column of the data, and "budget", a number or (N,) for the rows of the
      data: a view pays each column once that its features are made of (columns that are not named:
      nothing), and sum_j cost_j B_ij <= budget_i. A single feature such as "arm[B]" can be priced
      too.
    - "groups", (N,): rows of a group have the same shares; a row without one is its own.
    - "hard": True, one view for each row.
    - "further": a function (B, views) -> list of CVXPY constraints; B is the variable, n x d*, and
      views are the names of the features of each column. It is called twice, for all views and for
      those that are kept: find columns by their names, not by their numbers. The rows are those of
      the data that count; of a numeric response, those that also have one.

    An empty dict sets no constraint: the reference for the exact solver that is used without.

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
