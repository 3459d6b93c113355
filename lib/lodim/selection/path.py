"""Regularization paths: one fit per penalty, starting with the null model."""

from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np
import pandas as pd

from lodim.checks import one_of, positive, share, sizes, whole
from lodim.design.frame import as_given, in_pandas
from lodim.errors import ArgumentError
from lodim.fitting.argument_names import with_known_arguments
from lodim.fitting.fit_model import model_of, prepare
from lodim.fitting.model import lambda_grid
from lodim.progress import steps
from lodim.report.tables import Table, listing, significant
from lodim.typing import Data, FitT, FitT_co, Model, P, Values


@with_known_arguments
def path(
    model: Model[P, FitT],
    formula: str,
    data: Data,
    n_lambda: int | None = None,
    lambda_min_ratio: float | None = None,
    lambdas: float | Values | None = None,
    penalty: str | None = None,
    progress: bool | None = None,
    *args: P.args,
    **arguments: P.kwargs,
) -> "Path[FitT]":
    """Fit a model for a decreasing sequence of penalties.

    Each fit starts from the estimates of the previous fit, if the model supports this.

    Parameters
    ----------
    model : model function
        Model function, such as `lodim.gbmap`.
    formula, data, **arguments
        Arguments of the model. Without `m` (gbmap) or `n_batches` (proset), the number of stages
        is `control["path_stages"]`, by default 10 for gbmap and 1 for proset. Knots of splines,
        levels, centres, scales and means are learned once, from all rows.
    n_lambda : int, default=100
        Number of penalties.
    lambda_min_ratio : float, default=1e-6
        Smallest penalty divided by the largest. At the largest penalty the fit is (nearly) the
        null model. For `lambda_w` of proset the default is 1e-9.
    lambdas : array, optional
        Penalties to use instead of the default sequence.
    penalty : str, optional
        Name of the penalty to vary; default: the model's first, such as `lambda_v` of proset.
    progress : bool, optional
        Show progress: True at once, False never, default after three seconds.

    Returns
    -------
    Path

    Raises
    ------
    ArgumentError
        If a value of the varied penalty is given, another penalty that a fit needs is not given, or
        `lambdas` are not valid penalties.
    FormulaError, DataError

    See Also
    --------
    Path, cv

    Examples
    --------
    >>> import lodim as ld
    >>> path = ld.path(ld.gbmap, "mpg ~ .", ld.data("autompg"), m=2, lambdas=[0.01, 1.0, 0.1])
    >>> path.lambdas.tolist()
    [1.0, 0.1, 0.01]
    """
    own = model_of(model)
    names = tuple(own.penalties)
    if not names:
        raise ArgumentError(f"{own.name} has no penalty, and so no path")
    penalty = names[0] if penalty is None else penalty
    one_of("penalty", penalty, names)
    if arguments.get(penalty) is not None:
        raise ArgumentError(f"a path varies {penalty}: give lambdas=, or call the model itself")
    ratio = None if lambda_min_ratio is None else share("lambda_min_ratio", lambda_min_ratio)
    if lambdas is not None and (n_lambda is not None or ratio is not None):
        what = "n_lambda and lambda_min_ratio have no effect with lambdas="
        raise ArgumentError(f"{what}: leave them out")
    n_lambda = whole("n_lambda", 100 if n_lambda is None else n_lambda, least=2)
    problem = prepare(own, formula, data, arguments)
    for name, other in problem.model.penalties.items():
        if other.needed and name != penalty and getattr(problem.settings, name) is None:
            raise ArgumentError(f"a path over {penalty} needs a fixed {name}: give {name}=")
    stages = problem.model.stage_setting
    if stages and getattr(problem.settings, stages) is None:
        settings = replace(problem.settings, **{stages: problem.settings.path_stages})
        problem = replace(problem, settings=settings)
    if lambdas is None:
        lambdas = lambda_grid(problem, penalty, n_lambda, ratio)
    along = _settings_along(problem, penalty, lambdas)
    settled = (penalty, stages) if stages else (penalty,)
    fits, warm = [], None
    for settings in steps(along, len(along), "penalties"):
        point = problem.settle(settings, given=settled)
        fits.append(problem.model.run(point, warm_start=warm, for_path=True))
        warm = fits[-1].estimates
    return Path(problem.call, tuple(fits), penalty)


def _settings_along(problem, penalty, lambdas):
    """Return checked Settings, one per value of the named `penalty` in `lambdas`, largest first."""
    decreasing = np.unique(sizes("lambdas", lambdas))[::-1].tolist()
    try:
        along = [replace(problem.settings, **{penalty: value}) for value in decreasing]
    except ArgumentError as error:
        raise ArgumentError(f"lambdas are values of {penalty}: {error}") from None
    try:  # in combination with the other arguments; one penalty is enough to test
        problem.model.validate(replace(problem, settings=along[0]))
    except ArgumentError as error:
        raise ArgumentError(f"a path sets {penalty}: {error}") from None
    return along


