"""From a frame to numbers: what a formula learns from data, and how it is applied to new data."""

import itertools
from dataclasses import replace

import numpy as np

from lodim import forms
from lodim.checks import MOST_ROWS, check_rectangular, one_of, whole
from lodim.design import columns, factors, first_pass, materialize, on_workers, sampling
from lodim.design import missing as gaps
from lodim.design import terms as design_terms
from lodim.design.batch import Batch
from lodim.design.features import Features, columns_within
from lodim.design.frames import EAGER, PANDAS
from lodim.design.response import (
    Response,
    RowInputs,
    class_weights,
    code_response,
    is_balanced,
    learn_response,
    read_complete,
)
from lodim.design.rows import read_rows
from lodim.design.scratch import tiles_for
from lodim.design.wild import Limits, by_position
from lodim.errors import ArgumentError, DataError, FormulaError
from lodim.formula.formula import answers, expand, parse, quote, written
from lodim.sources.read import read_source

REAL = (np.float64, np.float32)
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
    wild : Limits of each feature with wild values, in order; see `wild`
    limited : whether their middle stands for wild values, also of new data
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
    fills: tuple[gaps.Fill, ...] = forms.several(None, forms.part(gaps.Fill))
    n_incomplete: int = forms.whole()
    frame_kind: str = forms.choice(*EAGER)
    n_sampled: int = forms.whole()
    wild: tuple[Limits, ...] = forms.several(None, forms.part(Limits))
    limited: bool = forms.flags()

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
        sample=None,
        seed=0,
        scratch=None,
        client=None,
        in_place=False,
        limited=True,
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
        family : {None, 'gaussian', 'binomial', 'multinomial', 'poisson', 'gamma', 'none'}
            None infers: levels are classes, as are numbers that are exactly {0, 1} or {-1, 1};
            other numbers are gaussian.
        weights : str or (N,) array, optional
            A column, an array or "balanced"; see `class_weights`.
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
            orthogonal polynomials, and either by one for every level if the rest of the term is
            not part of an earlier term. Without it ordered categories have a column for each level
            but the first too, 1 where it is reached.
        clusters : str or (N,) array, optional
            Which rows belong together, for covariances that allow for it.
        groups : str or (N,) array, optional
            Which rows are held out together, where folds are drawn.
        which : int, optional
            Which response of a formula with several on its left side; without it there is one.
        sample : int, optional
            So many of the rows alone, drawn at random by where they stand and `seed`.
        seed : int
        scratch : str, optional
            Folder of the file that holds the features; without it they are in memory, or where
            `data` are not and half of what is free is too little, in the temporary folder.
        client : dask.distributed.Client, optional
            Whose workers read the data and hold the features. Without it that of this process, of
            a Dask frame; False: none.
        in_place : bool
            Whether X may be ColumnTiles, of columns of the data that are not copied; they are where
            `columns_in_place` says so.
        limited : bool
            Whether wild values of features count as the middle of the others (see `wild`), or are
            only noted.

        Returns
        -------
        Design, Batch

        Raises
        ------
        FormulaError, DataError, ArgumentError, MissingExtraError
        """
        _check_arguments(family, dtype, standardize, missing)
        source = read_source(data)
        data = columns.read_frame(data) if source is None else source
        parsed, chosen = read_formula(formula, family, which)
        if balanced := is_balanced(weights, data.names):
            weights = None  # until the classes are counted
        beside = weights, offset, order, clusters, groups
        of_rows = ("weights", "offset", "order", "clusters", "groups")
        for name, value in zip(of_rows, beside, strict=True):
            check_rectangular(name, value)
        hidden = {name for name in beside if isinstance(name, str)}
        client, drawn = on_workers.client_for(client, source, sample, scratch), (sample, seed)
        left_out, found = answers(parsed, data.names), None
        while found != []:
            keys, response = expand(parsed, data.names, hidden), _response(chosen)
            wanted, answer = design_terms.wanted(keys, missing), _answers(response)
            read, given = _reader(data, source, wanted, answer, beside, missing, drawn)
            rows = read(given)
            y, response, coded = learn_response(response, family, rows.table)
            if balanced:
                weights = class_weights(y, response, rows.rows, len(rows.index))
                rows = read((weights, *given[1:]))
            inputs = rows.inputs
            parts = on_workers.WorkerParts.of_client(rows.parts, client)
            inputs.check_classes(coded, response)
            facts = parts.facts(wanted)
            # Rows are read again without these columns: they may be all that a row misses.
            found = design_terms.row_names(keys, facts, written(parsed))
            hidden |= {one.column.name for one in found}
            left_out += tuple(one.column.name for one in found)
        fills = ()
        if missing == "indicator":
            fills = gaps.learn_fills(columns_within(facts, parts) if limited else facts.values())
        terms, named, n_sampled = design_terms.learn(
            keys, parts, facts, fills, missing, reference_levels
        )
        names = named["names"]
        remote = isinstance(parts, on_workers.WorkerParts)
        features = Features(terms, fills, parts, missing)
        found = features.moments(len(names), facts)
        far = features.limits(names, found)
        limits = by_position(far, names) if limited else {}
        found = features.moments_within(limits, found) if limits else found
        in_place = in_place and scratch is None and not limits
        in_frame = features.in_place(dtype) if in_place else None
        if not remote and in_frame is None:
            X = tiles_for(rows.streamed, len(rows.rows), len(names), dtype, scratch)
        mean, scale, size, flat = materialize.scaling(found, names, standardize)
        design = cls(
            formula=formula,
            family=coded,
            response=response,
            terms=terms,
            **named,
            mean=mean,
            scale=scale,
            constant=tuple(itertools.compress(names, flat)),
            n_dropped=rows.n_dropped,
            weights=weights if isinstance(weights, str) else None,
            offset=offset if isinstance(offset, str) else None,
            offset_given=offset is not None,
            dtype=str(np.dtype(dtype)),
            left_out=left_out,
            missing=missing,
            fills=fills,
            n_incomplete=rows.n_incomplete,
            frame_kind=data.kind if data.kind in EAGER else PANDAS,
            n_sampled=n_sampled,
            wild=far,
            limited=limited,
        )
        if remote:
            X, y, inputs = parts.tiles(design, inputs, weights, offset)
        elif in_frame is not None:
            X = features.tiles_in_place(in_frame, found, mean, scale, flat, dtype)
        else:
            features.write(X, mean, scale, flat, limits)
        given = inputs.order, inputs.clusters, inputs.groups
        given = (inputs.weights, inputs.offset, rows.index, rows.rows, *given)
        return design, Batch(X, y, *given, streamed=rows.streamed, size=size)

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
        if response:
            self._require_response()
        weights = self.weights if response else None
        inputs = RowInputs.read(frame, weights, self._offset(offset))
        return self.batch_of(frame, inputs, response, self.known_levels(new_levels))

    def batch_of(self, frame, inputs, response, known, part=False):
        """The complete rows of a frame as numbers, as `apply` returns them.

        Parameters
        ----------
        frame : columns.Frame
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
        table = gaps.filled(table, [fill for fill in self.fills if fill.name in names])
        inputs = inputs.cut(rows) if part else inputs.at(rows)
        table.positive_weight = inputs.positive_weight if part else None
        inputs.check_classes(self.family, self.response)
        X = tiles_for(False, len(rows), len(self.names), self.dtype, None)
        if len(rows):
            scaling = self.mean, self.scale, self._is_constant()
            materialize.write(self.terms, table, X, *scaling, self.limits)
        y = None if target is None else code_response(target, table, self.family)
        return Batch(X, y, inputs.weights, inputs.offset, frame.index, rows)

    def wild_rows(self, data):
        """Return the rows of data with wild values.

        Returns
        -------
        list of (Limits, rows, values)
            Of each feature that has some in training: positions of the rows in the data, values.
        """
        at = [self.names.index(one.feature) for one in self.wild]
        design, kept = self.restrict(at)
        frame, known = columns.read_frame(data), design.known_levels("missing")
        inputs, names = RowInputs.read(frame, None, None), design.features
        table, rows, *_ = read_complete(frame, names, [], inputs, self.missing, known=known)
        table = gaps.filled(table, [fill for fill in self.fills if fill.name in names])
        X = materialize.numbers(design.terms, table, len(kept))
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
        return by_position(self.wild, self.names) if self.limited else {}

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


def _reader(data, source, wanted, answers, beside, missing, drawn):
    """A function that reads the rows of a Frame or a source, and what to call it with.

    The function takes what stands beside the formula: `beside`, or where `drawn` (how many rows or
    None, seed) asks for a sample, that of the rows drawn.
    """
    sample, seed = drawn
    if sample is not None:
        whole("sample", sample, most=MOST_ROWS)
        named = [value for value in beside if isinstance(value, str)]
        needed = list(dict.fromkeys([*wanted.names, *answers, *named]))
        data, beside = sampling.draw_rows(data, source, needed, beside, sample, seed)
        source = None
    read = read_rows if source is None else first_pass.read
    return lambda given: read(data, wanted, answers, given, missing), beside


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
