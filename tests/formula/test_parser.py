"""Formulas as text: what is read, what the dot stands for, what is refused and how."""

import ast
import unicodedata

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lodim as ld
from lodim.errors import FormulaError
from lodim.formula.formula import expand, leave_out, parse, quote, update

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


@pytest.mark.long
def test_a_sum_of_thousands_is_read():
    assert terms(f"y ~ ({'+'.join(['a', 'b'] * 5000)})**2") == ["a", "b", ("a", "b")]
    names = [f"x{i}" for i in range(3000)]
    assert len(terms("y ~ " + " + ".join(names), ["y", *names])) == 3000


@pytest.mark.parametrize("name", ["a b", "class", "Q", "np", "1x", ".", "a'b", "a\nb", "ﬁ", ""])
def test_odd_names_are_quoted(name):
    assert quote(name) == f"Q({name!r})"
    assert terms(f"y ~ {quote(name)}", ("y", name)) == [name]


SCRIPTS = ["मूल्य", "ราคา", "விலை", "মূল্য", "קָמָץ", "مُحَمَّد", "e\u0301", "A\U000e0100", "\u212e",
           "\u2118", "a\u203fb", "µ", "μ", "\u2126", "ſ", "𝒳", "x²", "\u1885", "日本",
           "a\u00a0b"]  # fmt: skip


@pytest.mark.long
@given(st.text(max_size=8))
@example("\u212e")
@example("मूल्य")
@example("A\U000e0100")
def test_quote_is_read_back(name):
    assert terms(f"~ {quote(name)}", (name,)) == [name]


@pytest.mark.parametrize("name", SCRIPTS, ids=ascii)
def test_names_of_all_scripts_are_read_as_they_are_written(name):
    """Bare outside of calls and inside, in the whole plane of what Python takes for one name."""
    assert terms(f"y ~ {quote(name)}:z", ("y", "z", name)) == [(name, "z")]
    (leaf,) = [parse(f"~ I({quote(name)} + 1)").right]
    assert [named.name for named in leaf.columns] == [name]
    if name.isidentifier():
        assert terms(f"y ~ {name}", ("y", name)) == [name]
        (leaf,) = [parse(f"~ I({name} + 1)").right]
        assert [named.name for named in leaf.columns] == [name]
        assert terms(f"~ I({name} + 1)", (name,)) == [f"I({quote(name)} + 1)"]


def test_every_bare_name_of_a_letter_and_a_mark_is_read_back():
    """What Python's own tokenizer module cannot read: 4,740 of such names were not read back."""
    marks = [chr(c) for c in range(0x300, 0x1000) if unicodedata.category(chr(c)) in ("Mn", "Mc")]
    names = [letter + mark for letter in "aन" for mark in marks]
    bare = [name for name in names if quote(name) == name]
    assert len(bare) > 500
    assert terms(f"~ {' + '.join(bare)}", bare) == bare
    assert terms("~ .**2", bare[:3]) == [*bare[:3], tuple(bare[:2]), tuple(bare[:3:2]),
                                         tuple(bare[1:3])]  # fmt: skip


@pytest.mark.parametrize("one, other", [("µ", "μ"), ("\u2126", "Ω"), ("ﬁ", "fi"), ("ｘ", "x")])
@pytest.mark.parametrize("term", ["{}", "I({} + 1)", "{}:z", "np.log({})"])
def test_a_name_that_may_be_one_of_two_columns_is_refused(one, other, term):
    for name in (one, other):
        written = term.format(name)
        with pytest.raises(FormulaError, match="Python reads as one"):
            terms(f"~ {written}", (one, other, "z"))
        quoted = terms(f"~ {term.format(f'Q({name!r})')}", (one, other, "z"))
        assert quoted == terms(f"~ {written}", (name, "z"))
        missing = other if name == one else one
        with pytest.raises(FormulaError, match=r"no column .* looks like"):
            terms(f"~ {written}", (missing, "z"))
    assert terms("~ .", (one, other)) == [one, other]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("written, name", [
    (r"Q('a\d')", r"a\d"), (r"Q('a\\d')", r"a\d"), (r"Q(r'a\d')", r"a\d"), (r"Q('\.')", r"\."),
    (r"Q('a\n')", "a\n"), (r"Q('\'')", "'"), (r"Q(\"\")", ""), ("Q('\\u0301')", "\u0301"),
])  # fmt: skip
def test_backslashes_in_quotes(written, name):
    written = written.replace(r"\"", '"')
    assert terms(f"~ {written}", (name,)) == [name]
    (leaf,) = [parse(f"~ I({written} + 1)").right]
    assert [named.name for named in leaf.columns] == [name]


