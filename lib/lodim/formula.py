"""A formula as text: where its sides and summands are, and what its dot stands for.

What a formula may say is in `grammar`; everything here works on text alone.
"""

import ast
import difflib
import io
import itertools
import keyword
import tokenize
import unicodedata
from dataclasses import dataclass

from lodim.errors import FormulaError
from lodim.grammar import (
    ALLOWED,
    MAX_TERMS,
    RESERVED,
    Refused,
    check_algebra,
    column_name,
    column_nodes,
    function_name,
    size,
)


@dataclass(frozen=True)
class Summand:
    """One summand of a side: ``sign`` is +1 or -1, ``start`` its place in the formula.

    ``kind`` is 'dot', 'name', 'number' or 'compound'. ``pieces`` is the text cut at its dots, and
    ``tree`` (compound only) its syntax, with each dot as the name ``_``.
    """

    sign: int
    kind: str
    pieces: tuple[str, ...]
    start: int
    tree: ast.expr | None = None

    @property
    def text(self):
        """The summand as written."""
        return ".".join(self.pieces)

    @property
    def columns(self):
        """(name, place in the formula) of each column it names."""
        if self.kind == "name":
            return [(self.text, self.start)]
        nodes = column_nodes(self.tree) if self.tree is not None else ()
        return [(column_name(node), self.start + _place(self.text, node)) for node in nodes]


@dataclass(frozen=True)
class Formula:
    """A formula that is right by its syntax; nothing is known of the data yet.

    ``responses`` is empty for ``~ .``; otherwise each is a column's name or a call, as text.
    """

    text: str
    responses: tuple[Summand, ...]
    summands: tuple[Summand, ...]

    @property
    def response(self):
        """The one response, or None; a FormulaError where there are several."""
        if len(self.responses) > 1:
            message = "only one response can be used here; for a sum of columns write I(a + b)"
            _fail(self.text, self.responses[1].start, message)
        return self.responses[0] if self.responses else None


@dataclass(frozen=True)
class Step:
    """What one summand adds (``sign`` +1) or takes away (-1).

    Either ``columns``, each a term of its own, or ``text``, an expression without dots.
    """

    sign: int
    columns: tuple[str, ...] = ()
    text: str | None = None


def parse(text):
    """Read a formula.

    Parameters
    ----------
    text : str
        For instance ``"y ~ ."``, ``"np.log(y) ~ . - x"``, ``"~ a:b + I(x**2)"``.

    Returns
    -------
    Formula

    Raises
    ------
    FormulaError
        With the formula and a caret under the place.
    """
    if not isinstance(text, str):
        raise FormulaError(f"a formula is text such as 'y ~ .', not {type(text).__name__}")
    text = text.replace("\n", " ").replace("\r", " ")
    tokens = _tokens(text)
    tildes = [i for i, (_, string, _, depth) in enumerate(tokens) if string == "~" and not depth]
    if not tildes:
        _fail(text, len(text.rstrip()), "the formula has no '~'; write for instance 'y ~ .'")
    if len(tildes) > 1:
        _fail(text, tokens[tildes[1]][2], "a formula has one '~'")
    left = _side(text, tokens[: tildes[0]])
    end = tokens[tildes[0]][2] + 1
    right = _side(text, tokens[tildes[0] + 1 :])
    if not right:
        _fail(text, end, "nothing is on the right of '~'; write '.' for all columns")
    _check_numbers(text, right)
    return Formula(text, _responses(text, left), right)


def _fail(text, place, message):
    """Raise with the formula (a window of it, when long) and a caret under the place."""
    first = max(0, place - 60)
    shown = text[first : place + 40]
    raise FormulaError(f"{message}\n    {shown}\n    {' ' * (place - first)}^")


def _tokens(text):
    """(type, string, column, depth) of every token; depth counts the brackets around it."""
    pad = len(text) - len(text.lstrip())
    found, stack = [], []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text[pad:]).readline):
            place = token.start[1] + pad
            if token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER):
                continue
            if token.type == tokenize.COMMENT:
                _fail(text, place, "'#' cannot stand in a formula")
            unread = token.type == tokenize.ERRORTOKEN and not token.string.isspace()
            if unread or token.string == "@":
                _fail(text, place, f"{token.string[:1]!r} cannot be read here")
            if token.string in {")", "]", "}"} and (
                not stack or stack.pop()[0] + token.string not in {"()", "[]", "{}"}
            ):
                _fail(text, place, f"no bracket is open that {token.string!r} could close")
            found.append((token.type, token.string, place, len(stack)))
            if token.string in {"(", "[", "{"}:
                stack.append((token.string, place))
    except (tokenize.TokenError, SyntaxError):
        place = stack[-1][1] if stack else len(text.rstrip())
        _fail(text, place, "the formula cannot be read: a bracket or a quote is not closed")
    if stack:
        _fail(text, stack[-1][1], "this bracket is not closed")
    return found


