"""Commands (fit a model, show data, compile kernels), and the arguments for fitting a model."""

import argparse
import glob
import inspect
import os
import re
import time
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import lodim
from lodim import family as families
from lodim.design.frame import name_of
from lodim.errors import ArgumentError, DataError
from lodim.fitting import output_file
from lodim.fitting.fit_model import model_of
from lodim.fitting.model import Option
from lodim.fitting.registry import MODELS, model_module
from lodim.fitting.streamed import predictions
from lodim.report.excel import LIVE
from lodim.report.tables import Report, Table, significant
from lodim.sources import csv_files, read_source
from lodim.sources.files import CSV, FileState, kind_by_name, reading
from lodim.text import unused_name

WARMING = {  # formula and data set per kind of response; features are numbers and texts
    "gaussian": ("mpg ~ .", "autompg"),
    "binomial": ("disease ~ .", "heart"),
    "multinomial": ("cultivar ~ .", "wine"),
    "none": ("~ .", "autompg"),
}


def fit_model(args: argparse.Namespace) -> None:
    """Fit a model, print its summary, and do the further steps that the arguments ask for."""
    if (args.predict is None) != (args.output is None):
        both = "--predict (new rows) and --output (file of predictions)"
        raise ArgumentError(f"{both} must be given together")
    model = args.model
    given = [option for option in options(model) if hasattr(args, option.name)]
    arguments = {option.name: getattr(args, option.name) for option in given}
    for option in given:
        if option.file:
            arguments[option.name] = read_csv(arguments[option.name], args.sep, args.decimal)
    if args.scratch is not None:
        arguments["control"] = {"scratch": args.scratch}
    data = read_data(args.data, args.sep, args.decimal)
    if args.report and isinstance(data, str):
        raise ArgumentError(f"--report needs a CSV file or an included data set, not {args.data!r}")
    new = None if args.predict is None else read_data(args.predict, args.sep, args.decimal)
    if new is not None:
        output_file.check_apart(args.output, [*_paths(args.data, data), *_paths(args.predict, new)])
    fit = model.function(args.formula, data, **arguments)
    print(fit.summary())
    if args.save:
        fit.save(args.save)
    if args.report:
        fit.report(args.report, data)
    if new is not None:
        answers = predictions(fit, new, args.type, new_levels=args.new_levels)
        write_predictions(answers, args.output, args.escape_formulas)
    if model.penalties:  # the steps below try many penalties
        arguments.pop(next(iter(model.penalties)), None)
        arguments.pop(model.shared_setting, None)
    cv = None
    if args.cv or (args.plots and model.penalties):
        cv = lodim.cv(model.function, args.formula, data, **arguments)
    if args.cv:
        print(f"\n{cv_report(cv)}")
    if args.plots and not model.penalties:
        save_plots(args.plots, fit, model.plots)
    elif args.plots:
        path = lodim.path(model.function, args.formula, data, **arguments)
        save_plots(args.plots, fit, model.plots, path=path, cv=cv)


def show_data(args: argparse.Namespace) -> None:
    """List the data sets, or print one of them as CSV."""
    if args.name is None:
        print(lodim.data().to_string(index=False))
    else:
        print(lodim.data(args.name).to_csv(index=False), end="")


def compile_kernels(args: argparse.Namespace) -> None:
    """Compile and cache the kernels (numerical loops) of models, so that later fits start fast."""
    unknown = [name for name in args.models if name not in MODELS]
    if unknown:
        raise ArgumentError(f"no model is called {unknown[0]!r}. There are: {', '.join(MODELS)}.")
    for name in args.models or MODELS:
        model, start = getattr(lodim, name), time.perf_counter()
        for family in WARMING.keys() & set(model_of(model).families):
            formula, data = WARMING[family][0], lodim.data(WARMING[family][1])
            with warnings.catch_warnings(action="ignore"):  # warnings about these fits help nobody
                fit = model(formula, data)
                fit.summary()
                fit.predict(data)
                if hasattr(fit, "explain"):
                    fit.explain(data[:1])
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)


