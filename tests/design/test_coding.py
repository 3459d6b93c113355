"""Factors coded against a reference level: the columns of R's model.matrix, by a second program.

The reference follows TermCode() and termsform() of R's model.c: terms as sets of variables, sorted
by degree; 1 (contrasts) if the rest of the term is empty or part of an earlier term, else 2 (all
levels).
"""

import itertools
import re

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.design.design import Design
from lodim.engine import tiles

N = 300
FORMULAS = """
a
x
a + b
b + a
a + x
a:x
x:a
a:b
b:a
a*b
a*x
a/b
b/a
a/x
x/a
x/z
a:b + a
a + a:b
b + a:b
a:b + b + a
a*b - a
a*b - b
a*b - a - b
a*x - a
a*x - x
a + b:x
a + b:x + a:x
b:x + a:x
a:x + b:x
x + b:x + a:x
z + b:x + a:x
(a + b):c
c:(a + b)
(a + b):x
(a + b)*c
(a + b)*c - c
(a + b)*c - a
(a + b + c)**2
(a + b + c)**2 - a
(a + b + c)**2 - a - b
(a + b + c)**2 - a - b - c
(a + b + c)**2 - a:b
(a + b + c)**3
(a + b + c)**3 - a:b
(a + b + c)**3 - a - b - c
(a + b + x)**2
(a + b + x)**2 - x
(a + b + x)**3
(a + x + z)**2
(a + x + z)**3 - x:z
(x + z)**2
(a + b)/c
a/(b + c)
a/b/c
a/b/x
a/(b*x)
a:b:c
a:b:x
a:x:z
a:b + c
a:b + b:c
a:b + b:c + a:c
a:b + a:b:c
a:b:c + a:b
a:b:c + a + b
a + b + a:b:c
c + a:b:c
x + a:b:x
a:x + a:b:x
x:z + a:x
a:x + x:z
x:z + a:x:z
flag
flag:b
flag*b
flag:x + b:x
I(x > 0):b
I(x > 0) + b:x
I(x > 0)*a
b + I(x > 0):a:z
a + b*c + x:(a + c)
(a + flag)*x + b:x
""".strip().splitlines()


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"y": rng.normal(size=N), "x": rng.normal(size=N), "z": rng.normal(size=N)})
    for name, levels in {"a": "uvw", "b": "pq", "c": "klmn"}.items():
        df[name] = rng.choice(list(levels), N)
    df["flag"] = rng.random(N) < 0.5
    return df


class Terms:
    """The right side of a formula as a list of sets of variables, as EncodeVars() makes it."""

    LEVELS = (("+", "-"), ("*", "/"), (":",), ("**",))

    def __init__(self, text):
        self.tokens = re.findall(r"I\([^()]*\)|\*\*|\w+|[-+*/:()]", text)

    def read(self, level=0):
        if level == len(self.LEVELS):
            token = self.tokens.pop(0)
            if token != "(":
                return [frozenset({token})]
            inner = self.read()
            assert self.tokens.pop(0) == ")"
            return inner
        left = self.read(level + 1)
        while self.tokens and self.tokens[0] in self.LEVELS[level]:
            left = self.join(self.tokens.pop(0), left, level)
        return left

    def join(self, sign, left, level):
        if sign == "**":
            base = left
            for _ in range(int(self.tokens.pop(0)) - 1):
                left = list(dict.fromkeys(s | t for s in left for t in base))
            return left
        right = self.read(level + 1)
        if sign == "-":
            return [term for term in left if term not in right]
        rest = [frozenset().union(*left)] if sign == "/" else left
        products = [s | t for s in rest for t in right]
        parts = {"+": left + right, "*": left + right + products, "/": left + products}
        return list(dict.fromkeys(parts.get(sign, products)))


def codes(terms, term):
    """1 or 2 of each variable of a term, as TermCode() gives it."""
    earlier = terms[: terms.index(term)]
    rests = {v: term - {v} for v in term}
    return {v: 1 if not r or any(r <= t for t in earlier) else 2 for v, r in rests.items()}


