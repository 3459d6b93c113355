"""What a model brings, and the one way from a formula and a frame to a fit."""

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lodim import family as families
from lodim import progress
from lodim.checks import one_of
from lodim.design import wild
from lodim.design.batch import Batch
from lodim.design.design import REAL, Design
from lodim.design.scratch import fits_memory, free_memory
from lodim.engine.blocks import on_host
from lodim.errors import ArgumentError, DataError, DataWarning, warn
from lodim.fitting.argument_names import unknown_argument
from lodim.fitting.fit import ARRAY
from lodim.fitting.registry import MODELS, model_module
from lodim.formula.formula import leave_out
from lodim.report import phrases
from lodim.text import as_literal, counted, size_in_bytes

SHARED = (  # of a design
    "family", "weights", "offset", "order", "clusters", "groups", "standardize", "dtype", "missing",
    "sample",
)  # fmt: skip
PLAIN = str | int | float | bool | dict | tuple | None  # arguments that a fit keeps
SPREAD = "spread"  # what a fit of a path has beside its means
SCRATCH = "scratch"  # the entry of `control` that names a folder
LONG = 60  # characters of a dict that a printed call shows


@dataclass(frozen=True)
class Problem:
    """The data as numbers, and what was asked of the model.

    `chosen` has, of each setting that cross-validation has chosen, what each of several draws of
    the folds alone would have chosen; nothing of one draw.
    """

    model: Callable
    spec: "ModelSpec"
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

    def null_deviance(self):
        """Mean deviance of the model with an intercept alone."""
        batch, family = self.batch, self.family
        return family.null_deviance(batch.y, batch.weight, batch.offsets(family.n_scores))

    def common(self, selection):
        """Keywords of every model's Fit."""
        names = ("design", "settings", "call", "arguments", "chosen")
        return {name: getattr(self, name) for name in names} | {"selection": selection}

    def settle(self, settings, *, given=(), chosen=None):
        """The problem with settings fixed: those of `given` become arguments of the call.

        So the call of a path's or cv()'s fit makes that fit again.
        """
        # A penalty that was "auto" is as it stands: by itself a call may choose another one.
        auto = [name for name in self.spec.penalties if self.arguments[name] == "auto"]
        names = [*given, *(auto if given else ())]
        values = {name: getattr(settings, name) for name in names}
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
class Option:
    """An option of the command line, which becomes the keyword argument `name` of the function.

    file : whether its value is the name of a CSV file, and the argument what it holds
    """

    flag: str
    name: str
    kind: type
    text: str
    metavar: str | None = None
    file: bool = False


@dataclass(frozen=True)
class Needs:
    """What a fit takes beside the tiles of its rows, in bytes, and how often it reads these.

    row : for each row, what the Batch itself holds left out
    fixed : however many rows there are
    passes : the least and the most that are usual, over all tiles; None where no rule is known
    """

    row: int
    fixed: int
    passes: tuple[int, int] | None


