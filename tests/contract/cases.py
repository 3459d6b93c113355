"""Cases of the contract: a frame of each kind, and what a model's part of the contract says."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.fitting.registry import MODELS as REGISTRY

MODELS = [getattr(ld, name) for name in REGISTRY]
SLOW = (ld.costnet, ld.melm, ld.proset)  # models whose fits take longest


def some_long(values, long):
    """Values of a parameter; those in `long` are left to the long tests."""
    return [pytest.param(v, marks=[pytest.mark.long] if v in long else []) for v in values]


KINDS = {
    "gaussian": lambda f: 10 * f,
    "text": lambda f: np.where(f > 0, "sick", "healthy"),
    "bool": lambda f: f > 0,
    "0/1": lambda f: (f > 0).astype(int),
    "-1/1": lambda f: np.where(f > 0, 1.0, -1.0),
    "multinomial": lambda f: np.array(["low", "mid", "high"])[(f > -0.5).astype(int) + (f > 0.7)],
}
LEVELS = {
    "gaussian": None, "text": ("healthy", "sick"), "bool": (False, True), "0/1": (0, 1),
    "-1/1": (-1.0, 1.0), "multinomial": ("high", "low", "mid"),
}  # fmt: skip
N = 80


def frame(kind):
    rng = np.random.default_rng(0)
    df = pd.DataFrame(
        {
            "age": rng.normal(50, 9, N),
            "dose mg": rng.gamma(2, 3, N),
            "arm": rng.choice(list("AB"), N),
        },
        index=pd.Index(range(1000, 1000 + N), name="patient"),
    )
    f = (df["age"] - 50) / 9 + (df["arm"] == "B") + 0.5 * rng.normal(size=N)
    df["answer"] = KINDS[kind](f.to_numpy())
    df["w"], df["o"] = rng.random(N) + 0.5, 0.1 * rng.normal(size=N)
    df.loc[1003, "age"] = np.nan
    df.loc[1009, "arm"] = None
    return df


FORMULA = "answer ~ . - w - o"
MISSING = [1003, 1009]


def missing_of(model):
    """What a model does by default where a feature is missing."""
    return inspect.signature(model).parameters["missing"].default


@dataclass(frozen=True)
class Contract:
    """What the tests of all models must know of one; `models/<name>/contract.py` has it.

    cheap : arguments of a fast fit
    penalty : name of the first penalty, and values of it from none to much
    few_stages, control, open : arguments of fits to any frame, the last with settings left open
    long : formula and arguments of a fit whose summary has a long table
    answers_all : whether a fit answers rows that miss all features, as the null model does
    offset : whether the scores take one
    lacks : arguments that others have
    drawn, plots : arguments of a fit that is drawn, and the kinds of plots of any names
    refused : case -> (call, error, words) of what this model alone refuses
    other_words : case -> words, where it refuses in words of its own
    """

    cheap: dict
    long: tuple
    penalty: str | None = None
    penalties: tuple = (0.0, 1e-3, 1.0)
    few_stages: dict = field(default_factory=dict)
    control: dict = field(default_factory=lambda: {"max_iter": 60})
    open: dict = field(default_factory=dict)
    classes_only: bool = False
    response_optional: bool = False
    keeps_missing: bool = False
    answers_all: Callable = lambda fit: False
    offset: bool = True
    lacks: tuple = ()
    drawn: dict = field(default_factory=dict)
    plots: tuple = ()
    refused: dict = field(default_factory=dict)
    other_words: dict = field(default_factory=dict)

    @property
    def kinds(self):
        """Kinds of responses that the model takes."""
        return [kind for kind in KINDS if kind != "gaussian" or not self.classes_only]


@cache
def contract_of(model: Callable) -> Contract:
    """The contract of a model function."""
    return import_module(f"models.{model.__name__}.contract").CONTRACT


def quick(model):
    """Cheap arguments of a model, with which nothing is chosen by cross-validation."""
    more = {
        "proset": {"lambda_v": 0.03},
        "costnet": {"relax": 1.0, "control": {"criterion": "hq"}},
        "melm": {"control": {"calibrate": False}},
    }
    return contract_of(model).cheap | more.get(model.__name__, {})


def frame_of(model, kind):
    """The frame; for a model that uses what is there, rows that miss a feature miss them all."""
    df = frame(kind)
    if contract_of(model).keeps_missing:
        df.loc[MISSING, ["age", "dose mg", "arm"]] = None
    return df


def bad(change=None, formula=FORMULA, kind=None, **arguments):
    def call(model):
        df = frame(kind or contract_of(model).kinds[0])
        return model(formula, change(df) if change else df, **contract_of(model).cheap | arguments)

    return call
