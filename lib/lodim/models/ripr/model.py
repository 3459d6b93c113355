"""The public function ripr() and the model's declaration."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from lodim.errors import ArgumentError, warn_not_converged
from lodim.fitting.fit_model import fitted_by
from lodim.fitting.model import Model, Option, Penalty
from lodim.fitting.registry import FITERAU
from lodim.forms import plain_label
from lodim.models.ripr import estimate
from lodim.models.ripr.assignment.view_search import flat_features
from lodim.models.ripr.ensemble import CLASSES, CLUSTERS, record, task_of
from lodim.models.ripr.fit import RiprFit
from lodim.models.ripr.multi_fit import RiprFits
from lodim.models.ripr.settings import VOTE, Settings
from lodim.typing import Data, Family, Missing, RowValues


def _is_of(*tasks):
    """Return a function that tests if a Problem's task is one of `tasks`, such as CLASSES."""
    return lambda problem: task_of(problem.family) in tasks


class Ripr(Model):
    """The model ripr: its settings, and the steps from data to a fit."""

    name = "ripr"
    reference = FITERAU
    settings = Settings
    families = (*Model.families, "none")
    missing = (*Model.missing, "keep")
    penalties: ClassVar = {"lambda_": Penalty(estimate.largest_lambda, ratio=1e-3, needed=False)}
    requirements = (
        ("n_clusters", "a formula without a response, such as '~ .'", _is_of(CLUSTERS)),
        ("alpha", "classes or clusters, not a numeric response", _is_of(CLASSES, CLUSTERS)),
        ("balanced", "a response with classes", _is_of(CLASSES)),
        ("smooth", "order=, a column of times", lambda problem: problem.batch.order is not None),
    )
    shared_setting = "lambda_"
    several_responses = True
    many_rows = 150_000
    options = (
        Option("--lambda", "lambda_", float, "penalty; default: chosen by the method"),
        Option(
            "--max-dim",
            "max_dim",
            int,
            "largest number of features of a view, at most 3; default: 3",
        ),
        Option("--min-dim", "min_dim", int, "smallest number of features of a view; default: 1"),
        Option("--k", "k", int, "neighbours; default: about the root of the rows"),
        Option("--method", "method", str, "vote, or assignment as in the thesis; default: vote"),
        Option("--views", "n_views", int, "views, at most"),
        Option("--clusters", "n_clusters", int, "clusters in each view, without a response"),
    )
    plots = ("view", "shares")
    fit_stages = staticmethod(estimate.fit_stages)
    cv_grid = staticmethod(estimate.cv_grid)

    def validate(self, problem):
        return estimate.checked(super().validate(problem))

    def fit_together(self, problems):
        for name in ("family", "order", "constraints"):
            if problems[0].arguments[name] is not None:
                raise ArgumentError(f"{name} needs a single response: leave it out")
        self.refuse_unused(problems)
        pairs = zip(problems, estimate.fit_shared(problems), strict=True)
        fits = [self.run(problem, found=estimates) for problem, estimates in pairs]
        return RiprFits({fit.design.response.name: fit for fit in fits})

    def selects(self, settings):
        return True

    def assemble(self, problem, ensemble, log, selection, for_path):
        if not log["converged"]:
            warn_not_converged("the search for views did not converge: try another lambda_")
        batch, lambda_ = problem.batch, problem.settings.lambda_
        if lambda_ is None and ensemble.method != VOTE and not np.isnan(ensemble.lambda_):
            lambda_ = ensemble.lambda_  # NaN: no penalty found the views
        chosen = {"lambda_": lambda_, "k": ensemble.k, "method": ensemble.method}
        settings = replace(problem.settings, **chosen, constraints=None, axes=None)
        return RiprFit(
            **replace(problem, settings=settings).common(selection),
            estimates=ensemble,
            log=log | {"flat": flat_features(batch)},
            record=record(ensemble, problem.family),
            labels=tuple(plain_label(label) for label in batch.index[batch.rows]),
        )


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
    """Fit informative projections (Fiterau 2014): a few views of one to three features.

    A view is a set of features in which the nearest training rows predict. By default
    (`method="vote"`) all views predict together: in each view the k nearest rows of a row vote, and
    the log-odds (for numbers, the differences from the mean) of all views are added. Views are
    selected one by one, by leave-one-out loss.

    With `method="assignment"`, as in Fiterau's thesis, one view predicts each row, and a penalty
    keeps the number of views small. It is the default without a response, for several responses,
    and with an argument that only this method has: `lambda_`, `alpha`, `balanced`, `order`,
    `constraints`, or entries of `control`. The loss of a row in a view depends on the response:

    - classes: distance to the k-th nearest row of the own class, divided by that to other classes.
      Rows without a class are used too.
    - numbers: squared error of the mean of the neighbours, weighted by inverse distance.
    - none ("~ ."): distance to the k-th nearest row, divided by that to a uniform sample. In each
      view, k-means then finds clusters of its rows.

    Parameters
    ----------
    formula : str
        Such as "alert ~ .", "~ . - id" without a response, or "first + second ~ ." for several
        responses. Ordered categories get a 0/1 column per threshold; C(x) ignores the order.
    data : frame, path or other source
        pandas, polars or pyarrow table, dict of columns, file path or pattern, pyarrow Dataset,
        polars LazyFrame or Dask DataFrame. Rows with a missing response have no vote.
    family : {"gaussian", "binomial", "multinomial"}, optional
        For one response; by default inferred from it.
    max_dim, min_dim : int, optional
        Largest and smallest number of features per view; by default 3 and 1 with voting, 2 with
        assignment.
    k : int, optional
        Number of neighbours. By default the square root of the number of rows, adjusted by
        leave-one-out loss.
    method : {"vote", "assignment"}, optional
        Whether all views predict together, or one view predicts each row; by default as above.
    lambda_ : float, optional
        Penalty of the assignment, in units of (1 - alpha)^2 (for numbers, of the variance of
        losses); larger values keep fewer views. By default leave-one-out errors choose it.
    alpha : float in [0, 1), default=0.99
        Losses are ratios of distances to the power 1 - alpha; not for a numeric response.
    balanced : bool, default=False
        For classes: remove class shares from the losses, as in Eq. 2.3 (Eq. 2.5 keeps them).
    n_clusters : int, optional
        Number of clusters per view; by default 1 to 8, by prediction strength.
    n_views : int, optional
        Largest number of views; 8 by default with voting.
    max_views : int, optional
        Largest number of views compared; beyond it, views of d features extend the best of d - 1.
        By default 2,000 per number of features; with assignment as many as fit in 1 GiB.
    weights : column name, array (n,) or "balanced", optional
        Row weights in the objective and in leave-one-out errors; rows of weight zero are no
        neighbours. "balanced" gives all K classes equal total weight.
    order : column name or array (n,), optional
        Time or other order of the rows; switching views between consecutive rows is penalized
        (Sect. 4.2; control's `smooth`). Predictions ignore it.
    constraints : dict, optional
        Constraints on the assignment of the training rows: "prices" and "budget", "groups", "hard",
        "further"; see "How ripr works".
    missing : {"keep", "drop", "indicator"}, default="keep"
        Treatment of missing features. "keep": a row is used in the views whose features it has.
        "drop": it is dropped, and predicted as NaN. "indicator": a missing number becomes the mean,
        with an indicator column. Only "keep" uses rows without a response.
    standardize : bool, default=True
        Scale features to unit standard deviation; distances depend on it.
    seed : int, default=0
        Seed of random samples and of k-means. Results are identical for any number of threads.
    threads, sample : int, optional
        Number of threads, and of randomly drawn rows to fit; all by default.
    client : dask.distributed.Client, optional
        Not supported by this model; a Dask frame is read in this process.
    progress : bool, optional
        Show progress: True at once, False never, default after three seconds.
    control : dict, optional
        `share`, `tolerance`, `smooth`, `scratch`, described on the page "How ripr works".

    Returns
    -------
    RiprFit
        RiprFits if the formula has several responses.

    Raises
    ------
    FormulaError, DataError, ArgumentError

    See Also
    --------
    RiprFit, cv, active

    Notes
    -----
    The fit's own errors are computed on the rows that chose its settings; `lodim.cv` estimates
    errors on new rows. With several responses (Sect. 4.1) the views are shared, but not their rows.
    The page "How ripr works" has the equations and the choice of views, k and number of clusters.

    A saved fit holds all training rows: row labels, responses, weights, and the values of the
    features that the views use. No setting prevents this.

    References
    ----------
    Fiterau, M. (2014). Discovering compact and informative structures through data partitioning.
    Thesis draft, Carnegie Mellon University, ch. 2-4.
    Tibshirani, R. and Walther, G. (2005). Cluster validation by prediction strength. Journal of
    Computational and Graphical Statistics 14, 511-528.

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
