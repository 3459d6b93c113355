"""The joint refit: all learners of a boosted fit polished together, by Newton's method."""

from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.special import expit

from lodim.engine import tiles
from lodim.engine.blocks import available_threads, dot, row_spans, single_blas, sum_rows
from lodim.engine.workers import WorkerTiles
from lodim.errors import ArgumentError
from lodim.family import beyond_null, losses
from lodim.family.multinomial import shares_of_rows
from lodim.models.gbmap.learners import row_weights
from lodim.models.gbmap.objective import penalize
from lodim.models.gbmap.training import Rotation
from lodim.solve.newton import newton

ROWS = 4096  # worked on at a time: bounds the memory
MOST_PARAMETERS = 10_000  # of a refit: their matrix takes 0.8 GB
LEAST_GAIN = 1e-3  # share of the deviance by which a boost must lower it for its learners to stay
ROWS_EACH = 4  # rows a parameter, below which rounding decides in which minimum a refit ends
MOST_TRIED, MOST_WORK = 1000, 2.5e9  # parameters d, and n d^2, of a refit that is not asked for


@dataclass(frozen=True)
class Rows:
    """Some training rows: X (n, 1 + p) with ones before it, y (n,), offset (n, K), weight (n,).

    y and offset are in units of scale; y of numbers is beyond the null model, without an offset.
    """

    X: np.ndarray
    y: np.ndarray
    offset: np.ndarray
    weight: np.ndarray


class JointObjective:
    """Mean loss of all learners' sum plus each one's penalty, as a function of all theta.

    Eq. 3 of Patron et al. (2024) for M learners at once: parameters are theta (M, 2 + p), flat.

    Parameters
    ----------
    spans : list of lists of Rows, or WorkerSpans
        Sums are over the blocks of a span in order, then over the spans.
    learners : WeakLearners
        For signs, targets, beta and the number of scores; softplus.
    ridge : array (2 + p,)
        Weights of each learner's squares.
    loss : of one score, as of `family.losses`
    """

    def __init__(self, spans, learners, ridge, loss):
        self.spans, self.ridge, self.loss = spans, ridge, loss
        self.sign, self.target, self.beta = learners.sign, learners.target, learners.beta
        self.shape = learners.theta.shape
        self.adds_to = np.eye(learners.n_scores)[learners.target]  # (M, K)

    def __call__(self, theta):
        theta = theta.reshape(self.shape)
        penalty = float(((theta**2) @ self.ridge).sum()), 2.0 * self.ridge * theta
        values, gradients = zip(*self._of_spans("span_sums", theta, *penalty), strict=True)
        return reduce(add, values), reduce(add, gradients).ravel()

    def _of_spans(self, name, *args):
        """Yield what a method makes of each span, in order."""
        if isinstance(self.spans, WorkerSpans):
            yield from self.spans.run(self, name, args)
            return
        with single_blas():
            for i, span in enumerate(self.spans):
                yield getattr(self, name)(span, i == 0, *args)

    def span_sums(self, span, is_first, theta, value, gradient):
        """The value and gradient of a span of rows, of the first beside those that are given."""
        if not is_first:
            value, gradient = 0.0, np.zeros(self.shape)
        for rows in span:
            share, score = self._forward(rows, theta)
            loss, slope = self._loss(rows, score)
            slope = slope[:, self.target]
            value += loss
            gradient[:, 0] += slope.sum(axis=0)
            gradient[:, 1:] += (slope * self.sign * share).T @ rows.X
        return value, gradient

    def hessian(self, theta, convex):
        """The Hessian (d, d), d = M (2 + p); convex: without what could make it indefinite.

        That is Gauss-Newton's matrix, plus where it is positive what the hinges' curvature brings.
        """
        theta = theta.reshape(self.shape)
        H = reduce(add, self._of_spans("span_hessian", theta, convex))
        H += np.triu(H, 1).T
        diagonal = np.arange(theta.size)
        H[diagonal, diagonal] += np.tile(2.0 * self.ridge, self.shape[0])
        return H

    def span_hessian(self, span, is_first, theta, convex):
        """The upper triangle of what a span of rows adds to the Hessian."""
        M, width = self.shape
        H = np.zeros((theta.size, theta.size), order="F")
        for rows in span:
            share, score = self._forward(rows, theta)
            for J in self._jacobians(rows, share, score):
                H = dsyrk(1.0, J.T, beta=1.0, c=H, trans=0, overwrite_c=1)
            slope = self._loss(rows, score)[1][:, self.target]
            bend = slope * self.sign * self.beta * share * (1.0 - share)
            if convex:
                bend = np.maximum(bend, 0.0)
            for j in range(M):
                own = slice(1 + j * width, (j + 1) * width)
                H[own, own] += np.triu((rows.X * bend[:, j, None]).T @ rows.X)
        return H

    def _forward(self, rows, theta):
        """g'(w_j'x~), (n, M), and the score (n, K)."""
        z = rows.X @ theta[:, 1:].T
        g = np.logaddexp(0.0, self.beta * z) / self.beta
        score = rows.offset + (theta[:, 0] + self.sign * g) @ self.adds_to
        return expit(self.beta * z), score

    def _loss(self, rows, score):
        """The rows' weighted loss, one number, and its derivatives in the score, (n, K)."""
        if score.shape[1] == 1:
            loss, slope, _ = losses.rows(self.loss, rows.y, score[:, 0], rows.weight)
            return loss.sum(), slope[:, None]
        loss, p = shares_of_rows(rows.y, score)
        p[np.arange(len(p)), rows.y.astype(int)] -= 1.0
        return rows.weight @ loss, rows.weight[:, None] * p

    def _jacobians(self, rows, share, score):
        """Arrays J (n, d) whose J'J sum to Gauss-Newton's matrix.

        The loss has the curvature R'R in the scores of a row: one row of R for one score; of K
        classes diag(p) - p p' = R'R with R = diag(sqrt p) (I - 1 p').
        """
        n, (M, width) = len(score), self.shape
        J = np.empty((n, M, width))
        J[:, :, 0] = 1.0
        np.multiply((self.sign * share)[:, :, None], rows.X[:, None, :], out=J[:, :, 1:])
        if score.shape[1] == 1:
            _, _, curvature = losses.rows(self.loss, rows.y, score[:, 0], rows.weight)
            J *= np.sqrt(curvature)[:, None, None]
            yield J.reshape(n, -1)
            return
        _, p = shares_of_rows(rows.y, score)
        for k in range(score.shape[1]):
            root = np.sqrt(rows.weight * p[:, k])[:, None]
            part = (root * ((self.target == k) - p[:, self.target]))[:, :, None]
            yield (J * part).reshape(n, -1)


