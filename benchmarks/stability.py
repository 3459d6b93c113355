"""How far rounding, orders, names, processors and seeds move the answers of default calls.

    python benchmarks/stability.py gbmap [--folder FOLDER] [--data NAME ...] [--noise 2] [--seeds 2]
                                         [--less 2]

Every model is fitted by its default call to data sets that come with lodim, to the synthetic ones
of SYNTHETIC, and to those of FOLDER (CSV files, response in the last column). Each row of
the table is one data set under one change:

noise    numbers times 1 + 1e-12 N(0, 1)
rows     rows in another order
columns  columns in another order
names    classes renamed so that their order is reversed
threads  one thread instead of all
seed     another seed
less     one row less, drawn at random: beside it another draw of the folds is to be judged
cpu      kernels compiled for another set of instructions (NUMBA_CPU_NAME)

`rms`: root mean square of the change of the predictions of all rows, in standard deviations of the
residuals (y - mean, or observed class - probability); `said`: what the model says of itself, which
must be the same; `flips`: of gbmap, how many of the five features with the largest mean absolute
effect have a mean effect of another sign.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import lodim as ld

SHIPPED = ld.data().set_index("name")["response"].to_dict()
OTHERS = {  # in a folder of public data sets: whether the response is a class
    "air_quality_gbmap": False, "australian": True, "california_housing": False, "fourclass": True,
    "german_numer": True, "higgs": True, "libras": True, "liver_disorders": True,
    "pima_diabetes": True, "spambase": True, "splice_uci": True, "superconductor_sample": False,
    "vowel": True,
}  # fmt: skip
SYNTHETIC = {  # rows and columns, and whether the response is a class
    "synthetic_800_80": (800, 80, True), "synthetic_2000_75": (2000, 75, True),
    "synthetic_2000_75_numbers": (2000, 75, False),
}  # fmt: skip
CPUS = ("generic", "haswell", "skylake-avx512")


def synthetic(n, p, classes):
    """Correlated columns, and a response of bends in two of them and slopes in six."""
    rng = np.random.default_rng([1, n, p])
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, p // 8)) @ rng.normal(size=(p // 8, p)) / 3
    score = 6.0 * (np.abs(X[:, 0]) - np.abs(X[:, 1]))
    score += 4.0 * X[:, 2:8] @ np.array([1.0, -1.0, 0.7, 0.5, 0.5, -0.3])
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(p)])
    if classes:
        return frame.assign(y=np.where(score + rng.logistic(size=n) > 0.0, "b", "a"))
    return frame.assign(y=score + rng.normal(size=n))


def read(name, folder, most):
    """Complete rows, `most` drawn at random of more, and the response."""
    if name in SYNTHETIC:
        frame, response = synthetic(*SYNTHETIC[name]), "y"
    elif name in SHIPPED:
        frame = ld.data(name)
        response = SHIPPED[name]
    else:
        frame = pd.read_csv(Path(folder) / f"{name}.csv")
        response = frame.columns[-1]
        if OTHERS[name]:
            frame[response] = "c" + frame[response].astype(str)
    frame = frame.dropna()
    frame = frame.sample(most, random_state=0) if len(frame) > most else frame
    return frame.reset_index(drop=True), response


def changed(frame, response, change, i):
    """The frame under a change, the arguments it needs, and back from its classes to the old."""
    rng = np.random.default_rng(100 + i)
    if change == "noise":
        numbers = frame.select_dtypes("number").columns
        noisy = {c: frame[c] * (1 + 1e-12 * rng.standard_normal(len(frame))) for c in numbers}
        return frame.assign(**noisy), {}, None
    if change == "rows":
        return frame.iloc[rng.permutation(len(frame))], {}, None
    if change == "columns":
        return frame[[frame.columns[k] for k in rng.permutation(frame.shape[1])]], {}, None
    if change == "names":
        levels = sorted(frame[response].astype(str).unique())
        names = {level: f"{len(levels) - k:03d}" for k, level in enumerate(levels)}
        other = frame.assign(**{response: frame[response].astype(str).map(names)})
        return other, {}, {v: k for k, v in names.items()}
    if change == "less":
        return frame.drop(index=rng.integers(len(frame))), {}, None
    return frame, {"seed": 1 + i} if change == "seed" else {"threads": 1}, None


def predicted(fit, frame, back=None):
    """(n,) numbers, or (n, K) probabilities by the sorted names of classes."""
    if fit.family.name == "gaussian":
        return fit.predict(frame).to_numpy()
    p = fit.predict(frame, "prob").rename(columns=str).rename(columns=back or {})
    return p[sorted(p.columns)].to_numpy()


def said(model, fit):
    """What a reader would quote."""
    if model == "gbmap":
        return f"m {fit.settings.m}, lambda {fit.settings.lambda_:.3g}"
    if model == "proset":
        return f"{len(fit.estimates.w)} prototypes"
    if model == "costnet":
        prices = fit.prices()
        return f"cost {fit.cost:.4g}, list {[round(float(c), 6) for c in prices['cost']]}"
    if model == "melm":
        return f"gamma {fit.settings.gamma:.3g}, divergence {fit.glance()['divergence'][0]:.4g}"
    return "; ".join(sorted(fit.tidy()["term"]))


def effects(fit, back=None):
    """Mean effect and mean absolute effect of each term (and class), by the old names of classes.

    Those of two classes are on the second in order: where another one is second, signs turn.
    """
    table = fit.tidy()
    if "level" in table:
        level = table["level"].astype(str).replace(back or {})
        table = table.assign(term=level + ": " + table["term"].astype(str))
    elif back:
        table = table.assign(estimate=-table["estimate"])
    return table.set_index("term")


def flips(one, other, back=None):
    """Of the five largest effects, how many have another sign; `back` as of `changed`.

    Features that only one of the fits transforms are left out."""
    a, b = effects(one), effects(other, back)
    top = a["std_estimate_abs"].nlargest(5).index.intersection(b.index)
    return int((np.sign(a["estimate"][top]) != np.sign(b["estimate"][top])).sum())


def default(model, frame, response, arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        return getattr(ld, model)(f"Q('{response}') ~ .", frame, **arguments)


def elsewhere(model, name, folder, most, cpu):
    """Predictions of a default call whose kernels are compiled for another processor."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "p.npy"
        command = [sys.executable, __file__, model, "--data", name, "--save", str(out)]
        command += ["--rows", str(most)]
        command += ["--folder", str(folder)] if folder else []
        environment = os.environ | {"NUMBA_CPU_NAME": cpu, "NUMBA_CACHE_DIR": place}
        words = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return np.load(out), words.stdout.strip()


