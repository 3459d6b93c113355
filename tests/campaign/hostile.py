"""Hostile names, columns, frames and arguments, drawn at random."""

import datetime
import decimal

import numpy as np
import pandas as pd

SCRIPTS = [
    "मूल्य", "ราคา", "விலை", "মূল্য", "قِيمَة", "מחיר", "价格", "値段", "가격", "τιμή", "цена", "å̊", "µ",
    "μ", "ﬁ", "℮", "A\U000e0100", "😀", "👩‍⚕️", "\u202eabc", "é", "é",
]  # fmt: skip
STRANGE = [
    "a b", "1st", "class", "C", "Q", "np", "lambda", "x:z", "(Intercept)", "`q`", "I(x)", "Q('a')",
    "=1+1", "+1", "-1", "@x", "\tx", "\rx", "a\nb", "a\0b", "$", "$x$", "price_$", "a$b$", r"\$",
    r"$\frac$", "_yes", "__", "", " ", ".", ".fitted", ".class", "a,b", 'a"b', "a'b", "a\\b", "%s",
    "{x}", "<b>", "&amp;", "y ~ x", "~", "NA", "nan", "None", "True", "0", "x" * 300, "é" * 300,
    "a^b", "*", "term", "estimate", "level", "index", "weights", "offset", "response", "\x1b[31m",
    "\u200b", "\ufeff", "a  b", "--x", "#", "'", '"', "[x]", "x[a]", "a:b[c]", "x1", "view",
]  # fmt: skip
SCALES = (*[1.0] * 30, *[1e-3, 1e3] * 4, 1e-300, 1e-150, 1e-20, 1e20, 1e90, 1e150, 1e300)
ODD = (
    None, -1, 0, 1, 2.5, np.nan, np.inf, -np.inf, 1e308, 1e-320, "abc", "", b"x", [], {}, (), True,
    object(), np.float32(1.0), np.int64(2), pd.NA, pd.NaT, "y", [1, 2], ["a", None], {"a": 1},
    np.zeros(3), np.zeros((2, 2)), np.array([]), np.array(["a"]), pd.Series([1.0, np.nan]),
    pd.DataFrame(), pd.DataFrame({"a": [1]}), 1j, {1, 2}, decimal.Decimal(1), 10**30, -(10**30),
    datetime.date(2020, 1, 1), int, len, "\0", "x" * 1000, range(3), (1, "a"), {1: {2: 3}},
    "response",
)  # fmt: skip


def pick(rng, values):
    """One of some values, as it is."""
    return values[int(rng.integers(len(values)))]


def names(rng, n):
    """n names, mostly distinct: plain, strange or of any script."""
    out = []
    for k in range(n):
        u = rng.random()
        if u < 0.4:
            name = f"v{k}"
        elif u < 0.7:
            name = pick(rng, SCRIPTS)
        elif u < 0.95:
            name = pick(rng, STRANGE)
        else:
            name = "".join(map(chr, rng.integers(0, 0xD7FF, int(rng.integers(1, 6)))))
        out.append(name if name not in out or rng.random() < 0.02 else f"{name}{k}")
    return out


def numbers(rng, n):
    """Numbers of some scale, perhaps with ties, gaps, infinities."""
    x = rng.normal(size=n) * pick(rng, SCALES)
    u = rng.random()
    if u < 0.1:
        x = np.full(n, x[0] if n else 0.0)
    elif u < 0.25:
        x = rng.integers(0, 4, n).astype(float)
    elif u < 0.3:
        x += 1e9
    elif u < 0.35:
        x = np.exp(5.0 * rng.normal(size=n))
    return x


def _levels(rng):
    return [*dict.fromkeys(names(rng, int(rng.integers(2, 6))))]


def _text(rng, n):
    return np.array(_levels(rng), object)[rng.integers(0, 2, n)]


def _category(rng, n):
    levels = _levels(rng)
    used = max(1, len(levels) - int(rng.integers(0, 2)))
    made = pd.Categorical.from_codes(rng.integers(0, used, n), levels, ordered=rng.random() < 0.5)
    return pd.Series(made)


def _dates(rng, n):
    return pd.Series(pd.date_range("2020-01-01", periods=n, freq="D"))


def _mixed(rng, n):
    return np.array([pick(rng, (1, "a", None, 2.5, True)) for _ in range(n)], object)


def _arrow(rng, n):
    kind = pick(rng, ("double[pyarrow]", "int64[pyarrow]", "bool[pyarrow]"))
    return pd.Series(rng.integers(0, 2, n)).astype(kind)


MAKERS = (
    (12, numbers),
    (3, _text),
    (3, _category),
    (2, lambda rng, n: rng.random(n) < 0.5),
    (2, lambda rng, n: rng.integers(-5, 6, n)),
    (1, lambda rng, n: rng.integers(0, 255, n).astype(np.uint8)),
    (1, lambda rng, n: rng.normal(size=n).astype(np.float32)),
    (1, lambda rng, n: pd.Series(rng.integers(0, 9, n)).astype("Int64")),
    (1, lambda rng, n: pd.Series(rng.normal(size=n)).astype("Float64")),
    (1, lambda rng, n: pd.Series(rng.random(n) < 0.5).astype("boolean")),
    (1, lambda rng, n: pd.Series(_text(rng, n)).map(ascii).astype("string")),
    (1, _arrow),
    (0.05, _dates),
    (0.05, lambda rng, n: pd.Series(pd.to_timedelta(rng.integers(0, 9, n), unit="s"))),
    (0.05, _mixed),
    (0.3, lambda rng, n: np.array([decimal.Decimal(int(v)) for v in rng.integers(0, 9, n)])),
    (0.03, lambda rng, n: np.array([object()] * n)),
    (0.03, lambda rng, n: rng.normal(size=n) + 1j),
    (0.1, lambda rng, n: np.full(n, np.nan)),
    (0.2, lambda rng, n: pd.Series(pd.arrays.SparseArray(rng.integers(0, 2, n).astype(float)))),
)
SHARES = np.array([share for share, _ in MAKERS]) / sum(share for share, _ in MAKERS)


