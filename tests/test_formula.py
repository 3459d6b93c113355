"""Formulas as text: what is read, what the dot stands for, what is refused and how."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lodim as ld
from lodim.errors import FormulaError
from lodim.formula import expand, parse, quote

NAMES = ("y", "x", "a", "b", "a b", "class", "Q", "horsepower", "é", "_")


def terms(text, names=NAMES, hidden=()):
    """Terms as tuples of columns and calls; a term of one factor as that."""
    found = [tuple(name if code is None else code for name, code in term)
             for term in expand(parse(text), names, hidden)]  # fmt: skip
    return [term if len(term) > 1 else term[0] for term in found]


def test_dot_is_every_column_that_plays_no_other_part():
    assert terms("y ~ .", ("y", "x", "w", "a"), {"w"}) == ["x", "a"]
    assert terms("~ .", ("y", "x")) == ["y", "x"]
    assert terms("np.log(y) ~ .", ("y", "x")) == ["x"]
    assert terms("I(y / a) ~ .", ("y", "x", "a")) == ["x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y ~ . - x", ["a", "b"]),
        ("y ~ 1 + x", ["x"]),
        ("y ~ 1", []),
        ("y ~\n x\n + a", ["x", "a"]),
        ("  y~-x+a", ["a"]),
        ("y ~ (x)", ["x"]),
        ("y ~ . + I(x**2)", ["x", "a", "b", "I(x ** 2)"]),
        ("y ~ .**2", ["x", "a", "b", ("x", "a"), ("x", "b"), ("a", "b")]),
        ("y ~ (x + a + b)**99 - x:a:b", ["x", "a", "b", ("x", "a"), ("x", "b"), ("a", "b")]),
        ("y ~ (x + x:a)**2", ["x", ("x", "a")]),
        ("y ~ x:.", ["x", ("x", "a"), ("x", "b")]),
        ("y ~ b:a:b + a:b", [("b", "a")]),
        ("y ~ x*a:b", ["x", ("a", "b"), ("x", "a", "b")]),
        ("y ~ (x + a)/b", ["x", "a", ("x", "a", "b")]),
        ("y ~ x/a/b", ["x", ("x", "a"), ("x", "a", "b")]),
        ("y ~ x + (a - x + b)*x - (x + a)", ["b", ("a", "x"), ("b", "x")]),
        ("y ~ a:Q('x')", [("a", "x")]),
        ("y ~ x + .5e0*0 + a", FormulaError),
    ],
)
def test_right_side(text, expected):
    if expected is FormulaError:
        with pytest.raises(FormulaError):
            parse(text)
    else:
        assert terms(text, ("y", "x", "a", "b")) == expected


def test_a_sum_of_thousands_is_read():
    assert terms(f"y ~ ({'+'.join(['a', 'b'] * 5000)})**2") == ["a", "b", ("a", "b")]
    names = [f"x{i}" for i in range(3000)]
    assert len(terms("y ~ " + " + ".join(names), ["y", *names])) == 3000


@pytest.mark.parametrize("name", ["a b", "class", "Q", "np", "1x", ".", "a'b", "a\nb", "ﬁ", ""])
def test_odd_names_are_quoted(name):
    assert quote(name) == f"Q({name!r})"
    assert terms(f"y ~ {quote(name)}", ("y", name)) == [name]


@given(st.text(max_size=8))
def test_quote_is_read_back(name):
    assert terms(f"~ {quote(name)}", (name,)) == [name]


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("y ~ x + + a", 8, "missing before"),
        ("y ~ x +", 7, "missing after"),
        ("y ~ (x", 4, "not closed"),
        ("y ~ x)", 5, "no bracket is open"),
        ("y x", 3, "no '~'"),
        ("y ~ x ~ a", 6, "one '~'"),
        ("y ~", 3, "nothing is on the right"),
        ("y ~ x $ a", 6, "cannot be read"),
        ("y ~ x * ", 7, "cannot be read"),
        ("y ~ 0 + x", 4, "always have an intercept"),
        ("y ~ x - 1", 8, "always have an intercept"),
        ("y ~ é + hoursepower", 8, "did you mean 'horsepower'"),
        ("y ~ é:np.sqroot(x)", 6, "this function cannot stand"),
        ("y ~ x**2", 4, "I(x**2)"),
        ("y ~ 2*x", 4, "a number or a text"),
        ("y ~ x > 1", 4, "inside of I"),
        ("y ~ class", 4, "Q('class')"),
        ("y + y ~ a", 4, "y is there twice"),
        ("y + bs(x, df=4) ~ a", 4, "left side"),
        ("y - x ~ a", 4, "left side"),
        ("y + x ~ a + x", 12, "both sides"),
        (". ~ x", 0, "left side"),
        ("bs(y, df=4) ~ x", 0, "left side"),
        ("y ~ x + y", 8, "both sides"),
        ("y ~ np.log(.)", 11, "inside of a function"),
        ("y ~ .x", 5, "operator is missing"),
        ("y ~ (. + Q)**40", 4, "more than 100,000 terms"),
    ],
)
def test_the_caret_shows_the_place(text, place, said):
    names = (*NAMES, *(f"v{i}" for i in range(30)))
    with pytest.raises(FormulaError) as error:
        terms(text, names)
    message, shown, caret = str(error.value).split("\n")
    assert said in message
    assert shown.strip() == text.strip()
    assert caret.index("^") - 4 == place


def test_several_responses():
    """A dot stands for what is on neither side; a model of one response says so."""
    several = parse("y + np.log(x) ~ .")
    assert [s.text for s in several.responses] == ["y", "np.log(x)"]
    assert expand(several, ["a", "x", "y", "z"]) == ((("a", None),), (("z", None),))
    with pytest.raises(FormulaError, match="only one response") as error:
        _ = several.response
    assert str(error.value).split("\n")[2].index("^") - 4 == 4
    assert parse("~ .").response is None and parse("y ~ .").response.text == "y"


MALICIOUS = [
    "__import__('os').system('true')",
    "I(__import__('os'))",
    "I(open('/etc/passwd'))",
    "I(x.values)",
    "I(x.__class__)",
    "np.load('f')",
    "np.lib.npyio",
    "np.log.__globals__",
    "I(np.log)",
    "np.log(x, a)",
    "np.log(x, out=a)",
    "np.fromfile('f')",
    "I(x[0])",
    "x[0]",
    "[i for i in x]",
    "I([i for i in x])",
    "I((lambda: 1)())",
    "lambda: 1",
    "I(x if a else b)",
    "I(x := 1)",
    "I({1: 2})",
    "I({1})",
    "I(f'{x}')",
    "f'{x}'",
    "I(b'x')",
    "I(...)",
    "I(1j * x)",
    "I(*x)",
    "np.log(**{'x': 1})",
    "eval('x')",
    "exec('x')",
    "getattr(x, 'values')",
    "I(x)(a)",
    "I(await x)",
    "C(C(x))",
    "I(C(x))",
    "C(x, eval('1'))",
    "C(x, Sum(__import__('os')))",
    "C(x, levels=[__import__('os')])",
    "bs(x, df=100000000)",
    "bs(x, knots=[open('f')])",
    "bs(x, df=10**9)",
    "te(x, a)",
    "Q(x)",
    "Q('x' + 'a')",
    "x; a",
    "x\\a",
    "x # a",
    "x @ a",
    "x and a",
    "I(x and a)",
    "I(not x)",
    "I(x is a)",
    "I(x in a)",
    "I(x << a)",
    "I(x @ a)",
    "I([1] * 1000000000)",
    "I(" + "9" * 400 + ")",
    "(" * 5000 + "x" + ")" * 5000,
    "I(" + "-" * 5000 + "x)",
    "I(" + "+".join(["x"] * 5000) + ")",
    "'x",
    '"""x',
    "x\0",
]


