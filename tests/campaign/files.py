"""Many damaged and forged files, loaded and used: `python tests/campaign/files.py --n 50000`.

Half of the files are damaged or edited, and half are forged with checksums made right. Each is
loaded, and what was loaded predicts, prints and more, in a process of its own. Prints counts by
what came of it, and exits with 1 where something happened that must not: another answer of a
damaged file, an error that is not lodim's, a crash, a hang, much memory, a library's warning.
"""

import argparse
import collections
import contextlib
import copy
import hashlib
import io
import json
import multiprocessing
import multiprocessing.connection
import os
import resource
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import numpy as np
import pandas as pd

import lodim as ld
from lodim.fitting import storage as store

if os.path.isdir("/dev/shm"):
    tempfile.tempdir = "/dev/shm"  # files that are soon gone need no disk
SECONDS, GIGABYTES = 20, 2
SLOW = {"plot": 0.1, "update": 0.1}  # shares in which they are among what may be asked
BAD = ("silent difference", "foreign error", "crash", "hang", "memory", "library's warning")
GOOD = ("refused at load", "same answers", "other answers, checksums right", "refused later")

# What is saved ------------------------------------------------------------------------------------


def frame(n=60):
    """Rows with a number, two and three classes, a category, weights and an offset."""
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    df["y"] = df["a"] + df["b"] ** 2 + 0.1 * rng.normal(size=n)
    df["k"] = np.where(df["a"] + 0.5 * rng.normal(size=n) > 0, "yes", "no")
    df["k3"] = np.where(df["a"] > 0.5, "u", np.where(df["b"] > 0, "v", "w"))
    df["g"], df["w"] = rng.choice(list("xyz"), n), rng.integers(1, 4, n) * 1.0
    df["o"] = rng.normal(size=n)
    df["t"] = pd.Categorical(np.array(["lo", "mid", "hi"])[rng.integers(0, 3, n)],
                             ["lo", "mid", "hi", "top"], ordered=True)  # fmt: skip
    return df


def holes(df):
    """The rows with values missing here and there."""
    df = df.copy()
    df.loc[::9, "a"], df.loc[::11, "k"], df.loc[::13, "y"] = np.nan, None, np.nan
    return df


def fits(df):
    """Fits of all models, of several kinds each, by name."""
    few = {"m": 3, "lambda_": 0.05, "threads": 1}
    costs = {"a": 1, "b": 2, "c": 0, "d": 1, "g": 1}
    series = {"s": ["s1", "s2"]}
    spline = "bs(a, df=4, lower_bound=-9, upper_bound=9)"
    one = {"threads": 1}
    return {
        "gbmap numeric": ld.gbmap("y ~ a + b + c", df, m=3, **one),
        "gbmap binomial": ld.gbmap("k ~ a + b + g", df, standardize=False, **few),
        "gbmap multinomial": ld.gbmap("k3 ~ a + b", df, weights="w", **few),
        "gbmap terms": ld.gbmap(
            f"np.exp(y) ~ {spline} + cr(b, df=4) + C(g, Sum) + a:g + scale(c) + I(d > 0)",
            df, offset="o", dtype="float32", **few,
        ),
        "gbmap te": ld.gbmap("y ~ te(cr(a, df=3), cc(b, df=3)) + center(c)", df, **few),
        "gbmap joint": ld.gbmap("y ~ a + g + t", holes(df), groups="k3", refit="joint", **few),
        "gbmap first": ld.gbmap("y ~ a + b", df, activation="identity", **few).first(2),
        "proset numeric": ld.proset("y ~ a + b", df, n_batches=2, **one),
        "proset density": ld.proset("y ~ a + b", df, loss="density", **one),
        "proset binomial": ld.proset("k ~ a + b + g", df, lambda_v=0.03, **one),
        "proset multinomial": ld.proset("k3 ~ a + b + c", df, n_batches=2, **one).shrink(),
        "proset cv": ld.cv(ld.proset, "k ~ a + b", df, n_lambda=2, **one).best,
        "proset gaps": ld.proset("k3 ~ a + g + t", holes(df), lambda_v=0.03, **one),
        "melm binomial": ld.melm("k ~ a + b + c", df, **one),
        "melm multinomial": ld.melm("k3 ~ a + b + c + d", df, k=3, gamma=1.0, **one),
        "melm none": ld.melm("~ a + b + c", df, **one),
        "ripr binomial": ld.ripr("k ~ a + b + c + d", df, **one),
        "ripr multinomial": ld.ripr("k3 ~ a + b + c", df, lambda_=0.2, **one),
        "ripr ratio": ld.ripr("k ~ a + b", df, method="assignment", order="o", **one),
        "ripr indicator": ld.ripr("k3 ~ a + g + t", holes(df), missing="indicator", **one),
        "ripr missing": ld.ripr("k ~ a + b + g", holes(df), **one),
        "ripr numeric": ld.ripr("y ~ a + b + c", holes(df), **one),
        "ripr clusters": ld.ripr("~ a + b + c", df, n_clusters=3, max_dim=3, **one),
        "ripr several": ld.ripr("k + y ~ a + b + c", df, **one),
        "costnet numeric": ld.costnet("y ~ a + b + c + g", df, costs=costs, **one),
        "costnet binomial": ld.costnet("k ~ a + b", df, costs=costs, budget=2, **one),
        "costnet multinomial": ld.costnet("k3 ~ a * b", df, costs=costs, **one),
        "costnet lambda": ld.costnet("y ~ a + b", df, lambda_=0.05, **one),
        "costnet gaps": ld.costnet("k3 ~ a + g + t", holes(df), costs=costs | {"t": 1}, **one),
        "glm numeric": ld.glm("y ~ a * g + t", df, covariance="HC3", offset="o"),
        "glm binomial": ld.glm("k ~ a + b + t", holes(df), missing="indicator"),
        "glm multinomial": ld.glm("k3 ~ b + c", df, weights="w"),
        "glm poisson": ld.glm("w ~ a + bs(b, df=4)", df, family="poisson", clusters="g"),
        "costnet alternatives": ld.costnet(
            "y ~ a + b + c + d", df, costs=costs | {"s1": 1, "s2": 2},
            depends_on={"c": ["s"], "d": ["s"]}, alternatives=series, **one,
        ),
    }  # fmt: skip


