"""What a case does: fit a model to a random frame, and ask the fit for all that it can do."""

import contextlib
import dataclasses
import inspect
import io
import pathlib
import tempfile
import traceback
import warnings

import elsewhere
import hostile
import numpy as np
import pandas as pd
from hostile import ODD, pick

import lodim as ld
from lodim import cli as command_line
from lodim.fitting.fit_model import model_of
from lodim.formula.formula import quote

BAD = ("foreign exception", "library warning", "silent difference", "crash", "hang", "memory")
MODELS = (ld.gbmap, ld.proset, ld.costnet, ld.melm, ld.ripr, ld.glm)
ONE = {"threads": 1}
CHEAP = {
    ld.gbmap: ONE | {"m": 2, "lambda_": 0.1, "n_starts": 1, "control": {"max_iter": 30}},
    ld.proset: ONE | {"n_candidates": 50, "control": {"max_iter": 30}},
    ld.costnet: ONE | {"budget": 3, "n_lambda": 10, "control": {"max_iter": 50}},
    ld.melm: ONE | {"gamma": 1.0, "n_starts": 2, "control": {"max_iter": 20}},
    ld.ripr: ONE | {"n_views": 2, "max_dim": 2},
    ld.glm: {},
}
OPEN = {  # chosen by cross-validation
    ld.gbmap: {"n_starts": 1, "control": {"max_iter": 15, "max_stages": 2}},
    ld.proset: {"n_batches": None, "lambda_v": 1e-2, "control": {"max_iter": 15, "max_stages": 2}},
    ld.costnet: {"n_lambda": 8, "control": {"max_iter": 30}},
    ld.melm: {"n_starts": 2, "control": {"max_iter": 10}},
    ld.ripr: {},
    ld.glm: {},
}
GRIDS = {
    ld.gbmap: ({"lambda_": [0.1, 1.0], "m": [1, 2]}, {"m": [1, 2]}, {"beta": [1, 10]}),
    ld.proset: ({"lambda_v": [1e-3, 1e-1]}, {"lambda_w": [1e-8, 1e-2]}, {"n_batches": [1, 2]}),
    ld.costnet: ({"budget": [1, 2]}, {"rules": ["lasso", "greedy"]}, {"relax": [0.5, 1.0]}),
    ld.melm: ({"gamma": [0.5, 1.0]}, {"k": [1, 2]}),
    ld.ripr: ({"lambda_": [0.1, 1.0]}, {"k": [3, 9]}, {"max_dim": [1, 2], "n_views": [1, 2]}),
    ld.glm: (None, {"covariance": ["HC0", "HC3"]}),
}  # fmt: skip
VARIANTS = {
    ld.gbmap: {"activation": ("softplus", "identity"), "beta": (1.0, 10.0), "l1_ratio": (0.0, 0.5),
               "refit": ("joint", "none")},
    ld.proset: {"loss": ("squared", "density"), "n_batches": (1, 2), "lambda_v": ("auto", 1e-2)},
    ld.costnet: {"dependents": ("all", "direct"), "l1_ratio": (1.0, 0.5), "relax": (1.0, 0.5),
                 "control": ({"max_iter": 50, "criterion": "cv"},
                             {"max_iter": 50, "criterion": "hq"})},
    ld.melm: {"k": (1, 2, 3), "penalty": (False, True),
              "covariance": ("shrunk", "ledoit-wolf"),
              "divergence": ("sum", "mean")},
    ld.ripr: {"max_dim": (1, 2, 3), "k": (None, 3), "n_views": (None, 2), "order": (None, "o"),
              "balanced": (False, True), "lambda_": (0.1, 1.0), "method": ("vote", "assignment")},
    ld.glm: {"covariance": ("HC0", "HC1", "HC2", "HC3", "cluster"),
             "family": ("poisson", "gamma")},
}  # fmt: skip
KINDS = (["number", "two", "classes"] * 5 + ["any"], ["two", "classes"] * 5 + ["any"])
WORK = {"m", "n_starts", "n_batches", "n_candidates", "n_lambda", "n", "n_permutations", "rounds",
        "committee", "top", "most"}  # fmt: skip
BATCHES = {"embed", "answers", "coordinates", "impacts", "mass"}  # take no frame
INNER = {"training_rows", "zero_offset"}