@dataclass(frozen=True)
class ModelSpec:
    """What a model declares to the machinery that all models share.

    Parameters
    ----------
    name : str
    reference : str
        Its source, an entry of BibTeX.
    settings : type
        Frozen record of the model's own arguments; it checks them.
    fit_stages : callable(batch, family, settings, eval_batch=None) -> iterator
        Yields after each stage (part, log, scores of the rows of `eval_batch`).
    combine : callable(list of (part, log)) -> (estimates, log)
    assemble : callable(problem, estimates, log, selection, for_path) -> Fit
        A fit of a path leaves out what takes time and a path does not show; where `for_path` is
        SPREAD, not how responses spread, up to a factor that all rows share.
    choose : callable(problem) -> Fit, or None
        The fit with the settings that are open chosen, where the model does so before it fits.
    penalties : dict of str to Penalty
        Settings that shrink the model; path() and cv() walk along the first unless told otherwise.
    stage_setting : str or None
        Name of the setting that counts stages: one run gives every smaller value as well. The
        settings then have `max_stages` and `path_stages`.
    shared_setting : str or None
        Name of a setting of which one run serves several values, which `fit_stages` is given as an
        increasing tuple; it then yields a stage for each.
    warm_start : bool
        Whether `fit_stages` starts from the estimates of a neighbouring setting, `warm_start`.
    reweigh : callable(problem, fit) -> (estimates, log), or None
        Of a fit's own rows under other weights, found the way that those of `fit` were; without it,
        or where it gives None, those of `fit_stages`.
    validate : callable(problem) -> problem, or None
        Raises where the data do not suit the model; fills in settings that need the design.
    auto_settings : callable(family, n) or None
        Values of the settings that are "auto".
    patience : int
        Stages without a lower held-out loss before a run that chooses their number ends.
    response_optional : bool
        Whether a formula may have no response; the family is then `NoResponse`.
    keeps_missing : bool
        Whether missing="keep" is allowed: the model has a use for rows with missing features or
        response, which are NaN in the batch.
    cv_grid : callable(problem, n) -> (dict, found), or None
        What cv() tries where nothing is said; by default n values of the first penalty. And what
        has been found on the way for the fit to all rows, as `run` takes it, or None.
    cv_deviance : callable(family, y, weight, score) or None
        What choose() and cv() take for the deviance of each held-out row, where that of the family
        says little.
    families : tuple of str
        That it fits.
    reference_levels : bool
        Whether factors have a reference level, as least squares needs; see `Design.learn`.
    proportions : bool
        Whether a binomial response may be shares of trials, the weights being their numbers.
    options, plots : tuples of Option and of kinds of plot, for the command line
    without : tuple of str
        Arguments that other models have, and this one lacks.
    compiled_stages : bool
        Whether a stage of few rows too is nearly all compiled, so that threads share fits of them.
    needs : callable(problem, n) -> Needs, or None
        Of a fit to n rows of which the problem's are some; None where no rule is known.
    selects : callable(settings) -> bool
        Whether a fit may leave features out, and says which: `Fit._selected_features`.
    streams : bool
        Whether a fit copies but some rows of X, so that X may be larger than memory; see
        `in_memory`.
    after_stages : tuple of str
        Settings of what follows the last stage: cv() scores stages, and cannot vary them.
    in_place : bool
        Whether its passes may read the columns of a frame where they lie.
    on_workers : bool
        Whether its passes run where the workers of a Dask cluster hold the rows.
    many_rows : int or None
        Rows beyond which a default call takes minutes; None where there is no such number.
    limits_wild : bool
        Whether the middle of the others stands for wild values of features; else a warning names
        them. See `design.wild`.
    """

    name: str
    reference: str
    settings: type
    fit_stages: Callable
    combine: Callable
    assemble: Callable
    penalties: dict[str, Penalty]
    stage_setting: str | None = None
    shared_setting: str | None = None
    warm_start: bool = False
    reweigh: Callable | None = None
    choose: Callable | None = None
    validate: Callable | None = None
    auto_settings: Callable | None = None
    patience: int = 15
    response_optional: bool = False
    keeps_missing: bool = False
    cv_grid: Callable | None = None
    cv_deviance: Callable | None = None
    families: tuple[str, ...] = ("gaussian", "binomial", "multinomial")
    reference_levels: bool = False
    proportions: bool = False
    options: tuple[Option, ...] = ()
    plots: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    compiled_stages: bool = False
    after_stages: tuple[str, ...] = ()
    needs: Callable | None = None
    in_place: bool = False
    on_workers: bool = False
    selects: Callable = lambda settings: False
    streams: bool = False
    many_rows: int | None = None
    limits_wild: bool = True

    def fit(self, problem):
        """The fit of a problem; settings that are open are chosen, as a call of the model does."""
        return self.choose(problem) if self.choose else self.run(problem)

    def run(self, problem, selection=None, *, warm_start=None, for_path=False, found=None):
        """The fit of a problem whose settings are all chosen.

        found : (estimates, log), where they are known already
        """
        if found is None:
            n_stages = getattr(problem.settings, self.stage_setting) if self.stage_setting else 1
            near = {"warm_start": warm_start} if self.warm_start else {}
            stages = self.fit_stages(problem.batch, problem.family, problem.settings, **near)
            rounds = progress.steps(range(n_stages), n_stages, self.stage_setting or "fit")
            found = self.combine([next(stages)[:2] for _ in rounds])
        return self.assemble(problem, *found, selection, for_path)