def more(fit, df):
    """What can be asked of a fit beside what all are asked: a dict of callables."""
    row, first = df.iloc[[3]], getattr(fit, "_first", fit)
    asked = {
        "glance": fit.glance, "augment": lambda: fit.augment(df),
        "evaluate": lambda: fit.evaluate(df), "again": lambda: again(fit, df),
        "update": lambda: fit.update(df),
        "html": lambda: (fit._repr_html_(), fit.summary().as_latex()),
    }  # fmt: skip
    for name in ("to_python", "to_sql", "to_onnx"):
        asked[name] = getattr(first, name)
    asked["missing"] = lambda: first.predict(df.assign(g="new", a=None), new_levels="missing")
    for kind in getattr(first, "types", ()):
        asked[f"predict {kind}"] = lambda kind=kind: first.predict(df, kind)
    for name in (
        "coef", "learners", "projections", "drift_threshold", "batches", "feature_weights",
        "pairs", "starts", "assignment", "clusters", "prices", "bought", "path", "export",
        "reference", "shrink", "covariance",
    ):  # fmt: skip
        if callable(getattr(first, name, None)):
            asked[name] = getattr(first, name)
    for name in ("neighbours", "drift", "regions", "distance", "votes", "gains", "staged"):
        if hasattr(first, name):
            asked[name] = lambda name=name: getattr(first, name)(df)
    for kind in PLOTS:
        asked[f"plot {kind}"] = lambda kind=kind: draw(first, df, kind)
    if hasattr(first, "explain"):
        asked["explain"] = lambda: str(first.explain(row))
    return asked


def again(fit, df):
    """Saved and loaded once more, it says the same."""
    with tempfile.TemporaryDirectory() as folder:
        fit.save(os.path.join(folder, "f"))
        assert answers(ld.load(os.path.join(folder, "f")), df) == answers(fit, df)


PLOTS = ("loss", "effects", "embedding", "drift", "view", "loadings", "starts", "data", "shares",
         "objective", "cost", "path", "graph", "weights", "map", "scatter", "surface",
         "coefficients", "residuals", "qq", "leverage")  # fmt: skip


def draw(fit, df, kind):
    """A plot of a fit, where it has such."""
    from matplotlib import pyplot

    try:
        ax = fit.plot(kind, **({"data": df} if kind in ("drift", "scatter", "map") else {}))
        (ax.flat[0] if isinstance(ax, np.ndarray) else ax).figure.canvas.draw()
    finally:
        pyplot.close("all")


# What is done to files ----------------------------------------------------------------------------

