"""From a frame to numbers: what a formula learns from data, and how it is applied to new data."""

import itertools
import math
from dataclasses import dataclass, fields, replace

import numpy as np

from lodim import forms
from lodim.checks import one_of
from lodim.design import columns, factors, materialize
from lodim.design import missing as gaps
from lodim.design.batch import Batch
from lodim.design.frames import EAGER, PANDAS
from lodim.design.response import Response, RowInputs, code_response, learn_response, read_complete
from lodim.design.table import rows_to_learn
from lodim.engine import tiles
from lodim.errors import ArgumentError, DataError, FormulaError
from lodim.formula.formula import answers, expand, parse, quote

REAL = (np.float64, np.float32)
FAMILIES = ("gaussian", "binomial", "multinomial", "poisson", "gamma", "none")
MAX_FEATURES = 1_000_000
LARGEST = 1e160  # of a mean in a file: no larger number has a square
MAX_LETTERS = 25_000_000  # of the features' names
# Features that a formula may make: so many of each column in any case; beyond that so many in all,
# and so many numbers in all rows (0.8 GB).
EACH, MANY_FEATURES, MANY_NUMBERS = 100, 100_000, 100_000_000
LISTS = ("names", "term_names", "constant", "left_out")  # which are tuples here
MISSING = ("drop", "indicator", "keep")  # what can be done where a feature is missing


