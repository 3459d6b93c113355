"""Coverage of intervals on truths that are known, by parts.

    python benchmarks/coverage.py bootstrap [--sets 200] [--replicates 200] [--only NAME ...]

Each part is a file beside this one, coverage_PART.py, and writes results/coverage_PART.csv: a row
has the share of data sets whose interval holds the truth, and its standard error.
"""

import argparse
import runpy
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PARTS = {file.stem.partition("_")[2]: file for file in sorted(FOLDER.glob("coverage_*.py"))}

if __name__ != "__main__":
    # numba looks for the package of that name, which this file is not.
    raise ImportError("benchmarks/coverage.py is a program")
parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("part", choices=PARTS)
known, rest = parser.parse_known_args()
runpy.run_path(str(PARTS[known.part]))["main"](rest)
