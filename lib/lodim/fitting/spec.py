"""What a model brings, and the one way from a formula and a frame to a fit."""

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lodim import family as families
from lodim.design.batch import Batch
from lodim.design.design import REAL, Design
from lodim.errors import ArgumentError
from lodim.fitting.fit import ARRAY

SHARED = ("family", "weights", "offset", "order", "standardize", "dtype")  # known to a design
PLAIN = str | int | float | bool | dict | tuple | None  # arguments that a fit keeps
LONG = 60  # characters of a dict that a printed call shows


@dataclass(frozen=True)
class Problem:
    """The data as numbers, and what was asked of the model.

    `chosen` has, of each setting that cross-validation has chosen, what each of several draws of
    the folds alone would have chosen; nothing of one draw.
    """

    model: Callable
    recipe: "Recipe"
    design: Design
    batch: Batch
    family: Any
    settings: Any
    standardize: bool
    arguments: dict
    chosen: dict[str, tuple] = dataclasses.field(default_factory=dict)

    @property
    def call(self):
        """The call as a user would write it, defaults left out."""
        return _call(self.model, self.design.formula, self.arguments)

    def settle(self, settings, *, given=(), chosen=None):
        """The problem with settings fixed: those of `given` become arguments of the call.

        So the call of a path's or cv()'s fit makes that fit again.
        """
        values = {name: getattr(settings, name) for name in given}
        own = inspect.signature(self.model).parameters
        arguments = self.arguments | {k: v for k, v in values.items() if k in own}
        rest = {k: v for k, v in values.items() if k not in own}
        if rest:
            arguments["control"] = (arguments["control"] or {}) | rest
        return replace(self, settings=settings, arguments=arguments, chosen=chosen or {})


@dataclass(frozen=True)
class Penalty:
    """A setting that shrinks a model.

    largest : callable(batch, family, settings) -> float, where the model is (nearly) the null one
    ratio : the smallest worth trying, as a share of it
    needed : whether a fit needs a value; else None is one too, as of a model that fits a whole path
    """

    largest: Callable
    ratio: float = 1e-6
    needed: bool = True


@dataclass(frozen=True)
class Recipe:
    """One model's part of the house.

    Parameters
    ----------
    name : str
    settings : type
        Frozen record of the model's own arguments; it checks them.
    grow : callable(batch, family, settings, watch=None) -> iterator
        Yields after each stage (part, log, scores of the rows of the batch `watch`).
    collect : callable(list of (part, log)) -> (estimates, log)
    finish : callable(problem, estimates, log, selection, light) -> Fit
    penalties : dict of str to Penalty
        Settings that shrink the model; path() and cv() walk along the first unless told otherwise.
    stages : str or None
        Name of the setting that counts stages: one run gives every smaller value as well. The
        settings then have `max_stages` and `path_stages`.
    warm : bool
        Whether `grow` starts from the estimates of a neighbouring setting, given as `warm`.
    ready : callable(problem) -> problem, or None
        Raises where the data do not suit the model; fills in settings that need the design.
    patience : int
        Stages without a lower held-out loss before a run that chooses their number ends.
    defaults : callable(family, n) or None
        Values of the settings that are "auto".
    budget : str or None
        Name of the setting that limits what a model may cost: one run serves several values, which
        `grow` is given as an increasing tuple; it then yields a stage for each.
    unsupervised : bool
        Whether a formula may have no response; the family is then `NoResponse`.
    partial : bool
        Whether rows with missing features or response are of use: they are NaN in the batch.
    grid : callable(problem) -> dict, or None
        What cv() tries where nothing is said; by default values of the first penalty.
    deviance : callable(family, y, weight, score) or None
        What choose() and cv() take for the deviance of each held-out row, where that of the family
        says little.
    """

    name: str
    settings: type
    grow: Callable
    collect: Callable
    finish: Callable
    penalties: dict[str, Penalty]
    stages: str | None
    warm: bool = True
    ready: Callable | None = None
    patience: int = 15
    defaults: Callable | None = None
    budget: str | None = None
    unsupervised: bool = False
    partial: bool = False
    grid: Callable | None = None
    deviance: Callable | None = None

    def run(self, problem, selection=None, warm=None, light=False):
        """The fit of a problem whose settings are all chosen."""
        n_stages = getattr(problem.settings, self.stages) if self.stages else 1
        near = {"warm": warm} if self.warm else {}
        grower = self.grow(problem.batch, problem.family, problem.settings, **near)
        parts = [next(grower)[:2] for _ in range(n_stages)]
        estimates, log = self.collect(parts)
        return self.finish(problem, estimates, log, selection, light)