@dataclass(frozen=True, eq=False)
class Design:
    """What a formula has learnt from data; holds no row of it.

    formula : as the user wrote it
    family : 'gaussian', 'binomial', 'multinomial', or 'none' without a response
    response : Response, or None
    terms : tuples of factors (see `factor`), whose columns are multiplied
    names : p names of features; term_names : names of the terms
    term_of : (p,) int, the term that each feature belongs to
    mean, scale : (p,) float64; X = (raw - mean) / scale. In a constant feature X is 0 always,
        also in new data: nothing could be learnt of it
    constant : names of the constant features
    n_dropped : rows left out for missing values
    weights, offset : names of columns, where they were given by name
    offset_given : whether an offset was used
    dtype : 'float64' or 'float32', of X
    left_out : columns that a dot has left out, as they are answers of a model (`.fitted`)
    missing : what is done with rows that miss a feature. 'drop': they are left out. 'indicator':
        a number is its training mean, a category a level of its own, and a column says where a
        number that training had gaps in is missing. 'keep': features, and the response where it
        is missing, are NaN in the batch
    fills : a Fill of each column of the right side, in order; empty but with 'indicator'
    n_incomplete : rows of weight above zero that miss features alone, whatever is done with them
    frame_kind : name of the package whose frame the data were: "pandas" (also of a dict), "polars"
    """

    formula: str
    family: str
    response: Response | None
    terms: tuple
    names: tuple[str, ...]
    term_names: tuple[str, ...]
    term_of: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    constant: tuple[str, ...]
    n_dropped: int
    weights: str | None
    offset: str | None
    offset_given: bool
    dtype: str
    left_out: tuple[str, ...] = ()
    missing: str = "drop"
    fills: tuple[gaps.Fill, ...] = ()
    n_incomplete: int = 0
    frame_kind: str = PANDAS

    @classmethod
    def learn(
        cls,
        formula,
        data,
        *,
        family=None,
        weights=None,
        offset=None,
        order=None,
        standardize=True,
        dtype="float64",
        missing="drop",
        reference_levels=False,
        clusters=None,
        groups=None,
        which=None,
    ):
        """Learn a design from data, and apply it to the same data.

        Rows with a missing response, weight or offset are left out first, and by default those
        with a missing feature. Means and scales are weighted by `weights` (population sd, divisor
        the sum of weights); rows of weight zero are kept and do not count.

        Parameters
        ----------
        formula : str
            For instance ``"y ~ ."``; see `lodim.formula.formula`.
        data : DataFrame or mapping
            pandas, polars or another frame that narwhals reads, or a dict of columns.
        family : {None, 'gaussian', 'binomial', 'multinomial', 'poisson', 'gamma', 'none'}
            None infers: levels are classes, as are numbers that are exactly {0, 1} or {-1, 1};
            other numbers are gaussian.
        weights : str or (N,) array, optional
        offset : str, (N,) or (N, K) array, optional
        order : str or (N,) array, optional
            By which rows follow each other, for models that look at neighbours in time.
        standardize : bool
            Whether features are scaled to unit sd; they are centred in any case.
        dtype : {'float64', 'float32'}
        missing : {'drop', 'indicator', 'keep'}
            What is done with rows that miss a feature; see `Design`. With 'keep', rows that miss
            the response stay too.
        reference_levels : bool
            Code factors as R does: by a column for each level but the first, ordered categories by
            orthogonal polynomials, and either by one for every level in an interaction whose
            margin, the term without the factor, is not in the formula. Without it ordered
            categories have a column for each level but the first too, 1 where it is reached.
        clusters : str or (N,) array, optional
            Which rows belong together, for covariances that allow for it.
        groups : str or (N,) array, optional
            Which rows are held out together, where folds are drawn.
        which : int, optional
            Which response of a formula with several on its left side; without it there is one.

        Returns
        -------
        Design, Batch

        Raises
        ------
        FormulaError, DataError, ArgumentError, MissingExtraError
        """
        _check_arguments(family, dtype, standardize, missing)
        frame = columns.read_frame(data)
        parsed, chosen = read_formula(formula, family, which)
        beside = weights, offset, order, clusters, groups
        hidden = {name for name in beside if isinstance(name, str)}
        keys, response = expand(parsed, frame.names, hidden), _response(chosen)
        inputs = RowInputs.read(frame, *beside)
        used, answer = _names_of(keys), _answers(response)
        read = read_complete(frame, used, answer, inputs, missing, learning=True)
        table, rows, incomplete = read
        inputs = inputs.at(rows)
        table.positive_weight, table.weights = inputs.positive_weight, inputs.weights
        y, response, family = learn_response(response, family, table)
        inputs.check_classes(family, response)
        fills = gaps.learn_fills(used, table) if missing == "indicator" else ()
        table = gaps.filled(table, fills)
        terms, named = _learn_terms(keys, table, reference_levels, fills)
        names = named["names"]
        X = _tiles(len(rows), len(names), dtype)
        learnt = materialize.learn_and_write(terms, table, X, names, inputs.weights, standardize)
        mean, scale, flat = learnt
        design = cls(
            formula=formula,
            family=family,
            response=response,
            terms=terms,
            **named,
            mean=mean,
            scale=scale,
            constant=tuple(itertools.compress(names, flat)),
            n_dropped=len(frame.index) - len(rows),
            weights=weights if isinstance(weights, str) else None,
            offset=offset if isinstance(offset, str) else None,
            offset_given=offset is not None,
            dtype=str(np.dtype(dtype)),
            left_out=answers(parsed, frame.names),
            missing=missing,
            fills=fills,
            n_incomplete=incomplete,
            frame_kind=frame.kind,
        )
        beside = inputs.order, inputs.clusters, inputs.groups
        return design, Batch(X, y, inputs.weights, inputs.offset, frame.index, rows, *beside)

    def apply(self, data, *, offset=None, response=False, new_levels="error"):
        """Turn new data into numbers as the data of `learn` were.

        Rows that miss the offset (with `response`: or the response or weight), and by default those
        that miss a feature, are not in the batch; `Batch.rows` says which are.

        Parameters
        ----------
        data : DataFrame or mapping
        offset : str, number, (N,) or (N, K) array, optional
            Needed where an array was given to `learn`; a column that was named there is looked up.
            A number stands for all rows.
        response : bool
            Whether to read and code the response too, and the weights where they are a column.
        new_levels : {'error', 'missing'}
            What a level that training had not is. A declared category without training rows is
            missing in any case.

        Returns
        -------
        Batch

        Raises
        ------
        DataError
            A column is missing or of another kind, or has a level that was not seen.
        """
        frame = columns.read_frame(data)
        target = self._require_response() if response else None
        weights = self.weights if response else None
        inputs = RowInputs.read(frame, weights, self._offset(offset))
        names, known = self.features, self.known_levels(new_levels)
        read = read_complete(frame, names, _answers(target), inputs, self.missing, known=known)
        table, rows, _ = read
        table = gaps.filled(table, [fill for fill in self.fills if fill.name in names])
        inputs = inputs.at(rows)
        inputs.check_classes(self.family, self.response)
        X = _tiles(len(rows), len(self.names), self.dtype)
        if len(rows):
            materialize.write(self.terms, table, X, self.mean, self.scale, self._is_constant())
        y = None if target is None else code_response(target, table, self.family)
        return Batch(X, y, inputs.weights, inputs.offset, frame.index, rows)

    def restrict(self, features):
        """The design without the terms that have none of some features: new data need no others.

        A term of several columns (levels, a spline) stays whole where one of them is asked for.

        Parameters
        ----------
        features : (A,) int
            Positions in `names`.

        Returns
        -------
        Design, kept
            `kept` (q,) int, increasing: the features of this design that the new one has.
        """
        wanted = np.unique(self.term_of[features])
        kept = np.flatnonzero(np.isin(self.term_of, wanted))
        names = tuple(self.names[k] for k in kept)
        terms = tuple(self.terms[t] for t in wanted)
        restricted = replace(
            self,
            formula=_formula(self.response, terms),
            terms=terms,
            names=names,
            term_names=tuple(self.term_names[t] for t in wanted),
            term_of=np.searchsorted(wanted, self.term_of[kept]),
            mean=self.mean[kept],
            scale=self.scale[kept],
            constant=tuple(name for name in self.constant if name in names),
        )
        return restricted, kept

    def rescaled(self, mean, scale):
        """The design that centres and scales anew what this one has centred and scaled.

        Parameters
        ----------
        mean, scale : (p,) float64
            Of the features in units of this design, as `batch.split_and_scaling` returns them.

        Returns
        -------
        Design
        """
        return replace(self, mean=self.mean + self.scale * mean, scale=self.scale * scale)

    def _require_response(self):
        if self.response is None:
            raise DataError(f"the formula {self.formula!r} has no response")
        return self.response

    def _offset(self, offset):
        """The offset to use, or what is wrong with it."""
        if offset is not None and not self.offset_given:
            raise DataError("the model was fitted without an offset; it cannot be given now")
        if offset is None and self.offset_given and self.offset is None:
            raise DataError("the model was fitted with an offset; give offset= for the new data")
        return self.offset if offset is None else offset

    def has_response(self, data):
        """Whether data have the columns of the response, and of weights that have a name."""
        if self.response is None:
            return False
        needed = [*_answers(self.response), *([self.weights] if self.weights else [])]
        return set(needed) <= set(columns.read_frame(data).names)

    @property
    def levels(self):
        """Classes of the response in order; None for a numeric one, or without a response."""
        return None if self.response is None else self.response.levels

    @property
    def features(self):
        """Names of the columns that the right side uses, each once."""
        names = [name for term in self.terms for part in term for name in factors.needs(part)]
        return list(dict.fromkeys(names))

    def known_levels(self, new_levels):
        """Of columns whose new levels may be missing values: those known, and which are missing.

        Parameters
        ----------
        new_levels : {'error', 'missing'}
            As `apply` takes it.

        Returns
        -------
        dict
            (levels, others that are taken as missing; None: all others) by column.
        """
        one_of("new_levels", new_levels, ("error", "missing"))
        found, parts = {}, list(itertools.chain.from_iterable(self.terms))
        for name, part in [(factors.column_with_levels(part), part) for part in parts]:
            if name is None or not (new_levels == "missing" or part.unseen):
                continue
            if new_levels == "missing" and any(factors.is_read_as_number(p, name) for p in parts):
                raise ArgumentError(
                    f"new_levels='missing' is not for column {name!r}, which the formula takes as "
                    "a number too"
                )
            levels, unseen = found.get(name, (part.levels, part.unseen))
            levels = tuple(level for level in levels if level in part.levels)
            found[name] = levels, None if new_levels == "missing" else (*unseen, *part.unseen)
        return found

    def has_level_of_missing(self, name):
        """Whether a missing value of a column of the data is a level of its own in some term."""
        parts = itertools.chain.from_iterable(self.terms)
        return any(
            factors.column_with_levels(part) == name and part.missing is not None for part in parts
        )

    def _is_constant(self):
        constant = set(self.constant)
        return [name in constant for name in self.names] if constant else [False] * len(self.names)

    def to_state(self):
        """All of it as dicts, lists, str, int, float, bool, None and arrays of numbers."""
        state = {f.name: getattr(self, f.name) for f in fields(self)}
        state |= {key: list(state[key]) for key in LISTS}
        state["fills"] = [dict(vars(fill)) for fill in self.fills]
        state["terms"] = [[factors.to_state(part) for part in term] for term in self.terms]
        if self.response is not None:
            state["response"] = dict(vars(self.response))
            if self.levels is not None:
                state["response"]["levels"] = list(self.levels)
        return state

    @classmethod
    def from_state(cls, state):
        """The design that `to_state` has written."""
        state = dict(state)
        if "partial" in state:  # of a file from before there was a choice
            state["missing"] = "keep" if state.pop("partial") else "drop"
        state |= {key: tuple(state[key]) for key in LISTS}
        state["fills"] = tuple(gaps.Fill(**fill) for fill in state.get("fills", ()))
        state["terms"] = tuple(tuple(map(factors.from_state, term)) for term in state["terms"])
        if state["response"] is not None:
            response = dict(state["response"])
            response["levels"] = None if response["levels"] is None else tuple(response["levels"])
            state["response"] = Response(**response)
        design = cls(**state)
        design.check()
        return design

    def check(self):
        """Raise a ValueError unless the parts fit each other, as those of a file may not."""
        p, name = len(self.names), forms.optional(forms.text)
        parts = {"formula": forms.text, "family": forms.choice(*FAMILIES)}
        parts |= {"weights": name, "offset": name, "offset_given": forms.flags()}
        parts |= dict.fromkeys(("n_dropped", "n_incomplete"), forms.whole())
        parts |= {"missing": forms.choice(*MISSING), "frame_kind": forms.choice(*EAGER)}
        parts |= {"dtype": forms.choice("float64", "float32"), "term_of": forms.whole(p)}
        parts |= {"mean": forms.real(p, least=-LARGEST, most=LARGEST)}
        parts |= {"scale": forms.real(p, least=forms.TINY, most=LARGEST)}
        parts |= {key: forms.several(key) for key in ("constant", "left_out")}
        forms.check(self, parts, "design")
        names, term_names, term_of = _names(self.terms, _widths(self.terms))
        same = (self.names, self.term_names) == (names, term_names) and all(self.terms)
        if not (same and (self.term_of == term_of).all() and set(self.constant) <= set(names)):
            raise ValueError("the names of the features are not those that the terms make")
        if (self.response is None) != (self.family == "none"):
            raise ValueError(f"family {self.family!r} does not fit the response")
        if self.offset is not None and not self.offset_given:
            raise ValueError("the design has an offset that was not given")
        for fill in self.fills:
            fill.check()
        if self.missing == "indicator" and not {*self.features} <= {f.name for f in self.fills}:
            raise ValueError("a feature has nothing that stands for its missing values")
        if self.response is not None:
            self.response.check(self.family)