def _side(text, tokens):
    """The summands of one side: cut at every + and - outside brackets that joins two summands."""
    summands, sign, part = [], None, []
    for token in tokens:
        joins = token[1] in {"+", "-"} and token[3] == 0 and (not part or _ends(part[-1]))
        if not joins:
            part.append(token)
            continue
        if part:
            summands.append(_summand(text, sign or 1, part))
        elif sign is not None:
            _fail(text, token[2], f"something is missing before this {token[1]!r}")
        sign, part = (1 if token[1] == "+" else -1), []
    if part:
        summands.append(_summand(text, sign or 1, part))
    elif sign is not None:
        _fail(text, tokens[-1][2] + 1, f"something is missing after this {tokens[-1][1]!r}")
    return tuple(summands)


def _ends(token):
    """Whether a summand may end with this token, so that a sign after it joins two summands."""
    return token[0] != tokenize.OP or token[1] in {")", "]", "}", ".", "..."}


def _dots(text, part):
    """Places of the dots that stand for all columns, not for an attribute."""
    places = []
    for i, (_, string, place, _) in enumerate(part):
        if string != "." or (i and _ends(part[i - 1]) and part[i - 1][1] != "."):
            continue
        if i + 1 < len(part) and part[i + 1][2] == place + 1 and part[i + 1][0] != tokenize.OP:
            _fail(text, place + 1, "an operator is missing after '.'")
        places.append(place)
    return places


def _summand(text, sign, part):
    """The summand made of these tokens, its syntax checked."""
    start = part[0][2]
    stop = part[-1][2] + len(part[-1][1])
    dots = _dots(text, part)
    cuts = [start - 1, *dots, stop]
    pieces = tuple(text[a + 1 : b] for a, b in itertools.pairwise(cuts))
    if len(part) == 1:
        if dots:
            return Summand(sign, "dot", pieces, start)
        if _is_name(part[0][1]):
            return Summand(sign, "name", pieces, start)
        if keyword.iskeyword(part[0][1]):
            _fail(text, start, f"{pieces[0]} is a word of Python; write Q({pieces[0]!r})")
        if part[0][0] == tokenize.NUMBER:
            return Summand(sign, "number", pieces, start)
    colons = [place for _, string, place, _ in part if string == ":"]
    tree = _syntax(text, start, stop, dots, colons)
    try:
        check_algebra(tree)
    except Refused as refused:
        _fail(text, start + _place(text[start:stop], refused.node), str(refused))
    except RecursionError:
        _fail(text, start, "this is nested too deeply, or a sum in brackets is too long")
    return Summand(sign, "compound", pieces, start, tree)


def _syntax(text, start, stop, dots, colons):
    """Python's syntax tree of a summand.

    Dots become the name ``_`` and colons ``@``, of the same length, so that places stay true.
    That ``@`` binds less tightly than ``:`` does not matter: only the factors are read from here.
    """
    letters = list(text)
    for place in dots:
        letters[place] = "_"
    for place in colons:
        letters[place] = "@"
    tree, error = _python("".join(letters[start:stop]))
    if tree is None:
        _fail(text, start + error, "the formula cannot be read here")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            place = start + _place(text[start:stop], node)
            node.is_dot = place in dots
    return tree


def _python(code):
    """(tree, None), or (None, place of the error)."""
    try:
        return ast.parse(code, mode="eval").body, None
    except SyntaxError as error:
        return None, min(error.offset - 1, len(code)) if error.offset else len(code.rstrip())
    except (ValueError, MemoryError, RecursionError):
        return None, 0


def _place(code, node):
    """Column of a node in characters; Python counts it in bytes of utf-8."""
    return len(code.encode()[: node.col_offset].decode())


def _is_name(string):
    return string.isidentifier() and not keyword.iskeyword(string)


