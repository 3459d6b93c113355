"""How far fits that are written out are from `predict`, on the data sets that come with lodim.

    python benchmarks/exports.py [--sets heart,wine] [--out benchmarks/results/exports.csv]

Each fit is written as plain Python, as a query that DuckDB runs, and as a model that ONNX Runtime
runs. `gap` is the largest difference over the size of the answers, at least one; 5 % of the cells
of the rows that are answered are missing. Needs the extra `test`.
"""

import argparse
import sys
from pathlib import Path

import pandas as pd

import lodim as ld

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from export.targets import TARGETS, expected, gap
from export.test_models import CASES, SETS, TITLES, with_holes

ROWS, ASKED = 600, 200


def gaps(name, model):
    """A row for each target: what it is, and the gap."""
    data = ld.data(name)
    data = data.sample(min(ROWS, len(data)), random_state=0).reset_index(drop=True)
    data = data.dropna(axis="columns", thresh=len(data) // 2)
    new = with_holes(data.head(ASKED))
    fit = getattr(ld, model)(f"{TITLES[name]} ~ .", data=data, **CASES[model])
    want = expected(fit, new)
    for target, (run, _) in TARGETS.items():
        yield {"set": name, "model": model, "target": target, "gap": gap(run(fit, new), want)}


def main():
    """Print the worst gap of each model and target, and write all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = [
        row for name in args.sets.split(",") for model in SETS[name] for row in gaps(name, model)
    ]
    frame = pd.DataFrame(rows)
    print(frame.pivot_table(index="model", columns="target", values="gap", aggfunc="max"))
    if args.out:
        frame.to_csv(args.out, index=False, float_format="%.1e")


if __name__ == "__main__":
    main()