def _check_arguments(family, dtype, standardize, missing):
    if missing not in MISSING:
        raise ArgumentError(f"missing is one of {', '.join(MISSING)}, not {missing!r}")
    if family is not None and not (isinstance(family, str) and family in FAMILIES):
        raise ArgumentError(f"family is one of {', '.join(FAMILIES)}, not {family!r}")
    if not isinstance(dtype, str | type) or dtype not in ("float64", "float32", *REAL):
        raise ArgumentError(f"dtype is 'float64' or 'float32', not {dtype!r}")
    if not isinstance(standardize, bool):
        raise ArgumentError(f"standardize is True or False, not {standardize!r}")


def read_formula(text, family, which=None):
    """Parse, and see that the family fits the left side: a Formula, and the response meant."""
    parsed = parse(text)
    response = parsed.response if which is None else parsed.responses[which]
    if response is None and family not in (None, "none"):
        raise FormulaError(f"family {family!r} needs a response on the left of '~': {text}")
    if response is not None and family == "none":
        raise FormulaError(f"family 'none' takes no response on the left of '~': {text}")
    return parsed, response


def _response(leaf):
    """The response that is meant, its levels not learnt yet."""
    return None if leaf is None else Response(leaf.text, called=leaf.kind == "call")


def _names_of(keys):
    """Names of the columns that terms need, each once."""
    every = dict.fromkeys(key for term in keys for key in term)
    return list(dict.fromkeys(name for key in every for name in factors.columns_of(key)))


