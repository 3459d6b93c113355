"""Model: declarations and steps of one model; Problem: data and settings of one call."""

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from lodim import family as families
from lodim import progress
from lodim.design.batch import Batch
from lodim.design.design import Design
from lodim.errors import ArgumentError, DataError
from lodim.fitting.fit import ARRAY
from lodim.fitting.registry import model_function
from lodim.formula.formula import parse
from lodim.text import as_literal

SPREAD = "spread"  # value of the argument `for_path` of `Model.assemble`
PLAIN = str | int | float | bool | dict | tuple | None  # arguments that a fit keeps
LONG = 60  # largest number of characters of a dict in a printed call


@dataclass(frozen=True)
class Penalty:
    """Declaration of a penalty: a setting that shrinks a model; if `needed`, it cannot be None."""

    # callable(batch, family, settings) -> value that shrinks the model to the intercept
    largest: Callable
    ratio: float = 1e-6  # smallest value to try, divided by the largest
    needed: bool = True


@dataclass(frozen=True)
class Option:
    """Command-line option for the argument `name`; if `file`, it is read from a CSV file."""

    flag: str
    name: str
    kind: type
    text: str
    metavar: str | None = None
    file: bool = False


@dataclass(frozen=True)
class Needs:
    """Memory of a fit besides X (bytes per row, fixed bytes), and least and most passes over X."""

    row: int
    fixed: int
    passes: tuple[int, int] | None


@dataclass(frozen=True)
class Problem:
    """Data and settings of one call of a model function, in the form that is fitted.

    arguments : dict of the call's arguments, stored in the fit
    chosen : dict setting -> values chosen by cross-validation, one per division into folds"""

    model: "Model"
    design: Design
    batch: Batch
    family: Any
    settings: Any
    standardize: bool
    arguments: dict
    chosen: dict[str, tuple] = dataclasses.field(default_factory=dict)

    @property
    def call(self):
        """Text of the call without defaults, with data called df, as glm("y ~ x", data=df)."""
        return call_text(self.model.function, self.design.formula, self.arguments)

    def with_rows(self, batch):
        """Return the problem for other rows or weights; the family's parameter is learned again."""
        family, design = self.model.learn_family(batch, self.family, self.settings), self.design
        if family.learn is not None:
            design = replace(design, parameter=family.parameter)
        return replace(self, batch=batch, family=family, design=design)

    def null_deviance(self):
        batch, family = self.batch, self.family
        return family.null_deviance(batch.y, batch.weight, batch.offsets(family.n_scores))

    def common(self, selection):
        """Return a dict of the fields that all Fits have; selection : table of tried settings."""
        names = ("design", "settings", "call", "arguments", "chosen")
        return {name: getattr(self, name) for name in names} | {"selection": selection}

    def settle(self, settings, *, given=(), chosen=None):
        """Return a copy of the problem with other settings.

        given : names of settings to show as arguments of the fit's call
        chosen : dict setting -> values chosen by cross-validation, one per division into folds"""
        # A penalty that was "auto" becomes a number, since another call may choose another one.
        auto = [name for name in self.model.penalties if self.arguments[name] == "auto"]
        names = [*given, *(auto if given else ())]
        values = {name: getattr(settings, name) for name in names}
        own = inspect.signature(self.model.function).parameters
        arguments = self.arguments | {k: v for k, v in values.items() if k in own}
        rest = {k: v for k, v in values.items() if k not in own}
        if rest:
            arguments["control"] = (arguments["control"] or {}) | rest
        return replace(self, settings=settings, arguments=arguments, chosen=chosen or {})


def call_text(function, formula, arguments):
    """Return the text of a call of `function`, without arguments that equal their defaults."""
    parameters = inspect.signature(function).parameters
    own = [pair for pair in arguments.items() if pair[0] in parameters]
    defaults = {k for k, v in own if isinstance(v, PLAIN) and v == parameters[k].default}
    parts = [f"{k}={_text(v)}" for k, v in own if k not in defaults]
    return f"{function.__name__}({', '.join([as_literal(formula), 'data=df', *parts])})"


