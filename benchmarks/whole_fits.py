"""Whole fits of two installations of lodim in turn: is one slower than the other?

    python benchmarks/whole_fits.py OTHER_PYTHON [--rounds 5] [--cases melm,import] [--out FILE]

Each round runs every case once with this Python and once with the other, each in a process of its
own that has fitted once before, so that kernels are compiled. Printed are the least seconds of both
and their ratio; imports and the first print too, of processes that do nothing else.
"""

import argparse
import csv
import subprocess
import sys
import tempfile

DATA = """
import warnings
import numpy as np, pandas as pd
import lodim as ld
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
def wide(n, p):
    X = rng.normal(size=(n, p))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(p)])
    return frame.assign(y=np.abs(X[:, 0]) + X[:, 1] + rng.normal(size=n))
def classes(n, p):
    frame = wide(n, p)
    return frame.drop(columns="y").assign(c=np.where(frame["y"] > 0.8, "a", "b"))
def tree(p):
    return {f"x{v}": [f"x{(v - 1) // 2}"] for v in range(1, p)}
"""
CASES = {  # what is made first, and what is timed
    "import": ("", "import lodim"),
    "first print": (
        "",
        "import lodim as ld; data = {'x': [1., 2, 3, 5], 'y': [1., 3, 2, 4]}; "
        "repr(ld.gbmap('y ~ x', data, m=1, lambda_=.1))",
    ),
    "gbmap 1e6 x 25": ("df = wide(1_000_000, 25)", "ld.gbmap('y ~ .', df, m=2, lambda_=0.01)"),
    "gbmap chosen": ("df = ld.data('heart')", "ld.gbmap('disease ~ .', df)"),
    "proset classes": (
        "df = classes(2000, 30)",
        "ld.proset('c ~ .', df, n_batches=2, lambda_v=1e-3)",
    ),
    "costnet tree": ("df = wide(2000, 63)", "ld.costnet('y ~ .', df, depends_on=tree(63))"),
    "melm": ("df = ld.data('ionosphere')", "ld.melm('quality ~ .', df, gamma=1.0)"),
    "ripr losses": ("df = classes(1500, 20)", "ld.ripr('c ~ .', df, lambda_=0.5)"),
}
COLD = ("import", "first print")  # of a fresh process
WORK = """
import time
{data}
{first}
times = []
for _ in range({repeats}):
    start = time.perf_counter()
    {call}
    times.append(time.perf_counter() - start)
print(min(times))
"""


def seconds(python, name):
    """Seconds of a case with a Python."""
    first, call = CASES[name]
    text = WORK.format(data="", first="", call=call, repeats=1)
    if name not in COLD:  # once before, so that kernels are compiled and loaded
        text = WORK.format(data=DATA, first=f"{first}\n{call}", call=call, repeats=2)
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([python, "-c", text], capture_output=True, text=True, cwd=folder)
    if run.returncode:
        sys.exit(run.stderr)
    return float(run.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--out")
    args = parser.parse_args()
    rows = []
    for name in args.cases.split(","):
        pairs = [
            [seconds(p, name) for p in (sys.executable, args.other)] for _ in range(args.rounds)
        ]
        here, other = map(min, zip(*pairs, strict=True))
        ratios = sorted(a / b for a, b in pairs)
        rows.append([name, here, other, here / other, ratios[0], ratios[-1]])
        print(
            "{:16} here {:.3f} s, other {:.3f} s, ratio {:.2f} ({:.2f} to {:.2f})".format(*rows[-1])
        )
    if args.out:
        with open(args.out, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(
                ["case", "here", "other", "ratio_of_least", "least_ratio", "most_ratio"]
            )
            writer.writerows([r[0], *(f"{v:.4f}" for v in r[1:])] for r in rows)


if __name__ == "__main__":
    main()