def _answers(response):
    """Names of the columns that a response needs."""
    return [] if response is None else factors.columns_of(response.key)


def _learn_terms(keys, table, reference_levels, fills):
    """The terms of some keys, and the names of their features and of themselves, a dict."""
    _check_size([math.prod(map(factors.least_width, term)) for term in keys], keys, table.n)
    terms = _learn_factors(keys, table, reference_levels)
    terms += gaps.indicators(terms, fills)
    widths = _widths(terms)
    _check_size(widths, keys, table.n)
    names, term_names, term_of = _names(terms, widths)
    return terms, {"names": names, "term_names": term_names, "term_of": term_of}


def _learn_factors(keys, table, reference_levels):
    learnt, margins = {}, {frozenset(), *map(frozenset, keys)}
    for key in itertools.chain.from_iterable(keys):
        if key not in learnt:
            part = rows_to_learn(table, factors.columns_of(key))[0]
            learnt[key] = factors.learn(key, part, polynomials=reference_levels)
    if not reference_levels:
        return tuple(tuple(learnt[key] for key in term) for term in keys)
    return tuple(
        tuple(factors.against_reference(learnt[key], {*term} - {key} in margins) for key in term)
        for term in keys
    )


def _check_size(widths, keys, n):
    """Raise where a formula makes too much; `widths` are the numbers of features of its terms."""
    p, used = sum(widths), len(_names_of(keys))
    few = p <= EACH * used or (p <= MANY_FEATURES and n * p <= MANY_NUMBERS)
    if few and p <= MAX_FEATURES:
        return
    what = f"the formula would make {p:,} features of {used:,} columns, {n * p:,} numbers"
    limits = f"{MANY_FEATURES:,} features and {MANY_NUMBERS:,} numbers in all {n:,} rows"
    if p > MAX_FEATURES:
        limits = f"{MAX_FEATURES:,} features in all"
    raise DataError(f"{what}; beyond {EACH} features for each column, {limits} are allowed")


