"""A long random campaign on formulas, run by hand; pytest does not collect it.

    python tests/campaign/formulas.py --pairs 100000 --hostile 20000 --seed 0

Pairs: a random frame (names in many scripts, all kinds of columns, missing values, few rows) and a
random valid formula. What `Design` makes is compared with a reference: the terms are patsy's, of
the same formula over plain names; their columns are NumPy's, splines and contrasts patsy's. The
same rows, as new data with the columns in another order, must give the same numbers to the bit.

Hostile formulas: mutations of valid ones, habits of other languages, nesting, length, resource
bombs, each in a process with 2 GB beyond what it starts with, and 20 seconds.

Every formula must be accepted, and rightly, or refused with a LodimError; anything else is counted
apart and ends the run with status 1. What it finds becomes an example in
tests/formula/test_parser.py or tests/design/test_design.py. The counts of the last full run are in
benchmarks/results.
"""

import argparse
import collections
import contextlib
import functools
import itertools
import multiprocessing
import os
import re
import resource
import sys
import time
import traceback
import warnings
from multiprocessing.connection import wait

import numpy as np
import pandas as pd
import patsy

from lodim.design.design import Design
from lodim.engine import tiles
from lodim.errors import LodimError
from lodim.formula.formula import ANSWERS, quote

SECONDS, MEMORY = 20, 2_000_000_000  # of the processor, beyond what a process begins with
EACH = 8  # formulas of a frame
LARGE = 300  # features, above which patsy is too slow to be asked
BAD = ("silent difference", "foreign exception", "crash", "hang", "memory over", "warning")
NAMES = [
    *("x", "y", "z", "a b", "1x", "class", "Q", "np", "I", "C", "bs", "None", "True", "_", "__"),
    *(".", "a:b", "", " ", "'", '"', "'\"", "\\", "a\\d", "\\n", "a\nb", "a\tb", "\x00"),
    *("%s", "a\r", "{0}", "$x", "`a`", "x.1", "np.log", "Sepal.Length", "x)", "("),
    *("é", "e\u0301", "ﬁ", "fi", "µ", "μ", "Ω", "\u2126", "ſ", "s", "ｘ", "𝒳", "X", "ª", "a"),
    *("日本", "मूल्य", "ราคา", "விலை", "মূল্য", "\u05d1\u05bc\u05b0", "\u0645\u064f\u062d\u0645"),
    *("\u212e", "\u2118", "a\u203fb", "A\U000e0100", "a\u00a0b", "\u200bx", "\ufeffx", "\u202ex"),
    *("y ~ x", "# no", "-1", "1", "🙂", "İ", "ı", "K", "\u212a", "²", "x²"),
    *("٣", "_٣", "\u1885", "\u0660a"),
]  # fmt: skip
BLOCKS = [(0x20, 0x7F), (0xA0, 0x250), (0x300, 0x370), (0x370, 0x600), (0x600, 0x780),
          (0x900, 0xE80), (0x1D400, 0x1D800), (0x2000, 0x2200), (0x3040, 0x3100),
          (0xAC00, 0xAD00), (0xFE00, 0xFE10), (0xFF00, 0xFFF0), (0xE0100, 0xE01F0)]  # fmt: skip


# Frames -------------------------------------------------------------------------------------------


def random_name(rng):
    if rng.random() < 0.6:
        return NAMES[rng.integers(len(NAMES))]
    low, high = BLOCKS[rng.integers(len(BLOCKS))]
    return "".join(chr(c) for c in rng.integers(low, high, rng.integers(1, 5)))


