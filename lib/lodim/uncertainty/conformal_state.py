"""A Conformal as plain values and arrays, and back."""

from dataclasses import asdict

import pandas as pd

from lodim import forms
from lodim.fitting.registry import MODELS, model_module
from lodim.uncertainty.conformity import OF_CLASSES, OF_NUMBERS, HeldOut, Sayings
from lodim.uncertainty.guarantee import METHODS, Guarantee


def to_state(conformal):
    """Everything `from_state` needs."""
    same = conformal.fit is conformal.fits[0]  # of a split
    return {
        "model": conformal.fit.name,
        "fit": None if same else conformal.fit._to_state(),
        "fits": [fit._to_state() for fit in conformal.fits],
        "held_out": vars(conformal.held_out),
        "says": asdict(conformal.says),
        "guarantee": asdict(conformal.guarantee),
        "table": conformal.table.to_dict("list"),
    }


def from_state(state):
    """The Conformal that `to_state` has written."""
    from lodim.uncertainty.prediction_sets import Conformal

    if state["model"] not in MODELS:
        raise ValueError(f"{state['model']!r:.80} is not a model of this lodim")
    read = model_module(state["model"]).from_state
    fits = tuple(read(one) for one in state["fits"])
    fit = fits[0] if state["fit"] is None else read(state["fit"])
    _check(state, fit, fits)
    return Conformal(
        fit,
        fits,
        HeldOut(**state["held_out"]),
        Sayings(**state["says"]),
        Guarantee(**state["guarantee"] | {"chosen": tuple(state["guarantee"]["chosen"])}),
        pd.DataFrame(state["table"]),
    )


def _check(state, fit, fits):
    """Raise ValueError unless what a file says beside the fits fits these."""
    number = forms.real(least=-float("inf"), most=float("inf"))
    held = {"fold": forms.whole("n", most=len(fits) - 1)}
    held["weight"] = forms.real("n", least=forms.TINY)
    held["score"] = forms.real("n", least=-float("inf"), most=float("inf"))
    by = state["guarantee"].get("by")
    held["of_class"] = forms.whole("n", most=len(fit.levels) - 1) if by else forms.choice(None)
    scores = OF_NUMBERS if fit.levels is None else OF_CLASSES
    between = forms.real(least=forms.TINY, most=1.0 - 2.0**-53)
    says = {"score": forms.choice(*scores), "level": between, "seed": forms.whole()}
    told = {"method": forms.choice(*METHODS), "n_fits": forms.choice(len(fits))}
    told |= {"n_units": forms.whole(least=1), "unit": forms.choice("row", "group")}
    told |= dict.fromkeys(("within", "weighted"), forms.flags())
    told["chosen"] = forms.several(None)
    told["by"] = forms.choice(*([None] if fit.levels is None else [None, "class"]))
    columns = ("width",) if fit.levels is None else ("size", "empty")
    table = {name: forms.several("levels", number) for name in ("level", "score", *columns)}
    if by:
        table["class"] = forms.several("levels")
    known = {"held_out": held, "says": says, "guarantee": told, "table": table}
    sizes = forms.check(state, {name: forms.part(each) for name, each in known.items()})
    if not sizes["n"]:
        raise ValueError("no row was held out")
    if {type(one) for one in fits} != {type(fit)} or {one.levels for one in fits} != {fit.levels}:
        raise ValueError("the fits are not of one model and response")
