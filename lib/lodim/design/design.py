"""From a frame to numbers: what a formula learns from data, and how it is applied to new data."""

import itertools
from dataclasses import dataclass, replace

import numpy as np

from lodim import forms
from lodim.checks import check_rectangular, one_of
from lodim.design import factors
from lodim.design import terms as design_terms
from lodim.design.batch import Batch
from lodim.design.chunks import WorkerParts
from lodim.design.features import (
    Features,
    columns_within,
    raw_features,
    scaling,
    tiles_for,
    write_features,
)
from lodim.design.frame import EAGER, PANDAS, read_frame
from lodim.design.reading import Reading, Rows
from lodim.design.rows import (
    Fill,
    Response,
    RowInputs,
    class_weights,
    code_response,
    filled,
    is_balanced,
    learn_fills,
    learn_response,
    read_complete,
)
from lodim.design.summaries import Limits, limits_by_position, most_wild
from lodim.errors import ArgumentError, DataError, ExtrapolationWarning, FormulaError, warn
from lodim.formula.formula import answers, expand, parse, quote, written
from lodim.sources.read import read_source
from lodim.text import counted

REAL = (float, np.float64, np.float32)
FAMILIES = ("gaussian", "binomial", "multinomial", "poisson", "gamma", "none")
LARGEST = 1e160  # of a mean in a file: no larger number has a square
MISSING = ("drop", "indicator", "keep")  # what can be done where a feature is missing