def random_column(rng, n):
    """A pandas column of a random kind, and whether it holds numbers."""
    kind = rng.integers(12)
    missing = rng.random(n) < rng.choice([0, 0, 0, 0.1])
    text = rng.choice(["u", "v", "w", "ü", ""][: rng.integers(1, 6)], n).astype(object)
    text[missing] = None
    if kind < 4:
        values = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4)
        values[missing] = np.nan
        values = [values, np.round(values), values.astype(np.float32), np.where(missing, np.nan, 3)]
        return pd.Series(values[kind]), True
    if kind < 7:
        whole = rng.integers(-4, 5, n)
        series = pd.Series(whole, dtype=["int64", "int8", "Int64"][kind - 4])
        if kind == 6:
            series[missing] = pd.NA
        return series, True
    if kind == 7:
        return pd.Series(rng.random(n) < 0.5), False
    if kind == 8:
        return pd.Series(np.where(missing, None, rng.random(n) < 0.5), dtype="boolean"), False
    if kind == 9:
        return pd.Series(pd.Categorical(text, categories=["w", "", "u", "q", "v", "ü"])), False
    return pd.Series(text, dtype=[object, "string"][kind - 10]), False


def random_frame(rng):
    """Columns by name, and which of them hold numbers."""
    n = int(rng.choice([2, 3, 8, 20, 40, 70]))
    columns, numeric = {}, {}
    for _ in range(rng.integers(2, 8)):
        name = random_name(rng)
        columns[name], numeric[name] = random_column(rng, n)
    return pd.DataFrame(columns), numeric


# Formulas: the same text over the frame's names and over plain ones -------------------------------


class Writer:
    """Writes a random formula twice: ``lodim`` names columns as users do, ``plain`` by number."""

    def __init__(self, rng, sample, response):
        self.rng, self.response, self.plain = rng, response, sample.plain
        self.free = [name for name in sample.names if name != response]
        self.numbers = [name for name in self.free if sample.numeric[name]]
        self.dotted = [name for name in self.free if not ANSWERS.match(name)]

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def name(self, name):
        """A column: bare where it may be, else in Q() with some quotes."""
        if quote(name) == name and self.rng.random() < 0.8:
            return name, self.plain[name]
        return f"Q({self.pick(repr, ascii)(name)})", self.plain[name]

    def column(self, numbers=False):
        pool = self.numbers if numbers else self.free
        return self.name(pool[self.rng.integers(len(pool))])

    def call(self):
        """A call that NumPy or patsy can evaluate as well."""
        if not self.numbers:
            return self.column()
        text = self.pick(
            "I({0}**2)", "I({0} + {1} * 2 - 1)", "np.log(np.abs({0}) + 1)", "np.minimum({0}, {1})",
            "np.where({0} > {1}, {0}, 0.5)", "I(({0} > 0) & ({1} <= 1) | ~({0} == 1))",
            "I(-1 < {0} <= 2)", "np.round({0}, 1)", "np.clip({0}, -1, 1.5)", "I({0} // 2 % 3)",
            "center({0})", "center(np.exp(-np.abs({0})))", "I(center({0}) * {1})",
            "scale({0}, ddof=1)",  # patsy's own default is 0
            "bs({0}, df=4)", "bs({0}, df=6, degree=2)", "bs({0}, df=9, degree=8)",
            "bs({0}, 5, include_intercept=True)", "cr({0}, df=3)", "cc({0}, df=3)",
            "cr({0}, df=4, constraints='center')", "te(cr({0}, df=3), bs({1}, df=4))",
            "C({0})", "C({0}, Sum)", "C({0}, Poly)", "C({0}, Helmert)", "C({0}, Diff)",
            "C(np.round({0}))", "np.hypot({0}, {1})", "I({0} ** 2 ** -1)", "I(- -{0})",
            "np.arctan2({0}, 1 + np.exp({1}))", "I(+{0} / (1 + {1} ** 2))",
        )  # fmt: skip
        pairs = [self.column(numbers=True) for _ in range(2)]
        return tuple(text.format(*(p[k] for p in pairs)) for k in (0, 1))

    def tree(self, depth):
        """Both texts of a sum, product, power or leaf."""
        kind = self.rng.random()
        if depth == 0 or kind < 0.35:
            if self.dotted and self.rng.random() < 0.12:
                return ".", "(" + " + ".join(self.plain[n] for n in self.dotted) + ")"
            return self.column() if self.rng.random() < 0.6 else self.call()
        parts = [self.tree(depth - 1) for _ in range(self.rng.integers(2, 4))]
        if kind < 0.75:
            signs = [self.pick("+", "+", " + ", "\n+ ", " - ") for _ in parts[1:]]
        else:
            signs = [self.pick(":", " : ", "*", "/", " * ") for _ in parts[1:]]
        texts = []
        for k in (0, 1):
            body = parts[0][k] + "".join(s + p[k] for s, p in zip(signs, parts[1:], strict=True))
            texts.append(f"({body})")
        if self.rng.random() < 0.12:
            power = self.rng.integers(1, 4)
            return tuple(f"{text}**{power}" for text in texts)
        # Without brackets what binds more tightly shows.
        return tuple(text[1:-1] for text in texts) if self.rng.random() < 0.4 else tuple(texts)

    def formula(self):
        right = self.tree(2)
        left = ("", "") if self.response is None else self.name(self.response)
        return f"{left[0]} ~ {right[0]}", right[1]