def _check_numbers(text, summands):
    """A model has its own intercept: it cannot be taken away, and other numbers mean nothing."""
    for summand in summands:
        if summand.kind != "number" or (summand.sign > 0 and summand.text == "1"):
            continue
        if summand.text in {"0", "1"}:
            message = "models of lodim always have an intercept; it cannot be removed"
        else:
            message = "a number is no term; for arithmetic write I(...), such as I(x + 1)"
        _fail(text, summand.start, message)


def _responses(text, left):
    """The responses, checked one by one."""
    for summand in left:
        if summand.sign < 0 or summand.kind in ("dot", "number"):
            _fail(text, summand.start, "the left side is one column, or a function of columns")
        if summand.kind == "compound":
            _check_response(text, summand)
    written = [summand.text for summand in left]
    for k, summand in enumerate(left):
        if summand.text in written[:k]:
            _fail(text, summand.start, f"the response {summand.text} is there twice")
    return left


def _check_response(text, summand):
    for node in ast.walk(summand.tree):
        name = function_name(node.func) if isinstance(node, ast.Call) else None
        if name and not (name.startswith("np.") or name in {"I", "Q"}):
            message = f"{name}() cannot stand on the left side; np. functions, I and Q can"
            _fail(text, summand.start + _place(summand.text, node), message)
    if not isinstance(summand.tree, ast.Call) and column_name(summand.tree) is None:
        message = "the left side is one column, or a function of columns such as np.log(y)"
        _fail(text, summand.start, message)


def expand(formula, names, hidden=()):
    """Say what the right side is made of, given the columns there are.

    A dot stands for all columns that the left side does not name and that are not in `hidden`.

    Parameters
    ----------
    formula : Formula
    names : sequence of str
        The columns of the data.
    hidden : collection of str
        Columns that play another part: weights, offset.

    Returns
    -------
    tuple of Step

    Raises
    ------
    FormulaError
        A column is not in `names` (near matches are listed), is on both sides, or there would be
        too many terms.
    """
    known = set(names)
    left = {name: place for summand in formula.responses for name, place in summand.columns}
    for name, place in left.items():
        _check_known(formula.text, name, place, names, known)
    for summand in formula.summands:
        for name, place in summand.columns:
            _check_known(formula.text, name, place, names, known)
            if name in left:
                _fail(formula.text, place, f"column {name!r} is on both sides of the formula")
    dot = tuple(name for name in names if name not in left and name not in hidden)
    return tuple(_step(formula, s, dot) for s in formula.summands if s.kind != "number")


def _step(formula, summand, dot):
    if summand.kind == "name":
        return Step(summand.sign, (summand.text,))
    if summand.kind == "dot":
        return Step(summand.sign, dot)
    name = column_name(summand.tree)
    if name is not None and not getattr(summand.tree, "is_dot", False):
        return Step(summand.sign, (name,))
    if len(summand.pieces) > 1 and not dot:
        _fail(formula.text, summand.start, "'.' stands for no column here: none is left")
    if size(summand.tree, len(dot)) > MAX_TERMS:
        message = f"this would make more than {MAX_TERMS:,} terms of {len(dot):,} columns"
        _fail(formula.text, summand.start, message)
    return Step(summand.sign, (), _balanced([quote(n) for n in dot]).join(summand.pieces))


def _balanced(texts):
    """One bracketed sum, as a tree: patsy's recursion overflows on a flat sum of 500 terms."""
    if len(texts) < 2:
        return "".join(texts)
    half = len(texts) // 2
    return f"({_balanced(texts[:half])} + {_balanced(texts[half:])})"


def quote(name):
    """A column's name as it stands in a formula: bare where Python would read it back the same."""
    bare = _is_name(name) and name not in RESERVED and unicodedata.normalize("NFKC", name) == name
    return name if bare else f"Q({name!r})"


def _check_known(text, name, place, names, known):
    if name in known:
        return
    message = f"there is no column {name!r} in the data"
    if near := near_matches(name, names):
        message += f"; did you mean {' or '.join(map(repr, near))}?"
    elif name in RESERVED:
        message += f"; {ALLOWED}"
    else:
        message += f"; it has {listing(names)}"
    _fail(text, place, message)


def near_matches(name, names):
    """At most three names that look like this one, letter case aside."""
    lower = {other.lower(): other for other in names}
    found = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.7)
    return [lower[key] for key in found]


def listing(names, most=8):
    """The first few names, in words."""
    shown = ", ".join(repr(name) for name in names[:most]) or "no columns"
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
