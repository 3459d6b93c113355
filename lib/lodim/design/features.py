"""The features of a design in all rows: their moments, and X in memory or in a scratch file."""

import errno
import mmap
import os
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from lodim.design import columns, factors
from lodim.design.chunks import tiles_of
from lodim.design.column_kernels import (
    ALL_ROWS,
    as_real,
    inverses,
    kernel_weights,
    merge_moments,
    moments,
    pack,
    read_only,
)
from lodim.design.rows import filled
from lodim.design.summaries import Tails, apply_limits, limits_by_position, may_be_wild, tail_size
from lodim.design.terms import column_choices, needs, widths
from lodim.engine import tiles
from lodim.engine.blocks import each
from lodim.errors import ArgumentError, DataError
from lodim.text import size_in_bytes

FAR = {"float64": 1e100, "float32": 1e15}  # largest standardized value: squares stay finite
FLAT = 1e-13  # relative standard deviation below which a feature counts as constant
KEPT = 4_000_000  # largest number of factor values that a table keeps


class Prepared:
    """A Table with a cache of factors' values, which several terms or passes may share."""

    def __init__(self, table):
        self.table, self.room, self.kept = table, KEPT, {}

    def __call__(self, part):
        if id(part) in self.kept:
            return self.kept[id(part)]
        values = factors.prepare(part, self.table)
        if values.size <= self.room:
            self.room -= values.size
            self.kept[id(part)] = values
        return values


def _sources(term, prepared):
    """Yield (values, positions) for each feature of a term.

    prepared : Prepared, a Table of the rows plus a cache
    positions : position in `values` per row, empty for 0, 1, 2 etc."""
    table = prepared.table
    part, where = columns.known_rows(table, needs([term]))
    if where is ALL_ROWS:
        yield from _known_sources(term, prepared)
    elif not part.n:
        for _ in column_choices(term):
            yield read_only(np.full(table.n, np.nan)), read_only(ALL_ROWS)
    else:
        for x, rows in _known_sources(term, Prepared(part)):
            values = columns.expand_rows(columns.take(x, rows), where, table.n)
            yield read_only(values), read_only(ALL_ROWS)


def _known_sources(term, prepared):
    if len(term) == 1 and isinstance(term[0], factors.Numeric):
        table = prepared.table
        yield as_real(factors.raw_numbers(term[0], table)), table.rows
        return
    sources = [prepared(part) for part in term]
    for choice in column_choices(term):
        values, *others = [factors.column(*z) for z in zip(term, sources, choice, strict=True)]
        if others:
            with np.errstate(over="ignore", invalid="ignore"):
                values = np.multiply.reduce([values, *others])
            values[np.isnan(values)] = np.inf  # the product of an overflow and zero
        yield read_only(values), read_only(ALL_ROWS)


def places(terms):
    """Return (first, end, term) of each term, whose features are at positions first to end - 1."""
    ends = pairwise(np.cumsum([0, *widths(terms)]).tolist())
    return [(first, end, term) for (first, end), term in zip(ends, terms, strict=True)]


def _for_features(work, terms, prepared, wanted):
    """Call work(term, k, values, positions) for each feature k of the terms that are wanted.

    terms : tuple of terms, with p features
    prepared : Prepared, a Table of the rows plus a cache
    wanted : (p,) bool; one True makes its whole term wanted
    positions : position in `values` per row, empty for 0, 1, 2 etc."""

    def of_term(place):
        first, end, term = place
        if wanted[first:end].any():
            for k, source in enumerate(_sources(term, prepared), first):
                work(term, k, *source)

    each(of_term, places(terms), prepared.table.n * len(wanted))


