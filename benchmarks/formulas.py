"""The parsers of lodim and patsy on the same formulas: time, refusals, and hostile text.

    python benchmarks/formulas.py [--out FILE]

A row per formula and parser: seconds of the processor and the number of terms, or the error. patsy
is asked for `ModelDesc.from_formula`, lodim for its parsed and expanded right side. Each formula
has at most LIMIT seconds.
"""

import argparse
import signal
import time
from pathlib import Path

import pandas as pd
import patsy

from lodim.formula import formula, terms

FILE = Path(__file__).parent / "results" / "formulas.csv"
LIMIT = 20  # seconds for a formula


def names(n):
    return [f"x{i}" for i in range(n)]


def formulas():
    for p in (100, 1000, 10_000):
        yield f"{p:,} columns", f"y ~ {' + '.join(names(p))}"
    yield "2,000 columns less 1,000", f"y ~ {' + '.join(names(2000))} - {' - '.join(names(1000))}"
    yield "products of two of 100", f"y ~ ({' + '.join(names(100))})**2"
    for text in ("y ~ a b", "y ~ a|b", "y ~ a^2", "y ~ a %in% b", "y ~ a ++ b", "y ~ 'x'"):
        yield text, text
    yield "power 20 of 20 columns", f"y ~ ({' + '.join(names(20))})**20"
    yield "25 columns crossed", f"y ~ {'*'.join(names(25))}"


def by_lodim(text):
    parsed = formula.parse(text)
    return len(terms.expand(parsed.text, parsed.right, ()))


def by_patsy(text):
    found = patsy.ModelDesc.from_formula(text).rhs_termlist
    return sum(bool(term.factors) for term in found)


def too_long(*_):
    raise TimeoutError(f"over {LIMIT} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=FILE)
    asked, rows = parser.parse_args(), []
    signal.signal(signal.SIGALRM, too_long)
    for what, text in formulas():
        for name, parse in (("lodim", by_lodim), ("patsy", by_patsy)):
            row = {"formula": what, "parser": name, "terms": "", "error": ""}
            signal.alarm(LIMIT)
            start = time.process_time()
            try:
                row["terms"] = parse(text)
            except Exception as error:
                row["error"] = f"{type(error).__name__}: {str(error).splitlines()[0]:.60}"
            signal.alarm(0)
            rows.append(row | {"seconds": round(time.process_time() - start, 4)})
            print(*rows[-1].values(), sep="  ")
    pd.DataFrame(rows).to_csv(asked.out, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