def joint_refit(batch, family, settings, learners, log):
    """The learners polished jointly from where they are, and how that ended.

    Minimizes the mean loss of f_1 + ... + f_m plus the sum of the learners' penalties over all
    (a_j, w_j), the signs b_j staying. Boosts that lowered the deviance by less than LEAST_GAIN of
    it are left out: where they stand is a matter of rounding, and would decide where all end.

    Parameters
    ----------
    batch, family, settings
    learners, log
        As `boost.combine` gives them.

    Returns
    -------
    WeakLearners
        Each but the first of its score has the mean 0 over the rows, as the boosts of a numeric
        response have: f determines no more than the sum of their constants.
    dict
        The log of these learners.
    dict
        value of the objective, deviance of the rows, grad_norm, n_iter, n_eval, converged.
    """
    keep = _gaining(learners, log)
    learners, log = learners.select(keep), {name: v[keep] for name, v in log.items()}
    if learners.theta.size > MOST_PARAMETERS:
        raise ArgumentError(
            f"refit='joint' is for at most {MOST_PARAMETERS:,} parameters m (2 + p), and here they "
            f"are {learners.theta.size:,}: take a smaller m, or refit='none'"
        )
    X, expand, start = batch.X, None, learners.theta
    if max(1, int(tiles.varies(X).sum())) > batch.n:
        rotation = Rotation.from_batch(batch)
        X, expand, start = rotation.X, rotation.expand, rotation.project(start)
    null, p = _null(batch, family), max(1, int(tiles.varies(batch.X).sum()))
    spans, level = _spans(X, batch, learners, null), np.zeros_like(start)
    level[0, 0] = 0.0 if null is None else null / learners.scale
    ridge, loss = penalize(settings, X.shape[1], p).ridge, family.kernel_loss(batch.y, batch.weight)
    objective = JointObjective(spans, replace(learners, theta=start), ridge, loss)
    tolerances = {k: v for k in ("tol", "ftol") if (v := getattr(settings, k)) is not None}
    end = newton(objective, (start - level).ravel(), max_iter=settings.max_iter, **tolerances)
    theta = end.theta.reshape(start.shape) + level
    refitted = replace(learners, theta=theta if expand is None else expand(theta))
    names = ("value", "grad_norm", "n_iter", "converged")
    ended = {name: getattr(end, name)[0].item() for name in names} | {"n_eval": end.n_eval}
    ended["deviance"] = _deviance(batch, family, refitted, settings.n_threads)
    # What the boosts have reached is but where the refit begins.
    log |= {"converged": np.full(len(learners), ended["converged"])}
    return _centred(refitted, batch, settings.n_threads), log, ended


def reweigh(problem, fit):
    """Learners that a joint refit of the rows under other weights begins with, and their log.

    Those of `fit`, if they were refitted: boosts would lead the refit to another minimum. None of
    others.
    """
    return (fit.estimates, dict(fit.log)) if fit.settings.refit == "joint" else None


def _gaining(learners, log):
    """Which learners' boosts have lowered the deviance, the first among them, (M,) bool."""
    stages, first = np.unique(learners.stage, return_index=True)
    deviance = log["deviance"][first]
    gains = np.r_[True, deviance[:-1] - deviance[1:] > LEAST_GAIN * deviance[1:]]
    return gains[np.searchsorted(stages, learners.stage)]


