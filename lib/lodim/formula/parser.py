"""Parser of formulas into trees of columns, dots, numbers and calls."""

import ast
import keyword
import re
from dataclasses import dataclass
from typing import NamedTuple

from lodim.errors import FormulaError
from lodim.formula import idioms, language
from lodim.formula.language import is_bare

MAX_LENGTH = 1_000_000  # largest number of characters of a formula
MAX_TOKENS = 50_000  # largest number of names, numbers and signs of a formula
MAX_CALLS = 5_000  # largest number of calls in a formula
MAX_BRACKETS = 50  # largest depth of nested brackets

LEVELS = (("+", "-"), ("*", "/"), (":",), ("**",))
_JOINING = tuple(sign for level in LEVELS for sign in level)
_ARITHMETIC = ("<", ">", "<=", ">=", "==", "!=", "<<", ">>", "//", "%", "&", "~")
_CLOSES = {")": "(", "]": "[", "}": "{"}
_WORD = r"[0-9A-Za-z_\x80-\U0010ffff]"
_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n\f]+)"
    r"|(?P<text>[rRuUbBfF]{0,2}(?:'[^'\\\r\n]*+(?:\\[^\r\n][^'\\\r\n]*+)*+'"
    r'|"[^"\\\r\n]*+(?:\\[^\r\n][^"\\\r\n]*+)*+"))'
    r"|(?P<number>0[xXoObB][0-9a-fA-F_]+"
    r"|(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]+)?[jJ]?)"
    rf"|(?P<name>{_WORD}+(?:\.{_WORD}+)*)"
    r"|(?P<sign>`[^`]*`?|\*\*|//|[<>=!]=|<<|>>|&&|\|\||%(?:in|/|\*)?%|.)",
    re.DOTALL,
)


class Token(NamedTuple):
    """A quoted text, number, name or sign in a formula, inside `depth` pairs of brackets."""

    kind: str
    text: str
    place: int
    depth: int

    @property
    def end(self):
        return self.place + len(self.text)


class Named(NamedTuple):
    """A column named at a position of a formula; `bare` if it was written without Q('')."""

    name: str
    place: int
    bare: bool


@dataclass(frozen=True)
class Leaf:
    """A part of a formula without operators: a dot, column, call (with its tree) or number."""

    kind: str
    text: str  # name of the column, or code in normal spelling
    place: int
    columns: tuple[Named, ...] = ()
    tree: ast.expr | None = None


@dataclass(frozen=True)
class Joined:
    """Parts of a formula joined by operators of equal precedence, such as a + b - c.

    operators[i] stands before parts[i]; the first one is '+' unless the sum starts with '-'."""

    parts: tuple
    operators: tuple[str, ...]
    place: int


def fail(text, place, message):
    """Raise FormulaError with `message`, the formula, and a caret under the position `place`."""
    first = max(0, place - 60)
    shown = re.sub(r"\s", " ", text[first : place + 40])
    raise FormulaError(f"{message}\n    {shown}\n    {' ' * (place - first)}^")


def tokens(text):
    """Return the tokens of a formula; raise FormulaError if its brackets do not match."""
    if len(text) > MAX_LENGTH:
        fail(text, 0, f"a formula may have at most {MAX_LENGTH:,} characters, not {len(text):,}")
    out, stack = [], []
    for match in _TOKEN.finditer(text):
        kind, string, place = match.lastgroup, match.group(), match.start()
        if kind == "space":
            continue
        if kind == "sign":
            if len(string) > 1 and string[0] == "`":
                fail(text, place, f"write a column name in backticks as Q({string.strip('`')!r})")
            if string in idioms.SIGNS:
                fail(text, place, f"{string!r} cannot be used here: {idioms.SIGNS[string]}")
            if string in _CLOSES and (not stack or stack.pop().text != _CLOSES[string]):
                fail(text, place, f"{string!r} closes no open bracket")
        out.append(Token(kind, string, place, len(stack)))
        if string in ("(", "[", "{"):
            if len(out) > 1 and out[-2].text in idioms.CALLS:
                fail(text, out[-2].place, idioms.CALLS[out[-2].text])
            stack.append(out[-1])
            if len(stack) > MAX_BRACKETS:
                fail(text, place, f"brackets may be nested at most {MAX_BRACKETS} deep")
        if len(out) > MAX_TOKENS:
            limit = f"a formula may have at most {MAX_TOKENS:,} names and signs"
            fail(text, place, f"{limit}; '.' stands for all columns")
    if stack:
        fail(text, stack[-1].place, "this bracket is not closed")
    return out


