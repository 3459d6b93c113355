"""Solvers: they see an objective and arrays, never data or models."""

from dataclasses import dataclass

import numpy as np

from lodim.engine.compiled import ZERO, njit
from lodim.solve.objective import pseudo_slope

RUNNING, CONVERGED, STALLED, BEHIND = 0, 1, 2, 3
ARMIJO = 1e-4
SMALLEST_STEP = 1e-12
MEMORY = 40  # steps that `bounded` remembers
NEAR = 10.0  # times the common unit of a quasi-Newton matrix that units of parameters are at most
CURVED = 1e-4  # least cosine of step and change of gradient: below it directions have no end
OUTLOOK = 10  # steps whose gain is judged by that of as many before
STRETCH = 3  # or, where they gain but a share of what as many before them did, of so few
SHRINKING = 0.25  # that share
MATURE = 5  # a quadratic model is believed once a fifth of its memory is filled
HOPE = 10.0  # most that a problem among several may gain, relative to its gradient's prediction

# Becomes part of what calls it, before types and code are made of both: a compilation less.
INNER = {"cache": True, "forceinline": True, "inline": "always"}


@dataclass(frozen=True)
class Minimum:
    """Where q independent minimizations ended.

    theta (q, d); value (q,); grad_norm (q,) the largest absolute (pseudo-)gradient; n_iter (q,);
    converged (q,) bool; n_eval passes over the data in all.
    """

    theta: np.ndarray
    value: np.ndarray
    grad_norm: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    n_eval: int


# Loops, not array expressions: those bring Numba's checks of shapes, which take longer to compile
# than all the rest.
@njit(cache=True, fastmath={"reassoc", "contract"}, forceinline=True)
def _dot(u, v):
    s = 0.0
    for k in range(u.size):
        s += u[k] * v[k]
    return s


@njit(cache=True, fastmath={"reassoc", "contract"}, forceinline=True)
def _along(u, start, end):
    """u'(end - start)."""
    s = 0.0
    for k in range(u.size):
        s += u[k] * (end[k] - start[k])
    return s


@njit(cache=True, forceinline=True)
def _set(out, a, u):
    """out = a u."""
    for k in range(u.size):
        out[k] = a * u[k]


@njit(cache=True, forceinline=True)
def _add(out, a, u):
    """out += a u."""
    for k in range(u.size):
        out[k] += a * u[k]


@njit(cache=True, forceinline=True)
def _direction(slope, S, Y, pairs, newest, alpha, out):
    """out = -H slope by the two-loop recursion (Nocedal & Wright 2006, algorithm 7.4)."""
    memory = S.shape[0]
    _set(out, -1.0, slope)
    if pairs == 0:
        return
    for back in range(pairs):
        j = (newest - back) % memory
        alpha[j] = _dot(S[j], out) / _dot(S[j], Y[j])
        _add(out, -alpha[j], Y[j])
    _set(out, _dot(S[newest], Y[newest]) / _dot(Y[newest], Y[newest]), out)
    for back in range(pairs - 1, -1, -1):
        j = (newest - back) % memory
        _add(out, alpha[j] - _dot(Y[j], out) / _dot(S[j], Y[j]), S[j])


@njit(**INNER)
def _remember(trial, theta, at, gradient, S, Y, pairs, newest):
    """Keep the step to trial if it shows positive curvature; the new count and position.

    It is written to the oldest place, which is the next to be lost in any case.
    """
    memory = S.shape[0]
    j = (newest + 1) % memory
    for k in range(at.size):
        S[j, k], Y[j, k] = trial[k] - theta[k], at[k] - gradient[k]
    size = _dot(Y[j], Y[j])
    if size == 0.0 or _dot(S[j], Y[j]) <= 1e-10 * size:  # squares may vanish where Y does not
        return min(pairs, memory - 1), newest
    return min(pairs + 1, memory), j


