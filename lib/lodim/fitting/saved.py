"""Saved fits: what the files of all models hold, and load()."""

from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd

from lodim import family as families
from lodim import forms
from lodim.design.design import Design
from lodim.design.rows import INPUTS
from lodim.errors import StoreError
from lodim.fitting import storage
from lodim.fitting.registry import HOMES, model_function
from lodim.fitting.selected import MEASURE
from lodim.typing import FilePath

# The module of from_state for each kind of file.
STORED = HOMES | {"conformal": "lodim.uncertainty.prediction_sets"}

SHARED: dict[str, forms.Form] = {  # arguments that are read of a fit of any model
    "family": forms.optional(forms.text),
    "sample": forms.optional(forms.whole(least=1)),
    "standardize": forms.flags(),
    "missing": forms.text,
    "dtype": forms.text,
    **dict.fromkeys(INPUTS, forms.optional(forms.plain)),
}


def load(path: FilePath) -> Any:
    """Read a fit that `Fit.save` wrote, or what lodim.conformal made. Runs no code from the file.

    Parameters
    ----------
    path : path

    Returns
    -------
    Fit or Conformal
        Of the class that was saved.

    Raises
    ------
    StoreError
        The file is missing, corrupt, not a fit, or from a newer lodim.

    See Also
    --------
    GbmapFit.save

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> fit = ld.glm("mpg ~ weight + model_year", cars)
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     fit.save(Path(folder) / 'cars.lodim')
    ...     back = ld.load(Path(folder) / 'cars.lodim')
    >>> back.name
    'glm'
    """
    kind, state = storage.read(path)
    if kind not in STORED:
        raise StoreError(f"{path} holds {kind!r}, which is not a model of this lodim")
    try:
        return import_module(STORED[kind]).from_state(state)
    except Exception as error:
        # What a forged state holds can set off nearly any exception in the records' checks.
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        raise StoreError(f"{path} does not hold a whole {kind} fit: {reason}") from error


def read_shared_state(state: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the keywords of every model's Fit that `Fit._shared_state` has written."""
    design, selection = Design.from_state(state["design"]), state["selection"]
    known: dict[str, forms.Form] = {
        "call": forms.text, "arguments": forms.modest, "settings": forms.modest,
        "selection": forms.modest, "chosen": forms.modest,
    }  # fmt: skip
    forms.check(state, known)
    parameters = signature(model_function(kind)).parameters.values()
    named = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} - {"progress", "client"}
    arguments = dict(state["arguments"])
    if set(arguments) != named:
        raise ValueError(f"its arguments are not those of {kind}()")
    forms.check(arguments, {name: SHARED[name] for name in named & set(SHARED)}, "arguments")
    if selection is None and state["chosen"]:
        raise ValueError(f"{', '.join(state['chosen'])} chosen, without what was tried")
    if selection is not None:
        _check_selection(selection, state["chosen"], state["settings"])
    return {
        "design": design, "family": families.family_of(design),
        "selection": None if selection is None else pd.DataFrame(selection),
        "call": state["call"], "arguments": arguments,
        "chosen": {name: tuple(by_draw) for name, by_draw in state["chosen"].items()},
    }  # fmt: skip


def _check_selection(selection, chosen, settings):
    """Raise a ValueError unless a table of settings tried has the columns that are read of it."""
    rows = {len(column) for column in selection.values() if isinstance(column, list)}
    missing = {"mean", "se", *chosen} - set(selection)
    if len(rows) != 1 or rows == {0} or missing:
        raise ValueError(f"selection has columns of {sorted(rows)} rows, and lacks {missing}")
    number = forms.several(None, forms.optional(forms.real(least=-np.inf, most=np.inf, nan=True)))
    for name, column in selection.items():
        if name == MEASURE:
            forms.several(None, forms.text)(column, f"selection.{name}", {})
        elif name not in settings or {int, float} & set(map(type, (settings[name], *column))):
            number(column, f"selection.{name}", {})
    draws = {len(values) for values in chosen.values()}
    if len(draws) > 1 or not all(isinstance(v, int | float) for of in chosen.values() for v in of):
        raise ValueError(f"chosen is {chosen!r:.80}, not as many numbers of each setting")
