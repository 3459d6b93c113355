"""Fingerprints of seeded calls: equal before and after a change that must change no result.

    python benchmarks/fingerprints.py [NAME ...]            write results/fingerprints.csv
    python benchmarks/fingerprints.py --compare [NAME ...]  compare with that file, write nothing
    python benchmarks/fingerprints.py --coverage            lines that no case executes

NAME selects the cases whose name contains it; the other lines of the file stay as they are.

stored   hash of the set of all arrays and numbers in the saved file, without their names and order
answers  hash of predictions, tables and exported code, in order, without names of columns
printed  hash of what print() and summary() show, and of the HTML summary
value    deviance of the fit, or the root mean square of the numbers in its answers (rms)

So a renamed field or column changes no hash of numbers, and a reworded summary changes `printed`
alone. Hashes depend on the instructions of the processor (fused multiply-adds) and on the versions
of packages; the header of the file has both, and --compare says which of them differ here.
"""

import argparse
import csv
import hashlib
import os
import platform
import sys
import time
import warnings
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

FILE = Path(__file__).parent / "results" / "fingerprints.csv"
COLUMNS = ("name", "stored", "answers", "printed", "measure", "value")
PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "pandas", "patsy", "statsmodels", "cvxpy")
FOLDERS = ("models", "design")  # of lib/lodim, for --coverage
COMPILED = r"^\s*@(njit|inlined|cuda\.jit|vectorize|guvectorize)\b"


# One fingerprint -------------------------------------------------------------------------------


def leaves(value):
    """Yield text, and arrays of float64, of which a value is made; names are left out."""
    import numpy as np
    import pandas as pd

    if isinstance(value, pd.DataFrame):
        for k in range(value.shape[1]):
            yield from leaves(value.iloc[:, k])
    elif isinstance(value, dict):
        yield from leaves(list(value.values()))
    elif isinstance(value, str) or value is None:
        yield str(value)
    elif isinstance(value, list | tuple) and not all(isinstance(v, int | float) for v in value):
        for item in value:
            yield from leaves(item)
    elif hasattr(value, "to_pandas"):  # frames of polars and pyarrow
        yield from leaves(value.to_pandas())
    else:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            yield "\n".join(map(str, array.ravel()))
        else:
            array = array.astype(float)
            yield np.where(np.isnan(array), np.nan, array)


def as_bytes(leaf):
    """Return the content of a leaf: text, or the shape (without axes of length one) and bits."""
    if isinstance(leaf, str):
        return leaf.encode()
    return str([n for n in leaf.shape if n != 1]).encode() + leaf.tobytes()


def fingerprint(parts):
    """Return a hash of a sequence of bytes."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def root_mean_square(numbers):
    """Return the root mean square of all finite numbers in arrays."""
    import numpy as np

    finite = np.concatenate([np.ravel(a)[np.isfinite(np.ravel(a))] for a in numbers] or [[0.0]])
    return float(np.sqrt(np.mean(finite**2))) if len(finite) else 0.0


def line_of(name, case):
    """Run a case and return its line: values by COLUMNS."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = case()
    answers = list(leaves(result.answers))
    numbers = [leaf for leaf in leaves(result.stored) if not isinstance(leaf, str)]
    measure, value = "deviance", result.deviance
    if value is None:
        measure = "rms"
        value = root_mean_square([leaf for leaf in answers if not isinstance(leaf, str)])
    hashes = (
        fingerprint(sorted(set(map(as_bytes, numbers)))),
        fingerprint(map(as_bytes, answers)),
        fingerprint(map(as_bytes, leaves(result.printed))),
    )
    return dict(zip(COLUMNS, (name, *hashes, measure, repr(value)), strict=True))


# The file --------------------------------------------------------------------------------------


def environment():
    """Return what hashes depend on, besides lodim: processor, system and packages."""
    import llvmlite.binding as llvm
    from numba import config

    features = config.CPU_FEATURES or llvm.get_host_cpu_features().flatten()
    return {
        "cpu": config.CPU_NAME or llvm.get_host_cpu_name(),
        "cpu features": fingerprint([",".join(sorted(features.split(","))).encode()]),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": " ".join(f"{name} {version(name)}" for name in PACKAGES),
    }


