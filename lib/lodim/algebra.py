"""What patsy gives: splines that remember, and contrasts. Its only importer.

In and out go text, numbers and arrays; no object of patsy's leaves this file.
"""

import ast

import numpy as np
import patsy
import patsy.builtins

from lodim.errors import FormulaError
from lodim.grammar import MAX_BASIS

TRANSFORMS = {
    name: getattr(patsy.builtins, name).__patsy_stateful_transform__
    for name in ("bs", "cr", "cc", "te", "center", "scale", "standardize")
}


def contrast(code, node, levels):
    """patsy's coding of levels beside an intercept: (n_levels, n_columns), labels."""
    if len(levels) > MAX_BASIS:
        what = f"a contrast takes at most {MAX_BASIS:,} levels"
        raise FormulaError(f"{code:.200}: {what}, and there are {len(levels):,}")
    called = isinstance(node, ast.Call)
    maker = getattr(patsy.builtins, (node.func if called else node).id)
    arguments = [ast.literal_eval(arg) for arg in node.args] if called else []
    words = {w.arg: ast.literal_eval(w.value) for w in node.keywords} if called else {}
    try:
        coded = maker(*arguments, **words).code_without_intercept(list(levels))
    except Exception as error:
        raise FormulaError(f"{code}: {error} (levels: {list(levels)})") from None
    matrix = np.asarray(coded.matrix, float)
    if not np.isfinite(matrix).all():
        raise FormulaError(f"{code:.200}: {len(levels)} levels are too many for this contrast")
    return matrix, [s.strip("[].") for s in coded.column_suffixes]


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