_RECIPES: dict[Callable, Recipe] = {}


def register(model, recipe):
    """Let path() and cv() know a model function by its recipe."""
    _RECIPES[model] = recipe


def of(model):
    """The recipe of a model function; an ArgumentError for anything else."""
    recipe = _RECIPES.get(model) if callable(model) else None
    if recipe is None:
        raise ArgumentError(
            f"the first argument must be a model function such as lodim.gbmap, not {model!r}"
        )
    return recipe


def prepare(model, formula, data, arguments, which=None):
    """Learn the design and check the settings: a Problem; `which` as `Design.learn` takes it."""
    recipe = of(model)
    arguments = {
        k: v.item() if isinstance(v, np.generic) else v
        for k, v in _complete(model, arguments).items()
    }
    shared = {name: arguments.pop(name) for name in SHARED if name in arguments}
    if isinstance(shared.get("dtype"), type) and shared["dtype"] in REAL:
        shared["dtype"] = np.dtype(shared["dtype"]).name
    control = arguments.pop("control", None)
    if control is not None and not isinstance(control, dict):
        raise ArgumentError(f"control must be a dict, not {control!r}")
    control = control or {}
    names = {f.name for f in dataclasses.fields(recipe.settings)}
    unknown = sorted(set(control) - (names - set(arguments)))
    if unknown:
        allowed = ", ".join(sorted(names - set(arguments)))
        raise ArgumentError(f"control has no entry {unknown[0]!r}; it may have: {allowed}")
    if recipe.budget and isinstance(arguments[recipe.budget], tuple):  # several are for searches
        given = arguments[recipe.budget]
        raise ArgumentError(f"{recipe.budget} must be a number, not {given!r:.80}")
    settings = recipe.settings(**arguments, **control)
    design, batch = Design.learn(formula, data, **shared, partial=recipe.partial, which=which)
    if design.response is None and not recipe.unsupervised:
        raise ArgumentError(
            f"{recipe.name} needs a response on the left of '~'; the formula is {formula!r}"
        )
    family = families.of(design)
    automatic = recipe.defaults(family, max(1, len(batch.counted))) if recipe.defaults else {}
    settings = dataclasses.replace(
        settings, **{k: v for k, v in automatic.items() if getattr(settings, k) == "auto"}
    )
    given = arguments | shared | {"control": control or None}
    problem = Problem(
        model, recipe, design, batch, family, settings, shared["standardize"], _kept(given)
    )
    return recipe.ready(problem) if recipe.ready else problem


def _complete(model, arguments):
    """All keyword arguments of a model function, defaults filled in."""
    parameters = inspect.signature(model).parameters
    known = {k: p.default for k, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    for name in arguments:
        if name not in known:
            raise ArgumentError(
                f"{model.__name__} has no argument {name!r}; it has: {', '.join(known)}"
            )
    return known | arguments


def _kept(arguments):
    """The arguments that a fit can repeat: not arrays, for which a mark stands."""
    return {k: v if isinstance(v, PLAIN) else ARRAY for k, v in arguments.items()}


def _call(model, formula, arguments):
    """The call as a user would write it, defaults left out."""
    parameters = inspect.signature(model).parameters
    parts = [
        f"{name}={_text(value)}"
        for name, value in arguments.items()
        if name in parameters and not _same(value, parameters[name].default)
    ]
    return f"{model.__name__}({_quoted(formula)}, data=df{''.join(', ' + part for part in parts)})"


def _quoted(formula):
    """The formula as a literal, in double quotes where it has none itself."""
    return f'"{formula}"' if '"' not in formula and "\\" not in formula else repr(formula)


def _text(value):
    """An argument as it would be typed; three dots for an array, or within a long dict."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = repr(value) if isinstance(value, PLAIN) and value != ARRAY else "..."
    return "{...}" if isinstance(value, dict) and len(text) > LONG else text


def _same(value, default):
    return isinstance(value, PLAIN) and value == default