def read_file(path):
    """Return the header and the lines, by name, that `write_file` wrote."""
    rows = path.read_text().splitlines()
    header = dict(row[2:].split(": ", 1) for row in rows if row.startswith("# "))
    lines = csv.DictReader(row for row in rows if not row.startswith("# "))
    return header, {line["name"]: line for line in lines}


def write_file(path, header, lines):
    """Write a header and lines as CSV."""
    with path.open("w", newline="") as file:
        file.writelines(f"# {name}: {value}\n" for name, value in header.items())
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(lines)


def difference(old, new):
    """Return what differs between two lines of one case, in words, or None."""
    hashes = [name for name in ("stored", "answers", "printed") if old[name] != new[name]]
    if not hashes:
        return None
    before, after = float(old["value"]), float(new["value"])
    share = f", {(after - before) / abs(before):+.2g} of it" if before and after != before else ""
    return f"{', '.join(hashes)}; {old['measure']} {before:.9g} -> {after:.9g}{share}"


def run(names, cases, same_answers):
    """Run cases, print their lines, and return them by name."""
    lines, start = {}, time.perf_counter()
    for name in names:
        before = time.perf_counter()
        lines[name] = line_of(name, cases[name])
        print(*lines[name].values(), f"{time.perf_counter() - before:.1f} s", sep="  ", flush=True)
    for name in lines.keys() & same_answers.keys():
        memory = lines.get(same_answers[name])
        if memory and lines[name]["answers"] != memory["answers"]:
            print(f"{name}: answers are not those of {same_answers[name]!r}")
    print(f"{len(lines)} cases, {time.perf_counter() - start:.0f} s")
    return lines


def compare(lines, header, old):
    """Print how lines differ from those of the file, and return how many do."""
    for name, value in environment().items():
        if header.get(name) != value:
            print(f"{name}: the file has {header.get(name)!r}, here it is {value!r}.")
            print("  Hashes may differ for this reason alone.")
    found = {name: difference(old[name], line) for name, line in lines.items() if name in old}
    for name, words in found.items():
        if words:
            print(f"{name}: {words}")
    unknown = [name for name in lines if name not in old]
    print(f"{sum(map(bool, found.values()))} of {len(found)} fingerprints differ")
    if unknown:
        print(f"not in the file: {', '.join(unknown)}")
    return sum(map(bool, found.values()))


def report_coverage():
    """Print the lines of FOLDERS that no case executes; compiled functions are left out."""
    sys.path.append(sys.path.pop(0))  # not benchmarks/coverage.py
    import coverage

    lib = Path(find_spec("lodim").origin).parent
    watch = coverage.Coverage(
        data_file=None, config_file=False, source=[str(lib / name) for name in FOLDERS]
    )
    watch.exclude(COMPILED)
    with watch.collect():
        from fingerprint_cases import CASES, SAME_ANSWERS

        run(CASES, CASES, SAME_ANSWERS)
    for name in FOLDERS:
        watch.report(include=[str(lib / name / "*")], show_missing=True, skip_covered=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--coverage", action="store_true")
    asked = parser.parse_args()
    for library in ("OMP", "OPENBLAS", "MKL"):  # read when numpy is imported
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    if asked.coverage:
        return report_coverage()
    from fingerprint_cases import CASES, SAME_ANSWERS

    names = [c for c in CASES if not asked.names or any(part in c for part in asked.names)]
    lines = run(names, CASES, SAME_ANSWERS)
    header, old = read_file(FILE) if FILE.exists() else ({}, {})
    if asked.compare:
        return int(compare(lines, header, old) > 0)
    lines = {name: (old | lines)[name] for name in CASES if name in old | lines}
    write_file(FILE, environment(), lines.values())
    return None


if __name__ == "__main__":
    sys.exit(main())