def model_matrix(text, df):
    """Columns by the set of their parts' names, the intercept without."""
    terms = sorted(Terms(text).read(), key=len)
    columns = {}
    for term in terms:
        made = []
        for v, code in codes(terms, term).items():
            values = df.x > 0 if v == "I(x > 0)" else df[v]
            levels = [] if values.dtype == float else sorted(values.unique())[code == 1 :]
            coded = {f"{v}[{level}]": (values == level).to_numpy(float) for level in levels}
            made.append(coded or {v: values.to_numpy()})
        for choice in itertools.product(*(part.items() for part in made)):
            columns[frozenset(name for name, _ in choice)] = np.prod([x for _, x in choice], axis=0)
    return columns


def learnt(text, df):
    design, batch = Design.learn(f"y ~ {text}", df, reference_levels=True)
    X = tiles.unpack(batch.X, batch.n) * design.scale + design.mean
    return {frozenset(name.split(":")): x for name, x in zip(design.names, X.T, strict=True)}


@pytest.mark.parametrize("text", FORMULAS)
def test_columns_are_those_of_r(df, text):
    expected, found = model_matrix(text, df), learnt(text, df)
    assert found.keys() == expected.keys()
    for name, x in expected.items():
        np.testing.assert_allclose(found[name], x, atol=1e-12)


@pytest.mark.parametrize(
    "text, columns, aliased",
    [("a + b:x + a:x", 6, 0), ("(a + b):c", 16, 1), ("a:b", 6, 1), ("a:x + x:z", 4, 0)],
)
def test_coefficients_that_r_would_estimate(df, text, columns, aliased):
    fit = ld.glm(f"y ~ {text}", df)
    assert len(fit.design.names) == columns
    assert len(fit.aliased) == aliased
    whole = np.column_stack([np.ones(N), *model_matrix(text, df).values()])
    assert np.linalg.matrix_rank(whole) == 1 + columns - aliased


@pytest.mark.parametrize("text", ["0 + a", "a - 1", "a:x + 0"])
def test_the_intercept_stays(df, text):
    with pytest.raises(ld.FormulaError, match="always have an intercept"):
        ld.glm(f"y ~ {text}", df)


CONDITIONS = {
    "{}": "I(x > 0)",
    "{}:b": "I(x > 0)",
    "a*{}": "I(x > 0)",
    "C({}, Sum) + a": "x > 0",
    "{} + z": "I(flag)",
    "x:{}": "I(I(x > 0))",
    "{}:(a + z)": "I((x > 0) & ~(x <= 0))",
}


@pytest.mark.parametrize("right, condition", CONDITIONS.items())
@pytest.mark.parametrize("reference", [True, False])
def test_a_condition_is_the_factor_that_its_column_is(df, right, condition, reference, tmp_path):
    df = df.assign(flag=df.x > 0)
    one, expected = Design.learn(f"y ~ {right.format('flag')}", df, reference_levels=reference)
    formula = f"y ~ {right.format(condition)}"
    design, batch = Design.learn(formula, df, reference_levels=reference)
    swapped = [re.sub(r"\bflag\b", condition, name) for name in one.names]
    assert list(design.names) == swapped
    assert np.array_equal(tiles.unpack(batch.X, N), tiles.unpack(expected.X, N))
    df.to_csv(tmp_path / "d.csv", index=False)
    path = str(tmp_path / "d.csv")
    streamed, again = Design.learn(formula, path, reference_levels=reference)
    assert streamed.names == design.names
    np.testing.assert_allclose(tiles.unpack(again.X, N), tiles.unpack(batch.X, N), atol=1e-12)


def test_a_condition_with_one_value_is_constant(df):
    design, _ = Design.learn("y ~ I(x > -100) + z", df)
    assert design.constant == ("I(x > -100)[True]",)
    assert design.apply(df.assign(x=-200.0)).n == N


def test_a_condition_as_the_response(df, tmp_path):
    fit = ld.glm("I(x > 0) ~ z + flag", df)
    assert fit.levels == (False, True)
    assert "P(x > 0)" in str(fit.summary())
    other = ld.glm("up ~ z + flag", df.assign(up=df.x > 0))
    assert fit.predict(df).equals(other.predict(df))
    assert fit.predict(df, "class").equals(other.predict(df, "class"))
    assert "P(up = True)" in str(other.summary())
    fit.save(tmp_path / "fit.lodim")
    assert ld.load(tmp_path / "fit.lodim").predict(df).equals(fit.predict(df))