@dataclass(frozen=True)
class Span:
    """The blocks of Rows of a span, made when they are asked for where rows are many.

    Of up to SPAN_ROWS rows they are kept. X are tiles, columns the response, offset and weight.
    """

    X: np.ndarray
    columns: tuple
    scale: float

    def __iter__(self):
        y, offset, weight = self.columns
        for lo in range(0, len(y), ROWS):
            i = slice(lo, min(len(y), lo + ROWS))
            X = tiles.unpack(self.X[tiles.of_rows(i)], i.stop - lo).astype(np.float64)
            X = np.column_stack([np.ones(len(X)), X])
            yield Rows(X, y[i] / self.scale, offset[i] / self.scale, weight[i])


@dataclass(frozen=True)
class WorkerSpans:
    """The spans of rows that are on workers: X, y, offset and weight as WorkerTiles."""

    X: Any
    columns: tuple
    scale: float

    def run(self, objective, name, args):
        """What a method of an objective makes of each span, in order."""
        objective = copy(objective)
        objective.spans = None
        return self.X.spans(_method_of_span, *self.columns, self.scale, objective, name, args)


def _method_of_span(rows, X, y, offset, weight, scale, objective, name, args):
    K = objective.adds_to.shape[1]
    span = Span(X, _columns(rows, K, y, offset, weight), scale)
    return getattr(objective, name)(span, rows.start == 0, *args)


def _columns(rows, K, y, offset, weight):
    """Response (n,), offset (n, K) and weight (n,) of the rows of a span on a worker."""
    y, offset, weight = (tiles.by_row(v, rows.stop - rows.start) for v in (y, offset, weight))
    return y, np.broadcast_to(offset.reshape(len(y), -1), (len(y), K)), weight


def _worker_columns(batch):
    """Response, offset and weight of rows on workers, as WorkerTiles."""
    X = batch.X
    return X.column(batch.y), X.column(batch.offset), row_weights(batch)


def _null(batch, family):
    """What a numeric response is taken beyond, beside its offset; None of classes."""
    if family.name != "gaussian":
        return None
    return family.null_intercept(batch.y, batch.weight, batch.offsets(1)).item()


def _spans(X, batch, learners, null):
    """The rows of a batch in spans, each an iterable of Rows; of numbers beyond the null model."""
    if isinstance(X, WorkerTiles):
        y, offset, weight = _worker_columns(batch)
        if null is not None:
            y, offset = y.map(beyond_null, offset, null), X.constant(0.0)
        return WorkerSpans(X, (y, offset, weight), learners.scale)
    y, offset = batch.y, batch.offsets(learners.n_scores)
    if null is not None:
        y, offset = beyond_null(y, offset[:, 0], null), np.broadcast_to(0.0, offset.shape)
    columns = y, offset, batch.weight
    spans = [
        Span(X[tiles.of_rows(i)], tuple(v[i] for v in columns), learners.scale)
        for i in row_spans(batch.n)
    ]
    return spans if len(spans) > 1 else [list(spans[0])]


def _centred(learners, batch, threads):
    """Learners with constants moved so that all but the first of each score have the mean 0."""

    def part(i):
        return _mean_embedding(batch.X[tiles.of_rows(i)], batch.weight[i], learners, threads)

    theta = learners.theta.copy()
    if isinstance(batch.X, WorkerTiles):
        parts = batch.X.spans(_worker_embedding, row_weights(batch), learners)
        mean = reduce(np.add, parts) / learners.scale
    else:
        with single_blas():
            mean = sum_rows(part, batch.n) / learners.scale
    for k in range(learners.n_scores):
        first, *rest = np.flatnonzero(learners.target == k)
        theta[rest, 0] -= mean[rest]
        theta[first, 0] += mean[rest].sum()
    return replace(learners, theta=theta)


def _mean_embedding(X, weight, learners, threads):
    return weight @ learners.embedding(X, len(weight), threads)


def _worker_embedding(rows, X, weight, learners):
    weight = tiles.by_row(weight, rows.stop - rows.start)
    return _mean_embedding(X, weight, learners, available_threads())


def _span_deviance(rows, X, y, offset, weight, learners, family):
    y, offset, weight = _columns(rows, family.n_scores, y, offset, weight)
    score = learners.score(X, len(y), available_threads()) + offset
    return dot(weight, family.deviance(y, score))


def _deviance(batch, family, learners, threads):
    """Mean deviance of the rows of a batch under learners."""
    if isinstance(batch.X, WorkerTiles):
        columns = _worker_columns(batch)
        return float(reduce(np.add, batch.X.spans(_span_deviance, *columns, learners, family)))
    offset = batch.offsets(family.n_scores)

    def part(i):
        score = learners.score(batch.X[tiles.of_rows(i)], i.stop - i.start, threads) + offset[i]
        return dot(batch.weight[i], family.deviance(batch.y[i], score))

    return float(sum_rows(part, batch.n))


def advisable(settings, learners, batch):
    """Whether a refit takes seconds and holds still, and may be made where nobody asked for it."""
    d, n = learners.theta.size, batch.n_positive
    return settings.refittable and d <= MOST_TRIED and ROWS_EACH * d <= n <= MOST_WORK / d**2