def write_features(design, prepared, X):
    """Standardize the features of a Design and write them to X, zeros (n_tiles, p, 64).

    prepared : Prepared, a Table of the rows plus a cache"""
    mean, scale, limits, constant = design.mean, design.scale, design.limits, set(design.constant)
    varies = np.array([name not in constant for name in design.names])
    inverse = inverses(scale, X.dtype)

    def work(term, k, x, rows):
        if varies[k]:  # constant features stay zero
            size = np.empty(tiles.TILE)
            x, rows = apply_limits(x, rows, limits.get(k))
            pack(x, rows, mean[k], scale[k], inverse[k], X, k, size)
            with np.errstate(over="ignore"):
                largest = size.max() / scale[k]
            if largest > FAR[X.dtype.name]:
                name = ":".join(part.name for part in term)
                what = f"{name!r} has a number that is {largest:.3g} standard deviations (or units)"
                what += " from the mean of the training rows, too far for the computations"
                raise DataError(f"{what}: correct it, or make it missing")

    _for_features(work, design.terms, prepared, varies)


def learn_moments(terms, prepared, *, wanted, limits):
    """Return the weight sum, mean, squared deviations, minimum and maximum per feature, (p, 5).

    terms : tuple of terms, which make p features
    prepared : Prepared, a Table of the rows plus a cache
    wanted : (p,) bool, features to compute
    limits : dict feature position -> (lower, upper, replacement of outliers)"""
    table, found = prepared.table, np.zeros((len(wanted), 5))
    weights = kernel_weights(table.weights, table.weight_unit)

    def work(term, k, x, rows):
        x, rows = apply_limits(x, rows, limits.get(k))
        own = weights
        if table.missing == "keep" and not rows.size and np.isnan(x).any():
            known = ~np.isnan(x)
            x, own = read_only(x[known]), read_only(own[known] if own.size else own)
        found[k] = moments(x, rows, own)

    _for_features(work, terms, prepared, wanted)
    return found


def raw_features(terms, table, p):
    """Return the p features of terms in a Table, (n, p), unscaled and with their outliers."""
    out = np.empty((table.n, p))

    def work(term, k, x, rows):
        out[:, k] = columns.take(x, rows)

    _for_features(work, terms, Prepared(table), np.ones(p, bool))
    return out


def learn_tails(terms, prepared, *, wanted, size):
    """Return a dict feature position -> Tails (`size` smallest and largest values).

    terms : tuple of terms, which make p features
    prepared : Prepared, a Table of the rows plus a cache
    wanted : (p,) bool, features to examine"""
    found = {}

    def work(term, k, x, rows):
        if wanted[k]:
            values = columns.as_float(columns.take(x, rows))
            values = prepared.table.weighted(values)
            found[k] = Tails.of_values(values[~np.isnan(values)], size)

    _for_features(work, terms, prepared, wanted)
    return found


def scaling(moments, names, standardize):
    """Return four arrays (p,): mean, scale and size of each feature, and whether it is constant.

    moments : (p, 5) weight sum, mean, squared deviations, minimum and maximum
    standardize : whether scales are standard deviations, not 1
    size : standard deviation divided by the scale, 1 for constant features"""
    total, mean, spread, least, greatest = moments.T
    with np.errstate(all="ignore"):
        sd = np.sqrt(spread / total)
    wrong = np.flatnonzero(~(np.isfinite(mean) & np.isfinite(sd)))
    if wrong.size:
        k = wrong[0]
        what = f"{names[k]!r} has numbers up to {greatest[k]:.3g}, too large to be squared"
        raise DataError(f"{what}; divide it by a power of ten")
    flat = sd <= FLAT * np.maximum(abs(least), abs(greatest))
    mean = np.where(flat, np.minimum(np.maximum(mean, least), greatest), mean)
    size, ones = np.where(flat, 1.0, sd), np.ones(len(sd))
    return mean, *((size, ones) if standardize else (ones, size)), flat