def spec_of(model):
    """The ModelSpec of a model function; an ArgumentError for anything else."""
    name = getattr(model, "__name__", None)
    module = model_module(name) if name in MODELS else None
    if getattr(module, str(name), None) is not model:
        raise ArgumentError(
            f"the first argument must be a model function such as lodim.gbmap, not {model!r}"
        )
    return module.SPEC


def with_own(model, arguments, **more):
    """Arguments of a model function with those of some more, such as the seed, that it has."""
    known = {field.name for field in dataclasses.fields(spec_of(model).settings)}
    return arguments | {name: value for name, value in more.items() if name in known}


def prepare(model, formula, data, arguments, which=None, groups=None, in_place=False):
    """Learn the design and check the settings: a Problem.

    which, in_place : as `Design.learn` takes them

    groups : of cv's folds, where the model itself draws none and has no such argument
    """
    if groups is not None and "groups" in inspect.signature(model).parameters:
        arguments, groups = arguments | {"groups": groups}, None
    else:
        formula = leave_out(formula, groups)  # a later call with this formula names no groups
    spec = spec_of(model)
    arguments = {
        k: v.item() if isinstance(v, np.generic) else v
        for k, v in _complete(model, arguments).items()
    }
    arguments.pop("progress")  # which `with_known_arguments` has seen
    client = _client(spec, arguments.pop("client", None))
    shared = {name: arguments.pop(name) for name in SHARED if name in arguments}
    if isinstance(shared.get("dtype"), type) and shared["dtype"] in REAL:
        shared["dtype"] = np.dtype(shared["dtype"]).name
    of_design = shared if groups is None else shared | {"groups": groups}
    control, scratch = _control(spec, arguments, arguments.pop("control", None))
    settings = spec.settings(**arguments, **control)
    _check_family(spec, shared.get("family"))
    ways = ("drop", "indicator", *(["keep"] if spec.keeps_missing else []))
    one_of("missing", shared["missing"], ways)
    with progress.bar(1, "reading the data"):
        design, batch = Design.learn(
            formula,
            data,
            **of_design,
            reference_levels=spec.reference_levels,
            which=which,
            scratch=scratch,
            seed=getattr(settings, "seed", 0),
            client=client,
            in_place=in_place,
            limited=spec.limits_wild,
        )
    if design.response is None and not spec.response_optional:
        raise ArgumentError(
            f"{spec.name} needs a response on the left of '~'; the formula is {formula!r}"
        )
    _warn_of_wild_values(spec.name, design, batch)
    if not spec.streams:
        batch = in_memory(spec.name, batch)
    family = families.family_of(design)
    if isinstance(family, families.Proportion) and not spec.proportions:
        raise DataError(
            f"the response {design.response.name!r} holds proportions, which {spec.name} does not "
            "fit: use glm, whose weights are then the numbers of trials, or give a row for each "
            "trial with a response of two classes"
        )
    settings = _automatic(spec, settings, family, batch)
    kept = _kept(arguments | shared | {"control": control or None})
    standardize = shared.get("standardize", True)
    parts = (spec, design, batch, family, settings, standardize, kept)
    if spec.many_rows is not None and batch.n > spec.many_rows:
        progress.remark(
            f"{batch.n:,} rows x {len(design.names):,} features take minutes; "
            "sample=100_000 would draw rows"
        )
    problem = Problem(model, *parts)
    return spec.validate(problem) if spec.validate else problem


def _warn_of_wild_values(name, design, batch):
    """Warn of values far outside of all others that are used as they are."""
    found = () if design.limited else design.wild
    told = [(one, "feature", f"{name} uses as they are") for one in found]
    if design.response is not None and design.levels is None:
        at = batch.positive_weight
        response = wild.of_numbers(batch.y[at][~np.isnan(batch.y[at])], design.response.name)
        told += [(response, "response", "every model uses as they are")] if response else []
    for one, what, done in told:
        warn(
            f"the {what} {one.feature!r} has {counted(one.n, 'value')} far outside all others "
            f"({phrases.others(one)}), which {done}: correct them or make them missing; "
            "fit.check(data) names the rows",
            DataWarning,
        )