@forms.record
class Design:
    """What a formula has learnt from data; holds no row of it.

    formula : as the user wrote it
    family : 'none' without a response
    terms : tuples of factors (see `factor`), whose columns are multiplied
    names : p names of features; term_names : names of the terms
    term_of : the term that each feature belongs to
    mean, scale : X = (raw - mean) / scale. In a constant feature X is 0 always,
        also in new data: nothing could be learnt of it
    constant : names of the constant features
    n_dropped : rows left out for missing values, but for those of weight zero
    weights, offset : names of columns, where they were given by name
    offset_given : whether an offset was used
    dtype : of X
    left_out : columns that a dot has left out: answers of a model (`.fitted`), names of the rows
    missing : what is done with rows that miss a feature. 'drop': they are left out. 'indicator':
        a number is its training mean, a category a level of its own, and a column says where a
        number that training had gaps in is missing. 'keep': features, and the response where it
        is missing, are NaN in the batch
    fills : a Fill of each column of the right side, in order; empty but with 'indicator'
    n_incomplete : rows of weight above zero that miss features alone, whatever is done with them
    frame_kind : name of the package whose frame the data were: "pandas" (also of a dict), "polars"
    n_sampled : rows that splines, centres and scales were learnt from, where these were a sample
    wild : Limits of each feature with wild values, in order. The middle of the others stands for
        these, also in new data; see `summaries`
    """

    formula: str = forms.text()
    family: str = forms.choice(*FAMILIES)
    response: Response | None = forms.optional(forms.part(Response))
    terms: tuple = forms.several(None, forms.several(None, forms.one_of(*factors.KINDS)))
    names: tuple[str, ...] = forms.several("p")
    term_names: tuple[str, ...] = forms.several(None)
    term_of: np.ndarray = forms.whole("p")
    mean: np.ndarray = forms.real("p", least=-LARGEST, most=LARGEST)
    scale: np.ndarray = forms.real("p", least=forms.TINY, most=LARGEST)
    constant: tuple[str, ...] = forms.several(None)
    n_dropped: int = forms.whole()
    weights: str | None = forms.optional(forms.text())
    offset: str | None = forms.optional(forms.text())
    offset_given: bool = forms.flags()
    dtype: str = forms.choice("float64", "float32")
    left_out: tuple[str, ...] = forms.several(None)
    missing: str = forms.choice(*MISSING)
    fills: tuple[Fill, ...] = forms.several(None, forms.part(Fill))
    n_incomplete: int = forms.whole()
    frame_kind: str = forms.choice(*EAGER)
    n_sampled: int = forms.whole()
    wild: tuple[Limits, ...] = forms.several(None, forms.part(Limits))

    @classmethod
    def learn(
        cls,
        formula,
        data,
        inputs=RowInputs(),  # noqa: B008
        *,
        family=None,
        standardize=True,
        dtype="float64",
        missing="drop",
        reference_levels=False,
        which=None,
        reading=Reading(),  # noqa: B008
    ):
        """Learn a design from data, and apply it to the same data.

        Rows with a missing response, weight or offset are left out first, and by default those
        with a missing feature. Means and scales are weighted by `weights` (population sd, divisor
        the sum of weights); rows of weight zero are kept and do not count.

        Parameters
        ----------
        formula : str
            For instance ``"y ~ ."``; see `lodim.formula.formula`.
        data : DataFrame or mapping, path or other source
            pandas, polars or another frame that narwhals reads, or a dict of columns; or what
            `read_source` reads part by part.
        inputs : RowInputs, optional
            Names of columns, or arrays (N,) or (N, K); weights may be "balanced", see
            `class_weights`.
        family : {None, 'gaussian', 'binomial', 'multinomial', 'poisson', 'gamma', 'none'}
            None infers: levels are classes, as are numbers that are exactly {0, 1} or {-1, 1};
            other numbers are gaussian.
        standardize : bool
            Whether features are scaled to unit sd; they are centred in any case.
        dtype : {'float64', 'float32'}
        missing : {'drop', 'indicator', 'keep'}
            What is done with rows that miss a feature; see `Design`. With 'keep', rows that miss
            the response stay too.
        reference_levels : bool
            Code factors as R does: by a column for each level but the first, ordered categories by
            orthogonal polynomials, and either by one for every level if the rest of the term is
            not part of an earlier term. Without it ordered categories have a column for each level
            but the first too, 1 where it is reached.
        which : int, optional
            Which response of a formula with several on its left side; without it there is one.
        reading : Reading, optional

        Returns
        -------
        Design, Batch

        Raises
        ------
        FormulaError, DataError, ArgumentError, MissingExtraError
        """
        _check_arguments(family, dtype, standardize, missing)
        read = _read(formula, data, inputs, family, which, missing, reading)
        rows, parts, summaries, fills = read.rows, read.parts, read.summaries, ()
        if missing == "indicator":
            fills = learn_fills(columns_within(summaries, parts))
        terms, named, n_sampled = design_terms.learn(
            read.keys, parts, summaries, fills, missing, reference_levels
        )
        names = named["names"]
        features = Features(terms, fills, parts, missing)
        moments = features.moments(len(names), summaries)
        wild = features.limits(names, moments)
        if wild:
            moments = features.moments_within(limits_by_position(wild, names), moments)
        mean, scale, size, flat = scaling(moments, names, standardize)
        design = cls(
            formula=formula,
            family=read.family,
            response=read.response,
            terms=terms,
            **named,
            mean=mean,
            scale=scale,
            constant=tuple(itertools.compress(names, flat)),
            n_dropped=rows.n_dropped,
            weights=read.given.weights if isinstance(read.given.weights, str) else None,
            offset=read.given.offset if isinstance(read.given.offset, str) else None,
            offset_given=read.given.offset is not None,
            dtype=str(np.dtype(dtype)),
            left_out=read.left_out,
            missing=missing,
            fills=fills,
            n_incomplete=rows.n_incomplete,
            frame_kind=read.kind if read.kind in EAGER else PANDAS,
            n_sampled=n_sampled,
            wild=wild,
        )
        X, y, inputs = _tiles(design, features, moments, flat, read, reading)
        at = {"index": rows.index, "rows": rows.rows, "streamed": rows.streamed, "size": size}
        return design, Batch(X, y, **vars(inputs), **at)

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

        Warns
        -----
        ExtrapolationWarning
            More rows than may be wild have values that the fit takes the middle of training for.
        """
        frame = read_frame(data)
        if response:
            self._require_response()
        weights = self.weights if response else None
        inputs = RowInputs(weights=weights, offset=self._offset(offset)).read(frame)
        batch = self.batch_of(frame, inputs, response, self.known_levels(new_levels))
        if self.limits:
            self._warn_of_wild_rows(frame)
        return batch

    def _warn_of_wild_rows(self, frame):
        """Warn if more rows of a Frame have wild values than may be by accident."""
        n = len(frame.index)
        for one, rows, values in self.wild_rows(frame):
            if len(rows) > most_wild(n):
                warn(
                    f"{len(rows)} of {counted(n, 'row')} have values of {one.feature!r} far "
                    f"outside the training rows, such as {values[0]:g} where these are from "
                    f"{one.least:g} to {one.greatest:g}: the fit takes {one.middle:g} for them",
                    ExtrapolationWarning,
                )

    def batch_of(self, frame, inputs, response, known, part=False):
        """The complete rows of a frame as numbers, as `apply` returns them.

        Parameters
        ----------
        frame : Frame
        inputs : RowInputs of its rows
        response : bool
            Whether to code the response too.
        known : dict
            As `known_levels` returns it.
        part : bool
            Whether these are some of the rows that the design has learnt from: weights are then
            as given.
        """
        target, names = self.response if response else None, self.features
        read = read_complete(frame, names, _answers(target), inputs, self.missing, known=known)
        table, rows, *_ = read
        table = filled(table, [fill for fill in self.fills if fill.name in names])
        inputs = inputs.take(rows) if part else inputs.complete(rows)
        table.positive_weight = inputs.positive_weight if part else None
        inputs.check_classes(self.family, self.response)
        X = tiles_for(False, len(rows), len(self.names), self.dtype, None)
        if len(rows):
            scaling = self.mean, self.scale, self._is_constant()
            write_features(self.terms, table, X, *scaling, self.limits)
        y = None if target is None else code_response(target, table, self.family)
        return Batch(X, y, **vars(inputs), index=frame.index, rows=rows)

    def wild_rows(self, data):
        """Return the rows of data with wild values.

        Returns
        -------
        list of (Limits, rows, values)
            Of each feature that has some in training: positions of the rows in the data, values.
        """
        at = [self.names.index(one.feature) for one in self.wild]
        design, kept = self.restrict(at)
        frame, known = read_frame(data), design.known_levels("missing")
        inputs, names = RowInputs(), design.features
        table, rows, *_ = read_complete(frame, names, [], inputs, self.missing, known=known)
        table = filled(table, [fill for fill in self.fills if fill.name in names])
        X = raw_features(design.terms, table, len(kept))
        found = []
        for one, x in zip(self.wild, X[:, np.searchsorted(kept, at)].T, strict=True):
            beyond = np.flatnonzero(one.beyond(x))
            found.append((one, rows[beyond], x[beyond]))
        return found

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
            wild=tuple(one for one in self.wild if one.feature in names),
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
        return set(needed) <= set(read_frame(data).names)

    @property
    def levels(self):
        """Classes of the response in order; None for a numeric one, or without a response."""
        return None if self.response is None else self.response.levels

    @property
    def features(self):
        """Names of the columns that the right side uses, each once."""
        names = [name for term in self.terms for part in term for name in factors.needs(part)]
        return list(dict.fromkeys(names))

    def columns_needed(self, others=()):
        """Names of the columns of both sides, and of others, each once."""
        return list(dict.fromkeys([*self.features, *_answers(self.response), *others]))

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

    @property
    def limits(self):
        """(lower, upper, middle) by position of the features with wild values, a dict."""
        return limits_by_position(self.wild, self.names)

    def _is_constant(self):
        constant = set(self.constant)
        return [name in constant for name in self.names] if constant else [False] * len(self.names)

    def _check_fields(self):
        """Raise a ValueError unless the fields fit each other."""
        names, term_names, term_of = design_terms.names(self.terms, design_terms.widths(self.terms))
        same = (self.names, self.term_names) == (names, term_names) and all(self.terms)
        if not (same and (self.term_of == term_of).all() and set(self.constant) <= set(names)):
            raise ValueError("the names of the features are not those that the terms make")
        if (self.response is None) != (self.family == "none"):
            raise ValueError(f"family {self.family!r} does not fit the response")
        if self.offset is not None and not self.offset_given:
            raise ValueError("the design has an offset that was not given")
        if not {one.feature for one in self.wild} <= set(names):
            raise ValueError("limits are of a feature that the design has not")
        if self.missing == "indicator" and not {*self.features} <= {f.name for f in self.fills}:
            raise ValueError("a feature has nothing that stands for its missing values")
        if self.response is not None:
            self.response.check_family(self.family)


@dataclass(frozen=True, eq=False)
class _Read:
    """What is read of data before its features are learnt.

    kind : package of the frame; keys : of the terms; left_out : as in a Design
    family, response : as in a Design, y the response of the complete rows
    given : RowInputs as given, classes that are balanced with their weights
    rows : Rows; parts : of these; summaries : of the columns by name
    """

    kind: str
    keys: tuple
    left_out: tuple
    family: str
    response: Response | None
    y: np.ndarray | None
    given: RowInputs
    rows: Rows
    parts: object
    summaries: dict


def _read(formula, data, given, family, which, missing, reading):
    """Read the rows, code the response, and summarize the columns; see `Design.learn`."""
    source = read_source(data)
    data = read_frame(data) if source is None else source
    parsed, chosen = read_formula(formula, family, which)
    balanced = is_balanced(given.weights, data.names)
    if balanced:
        given = replace(given, weights=None)  # until the classes are counted
    for name, value in vars(given).items():
        check_rectangular(name, value)
    hidden, left_out = set(given.names), answers(parsed, data.names)
    client = reading.client_for(source)
    while True:
        keys, response = expand(parsed, data.names, hidden), _response(chosen)
        request, answer = design_terms.column_request(keys, missing), _answers(response)
        read, drawn = reading.reader(data, source, request, answer, given, missing)
        rows, weighted = read(drawn), given
        y, response, coded = learn_response(response, family, rows.table)
        if balanced:
            weights = class_weights(y, response, rows.rows, len(rows.index))
            weighted = replace(given, weights=weights)
            rows = read(replace(drawn, weights=weights))
        parts = WorkerParts.of_client(rows.parts, client)
        rows.inputs.check_classes(coded, response)
        summaries = parts.summaries(request)
        named_rows = design_terms.row_names(keys, summaries, written(parsed))
        if not named_rows:
            found = keys, left_out, coded, response, y, weighted, rows, parts, summaries
            return _Read(data.kind, *found)
        # Rows are read again without these columns: they may be all that a row misses.
        hidden |= {one.column.name for one in named_rows}
        left_out += tuple(one.column.name for one in named_rows)


def _tiles(design, features, moments, flat, read, reading):
    """The tiles X of all rows, their response, and RowInputs, which may be on workers."""
    rows, parts, limits = read.rows, read.parts, design.limits
    if isinstance(parts, WorkerParts):
        return parts.tiles(design, read.given, rows.inputs)
    in_place = reading.in_place and reading.scratch is None and not limits
    found = features.in_place(design.dtype) if in_place else None
    numbers = design.mean, design.scale, flat
    if found is not None:
        X = features.tiles_in_place(found, moments, *numbers, design.dtype)
    else:
        n, p = len(rows.rows), len(design.names)
        X = tiles_for(rows.streamed, n, p, design.dtype, reading.scratch)
        features.write(X, *numbers, limits)
    return X, read.y, rows.inputs


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


def columns_read(formula, names, family=None, beside=()):
    """Those of some columns that a formula reads, and what is named beside it: a tuple of names."""
    parsed, chosen = read_formula(formula, family)
    keys = expand(parsed, names, set(beside))
    used = {*design_terms.columns_of(keys), *_answers(_response(chosen)), *beside}
    return tuple(name for name in names if name in used)


def _response(leaf):
    """The response that is meant, its levels not learnt yet."""
    return None if leaf is None else Response(leaf.text, None, leaf.kind == "call")


def _answers(response):
    """Names of the columns that a response needs."""
    return [] if response is None else factors.columns_of(response.key)


def _formula(response, terms):
    """The formula whose terms these are."""
    left = "" if response is None else _text(response)
    right = " + ".join(dict.fromkeys(":".join(map(_text, term)) for term in terms)) or "1"
    return f"{left} ~ {right}".strip()


def _text(part):
    """A response or a factor as it is written: code as it is, a column's name quoted if need be."""
    code = isinstance(part, factors.Expression) or getattr(part, "called", False)
    return part.name if code else quote(part.name)
