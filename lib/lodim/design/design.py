"""Design of a formula: what it learns from training data, and its application to new data."""

import itertools
from dataclasses import replace

import numpy as np

from lodim import forms
from lodim.checks import check_rectangular, flag, one_of
from lodim.design import chunks, factors
from lodim.design import terms as design_terms
from lodim.design.batch import Batch, with_positive_weight
from lodim.design.features import (
    Features,
    Prepared,
    columns_within,
    raw_features,
    scaling,
    tiles_for,
    write_features,
)
from lodim.design.frame import EAGER, PANDAS, read_frame
from lodim.design.reading import Reading, read_rows
from lodim.design.rows import (
    LARGEST_MEAN,
    Fill,
    Response,
    RowInputs,
    class_weights,
    code_response,
    filled,
    is_balanced,
    learn_fill,
    learn_response,
    read_complete,
)
from lodim.design.summaries import Limits, limits_by_position, most_wild
from lodim.errors import ArgumentError, DataError, ExtrapolationWarning, FormulaError, warn
from lodim.family import FAMILIES, is_parameter, parameter_of
from lodim.formula.formula import expand, is_compressed, parse, prediction_columns, quote, written
from lodim.sources import read_source
from lodim.text import counted

REAL = (float, np.float64, np.float32)
MISSING = ("drop", "indicator", "keep")  # allowed treatments of missing features