@njit(**INNER)
def _set_trial(theta, slope, direction, step, l1, trial):
    """trial = theta + step direction, kept in the orthant that theta or its slope points to."""
    for k in range(theta.size):
        t = theta[k] + step * direction[k]
        if l1[k] > 0.0:
            orthant = theta[k] if theta[k] != 0.0 else -slope[k]
            if t * orthant <= 0.0:
                t = 0.0
        trial[k] = t


@njit(**INNER)
def _leave(c, at, trial, l1, theta, gradient, slope, direction, S, Y, alpha, history, step):
    """From an accepted point choose the next direction and trial.

    Returns the largest slope there, and what the quadratic model promises that is left to gain.
    """
    pairs, newest = history[c, 0], history[c, 1]
    if pairs >= 0:
        pairs, newest = _remember(trial[c], theta[c], at[c], gradient[c], S[c], Y[c], pairs, newest)
    else:
        pairs, newest = 0, -1
    _set(theta[c], 1.0, trial[c])
    _set(gradient[c], 1.0, at[c])
    largest = 0.0
    for k in range(l1.size):
        slope[c, k] = pseudo_slope(theta[c, k], at[c, k], l1[k])
        largest = max(largest, abs(slope[c, k]))
    _direction(slope[c], S[c], Y[c], pairs, newest, alpha, direction[c])
    for k in range(l1.size):
        if l1[k] > 0.0 and theta[c, k] == 0.0 and direction[c, k] * slope[c, k] > 0.0:
            direction[c, k] = 0.0
    if _dot(direction[c], slope[c]) >= 0.0:
        pairs, newest = 0, -1
        _set(direction[c], -1.0, slope[c])
    step[c] = 1.0 if pairs else 1.0 / max(1.0, np.sqrt(_dot(slope[c], slope[c])))
    history[c, 0], history[c, 1] = pairs, newest
    _set_trial(theta[c], slope[c], direction[c], step[c], l1, trial[c])
    return largest, -0.5 * _dot(direction[c], slope[c])


@njit(**INNER)
def _shorter(step, gain, rise):
    """Return the next step to try: the least of the parabola, a tenth to a half of the last."""
    shrink = -gain / (2.0 * rise) if rise > 0.0 and np.isfinite(rise) else 0.1
    return step * min(0.5, max(0.1, shrink))


@njit(**INNER)
def _outlook(falls, n_iter):
    """Predict the gain of the next OUTLOOK steps: that of the last ones, or a series' sum.

    falls (OUTLOOK,) of the last steps, that of step i at i modulo their number. Where the last few
    steps brought a small share of what as many brought before, falls shrink as in a series.
    """
    last, before, every = 0.0, 0.0, 0.0
    for back in range(min(n_iter, OUTLOOK)):
        fall = falls[(n_iter - 1 - back) % OUTLOOK]
        every += fall
        last += fall if back < STRETCH else 0.0
        before += fall if STRETCH <= back < 2 * STRETCH else 0.0
    if n_iter >= 2 * STRETCH and last <= SHRINKING * before:
        return max(0.0, last) ** 2 / max(before - last, 1e-300)
    return every if n_iter >= OUTLOOK else np.inf


