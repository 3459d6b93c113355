"""Arguments of the command line for fitting a model."""

import argparse
import inspect
from pathlib import Path

from lodim import family as families
from lodim.fitting.model import Option
from lodim.fitting.registry import model_module

SHARED = (
    Option("--weights", "weights", str, "column of row weights, or balanced", "COLUMN"),
    Option("--offset", "offset", str, "column with a known part of the score", "COLUMN"),
    Option("--missing", "missing", str, "rows with missing features: drop, indicator"),
    Option(
        "--groups", "groups", str, "column of groups, whose rows folds hold out together", "COLUMN"
    ),
    Option("--seed", "seed", int, "seed of all random numbers; default: 0"),
    Option("--sample", "sample", int, "fit a random sample of this many rows", "ROWS"),
)


def add_to(one: argparse.ArgumentParser, name: str) -> None:
    """Add the arguments of a model's command to its parser, such as formula and settings."""
    model = model_module(name).MODEL
    one.add_argument("formula", help='such as "mpg ~ ." or "np.log(price) ~ . - id"')
    one.add_argument(
        "data",
        help="CSV file (empty cells, NA and NaN are missing; a first column without a name holds "
        "row labels), or name of a data set that comes with lodim; or Parquet or Arrow file, "
        "folder, or pattern of files in quotes: 'part-*.parquet', which need not fit into memory",
    )
    for option in options(model):
        metavar = option.metavar or option.kind.__name__.upper()
        shown = {"help": option.text, "metavar": metavar, "default": argparse.SUPPRESS}
        one.add_argument(option.flag, dest=option.name, type=option.kind, **shown)
    one.add_argument(
        "--sep", type=_separator, default=",", help="character between cells in CSV files, or tab"
    )
    one.add_argument(
        "--decimal", choices=(".", ","), default=".", help="decimal point in CSV files"
    )
    one.add_argument(
        "--scratch",
        metavar="DIR",
        help=("folder for a file of features that do not fit into memory"),
    )
    one.add_argument("--cv", action="store_true", help="print the cross-validation")
    plots = [*model.plots, *(["path", "cv"] if model.penalties else [])]
    one.add_argument("--plots", metavar="DIR", type=Path, help=f"save {', '.join(plots)} as PNG")
    _add_files(one)
    one.set_defaults(run="fit_model", model=model)


def _add_files(one):
    """Add the options for files that are read or written in addition to the data."""
    one.add_argument("--save", metavar="FILE", help="save the fit; lodim.load() reads it")
    one.add_argument("--report", metavar="HTML", help="write an interactive report page")
    one.add_argument(
        "--predict",
        metavar="FILE",
        help="file of new rows to predict, or pattern of files in quotes",
    )
    one.add_argument(
        "--type", default="response", help="response (default), link, class, ...: see predict()"
    )
    one.add_argument(
        "--new-levels",
        choices=("error", "missing"),
        default="error",
        help=(
            "levels in new rows that the training rows did not have: missing treats them as "
            "missing values; default: an error"
        ),
    )
    one.add_argument(
        "--output",
        metavar="FILE",
        help="file for the predictions: CSV, or Parquet or Arrow if it ends in .parquet or .arrow. "
        "One row per new row, in order; the first column, row, has its number, from 1 over all "
        "files, or its label if the first column of the new CSV file has no name",
    )
    one.add_argument(
        "--escape-formulas",
        action="store_true",
        help="put ' before texts of the output that begin with = + - @, a tab or a line end, which "
        "a spreadsheet would run as formulas; without it, texts are written as they are",
    )


def options(model):
    """Return the command line's options that become arguments of the model function."""
    family = f"{', '.join(model.families)}; default: by the response"
    known = inspect.signature(model.function).parameters
    shared = (option for option in SHARED if option.name in known)
    numbers = [
        Option(f"--{name}", name, float, f"for family {of}: a number {words}")
        for of, (name, *_, words) in families.PARAMETERS.items()
        if name in known
    ]
    return (Option("--family", "family", str, family), *numbers, *shared, *model.options)


def _separator(text):
    text = "\t" if text in ("tab", "\\t") else text
    if len(text) != 1:
        raise argparse.ArgumentTypeError(f"must be one character or 'tab', not {text!r}")
    return text