@forms.record
class Design:
    """Formula with all that was learned from training rows, to convert new rows to X.

    n_dropped : number of training rows left out for missing values
    n_incomplete : number of training rows that miss only features
    lacking : dict column or input (such as weights) -> number of missing values"""

    # Rows of weight zero do not count. `lacking` is empty if no row was dropped. Incomplete rows
    # are dropped if `missing` is "drop".

    formula: str = forms.text()
    family: str = forms.choice(*FAMILIES)
    parameter: float | None = forms.optional(forms.real())
    response: Response | None = forms.optional(forms.part(Response))
    # each term is a tuple of factors, whose columns are multiplied
    terms: tuple = forms.several(None, forms.several(None, forms.one_of(*factors.KINDS)))
    names: tuple[str, ...] = forms.several("p")
    term_names: tuple[str, ...] = forms.several(None)
    term_of: np.ndarray = forms.whole("p")  # (p,) number of the term that makes each feature
    # mean, scale: (p,); X = (feature - mean) / scale, but always 0 if the feature was constant
    mean: np.ndarray = forms.real("p", least=-LARGEST_MEAN, most=LARGEST_MEAN)
    scale: np.ndarray = forms.real("p", least=forms.TINY, most=LARGEST_MEAN)
    constant: tuple[str, ...] = forms.several(None)
    n_dropped: int = forms.whole()
    weights: str | None = forms.optional(forms.text())
    offset: str | None = forms.optional(forms.text())
    offset_given: bool = forms.flags()
    dtype: str = forms.choice("float64", "float32")
    # columns that the formula's '.' does not include: predictions, and identifiers of rows
    left_out: tuple[str, ...] = forms.several(None)
    # 'drop': rows with missing features are dropped. 'keep': NaN stays. 'indicator': a number
    # becomes the training mean, with an indicator; a missing category is a level
    missing: str = forms.choice(*MISSING)
    fills: tuple[Fill, ...] = forms.several(None, forms.part(Fill))
    n_incomplete: int = forms.whole()
    lacking: dict[str, int] = forms.entries(forms.whole(least=1))
    frame_kind: str = forms.choice(*EAGER)
    # number of sampled rows from which splines and scales were learned; 0 for all
    n_sampled: int = forms.whole()
    # ranges (Limits) of features with extreme outliers; a number in the range replaces them
    wild: tuple[Limits, ...] = forms.several(None, forms.part(Limits))

    @classmethod
    def learn(
        cls,
        formula,
        data,
        inputs=RowInputs(),  # noqa: B008
        *,
        family=None,
        parameters=None,
        standardize=True,
        dtype="float64",
        missing="drop",
        reference_levels=False,
        compress_tails=False,
        which=None,
        reading=Reading(),  # noqa: B008
    ):
        """Learn the terms and scales of a formula; return a Design and a Batch (training rows).

        inputs : RowInputs (weights etc.)
        family : name, None to infer it
        parameters : dict such as {"power": 1.5}
        standardize : whether to divide by standard deviations
        missing : "drop", "keep", or "indicator" (impute, add a 0/1 column)
        reference_levels : whether to code factors as R does
        compress_tails : whether to transform heavy tails
        which : position of the response, if several
        reading : Reading (sample, client etc.)"""
        one_of("missing", missing, MISSING)
        if family is not None:
            one_of("family", family, FAMILIES)
        if not isinstance(dtype, str | type) or dtype not in ("float64", "float32", *REAL):
            raise ArgumentError(f"dtype must be 'float64' or 'float32', not {dtype!r}")
        flag("standardize", standardize)
        parsed, chosen = read_formula(formula, family, which)
        source = read_source(data, check=lambda names: expand(parsed, names, inputs.names))
        data = read_frame(data) if source is None else source
        read = _read_rows(parsed, chosen, data, inputs, family, missing, reading)
        keys, left_out, family, response, y, inputs, rows, summaries = read
        parts = rows.parts
        parameter = parameter_of(family, y, rows.inputs.weights, parameters or {})
        filling = columns_within(summaries, parts) if missing == "indicator" else []
        fills = tuple(map(learn_fill, filling))
        if compress_tails:
            keys = design_terms.compress(keys, written(parsed), parts, summaries)
        how = fills, missing, reference_levels
        terms, named, n_sampled = design_terms.learn(keys, parts, summaries, *how)
        names = named["names"]
        features = Features(terms, fills, parts, missing)
        moments, wild = features.moments(names, summaries)
        mean, scale, size, flat = scaling(moments, names, standardize)
        design = cls(
            formula=formula,
            family=family,
            parameter=parameter,
            response=response,
            terms=terms,
            **named,
            mean=mean,
            scale=scale,
            constant=tuple(itertools.compress(names, flat)),
            n_dropped=rows.n_dropped,
            weights=inputs.weights if isinstance(inputs.weights, str) else None,
            offset=inputs.offset if isinstance(inputs.offset, str) else None,
            offset_given=inputs.offset is not None,
            dtype=str(np.dtype(dtype)),
            left_out=left_out,
            missing=missing,
            fills=fills,
            n_incomplete=rows.n_incomplete,
            lacking=rows.lacking,
            frame_kind=data.kind if data.kind in EAGER else PANDAS,
            n_sampled=n_sampled,
            wild=wild,
        )
        if isinstance(parts, chunks.WorkerChunks):
            X, y, inputs = parts.tiles(design, inputs, rows.inputs)
        else:
            n, inputs = len(rows.rows), rows.inputs
            X = tiles_for(rows.streamed, n, len(names), design.dtype, reading.scratch)
            features.write(design, X)
        at = {"index": rows.index, "rows": rows.rows, "streamed": rows.streamed, "size": size}
        at["columns"] = tuple(data.names)
        return design, Batch(X, y, **vars(inputs), **at)

    def apply(self, data, *, offset=None, response=False, new_levels="error"):
        """Convert the complete rows of new data to a Batch.

        offset : offset of the rows, None for the column used in training, if any
        response : whether to add the response and weights
        new_levels : "error" or "missing", treatment of levels not in training"""
        frame = read_frame(data)
        if response and self.response is None:
            raise DataError(f"the formula {self.formula!r} has no response")
        weights = self.weights if response else None
        inputs = RowInputs(weights=weights, offset=self._offset(offset)).read(frame)
        batch = self.batch_of(frame, inputs, response, self.known_levels(new_levels))
        n = len(frame.index)
        for one, rows, values in self.wild_rows(frame) if self.wild else ():
            if len(rows) > most_wild(n):
                what = f"{len(rows)} of {counted(n, 'row')} have values of {one.feature!r}"
                what += f" far outside the training range, such as {values[0]:g} (range: "
                what += f"{one.least:g} to {one.greatest:g})"
                warn(f"{what}. The fit uses {one.middle:g} instead", ExtrapolationWarning)
        return batch

    def rows_to_show(self, data, *, offset=None, needs_response=False):
        """Convert the complete rows of positive weight of new data to a Batch.

        The data may lack the column of weights and, unless needs_response, y, which is then NaN."""
        frame = read_frame(data)
        design = self if self.weights in frame.names else replace(self, weights=None)
        response = needs_response or design.has_response(frame)
        batch = design.apply(frame, offset=offset, response=response)
        if not response:
            batch = replace(batch, y=np.full(batch.n, np.nan))
        return with_positive_weight(batch)

    def batch_of(self, frame, inputs, response, known, part=False):
        """Convert the complete rows of a Frame (named columns) to a Batch: X, y, weights etc.

        inputs : RowInputs (weights etc.) of all rows
        response : whether to add y
        known : dict column -> (levels to keep, levels to set to missing)
        part : whether the rows are training rows"""
        target = self.response if response else None
        table, rows = self._complete_rows(frame, _answers(target), inputs, known)
        # The weights of training rows need no check.
        inputs = inputs.take(rows) if part else inputs.complete(rows)
        table.weights = inputs.weights if part else None
        inputs.check_classes(self.family, self.response)
        X = tiles_for(False, len(rows), len(self.names), self.dtype, None)
        if len(rows):
            write_features(self, Prepared(table), X)
        y = None if target is None else code_response(target, table, self.family)
        return Batch(X, y, **vars(inputs), index=frame.index, rows=rows)

    def _complete_rows(self, frame, targets, inputs, known):
        read = read_complete(frame, self.features, targets, inputs, self.missing, known=known)
        return filled(read[0], self.fills), read[1]

    def wild_rows(self, data):
        """Return outliers in data: a list of (Limits of a feature, row positions, values)."""
        at = list(self.limits)
        design, kept = self.restrict(at)
        known = design.known_levels("missing")
        table, rows = design._complete_rows(read_frame(data), [], RowInputs(), known)
        X = raw_features(design.terms, table, len(kept))
        found = []
        for one, x in zip(self.wild, X[:, np.searchsorted(kept, at)].T, strict=True):
            beyond = np.flatnonzero(one.beyond(x))
            found.append((one, rows[beyond], x[beyond]))
        return found

    def restrict(self, features):
        """Return a smaller design, and the positions of its features in this one.

        features : positions to keep, with all other features of the same terms"""
        wanted = np.unique(self.term_of[features])
        kept = np.flatnonzero(np.isin(self.term_of, wanted))
        names = tuple(self.names[k] for k in kept)
        known = set(names)
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
            constant=tuple(name for name in self.constant if name in known),
            wild=tuple(one for one in self.wild if one.feature in known),
        )
        return restricted, kept

    def rescaled(self, mean, scale):
        """Return the design with each standardized feature x replaced by (x - mean) / scale."""
        return replace(self, mean=self.mean + self.scale * mean, scale=self.scale * scale)

    def _offset(self, offset):
        if offset is not None and not self.offset_given:
            raise DataError("the model was fitted without an offset: leave offset= out")
        if offset is None and self.offset_given and self.offset is None:
            raise DataError("the model was fitted with an offset: give offset= for the new data")
        return self.offset if offset is None else offset

    def has_response(self, data):
        """Return whether data have the columns of the response, and of weights given by name."""
        if self.response is None:
            return False
        needed = [*_answers(self.response), *([self.weights] if self.weights else [])]
        return set(needed) <= set(read_frame(data).names)

    def check_response(self, what):
        if self.response is None:
            needs = f"{what} needs a response on the left of '~'"
            raise ArgumentError(f"{needs}; the formula is {self.formula!r}")

    @property
    def levels(self):
        """Classes of the response in order; None if it is numeric or absent."""
        return None if self.response is None else self.response.levels

    @property
    def features(self):
        """Names of the columns that the right side of the formula uses, each once."""
        return design_terms.needs(self.terms)

    @property
    def compressed(self):
        """Names of columns with heavy tails that are compressed, as in np.arcsinh((x - 5) / 2)."""
        codes = [t[0] for t in self.terms if len(t) == 1 and isinstance(t[0], factors.Expression)]
        columns = [(factors.needs(code)[0], code.name) for code in codes if factors.needs(code)]
        return [name for name, code in columns if is_compressed(code, name)]

    def columns_needed(self, others=()):
        return list(dict.fromkeys([*self.features, *_answers(self.response), *others]))

    def known_levels(self, new_levels):
        """Return which levels to keep or remove: dict column -> (kept, removed).

        new_levels : "error" or "missing", treatment of levels not in training
        kept : tuple of the levels of the training rows
        removed : tuple of levels to set to missing; None means all that are not kept"""
        one_of("new_levels", new_levels, ("error", "missing"))
        # "error" removes only declared categories without training rows; other levels raise errors.
        found, parts = {}, list(itertools.chain.from_iterable(self.terms))
        numbers = factors.read_as_numbers(parts) if new_levels == "missing" else ()
        for name, part in [(factors.column_with_levels(part), part) for part in parts]:
            if name is None or not (new_levels == "missing" or part.unseen):
                continue
            if name in numbers:
                what = f"new_levels='missing' is not possible for column {name!r}"
                raise ArgumentError(f"{what}, because the formula also uses it as a number")
            levels, unseen = found.get(name, (part.levels, part.unseen))
            levels = tuple(level for level in levels if level in part.levels)
            found[name] = levels, None if new_levels == "missing" else (*unseen, *part.unseen)
        return found

    @property
    def with_level_of_missing(self):
        """Set of columns whose missing values some term codes as a level of their own."""
        parts = itertools.chain.from_iterable(self.terms)
        marked = [part for part in parts if getattr(part, "missing", None) is not None]
        return set(map(factors.column_with_levels, marked))

    @property
    def limits(self):
        """Dict feature position -> (lower, upper, middle); values out of range become middle."""
        return limits_by_position(self.wild, self.names)

    def _check_fields(self):
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
        if not is_parameter(self.family, self.parameter):
            raise ValueError(f"the parameter {self.parameter} does not fit family {self.family!r}")