def _client(spec, client):
    """What `Design.learn` takes: False where a model's kernels do not run on workers."""
    if spec.on_workers:
        return client
    if client is not None:
        able = ", ".join(name for name in MODELS if _runs_on_workers(name))
        raise ArgumentError(
            f"{spec.name} does not run on the workers of a Dask cluster, as {able} do: leave "
            "client= out, and draw rows with sample= where they do not fit into memory here"
        )
    return False


def _runs_on_workers(name):
    return model_module(name).SPEC.on_workers


def in_memory(what, batch):
    """A batch whose features may be copied, for what (a name) needs them all at once.

    Features that stay in place are taken as those of a frame, and from the workers of a cluster,
    where they fit into memory by the rule by which they are kept there; else an error is raised.
    """
    if not batch.out_of_core:
        return batch
    n, p = batch.n, batch.X.shape[1]
    if fits_memory(n, p, batch.X.dtype):
        X = batch.X if on_host(batch.X) else batch.X.gather()
        return replace(batch, X=X, streamed=False)
    size = size_in_bytes(n * p * batch.X.dtype.itemsize)
    raise ArgumentError(
        f"{what} needs all rows at once, and the features of {n:,} rows, {p:,} columns, take "
        f"{size}: too much for the {size_in_bytes(free_memory())} of memory that are free; draw "
        "some of the rows, as sample=100_000 of a model function does"
    )


def _automatic(spec, settings, family, batch):
    """The settings, values for those that are "auto"."""
    if not spec.auto_settings:
        return settings
    values = spec.auto_settings(family, max(1, batch.n_positive))
    return replace(settings, **{k: v for k, v in values.items() if getattr(settings, k) == "auto"})


def _control(spec, arguments, control):
    """The entries of `control`, checked beside the other arguments, a dict; and its "scratch".

    That folder is where numbers are kept, and no part of what the model is: a fit keeps it not.
    """
    if control is not None and not isinstance(control, dict):
        raise ArgumentError(f"control must be a dict, not {control!r}")
    names = {f.name for f in dataclasses.fields(spec.settings)} - set(arguments)
    control = dict(control or {})
    scratch = control.pop(SCRATCH, None)
    unknown = sorted(set(control) - names)
    if unknown:
        allowed = ", ".join(sorted(names | {SCRATCH}))
        raise ArgumentError(f"control has no entry {unknown[0]!r}; it may have: {allowed}")
    if spec.shared_setting and isinstance(arguments[spec.shared_setting], tuple):
        several = arguments[spec.shared_setting]  # of which cross-validation alone knows
        raise ArgumentError(f"{spec.shared_setting} must be a number, not {several!r:.80}")
    return control, scratch


def _check_family(spec, family):
    """Raise unless the model fits a family, or it is left open."""
    known = (*spec.families, *(["none"] if spec.response_optional else []))
    if family is not None and not (isinstance(family, str) and family in known):
        raise ArgumentError(f"family is one of {', '.join(known)}, not {family!r}")


def _complete(model, arguments):
    """All keyword arguments of a model function, defaults filled in."""
    parameters = inspect.signature(model).parameters
    known = {k: p.default for k, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    for name in arguments:
        if name not in known:
            raise unknown_argument(model.__name__, name, known)
    return known | arguments


def _kept(arguments):
    """The arguments that a fit can repeat: not arrays, for which a mark stands."""
    return {k: v if isinstance(v, PLAIN) else ARRAY for k, v in arguments.items()}


def _call(model, formula, arguments):
    """The call as a user would write it, defaults left out; df stands for the data.

    So a fit has the same bytes wherever its rows are from.
    """
    parameters = inspect.signature(model).parameters
    parts = [
        f"{name}={_text(value)}"
        for name, value in arguments.items()
        if name in parameters and not _same(value, parameters[name].default)
    ]
    return f"{model.__name__}({', '.join([as_literal(formula), 'data=df', *parts])})"


def _text(value):
    """An argument as it would be typed; three dots for an array, or within a long dict."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = repr(value) if isinstance(value, PLAIN) and value != ARRAY else "..."
    return "{...}" if isinstance(value, dict) and len(text) > LONG else text


def _same(value, default):
    return isinstance(value, PLAIN) and value == default