@dataclass(frozen=True, repr=False)
class Path(Generic[FitT_co]):
    """Fits for decreasing penalties.

    Attributes
    ----------
    call : str
        The call of the model.
    fits : tuple of Fit
        One fit per penalty. Slow extra results, such as calibrated percentiles, are left out; call
        the model itself with a penalty for a complete fit.
    penalty : str
        Name of the penalty, such as `lambda_` for gbmap.

    See Also
    --------
    path, CV

    Examples
    --------
    >>> import lodim as ld
    >>> path = ld.path(ld.gbmap, "mpg ~ .", ld.data("autompg"), m=2, n_lambda=5)
    >>> path.lambdas.round(3).tolist()
    [11175.185, 353.39, 11.175, 0.353, 0.011]
    """

    call: str
    fits: tuple[FitT_co, ...]
    penalty: str = "lambda_"

    @property
    def lambdas(self) -> np.ndarray:
        """Penalties, decreasing."""
        return np.array([getattr(fit.settings, self.penalty) for fit in self.fits])

    @property
    def lambda_max(self) -> float:
        """Largest penalty."""
        return float(self.lambdas[0])

    @property
    def _frame_kind(self):
        return self.fits[0]._frame_kind

    @as_given
    def tidy(self) -> pd.DataFrame:
        """Join the frames of all fits' tidy(), with a column that holds each fit's penalty.

        See Also
        --------
        coef, glance

        Examples
        --------
        >>> import lodim as ld
        >>> path = ld.path(ld.gbmap, "mpg ~ weight", ld.data("autompg"), m=2, n_lambda=5)
        >>> path.tidy().columns.tolist()
        ['term', 'estimate', 'estimate_abs', 'std_estimate', 'std_estimate_abs', 'lambda_']
        """
        pairs = zip(self.fits, self.lambdas, strict=True)
        frames = [in_pandas(fit.tidy)().assign(**{self.penalty: value}) for fit, value in pairs]
        return pd.concat(frames, ignore_index=True)

    @as_given
    def glance(self) -> pd.DataFrame:
        """Return one row per penalty: df, dev_ratio (explained deviance), and the penalty.

        See Also
        --------
        tidy, plot

        Examples
        --------
        >>> import lodim as ld
        >>> path = ld.path(ld.gbmap, "mpg ~ weight", ld.data("autompg"), m=2, n_lambda=5)
        >>> path.glance()["dev_ratio"].round(2).tolist()
        [0.02, 0.37, 0.7, 0.71, 0.71]
        """
        rows = [in_pandas(fit.glance)()[["df", "dev_ratio", self.penalty]] for fit in self.fits]
        return pd.concat(rows, ignore_index=True)

    def coef(self, lambda_: float | None = None) -> pd.DataFrame | pd.Series:
        """Return the estimates of all fits, or of one fit.

        Parameters
        ----------
        lambda_ : float, default=all fits
            Penalty of one fit, the nearest in log; an ArgumentError if it is not positive.

        Returns
        -------
        DataFrame or Series
            One row per penalty and one column per estimate; or the estimates of one fit.

        See Also
        --------
        at, tidy

        Examples
        --------
        >>> import lodim as ld
        >>> path = ld.path(ld.gbmap, "mpg ~ .", ld.data("autompg"), m=2, n_lambda=5)
        >>> path.coef().shape
        (5, 10)
        """
        if lambda_ is not None:
            return self.at(lambda_).coef()
        estimates = [fit.coef() for fit in self.fits]
        index = pd.Index(self.lambdas, name=self.penalty)
        return pd.DataFrame(estimates, index=index)

    def at(self, lambda_: float) -> FitT_co:
        """Return the fit whose penalty is nearest to `lambda_` in log.

        Parameters
        ----------
        lambda_ : float
            Penalty; an ArgumentError if it is not positive.

        See Also
        --------
        coef, predict

        Examples
        --------
        >>> import lodim as ld
        >>> path = ld.path(ld.gbmap, "mpg ~ .", ld.data("autompg"), m=2, lambdas=[0.01, 0.1, 1.0])
        >>> path.at(0.2).settings.lambda_
        0.1
        """
        log = np.log(positive("lambda_", lambda_))
        logs = np.log(np.maximum(self.lambdas, 1e-300))
        return self.fits[int(np.argmin(np.abs(logs - log)))]

    @as_given
    def predict(self, data: Data, lambda_: float, **arguments: Any) -> pd.Series | pd.DataFrame:
        """Return predictions of the fit whose penalty is nearest to `lambda_` in log.

        Parameters
        ----------
        data : frame
            New rows.
        lambda_ : float
            Penalty; an ArgumentError if it is not positive.
        **arguments
            Further arguments of the fit's predict().

        Returns
        -------
        Series or DataFrame
            Result of the fit's predict().

        See Also
        --------
        at

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> path = ld.path(ld.gbmap, "mpg ~ weight", cars, m=2, n_lambda=5)
        >>> path.predict(cars[:2], 0.1).round(1).tolist()
        [19.0, 17.6]
        """
        return self.at(lambda_).predict(data, **arguments)

    def plot(self, ax: Any = None, *, top: int = 10) -> Any:
        """Draw estimates against log lambda, with the degrees of freedom above if they differ.

        Parameters
        ----------
        ax : Axes, optional
        top : int, default=10
            Number of the largest estimates whose names are shown; an ArgumentError if there are no
            features to draw, or a penalty is 0.

        Returns
        -------
        Axes

        See Also
        --------
        tidy, lodim.CV.plot

        Examples
        --------
        >>> import lodim as ld
        >>> ax = ld.path(ld.gbmap, "mpg ~ .", ld.data("autompg"), m=2, n_lambda=5).plot()
        """
        from lodim.selection import plots

        return plots.path(self, ax, top)

    def __repr__(self):
        frame, name = in_pandas(self.glance)(), self.penalty.split("_")[0].capitalize()
        columns = {"Df": frame["df"], "%Dev": 100.0 * frame["dev_ratio"], name: frame[self.penalty]}
        shown = Table("", pd.DataFrame(columns), {"%Dev": ".2f", name: significant})
        return listing(self.call, [], shown, whole="glance()")