@pytest.mark.parametrize("code", MALICIOUS, ids=range(len(MALICIOUS)))
@pytest.mark.parametrize("side", ["y ~ {}", "{} ~ b"])
def test_nothing_but_the_closed_list(side, code):
    with pytest.raises(FormulaError):
        terms(side.format(code))


@given(st.text(alphabet="yxab ~+-*/:.()[]{}'\"Q,I=@&|<>0123_\\#\n\té", max_size=30))
def test_any_text_is_read_or_refused_in_words(text):
    try:
        terms(text)
    except FormulaError as error:
        assert str(error)


@pytest.mark.parametrize("formula, hint", [
    ("log(y) ~ a", r"write np.log\(\)"), ("y ~ sqrt(a)", r"write np.sqrt\(\)"),
    ("y ~ a.b", r"Q\('a.b'\)"), ("y ~ np.log(a, a, a)", r"takes 1 arguments"),
])  # fmt: skip
def test_habits_of_r_users_get_a_hint(formula, hint):
    df = pd.DataFrame({"a": [1.0, 2.0, 3.0], "a.b": [2.0, 1.0, 2.0], "y": [1.0, 2.0, 4.0]})
    with pytest.raises(ld.FormulaError, match=hint):
        ld.gbmap(formula, df, m=1, lambda_=0.1)
