"""Files of saved fits: their contents, for all models, and load()."""

from dataclasses import fields, replace
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
from lodim.fitting.registry import MODELS, model_function
from lodim.typing import FilePath

MEASURE = "measure"  # column with the name of the loss, in tables of losses other than deviance
STORED = {  # kind of file -> module and class of its content
    **{name: (f"lodim.models.{name}.fit", f"{name.title()}Fit") for name in MODELS},
    "ripr_fits": ("lodim.models.ripr.multi_fit", "RiprFits"),
    "acquire": ("lodim.acquisition.policy", "Policy"),
    "conformal": ("lodim.uncertainty.prediction_sets", "Conformal"),
}

SHARED: dict[str, forms.Form] = {  # forms of arguments that all models share
    "family": forms.optional(forms.text()),
    "power": forms.optional(forms.real()),
    "quantile": forms.optional(forms.real()),
    "sample": forms.optional(forms.whole(least=1)),
    "standardize": forms.flags(),
    "missing": forms.text(),
    "dtype": forms.text(),
    **dict.fromkeys(INPUTS, forms.optional(forms.plain())),
}


def load(path: FilePath) -> Any:
    """Read a fit written by `Fit.save`, or a saved result of lodim.conformal, without running code.

    Parameters
    ----------
    path : path

    Returns
    -------
    Fit or Conformal
        Object of the class that was saved.

    Raises
    ------
    StoreError
        If the file is missing, corrupt, not a fit, or from a newer lodim.

    See Also
    --------
    GbmapFit.save

    Examples
    --------
    >>> import lodim as ld
    >>> fit = ld.glm("mpg ~ weight + model_year", ld.data("autompg"))
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     fit.save(f"{folder}/cars.lodim")
    ...     back = ld.load(f"{folder}/cars.lodim")
    >>> back.name
    'glm'
    """
    kind, state = storage.read(path)
    if kind not in STORED:
        raise StoreError(f"{path} contains a {kind!r}, which this version of lodim does not know")
    try:
        return read_state(kind, state, "", {})
    except Exception as error:
        # A forged state can cause almost any exception in the records' checks.
        raise StoreError(f"{path} does not contain a valid {kind} fit: {error}") from error


def read_state(kind: str, state: dict[str, Any], where: str, sizes: dict[str, int]) -> Any:
    """Rebuild a saved object, such as a fit, from the contents `state` of its file.

    kind : type of the object, such as "gbmap"; where : its name in errors
    sizes : known lengths of arrays, such as {"p": 3}"""
    module, name = STORED[kind]
    return forms.part(getattr(import_module(module), name)).read(state, where, sizes)


def _read_design(value, where, sizes):
    """Read a fit's Design (formula and coding of the data) from a file; add lengths to `sizes`.

    value : dict with the saved fields
    where : name of this part of the file, for errors
    sizes : dict symbol -> array length"""
    design = forms.part(Design).read(value, where, sizes)
    family = families.family_of(design)
    # K: linear predictors; S: those with coefficients; C: classes, 0 for numbers
    sizes |= {"K": family.n_scores, "S": family.n_linear, "C": len(design.levels or ())}
    sizes["functions"] = family.n_functions
    sizes["boundaries"] = family.n_scores if family.shared_slopes else 0
    return design


def _read_frame(value, where, sizes):
    forms.entries(forms.several(None, forms.modest())).read(value, where, sizes)
    return pd.DataFrame(value)


def as_tuples(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in arguments.items()}


ARGUMENTS: Any = forms.Form(lambda *read: as_tuples(forms.modest().read(*read)), dict)
ANY_NUMBER = forms.unlimited(nan=True)
DESIGN: Any = forms.Form(_read_design, forms.write)
FRAME: Any = forms.Form(_read_frame, lambda frame: frame.to_dict("list"))


def _read_any_fit(value, where, sizes):
    kind = forms.choice(*MODELS).read(value.get("model"), f"{where}.model", sizes)
    return read_state(kind, {k: v for k, v in value.items() if k != "model"}, where, {})


ANY_FIT: Any = forms.Form(_read_any_fit, lambda fit: {"model": fit.name} | forms.write(fit))


def settings(kind: type, **others: forms.Form) -> Any:
    """Return a Form to read, check and write settings of class `kind`; others : Forms by field."""
    of_fields = {field.name: forms.modest() for field in fields(kind)} | others

    def read(value, where, sizes):
        made = kind(**forms.read_all(of_fields, value, where, sizes))
        # The machine that loads the fit may have no GPU.
        return replace(made, engine="cpu") if "engine" in of_fields else made

    return forms.Form(read, lambda value: forms.write_all(of_fields, vars(value)))


def check_call(fit: Any) -> None:
    """Raise ValueError unless a loaded fit's arguments and table of tried settings are valid."""
    parameters = signature(model_function(fit.name)).parameters.values()
    named = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} - {"progress", "client"}
    if set(fit.arguments) != named:
        raise ValueError(f"its arguments are not those of {fit.name}()")
    for name in named & set(SHARED):
        SHARED[name].read(fit.arguments[name], f"arguments.{name}", {})
    if fit.selection is None and fit.chosen:
        raise ValueError(f"{', '.join(fit.chosen)} chosen, without what was tried")
    if len({len(values) for values in fit.chosen.values()}) > 1:
        raise ValueError(f"chosen is {fit.chosen!r:.80}, not as many numbers of each setting")
    if fit.selection is None:
        return
    missing, settings = {"mean", "se", *fit.chosen} - {*fit.selection}, vars(fit.settings)
    if missing or not len(fit.selection):
        raise ValueError(f"selection has {len(fit.selection)} rows, and lacks {missing}")
    numbers = forms.several(None, forms.optional(ANY_NUMBER))
    for name, column in fit.selection.to_dict("list").items():
        if name == MEASURE:
            forms.several(None).read(column, f"selection.{name}", {})
        elif name not in settings or {int, float} & set(map(type, (settings[name], *column))):
            numbers.read(column, f"selection.{name}", {})


def nearest_loss(selection: pd.DataFrame, settings: Any) -> float | None:
    """Return the held-out deviance of the tried settings nearest to `settings`, or None."""
    if MEASURE in selection:
        return None
    distance = np.zeros(len(selection))
    for name in selection.columns.intersection(list(vars(settings))):
        tried, own = selection[name], getattr(settings, name)
        numbers = pd.to_numeric(tried, errors="coerce").to_numpy(float)
        if own is None or isinstance(own, str) or np.isnan(numbers).all():
            same = tried.isna() if own is None else tried == own
            distance += np.where(same, 0.0, np.inf)
            continue
        numbers = np.where(np.isnan(numbers), np.inf, numbers)
        logs = own > 0.0 and numbers.min() > 0.0
        distance += np.abs(np.log(numbers / own) if logs else numbers - own)
    at = int(distance.argmin())
    return float(selection["mean"].iloc[at]) if np.isfinite(distance[at]) else None