# The reference ------------------------------------------------------------------------------------

PLAIN = re.compile(r"\bc[0-9]+\b")
FUNCTIONS = {name: getattr(patsy, name) for name in ("bs", "cr", "cc", "te", "center", "scale")} | {
    "np": np,
    "I": lambda x: x,
}


class Sample:
    """A random frame, in several shapes, and its columns as the reference takes them."""

    def __init__(self, rng):
        self.frame, self.numeric = random_frame(rng)
        self.names = list(self.frame)
        self.plain = {name: f"c{i}" for i, name in enumerate(self.names)}
        self.missing = {name: self.frame[name].isna().to_numpy() for name in self.names}
        self.values = {name: self.read(name) for name in self.names}
        self.shapes = [self.frame] * 3 + [dict(self.frame.items())]
        with contextlib.suppress(Exception):  # of names that arrow cannot hold
            self.shapes.append(self.frame.convert_dtypes(dtype_backend="pyarrow"))
        self.new = self.frame[self.names[::-1]].assign(**{"another one": 1.0})

    def read(self, name):
        """Numbers, or codes of the levels in the order of categories, else sorted."""
        series = self.frame[name]
        if self.numeric[name]:
            return series.to_numpy(np.float64, na_value=np.nan)
        if isinstance(series.dtype, pd.CategoricalDtype):
            return series.cat.codes.to_numpy().astype(int)
        found = sorted(set(series.dropna()))
        return np.array([-1 if pd.isna(value) else found.index(value) for value in series])

    def reference(self, right, response):
        """Complete rows, and the columns of a formula over plain names in them, (n, p)."""
        terms = patsy.ModelDesc.from_formula(f"~ {right}").rhs_termlist
        terms = [[factor.code for factor in term.factors] for term in terms if term.factors]
        known = set(PLAIN.findall(" ".join(itertools.chain(*terms))))
        used = [name for name in self.names if self.plain[name] in known or name == response]
        bad = np.logical_or.reduce([np.zeros(len(self.frame), bool), *map(self.missing.get, used)])
        rows = np.flatnonzero(~bad)
        if not len(rows):
            return rows, None
        data = {self.plain[name]: self.values[name][rows] for name in used}
        blocks = {code: evaluate(code, data) for code in dict.fromkeys(itertools.chain(*terms))}
        made = [
            np.multiply.reduce(choice[::-1])
            for term in terms
            for choice in itertools.product(*(blocks[code].T for code in reversed(term)))
        ]
        return rows, np.column_stack(made) if made else np.empty((len(rows), 0))