class Features:
    """Features of all rows, computed again in each pass over the chunks of the data.

    fills : Fill per column, which replaces missing values
    parts : Chunks of the rows
    missing : "drop", "keep" or "indicator", for missing features"""

    def __init__(self, terms, fills, parts, missing):
        self.terms, self.fills, self.parts, self.missing = terms, fills, parts, missing
        self.whole = None
        if parts.in_one:
            self.whole = Prepared(filled(replace(parts.table, missing=missing), fills))

    def moments(self, names, summaries):
        """Return moments (p, 5) after replacing outliers, and a tuple of the Limits used.

        summaries : dict column -> Summary (statistics)
        moments : weight sum, mean, squared deviations, minimum and maximum"""
        found, wanted = np.zeros((len(names), 5)), np.ones(len(names), bool)
        for first, _, term in places(self.terms):
            if len(term) > 1 or not isinstance(term[0], factors.Numeric):
                continue
            known = summaries[term[0].name]
            if known.moments is not None and not (known.n_missing and self.missing == "indicator"):
                found[first], wanted[first] = known.moments, False
        found = self._learn_moments(found, wanted, {})
        wild = self._limits(names, found)
        limits = limits_by_position(wild, names)
        wanted = np.isin(self._term_of, self._term_of[list(limits)])
        return self._learn_moments(found, wanted, limits), wild

    def _limits(self, names, moments):
        """Return a tuple of Limits (range without extreme outliers), one per feature with outliers.

        moments : (p, 5) weight sum, mean, sum of squared deviations, minimum and maximum"""
        n = self.parts.table.n_positive
        numbers = np.array([is_number(term) for term in self.terms], bool)[self._term_of]
        wanted, size = numbers & may_be_wild(moments, n), tail_size(n)
        if not wanted.any():
            return ()
        found = self._map(partial(learn_tails, wanted=wanted, size=size), wanted)
        at = np.flatnonzero(wanted).tolist()
        limits = [Tails.merged([part[k] for part in found], size).limits(names[k]) for k in at]
        return tuple(one for one in limits if one is not None)

    def _learn_moments(self, known, wanted, limits):
        """Return the weight sum, mean, squared deviations, minimum and maximum per feature, (p, 5).

        known : (p, 5) results for features that are not wanted
        wanted : (p,) bool, features to compute
        limits : dict feature position -> (lower, upper, replacement of outliers)"""
        if not wanted.any():
            return known
        parts = self._map(partial(learn_moments, wanted=wanted, limits=limits), wanted)
        return np.where(wanted[:, None], merge_moments(parts), known)

    def _map(self, work, wanted):
        """Call work(terms, prepared) for each chunk of the data; return a list of the results.

        work : gets all terms, and Prepared, a Table of the rows plus a cache
        wanted : (p,) bool, features that `work` needs"""
        if self.whole is not None:
            return [work(self.terms, self.whole)]
        names = needs([self.terms[t] for t in np.unique(self._term_of[wanted])])
        how = {"terms": self.terms, "fills": self.fills, "missing": self.missing, "work": work}
        return self.parts.map(partial(apply_to_chunk, **how), names)

    @property
    def _term_of(self):
        return np.repeat(np.arange(len(self.terms)), np.array(widths(self.terms), int))

    def write(self, design, X):
        """Write the features, standardized as in `design`, to X, an array (n_tiles, p, 64)."""

        def part(span, table):
            prepared = self.whole or Prepared(filled(table, self.fills))
            write_features(design, prepared, tiles_of(X, span))

        self.parts.map(part, needs(self.terms))


def columns_within(summaries, parts):
    """Return a list of Summaries of columns, with moments computed after replacing outliers.

    summaries : dict column -> Summary (statistics); parts : Chunks of the rows"""
    numbers = [name for name, known in summaries.items() if known.moments is not None]
    columns = Features(tuple((factors.Numeric(name),) for name in numbers), (), parts, "keep")
    within = zip(numbers, columns.moments(numbers, summaries)[0], strict=True)
    known = {name: replace(summaries[name], moments=found) for name, found in within}
    return list((summaries | known).values())