NUMBERS = [0, 1, -1, 2, 3, 63, 10**3, 10**9, 2**31, 2**62, -(2**63), 2**63 - 1]
FLOATS = [0.0, -0.0, 0.5, -1.0, 1e-320, 1e-9, 1e9, 1e99, -1e150, 1e199, 1e308, -1e308]
FLOATS += [np.nan, np.inf, -np.inf]
SCALARS = [None, True, False, *NUMBERS, 10**30, *FLOATS, "", "x", "a", "y", "\0", "é", "\ud800"]
SCALARS += ["auto", "cuda", "softplus", "<array>", "a" * 5000, [], {}, [1], [[]], {"a": 1}]
SCALARS += ["bs(a, df=26, degree=25)", "__import__('os')", "I(a)", "C(a)", "np.log(a)", "a b"]


def damaged(content, parts, bombs, rng):
    """The bytes of a file with something wrong that its checksums do not know of."""
    how = rng.integers(8)
    content, parts = bytearray(content), dict(parts)
    name = str(rng.choice(list(parts)))
    if how <= 2:
        for at in rng.integers(0, len(content), rng.integers(1, 9)):
            content[at] ^= 1 << rng.integers(8) if how else rng.integers(1, 256)
        return bytes(content)
    if how == 3:
        lo, hi = np.sort(rng.integers(0, len(content), 2))
        return bytes([content[:lo], content[:lo] + content[hi:], content + content[lo:hi]][
            rng.integers(3)])  # fmt: skip
    if how == 4 and rng.random() < 0.05:
        return bombs[rng.integers(len(bombs))]
    if how in (4, 5):
        kind = rng.integers(4)
        other = str(rng.choice([*parts, "state.jsonx", "../x", "arrays/-1.npy", "é", "arrays/"]))
        if kind == 0:
            del parts[name]
        elif kind == 1:
            parts[other] = parts.pop(name)
        elif kind == 2:
            return pack([*parts.items(), (name, parts.get(other, b""))])
        else:
            parts[other] = parts[name]
        return pack(parts.items())
    if how == 6:
        edited = bytearray(parts[name])
        edited[rng.integers(len(edited))] ^= 1 << rng.integers(8)
        return pack((parts | {name: bytes(edited)}).items())
    changed = forged(store_state(content), rng)
    parts = parts | {k: v for k, v in changed.items() if k != store.SUMS}
    return pack(parts.items())


def store_state(content):
    """Kind and state of a file's bytes."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        return store.read(file.name)


def forged(saved, rng):
    """Members of a file that holds another state, with checksums that fit."""
    kind, state = saved
    for _ in range(100):
        changed = copy.deepcopy(state)
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            change(changed, rng)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "f")
            try:
                store.write(path, kind, changed)
            except store.StoreError:
                continue
            return unpack(Path(path).read_bytes())
    return None


def twisted(parts, rng):
    """Members changed as text and bytes, with checksums made right."""
    parts = {k: v for k, v in parts.items() if k != store.SUMS}
    name = str(rng.choice(list(parts)))
    content = bytearray(parts[name])
    how = rng.integers(4)
    if how == 0:
        content[rng.integers(len(content))] = rng.integers(256)
    elif how == 1:
        content = content[: rng.integers(len(content))]
    elif how == 2 and name.endswith(".npy"):
        swaps = [(b"<f8", b"<i8"), (b"<f8", b">f8"), (b"<f8", b"|O8"), (b"<i8", b"<u8")]
        swaps += [(b"False", b"True "), (b"(", b"(2, "), (b"<f8", b"<c8"), (b",)", b"0)")]
        content = content.replace(*swaps[rng.integers(len(swaps))], 1)
    elif name.endswith(".json"):
        words = json.dumps(SCALARS[rng.integers(len(SCALARS))]).encode()
        at = [k for k, c in enumerate(content) if c in b"[{:,"]
        at = at[rng.integers(len(at))] + 1
        end = min(k for k in (content.find(c, at) for c in (b",", b"}", b"]")) if k > 0)
        content[at:end] = words
    else:
        content = parts[str(rng.choice(list(parts)))]
    parts[name] = bytes(content)
    return parts | {store.SUMS: store._sums(parts)}


def change(value, rng):
    """Change something within nested dicts and lists, in place."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys or rng.random() < (0.04 if isinstance(value, dict) else 0.3):
            return change_container(value, keys, rng)
        key = keys[rng.integers(len(keys))]
        inner = value[key]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.97:
            value = inner
            continue
        value[key] = changed_array(inner, rng) if isinstance(inner, np.ndarray) else any_scalar(rng)
        return None


