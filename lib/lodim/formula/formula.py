"""Formulas as text: their two sides, the columns named in them, and the expansion of dots."""

import re
from dataclasses import dataclass

from lodim.errors import FormulaError
from lodim.formula import idioms, terms
from lodim.formula.language import ALLOWED, DATES, RESERVED, canonical, functions, quote
from lodim.formula.parser import Joined, Leaf, fail, side, tokens
from lodim.text import first_few, near_matches, shown

# Names of columns that augment() adds: predictions, not features.
ANSWERS = re.compile(
    r"\.(fitted|resid|std\.resid|pred|prob|loss|class|view|cluster|drift|x[0-9]+$)", re.DOTALL
)


@dataclass(frozen=True)
class Formula:
    """A parsed formula: responses, syntax tree of the right side, and the text of both sides."""

    text: str
    responses: tuple[Leaf, ...]
    right: Leaf | Joined
    sides: tuple[str, str]

    @property
    def response(self):
        """The only response, or None without a response; FormulaError if there are several."""
        if len(self.responses) > 1:
            message = "only one response can be used here; for a sum of columns write I(a + b)"
            fail(self.text, self.responses[1].place, message)
        return self.responses[0] if self.responses else None


def parse(text):
    """Return the Formula of a text such as "y ~ a:b"; errors show a caret under the fault."""
    text, left, right, tilde = _cut(text)
    responses = side(text, left, 0)
    tree = side(text, right, tilde + 1)
    if tree is None:
        fail(text, tilde + 1, "the right side of '~' is empty; write '.' for all columns")
    for sign, part in _summands(tree):
        if not isinstance(part, Leaf) or part.kind != "number":
            continue
        if part.text not in ("0", "1"):
            message = "a number is not a term; for arithmetic write I(...), such as I(x + 1)"
            fail(text, part.place, message)
        if sign == "-" or part.text == "0":
            message = "models of lodim always have an intercept; it cannot be removed: leave out"
            fail(text, part.place, f"{message} '{sign} {part.text}'")
    sides = (text[:tilde].strip(), text[tilde + 1 :].strip())
    return Formula(text, _responses(text, responses), tree, sides)


def _cut(text):
    """Return (formula in one line, tokens left of '~', tokens right of '~', position of '~')."""
    if not isinstance(text, str):
        raise FormulaError(f"the formula must be text such as 'y ~ .', not {shown(text)}")
    every = tokens(text)
    text = text.replace("\n", " ").replace("\r", " ")
    tildes = [i for i, token in enumerate(every) if token.text == "~" and not token.depth]
    if not tildes:
        fail(text, len(text.rstrip()), "a formula must have a '~'; write for instance 'y ~ .'")
    if len(tildes) > 1:
        fail(text, every[tildes[1]].place, "a formula must have only one '~'")
    at = tildes[0]
    return text, every[:at], every[at + 1 :], every[at].place


def _summands(tree):
    """Return a list of (sign, part) for what `tree`, a side of a formula, adds or subtracts."""
    if isinstance(tree, Joined) and tree.operators[-1] in ("+", "-"):
        return list(zip(tree.operators, tree.parts, strict=True))
    return [("+", tree)]


def _responses(text, tree):
    """Return a tuple of responses (Leaf) from `tree`, the left side of the formula `text`."""
    responses = {}
    if isinstance(tree, Joined) and "(" in text[: tree.place]:
        fail(text, tree.place, "on the left side, for a sum of columns write I(a + b)")
    for sign, part in _summands(tree) if tree is not None else ():
        if not isinstance(part, Leaf) or part.kind in ("dot", "number") or sign == "-":
            message = "the left side must be one column, or a function of columns such as np.log(y)"
            fail(text, part.place, message)
        for name in functions(part.tree) if part.kind == "call" else ():
            if not name.startswith("np.") and name not in ("I", "Q", *DATES):
                message = f"{name}() cannot be on the left side; use I, Q or functions of np."
                if name == "C":
                    message += "; if numbers are classes, give family='multinomial'"
                fail(text, part.place, message)
        if part.text in responses:
            fail(text, part.place, f"the response {part.text} is on the left side twice")
        responses[part.text] = part
    return tuple(responses.values())


def expand(formula, names, hidden=()):
    """Return the terms on a formula's right side, such as a, b and a:b for a * b.

    names : columns of the data
    hidden : columns that a dot leaves out
    A term is a tuple of factors, each (column, None) or (None, text of a call)."""
    # A dot stands for all columns but responses, `hidden` ones, and those that augment() adds.
    columns = _Names(formula.text, names)
    left = {named.name for leaf in formula.responses for named in leaf.columns}
    for leaf in formula.responses:
        columns.check(leaf)
    for leaf in _leaves(formula.right):
        columns.check(leaf)
        for named in leaf.columns:
            if named.name in left:
                message = f"column {named.name!r} is on both sides of the formula"
                fail(formula.text, named.place, message)
    out = {*left, *hidden, *prediction_columns(formula, names)}
    dot = [name for name in names if name not in out]
    for _, part in _summands(formula.right) if not dot else ():
        if isinstance(part, Joined) and any(leaf.kind == "dot" for leaf in _leaves(part)):
            message = "'.' stands for no column here: the data has no other column"
            fail(formula.text, part.place, message)
    return terms.expand(formula.text, formula.right, dot)