def evaluate(code, data):
    """Columns of one factor, (n, k)."""
    if code.startswith("C("):
        inner, _, coding = code[2:-1].rpartition(", ")
        contrast = getattr(patsy, coding) if coding in CODINGS else None
        found, codes = np.unique(
            evaluate(inner if contrast else code[2:-1], data)[:, 0], return_inverse=True
        )
        if contrast is None:
            return indicators(codes, len(found))
        return contrast().code_without_intercept(list(found)).matrix[codes]
    if PLAIN.fullmatch(code) and data[code].dtype == int:
        found, codes = np.unique(data[code], return_inverse=True)
        return indicators(codes, len(found))
    values = np.asarray(eval(code, FUNCTIONS, data), float)
    return values.reshape(len(values), -1)


CODINGS = ("Sum", "Poly", "Helmert", "Diff")


def indicators(codes, count):
    """A column for each level; of two, that of the second."""
    columns = (codes[:, None] == np.arange(count)).astype(float)
    return columns[:, 1:] if count == 2 else columns


@functools.lru_cache(2)
def sample(seed, k):
    return Sample(np.random.default_rng([seed, k, 2]))


def pair(seed, i):
    """The outcome of one random formula of a random frame, and both in words."""
    rng, s = np.random.default_rng([seed, i, 0]), sample(seed, i // EACH)
    response = None if rng.random() < 0.3 else s.names[rng.integers(len(s.names))]
    writer = Writer(rng, s, response)
    if not writer.free:
        return "no formula", ""
    text, right = writer.formula()
    design, batch = Design.learn(text, s.shapes[rng.integers(len(s.shapes))])
    what = f"{text!a} of {list(map(ascii, s.names))}"
    new = design.apply(s.new, response=response is not None)
    if not (np.array_equal(new.X, batch.X) and np.array_equal(new.rows, batch.rows)):
        return "silent difference", f"new data: {what}"
    if len(design.names) > LARGE:
        return "accepted without reference", what
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows, expected = s.reference(right, response)
        known = expected is not None and np.isfinite(expected).all()
    except Exception:  # what patsy or NumPy cannot make, lodim may refuse
        known = False
    if not known:
        return "accepted without reference", what
    raw = tiles.unpack(batch.X, batch.n) * design.scale + design.mean
    same = np.array_equal(rows, batch.rows) and raw.shape == expected.shape
    size = 1.0 + np.abs(expected).max(axis=0, initial=0.0) if same else 1.0
    if not same or (np.abs(raw - expected) > 1e-8 * size).any():
        return "silent difference", what
    numeric = response is not None and s.numeric[response] and design.family == "gaussian"
    if numeric and not np.array_equal(s.values[response][rows], batch.y):
        return "silent difference", f"response of {what}"
    return "accepted", what


# Hostile formulas ---------------------------------------------------------------------------------

WIDE = 12
VALID = """\
y ~ .
y ~ . - a
np.log(y**2 + 1) ~ a*b + I(c > 0)
y ~ (a + b + c)**2
~ bs(a, df=4)
y ~ te(cr(a, df=3), cr(b, df=3))
g ~ a:h + C(h, Treatment('u'))
y ~ Q('a b') + Q("it's")
y ~ np.where(a > 0, b, c)
y ~ scale(a) + center(b) + standardize(c)
y ~ cc(a, df=3)/h
y ~ C(h, levels=['u', 'v', 'w'])
y ~ I((a > 0) & (h == 'u') | ~(b < 1))
h ~ .**2
y ~ bs(a, knots=[-0.5, 0.5], degree=2, lower_bound=-9, upper_bound=9)
y ~ np.clip(a, -1, 1)
y + a ~ b
""".splitlines()
HABITS = """\
y ~ a^2
y ~ `a b`
log(y) ~ a
y ~ poly(a, 2)
y ~ s(a)
y ~ ns(a, 3)
y ~ a %in% b
y ~ a | h
y ~ a + (1 | h)
y ~ a - 1
y ~ 0 + a
y ~ factor(h)
y ~ as.factor(h)
y ~ offset(a)
y ~ I(a^2)
y ~ ifelse(a > 0, 1, 0)
cbind(y, a) ~ b
y ~ a.b
y ~ a$b
y ~ I(a == TRUE)
y ~ a && b
y ~ !a
y <- a
y ~ a ~ b
y = a
y ~ a; b
y ~ Q(\u201ca b\u201d)
y \u223c a
y ~ a \u2212 b
y ~ a\u00a0+ b
y ~ df['a']
y ~ df.a
y ~ a[1:3]
y ~ {a}
y ~ lambda: a
y ~ a if b else c
y ~ [a, b]
y ~ a,b
y ~ f(a)(b)
y ~ __import__('os').system('true')
y ~ I(__import__('os'))
y ~ np.linalg.inv(a)
(.) ~ a
.. ~ a
. ~ .
~
y
y ~
~ ~
y ~ .a
y ~ a.
y ~ ...
y ~ .5
y ~ 1:3
y ~ I(0777)
y ~ I(1if a else b)
y ~ I(a is 1)
y ~ Q('\\d\\')
y ~ Q(r'\\d')
y ~ Q(b'a')
y ~ Q(f'{a}')
y ~ Q('''a''')
y ~ C(C(h))
y ~ C(bs(a, df=3))
y ~ bs(bs(a, df=4), df=4)
y ~ bs(h, df=4)
y ~ te(te(a))
y ~ I(bs(a, df=4) * 2)
y ~ np.log(a, out=b)
y ~ I(h + 1)
y ~ µ
y ~ I(µ) + I(μ)
y ~ C(a, Poly(scores=[1, 1]))
y ~ C(h, Treatment(7))
y ~ scale(a, ddof=9)
y ~ bs(a, df=4, lower_bound=5)
y ~ np.round(a, 'x')
y ~ te(cr(a, df=3), constraints='center')
y ~ cr(a, df=3, constraints=[1, 2])
""".splitlines()
GLUE = [
    *("+", "-", "*", "/", ":", "**", "~", "(", ")", ".", " ", "'", '"', "\\", ",", "=", "<", ">"),
    *("&", "|", "[", "]", "0", "9", "1e999", "a", "h", "Q(", "I(", "C(", "bs(", "np.", "\n", "µ"),
    *("\x00", "\u0301", "\U000e0100", "\ud800", "%", "^", "`", "#", "@", "!", ";", "_", "lambda"),
    *("None", "df=", "degree=", "knots=", "levels=", "Sum", "Poly", "te(", "cr(", "==", "is", "in"),
]


def bomb(rng):
    """A formula that asks for too much, or nearly."""
    n, d = int(10 ** rng.uniform(0.5, 5)), int(10 ** rng.uniform(0.5, 3.3))
    many = "+".join(f"v{k}" for k in range(min(n, WIDE)))
    texts = [
        f"bs(a, df={d}, degree={rng.integers(0, 40)})", f"bs(a, df={d})*bs(b, df={d})",
        f"te(bs(a, df={d}), cr(b, df={d}), cc(c, df={d}))", f"te(cr(a, df={d}), cr(b, df=4))",
        f"({many})**{n}", f"(. + {many}):(.)**{n % 9 + 1}", f".**{n % 7 + 1}",
        "I(a" + " > b" * n + ")", "I(" + "a+" * n + "a)", "(" + "+".join("ab" * n) + ")**2",
        "(" * n + "a" + ")" * n, "I(" + "(" * n + "a" + ")" * n + ")", "I(" + "-" * n + "a)",
        "I(" + "~" * n + "(a > 0))", "np.abs(" * n + "a" + ")" * n, "I(a + 9**9**9**9)",
        f"I(a + {'9' * n})", f"I(a + 0x{'f' * n})", f"(a+b)**{'9' * n}", f"I(h == '{'x' * n}')",
        "x" * n, f"Q('{'x' * n}')", "a" + "*b" * n, ":".join("ab" * n), "/".join("ab" * n),
        "+".join(["(.)**2"] * n), "+".join(f"I(a+{k})" for k in range(n)), "-".join("." * n),
        "+".join(f"bs(a, df={k + 3})" for k in range(min(n, 2000))), "a" + " " * n,
        f"I(np.power(a, {n})):I(np.power(b, {n}))", "C(a)*C(b)*C(c)", "C(a, Poly):C(b, Poly)",
        f"C(h, levels={[*map(str, range(min(n, 5000)))]})", f"np.round(a, {n})",
        f"bs(a, knots={[0] * min(n, 5000)})", f"cr(a, df={d}, constraints='center')*cc(b, df={d})",
        "I(a" + "**2" * n + ")", "I(" + "2**" * n + "a)", "'" * n, "a" + "#" * n, "(" * n, ")" * n,
        "I(a)" * n, "\\" * n, "~" * n, "`" * n, f"bs(a, df={d}):h*(.)**2", f"I(a{' and b' * n})",
        f"np.where({'a > 0 < ' * n}1, a, b)", "+".join(["y"] * n) + "~a", "+".join("a" * n),
        "+".join(f"te(bs(a, df={k + 3}), bs(b, df=40))" for k in range(min(n, 300))),
    ]  # fmt: skip
    return f"y ~ {texts[rng.integers(len(texts))]}"


def mutate(rng, text):
    """The text with a few pieces put in, left out, doubled or swapped."""
    for _ in range(rng.integers(1, 5)):
        i, j = sorted(rng.integers(0, len(text) + 1, 2))
        piece = GLUE[rng.integers(len(GLUE))]
        changed = [
            text[:i] + piece + text[i:], text[:i] + text[i + 1 :], text[:j] + text[i:],
            text[:i] + text[j:] + text[i:j], text[:i] + piece + text[j:],
            text[:i] + random_name(rng) + text[i:], text[:i] + text[i:j] * 3 + text[j:],
        ]  # fmt: skip
        text = changed[rng.integers(len(changed))]
    return text


def hostile(seed, i):
    """The outcome of one hostile formula, and the formula in words."""
    rng = np.random.default_rng([seed, i, 1])
    kind = rng.random()
    if kind < 0.5:
        text = mutate(rng, VALID[rng.integers(len(VALID))])
    elif kind < 0.72:
        text = HABITS[rng.integers(len(HABITS))]
        text = mutate(rng, text) if kind < 0.7 else text
    else:
        text = bomb(rng)
        text = mutate(rng, text) if kind > 0.95 else text
    return learn_hostile(text, int(rng.choice([30, 300])))


def learn_hostile(text, n):
    frame = hostile_frame(n)
    what = f"{text[:300]!a} ({len(text)} characters, {n} rows)"
    design, batch = Design.learn(text, frame)
    same = np.array_equal(design.apply(frame).X, batch.X)
    return ("accepted" if same else "silent difference"), what


@functools.cache
def hostile_frame(n):
    rng = np.random.default_rng(n)
    columns = {name: rng.normal(size=n) for name in ("y", "a", "b", "c", "a b", "it's", "µ", "μ")}
    columns |= {f"v{k}": rng.normal(size=n) for k in range(WIDE)}
    columns |= {"h": rng.choice(list("uvw"), n), "g": rng.choice(["p", "q"], n)}
    return pd.DataFrame(columns)


# Processes ----------------------------------------------------------------------------------------

TASKS = {"pairs": pair, "hostile": hostile}


def attempt(task, seed, i):
    """(outcome, words, processor seconds) of one task."""
    start, text = time.process_time(), ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome, text = TASKS[task](seed, i)
        except LodimError as error:
            outcome, text = "refused", str(error)[:200]
        except MemoryError:
            outcome = "memory over"
        except Exception:
            outcome, text = "foreign exception", traceback.format_exc()[-500:]
    if caught and outcome not in BAD:
        outcome, text = "warning", f"{caught[0].message} ({caught[0].filename})"
    return outcome, text, time.process_time() - start


def work(pipe, seed):
    """A process: answers tasks until it is told to end."""
    for i in range(20):  # what is loaded and compiled at first is no part of any formula's memory
        attempt("pairs", 1, i)
    learn_hostile("y ~ bs(a, df=4)*te(cr(b, df=3), cc(c, df=3)) + C(h, Poly)", 30)
    with open("/proc/self/statm") as statm:
        limit = int(statm.read().split()[0]) * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    pipe.send(time.process_time())
    while (asked := pipe.recv()) is not None:
        task, i = asked
        pipe.send((task, i, *attempt(task, seed, i), time.process_time()))


class Worker:
    """A process that is started anew when it dies or takes too long."""

    def __init__(self, seed):
        self.seed, self.own, self.used = seed, [], 0.0
        self.begin()

    def begin(self):
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=work, args=(other, self.seed), daemon=True)
        self.process.start()
        other.close()
        self.used = self.pipe.recv()

    def ask(self, left):
        """Hand over the next task; False where none is left."""
        self.own = self.own or list(itertools.islice(left, EACH))[::-1]
        if not self.own:
            self.pipe.send(None)
            return False
        self.task, self.since = self.own.pop(), time.monotonic()
        self.pipe.send(self.task)
        return True

    def spent(self):
        """Seconds of the processor, or a tenth of those on the clock: others may want it too."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            ticks = stat.read().rpartition(")")[2].split()[11:13]
        now = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
        return max(now - self.used, (time.monotonic() - self.since) / 10)

    def answer(self):
        """What the process says, or what has become of it; None while it works."""
        outcome = "crash"
        with contextlib.suppress(EOFError, ConnectionResetError):
            if self.pipe.poll():
                *answer, self.used = self.pipe.recv()
                return answer
            if self.spent() < SECONDS:
                return None
            outcome = "hang"
        self.process.kill()
        self.process.join()
        self.begin()
        return (*self.task, outcome, "", 0.0)


def run(tasks, seed, workers, minutes):
    """Counts of outcomes by kind of task, what was found, and the slowest."""
    counts = {task: collections.Counter() for task in TASKS}
    found, slowest, left = [], (0.0, ""), iter(tasks)
    busy = [worker for worker in (Worker(seed) for _ in range(workers)) if worker.ask(left)]
    end = time.monotonic() + 60 * minutes
    while busy and time.monotonic() < end:
        wait([worker.pipe for worker in busy], timeout=1.0)
        for worker in list(busy):
            if (answer := worker.answer()) is None:
                continue
            task, i, outcome, text, seconds = answer
            counts[task][outcome] += 1
            slowest = max(slowest, (seconds, f"{task} {i}: {text}"))
            if outcome in BAD:
                found.append(f"{outcome}: {task} {i}: {text}")
                print(found[-1], file=sys.stderr, flush=True)
            if not worker.ask(left):
                busy.remove(worker)
    return counts, found, slowest


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--hostile", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=600.0, help="after which it ends")
    parser.add_argument("--only", help="one task again, such as 'hostile 7', in this process")
    asked = parser.parse_args()
    if asked.only:
        task, i = asked.only.split()
        print(TASKS[task](asked.seed, int(i)))
        return
    kinds = {"pairs": asked.pairs, "hostile": asked.hostile}
    tasks = [(kind, i) for kind, count in kinds.items() for i in range(count)]
    counts, found, slowest = run(tasks, asked.seed, asked.workers, asked.minutes)
    rows = ("accepted", "accepted without reference", "refused", "no formula", *BAD)
    table = pd.DataFrame(counts).reindex(rows).fillna(0).astype(int)
    done = table.sum()
    print(f"seed {asked.seed}: {done['pairs']:,} pairs, {done['hostile']:,} hostile formulas, of "
          f"{asked.pairs:,} and {asked.hostile:,} asked for\n")  # fmt: skip
    print(table.to_string())
    print(f"\nlongest: {slowest[0]:.2f} s of the processor, {slowest[1][:200]}")
    print(*found[:10], sep="\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