def _read_rows(parsed, chosen, data, given, family, missing, reading):
    """Read the training rows, code the response and summarize the columns.

    parsed : Formula
    chosen : its response, a Leaf, or None
    data : Frame or Source
    given : the user's RowInputs (weights etc.)
    family : name, None to infer it
    missing : "drop", "keep" or "indicator"
    reading : Reading (sample, client etc.)
    Return terms, omitted columns, family, Response, coded response (n,), RowInputs, Rows, and
    dict column -> Summary."""
    balanced = is_balanced(given.weights, data.names)
    if balanced:
        given = replace(given, weights=None)  # computed below, after the classes are counted
    for name, value in vars(given).items():
        check_rectangular(name, value)
    hidden, left_out = set(given.names), prediction_columns(parsed, data.names)
    client = reading.client_for(data)
    while True:
        keys, response = expand(parsed, data.names, hidden), _response(chosen)
        request, answer = design_terms.column_request(keys), _answers(response)
        drawn, inputs = reading.draw(data, [*request.names, *answer], given)
        rows = read_rows(drawn, request, answer, inputs, missing)
        y, response, coded = learn_response(response, family, rows.table)
        if balanced:
            weights = class_weights(y, response, rows.rows, len(rows.index))
            inputs = replace(inputs, weights=weights)
            rows = read_rows(drawn, request, answer, inputs, missing)
        parts = rows.parts
        if client is not None and parts.n > chunks.ROWS_PER_CHUNK:
            parts = chunks.WorkerChunks(parts.store, parts.table, parts.n_rows, parts.known, client)
            rows = replace(rows, parts=parts)
        rows.inputs.check_classes(coded, response)
        summaries = parts.summaries(request)
        named_rows = design_terms.warn_of_row_names(keys, summaries, written(parsed))
        if not named_rows:
            design_terms.warn_of_identifiers(keys, parts, summaries, written(parsed))
            return keys, left_out, coded, response, y, inputs, rows, summaries
        # Rows are read again without these columns, which may be the only missing ones.
        hidden |= {one.column.name for one in named_rows}
        left_out += tuple(one.column.name for one in named_rows)


