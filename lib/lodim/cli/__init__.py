"""The command line: `python -m lodim gbmap "mpg ~ ." cars.csv` fits and prints a summary."""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

import lodim
from lodim.errors import LodimError
from lodim.fitting.registry import MODELS


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line (argv; None: sys.argv); return status 0, or 2 after a printed error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # if a terminal lacks a letter, its code is shown
            stream.reconfigure(errors="backslashreplace")
    args = argparse.Namespace()
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, category, *_: _tell(category.__name__, message, args)
        try:
            try:
                argv = sys.argv[1:] if argv is None else list(argv)
                parser(argv).parse_args(argv, args)
                getattr(import_module("lodim.cli.commands"), args.run)(args)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:  # the reader, such as head, has closed the pipe
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (LodimError, OSError) as error:
            _tell("error", error, args)
            return 2
    return 0


def parser(argv: list[str]) -> argparse.ArgumentParser:
    """Return the parser of the command line, with a subcommand per model, `data` and `warm`.

    argv : arguments; only the model named first gets its options"""
    # Options of the other models are left out so that help appears at once.
    top = argparse.ArgumentParser(prog="python -m lodim", description=lodim.__doc__)
    top.add_argument("--version", action="version", version=f"lodim {lodim.__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name, title in MODELS.items():
        model = commands.add_parser(name, help=title, description=title)
        if argv[:1] == [name]:
            import_module("lodim.cli.commands").add_to(model, name)
    data = commands.add_parser("data", help="list the data sets that come with lodim, or print one")
    data.add_argument("name", nargs="?", help="print this data set as CSV")
    data.set_defaults(run="show_data")
    warm = commands.add_parser("warm", help="compile the kernels now, as when an image is built")
    warm.add_argument("models", nargs="*", metavar="MODEL", help="of these models; default: of all")
    warm.set_defaults(run="compile_kernels")
    return top


def _tell(kind, message, args):
    text = str(message)
    if "model" in args:
        text = import_module("lodim.cli.commands").with_flags(text, args.model)
    print(f"lodim: {kind}: {text}", file=sys.stderr)
