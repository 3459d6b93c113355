"""Splines and contrasts, computed by patsy; fits store the knots. Only this module uses patsy."""

import ast

import numpy as np
import patsy
import patsy.builtins

from lodim import forms
from lodim.errors import FormulaError
from lodim.formula.language import MAX_BASIS

TRANSFORMS = {
    name: getattr(patsy.builtins, name).__patsy_stateful_transform__
    for name in ("bs", "cr", "cc", "te", "center", "scale", "standardize")
}
MOMENTS = ("center", "scale", "standardize")  # transforms with as many columns as their argument

SCALE = {"ddof": 1}  # defaults of scale() that differ from patsy's: as in R, it divides by n - 1
ROWS = 1024  # number of rows that are transformed at a time

_COUNT, _KNOTS = forms.whole(least=1), forms.real("knots")
_COLUMNS = forms.squares("columns")  # sums and means
_CONSTRAINED = {"_constraints": forms.optional(forms.real("bound", "bases"))}
_CUBIC = _CONSTRAINED | {"_cyclic": forms.flags()}
_CUBIC |= {"_all_knots": forms.ascending(_KNOTS, strictly=True)}
_SCALED = {"current_n": _COUNT, "current_mean": _COLUMNS}
_SCALED |= {"current_M2": forms.real("columns", least=0, most=1e15 * forms.SQUARE)}  # of many rows
LEARNT = {  # transform -> form of its learned state
    "bs": {"_degree": forms.whole(most=10), "_all_knots": forms.ascending(_KNOTS)},
    "cr": _CUBIC | {"_name": forms.choice("cr")},
    "cc": _CUBIC | {"_name": forms.choice("cc")},
    "te": _CONSTRAINED,
    "center": {"_sum": _COLUMNS, "_count": _COUNT},
    "scale": _SCALED,
    "standardize": _SCALED,
}


def check(name, state):
    """Raise ValueError unless `state`, from a file, can be what transform `name` has learned."""
    forms.choice(*LEARNT).read(name, "a transform", {})
    sizes = {}
    forms.part(LEARNT[name]).read(state, name, sizes)
    if name == "bs" and sizes["knots"] < 2 * (state["_degree"] + 1):
        raise ValueError(f"bs() of degree {state['_degree']} has {sizes['knots']} knots")
    if name in ("cr", "cc") and (sizes["knots"] < 2 or state["_cyclic"] != (name == "cc")):
        raise ValueError(f"{name}() has {sizes['knots']} knots, or is of another kind")


def contrast(code, node, levels):
    """Return the matrix (levels, columns) and the column labels of a contrast, such as Sum.

    code : text of the call of C(), for errors; node : syntax tree of the contrast"""
    if len(levels) > MAX_BASIS:
        what = f"a contrast takes at most {MAX_BASIS:,} levels"
        raise FormulaError(f"{code:.200}: {what}, and there are {len(levels):,}")
    called = isinstance(node, ast.Call)
    maker = getattr(patsy.builtins, (node.func if called else node).id)
    arguments = [ast.literal_eval(arg) for arg in node.args] if called else []
    words = {w.arg: ast.literal_eval(w.value) for w in node.keywords} if called else {}
    try:
        with np.errstate(all="ignore"):
            coded = maker(*arguments, **words).code_without_intercept(list(levels))
    except Exception as error:
        raise FormulaError(f"{code}: {error} (levels: {list(levels)})") from None
    matrix = np.asarray(coded.matrix, float)
    if not np.isfinite(matrix).all():
        raise FormulaError(f"{code:.200}: {len(levels)} levels are too many for this contrast")
    return matrix, [s.strip("[].") for s in coded.column_suffixes]


def learn(name, data, settings, words):
    """Learn from data what a transform, such as bs(), needs for new data; return a dict.

    data : list of arrays; settings, words : positional and keyword arguments of the transform"""
    if name in ("scale", "standardize"):
        x = data[0].reshape(len(data[0]), -1)
        mean, varies = x.mean(axis=0), x.min(axis=0) < x.max(axis=0)
        squares = np.where(varies, ((x - mean) ** 2).sum(axis=0), 0.0)
        return {"current_n": len(x), "current_mean": mean, "current_M2": squares}
    if name == "bs":
        words = _with_knots(data[0], *settings, **words)
        settings = []
    transform = TRANSFORMS[name]()
    transform.memorize_chunk(*data, *settings, **words)
    transform.memorize_finish()
    return {key: _plain(value) for key, value in vars(transform).items()}


def _with_knots(x, df=None, knots=None, degree=3, include_intercept=False, **bounds):
    """Return the arguments of patsy's bs(x, ...) as a dict; choose knots if only `df` is given."""
    n_knots = (df or 0) - degree - 1 + (not include_intercept)
    if knots is None and n_knots > 0:
        knots = np.percentile(x, 100 * np.linspace(0, 1, n_knots + 2)[1:-1])
    arguments = {"df": df, "knots": knots, "degree": degree}
    return arguments | {"include_intercept": include_intercept} | bounds


def _plain(value):
    if value is None or isinstance(value, (str, bool, int)):
        return value
    array = np.asarray(value, np.float64)
    return array if array.ndim else array.item()


def apply(name, state, data, settings, words):
    """Return the columns that a transform, such as bs(), makes of new data.

    state : dict that `learn` returned; data : list of arrays, (n,) or (n, k)
    settings, words : positional and keyword arguments of the transform"""
    out, n = None, len(data[0])
    for i in range(0, max(n, 1), ROWS):  # splines need several times the memory
        values = _transform(name, state, [x[i : i + ROWS] for x in data], settings, words)
        if n <= ROWS:
            return values
        if out is None:
            out = np.empty((n, *values.shape[1:]), values.dtype)
        out[i : i + ROWS] = values
    return out


def _transform(name, state, data, settings, words):
    if name == "bs":
        return _b_splines(data[0], state, **words)
    if name == "scale":
        words = SCALE | words
    transform = TRANSFORMS[name].__new__(TRANSFORMS[name])
    vars(transform).update(state)
    return np.asarray(transform.transform(*data, *settings, **words))


def _b_splines(x, state, include_intercept=False, lower_bound=None, upper_bound=None, **_):
    """Return patsy's B-spline basis bs(x, ...) with the knots in `state`, (n, k).

    Outside the training range, the outer polynomials continue, as in R.
    Raise NotImplementedError if x is outside `lower_bound` or `upper_bound`."""
    from scipy.interpolate import BSpline

    x, knots, order = x.reshape(len(x)), state["_all_knots"], state["_degree"] + 1
    below, above = lower_bound is not None, upper_bound is not None
    if (below and x.min() < knots[0]) or (above and x.max() > knots[-1]):
        raise NotImplementedError("outside of the bounds")
    basis = np.zeros((len(x), len(knots) - order))
    if knots[0] < knots[-1]:
        # Inner knots at an end (because of ties) give columns of zeros, and no end polynomial.
        first = np.searchsorted(knots, knots[0], "right") - order
        last = np.searchsorted(knots, knots[-1], "left") + order
        own = BSpline.design_matrix(x, knots[first:last], order - 1, extrapolate=True)
        basis[:, first : last - order] = own.toarray()
    return basis if include_intercept else basis[:, 1:]