def rows(model, name, arguments):
    """The table's rows of one data set."""
    frame, response = read(name, arguments.folder, arguments.rows)
    if model == "melm" and frame[response].dtype.kind in "if":
        return
    one = default(model, frame, response, {})
    p = predicted(one, frame)
    numeric = one.family.name == "gaussian"
    if numeric:
        sd = (frame[response] - p).std()
    else:
        levels = sorted(frame[response].astype(str).unique())
        observed = frame[response].astype(str).to_numpy()[:, None] == np.array(levels)
        sd = (observed - p).std()
    changes = [("noise", i) for i in range(arguments.noise)] + [("rows", 0), ("columns", 0)]
    changes += [] if numeric else [("names", 0)]
    changes += [("threads", 0)] + [("seed", i) for i in range(arguments.seeds)]
    changes += [("less", i) for i in range(arguments.less)]
    for change, i in changes:
        other, extra, back = changed(frame, response, change, i)
        fit = default(model, other, response, extra)
        asked = frame if change == "less" else other.sort_index()
        q, words = predicted(fit, asked, back), said(model, fit)
        turned = flips(one, fit, back) if model == "gbmap" else np.nan
        yield name, change, np.sqrt(np.mean((p - q) ** 2)) / sd, said(model, one), words, turned
    for cpu in CPUS if arguments.cpu else ():
        q, words = elsewhere(model, name, arguments.folder, arguments.rows, cpu)
        yield name, cpu, np.sqrt(np.mean((p - q) ** 2)) / sd, said(model, one), words, np.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=["gbmap", "proset", "costnet", "melm", "ripr"])
    parser.add_argument("--folder", help="data sets that do not come with lodim")
    parser.add_argument("--data", nargs="+", help="names of data sets; all by default")
    parser.add_argument("--rows", type=int, default=50_000, help="at most, drawn at random")
    parser.add_argument("--noise", type=int, default=2, help="draws of noise")
    parser.add_argument("--seeds", type=int, default=2, help="other seeds")
    parser.add_argument("--less", type=int, default=2, help="draws of a row that is left out")
    parser.add_argument("--cpu", action="store_true", help="other sets of instructions too")
    parser.add_argument("--out", help="CSV file of the table")
    parser.add_argument("--save", help=argparse.SUPPRESS)  # of `elsewhere`
    arguments = parser.parse_args()
    if arguments.save:
        frame, response = read(arguments.data[0], arguments.folder, arguments.rows)
        fit = default(arguments.model, frame, response, {})
        np.save(arguments.save, predicted(fit, frame))
        print(said(arguments.model, fit))
        return
    table = []
    for name in arguments.data or [*SHIPPED, *SYNTHETIC, *(OTHERS if arguments.folder else ())]:
        for row in rows(arguments.model, name, arguments):
            table.append(row)
            print("{:18} {:14} rms {:.4f}  {} -> {}  flips {}".format(*row), flush=True)
            frame = pd.DataFrame(table, columns=["data", "change", "rms", "was", "is", "flips"])
            if arguments.out:
                frame.round(5).to_csv(arguments.out, index=False)


if __name__ == "__main__":
    main()
