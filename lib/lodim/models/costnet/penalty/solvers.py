"""Solvers of a penalized path: by second moments of all columns, or by proximal Newton steps."""

from itertools import pairwise

import numpy as np

from lodim.engine.blocks import each_tile, single_blas
from lodim.family.gaussian import SQUARED
from lodim.models.costnet.penalty.block_descent import largest_eigenvalue, minimize
from lodim.models.costnet.penalty.problem import PathProblem, PenaltyPath, ReducedQuadratic
from lodim.models.costnet.penalty.prox import duality_gap, penalty
from lodim.models.costnet.training_rows import freeze_absent, next_least

MARGIN = 0.01  # share of the allowed gap to which an exact quadratic model is solved
MOST_MOMENTS = 1500  # most columns for which a gaussian path uses moments


class QuadraticModel:
    """Quadratic model of the loss in some penalized coefficients, those marked in `keep`.

    reduced : the model, minimized over the unpenalized coefficients
    layout : Layout of the kept coefficients' groups
    lipschitz : upper bound of the Hessian's eigenvalues, per block of `layout`"""

    def __init__(self, G, n_free, keep, layout):
        """Make the model from a Hessian G (J, J, C, C) of C columns, for J scores.

        n_free : number of unpenalized columns, which come first; the others are penalized
        keep : bool per penalized coefficient, whether G has its column"""
        self.keep, self.layout, self.ridge = keep, layout, 0.0
        self.reduced = ReducedQuadratic(G, n_free)
        bounds = [largest_eigenvalue(self.reduced.H, *end) for end in pairwise(layout.block)]
        self.lipschitz = np.array(bounds)

    def set_ridge(self, ridge):
        H, change = self.reduced.H, ridge - self.ridge
        if change == 0.0:
            return
        at = np.arange(H.shape[2])
        for k in range(H.shape[0]):
            H[k, k, at, at] += change
        self.lipschitz += change
        self.ridge = ridge


class MomentSolver:
    """Solver for a squared loss plus a group penalty, from X'X and X'y alone.

    null : half the mean deviance with unpenalized coefficients only
    least : smallest eigenvalue of X'X of the unpenalized columns, relative to the largest"""

    def __init__(self, problem):
        loss, slope, self._free_slope, G = problem.at_offset()
        layout, every = problem.layout, np.full(slope.shape[1], True)
        self._model = QuadraticModel(G, len(problem.free_columns), every, layout)
        reduced = self._model.reduced
        self.least = reduced.least
        self._slope = reduced.slope(slope, self._free_slope)
        self.null = self._loss = loss - 0.5 * reduced.decrement(self._free_slope)
        self.lambda_max, self._dual = dual_norm(layout, self._slope)
        self._w, self._norms, self._squares = np.zeros_like(slope), 0.0, 0.0

    def solve(self, lam, ridge, target, max_iter):
        """Return the fit for one penalty: (w, b, loss, duality gap, sweeps made).

        w, b : penalized (K, A) and unpenalized (K, F) coefficients
        lam, ridge : factors of the group norms and of |w|^2 / 2
        target : duality gap at which to stop"""
        w, model, start, n_iter = self._w, self._model, self._slope, 0
        groups, H = model.layout, model.reduced.H
        model.set_ridge(ridge)
        slope = start - w @ H[0, 0]
        radius = max(self._norms + (self._loss + 0.5 * ridge * self._squares) / lam, 1e-300)
        if lam * (1.0 + 1e-13) < self.lambda_max:  # not equal up to rounding
            # At most five sweeps per allowed quadratic model.
            limits = model.lipschitz, target, radius, 5 * max_iter
            n_iter = minimize(groups, H, slope, w, self._dual, lam, *limits)
            slope = start - w @ H[0, 0]
        tol = 0.1 * target / radius
        slack, over = duality_gap(w, slope, self._dual, lam, groups, np.empty_like(slope), tol)
        norms, squares = (slack + float((slope * w).sum())) / lam, float((w * w).sum())
        loss = self.null - 0.5 * (float(((start + slope) * w).sum()) + ridge * squares)
        self._norms, self._squares, self._loss = norms, squares, loss
        gap = slack + over * (norms + (loss + 0.5 * ridge * squares) / lam)
        return w.copy(), model.reduced.free_step(self._free_slope, w), loss, gap, n_iter