def prediction_columns(formula, names):
    """Return the columns in `names` that a formula's dot omits: predictions such as .fitted."""
    if all(leaf.kind != "dot" for leaf in _leaves(formula.right)):
        return ()
    return tuple(name for name in names if ANSWERS.match(name))


def written(formula):
    """Return the set of columns named on the right side of a formula; a dot names none."""
    columns = (leaf for leaf in _leaves(formula.right) if leaf.kind == "column")
    return {named.name for leaf in columns for named in leaf.columns}


def compressed(name, center, spread):
    """Return the text of a term with light tails: arcsinh((column `name` - center) / spread)."""
    return f"np.arcsinh(({quote(name)} - {center!r}) / {spread!r})"


def is_compressed(code, name):
    """Return whether `code` of a formula term is arcsinh((column `name` - number) / number)."""
    number = r"\d[\d.]*(e[+-]?\d+)?"
    start = re.escape(f"np.arcsinh(({quote(name)} - ")
    return re.fullmatch(rf"{start}-?{number}\) / {number}\)", code) is not None


def _leaves(tree):
    if isinstance(tree, Leaf):
        yield tree
        return
    for part in tree.parts:
        yield from _leaves(part)


def update(old, new):
    """Return the formula `new` with its dots replaced by the sides of the formula `old`.

    If the left side of `new` is not a dot, return `new` unchanged."""
    text, left, right, tilde = _cut(new)
    if [token.text for token in left] != ["."]:
        return new  # unlike in R, a dot on the right then stands for all other columns
    sides = parse(old).sides
    pieces, last = [], tilde + 1
    for k, token in enumerate(right):
        if token.text == "." and token.kind == "sign":
            added = right[k - 1].text == "+" if k else True
            alone = added and not token.depth and (k + 1 == len(right) or right[k + 1].text in "+-")
            pieces += [text[last : token.place], sides[1] if alone else f"({sides[1]})"]
            last = token.end
    return f"{sides[0]} ~ {(''.join(pieces) + text[last:]).strip()}".strip()


def leave_out(text, *given):
    """Return a formula whose dot excludes the columns named in `given`; ignore arrays and None."""
    for name in given:
        if isinstance(name, str):
            left, right = parse(text).sides
            rest = f". - {quote(name)}"
            rest = rest if right.strip() == "." else f"({rest})"
            text = update(f"{left} ~ {rest}", f". ~ {right}")
    return text


class _Names:
    """Names of the data's columns, with which the names in a formula are checked."""

    def __init__(self, text, names):
        self.text, self.names, self.known = text, names, set(names)
        self.alike = {}  # normalized name -> names that Python would read as this name
        for name in names:
            if not name.isascii():
                self.alike.setdefault(canonical(name), []).append(name)

    def check(self, leaf):
        """Raise FormulaError if a column in a part `leaf` of a formula is missing or ambiguous."""
        for named in leaf.columns:
            twins = self.twins(named.name) if named.bare or named.name not in self.known else []
            if named.name not in self.known:
                fail(self.text, named.place, self.missing(named.name, twins))
            if twins:
                message = f"{_spelt(named.name)} may be {_spelt(twins[0])} too, which Python reads "
                message += f"as one; write Q({named.name!a}) for this column, Q({twins[0]!a})"
                fail(self.text, named.place, f"{message} for the other")

    def twins(self, name):
        """Return other columns that Python reads as the same name (equal `canonical` form)."""
        plain = canonical(name)
        alike = [*self.alike.get(plain, ()), *([plain] if plain in self.known else ())]
        return [other for other in dict.fromkeys(alike) if other != name]

    def missing(self, name, twins):
        message = f"there is no column {name!r:.100} in the data"
        if twins:
            alike = _spelt(twins[0])
            return f"{message}; {_spelt(name)} looks like {alike}, write {quote(twins[0])}"
        if near := near_matches(name, self.names):
            return f"{message}; did you mean {' or '.join(map(repr, near))}?"
        if name in idioms.NAMES:
            return f"{message}; for R's {name} write {idioms.NAMES[name]}"
        return f"{message}; {ALLOWED if name in RESERVED else f'it has {first_few(self.names)}'}"


def _spelt(name):
    """Return a name with the Unicode numbers of its characters, to distinguish similar names."""
    return repr(name) if name.isascii() else f"{name!r} ({name!a})"