@dataclasses.dataclass
class Record:
    """What became of a case: counts of what is well, and texts of what is bad, by kind."""

    number: int
    bad: dict = dataclasses.field(default_factory=dict)
    counts: dict = dataclasses.field(default_factory=dict)
    gigabytes: float = 0.0

    def count(self, name):
        self.counts[name] = self.counts.get(name, 0) + 1

    def blame(self, kind, text):
        self.bad.setdefault(kind, []).append(text)


class Case:
    """One case: its random stream, its record, and how a call of it is tried."""

    def __init__(self, seed, number, loud=False):
        self.rng, self.loud = np.random.default_rng([seed, number]), loud
        self.record = Record(number)

    def attempt(self, what, call, *args, **kwargs):
        """What a call returns, and whether it did; all that is foreign is written down."""
        if self.loud:
            print("--", what)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            value, done = None, False
            try:
                value, done = call(*args, **kwargs), True
            except ld.LodimError as error:
                self.said(f"   refused: {error}")
            except SystemExit as stop:
                self.said(f"   exit {stop.code}")
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                where = [f for f in frames if "lodim" in f.filename]
                at = f"{pathlib.Path(where[-1].filename).name}:{where[-1].lineno}" if where else "?"
                self.record.blame("foreign exception", told(what, error, at))
                if self.loud:
                    traceback.print_exc()
        for warning in heard:
            if warning.category.__module__.startswith("lodim"):
                self.record.count("warned")
            else:
                place = f"{pathlib.Path(warning.filename).name}:{warning.lineno}"
                self.record.blame("library warning", told(what, warning.message, place))
        return value, done

    def said(self, text):
        if self.loud:
            print(text.encode("ascii", "backslashreplace").decode())

    def call(self, what, call, *args, **kwargs):
        """What a call returns, None where it is refused; counted."""
        value, done = self.attempt(what, call, *args, **kwargs)
        self.record.count("calls" if done else "calls refused")
        return value if done else None

    def chance(self, p):
        return self.rng.random() < p


def told(what, error, at):
    """What is said of an exception or a warning, alike for those that are alike."""
    said = "".join("#" if c.isdigit() else c for c in ascii(str(error))[:90])
    return f"{what}: {type(error).__name__} at {at}: {said}"