def test_a_line_that_ends_within_quotes_is_refused():
    """It would be read as a blank, and name another column."""
    with pytest.raises(FormulaError, match="quote is not closed"):
        parse("y ~ Q('a\nb')")


def test_a_name_is_spelt_in_one_way():
    assert terms("~ I(Q('x') + 1) + I( x+1 ) + Q(\"x\") + x") == ["I(x + 1)", "x"]
    assert terms("~ Q('Q') + I(Q('a b')) + I(Q('Q'))") == ["Q", "I(Q('a b'))", "I(Q('Q'))"]


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("y ~ x + + a", 8, "missing before"),
        ("y ~ x +", 7, "missing after"),
        ("y ~ (x", 4, "not closed"),
        ("y ~ x)", 5, "closes no open bracket"),
        ("y x", 3, "must have a '~'"),
        ("y ~ x ~ a", 6, "one '~'"),
        ("y ~", 3, "right side of '~' is empty"),
        ("y ~ x $ a", 6, "cannot be used"),
        ("y ~ x * ", 7, "a term is missing"),
        ("y ~ 0 + x", 4, "always have an intercept"),
        ("y ~ x - 1", 8, "always have an intercept"),
        ("y ~ é + hoursepower", 8, "did you mean 'horsepower'"),
        ("y ~ é:np.sqroot(x)", 6, "this function cannot be used"),
        ("y ~ x**2", 4, "I(x**2)"),
        ("y ~ 2*x", 4, "a number or a text"),
        ("y ~ x > 1", 4, "inside I"),
        ("y ~ class", 4, "Q('class')"),
        ("y + y ~ a", 4, "y is on the left side twice"),
        ("y + bs(x, df=4) ~ a", 4, "left side"),
        ("y - x ~ a", 4, "left side"),
        ("y + x ~ a + x", 12, "both sides"),
        (". ~ x", 0, "left side"),
        ("bs(y, df=4) ~ x", 0, "left side"),
        ("y ~ x + y", 8, "both sides"),
        ("y ~ np.log(.)", 11, "inside a function"),
        ("y ~ .x", 5, "operator is missing"),
        ("y ~ I(x\ud800)", 4, "cannot be read here"),
        ("y ~ x + 2", 8, "a number is not a term"),
        ("y ~ (x + a)**2.5", 13, "must be a whole number"),
        ("y ~ C(x, Treatment, contrast=Sum)", 4, "only one contrast"),
        ("y ~ C(x, Treatment(1, 2))", 9, "may only have the arguments: reference"),
        ("y ~ C(x, levels=3)", 16, "levels= takes a list"),
        pytest.param("y ~ (. + Q)**40", 4, "more than 100,000 terms", marks=pytest.mark.long),
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


V = "+".join(f"v{k}" for k in range(16))
TOO_MUCH = {
    "y ~ bs(x, df=26, degree=25)": "from 0 to 10",
    "y ~ bs(x, df=26, degree=11)": "from 0 to 10",
    "y ~ bs(x, df=26, degree=-1)": "from 0 to 10",
    "y ~ bs(x, df=26, degree=2.5)": "from 0 to 10",
    "y ~ te(bs(x, df=200), bs(a, df=200), bs(b, df=200))": "8,000,000 columns; at most 1,600 are",
    "y ~ te(cr(x, df=41), cr(a, knots=[" + "0, " * 40 + "]))": "1,681 columns",
    "y ~ bs(x, df=1001)": "at most 1,000",
    "y ~ bs(x, knots=[" + "0, " * 1000 + "])": "at most 2,000 names and signs",
    f"y ~ ({V})**20": "more than 1,000,000 products",
    f"y ~ ({V} + a + b)**{'9' * 5000}": "more than 100,000 terms",
    "y ~ " + "+".join(["(.)**3"] * 2000): "more than 1,000,000 products",
    "y ~ " + "+".join("." * 24_000): "more than 1,000,000 products",
    "y ~ I(a" + " > b" * 100_000 + ")": "at most 50,000 names and signs",
    "y ~ I(a" + " > b" * 5_000 + ")": "a function has at most 2,000",
    "y ~ I(a == '" + "x" * 50_000 + "')": "at most 20,000 characters",
    "y ~ " + "+".join(f"I(a+{k})" for k in range(6000)): "at most 5,000 functions",
    "y ~ " + "a" * 2_000_000: "at most 1,000,000 characters",
    "y ~ " + "(" * 5000 + "a" + ")" * 5000: "nested at most 50 deep",
    "y ~ I(" + "-" * 1500 + "a)": "more than 150 operations",
    "y ~ I(" + "a+" * 300 + "a)": r"\(a \+ b\) \+ \(c \+ d\)",
    "y ~ I(" + "2**" * 600 + "a)": "more than 150 operations",
    f"y ~ I(a + {'9' * 5000})": "cannot be read",
    f"y ~ I(a + 0x{'f' * 5000})": "too large",
    "y ~ " + "zq" * 400_000: "no column",
}


