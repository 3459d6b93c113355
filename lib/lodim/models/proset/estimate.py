"""Growing prototypes batch by batch: each fitted to what the earlier ones left."""

from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import single_blas
from lodim.errors import DataError
from lodim.models.proset.kernels.cpu import CLASSES, DENSITY, SQUARED
from lodim.models.proset.objective import BatchObjective, Penalty, Scoring
from lodim.models.proset.prototypes import HeldOut, Prototypes, join, merge
from lodim.models.proset.settings import PATIENCE
from lodim.models.proset.training import Training
from lodim.solve.lbfgs import Minimum, bounded

FEWEST_FRESH = 20  # candidates from which a gain and its standard error are judged


@dataclass(frozen=True)
class Trial:
    """A fitted batch, the estimates a, b of all rows with it, and how the optimizer ended."""

    part: Prototypes
    a: np.ndarray
    b: np.ndarray
    end: Minimum


def fit_stages(batch, family, settings, eval_batch=None, kept=None):
    """Fit batches one by one: yields (prototypes, log, scores of rows held out) after each.

    Batch c minimizes Eq. 2.8 of Ruf (2022). Without a prototype of weight above zero it is empty,
    and so are all that follow. `kept` = (Prototypes, log) of a fit to the same rows is taken over
    batch by batch before new ones are fitted.
    """
    training = Training(batch, family, settings)
    held = None if eval_batch is None else HeldOut(eval_batch, training)
    used, ended = np.zeros(len(training.varies), bool), False
    for c in count(1):
        if ended:
            part, log = None, None
        elif kept is not None and c <= kept[0].n_batches:
            part, log = _again(kept[0], c, training), {n: v[c - 1] for n, v in kept[1].items()}
        else:
            part, log = _fit_batch(training, c, used)
        if part is not None:
            training.add(part, c)
            used |= part.v[0] > 0
            ended = len(part) == 0
            log["deviance"] = training.deviance()
            finite = np.isfinite([log["objective"], log["deviance"]]).all()
            log["converged"] = bool(log["converged"] and finite)
            if held is not None:
                held.add(part)
        yield part, log, None if held is None else held.score()


def combine(parts):
    """One record of the prototypes of several batches, and one log with an entry a batch."""
    made = [(part, log) for part, log in parts if part is not None]
    logs = [log for _, log in made]
    log = {name: np.array([entry[name] for entry in logs]) for name in logs[0]}
    return join([part for part, _ in made]), log


def _fit_batch(training, c, used):
    """The prototypes of batch c, and how its fit ended.

    Later batches are fitted twice where some features have no weight yet: with the features `used`
    by the earlier ones, and with all. All are taken only where they lower the loss of fresh
    candidates, to which no batch has been fitted, by `worth` standard errors: else later batches,
    whose gains are small, switch on noise. (On rows that an earlier batch was fitted to, the trial
    that changes least looks best.)
    """
    split = training.split(c)
    trial = _try(training, split, training.varies)
    if used.any() and (trial.part.v[0, ~used] > 0).any():
        narrow = _try(training, split, used)
        gain, error = _gain(training, split, narrow, trial)
        if gain <= training.settings.worth * error:
            trial = narrow
    end = trial.end
    entry = {
        "objective": end.value[0], "grad_norm": end.grad_norm[0], "n_iter": end.n_iter[0],
        "n_eval": end.n_eval, "converged": end.converged[0],
        "n_candidates": len(split.candidates), "n_scoring": len(split.scoring),
    }  # fmt: skip
    return trial.part, entry


def _try(training, split, features):
    """Fit a batch with some features: the weights of the others stay zero."""
    s, i, j = training.settings, split.scoring, split.candidates
    X, p, J = training.batch.X, len(features), len(split.candidates)
    x = tiles.rows(X, j)
    scoring = Scoring.of(
        tiles.rows(X, i), training.y[i], training.a[i], training.b[i], split.scoring_weight,
        np.dtype(s.precision).type,
    )  # fmt: skip
    objective = BatchObjective(
        scoring, x, training.y[j], training.loss, Penalty.of(p, J, s), training.threads, s.engine
    )
    with single_blas():
        theta, end = minimum(objective, training.loss, features, J, s)
    part = _part(training, split, x, theta[:p], theta[p : p + J], theta[-1:])
    return Trial(part, *training.with_batch(part), end)


def _part(training, split, x, v, w, u):
    """The record of one batch: candidates of weight above zero, equal ones merged."""
    live = np.flatnonzero(w)
    v = v * (len(live) > 0)  # an empty batch uses no feature
    j, x = split.candidates[live], x[live].astype(np.float64)
    y, on = training.y[j], v > 0
    first, weight, of = merge(np.column_stack([x[:, on] * v[on], y]), w[live])
    rows = training.batch.rows[j]
    return Prototypes(
        features=np.arange(len(v)), x=x[first], y=y[first], w=weight,
        batch=np.ones(len(first), np.int64), row=rows[first], member=rows, member_of=of,
        v=v[None], u=u, level=training.level, scale=training.scale, loss=training.loss,
        n_classes=training.n_classes,
    )  # fmt: skip