def warm_up():
    """Compile what all models need."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    frame["y"], frame["k"] = frame["a"], np.where(frame["b"] > 0, "p", "q")
    for model in MODELS:
        for y in ("k", "y"):
            with contextlib.suppress(ld.LodimError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit = model(f"{y} ~ a + b + c", frame, **CHEAP[model])
                fit.predict(frame)
                fit.summary()


def run(seed, number, loud=False):
    """The record of a case."""
    case = Case(seed, number, loud)
    rng = case.rng
    model = pick(rng, MODELS)
    frame, y = hostile.table(rng, KINDS[model is ld.melm])
    formula, arguments = formula_of(rng, frame, y), arguments_of(rng, model, frame)
    if loud:
        print(ascii(frame.dtypes.to_dict()), len(frame), ascii(formula), model.__name__)
        print(ascii(arguments))
    fit, done = case.attempt(f"{model.__name__}()", model, formula, frame, **arguments)
    case.record.count("fitted" if done else "refused")
    if done:
        printed(case, fit)
        predicted(case, model, fit, frame)
        measured(case, fit, frame)
        asked(case, fit, frame)
        if case.chance(0.3):
            saved(case, fit, frame)
        if case.chance(0.3):
            drawn(case, fit, frame)
        if case.chance(0.3):
            elsewhere.written(case, model, fit, frame)
        if case.chance(0.05):
            elsewhere.shown(case, fit, frame)
        if case.chance(0.3):
            elsewhere.unseen(case, fit, frame)
    if case.chance(0.1):
        elsewhere.of_other_frames(case, model, formula, frame, arguments, fit)
    if case.chance(0.1):
        elsewhere.estimated(case, frame, y, odd, CHEAP)
    if case.chance(0.06):
        walked(case, model, formula, frame, arguments)
    if case.chance(0.06):
        validated(case, model, formula, frame, arguments)
    if case.chance(0.06):
        taught(case, model, formula, frame)
    if case.chance(0.06):
        commanded(case, model, formula, frame)
    return case.record


# What a case is made of --------------------------------------------------------------------------


def formula_of(rng, frame, y):
    """A formula, mostly a good one."""
    left, names = quote(y), [quote(c) for c in frame.columns if c not in (y, "w", "o")]
    one, other = pick(rng, names), pick(rng, names)
    good = f"{left} ~ . - w - o"
    others = (
        f"{left} ~ {one}", f"{left} ~ {one} + {other}", f"{left} ~ {one} * {other}",
        f"{left} ~ . - {one} - w - o", f"{left} ~ I({one}**2) + {other}", "~ . - w - o",
        f"np.log({left}) ~ .", f"{left} + {one} ~ . - w - o", f"{left} ~ C({one})",
        f"{left} ~ bs({one}, df=4)", f"{left} ~ ({one} + {other})**2", f"{left} ~ 1", f"{left} ~ 0",
        f"{left} ~ {left}", f"{left} ~ nothing", "~", "", f"{left} ~ {one} +", f"{left} ~ . - .",
        f"{left} ~ center({one})", f"{left} ~ scale({one}):{other}", pick(rng, ODD),
    )  # fmt: skip
    return good if rng.random() < 0.8 else pick(rng, others)


def arguments_of(rng, model, frame):
    """Arguments of a model: cheap, perhaps with weights, an offset, variants, and an odd one."""
    arguments = {**ONE, **pick(rng, [CHEAP[model]] * 9 + [OPEN[model]])}
    known = inspect.signature(model).parameters
    if rng.random() < 0.3:
        arguments["weights"] = pick(rng, ("w", frame["w"].to_numpy(), "w"))
    if rng.random() < 0.2 and model in (ld.gbmap, ld.proset, ld.costnet, ld.glm):
        arguments["offset"] = pick(rng, ("o", frame["o"].to_numpy(), "o"))
    if rng.random() < 0.3:
        arguments["missing"] = pick(rng, ("indicator", "drop", "keep"))
    if rng.random() < 0.15:
        which = rng.integers(0, int(rng.integers(1, 9)), len(frame))
        whole = "clusters" if model is ld.glm else "groups"
        arguments[whole] = pick(rng, (which, which, frame.columns[0]))
    for name, values in VARIANTS[model].items():
        if rng.random() < 0.2:
            arguments[name] = pick(rng, values)
    if model is ld.costnet and rng.random() < 0.4:
        names = list(frame.columns)
        arguments["costs"] = dict.fromkeys(names, 1) | {names[0]: 2.5}
        if rng.random() < 0.5:
            arguments["depends_on"] = {names[0]: names[-3]}
    if rng.random() < 0.1:
        arguments["dtype"] = "float32"
    if rng.random() < 0.05:
        arguments["family"] = pick(rng, ("gaussian", "binomial", "multinomial"))
    if rng.random() < 0.08:
        name = pick(rng, [k for k in known if k not in ("formula", "data")])
        arguments[name] = odd(rng, name)
    elif rng.random() < 0.05:
        fields = dataclasses.fields(model_of(model).settings)
        name = pick(rng, [f.name for f in fields if f.name not in known])
        arguments["control"] = dict(arguments["control"]) if "control" in arguments else {}
        arguments["control"][name] = odd(rng, name if "max" not in name else "m")
    return {k: v for k, v in arguments.items() if k in known}


def odd(rng, name):
    """A value that no argument of this name is given, but not more work than it can do."""
    while True:
        value = pick(rng, ODD)
        many = isinstance(value, int | float) and value > 1000
        if not (many and name in WORK):
            return value


# What a fit is asked -----------------------------------------------------------------------------


def printed(case, fit):
    """All its prints and tables."""
    case.call("print", lambda: str(fit))
    report = case.call("summary", fit.summary)
    if report is not None:
        for how in ("as_text", "as_html", "as_latex"):
            case.call(how, getattr(report, how))
    for name in ("tidy", "glance", "coef", "_repr_html_"):
        if hasattr(fit, name):
            case.call(name, getattr(fit, name))


def predicted(case, model, fit, frame):
    """Predictions have the rows of the data, whatever their order and company."""
    rng = case.rng
    for type in fits_types(fit):
        first = case.call(f"predict {type}", fit.predict, frame, type, **zero(fit, frame))
        if first is None:
            continue
        said = f"{model.__name__} {type}"
        same_rows(case, said, first, frame)
        whole(case, model, fit, type, first, frame)
        for what, rows in (
            ("rows in another order", rng.permutation(len(frame))),
            ("one row", [int(rng.integers(len(frame)))]),
        ):
            given = zero(fit, frame, rows)
            some = case.call(f"predict {what}", fit.predict, frame.iloc[rows], type, **given)
            agree(case, f"{said}: {what}", first, some, rows)
    for name, other in hostile.odd_frames(rng, frame).items():
        if case.chance(0.25):
            out = case.call(f"predict of {name}", fit.predict, other)
            if out is not None and isinstance(other, pd.DataFrame):
                same_rows(case, f"predict of {name}", out, other)
                finite(case, f"{model.__name__} of {name}", out)
    if case.chance(0.1) and (foreign := hostile.polars_of(frame)) is not None:
        case.call("predict of polars", fit.predict, foreign)


def fits_types(fit):
    """Types of prediction, those of classes where there are some."""
    types = getattr(fit, "types", ("response",))
    return [t for t in types if getattr(fit, "levels", None) or t not in ("class", "prob")]


def zero(fit, frame, rows=None):
    """The offset of new rows, where it was an array."""
    design = getattr(fit, "design", None)
    if design is None or not design.offset_given or design.offset is not None:
        return {}
    return {"offset": frame["o"].to_numpy()[slice(None) if rows is None else rows]}


def same_rows(case, what, out, frame):
    for part in out.values() if isinstance(out, dict) else [out]:
        if len(part) != len(frame) or not part.index.equals(frame.index):
            case.record.blame("silent difference", f"{what}: rows are not those of the data")


def whole(case, model, fit, type, out, frame):
    """NaN is where an input is missing, and nowhere else."""
    if not isinstance(out, pd.Series | pd.DataFrame) or not hasattr(fit, "_reader"):
        return
    columns = [c for c in fit._reader.features if c in frame and isinstance(frame[c], pd.Series)]
    there = frame[columns].notna()
    missing = out.isna().to_numpy().reshape(len(frame), -1)
    full = there.all(axis=1).to_numpy() & (frame["o"].notna().to_numpy())
    if missing[full].any() and model is not ld.glm:  # which may be of deficient rank
        case.record.blame("silent difference", f"{model.__name__} {type}: NaN of complete rows")
    if fit.design.missing == "drop" and not missing[~full].all():
        case.record.blame("silent difference", f"{model.__name__} {type}: value of a row with gaps")
    finite(case, f"{model.__name__} {type}", out)


def finite(case, what, out):
    """No prediction is infinite, but for the logarithm of a density that is zero."""
    for part in parts(out):
        numbers = part.select_dtypes("number") if isinstance(part, pd.DataFrame) else part
        numbers = numbers.to_numpy()
        if numbers.dtype.kind == "f" and np.isinf(numbers).any() and "density" not in what:
            case.record.blame("silent difference", f"{what}: infinite")


def agree(case, what, first, second, rows):
    """Whether two predictions of the same rows are the same but for rounding."""
    if second is None:
        return
    for a, b in zip(parts(first), parts(second), strict=True):
        a = a.iloc[rows]
        if a.to_numpy().dtype.kind == "f":
            x, z = a.to_numpy(), b.to_numpy()
            scale = np.nanmax(np.abs(x), initial=1e-300)
            same = np.allclose(x, z, rtol=1e-7, atol=1e-9 * scale, equal_nan=True)
        else:
            same = bool(((a == b) | (a.isna() & b.isna())).to_numpy().all())
        if not same:
            case.record.blame("silent difference", what)


def parts(out):
    return list(out.values()) if isinstance(out, dict) else [out]


def measured(case, fit, frame):
    """augment and evaluate, on good rows and on odd ones."""
    for name in ("augment", "evaluate"):
        method = getattr(fit, name)
        out = case.call(name, method, frame, **zero(fit, frame))
        if name == "augment" and out is not None:
            same_rows(case, name, out, frame)
        for odd_name, other in hostile.odd_frames(case.rng, frame).items():
            if case.chance(0.08):
                case.call(f"{name} of {odd_name}", method, other)


def asked(case, fit, frame):
    """Some public methods, with good and odd arguments."""
    found = [n for n in dir(type(fit)) if not n.startswith("_") and n not in BATCHES | INNER]
    calls = [n for n in found if callable(inspect.getattr_static(type(fit), n))]
    for name in set(found) - set(calls):
        case.call(f".{name}", getattr, fit, name)
    for _ in range(4):
        name = pick(case.rng, calls)
        if name == "update" or (name == "plot" and not case.chance(0.2)):
            continue
        given = odd_arguments(case, getattr(fit, name), frame)
        case.said(f"   {given!a}"[:300])
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            case.call(f".{name}({', '.join(given)})", getattr(fit, name), **given)
    close()


def odd_arguments(case, method, frame):
    """Arguments of a method by name: rows where it takes rows, all else odd in one of two."""
    rng, given = case.rng, {}
    for name, parameter in inspect.signature(method).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if name in ("data", "row", "new", "other") and case.chance(0.7):
            rows = pick(rng, (frame, frame, frame.iloc[:1], frame.iloc[:3]))
            given[name] = rows.iloc[:1] if name == "row" else rows
        elif name == "ax":
            continue
        elif parameter.default is parameter.empty or case.chance(0.4):
            given[name] = odd(rng, name)
            if name in ("data", "row") and case.chance(0.5):
                given[name] = pick(rng, [*hostile.odd_frames(rng, frame).values()])
    return given


def saved(case, fit, frame):
    """A saved fit, loaded, says the same."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "fit")
        case.call("save", fit.save, file)
        if not file.exists():
            return
        again = case.call("load", ld.load, file)
        if again is None:
            case.record.blame("silent difference", "a saved fit is refused")
            return
        before, after = (
            case.call("predict loaded", each.predict, frame, **zero(each, frame))
            for each in (fit, again)
        )
        if before is not None and after is not None:
            for a, b in zip(parts(before), parts(after), strict=True):
                if not a.equals(b):
                    case.record.blame("silent difference", "load(save(fit)) predicts otherwise")
        if case.call("print", str, fit) != case.call("print", str, again):
            case.record.blame("silent difference", "load(save(fit)) prints otherwise")