def column(rng, n):
    """A column of any kind, with gaps in one of five."""
    make = MAKERS[int(rng.choice(len(MAKERS), p=SHARES))][1]
    made = pd.Series(make(rng, n))
    if n and rng.random() < 0.15:
        gaps = rng.random(n) < pick(rng, (0.02, 0.02, 0.1, 0.3))
        try:
            made = made.mask(gaps)
        except (TypeError, ValueError):
            return made
    if n and made.dtype == np.float64 and rng.random() < 0.004:
        made.iloc[0] = np.inf
    return made


def response(rng, kind, frame):
    """A response of a kind that some numeric column explains, perhaps perfectly."""
    n = len(frame)
    signal = rng.normal(size=n) if rng.random() < 0.8 else np.zeros(n)
    for k in range(min(2, frame.shape[1])):
        values = frame.iloc[:, k]
        if values.dtype.kind in "fiu" and np.isfinite(values.to_numpy(float)).all():
            x = values.to_numpy(float)
            with np.errstate(all="ignore"):
                z = (x - x.mean()) / (x.std() or 1.0)
            signal = signal + 2.0 * np.nan_to_num(z)
    if kind == "number":
        return pd.Series(signal * pick(rng, SCALES))
    count = int(rng.integers(3, 6)) if kind == "classes" else 2
    labels = pick(
        rng, (_levels(rng), [0, 1, 2, 3, 4], [-1, 1, 2, 3, 4], [False, True], list("abcde"))
    )
    labels = labels[: max(2, min(count, n // 4))]
    place = np.argsort(np.argsort(signal, kind="stable"), kind="stable")
    code = place * len(labels) // max(1, n)
    made = pd.Series(np.array(labels, object)[code]).infer_objects()
    return made.astype("category") if rng.random() < 0.3 else made


def table(rng, kinds):
    """A frame whose last columns are a response of some kind, weights and an offset; its name."""
    n = int(pick(rng, (1, 2, 3, *rng.integers(4, 30, 8), *rng.integers(30, 301, 12))))
    p = int(rng.integers(1, 13))
    every = names(rng, p + 1)
    frame = pd.concat([column(rng, n) for _ in range(p)], axis=1)
    if p > 1 and rng.random() < 0.15:
        frame[frame.columns[-1]] = frame.iloc[:, 0]  # two equal columns
    kind = pick(rng, kinds)
    y = column(rng, n) if kind == "any" else response(rng, kind, frame)
    if rng.random() < 0.15 and n > 3:
        y = y.astype(object).mask(rng.random(n) < 0.1).infer_objects()
    frame = pd.concat([frame, y], axis=1)
    frame.columns = every
    frame["w"] = rng.integers(0, 3, n).astype(float)
    frame["o"] = rng.normal(size=n)
    if rng.random() < 0.3:
        frame.index = pick(rng, (
            pd.Index(rng.integers(0, 5, n)), pd.Index([f"r{k}" for k in range(n)]),
            pd.MultiIndex.from_arrays([range(n), range(n)]), pd.date_range("2020", periods=n),
        ))  # fmt: skip
    return frame, every[-1]


def odd_frames(rng, frame):
    """Frames that a method may be given in place of a good one, by what is odd of them."""
    first = frame.columns[0]
    twice = pd.concat([frame, frame.iloc[:, :1]], axis=1)
    deep = frame.copy()
    deep.columns = pd.MultiIndex.from_product([["a"], frame.columns])
    return {
        "no columns": frame.iloc[:, :0], "lacks a column": frame.drop(columns=first),
        "empty": frame.iloc[:0], "one row": frame.iloc[:1], "twice": twice, "deep": deep,
        "text": frame.assign(**{str(first): "some text"}), "dates": frame.assign(
            **{str(first): pd.Timestamp("2020-01-01")}),
        "missing": frame.assign(**{str(first): None}),
        "nan": frame.mask(np.ones(frame.shape, bool)),
        "dict": {n: frame[n].tolist() for n in frame if isinstance(frame[n], pd.Series)},
        "numbers named": frame.set_axis(range(frame.shape[1]), axis=1),
        "objects": frame.astype(object), "array": frame.to_numpy(object), "none": None,
        "odd": pick(rng, ODD), "huge": frame.assign(**{str(first): 1e308}),
        "infinite": frame.assign(**{str(first): np.inf}), "series": frame.iloc[:, 0],
    }  # fmt: skip


def polars_of(frame):
    """The frame as one of polars, or None where it cannot be."""
    import polars

    try:
        return polars.from_pandas(frame)
    except Exception:  # what polars cannot hold is none of our business
        return None


def arrow_of(frame):
    """The frame as a table of pyarrow, or None where it cannot be."""
    import pyarrow

    try:
        return pyarrow.Table.from_pandas(frame, preserve_index=False)
    except Exception:  # as above
        return None
