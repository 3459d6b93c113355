"""The road of a call through lodim: how many files and functions it passes, and where it climbs.

    python benchmarks/road.py

files      files of lodim in which a function runs
functions  functions and methods that run, each counted once
passages   pairs of files of which one calls the other, each counted once
climbs     passages to a higher level of LEVELS, which are listed: from `fitting` into a model, say

What runs on the lower two levels calls functions that it was given: they count as called by the
file that gave them. Each call is made twice and the second is watched, without imports then.
Compiled kernels are not seen.
"""

import sys
import threading
from pathlib import Path

import lodim as ld

ROOT = str(Path(ld.__file__).parent) + "/"
LEVELS = (
    ("formula", "engine"),  # above the modules beside the folders
    ("sources", "design", "family", "solve", "report", "plot", "datasets"),
    ("fitting", "export", "page"),
    ("selection", "uncertainty", "interpretation", "comparison", "diagnostics"),
    ("models",),
)


def level(file):
    folder = file.split("/")[0].removesuffix(".py")
    return next((k for k, names in enumerate(LEVELS, 1) if folder in names), 0)


def road(call):
    """(functions, passages) of the second of two calls."""
    functions, passages = set(), set()

    def watch(frame, event, _):
        code, caller = frame.f_code, frame.f_back
        if event != "call" or not code.co_filename.startswith(ROOT) or code.co_name == "<module>":
            return
        file = code.co_filename.removeprefix(ROOT)
        functions.add((file, code.co_qualname))
        while caller and not level(caller.f_code.co_filename.removeprefix(ROOT)) > 1:
            caller = caller.f_back
        if caller and caller.f_code.co_filename != code.co_filename:
            passages.add((caller.f_code.co_filename.removeprefix(ROOT), file))

    call()
    threading.setprofile(watch)
    sys.setprofile(watch)
    call()
    sys.setprofile(None)
    threading.setprofile(None)
    return functions, passages


if __name__ == "__main__":
    cars = ld.data("autompg")
    fit = ld.gbmap("mpg ~ .", cars)
    calls = {"gbmap": lambda: ld.gbmap("mpg ~ .", cars), "predict": lambda: fit.predict(cars)}
    for name, call in calls.items():
        functions, passages = road(call)
        climbs = sorted(f"{a} -> {b}" for a, b in passages if level(a) < level(b))
        counts = f"{len({file for file, _ in functions})} files, {len(functions)} functions"
        print(
            f"{name}: {counts}, {len(passages)} passages, {len(climbs)} climbs", *climbs, sep="\n  "
        )