KINDS_OF_PLOT = {  # with their arguments
    "gbmap": {"loss": "", "effects": "top", "local": "data row top", "embedding": "data",
              "drift": "data offset threshold limit k"},
    "proset": {"weights": "top", "map": "data row batch named",
               "scatter": "features data row named", "surface": "features reference level",
               "shapley": "data row reference level top"},
    "costnet": {"cost": "log", "path": "top", "graph": "most"},
    "melm": {"view": "data dimensions arrows top contours", "loadings": "top of", "starts": ""},
    "ripr": {"data": "row data top", "shares": "", "objective": ""},
    "glm": {"coefficients": "top level", "residuals": "named", "qq": "named", "leverage": "named"},
}  # fmt: skip


def drawn(case, fit, frame):
    """A plot of a random kind, saved; once more with an odd argument."""
    kinds = KINDS_OF_PLOT.get(getattr(fit, "name", ""), {})
    kind = pick(case.rng, [*kinds, None])
    needs = {"data": frame} if kind in ("local", "drift", "shapley") else {}
    if kind == "data" and case.chance(0.3):
        needs = {"row": frame.iloc[:1]}
    plot = fit.plot
    if "response" in inspect.signature(plot).parameters:  # of several
        plot = next(iter(fit.fits.values())).plot
    case.call(f"plot {kind}", lambda: paint(plot(kind, **needs)))
    if kinds.get(kind):
        name = pick(case.rng, kinds[kind].split())
        needs[name] = odd(case.rng, "top")
        case.said(f"   {name}={needs[name]!a}")
        case.call(f"plot {kind} of odd {name}", lambda: paint(plot(kind, **needs)))
    close()