def _gain(training, split, before, after):
    """How much lower fresh candidates' loss is after than before, and its standard error.

    Of a few the standard error is near zero, and any gain would pass: none is seen then.
    """
    fresh = training.fresh[split.candidates]
    if fresh.sum() < FEWEST_FRESH:
        return -np.inf, 0.0
    j, weight = split.candidates[fresh], split.candidate_weight[fresh]
    weight = weight / max(weight.sum(), 1e-300)
    each = training.losses(before.a[j], before.b[j], j) - training.losses(after.a[j], after.b[j], j)
    gain = weight @ each
    return gain, np.sqrt(weight**2 @ (each - gain) ** 2)


def _again(prototypes, c, training):
    """Batch c of a fit, with all features, which the data still have."""
    part = prototypes.only(c)
    at = np.searchsorted(training.batch.rows, part.row)
    at = np.minimum(at, training.batch.n - 1)
    x = tiles.rows(training.batch.X, at).astype(np.float64)
    same = np.array_equal(training.batch.rows[at], part.row)
    if not (same and np.array_equal(x[:, part.features], part.x)):
        raise DataError("batches can be added on the rows of the fit alone; these are others")
    levels = [*training.level, training.scale], [*part.level, part.scale]
    near = [(training.y[at], part.y), levels]
    if not all(np.allclose(new, old, rtol=1e-8, atol=1e-8) for new, old in near):
        raise DataError("batches can be added with the response of the fit alone; this is another")
    return part.over_all(x)


START_V, START_W, START_U = 10.0, 1.0, 3.0
HEAVY = 10.0  # a prototype of a class, for which little is left to chance, weighs so much more
CORNER = 0.1  # the sizes of feature weights below this one are rounded off at first
LEAST_V = 1e-3  # where the first descent holds a feature that does not enter
LEAST_U = 1e-3  # of the inverse width of normals, which have none at zero


def minimum(objective, loss, features, J, settings):
    """theta = (v (p,), w (J,), u), zero for all but `features` (p,) bool, and a Minimum.

    At v_d = 0 the gradient by v_d is the penalty's alone, whatever the data say: a feature that one
    long step has cut off would never come back, and which ones are cut hangs on rounding. So the
    first descent is over v_d^2, by which zero is no such trap, with the L1 penalty rounded off near
    zero. The second, from its end and over v_d, minimizes the objective itself.
    """
    on = np.flatnonzero(features)
    D = len(on)
    w_unit = np.sqrt(J) * (HEAVY if loss == CLASSES else 1.0)
    unit = np.concatenate([np.ones(D), np.full(J, w_unit), [1.0]])
    enters = np.concatenate([features, np.ones(J + 1, bool)])
    l1 = settings.lambda_v * settings.l1_ratio_v

    def plain(t):
        theta = np.zeros(len(enters))
        theta[enters] = t * unit
        value, gradient = objective(theta)
        return value, gradient[enters] * unit

    def squared(t):
        v = np.sqrt(t[:D])
        value, gradient = plain(np.concatenate([v, t[D:]]))
        size = np.hypot(v, CORNER)
        gradient[:D] = (gradient[:D] + l1 * (v / size - 1.0)) / (2.0 * v)
        return value + l1 * (size - CORNER - v).sum(), gradient

    start = np.full(D + J + 1, START_W) / unit
    start[:D] = (START_V / max(1, D)) ** 2
    start[-1] = START_U if loss == DENSITY else 0.0
    lower = np.zeros(len(start))
    lower[:D], lower[-1] = LEAST_V**2, LEAST_U if loss == DENSITY else 0.0
    stop = {
        "tol": settings.tol, "ftol": settings.ftol, "patience": PATIENCE,
        "precision": float(np.finfo(settings.precision).eps),
    }  # fmt: skip
    first = bounded(squared, start, lower, max_iter=settings.max_iter, **stop)
    t = first.theta[0]
    t[:D] = np.where(t[:D] > lower[:D], np.sqrt(t[:D]), 0.0)
    left = max(1, settings.max_iter - first.n_eval)
    lower[:D] = 0.0
    end = bounded(plain, t, lower, max_iter=left, **stop)
    theta = np.zeros(len(enters))
    theta[enters] = end.theta[0] * unit
    return theta, replace(end, n_eval=first.n_eval + end.n_eval, n_iter=first.n_iter + end.n_iter)


def largest_v(batch, family, settings):
    """A feature weight of 0.3, below which kernels are nearly flat, costs the whole null loss."""
    training = Training(batch, family, settings)
    loss = training.weight @ training.losses(training.a, training.b)
    least = 0.3
    cost = 0.5 * (1.0 - settings.l1_ratio_v) * least**2 + settings.l1_ratio_v * least
    return float(max(loss / cost, 1e-8))


def largest_w(batch, family, settings):
    """The slope of the loss by a prototype's weight, at weights zero, is at most its L1 penalty.

    For classes the slope is at most sum_i weight_i (1 / p0 - 1) over the rows of one class, so
    below one; for squares at most 2 mean |y| max |y|. Under a ridge alone a share of 0.01 stands
    for its part.
    """
    training = Training(batch, family, settings)
    bound = 1.0
    if training.loss == SQUARED:
        size = np.abs(training.y)
        bound = 2.0 * float(training.weight @ size) * float(size.max())
    return max(1.000001 * bound, 1e-8) / max(settings.l1_ratio_w, 0.01)