@pytest.mark.long
@pytest.mark.parametrize("text", TOO_MUCH, ids=range(len(TOO_MUCH)))
def test_what_is_too_much_is_refused_before_it_is_done(text):
    names = (*NAMES, *(f"v{k}" for k in range(40)))
    with pytest.raises(FormulaError, match=TOO_MUCH[text]):
        terms(text, names)


@pytest.mark.long
def test_long_formulas_within_the_limits_are_read():
    assert len(terms(f"y ~ ({V.replace('+v15', '')})**20", (*NAMES, *V.split("+")))) == 2**15 - 1
    assert terms("y ~ " + "*".join(["a", "b"] * 10_000)) == ["a", "b", ("a", "b")]
    assert terms("y ~ " + "(" * 50 + "a" + ")" * 50) == ["a"]
    deep = "I(" + "-" * 140 + "a)"
    assert terms(f"y ~ {deep}") == [ast.unparse(ast.parse(deep, mode="eval"))]


@pytest.mark.parametrize("formula, hint", [
    ("log(y) ~ a", r"write np.log\(\)"), ("y ~ sqrt(a)", r"write np.sqrt\(\)"),
    ("y ~ a.b", r"Q\('a.b'\)"), ("y ~ a.1", r"Q\('a.1'\)"), ("y ~ .a", r"Q\('.a'\)"),
    ("y ~ np.log(a, a, a)", r"takes 1 arguments"), ("y ~ np.sqr(a)", r"did you mean np.sqrt\(\)"),
    ("y ~ a^2", r"\(a \+ b\)\*\*2 here, of a column I\(x\*\*2\)"), ("y ~ (a + y)^2", r"\*\*2"),
    ("y ~ I(a^2)", r"I\(x\*\*2\)"), ("y ~ `a b`", r"Q\('a b'\)"),
    ("y ~ I(`a b` + 1)", r"Q\('a b'\)"),
    ("y ~ a + offset(b)", r"offset='x'.* = np\.log"), ("y ~ poly(a, 2)", r"x \+ I\(x\*\*2\)"),
    ("y ~ s(a, k=5)", r"cr\(x, df=5\)"), ("y ~ ns(a, 3)", r"bs\(x, df=5\)"),
    ("y ~ ti(a, b)", r"te\(cr\("), ("y ~ factor(a)", r"C\(x\)"), ("y ~ as.factor(a)", r"C\(x\)"),
    ("y ~ relevel(a, ref='u')", "Treatment"), ("y ~ I(ifelse(a > 0, 1, 0))", r"np\.where"),
    ("y ~ pmin(a, b)", r"np\.minimum"), ("y ~ asin(a)", r"np\.arcsin"),
    ("cbind(y, a) ~ b", r"y1 \+ y2"), ("y ~ a %in% b", "a:b"), ("y ~ I(a %% 2)", "write %"),
    ("y ~ I(a > 0 && b > 0)", r"\(a\) & \(b\)"), ("y ~ I(!a)", "write ~"),
    ("y ~ df$a", "name alone"), ("y ~ a + (1 | b)", "no random"), ("y ~ a | b", "no random"),
    ("y ~ a - 1", "always have an intercept"),
    ("y ~ a + 0", "always have an intercept"), ("y ~ I(a == TRUE)", "write True"),
    ("y ~ a \u2212 b", "write '-'"), ("y \u223c a", "'~'"), ("y ~ Q(\u201ca\u201d)", "write '\"'"),
    ("mean price ~ .", r"missing before 'price'; .* Q\('mean price'\)"),
    ("y ~ a + mean sq ft", r"Q\('mean sq ft'\)"), ("C(y) ~ a", "give family='multinomial'"),
    ("y ~ a\u00a0+ b", "write ' '"), ("y ~ scale(a)(b)", "operator is missing"),
    ("y ~ bs(a)", r"needs df= or knots=, such as bs\(x, df=5\)"),
    ("y ~ te(cr(a), cr(a, 3))", r"needs df= or knots=, such as cr\(x, df=5\)"),
])  # fmt: skip
def test_habits_of_r_users_get_a_hint(formula, hint):
    df = pd.DataFrame({"a": [1.0, 2.0, 3.0], "a.b": [2.0, 1.0, 2.0], "y": [1.0, 2.0, 4.0]})
    with pytest.raises(ld.FormulaError, match=hint):
        ld.gbmap(formula, df, m=1, lambda_=0.1)