def read_formula(text, family, which=None):
    """Return a parsed formula and its response (number `which` of several), checked by `family`."""
    parsed = parse(text)
    response = parsed.response if which is None else parsed.responses[which]
    if response is None and family not in (None, "none"):
        raise FormulaError(f"family {family!r} needs a response on the left of '~': {text}")
    if response is not None and family == "none":
        what = "family 'none' needs a formula without a response on the left of '~'"
        raise FormulaError(f"{what}, not: {text}")
    return parsed, response


def columns_read(formula, names, family=None, beside=()):
    """Return the data columns that a formula uses, as a tuple of names.

    names : all columns of the data
    family : name of the response's family, or None
    beside : further columns to return, which a dot in the formula leaves out"""
    parsed, chosen = read_formula(formula, family)
    keys = expand(parsed, names, set(beside))
    used = {*design_terms.columns_of(keys), *_answers(_response(chosen)), *beside}
    return tuple(name for name in names if name in used)


def _response(leaf):
    return None if leaf is None else Response(leaf.text, None, leaf.kind == "call")


def _answers(response):
    """Return the names of the columns from which a response is computed, such as y in np.log(y)."""
    return [] if response is None else factors.columns_of(response.key)


def _formula(response, terms):
    left = "" if response is None else _text(response)
    right = " + ".join(dict.fromkeys(":".join(map(_text, term)) for term in terms)) or "1"
    return f"{left} ~ {right}".strip()


def _text(part):
    """Return formula text for `part`, a response or a factor, with names quoted if needed."""
    code = isinstance(part, factors.Expression) or getattr(part, "called", False)
    return part.name if code else quote(part.name)