def dual_norm(groups, slope):
    """Return the smallest lam at which all penalized coefficients are zero, and the dual vectors.

    groups : GroupArrays; slope : (K, A) negative gradient of the loss at zero coefficients"""
    nothing, w, lam = np.zeros_like(slope), np.empty_like(slope), 0.0
    dual = np.zeros((len(slope), len(groups.member)))
    for _ in range(100):
        _, left = duality_gap(nothing, slope, dual, lam, groups, w, 1e-13 * lam)
        norms = penalty(w, 1.0, groups, 0, len(groups.cost))
        along = float((slope * w).sum())
        if norms == 0.0 or along <= lam * (1.0 + 1e-14) * norms:
            break
        lam = along / norms
    return max(lam * (1.0 + 1e-12), lam + left), dual


class NewtonSolver:
    """Solver of models with a group penalty, by proximal Newton steps.

    w, b : current penalized (K, A) and unpenalized (K, F) coefficients
    f : (n_tiles, K, 64) scores (linear predictors) in blocks of 64 rows
    slope, free_slope : negative gradient of the loss in w and in b
    bend : sum over rows of squared slope / curvature
    dual : (K, members) dual vectors of the groups"""

    # Coefficients that are expected to stay zero are left out.

    def __init__(self, problem):
        K, A, layout = problem.n_scores, len(problem.columns), problem.layout
        self.problem = problem
        b, dual = np.zeros((K, len(problem.free_columns))), np.zeros((K, len(layout.member)))
        b[:, 0] = problem.null / problem.spread
        start = problem.scores_after(problem.offset, np.array([-1]), b[:, :1])
        self.w, self.b, self.f, self.dual = np.zeros((K, A)), b, start, dual
        self._model: QuadraticModel | None = None
        self._least = problem.loss[1]
        self._fit_free()
        self.null = self.loss
        self.lambda_max, self.dual = dual_norm(layout, self.slope)
        self._last_lam = self.lambda_max

    def solve(self, lam, ridge, target, max_iter):
        """Return the fit for one penalty: (w, b, loss, duality gap, steps made).

        w, b : penalized (K, A) and unpenalized (K, F) coefficients
        lam, ridge : factors of the group norms and of |w|^2 / 2
        target : duality gap at which to stop"""
        wanted = self.w.any(axis=0)
        if lam < self.lambda_max:  # a strong rule says which coefficients may become nonzero
            before, self._last_lam = self._last_lam, lam
            _, left = self._gap(max(2.0 * lam - before, 0.1 * lam), ridge, target)
            wanted = wanted | (np.abs(left).max(axis=0) > 0.0)
        for n_iter in range(1, max_iter + 1):
            gap, left = self._gap(lam, ridge, target)
            if self._model is not None:
                gap += self._free_gap()
            if gap <= target:
                break
            wanted = wanted | (np.abs(left).max(axis=0) > 0.0) | self.w.any(axis=0)
            current, model = self.problem.loss == SQUARED, self._model
            if model is None or (wanted & ~model.keep).any():
                current = self._renew_model(wanted if model is None else wanted | model.keep, ridge)
            else:
                model.set_ridge(ridge)
            *step, gain = self._model_step(lam, ridge, target)
            if n_iter > 1:
                if 2.0 * gain <= MARGIN * target:
                    gap = 2.0 * gain
                    break
                if not current:
                    current = self._renew_model(wanted, ridge)
                    *step, gain = self._model_step(lam, ridge, target)
            size = self._line_search(*step, lam, ridge)
            if current and not self._adapt(size):
                break
        return self.w, self.b, self.loss, gap, n_iter

    def evaluate(self, w, b, lam, ridge, target):
        """Move to given coefficients; return an upper bound of their duality gap.

        If lam is 0, return instead twice the decrease of the objective by a Newton step.
        w, b : penalized (K, A) and unpenalized (K, F) coefficients
        lam, ridge : factors of the group norms and of |w|^2 / 2
        target : desired gap"""
        p = self.problem
        self.w, self.b = w, b
        all_columns = np.arange(-1, p.X.shape[1])
        self._set_scores(p.scores_after(p.offset, all_columns, p.by_column(w, b)))
        if lam > 0.0:
            return self._gap(lam, ridge, target)[0]
        columns, F = np.r_[p.free_columns, p.columns], len(p.free_columns)
        G, at = p.moments_at(self.f, columns, 0.0), np.arange(F, len(columns))
        for k in range(p.n_scores):
            G[k, k, at, at] += ridge
        model = ReducedQuadratic(G, len(columns))
        return model.decrement(np.hstack([self.free_slope, self.slope - ridge * w]))

    def _set_scores(self, f, known=None):
        self.f = f
        self.loss, self.slope, self.free_slope, self.bend = known or self.problem.at_scores(f)

    def _fit_free(self):
        """Fit the unpenalized coefficients alone, from the null model by Newton's method."""
        p, K = self.problem, self.problem.n_scores
        self._set_scores(self.f)
        for _ in range(100):
            if np.abs(self.free_slope).max() <= 1e-10:  # zero up to rounding
                return
            G = p.moments_at(self.f, p.free_columns, self._least)
            model = ReducedQuadratic(G, len(p.free_columns))
            step = model.free_step(self.free_slope, np.zeros((K, 0)))
            if not self._adapt(self._line_search(np.zeros_like(self.w), step, 0.0, 0.0)):
                return

    def _line_search(self, dw, db, lam, ridge):
        """Move by a share of steps dw and db that lowers the objective; return it, or 0 if none.

        lam, ridge : factors of the group norms and of |w|^2 / 2"""
        p = self.problem
        change = p.by_column(dw, db)
        on = np.flatnonzero(change.any(axis=0))
        far = p.scores_after(self.f, on - 1, change[:, on])
        before, t = self._objective(self.w, self.loss, lam, ridge), 1.0
        for _ in range(30):
            f = far if t == 1.0 else each_tile(_between, self.f, far, t)
            w = self.w + t * dw
            there = p.at_scores(f)
            if self._objective(w, there[0], lam, ridge) <= before + 1e-14 * abs(before):
                self.w, self.b = w, self.b + t * db
                self._set_scores(f, there)
                return t
            t *= 0.5
        return 0.0

    def _adapt(self, moved):
        """Set the least curvature, after a share `moved` of a step; return whether to go on."""
        first, last = self.problem.loss[1], self._least
        self._least = next_least(last, moved) if moved else first
        return moved > 0.0 or last < first

    def _objective(self, w, loss, lam, ridge):
        return loss + self.problem.penalty(w, lam) + 0.5 * ridge * float((w * w).sum())

    def _gap(self, lam, ridge, target):
        """Return the duality gap, and a residual (K, A) that is 0 at the optimum.

        lam, ridge : factors of the group norms and of |w|^2 / 2
        target : desired duality gap"""
        layout, squares = self.problem.layout, ridge * float((self.w * self.w).sum())
        left, norms = np.empty_like(self.w), self.problem.penalty(self.w, lam)
        value, slope = self.loss + norms + 0.5 * squares, self.slope - ridge * self.w
        tol = 0.1 * target / max(value / lam, 1e-300)
        slack, over = duality_gap(self.w, slope, self.dual, lam, layout, left, tol)
        share, bend = over / (lam + over), self.bend + squares
        shrunk = share * (norms - slack + 0.5 * over / lam * bend)
        return slack + min(shrunk, over * value / lam), left

    def _free_gap(self):
        """Return the part of the duality gap due to unconverged unpenalized coefficients."""
        reduced, layout = self._model.reduced, self._model.layout
        cost, owner = layout.cost, layout.owner
        gap = 2.0 * reduced.decrement(self.free_slope)
        shift = reduced.slope(np.zeros((len(self.w), owner.size)), self.free_slope)
        square = np.bincount(owner, (shift**2).sum(axis=0), len(cost))
        over = float((np.sqrt(square) / cost).max(initial=0.0))
        return gap + over * self.problem.penalty(self.w, 1.0)

    def _renew_model(self, keep, ridge):
        """Make the quadratic model at the current coefficients; return True (it is now current).

        keep : (A,) bool, penalized coefficients to include
        ridge : factor of |w|^2 / 2"""
        p, model = self.problem, self._model
        G = p.moments_at(self.f, np.r_[p.free_columns, p.columns[keep]], self._least)
        same = model is not None and np.array_equal(keep, model.keep)
        layout = model.layout if same else p.layout.restrict(keep)
        self._model = QuadraticModel(G, len(p.free_columns), keep, layout)
        self._model.set_ridge(ridge)
        return True

    def _model_step(self, lam, ridge, target):
        """Return (dw, db, bound): steps that minimize the quadratic model plus penalties.

        dw, db : steps of the penalized (K, A) and unpenalized (K, F) coefficients
        bound : largest possible decrease of the model's objective
        lam, ridge : factors of the group norms and of |w|^2 / 2
        target : desired duality gap"""
        # The model may use a thousandth of the target.
        model, reduced = self._model, self._model.reduced
        # compress() keeps rows contiguous, unlike indexing by a mask.
        w, slope = self.w.compress(model.keep, axis=1), self.slope.compress(model.keep, axis=1)
        member, H = model.keep[self.problem.layout.member], reduced.H
        dual = self.dual.compress(member, axis=1)
        slope = reduced.slope(slope, self.free_slope) - ridge * w
        start, before = w.copy(), slope.copy()
        target = 0.1 * MARGIN * target
        radius = self._objective(self.w, self.loss, lam, ridge) / lam
        limits = target, radius, 1000
        minimize(model.layout, H, slope, w, dual, lam, model.lipschitz, *limits)
        self.dual[:, member] = dual
        step, dw = w - start, np.zeros_like(self.w)
        freeze_absent(step, self.problem.absent)
        dw[:, model.keep] = step
        gain = 0.5 * (float((step * (before + slope)).sum()) + reduced.decrement(self.free_slope))
        gain += self.problem.penalty(self.w, lam) - self.problem.penalty(self.w + dw, lam)
        free = reduced.free_step(self.free_slope, step)
        freeze_absent(free, self.problem.absent)
        return dw, free, gain + target