@pytest.mark.parametrize(
    "left", ["(.)", "..", "(a + b)", "a*b", "a:b", "a**2", "(.)**2", "()", "1"]
)
def test_a_left_side_that_is_no_column_is_refused(left):
    with pytest.raises(FormulaError):
        parse(f"{left} ~ a")


@pytest.mark.parametrize("old, new, expected", [
    ("y ~ .", ". ~ . - x", "y ~ . - x"), ("y ~ a + b", ". ~ . - a", "y ~ a + b - a"),
    ("np.log(y) ~ a + b", ". ~ .*z", "np.log(y) ~ (a + b)*z"),
    ("y ~ a - b", ". ~ x - .", "y ~ x - (a - b)"),
    ("y ~ a + b", ". ~ .**2 + .:z", "y ~ (a + b)**2 + (a + b):z"), ("~ a", ". ~ . + b", "~ a + b"),
    ("y ~ a", "x ~ .", "x ~ ."), ("y ~ a", "~ . - x", "~ . - x"),
    ("y ~ a", ". ~ Q('.') + (.)", "y ~ Q('.') + ((a))"),
    ("y + z ~ a", ". ~ b", "y + z ~ b"),
])  # fmt: skip
def test_update_takes_the_old_sides_for_dots(old, new, expected):
    assert update(old, new) == expected


def test_update_of_a_fit():
    df = pd.DataFrame({"a": [1.0, 2, 3, 4, 5], "b": [2.0, 1, 2, 5, 1], "y": [1.0, 2, 4, 3, 0]})
    fit = ld.gbmap("np.exp(y) ~ a*b", df, m=1, lambda_=0.1).update(df, formula=". ~ . - a:b")
    assert fit.design.formula == "np.exp(y) ~ a*b - a:b" and fit.design.names == ("a", "b")
    assert fit.update(df, formula="y ~ .").design.names == ("a", "b")
    with pytest.raises(FormulaError, match="one '~'"):
        fit.update(df, formula=". ~ . ~ a")
    with pytest.raises(FormulaError, match="the formula must be text"):
        fit.update(df, formula=7)


@pytest.mark.parametrize("right", [".", "a + .", "x + .", ".**2", "a*. - b", "log(x) + .", "a:b"])
def test_a_dot_without_a_column(right):
    """The terms are those of a formula whose dot does not see the column."""
    for name in ("x", "a b"):
        text = leave_out(f"y ~ {right}".replace("log", "np.log"), name)
        hidden = terms(f"y ~ {right}".replace("log", "np.log"), hidden={name})
        assert terms(text) == hidden
    assert leave_out("y~.", "x") == "y ~ . - x" and leave_out("~ a", "x") == "~ a"
    assert leave_out("y ~ .", None, [1.0], "x", "z") == "y ~ (. - z) - x"


def test_answers_of_a_model_are_no_features():
    names = ["y", "a", ".fitted", ".fitted[u]", ".resid", ".pred", ".x1", ".x", ".class", ".id"]
    assert terms("y ~ .", names) == ["a", ".x", ".id"]
    assert terms("y ~ . + Q('.pred')", names) == ["a", ".x", ".id", ".pred"]