@njit(cache=True, forceinline=True)
def advance(
    active, value, at, l1, precision, scaled, tol, ftol, resolution,
    trial, best, theta, gradient, slope, direction, S, Y, alpha, history, step, largest, promise,
    flat, falls, outlook, n_iter, status,
):  # fmt: skip
    """One evaluation further: accept each problem's trial and leave it, or halve its step."""
    for c in active:
        v = value[c]
        for k in range(l1.size):
            v += l1[k] * abs(trial[c, k])
        started = history[c, 0] >= 0
        gain = _along(slope[c], theta[c], trial[c]) if started else 0.0
        if started and not v <= best[c] + ARMIJO * min(gain, 0.0) + precision * abs(best[c]):
            # Where a whole step across zeros has failed, no parameter goes against its slope.
            for k in range(l1.size):
                if l1[k] > 0.0 and direction[c, k] * slope[c, k] > 0.0:
                    direction[c, k] = 0.0
            step[c] = _shorter(step[c], gain, v - best[c] - gain)
            if step[c] < SMALLEST_STEP:
                # Where a whole step promises no more than rounding there is nothing left to find.
                lost = abs(_dot(slope[c], direction[c])) <= 100.0 * precision * abs(best[c])
                status[c] = CONVERGED if lost else STALLED
            _set_trial(theta[c], slope[c], direction[c], step[c], l1, trial[c])
            continue
        drop = best[c] - v
        flat[c] = flat[c] + 1 if started and drop <= ftol * abs(v) else 0
        best[c] = v
        largest[c], promise[c] = _leave(
            c, at, trial, l1, theta, gradient, slope, direction, S, Y, alpha, history, step
        )
        falls[c, n_iter[c] % OUTLOOK] = drop
        n_iter[c] += started
        outlook[c] = _outlook(falls[c], n_iter[c])
        # A step that gained so little, and a model of some steps that promises no more, need none.
        young = n_iter[c] < S.shape[1] // MATURE
        steep = not scaled or young or max(drop, HOPE * promise[c]) > resolution
        resolved = resolution > 0.0 and (outlook[c] <= resolution or not steep)
        if (
            resolved
            or largest[c] <= tol
            or flat[c] == 2
            or (scaled and promise[c] <= ftol * abs(v))
        ):
            status[c] = CONVERGED


def lbfgs(
    objective, theta, *, max_iter=200, tol=1e-6, ftol=1e-9, resolution=0.0, memory=10,
    best_only=False, spacing=0.0,
):  # fmt: skip
    """Minimize q independent smooth functions, plus sum_k l1_k |theta_k|, side by side.

    Limited-memory BFGS with backtracking; with absolute values its orthant-wise form (Andrew &
    Gao 2007), but for the direction: parameters that are not zero may go against their own slope as
    long as whole steps lower the value. The problems share each pass over the data but nothing
    else: each has its own step and history, and leaves when it is done.

    Parameters
    ----------
    objective : Objective
        `objective(theta (q, d), active)` gives value (q,) and gradient (q, d), filled in the rows
        `active`; `objective.l1` (d,) weighs the absolute values,
        `objective.precision` is the relative error of a value and `objective.scaled` says that
        the Hessian is near the identity.
    theta : array (q, d)
        Starts.
    max_iter : int
        Evaluations allowed to each problem.
    tol, ftol : float
        Stop where the largest absolute (pseudo-)gradient is at most `tol`, or where two accepted
        steps in a row lower the value by at most `ftol` of its size; of a scaled objective, where
        the quadratic model promises no more than that.
    resolution : float
        Stop too where ten further steps promise to lower the value by no more than this: the last
        ten did, or the last three, which gained at most a quarter of what the three before them
        did, begin a geometric series with so small a sum. Of a scaled objective also where, after a
        fifth of `memory` steps, the last one and ten times what the quadratic model promises are no
        more than this.
    memory : int
        Steps that the quasi-Newton matrix is made of.
    best_only : bool
        Only the lowest end is wanted: a problem leaves, not converged, where ten times what it
        promises would not bring it below the lowest value. A scaled objective promises what its
        gradient does. Of others that is far too little where features are correlated: with a
        `resolution` ten further steps count, without one no problem leaves.
    spacing : float
        If positive, every point tried is rounded to multiples of it. Two ways that rounding errors
        have parted then meet again at the next step; without it they end in different minima after
        a hundred steps.

    Returns
    -------
    Minimum
    """
    compiled = getattr(objective, "compiled_loop", None)
    if compiled is not None and resolution == 0.0:
        return Minimum(*compiled(theta, max_iter, tol, ftol, memory))
    trial = np.array(theta, dtype=np.float64)
    q, d = trial.shape
    best = np.full(q, np.inf)
    start, gradient, slope, direction = np.zeros((4, q, d))
    (S, Y), alpha = np.zeros((2, q, memory, d)), np.zeros(memory)
    history = np.full((q, 2), -1)
    step, (largest, promise) = np.ones(q), np.full((2, q), np.inf)
    n_iter, flat, status = np.zeros(q, np.int64), np.zeros(q, np.int64), np.full(q, RUNNING)
    falls, outlook = np.zeros((q, OUTLOOK)), np.full(q, np.inf)
    active, n_eval = np.arange(q), 0
    while active.size and n_eval < max_iter:
        if spacing:
            trial = spacing * np.rint(trial / spacing)
        value, at = objective(trial, active)
        n_eval += 1
        advance(
            active, value, at, objective.l1, objective.precision, objective.scaled, tol, ftol,
            resolution, trial, best, start, gradient, slope, direction, S, Y, alpha, history, step,
            largest, promise, flat, falls, outlook, n_iter, status,
        )  # fmt: skip
        if best_only and (objective.scaled or resolution > 0.0):
            hope = HOPE * (promise if objective.scaled else outlook)
            status[(status == RUNNING) & (best - hope > best.min())] = BEHIND
        active = np.flatnonzero(status == RUNNING)
    return Minimum(start, best, largest, n_iter, status == CONVERGED, n_eval)