def _between(f, far, t):
    return f + t * (far - f)


def penalty_path(
    batch,
    family,
    groups,
    lambdas=None,
    *,
    l1_ratio=1.0,
    n_lambda=100,
    lambda_min_ratio=None,
    tol=1e-7,
    max_iter=200,
    threads=None,
    make_solver=None,
):
    """Return the PenaltyPath of models for decreasing penalties.

    lambdas : penalties; None for up to n_lambda automatic ones
    l1_ratio : share of the group norms in the penalty, in (0, 1]; the rest is ridge
    lambda_min_ratio : smallest over largest penalty; None for 1e-4, or 1e-2 if n <= p
    tol : allowed duality gap, relative to the loss without penalized coefficients
    make_solver : function of a problem and its number of rows; None for lodim's own solvers"""
    with single_blas():
        problem = PathProblem.from_batch(batch, family, groups, threads)
        start = _own_solver(problem)
        early_stop, null = lambdas is None, start.null
        if early_stop:
            if lambda_min_ratio is None:
                lambda_min_ratio = 1e-4 if len(batch.positive_weight) > batch.X.shape[1] else 1e-2
            largest = start.lambda_max / l1_ratio * problem.lambda_unit
            lambdas = largest * lambda_min_ratio ** (np.arange(n_lambda) / max(1, n_lambda - 1))
        lambdas = np.asarray(lambdas, np.float64)
        ridges = lambdas * (1.0 - l1_ratio) * problem.spread ** (2 - family.degree)
        scaled = lambdas * l1_ratio / problem.lambda_unit
        if make_solver is None:
            solver = start
            # Without any penalty no dual vector bounds the gap: this little changes no digit shown.
            scaled = np.maximum(scaled, 1e-9 * (start.lambda_max or 1.0))
        else:
            solver = make_solver(problem, batch.n)
        steps, share = [], 0.0
        for lam, ridge in zip(scaled.tolist(), ridges.tolist(), strict=True):
            steps.append(solver.solve(lam, ridge, tol * null, max_iter))
            # A constant response (null 0) is never explained, and has no early end.
            last, share = share, 1.0 - steps[-1][2] / (solver.null or np.nan)
            # The last penalties are omitted if the fit hardly improves.
            little = len(steps) >= 5 and share - last < 1e-5 * share
            if early_stop and (share > 0.999 or little):
                break
        return PenaltyPath.from_steps(problem, lambdas, scaled, ridges, steps, null, tol)


def lambda_max(batch, family, groups, l1_ratio=1.0, threads=None):
    """Return the smallest lambda at which all coefficients in `groups` are zero, given l1_ratio."""
    with single_blas():
        problem = PathProblem.from_batch(batch, family, groups, threads)
        return _own_solver(problem).lambda_max / l1_ratio * problem.lambda_unit


def _own_solver(problem):
    if problem.loss == SQUARED and len(problem.columns) <= MOST_MOMENTS:
        solver = MomentSolver(problem)
        if solver.least > 1e-8:  # moments of nearly collinear free columns are inaccurate
            return solver
    return NewtonSolver(problem)
