"""Limited-memory BFGS for many problems at once, and for one problem with lower bounds."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lodim.engine.compiled import ZERO, njit
from lodim.solve.objective import pseudo_slope

RUNNING, CONVERGED, GIVEN_UP = 0, 1, 2
ARMIJO = 1e-4
SMALLEST_STEP = 1e-12
SPACING = 2.0**-18  # of points to try where rounding errors could decide between two minima
MEMORY = 40  # number of steps that `bounded` stores
# Largest scale of a parameter in the quasi-Newton matrix, relative to the common scale.
MAX_UNIT_RATIO = 10.0
OUTLOOK = 10  # number of next steps whose gain is predicted from as many last steps
RECENT_STEPS = 3  # number of steps per group, if gains decrease quickly from group to group
MATURE = 5  # the quadratic model is used after memory / MATURE steps
HOPE = 10.0  # assumed largest gain of a problem, relative to the predicted gain

# The function becomes part of its caller before compilation, which saves a compilation.
INNER = {"cache": True, "forceinline": True, "inline": "always"}


@dataclass(frozen=True)
class Minimum:
    """Results of q independent minimizations; n_eval counts evaluations of all of them together."""

    theta: np.ndarray  # (q, d) parameters at the minimum
    value: np.ndarray  # (q,)
    grad_norm: np.ndarray  # (q,) largest absolute slope, L1 penalty included
    n_iter: np.ndarray  # (q,) number of steps
    converged: np.ndarray  # (q,) bool
    n_eval: int


class Stops(NamedTuple):
    """L1 penalty and rules for when to stop, as arguments of compiled functions (see `lbfgs`)."""

    l1: np.ndarray  # (d,) weights of absolute values
    precision: float  # relative error of a value
    scaled: bool  # whether the Hessian is near the identity
    tol: float  # largest slope of a converged problem
    ftol: float  # relative decrease that counts as none
    resolution: float  # predicted gain that is too small to go on
    spacing: float  # distance of neighbouring trial points, or 0


class Search(NamedTuple):
    """State of q minimizations, each of a function of d parameters."""

    trial: np.ndarray  # (q, d) parameters that are tried
    theta: np.ndarray  # (q, d) last accepted parameters
    gradient: np.ndarray  # (q, d) at theta
    slope: np.ndarray  # (q, d) gradient with the L1 penalty included
    direction: np.ndarray  # (q, d) search direction
    S: np.ndarray  # (q, memory, d) last steps
    Y: np.ndarray  # (q, memory, d) changes of the gradient over these steps
    alpha: np.ndarray  # (memory,) work array
    history: np.ndarray  # (q, 2) number of steps in S, and position of the newest
    best: np.ndarray  # (q,) value at theta
    largest: np.ndarray  # (q,) largest absolute slope
    promise: np.ndarray  # (q,) remaining gain according to the quadratic model
    step: np.ndarray  # (q,) length of the trial step, relative to direction
    falls: np.ndarray  # (q, 10) gains of the last steps
    outlook: np.ndarray  # predicted gain of the next ten steps
    flat: np.ndarray  # consecutive steps without gain
    n_iter: np.ndarray
    status: np.ndarray  # RUNNING, or how the minimization ended


def new_search(theta, memory):
    """Return the state of minimizations that start at theta (q, d) and store `memory` steps."""
    q, d = theta.shape
    start, gradient = np.zeros((q, d)), np.zeros((q, d))
    slope, direction = np.zeros((q, d)), np.zeros((q, d))
    S, Y, alpha = np.zeros((q, memory, d)), np.zeros((q, memory, d)), np.zeros(memory)
    history, best = np.full((q, 2), -1), np.full(q, np.inf)
    step, largest, promise = np.ones(q), np.full(q, np.inf), np.full(q, np.inf)
    falls, outlook = np.zeros((q, OUTLOOK)), np.full(q, np.inf)
    flat, n_iter, status = np.zeros(q, np.int64), np.zeros(q, np.int64), np.full(q, RUNNING)
    of_line = slope, direction, S, Y, alpha, history, best, largest, promise, step
    return Search(theta.copy(), start, gradient, *of_line, falls, outlook, flat, n_iter, status)


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
    s = 0.0
    for k in range(u.size):
        s += u[k] * (end[k] - start[k])
    return s


@njit(cache=True, forceinline=True)
def _set(out, a, u):
    for k in range(u.size):
        out[k] = a * u[k]


@njit(cache=True, forceinline=True)
def _add(out, a, u):
    for k in range(u.size):
        out[k] += a * u[k]


@njit(cache=True, forceinline=True)
def _direction(slope, S, Y, pairs, newest, alpha, out):
    """Write the L-BFGS direction of a minimization to `out`.

    slope : (d,) gradient; alpha : (memory,) work array
    S, Y : (memory, d) ring buffers of steps and gradient changes
    pairs, newest : number of stored steps, row of the last one"""
    # Nocedal & Wright (2006), algorithm 7.4.
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
    """Store a step and its change of the gradient in S and Y; return the new `pairs` and `newest`.

    trial, theta : (d,) points after and before the step
    at, gradient : (d,) gradients after and before it
    S, Y : (memory, d) ring buffers of steps and gradient changes
    pairs, newest : number of stored steps, and row of the last"""
    memory = S.shape[0]
    j = (newest + 1) % memory
    for k in range(at.size):
        S[j, k], Y[j, k] = trial[k] - theta[k], at[k] - gradient[k]
    size = _dot(Y[j], Y[j])
    # Steps without positive curvature are skipped.
    if size == 0.0 or _dot(S[j], Y[j]) <= 1e-10 * size:  # squares may underflow to zero
        return min(pairs, memory - 1), newest
    return min(pairs + 1, memory), j


@njit(**INNER)
def _set_trial(theta, slope, direction, step, l1, trial):
    """Write theta + step * direction to `trial`; penalized parameters stop at 0.

    slope : (d,) gradient with the L1 penalty
    l1 : (d,) weights of the L1 penalty"""
    for k in range(theta.size):
        t = theta[k] + step * direction[k]
        if l1[k] > 0.0:
            orthant = theta[k] if theta[k] != 0.0 else -slope[k]
            if t * orthant <= 0.0:
                t = 0.0
        trial[k] = t


@njit(**INNER)
def _accept_trial(c, at, l1, search):
    """Accept the trial point of minimization c; set its next direction and trial point.

    at : (q, d) gradients at all trial points
    l1 : (d,) weights of the L1 penalty
    search : Search, changed in place
    Return the largest absolute gradient with the L1 penalty, and the predicted decrease."""
    trial, theta, gradient, slope = search.trial, search.theta, search.gradient, search.slope
    direction, S, Y, alpha = search.direction, search.S, search.Y, search.alpha
    history, step = search.history, search.step
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
    """Return a shorter step for a line search.

    gain : predicted change of the value, negative; rise : true change minus `gain`"""
    shrink = -gain / (2.0 * rise) if rise > 0.0 and np.isfinite(rise) else 0.1
    return step * min(0.5, max(0.1, shrink))


@njit(**INNER)
def _outlook(falls, n_iter):
    """Predict the gain of the next ten steps of a minimization; inf if it has too few steps so far.

    falls : (10,) ring buffer of the gains of the last ten steps; n_iter : number of all steps"""
    last, before, every = 0.0, 0.0, 0.0
    for back in range(min(n_iter, OUTLOOK)):
        fall = falls[(n_iter - 1 - back) % OUTLOOK]
        every += fall
        last += fall if back < RECENT_STEPS else 0.0
        before += fall if RECENT_STEPS <= back < 2 * RECENT_STEPS else 0.0
    if n_iter >= 2 * RECENT_STEPS and last <= 0.25 * before:  # gains decrease quickly
        return max(0.0, last) ** 2 / max(before - last, 1e-300)
    return every if n_iter >= OUTLOOK else np.inf


@njit(cache=True)
def advance(active, value, at, stops, search):
    """Do one step of several minimizations: accept or shorten it, then set the next trial point.

    active : positions of the minimizations that still run
    value : (q,) values at the trial points
    at : (q, d) gradients there
    stops : Stops, with the L1 penalty
    search : Search, changed in place"""
    l1, precision, resolution = stops.l1, stops.precision, stops.resolution
    trial, theta, slope, direction = search.trial, search.theta, search.slope, search.direction
    best, promise, step, history = search.best, search.promise, search.step, search.history
    flat, n_iter, outlook, status = search.flat, search.n_iter, search.outlook, search.status
    for c in active:
        v = value[c]
        for k in range(l1.size):  # a gradient that is not finite makes v NaN
            v += l1[k] * abs(trial[c, k]) + 0.0 * at[c, k]
        started = history[c, 0] >= 0
        gain = _along(slope[c], theta[c], trial[c]) if started else 0.0
        if started and not v <= best[c] + ARMIJO * min(gain, 0.0) + precision * abs(best[c]):
            # After a failed step across zeros, no parameter moves against its slope.
            for k in range(l1.size):
                if l1[k] > 0.0 and direction[c, k] * slope[c, k] > 0.0:
                    direction[c, k] = 0.0
            step[c] = _shorter(step[c], gain, v - best[c] - gain)
            left = False  # whether rounding leaves a trial point apart from theta
            for k in range(l1.size):
                left |= not step[c] * abs(direction[c, k]) <= 0.5 * stops.spacing
            # A step multiplies a direction, which may be long, down to half the spacing.
            smallest = SMALLEST_STEP if stops.spacing == 0.0 else SMALLEST_STEP**2
            if not left:
                status[c] = CONVERGED
            elif step[c] < smallest:
                # If a full step promises a gain within rounding errors, the problem has converged.
                lost = abs(_dot(slope[c], direction[c])) <= 100.0 * precision * abs(best[c])
                status[c] = CONVERGED if lost else GIVEN_UP
            _set_trial(theta[c], slope[c], direction[c], step[c], l1, trial[c])
            continue
        if np.isnan(v):  # at the starting point
            _set(theta[c], 1.0, trial[c])
            status[c] = GIVEN_UP
            continue
        drop = best[c] - v
        flat[c] = flat[c] + 1 if started and drop <= stops.ftol * abs(v) else 0
        best[c] = v
        search.largest[c], promise[c] = _accept_trial(c, at, l1, search)
        search.falls[c, n_iter[c] % OUTLOOK] = drop
        n_iter[c] += started
        outlook[c] = _outlook(search.falls[c], n_iter[c])
        # A step that gained so little, and a model of some steps that promises no more, need none.
        young = n_iter[c] < search.S.shape[1] // MATURE
        steep = not stops.scaled or young or max(drop, HOPE * promise[c]) > resolution
        resolved = resolution > 0.0 and (outlook[c] <= resolution or not steep)
        if (
            resolved
            or search.largest[c] <= stops.tol
            or flat[c] == 2
            or (stops.scaled and promise[c] <= stops.ftol * abs(v))
        ):
            status[c] = CONVERGED


def lbfgs(
    objective,
    theta,
    *,
    max_iter=200,
    tol=1e-6,
    ftol=1e-9,
    resolution=0.0,
    memory=10,
    best_only=False,
    spacing=0.0,
):
    """Minimize q smooth functions with an L1 penalty from theta (q, d); return a Minimum.

    objective : called as objective(theta, active); returns values (q,) and gradients (q, d)
        `active` has the positions of the unfinished functions; others are not used.
        Attributes are l1 (d,) penalties, precision (relative error of a value), and scaled (bool,
        whether Hessians are near the identity).
    max_iter : largest number of calls of `objective`
    tol : largest absolute gradient at the end, with the L1 penalty
    ftol : relative decrease below which two steps in a row finish a function
    resolution : predicted gain of ten steps below which a function is finished
    memory : number of stored steps
    best_only : whether to give up functions that will not have the lowest value
    spacing : if positive, trial points are rounded to multiples of it"""
    # Orthant-wise L-BFGS (Andrew & Gao 2007).
    search = new_search(np.array(theta, dtype=np.float64), memory)
    penalty = objective.l1, objective.precision, objective.scaled
    stops = Stops(*penalty, float(tol), float(ftol), float(resolution), float(spacing))
    status, active, n_eval = search.status, np.arange(len(search.theta)), 0
    while active.size and n_eval < max_iter:
        if spacing:
            search.trial[:] = to_multiples(search.trial, spacing)
        advance(active, *objective(search.trial, active), stops, search)
        n_eval += 1
        if best_only and (objective.scaled or resolution > 0.0):
            hope = HOPE * (search.promise if objective.scaled else search.outlook)
            status[(status == RUNNING) & (search.best > search.best.min() + hope)] = GIVEN_UP
        active = (status == RUNNING).nonzero()[0]
    ends = search.theta, search.best, search.largest, search.n_iter
    return Minimum(*ends, search.status == CONVERGED, n_eval)


def to_multiples(theta, spacing):
    """Return theta rounded to multiples of `spacing`; theta itself if `spacing` is 0."""
    return spacing * np.rint(theta / spacing) if spacing else theta


class Steps:
    """Last steps of the minimizer `bounded`, and the changes of the gradient over each step."""

    def __init__(self, d):
        self.S, self.Y = np.zeros((2, MEMORY, d))
        self.pairs, self.newest = 0, -1

    def of_some(self, at):
        part = Steps(0)
        part.S, part.Y = self.S[:, at].copy(), self.Y[:, at].copy()
        part.pairs, part.newest = self.pairs, self.newest
        return part

    def update(self, at, part):
        """Take over the steps of a minimization of only the parameters at positions `at`.

        part : Steps that started as `of_some(at)`"""
        # New steps are 0 in the other parameters; earlier steps keep their values there.
        new = (self.S[:, at] != part.S).any(axis=1)
        self.S[new], self.Y[new] = 0.0, 0.0
        self.S[:, at], self.Y[:, at] = part.S, part.Y
        self.pairs, self.newest = part.pairs, part.newest


@njit(cache=True, forceinline=True)
def _free_direction(slope, S, Y, pairs, out):
    """Write the L-BFGS direction of a minimization with bounds to `out`.

    slope : (d,) gradient, 0 where a bound holds
    S, Y : (pairs, d) steps and changes of the gradient, 0 where a bound holds"""
    # The initial Hessian has a scale per parameter.
    _set(out, -1.0, slope)
    if pairs == 0:
        return
    alpha = np.empty(pairs)
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
        largest = MAX_UNIT_RATIO * unit
        if steps[k] == 0.0:
            out[k] *= unit
        elif bends[k] * largest <= steps[k]:
            out[k] *= largest
        else:
            out[k] *= max(steps[k] / bends[k], unit / MAX_UNIT_RATIO)
    for j in range(pairs):
        _add(out, alpha[j] - _dot(Y[j], out) / _dot(S[j], Y[j]), S[j])


def _checked(value, gradient):
    """Return `value`, or infinity if it is NaN or an entry of the gradient is not finite."""
    return np.inf if np.isnan(value) or not np.isfinite(gradient).all() else value


@njit(cache=True)
def _projected(theta, gradient, lower, S, Y, pairs, newest):
    """Choose a search direction under lower bounds of the parameters.

    Return (slope, direction, largest absolute slope, whether L-BFGS gave the direction).
    theta, lower : (d,) parameters and their lower bounds
    slope : (d,) gradient, 0 where a bound holds
    S, Y : (memory, d) ring buffers of steps and gradient changes
    pairs, newest : number of stored steps, and row of the last"""
    memory, kept, largest = S.shape[0], ZERO, 0.0
    free_S, free_Y = np.empty((pairs, theta.size)), np.empty((pairs, theta.size))
    slope, direction = np.empty(theta.size), np.empty(theta.size)
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
        # Steps and changes of the gradient at nearly right angles give unbounded directions.
        kept += _dot(s, y) > 1e-4 * np.sqrt(_dot(s, s) * _dot(y, y))
    _free_direction(slope, free_S, free_Y, kept, direction)
    if _dot(direction, slope) >= 0.0:
        kept = ZERO
        _set(direction, -1.0, slope)
    return slope, direction, largest, kept > 0


def bounded(
    function,
    theta,
    lower,
    *,
    max_iter=1000,
    tol=1e-5,
    ftol=1e-7,
    patience=5,
    precision=0.0,
    spacing=0.0,
    start=None,
    steps=None,
):
    """Minimize a smooth function with lower bounds, starting at theta (d,); return a Minimum.

    function : returns (value, gradient) at given parameters
    tol : largest absolute gradient at the end, except at bounds
    ftol : relative decrease below which `patience` steps in a row end the search
    precision : relative error of a value, by which a step may raise it
    spacing : if positive, trial points are rounded to multiples of it
    start : (value, gradient) at theta, if known; theta must then be a multiple of `spacing`
    steps : Steps of an earlier call, extended in place"""
    # Projected L-BFGS (Bertsekas 1982).
    theta = np.maximum(to_multiples(theta, spacing), lower)
    value, gradient = function(theta) if start is None else start
    value = _checked(value, gradient)
    d, n_eval, n_iter, flat = theta.size, int(start is None), 0, 0
    steps = Steps(d) if steps is None else steps
    S, Y, pairs, newest = steps.S, steps.Y, steps.pairs, steps.newest
    reach = 1.0
    while True:
        slope, direction, largest, bent = _projected(theta, gradient, lower, S, Y, pairs, newest)
        failed = not np.isfinite(value)
        converged = not failed and (largest <= tol or flat == patience)
        if failed or converged:
            break
        step = reach if bent else reach / max(1.0, np.sqrt(_dot(slope, slope)))
        while n_eval < max_iter and step >= SMALLEST_STEP:
            trial = np.maximum(to_multiples(theta + step * direction, spacing), lower)
            new, at = function(trial)
            new, n_eval = _checked(new, at), n_eval + 1
            gain = _along(gradient, theta, trial)
            if new <= value + ARMIJO * gain + precision * abs(value):
                break
            step = _shorter(step, gain, new - value - gain)
        else:
            if bent and n_eval < max_iter:
                pairs = 0  # restart without the previous steps
                continue
            break
        flat = flat + 1 if value - new <= ftol * abs(new) else 0
        known = newest
        pairs, newest = _remember(trial, theta, at, gradient, S, Y, pairs, newest)
        reach = (
            1.0 if newest != known else 2.0 * step
        )  # without curvature the next step may be longer
        theta, value, gradient = trial, new, at
        n_iter += 1
    steps.pairs, steps.newest = pairs, newest
    ends = (np.array([v]) for v in (value, largest, n_iter, converged))
    return Minimum(theta[None], *ends, n_eval)