class Steps:
    """The last steps of `bounded`, and the changes of the gradient over them.

    Attributes
    ----------
    S, Y : (MEMORY, d) steps and changes of the gradient, `pairs` of them, the last at `newest`
    """

    def __init__(self, d):
        self.S, self.Y = np.zeros((2, MEMORY, d))
        self.pairs, self.newest = 0, -1

    def of_some(self, at):
        """Return the steps of some parameters alone, at these positions."""
        part = Steps(0)
        part.S, part.Y = self.S[:, at].copy(), self.Y[:, at].copy()
        part.pairs, part.newest = self.pairs, self.newest
        return part

    def take(self, at, part):
        """Take over steps of some parameters, during which the others did not move."""
        new = (self.S[:, at] != part.S).any(axis=1)
        self.S[new], self.Y[new] = 0.0, 0.0
        self.S[:, at], self.Y[:, at] = part.S, part.Y
        self.pairs, self.newest = part.pairs, part.newest

    def rescale(self, scale):
        """Turn to other parameters, which change `scale` (d,) times as fast; zero: unknown."""
        self.S *= scale
        self.Y *= np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)


@njit(cache=True, forceinline=True)
def _free_direction(slope, S, Y, pairs, alpha, out):
    """out = -H slope as of `_direction`, from a diagonal in place of one unit for all parameters.

    S, Y from the oldest pair to the newest. The unit of a parameter fits its part of the pairs by
    least squares, each pair with the weight 1 / s'y: of its own accord it follows a change of the
    parameter's scale. It stays within NEAR of the common one.
    """
    _set(out, -1.0, slope)
    if pairs == 0:
        return
    steps, bends = np.zeros(slope.size), np.zeros(slope.size)
    for j in range(pairs - 1, -1, -1):
        share = 1.0 / _dot(S[j], Y[j])
        alpha[j] = _dot(S[j], out) * share
        for k in range(slope.size):
            out[k] -= alpha[j] * Y[j, k]
            steps[k] += share * S[j, k] * S[j, k]
            bends[k] += share * S[j, k] * Y[j, k]
    j = pairs - 1
    unit = _dot(S[j], Y[j]) / _dot(Y[j], Y[j])
    for k in range(slope.size):
        largest = NEAR * unit
        if steps[k] == 0.0:
            out[k] *= unit
        elif bends[k] * largest <= steps[k]:
            out[k] *= largest
        else:
            out[k] *= max(steps[k] / bends[k], unit / NEAR)
    for j in range(pairs):
        _add(out, alpha[j] - _dot(Y[j], out) / _dot(S[j], Y[j]), S[j])