def paint(axes):
    """The picture of Axes, as a file would hold it."""
    figure = np.ravel(axes)[0].figure
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    return True


def close():
    import matplotlib.pyplot as pyplot

    pyplot.close("all")


# What stands around a fit ------------------------------------------------------------------------


def without(arguments, *names):
    return {k: v for k, v in arguments.items() if k not in names}


def walked(case, model, formula, frame, arguments):
    """A path, and what it can be asked."""
    rest = without(
        arguments, *model_of(model).penalties, "budget", "n_lambda", "lambdas", "lambda_min_ratio",
        "penalty",
    )  # fmt: skip
    given = {"lambdas": [1.0, 0.1]} if case.chance(0.5) else {"n_lambda": 3}
    if case.chance(0.3):
        name = pick(case.rng, ("lambdas", "n_lambda", "lambda_min_ratio", "penalty"))
        given[name] = odd(case.rng, name)
    path = case.call("path()", lambda: ld.path(model, formula, frame, **given, **rest))
    if path is None:
        return
    for what, call in {
        "path.print": lambda: str(path), "path.tidy": path.tidy, "path.glance": path.glance,
        "path.coef": path.coef, "path.at": lambda: path.at(odd(case.rng, "at")),
        "path.coef of": lambda: path.coef(odd(case.rng, "at")),
        "path.predict": lambda: path.predict(frame, 0.1, **zero(path.fits[0], frame)),
        "path.predict odd": lambda: path.predict(odd(case.rng, ""), odd(case.rng, "")),
        "path.plot": lambda: paint(path.plot()),
        "path.plot odd": lambda: path.plot(top=odd(case.rng, "top")),
    }.items():  # fmt: skip
        case.call(what, call)
    close()