def is_number(term):
    """Return whether a term is numeric: numbers, perhaps multiplied by levels, but no splines."""
    single = [part for part in term if not isinstance(part, factors.Levels | factors.Missing)]
    return bool(single) and all(factors.width(part) == 1 for part in single)


def apply_to_chunk(_, table, terms, fills, missing, work):
    """Replace missing values in a chunk of rows; return work(terms, prepared).

    table : Table of the chunk's rows; prepared : Prepared, this Table plus a cache
    fills : Fill (replacement of missing values) per column
    missing : "drop", "keep" or "indicator", for features"""
    return work(terms, Prepared(filled(replace(table, missing=missing), fills)))


SHARE = 0.5  # largest share of the free memory that tiles take


def tiles_for(may_use_file, n, p, dtype, folder):
    """Return zeros for X, (n_tiles, p, 64), in memory or in a file.

    may_use_file : whether to use a temporary file if memory is scarce
    folder : folder of the file, None to prefer memory"""
    if folder is not None:
        return tiles_in(folder, n, p, dtype)
    if may_use_file and not fits_memory(n, p, dtype):
        return tiles_in(tempfile.gettempdir(), n, p, dtype)
    try:
        return tiles.empty(n, p, dtype)
    except MemoryError:
        size = size_in_bytes(n * p * np.dtype(dtype).itemsize)
        what = f"{n:,} rows x {p:,} features, {size}, do not fit into memory"
        raise DataError(f"{what}: use files, dtype='float32' or sample=") from None


def tiles_in(folder, n, p, dtype):
    """Return zeros (n_tiles, p, 64) for n rows, in a temporary file in `folder`."""
    shape, dtype = (tiles.count(n), p, tiles.TILE), np.dtype(dtype)
    size = shape[0] * shape[1] * shape[2] * dtype.itemsize
    if not size:
        return np.zeros(shape, dtype)
    if not isinstance(folder, str | os.PathLike) or not os.path.isdir(folder):
        what = "the entry scratch of control must be an existing folder"
        raise ArgumentError(f"{what}, not {folder!r:.200}")
    free = shutil.disk_usage(folder).free
    if free < size:
        raise _too_small(folder, size, free)
    try:
        with tempfile.TemporaryFile(prefix="lodim-", dir=folder) as file:
            reserve = getattr(os, "posix_fallocate", lambda file, _, size: os.ftruncate(file, size))
            reserve(file.fileno(), 0, size)
            mapped = mmap.mmap(file.fileno(), size)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise _too_small(folder, size, shutil.disk_usage(folder).free) from None
        what = f"no scratch file can be written in {os.fspath(folder)!r} ({error.strerror})"
        raise DataError(f"{what}; name another folder by control={{'scratch': folder}}") from None
    return np.frombuffer(mapped, dtype).reshape(shape)


def _too_small(folder, size, free):
    needs = f"the features need {size_in_bytes(size)} of scratch space"
    has = f"{os.fspath(folder)!r} has only {size_in_bytes(free)}"
    cure = "name another folder by control={'scratch': folder}, or give dtype='float32'"
    return DataError(f"{needs}, but {has}; {cure}, which halves the size")


def fits_memory(n, p, dtype):
    """Return whether n rows of p features of type `dtype` take at most half of the free memory."""
    return tiles.count(n) * p * tiles.TILE * np.dtype(dtype).itemsize <= SHARE * free_memory()


def free_memory():
    """Return the bytes of memory available to this process, or infinity if unknown."""
    sizes = [float("inf")]
    with suppress(OSError):
        reported = Path("/proc/meminfo").read_text()
        sizes += [1024 * int(kib) for kib in re.findall(r"MemAvailable:\s*(\d+)", reported)]
    with suppress(OSError, ValueError):  # the limit of this process's control group, if any
        group = Path("/sys/fs/cgroup")
        limit, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        sizes.append(max(0, limit - used))
    return min(sizes)