def change_container(value, keys, rng):
    if not keys:
        return
    key = keys[rng.integers(len(keys))]
    how = rng.integers(5)
    if isinstance(value, dict):
        if how == 0:
            value[f"{key}_"] = value.pop(key)
        elif how == 1:
            value["more"] = any_scalar(rng)
        elif how == 2:
            value[key] = value[keys[rng.integers(len(keys))]]
        else:
            del value[key]
    elif how == 0:
        value.pop()
    elif how == 1:
        value.append(value[key])
    elif how == 2:
        value.reverse()
    elif how == 3:
        value[key] = any_scalar(rng)
    else:
        del value[rng.integers(len(value)) :]


def any_scalar(rng):
    return copy.deepcopy(SCALARS[rng.integers(len(SCALARS))])


def changed_array(array, rng):
    """An array with other values, of another shape or type."""
    how, array = rng.integers(12), array.copy()
    if how <= 4 and array.size:
        flat = array.reshape(-1)
        pool = FLOATS if array.dtype.kind == "f" else NUMBERS
        at = rng.integers(0, flat.size, 1 if how < 3 else flat.size)
        flat[at] = np.array(pool)[rng.integers(len(pool), size=len(at))].astype(array.dtype)
        return flat.reshape(array.shape)
    if how == 5:
        return array.astype(rng.choice(["f4", "f2", "i4", "i8", "f8", "?", "c16", ">f8", "u8"]))
    if how == 6:
        return rng.permutation(array) if array.ndim else array
    if how == 7:
        return -array if array.dtype.kind in "fi" else ~array
    axis = rng.integers(max(array.ndim, 1))
    shapes = [
        lambda: np.delete(array, 0, axis), lambda: array.reshape(-1), lambda: array.T,
        lambda: np.concatenate([array, array], axis), lambda: array[None], lambda: array[:0],
        lambda: np.zeros((), array.dtype), lambda: array.reshape(*array.shape, 1),
        lambda: np.full(array.shape, FLOATS[rng.integers(len(FLOATS))]),
    ]  # fmt: skip
    try:
        return shapes[rng.integers(len(shapes))]()
    except (IndexError, ValueError):  # it has not so many axes, or values
        return array[None]


def pack(parts):
    """Bytes of a zip."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # two members of one name
        for name, content in parts:
            archive.writestr(name, content)
    return stream.getvalue()


def unpack(content):
    """Members of a zip."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def make_bombs(parts):
    """Files in which one member is large once it is unpacked."""
    out, block = [], bytes(2**20)
    for name in ("state.json", "arrays/0.npy", store.SUMS):
        for megabytes in (200, 1500):
            stream = io.BytesIO()
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
                for other, content in parts.items():
                    if other != name:
                        archive.writestr(other, content)
                with archive.open(name, "w", force_zip64=True) as member:
                    for _ in range(megabytes):
                        member.write(block)
            out.append(stream.getvalue())
    return out


# What comes of it ---------------------------------------------------------------------------------


class Campaign:
    """Files by number: what each is, and what comes of it."""

    def __init__(self, seed):
        self.seed, self.df, self.files = seed, frame(), {}
        self.folder = tempfile.mkdtemp()
        for name, fit in fits(self.df).items():
            path = os.path.join(self.folder, "own")
            fit.save(path)
            content = Path(path).read_bytes()
            self.files[name] = content, unpack(content), store.read(path), answers(fit, self.df)
        self.bombs = make_bombs(self.files["gbmap numeric"][1])

    def content(self, number):
        """Name of the kind, whether checksums are right, and the bytes of a file."""
        rng = np.random.default_rng([self.seed, number])
        name = list(self.files)[rng.integers(len(self.files))]
        content, parts, saved, _ = self.files[name]
        if number % 2 == 0:
            return name, False, damaged(content, parts, self.bombs, rng), rng
        made = forged(saved, rng) if rng.random() < 0.85 else twisted(parts, rng)
        return name, True, pack(made.items()), rng

    def run(self, number):
        """What comes of a file: a verdict, and words."""
        name, right, content, rng = self.content(number)
        path = os.path.join(self.folder, str(os.getpid()))
        with open(path, "wb") as file:
            file.write(content)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            verdict, words = self.used(path, right, self.files[name][3], rng)
        foreign = [w for w in caught if not w.category.__module__.startswith("lodim")]
        if verdict in GOOD and foreign:
            one = foreign[0]
            verdict = "library's warning"
            words = f"{one.category.__name__}: {one.message} ({one.filename}:{one.lineno}) {words}"
        return verdict, f"{name}: {words}"

    def used(self, path, right, expected, rng):
        try:
            fit = ld.load(path)
        except ld.LodimError as error:
            return "refused at load", str(error)
        except Exception as error:
            return "foreign error", told("load", error)
        verdict = "same answers"
        asked = "answers"
        try:
            if answers(fit, self.df) != expected:
                verdict = "other answers, checksums right" if right else "silent difference"
            methods = more(fit, self.df)
            names = [n for n in methods if rng.random() < SLOW.get(n.split()[0], 1.0)]
            for asked in rng.choice(names, 2):
                with contextlib.suppress(ld.LodimError):
                    methods[asked]()
        except ld.LodimError as error:
            verdict = "refused later" if right else "silent difference"
            return verdict, f"{asked}: {error}"
        except Exception as error:
            return "foreign error", told(asked, error)
        return verdict, asked