@njit(cache=True)
def _within(theta, gradient, lower, S, Y, pairs, newest, slope, direction, free_S, free_Y, alpha):
    """Direction of the projected L-BFGS: slope and direction are zero where a bound holds.

    Only what the steps so far say of the free parameters enters, from pairs that show positive
    curvature there. Returns the largest slope, and whether there were such pairs.
    """
    memory, kept = S.shape[0], ZERO
    largest = 0.0
    for k in range(theta.size):
        slope[k] = gradient[k] if theta[k] > lower[k] or gradient[k] < 0.0 else 0.0
        largest = max(largest, abs(slope[k]))
    for back in range(pairs - 1, -1, -1):
        j = (newest - back) % memory
        for k in range(theta.size):
            free = slope[k] != 0.0
            free_S[kept, k] = S[j, k] if free else 0.0
            free_Y[kept, k] = Y[j, k] if free else 0.0
        s, y = free_S[kept], free_Y[kept]
        kept += _dot(s, y) > CURVED * np.sqrt(_dot(s, s) * _dot(y, y))
    _free_direction(slope, free_S, free_Y, kept, alpha, direction)
    if _dot(direction, slope) >= 0.0:
        kept = ZERO
        _set(direction, -1.0, slope)
    return largest, kept > 0


def bounded(
    function, theta, lower, *, max_iter=1000, tol=1e-5, ftol=1e-7, patience=5, precision=0.0,
    start=None, steps=None,
):  # fmt: skip
    """Minimize one smooth function of bounded parameters by projected L-BFGS.

    The quasi-Newton direction of the parameters that no bound holds, followed along its projection
    on the bounds (Bertsekas 1982). With bounds at zero an L1 penalty is linear, thus smooth, and
    zeros come out as exact zeros.

    Parameters
    ----------
    function : callable
        theta (d,) -> value, gradient (d,).
    theta, lower : arrays (d,)
        Start, and what no parameter may be below.
    max_iter : int
        Evaluations allowed.
    tol, ftol, patience : float, float, int
        Stop where the largest absolute projected gradient is at most `tol`, or `patience` steps in
        a row lower the value by at most `ftol` of its size each. Else it has not converged.
    precision : float
        Relative error of a value, by which a step may seem to raise it.
    start : value, gradient (d,)
        Value and gradient at theta, if known.
    steps : Steps
        What earlier steps have shown; those to come are added.

    Returns
    -------
    Minimum
        Of one problem.
    """
    theta = np.maximum(theta, lower)
    value, gradient = function(theta) if start is None else start
    d, n_eval, n_iter, flat = theta.size, int(start is None), 0, 0
    steps = Steps(d) if steps is None else steps
    S, Y, pairs, newest = steps.S, steps.Y, steps.pairs, steps.newest
    (free_S, free_Y), (slope, direction) = np.zeros((2, MEMORY, d)), np.zeros((2, d))
    alpha = np.zeros(MEMORY)
    reach = 1.0
    while True:
        largest, bent = _within(
            theta, gradient, lower, S, Y, pairs, newest, slope, direction, free_S, free_Y, alpha
        )
        converged = largest <= tol or flat == patience
        if converged:
            break
        step = reach if bent else reach / max(1.0, np.sqrt(_dot(slope, slope)))
        while n_eval < max_iter and step >= SMALLEST_STEP:
            trial = np.maximum(theta + step * direction, lower)
            new, at = function(trial)
            n_eval += 1
            gain = _along(gradient, theta, trial)
            if new <= value + ARMIJO * gain + precision * abs(value):
                break
            step = _shorter(step, gain, new - value - gain)
        else:
            if bent and n_eval < max_iter:
                pairs = 0  # what the steps so far say is of no use here
                continue
            break
        flat = flat + 1 if value - new <= ftol * abs(new) else 0
        known = newest
        pairs, newest = _remember(trial, theta, at, gradient, S, Y, pairs, newest)
        reach = 1.0 if newest != known else 2.0 * step  # without curvature it goes on as far again
        theta, value, gradient = trial, new, at
        n_iter += 1
    steps.pairs, steps.newest = pairs, newest
    ends = (np.array([v]) for v in (value, largest, n_iter, converged))
    return Minimum(theta[None], *ends, n_eval)
