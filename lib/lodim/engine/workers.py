"""Features X on the workers of a Dask cluster, in tiles of 64 rows, and loops that run there."""

from functools import reduce
from importlib import import_module
from weakref import ref

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import SPAN, available_threads, count_blocks, for_blocks
from lodim.engine.dask_cluster import PART_TILES, ROWS_PER_CHUNK, Cluster, OnWorkers


class WorkerTiles(OnWorkers):
    """Array in tiles of 64 rows, (n_tiles, ..., 64), distributed over Dask workers.

    beside : dict "y", "weights" or "offset" -> (local array, copy on workers), of the same rows"""

    def __init__(self, cluster, futures, n, shape, dtype):
        self.cluster, self.futures, self.n = cluster, futures, n
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.beside, self._sent, self._constants = {}, [], {}

    def __len__(self):
        return self.shape[0]

    @property
    def size(self):
        return int(np.prod(self.shape))

    def map(self, function, *args, shape=None, dtype=None):
        """Return function(tiles, *args) as WorkerTiles; each worker computes its own rows.

        function : gets a worker's tiles; must have no side effects
        shape, dtype : shape (without first axis) and type of the result, None if unchanged"""
        futures = self.cluster.submit(_map, self, function, *args, name=function.__name__)
        shape = self.shape if shape is None else (len(self), *shape)
        return WorkerTiles(self.cluster, futures, self.n, shape, dtype or self.dtype)

    def add(self, kernel, onto, *args):
        """Add values per row to a copy of `onto` on Dask workers; return the copy.

        kernel : kernel(lo, hi, tiles, *args, out) adds to `out` in blocks lo to hi - 1 (4,096 rows)
        onto : WorkerTiles, or the shape of one tile, (..., 64), for zeros
        args : further arguments; WorkerTiles are cut to the worker's rows"""
        shape = onto.shape if isinstance(onto, WorkerTiles) else (len(self), *onto)
        futures = self._run(_fill, kernel, onto, *args)
        return WorkerTiles(self.cluster, futures, self.n, shape, np.float64)

    def over_rows(self, kernel, *args):
        """Run a compiled loop on Dask workers; add its result to args[-1], (n_tiles, ..., 64).

        kernel(lo, hi, tiles, *args) adds to args[-1] in blocks lo to hi - 1 (4,096 rows each)"""
        *args, out = args
        out += self.add(kernel, out.shape[1:], *args).gather()

    def sum_blocks(self, kernel, shape, *args):
        """Return the sum over all rows that a compiled loop computes on Dask workers.

        kernel : kernel(lo, hi, partials, tiles, *args) sets partials[lo:hi], a sum per 4,096 rows
        shape : shape of the sum"""
        parts = self.cluster.results(self._run(_span_sums, kernel, shape, *args))
        return reduce(np.add, (span for part in parts for span in part))

    def spans(self, function, *args):
        """Return a list of function(rows, X, *args), one per 65,536 rows, called on Dask workers.

        function : gets a slice of rows, and their part of X and of the WorkerTiles in `args`"""
        in_tiles = [isinstance(v, WorkerTiles) for v in args]
        title = {"name": function.__name__}
        futures = self.cluster.submit(_by_span, self, function, in_tiles, *args, **title)
        return [span for part in self.cluster.results(futures) for span in part]

    def map_spans(self, work, *rows):
        """Return a list of work(X, *rows), one per span of 65,536 rows, called on Dask workers.

        work : gets X, in tiles of 64 rows, and `rows`, all cut to the span
        rows : arrays (n, ...) in this process, or None"""
        columns = (None if v is None else self.column(v) for v in rows)
        return self.spans(_rowwise, work, *columns)

    def map_tiles(self, work, *arrays):
        """Return a list of work(X, *arrays), one per 65,536 rows, called on the Dask workers."""
        return self.spans(_tilewise, work, *arrays)

    def take(self, i):
        """Return the rows at positions i (r,), fetched from the workers, as an array (r, ...)."""
        order = np.argsort(i, kind="stable")
        first = np.array([group.lo * ROWS_PER_CHUNK for group in self.groups])
        each = np.split(i[order], np.searchsorted(i[order], first[1:]))
        each = [at - lo for at, lo in zip(each, first, strict=True)]
        futures = self.cluster.submit(_take, self, each=each)
        found = np.concatenate(self.cluster.results(futures))
        out = np.empty_like(found)
        out[order] = found
        return out

    def astype(self, dtype):
        return self if dtype == self.dtype else self.map(np.ndarray.astype, dtype, dtype=dtype)

    def constant(self, value):
        """Return WorkerTiles (n_tiles, 64) with the same number in all rows."""
        if value not in self._constants:
            futures, shape = self.cluster.submit(_constant, self, value), (len(self), tiles.TILE)
            made = WorkerTiles(self.cluster, futures, self.n, shape, np.float64)
            self._constants[value] = made
        return self._constants[value]

    def column(self, values):
        """Return values (n,) or (n, K) as WorkerTiles (n_tiles, ..., 64); zeros for None."""
        if values is None:
            return self.constant(0.0)
        self._sent = [(here, there) for here, there in self._sent if here() is not None]
        known = [*self.beside.values(), *((here(), there) for here, there in self._sent)]
        for here, there in known:
            if here is values:
                return there
        if not any(values.strides):
            return self.constant(float(values.flat[0]))
        each = [
            values[g.lo * ROWS_PER_CHUNK : g.lo * ROWS_PER_CHUNK + g.n_rows] for g in self.groups
        ]
        futures = self.cluster.submit(_column, self, each=each)
        shape = (len(self), *values.shape[1:], tiles.TILE)
        there = WorkerTiles(self.cluster, futures, self.n, shape, np.float64)
        self.know(values, there)
        return there

    def know(self, values, copy):
        """Remember that `copy`, WorkerTiles, has the array `values`: do not send it again."""
        self._sent.append((ref(values), copy))

    def varies(self):
        futures = self.cluster.submit(_map, self, tiles.varies)
        return np.any(self.cluster.results(futures), axis=0)

    def gather(self):
        """Return the whole array (n_tiles, ..., 64) in this process."""
        out = np.empty(self.shape, self.dtype)
        for group, part in zip(self.groups, self.cluster.results(self.futures), strict=True):
            out[group.tiles] = part
        return out

    @property
    def groups(self):
        return self.cluster.groups

    def _run(self, work, kernel, *args):
        # Pickling a compiled kernel would compile it again.
        name = kernel.__module__, kernel.__name__
        return self.cluster.submit(work, self, name, *args, name=kernel.__name__)