def _tiles(n, p, dtype):
    try:
        return tiles.empty(n, p, dtype)
    except MemoryError:
        size = n * p * np.dtype(dtype).itemsize / 1e9
        what = f"{n:,} rows x {p:,} features, {size:,.1f} GB, do not fit into the memory"
        raise DataError(what) from None


def _widths(terms):
    """Numbers of features of the terms."""
    return [math.prod(map(factors.width, term)) for term in terms]


def _names(terms, widths):
    """Names of the features and of the terms, and the term of each feature."""
    letters = sum(w * sum(map(factors.letters, t)) for w, t in zip(widths, terms, strict=True))
    if letters > MAX_LETTERS:
        raise DataError(
            f"the names of the features would be {letters:,} letters long, and {MAX_LETTERS:,} are "
            "the most; give the columns shorter names, or write shorter expressions"
        )
    names, term_of = [], []
    for t, term in enumerate(terms):
        labels = [factors.labels(part) for part in term]
        for choice in materialize.column_choices(term):
            names.append(":".join(label[j] for label, j in zip(labels, choice, strict=True)))
            term_of.append(t)
    if len(set(names)) < len(names):
        seen = set()
        twice = next(name for name in names if name in seen or seen.add(name))
        raise DataError(f"two features would be called {twice!r:.200}; rename a column")
    term_names = tuple(":".join(map(factors.title, term)) for term in terms)
    return tuple(names), term_names, np.array(term_of, np.int64)


def _formula(response, terms):
    """The formula whose terms these are."""
    left = "" if response is None else _text(response)
    right = " + ".join(dict.fromkeys(":".join(map(_text, term)) for term in terms)) or "1"
    return f"{left} ~ {right}".strip()


def _text(part):
    """A response or a factor as it is written: code as it is, a column's name quoted if need be."""
    code = isinstance(part, factors.Expression) or getattr(part, "called", False)
    return part.name if code else quote(part.name)