def read_data(name: str, sep: str, decimal: str) -> pd.DataFrame | str:
    """Read a built-in data set or a CSV file; return a DataFrame.

    name : data set or path; a file of another type is only checked, and `name` returned
    sep, decimal : separators in the CSV file"""
    path = Path(name)
    if not path.exists() and name in lodim.data()["name"].tolist():
        return lodim.data(name)
    several = path.is_dir() or (glob.has_magic(name) and not path.exists())
    if not several and kind_by_name(name) in (CSV, None):
        return read_csv(name, sep, decimal)
    if (sep, decimal) != (",", "."):
        raise ArgumentError(f"--sep and --decimal are only for a single CSV file, not for {name!r}")
    read_source(name)  # raises errors about unreadable files before a fit begins
    return name


def _paths(name, data):
    source = read_source(data) if isinstance(data, str) else None
    return [name] if source is None else source.paths


def read_csv(name: str, sep: str, decimal: str) -> pd.DataFrame:
    """Return a CSV file with these separators as a frame; an unnamed first column is the index."""
    if sep == decimal:
        raise ArgumentError(f"--decimal {decimal} needs another --sep, such as ';' or tab")
    if not Path(name).is_file():
        hint = "python -m lodim data lists the data sets"
        raise DataError(f"there is no file and no data set {name!r}: {hint}")
    file = FileState.of_name(name)
    dialect = csv_files.dialect_of(file, sep, decimal)
    csv_files.header(file, dialect)  # raises errors about separators and names
    with reading(file, CSV):
        how = {"na_values": list(csv_files.MISSING), "low_memory": False, **dialect.options()}
        frame = pd.read_csv(name, **how)
    if str(frame.columns[0]).startswith("Unnamed:"):
        frame = frame.set_index(frame.columns[0]).rename_axis(None)
    return frame


def write_predictions(answers: Iterable[pd.DataFrame], name: str, escape: bool = False) -> None:
    """Write frames of predictions to one file, with row labels or numbers as first column.

    escape : whether to make texts safe to open in a spreadsheet"""
    n_before = 0
    with output_file.writing(name, other=output_file.CSV) as append:
        for frame in answers:
            numbers = np.arange(n_before + 1, n_before + len(frame) + 1)
            n_before += len(frame)
            labels = numbers if isinstance(frame.index, pd.RangeIndex) else frame.index
            frame = frame.set_axis([name_of(column) for column in frame], axis=1)
            frame = frame.reset_index(drop=True)
            frame.insert(0, unused_name("row", frame), labels)
            if escape:
                frame = frame.rename(columns=_escaped)
                frame = frame.apply(lambda values: values.map(_escaped))
            append(frame)


def _escaped(value):
    return f"'{value}" if isinstance(value, str) and value.startswith(LIVE) else value


def cv_report(cv: Any) -> Report:
    """Return a table of a cross-validation `cv`: settings, losses, and the rules' choices."""
    frame = cv.tidy()
    rules = {cv.index_1se: "1se"} | {cv.index_min: "min"}
    if cv.index_min == cv.index_1se:
        rules = {cv.index_min: "min, 1se"}
    frame["rule"] = [rules.get(k, "") for k in range(len(frame))]
    formats = {name: significant for name in frame if frame[name].dtype.kind == "f"}
    table = Table("", frame, formats, index=False)
    note = "min: lowest mean held-out loss; 1se: simplest setting within one standard error of it."
    return Report(f"Cross-Validation of {cv.call}", [("Loss", cv.loss)], (table,), (note,))