def read_parts(client, make, n, p, dtype):
    """Read n rows on the workers of a Dask client; return the features X (n, p) as WorkerTiles.

    make : function of k that reads chunk k (65,536 rows) as a Batch; dtype : type of X"""
    cluster = Cluster(client, n)
    cluster.check_room(p * np.dtype(dtype).itemsize)
    rows = WorkerTiles(cluster, cluster.submit(_read, make), n, (tiles.count(n),), dtype)
    widths = cluster.results(cluster.submit(_widths, rows))[0]
    X = _field(rows, n, "X", (p,), dtype)
    for name, width in widths.items():
        held = _field(rows, n, name, width)
        X.beside[name] = tiles.by_row(held.gather(), n), held
    return X


COLUMNS = ("y", "weights", "offset")


def _field(rows, n, name, width, dtype=np.float64):
    futures = rows.cluster.submit(_one, rows, name, name=f"rows-{name}")
    return WorkerTiles(rows.cluster, futures, n, (tiles.count(n), *width, tiles.TILE), dtype)


def _read(group, make):
    """Return a dict of a Group's tiles: X, y, weights, offset; make(k) reads chunk k as a Batch."""
    out, n_tiles = {}, tiles.count(group.n_rows)
    for k in range(group.lo, group.hi):
        part = make(k)
        arrays = {"X": part.X} | {
            name: _as_tiles(v) for name in COLUMNS if (v := getattr(part, name)) is not None
        }
        if not out:
            out = {name: np.zeros((n_tiles, *v.shape[1:]), v.dtype) for name, v in arrays.items()}
        first = (k - group.lo) * PART_TILES
        for name, v in arrays.items():
            out[name][first : first + len(v)] = v
    return out


def _as_tiles(v):
    if v.ndim == 2:
        return tiles.pack(v)
    return tiles.pad(v, tiles.count(len(v)))


def _widths(group, rows):
    return {name: rows[name].shape[1:-1] for name in COLUMNS if name in rows}


def _one(group, rows, name):
    return rows[name]


def _find(name):
    module, function = name
    return getattr(import_module(module), function)


def _map(group, X, function, *args):
    return function(X, *args)


def _fill(group, X, name, onto, *args):
    out = np.zeros((len(X), *onto)) if isinstance(onto, tuple) else onto.copy()
    for_blocks(_find(name), count_blocks(X), X, *args, out, threads=available_threads())
    return out


def _span_sums(group, X, name, shape, *args):
    """Return a sum for each 65,536 rows of one Dask worker, (n_sums, *shape).

    group : not used
    X : features of the worker's rows, in tiles of 64 rows
    name : (module, name) of a compiled loop, see WorkerTiles.sum_blocks()"""
    n_blocks = count_blocks(X)
    partials = np.empty((n_blocks, *shape))
    for_blocks(_find(name), n_blocks, partials, X, *args, threads=available_threads())
    spans = [partials[lo : lo + SPAN] for lo in range(0, n_blocks, SPAN)]
    return np.array([part.sum(axis=0) for part in spans])


def _by_span(group, X, function, in_tiles, *args):
    """Return a list of function(rows, X, *args), one per 65,536 rows of one Dask worker.

    group : Group of the worker's rows
    X : their features, in tiles of 64 rows
    function : gets a slice of row positions, and X of these rows
    in_tiles : bool per item of `args`, whether to cut it to these rows"""
    out = []
    for first in range(0, len(X), PART_TILES):
        part, start = slice(first, first + PART_TILES), group.lo * ROWS_PER_CHUNK
        lo, hi = first * tiles.TILE, min(first * tiles.TILE + ROWS_PER_CHUNK, group.n_rows)
        own = (v[part] if is_cut else v for v, is_cut in zip(args, in_tiles, strict=True))
        out.append(function(slice(start + lo, start + hi), X[part], *own))
    return out


def _rowwise(rows, X, work, *columns):
    n = rows.stop - rows.start
    return work(X, *(None if v is None else tiles.by_row(v, n) for v in columns))


def _tilewise(rows, X, work, *arrays):
    return work(X, *arrays)


def _take(group, X, i):
    return X[i // tiles.TILE, ..., i % tiles.TILE]


def _constant(group, X, value):
    return _as_tiles(np.full(group.n_rows, value))


def _column(group, X, values):
    return _as_tiles(values)