def side(text, tokens, after):
    """Return the syntax tree of one side of the formula `text`; None if it has no tokens.

    tokens : tokens of the side; after : position in `text` where the side begins"""
    return _Reader(text, tokens, after).side() if tokens else None


class _Reader:
    """Parser of one side of a formula, which reads its tokens from left to right."""

    def __init__(self, text, tokens, after):
        self.text, self.tokens, self.at = text, tokens, 0
        self.start = after  # position of the current term of the sum
        self.calls = 0

    def side(self):
        tree = self.joined()
        if self.sign is not None:
            self.stray()
        return tree

    @property
    def sign(self):
        """Text of the next token; None at the end."""
        return self.tokens[self.at].text if self.at < len(self.tokens) else None

    def fail(self, place, message):
        fail(self.text, place, message)

    def joined(self, level=0):
        """Parse parts joined by operators of one precedence level, such as + and -."""
        if level == len(LEVELS):
            return self.atom()
        place, operators = self.tokens[self.at].place if self.sign else self.start, ["+"]
        if level == 0:
            self.start = place
            if self.sign in LEVELS[0]:
                operators = [self.sign]
                self.at += 1
        parts = [self.joined(level + 1)]
        while self.sign in LEVELS[level]:
            operators.append(self.sign)
            self.at += 1
            if level == 0 and self.sign:
                self.start = self.tokens[self.at].place
            parts.append(self.joined(level + 1))
        if len(parts) == 1 and operators == ["+"]:
            return parts[0]
        if level:
            self.check(parts, operators)
        return Joined(tuple(parts), tuple(operators), place)

    def check(self, parts, operators):
        """Raise FormulaError for a number as operand, or for ** other than (sum)**(whole number).

        parts : operands (each Leaf or Joined); operators : texts, operators[i] before parts[i]"""
        power = operators[1] == "**"
        for part in parts[:1] if power else parts:
            self.check_term(part)
        if not power:
            return
        number = parts[1]
        whole = isinstance(number, Leaf) and number.text.isdecimal() and int(number.text[:9]) > 0
        if len(parts) > 2 or not whole:
            message = "the power of a sum must be a whole number, as in (a + b)**2"
            self.fail(parts[-1].place, message)
        if isinstance(parts[0], Leaf) and parts[0].kind != "dot":
            self.fail(parts[0].place, "for the power of a column write I(x**2)")

    def check_term(self, part):
        if isinstance(part, Leaf) and part.kind == "number":
            message = "a number or a text is not a term; write I(...) or Q('column name')"
            self.fail(part.place, message)

    def atom(self):
        """Parse a dot, a number, a column, a call, or a sum in brackets."""
        if self.sign is None or self.sign in (*_JOINING, *_CLOSES):
            self.missing()
        token = self.tokens[self.at]
        self.at += 1
        if token.text == "(":
            start = self.start
            tree = self.joined()
            if self.sign != ")":
                self.stray()
            self.at += 1
            self.start = start
            for part in tree.parts if isinstance(tree, Joined) else (tree,):
                self.check_term(part)
            return tree
        if token.text == ".":
            after = self.tokens[self.at] if self.at < len(self.tokens) else None
            if after and after.place == token.place + 1 and after.kind != "sign":
                cure = f"write a column name with a dot as Q({'.' + after.text!r:.60})"
                self.fail(after.place, f"an operator is missing after '.'; {cure}")
            return Leaf("dot", ".", token.place)
        if token.kind == "number":
            return Leaf("number", token.text, token.place)
        if token.kind == "name":
            return self.call(token) if self.sign == "(" else self.column(token)
        if token.kind == "text":
            self.check_term(Leaf("number", token.text, token.place))
        self.at -= 1
        return self.stray()

    def missing(self):
        """Raise FormulaError: an operator lacks an operand."""
        if self.sign is not None:
            place = self.tokens[self.at].place
            self.fail(place, f"a term is missing before this {self.sign!r}")
        last = self.tokens[-1]
        what = f"a term is missing after this {last.text!r}"
        self.fail(last.end, what)

    def stray(self):
        """Raise FormulaError: the next token is not allowed at its position."""
        token = self.tokens[self.at]
        if token.text == "|":
            self.fail(token.place, idioms.BAR)
        if token.text in _ARITHMETIC:
            self.fail(self.start, "write this arithmetic inside I(...), such as I(x > 1)")
        if token.kind == "sign" and token.text not in (".", "("):
            self.fail(token.place, f"this cannot be used in a formula: {language.ALLOWED}")
        if token.kind == "name" and token.text[0] in idioms.TYPESET:
            self.unreadable(token)
        self.fail(token.place, f"an operator is missing before {token.text[:40]!r}{self.blanks()}")

    def blanks(self):
        """Return advice for a column name with blanks that was written without Q(''), else ""."""
        words = [token.kind in ("name", "number") for token in self.tokens]
        if not (words[self.at] and self.at and words[self.at - 1]):
            return ""
        first = last = self.at
        while first and words[first - 1]:
            first -= 1
        while last + 1 < len(words) and words[last + 1]:
            last += 1
        name = self.text[self.tokens[first].place : self.tokens[last].end]
        return f"; write a column name with blanks as Q({name!r:.60})"

    def column(self, token):
        name = token.text
        if keyword.iskeyword(name):
            self.fail(token.place, f"{name} is a keyword of Python; write Q({name!r})")
        if not name.isidentifier():
            self.unreadable(token)
        return Leaf("column", name, token.place, (Named(name, token.place, True),))

    def unreadable(self, token):
        """Raise FormulaError: the name in a token has an invalid character."""
        name = token.text
        k = next(k for k in range(len(name)) if not name[: k + 1].isidentifier())
        if name[k] == ".":
            cure = f"write a column name with a dot as Q({name!r:.60})"
            self.fail(token.place, f"{cure}; {language.ALLOWED}")
        cure = f"write a column with this name as Q({name!r:.60})"
        if name[k] in idioms.TYPESET:
            cure = f"write {idioms.TYPESET[name[k]]!r}"
        self.fail(token.place + k, f"{name[k]!a} cannot be used here; {cure}")

    def call(self, token):
        """Parse a function call with its arguments; `token` has the name of the function."""
        first = self.at
        while self.tokens[self.at].depth > token.depth or self.sign != ")":
            if self.sign == ".":
                self.fail(self.tokens[self.at].place, "'.' cannot be used inside a function")
            self.at += 1
        self.at += 1
        end = self.tokens[self.at - 1].end
        self.calls += 1
        for count, most, what in (
            (self.at - first, language.MAX_NODES, "a function has {} names and signs"),
            (end - token.place, language.MAX_CODE, "a function is {} characters long"),
            (self.calls, MAX_CALLS, "a formula has {} functions of columns"),
        ):
            if count > most:
                self.fail(token.place, what.format(f"at most {most:,}"))
        return self.read(self.text[token.place : end], token.place)

    def read(self, code, place):
        """Return a Leaf for a column or call: text `code` at position `place` of the formula."""
        try:
            tree = language.read(code)
            if not isinstance(tree, ast.Name):  # not a Q('name')
                language.check_call(tree, outermost=True)
        except SyntaxError as error:
            at = max(0, min(error.offset - 1, len(code))) if error.offset else 0
            letter = code[at : at + 1]
            cure = f": write {idioms.TYPESET[letter]!r}" if letter in idioms.TYPESET else ""
            self.fail(place + at, f"the formula cannot be read here{cure}")
        except language.Refused as refused:
            self.fail(place + language.place(code, refused.node), str(refused))
        columns = tuple(
            Named(language.column_name(node), place + language.place(code, node), is_bare(node))
            for node in language.column_nodes(tree)
        )
        name = language.column_name(tree)
        if name is not None:
            return Leaf("column", name, place, columns)
        return Leaf("call", ast.unparse(tree), place, columns, tree)
