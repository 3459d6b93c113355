"""What patsy gives: the algebra of terms, splines that remember, contrasts. Its only importer.

In and out go text, numbers and arrays; no object of patsy's leaves this file.
"""

import ast
import functools

import numpy as np
import patsy
import patsy.builtins

from lodim import forms
from lodim.errors import FormulaError
from lodim.grammar import column_name

TRANSFORMS = {
    name: getattr(patsy.builtins, name).__patsy_stateful_transform__
    for name in ("bs", "cr", "cc", "te", "center", "scale", "standardize")
}


_KNOTS = {
    "_cyclic": forms.flags(), "_all_knots": forms.ascending(forms.real("knots"), strictly=True),
    "_constraints": forms.optional(forms.real("bound", "bases")),
}  # fmt: skip
_SCALED = {
    "current_n": forms.whole(least=1), "current_mean": forms.real("columns"),
    "current_M2": forms.real("columns", least=0, most=forms.SQUARE),
}  # fmt: skip
LEARNT = {  # what transforms remember
    "bs": {
        "_degree": forms.whole(most=10), "_all_knots": forms.ascending(forms.real("knots")),
    },
    "cr": _KNOTS | {"_name": forms.choice("cr")},
    "cc": _KNOTS | {"_name": forms.choice("cc")},
    "te": {"_constraints": forms.optional(forms.real("bound", "bases"))},
    "center": {"_sum": forms.real("columns"), "_count": forms.whole(least=1)},
    "scale": _SCALED,
    "standardize": _SCALED,
}  # fmt: skip


def check(name, state):
    """Raise a ValueError unless a state is what `learn` returns: FITPACK trusts in it."""
    forms.choice(*LEARNT)(name, "a transform", {})
    sizes = {}
    forms.part(LEARNT[name])(state, name, sizes)
    if name == "bs" and sizes["knots"] < 2 * (state["_degree"] + 1):
        raise ValueError(f"bs() of degree {state['_degree']} has {sizes['knots']} knots")
    if name in ("cr", "cc") and (sizes["knots"] < 2 or state["_cyclic"] != (name == "cc")):
        raise ValueError(f"{name}() has {sizes['knots']} knots, or is of another kind")


def read_terms(text):
    """Terms of a formula's right side without dots: tuples of factor keys, by patsy.; see `key`."""
    try:
        terms = patsy.ModelDesc.from_formula(text).rhs_termlist
    except RecursionError:
        raise FormulaError(f"a sum in brackets is too long: {text[:60]} ...") from None
    except patsy.PatsyError as error:
        raise FormulaError(f"{text}: {error.message}") from None
    return [tuple(key(f.code) for f in term.factors) for term in terms if term.factors]


@functools.lru_cache(100_000)
def key(code):
    """A factor's code as (column, None) or (None, canonical code)."""
    node = ast.parse(code, mode="eval").body
    name = column_name(node)
    return (None, ast.unparse(node)) if name is None else (name, None)


def contrast(code, node, levels):
    """patsy's coding of levels beside an intercept: (n_levels, n_columns), labels."""
    called = isinstance(node, ast.Call)
    maker = getattr(patsy.builtins, (node.func if called else node).id)
    arguments = [ast.literal_eval(arg) for arg in node.args] if called else []
    words = {w.arg: ast.literal_eval(w.value) for w in node.keywords} if called else {}
    try:
        coded = maker(*arguments, **words).code_without_intercept(list(levels))
    except Exception as error:
        raise FormulaError(f"{code}: {error} (levels: {list(levels)})") from None
    return np.asarray(coded.matrix, float), [s.strip("[].") for s in coded.column_suffixes]


def learn(name, data, settings, words, counted):
    """What a transform remembers, as plain numbers and float64 arrays."""
    if counted is not None:
        data = [x[counted] for x in data]
    if name in ("scale", "standardize"):
        x = data[0].reshape(len(data[0]), -1)
        mean, varies = x.mean(axis=0), x.min(axis=0) < x.max(axis=0)
        squares = np.where(varies, ((x - mean) ** 2).sum(axis=0), 0.0)
        return {"current_n": len(x), "current_mean": mean, "current_M2": squares}
    transform = TRANSFORMS[name]()
    transform.memorize_chunk(*data, *settings, **words)
    transform.memorize_finish()
    return {key: _plain(value) for key, value in vars(transform).items()}


def _plain(value):
    if value is None or isinstance(value, (str, bool, int)):
        return value
    array = np.asarray(value, np.float64)
    return array if array.ndim else array.item()


def apply(name, state, data, settings, words):
    """Columns that a transform makes of new data, by what it has learnt.

    Parameters
    ----------
    name : str
        One of `TRANSFORMS`.
    state : dict
        What `learn` returned.
    data : list of arrays, (n,) or (n, k)
    settings, words : list, dict
        Further arguments, as written in the formula.

    Returns
    -------
    (n,) or (n, k) array
    """
    transform = TRANSFORMS[name].__new__(TRANSFORMS[name])
    vars(transform).update(state)
    return np.asarray(transform.transform(*data, *settings, **words))