def answers(fit, df):
    """A digest of what a fit says."""
    shown = [repr(fit), str(fit.summary()), fit.tidy().to_csv(), fit.predict(df).to_csv()]
    return hashlib.sha256("\n".join(shown).encode("utf-8", "replace")).hexdigest()


def told(asked, error):
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(last.filename)}:{last.lineno}"
    return f"{asked}: {type(error).__name__}: {error!s:.200} ({where})"


def worker(campaign, pipe):
    """Answer numbers of files with what came of them, until a number is None."""
    resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
    sys.stdout = sys.stderr = io.StringIO()
    for number in iter(pipe.recv, None):
        verdict = campaign.run(number)
        gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        if gigabytes > GIGABYTES:
            verdict = "memory", f"{gigabytes:.1f} GB; {verdict[1]}"
        pipe.send(verdict)


class Worker:
    """A process that runs files, replaced where it ends or takes too long."""

    def __init__(self, campaign):
        self.campaign, self.number = campaign, None
        self.start()

    def start(self):
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=worker, args=(self.campaign, other), daemon=True)
        self.process.start()
        other.close()

    def give(self, number):
        self.number, self.since = number, time.monotonic()
        self.pipe.send(number)

    def result(self):
        """The verdict, or None while it works."""
        try:
            if self.pipe.poll():
                verdict = self.pipe.recv()
                if verdict[0] != "memory":
                    return verdict
            elif time.monotonic() - self.since < SECONDS:
                return None
            else:
                verdict = "hang", f"over {SECONDS} s"
        except EOFError:
            self.process.join()
            verdict = "crash", f"exit {self.process.exitcode}"
        self.process.kill()
        self.process.join()
        self.start()
        return verdict


def run(campaign, numbers, jobs, out):
    """Put verdicts by number in `out`."""
    workers, waiting = [Worker(campaign) for _ in range(jobs)], iter(numbers)
    busy = [w for w in workers if give_next(w, waiting)]
    while busy:
        for one in list(busy):
            verdict = one.result()
            if verdict is not None:
                out[one.number] = verdict
                if len(out) % 5000 == 0:
                    print(f"... {len(out)}", file=sys.stderr, flush=True)
                if not give_next(one, waiting):
                    busy.remove(one)
        multiprocessing.connection.wait([w.pipe for w in busy], timeout=1.0)
    for one in workers:
        one.process.kill()


def give_next(one, waiting):
    number = next(waiting, None)
    if number is not None:
        one.give(number)
    return number is not None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1000, help="number of files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", type=int, help="run one file here, and show what it does")
    given = parser.parse_args()
    campaign = Campaign(given.seed)
    if given.only is not None:
        print(*campaign.run(given.only), sep=": ")
        return 0
    out: dict = {}
    with contextlib.suppress(KeyboardInterrupt):  # what is done by then is shown
        run(campaign, range(given.n), given.jobs, out)
    counts = collections.Counter(
        (verdict, "edited" if number % 2 == 0 else "forged") for number, (verdict, _) in out.items()
    )
    print(f"{len(out)} files, seed {given.seed}: {len(campaign.files)} kinds of fits")
    print(f"{'':34}{'damaged':>10}{'checksums right':>18}")
    for verdict in (*GOOD, *BAD):
        print(f"{verdict:34}{counts[verdict, 'edited']:>10}{counts[verdict, 'forged']:>18}")
    for verdict in BAD:
        found = sorted((k, words) for k, (v, words) in out.items() if v == verdict)
        for number, words in found[:20]:
            print(f"{verdict}: --seed {given.seed} --only {number}: {words}")
    return int(any(verdict in BAD for verdict, _ in out.values()))


if __name__ == "__main__":
    sys.exit(main())