def save_plots(folder: Path, fit: Any, kinds: Sequence[str], **others: Any) -> None:
    """Save fit.plot(kind) for each of `kinds`, and plots of the objects `others`, as PNG files."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    draw = {kind: lambda kind=kind: fit.plot(kind) for kind in kinds}
    draw |= {name: thing.plot for name, thing in others.items()}
    for name, axes in draw.items():
        figure = np.ravel(axes())[0].figure  # a plot may have several Axes
        folder.mkdir(parents=True, exist_ok=True)  # only once there is a plot to save
        file = folder / f"{name}.png"
        figure.savefig(file, dpi=150)
        print(f"saved {file}")


SHARED = (
    Option("--weights", "weights", str, "column of row weights, or balanced", "COLUMN"),
    Option("--offset", "offset", str, "column with a known part of the score", "COLUMN"),
    Option("--missing", "missing", str, "rows with missing features: drop, indicator"),
    Option("--groups", "groups", str, "column of groups that folds hold out whole", "COLUMN"),
    Option("--seed", "seed", int, "seed of all random numbers; default: 0"),
    Option("--sample", "sample", int, "fit a random sample of this many rows", "ROWS"),
)


def add_to(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the options of the model called `name` to `parser`, the parser of its command."""
    model = model_module(name).MODEL
    parser.add_argument("formula", help='such as "mpg ~ ." or "np.log(price) ~ . - id"')
    parser.add_argument(
        "data",
        help="CSV file (empty cells, NA and NaN are missing; a first column without a name holds "
        "row labels), or name of a data set that comes with lodim; or Parquet or Arrow file, "
        "folder, or pattern of files in quotes: 'part-*.parquet', which need not fit into memory",
    )
    for option in options(model):
        metavar = option.metavar or option.kind.__name__.upper()
        shown = {"help": option.text, "metavar": metavar, "default": argparse.SUPPRESS}
        parser.add_argument(option.flag, dest=option.name, type=option.kind, **shown)
    cells = "character between cells in CSV files, or tab"
    parser.add_argument("--sep", type=_separator, default=",", help=cells)
    marks: dict[str, Any] = {"choices": (".", ","), "default": "."}
    parser.add_argument("--decimal", help="decimal point in CSV files", **marks)
    scratch = "folder for a file of features that do not fit into memory"
    parser.add_argument("--scratch", metavar="DIR", help=scratch)
    parser.add_argument("--cv", action="store_true", help="print the cross-validation")
    plots = [*model.plots, *(["path", "cv"] if model.penalties else [])]
    parser.add_argument("--plots", metavar="DIR", type=Path, help=f"save {', '.join(plots)} as PNG")
    _add_files(parser)
    parser.set_defaults(run="fit_model", model=model)


def _add_files(parser):
    parser.add_argument("--save", metavar="FILE", help="save the fit; lodim.load() reads it")
    parser.add_argument("--report", metavar="HTML", help="write an interactive report page")
    new = "file of new rows to predict, or pattern of files in quotes"
    parser.add_argument("--predict", metavar="FILE", help=new)
    types = "response (default), link, class, ...: see predict()"
    parser.add_argument("--type", default="response", help=types)
    words = "levels in new rows that the training rows did not have: missing treats them as "
    words += "missing values; default: an error"
    treatment: dict[str, Any] = {"choices": ("error", "missing"), "default": "error"}
    parser.add_argument("--new-levels", help=words, **treatment)
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="file for the predictions: CSV, or Parquet or Arrow if it ends in .parquet or .arrow. "
        "One row per new row, in order; the first column, row, has its number, from 1 over all "
        "files, or its label if the first column of the new CSV file has no name",
    )
    parser.add_argument(
        "--escape-formulas",
        action="store_true",
        help="put ' before texts of the output that begin with = + - @, a tab or a line end, which "
        "a spreadsheet would run as formulas; without it, texts are written as they are",
    )


def options(model):
    """Return a tuple of Option: the command-line flags that set arguments of a model's function."""
    family = f"{', '.join(model.families)}; default: by the response"
    known = inspect.signature(model.function).parameters
    shared = (option for option in SHARED if option.name in known)
    given = [(name, of, words) for of, (name, *_, words) in families.PARAMETERS.items()]
    texts = {name: f"for family {of}: a number {words}" for name, of, words in given}
    numbers = [Option(f"--{k}", k, float, text) for k, text in texts.items() if k in known]
    return (Option("--family", "family", str, family), *numbers, *shared, *model.options)


def with_flags(text, model):
    """Replace a model's arguments in a message by command line options; return the new message.

    text : message, in which n_views=2 becomes --views 2; quotes and lines after the first stay
    model : name of the model"""
    flags = {option.name: option.flag for option in options(model)} | {"new_levels": "--new-levels"}
    first, *formula = text.replace("control={'scratch': folder}", "--scratch folder").split("\n")
    argument = rf"(?<![\w'\"])({'|'.join(flags)})\b(?:=(['\"]?)(\w*)\2)?"
    return "\n".join([re.sub(argument, partial(_as_option, flags), first), *formula])


def _as_option(flags, found):
    name, _, value = found.groups()
    if value is None and "_" not in name:  # a word such as weights
        return found[0]
    return f"{flags[name]} {value or ''}".rstrip()


def _separator(text):
    text = "\t" if text in ("tab", "\\t") else text
    if len(text) != 1:
        raise argparse.ArgumentTypeError(f"must be one character or 'tab', not {text!r}")
    return text