def _text(value):
    """Return an argument as a user would type it, with "..." for arrays and long dicts."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = repr(value) if isinstance(value, PLAIN) and value != ARRAY else "..."
    return "{...}" if isinstance(value, dict) and len(text) > LONG else text


def lambda_grid(problem, penalty, n, ratio=None):
    """Return n log-spaced values of a penalty, of which the first leaves only an intercept.

    penalty : name of the setting; problem : Problem (data, model and settings)
    ratio : last value divided by the first, None for the model's default"""
    kind = problem.model.penalties[penalty]
    largest = kind.largest(problem.batch, problem.family, problem.settings)
    return largest * np.geomspace(1.0, kind.ratio if ratio is None else ratio, n)


class Model:
    """Base class of the kinds of models: what a model can do, and how it is fitted.

    A subclass sets the attributes that have no value here, and replaces methods that only raise."""

    name: ClassVar[str]
    reference: ClassVar[str]  # BibTeX entry of the model's source
    settings: ClassVar[type]  # dataclass of the model's arguments, which it checks
    # names of families; "none" if a formula may have no response
    families: ClassVar[tuple[str, ...]] = ("gaussian", "binomial", "multinomial")
    # allowed values of the argument `missing`; with "keep", X and y contain NaN
    missing: ClassVar[tuple[str, ...]] = ("drop", "indicator")
    learning: ClassVar[dict[str, bool]] = {}  # arguments of `Design.learn` that the model needs
    # settings that shrink the model, by name; path() and cv() vary the first by default
    penalties: ClassVar[dict[str, Penalty]] = {}
    # setting for the number of stages, such as learners added one by one; after each stage of a
    # run, the model is the fit with this number
    stage_setting: ClassVar[str | None] = None
    # name of a setting that may have several values in one run of `fit_stages`
    shared_setting: ClassVar[str | None] = None
    # number of stages without a lower held-out loss after which a run stops
    patience: ClassVar[int] = 15
    # whether `fit_stages` can start from the estimates of a neighbouring setting
    warm_start: ClassVar[bool] = False
    # whether several fits to few rows run faster in parallel threads
    compiled_stages: ClassVar[bool] = False
    # streams, on_workers: whether X may be larger than memory; may be on Dask workers
    streams: ClassVar[bool] = False
    on_workers: ClassVar[bool] = False
    # (name, words, callable(problem) -> bool) of settings without effect unless a condition is met
    requirements: ClassVar[tuple[tuple[str, str, Callable], ...]] = ()
    several_responses: ClassVar[bool] = False  # whether `fit_together` fits several responses
    # number of rows above which a default call takes minutes
    many_rows: ClassVar[int | None] = None
    # options, plots: options, and kinds of plots, of the command line
    options: ClassVar[tuple[Option, ...]] = ()
    plots: ClassVar[tuple[str, ...]] = ()

    @property
    def function(self) -> Callable:
        """Public function that fits this model, such as `lodim.gbmap`."""
        return model_function(self.name)

    def validate(self, problem: Problem) -> Problem:
        """Return the problem with data-dependent settings filled in; raise if it cannot be fit."""
        response: Any = problem.design.response
        if not (self.several_responses and len(parse(problem.design.formula).responses) > 1):
            self.refuse_unused([problem])
        if isinstance(problem.family, families.Proportion):
            what = f"the response {response.name!r} holds proportions"
            cure = "use glm with weights= for the numbers of trials, or one row per trial with "
            cure += "a response of two classes"
            raise DataError(f"{what}, which {self.name} does not fit: {cure}")
        return problem

    def refuse_unused(self, problems: list[Problem]) -> None:
        """Raise ArgumentError for a setting without effect in every problem (one per response)."""
        known = {field.name for field in dataclasses.fields(self.settings)}
        own = inspect.signature(self.function).parameters.items()
        usual = self.settings(**{name: p.default for name, p in own if name in known})
        for name, words, is_met in self.requirements:
            value = getattr(problems[0].settings, name)
            if value != getattr(usual, name) and not any(map(is_met, problems)):
                raise ArgumentError(f"{name} needs {words}: leave out {name}={value!r:.80}")

    def fit(self, problem: Problem) -> Any:
        """Return the fit of a problem, after choosing settings that are not given."""
        return self.run(problem)

    def run(self, problem, selection=None, *, warm_start=None, for_path=False, found=None):
        """Fit the model with fixed settings; return the fit.

        selection : table of tried settings, or None
        warm_start : estimates to start from, or None
        for_path : whether to leave out slow results
        found : finished (estimates, log), or None"""
        if found is None:
            counted = self.counts_stages(problem.settings)
            n_stages = getattr(problem.settings, self.stage_setting) if counted else 1
            start = {"warm_start": warm_start} if self.warm_start else {}
            stages = self.fit_stages(problem.batch, problem.family, problem.settings, **start)
            label = self.stage_setting if counted else "fit"
            rounds = progress.steps(range(n_stages), n_stages, label)
            found = self.combine([next(stages)[:2] for _ in rounds])
        return self.assemble(problem, *found, selection, for_path)

    def learn_family(self, batch, family, settings) -> Any:
        """Return the family with its parameter, such as Huber's limit, learned from a Batch."""
        return family.learned(batch.y, batch.weight)

    def counts_stages(self, settings: Any) -> bool:
        """Return whether fits with these settings run in stages that `stage_setting` counts.

        If so, the estimates after k stages, such as k learners, are those of the fit with k."""
        return self.stage_setting is not None

    def fit_stages(self, batch, family, settings, eval_batch=None) -> Iterator[tuple]:
        """Estimate in stages; yield (estimates, log, linear predictors) after each.

        A stage is, for example, the next penalty, or one more learner (only its estimates).
        The log is a dict of further results. Linear predictors are for `eval_batch`, or None."""
        raise NotImplementedError

    def combine(self, parts: list[tuple]) -> tuple:
        """Join (estimates, optimizer's log) of each stage of a fit; by default return the last."""
        return parts[-1]

    def assemble(self, problem, estimates, log, selection, for_path, /) -> Any:
        """Make a Fit of a Problem (data and settings) from estimates and the optimizer's log.

        selection : frame of tried settings, or None
        for_path : whether to omit slow results, as for the many fits of a path or bootstrap"""
        # With for_path, SPREAD still computes the SDs of responses.
        raise NotImplementedError

    def reweigh(self, problem: Problem, fit: Any) -> tuple | None:
        """Refit `fit` with a Problem's weights; return (estimates, log); None if not supported."""
        return None

    def cv_grid(self, problem: Problem, n: int) -> tuple[dict, tuple | None]:
        """Return the values for cv() to compare, {setting: values}, and a fit to all rows or None.

        The setting is the model's first penalty, of which n values are tried; {} if it has none.
        A fit is a pair (estimates, log)."""
        for penalty in self.penalties:
            value = problem.arguments[penalty]
            fixed = isinstance(value, int | float)
            return {penalty: [value] if fixed else lambda_grid(problem, penalty, n)}, None
        return {}, None

    def held_out_deviance(self, family, y, weight, score):
        """Return losses (n,) of held-out rows, to compare settings; score : linear predictors."""
        return family.deviance(y, score)

    def needs(self, problem: Problem, n: int) -> Needs | None:
        """Return the memory and passes (Needs) of a fit to n rows, or None if unknown."""
        return None

    def selects(self, settings: Any) -> bool:
        """Return whether a fit with these settings uses only some of the features."""
        return False