def validated(case, model, formula, frame, arguments):
    """A cross-validation, and what it can be asked."""
    grid = pick(case.rng, GRIDS[model])
    rest = without(
        arguments, *(grid or ()), "n_lambda", "m", "n_batches", "budget", "lambda_", "loss"
    )
    given = {"grid": grid, "folds": 2}
    if case.chance(0.4):
        name = pick(case.rng, ("grid", "folds", "loss", "rule", "n_lambda", "seed", "n_jobs"))
        given[name] = odd(case.rng, "n" if name in ("n_jobs", "folds") else name)
    cv = case.call("cv()", lambda: ld.cv(model, formula, frame, **given, **without(rest, "seed")))
    if cv is None:
        return
    for what, call in {
        "cv.print": lambda: str(cv), "cv.tidy": cv.tidy, "cv.plot": lambda: paint(cv.plot()),
        "cv.best": lambda: str(cv.best.summary()), "cv.lambda_min": lambda: cv.lambda_min,
        "cv.lambda_1se": lambda: cv.lambda_1se, "cv.budget_min": lambda: cv.budget_min,
    }.items():  # fmt: skip
        case.call(what, call)
    close()


def taught(case, model, formula, frame):
    """Active learning of two rounds, and odd questions."""
    half = max(1, len(frame) // 2)
    odds = {}
    if case.chance(0.3):
        name = pick(
            case.rng, ("score", "test", "committee", "agreement", "rounds", "target", "seed")
        )
        odds[name] = odd(case.rng, name)
    learner = case.call("active()", lambda: ld.active(
        model, formula, frame.iloc[:half], frame.iloc[half:],
        **{"committee": 3, **odds}, **without(CHEAP[model], "control"),
    ))  # fmt: skip
    if learner is None:
        return
    rows = case.call("query", lambda: learner.query(2))
    if rows is not None:
        labels = frame.iloc[half:][learner.response].reindex(rows.index)
        case.call("teach", lambda: learner.teach(labels))
    for what, call in {
        "query odd": lambda: learner.query(odd(case.rng, "n"), odd(case.rng, "")),
        "teach odd": lambda: learner.teach(odd(case.rng, "")),
        "learner print": lambda: str(learner),
        "learner plot": lambda: paint(learner.plot()), "stop": lambda: learner.stop,
        "replay odd": lambda: learner.replay(odd(case.rng, ""), 2, rounds=1),
        "curves odd": lambda: ld.learning_curves(odd(case.rng, "")),
        "plot odd": lambda: learner.plot(odd(case.rng, ""), against=odd(case.rng, "")),
    }.items():  # fmt: skip
        case.call(what, call)
    close()


def commanded(case, model, formula, frame):
    """The command line, in this process."""
    flags = {"gbmap": ["--m", "1", "--lambda", "0.1"], "melm": ["--gamma", "1", "--starts", "1"],
             "ripr": ["--lambda", "0.1"], "costnet": ["--budget", "2"]}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        data, out = pathlib.Path(folder, "data.csv"), pathlib.Path(folder, "out.csv")
        try:
            frame.to_csv(data, index=case.chance(0.2))
        except (ValueError, TypeError):
            return
        if case.chance(0.2):
            data.write_bytes(data.read_bytes()[: int(case.rng.integers(0, 300))])
        words = [model.__name__, formula if isinstance(formula, str) else "y ~ .", str(data)]
        words += flags.get(model.__name__, [])
        if case.chance(0.5):
            words += ["--predict", str(data), "--output", str(out)]
        if case.chance(0.2):
            words += ["--save", str(pathlib.Path(folder, pick(case.rng, ("fit", "no/such/place"))))]
        if case.chance(0.3):
            words += ["--type", pick(case.rng, ("class", "prob", "link", "x", ""))]
        if case.chance(0.3):
            flag = pick(case.rng, ("--weights", "--offset", "--seed", "--family", "--sep"))
            words += [flag, str(pick(case.rng, ODD))]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            case.call("main()", lambda: command_line.main(words))
