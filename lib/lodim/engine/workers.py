"""Tiles on the workers of a Dask cluster, and kernels that run where they are. The only importer of
`dask.distributed` beside `sources`, and only once a client is given.

Each worker holds a contiguous group of parts of PART rows. What it holds is the result of pure
tasks: the group's rows are made from the source, and all that is kept beside them from the rows and
from what was sent. Dask keeps the graph of these tasks and makes anew what a lost worker held; no
task changes what another one has made, so that the result has the same bits. An evaluation sends
each group the parameters and gets back the sums of its spans, which are added in the order of rows.
"""

import asyncio
import pickle
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from importlib import import_module, metadata
from itertools import pairwise
from platform import python_version
from uuid import uuid4
from weakref import ref

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import (
    SPAN,
    SPAN_ROWS,
    at_most,
    available_threads,
    count_blocks,
    for_blocks,
    single_blas,
)
from lodim.engine.tiles import TILE, TILES_PER_BLOCK
from lodim.errors import ArgumentError, DataError, DataWarning, DeviceError, MissingExtraError, warn

PART = SPAN_ROWS  # rows of a part: those of one span of the sums
PART_TILES = SPAN * TILES_PER_BLOCK
PATIENCE = 5.0  # seconds after which a wait looks whether there are workers
GONE = 30.0  # seconds without any worker after which a fit ends
ROOM = 0.6  # share of a worker's memory that tiles may take: beyond, Dask moves them to its disk
BESIDE = 8 * 8  # bytes of a row beside its features: response, weight, scores, and their copies
SAME = ("python", "lodim", "numpy", "numba", "llvmlite", "distributed")  # versions that must agree


def checked_client(client):
    """The client, if it is one of `dask.distributed` that this thread can wait for."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError(
            "client= needs Dask's distributed scheduler: pip install 'lodim[dask]'"
        ) from error
    if not isinstance(client, Client):
        raise ArgumentError(f"client must be a dask.distributed.Client, not {client!r:.80}")
    if client.asynchronous:
        raise ArgumentError("client must not be asynchronous: a fit waits for its workers")
    if client.status != "running":
        raise DeviceError(f"the Dask client has no scheduler: its status is {client.status!r}")
    return client


def own_client():
    """The client of this process that waits for its workers, or None."""
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        client = default_client()
    except ValueError:
        return None
    return None if client.asynchronous else client


def run_tasks(client, work, shared, each):
    """What work(shared, *args) returns for the args of each, in order, as tasks of the workers.

    `shared` is sent once.
    """
    _workers(client)
    with _any_size():
        there = client.submit(Task(_itself, (shared,)), key=_key("shared"), pure=False)
        tasks = [Task(work, last=args) for args in each]
        futures = _submit(client, "pass", tasks, [there] * len(tasks))
    return _results(client, futures)


def _itself(shared):
    return shared


@contextmanager
def _any_size():
    """No warning of Dask's about what is sent: it cannot be less."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        yield


@dataclass(frozen=True)
class Group:
    """Parts [lo, hi) of the rows, n_rows of them."""

    lo: int
    hi: int
    n_rows: int

    @property
    def tiles(self):
        """The group's tiles among all, a slice."""
        first = self.lo * PART_TILES
        return slice(first, first + tiles.count(self.n_rows))


class Cluster:
    """The workers of a client, and the groups of n rows that are shared among them.

    There are as many groups as workers, and Dask gives one to each: it begins with those who have
    nothing to do. No task names its worker. One that does, with `allow_other_workers`, waits for
    ever once all workers have died and others have come (distributed 2026.8).
    """

    def __init__(self, client, n):
        self.client = checked_client(client)
        n_workers = len(_workers(client))
        _compare(_in_words(client, lambda: client.run(host, on_error="return")))
        n_parts = -(-n // PART)
        n_groups = min(n_parts, n_workers)
        bounds = pairwise(n_parts * i // n_groups for i in range(n_groups + 1))
        self.groups = [Group(lo, hi, min(n, hi * PART) - lo * PART) for lo, hi in bounds]

    def check_room(self, row_bytes):
        """Raise DataError where a group does not fit the memory of its worker."""
        known = _in_words(self.client, self.client.scheduler_info)["workers"]
        rows = max(group.n_rows for group in self.groups)
        need = rows * (row_bytes + BESIDE)
        for address, worker in known.items():
            limit = worker["memory_limit"]
            if limit and need > ROOM * limit:
                raise DataError(
                    f"{rows:,} rows on a Dask worker take {need / 1e9:.1f} GB, and {address} may "
                    f"hold {ROOM * limit / 1e9:.1f} GB of its {limit / 1e9:.1f}: start more "
                    "workers, or take dtype='float32' or sample="
                )

    def submit(self, work, held=(), sent=(), name=None):
        """A future of work(group, *held arrays of the group, *sent) for each group.

        held : WorkerTiles; sent : of each group its own, or one for all
        """
        name = name or work.__name__
        tasks = []
        for i, group in enumerate(self.groups):
            mine = tuple(v.each[i] if isinstance(v, Each) else v for v in sent)
            tasks.append(Task(work, (group,), mine))
        with _any_size():
            return _submit(self.client, name, tasks, *(array.futures for array in held))

    def results(self, futures):
        """What the futures have come to, in order; a LodimError where they cannot."""
        return _results(self.client, futures)


@dataclass(frozen=True)
class Each:
    """Of what is sent to the workers: a list with an entry for each group."""

    each: list


@dataclass(frozen=True)
class Task:
    """A call work(*first, *what is held on a worker, *last) that Dask moves as it is.

    It is pickled as one piece of bytes: Dask sends arrays apart from what holds them, and they may
    arrive where no number begins, which SciPy refuses and for which Numba compiles anew.
    """

    work: object
    first: tuple = ()
    last: tuple = ()

    def __reduce__(self):
        import cloudpickle  # which distributed needs

        return _task, (cloudpickle.dumps((self.work, self.first, self.last), protocol=4),)

    def __call__(self, *held):
        with at_most(_threads()), single_blas():
            return self.work(*self.first, *map(_aligned, held), *self.last)


def _task(pickled):
    return Task(*pickle.loads(pickled))


def _aligned(v):
    """An array as kernels are compiled for: copied where it has come from another worker."""
    return np.require(v, requirements="AW") if isinstance(v, np.ndarray) else v


def _submit(client, name, tasks, *held):
    """Futures of tasks, each with its own of the futures that are held, in one message."""
    keys = [_key(name) for _ in tasks]
    return client.map(_call, tasks, *held, key=keys, pure=False)


def _call(task, *held):
    return task(*held)


def _key(name):
    """A key that no other task has: nothing is answered from what was asked before."""
    return f"lodim-{name.strip('_')}-{uuid4().hex}"


def _results(client, futures):
    """What futures have come to, in order; a LodimError where they cannot."""
    job = asyncio.run_coroutine_threadsafe(_gathered(client, futures), client.loop.asyncio_loop)
    alone_since = None
    try:
        while True:
            try:
                return _in_words(client, lambda: job.result(PATIENCE))
            except TimeoutError:
                if job.done():
                    raise
                alone_since = _alone_since(client, alone_since)
    except BaseException:
        job.cancel()
        raise


def _alone_since(client, before):
    """Since when there is no worker, None where there are some; DeviceError after GONE."""
    if _in_words(client, client.nthreads):
        return None
    now = time.monotonic()
    if before is not None and now - before > GONE - PATIENCE:
        raise DeviceError(
            f"all workers of the Dask cluster are gone, and none has come for {GONE:.0f} "
            "seconds: what they held cannot be made again"
        )
    return before or now


async def _gathered(client, futures):
    return await client.gather(futures, asynchronous=True)


def _workers(client):
    """Threads of each worker, by address; DeviceError where none comes within GONE seconds."""
    try:
        _in_words(client, lambda: client.wait_for_workers(1, timeout=GONE))
    except TimeoutError as error:
        raise DeviceError(
            f"the Dask cluster has no worker, and none has come for {GONE:.0f} seconds: start one, "
            "or leave out client="
        ) from error
    return _in_words(client, client.nthreads)


def _threads():
    """Threads of the worker that this task runs on."""
    from distributed import get_worker

    return get_worker().state.nthreads


def _in_words(client, call):
    """What a call of Dask returns; what can befall a cluster as a DeviceError."""
    from concurrent.futures import CancelledError

    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    lost = CommClosedError, CancelledError, asyncio.CancelledError
    try:
        return call()
    except KilledWorker as error:
        raise DeviceError(
            "workers of the Dask cluster died again and again over the same rows, as they do where "
            f"memory is short; the last was {error.last_worker.address}: start more workers, or "
            "give them more memory"
        ) from error
    except (OSError, *lost) as error:
        # With a scheduler at hand it is an error of a task's own, or the end of a spell of waiting.
        if client.status == "running" and not isinstance(error, lost):
            raise
        raise DeviceError(
            f"the connection to the Dask scheduler is lost, and the fit with it ({error})"
        ) from error


def host():
    """Versions and processor of this process, a dict."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    versions = {name: metadata.version(name) for name in SAME[1:]}
    cpu = f"{llvm.get_host_cpu_name()} {features.flatten()}"
    return {"python": python_version(), **versions, "cpu": cpu}


def _compare(hosts):
    """Raise where versions differ from those here; warn where the workers' processors differ."""
    here = host()
    # One that died meanwhile is replaced, or not, as any that dies later.
    hosts = {at: there for at, there in hosts.items() if not isinstance(there, OSError)}
    for address, there in hosts.items():
        if isinstance(there, Exception):
            raise DeviceError(f"the Dask worker {address} cannot run lodim: {there}") from there
        for name in SAME:
            if there[name] != here[name]:
                raise DeviceError(
                    f"the Dask worker {address} has {name} {there[name]}, and here it is "
                    f"{here[name]}: install the same version on all"
                )
    first = {}
    for address in sorted(hosts):
        first.setdefault(hosts[address]["cpu"], address)
    if len(first) > 1:
        names = ", ".join(f"{cpu.split()[0]} ({at})" for cpu, at in first.items())
        warn(
            f"the Dask workers have unequal processors, {names}: the last bits of a fit may differ "
            "from run to run",
            DataWarning,
        )


class WorkerTiles:
    """Tiles (n_tiles, ..., 64) of n rows whose groups are on the workers.

    A kernel that is given these tiles runs on each group where it is; of its further arguments
    those that are WorkerTiles are the group's own, and the others are sent. `beside` has columns
    that were read with the rows, by name: the array (n,) or (n, K) here, and its WorkerTiles.
    """

    def __init__(self, cluster, futures, n, shape, dtype):
        self.cluster, self.futures, self.n = cluster, futures, n
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.beside, self._sent = {}, []

    def __len__(self):
        return self.shape[0]

    @property
    def size(self):
        """Number of values."""
        return int(np.prod(self.shape))

    @property
    def nbytes(self):
        """Bytes of all groups together."""
        return self.size * self.dtype.itemsize

    def map(self, function, *args, shape=None, dtype=None):
        """WorkerTiles of function(tiles, *args) of each group, of another shape (n_tiles, ...).

        It is a pure task: made again if its worker is lost. `function` must not change what it is
        given.
        """
        held, task = self._split(function, args)
        futures = self.cluster.submit(_map, held, task, function.__name__)
        shape = self.shape if shape is None else (len(self), *shape)
        return WorkerTiles(self.cluster, futures, self.n, shape, dtype or self.dtype)

    def add(self, kernel, onto, *args):
        """WorkerTiles of what kernel(lo, hi, tiles, *args, out) makes of a copy of `onto`.

        onto : WorkerTiles, or the axes (..., 64) of zeros
        """
        if isinstance(onto, WorkerTiles):
            shape, args = onto.shape, (*args, onto)
        else:
            shape = (len(self), *onto)
        held, task = self._split(_name(kernel), args)
        futures = self.cluster.submit(_fill, held, (*task, shape[1:]), kernel.__name__)
        return WorkerTiles(self.cluster, futures, self.n, shape, np.float64)

    def over_rows(self, kernel, *args):
        """Add to the host's array args[-1], (n_tiles, ...), what a kernel of every row adds."""
        *args, out = args
        out += self.add(kernel, out.shape[1:], *args).gather()

    def sum_blocks(self, kernel, shape, *args):
        """Sum over blocks of a kernel's partials, spans first: as of tiles in memory."""
        held, task = self._split(_name(kernel), args)
        futures = self.cluster.submit(_span_sums, held, (*task, shape), kernel.__name__)
        parts = self.cluster.results(futures)
        return reduce(np.add, (span for part in parts for span in part))

    def spans(self, function, *args):
        """A list of function(rows, *tiles of a span, *args) of all spans, in order.

        rows : where the span is among all rows, a slice
        """
        held, task = self._split(function, args)
        futures = self.cluster.submit(_by_span, held, task, function.__name__)
        return [span for part in self.cluster.results(futures) for span in part]

    def map_spans(self, work, *rows):
        """A list of work(X, *rows) of all spans, in order; see `over_spans`."""
        given = [v is not None for v in rows]
        columns = [self.column(v) for v in rows if v is not None]
        return self.spans(_rowwise, *columns, work, given)

    def take(self, i):
        """The rows at positions i, (r,) -> (r, ...)."""
        order = np.argsort(i, kind="stable")
        first = np.array([group.lo * PART for group in self.groups])
        each = np.split(i[order], np.searchsorted(i[order], first[1:]))
        each = [at - lo for at, lo in zip(each, first, strict=True)]
        futures = self.cluster.submit(_take, (self,), (Each(each),))
        found = np.concatenate(self.cluster.results(futures))
        out = np.empty_like(found)
        out[order] = found
        return out

    def astype(self, dtype):
        """The tiles in another precision; themselves if it is theirs."""
        return self if dtype == self.dtype else self.map(_cast, dtype, dtype=dtype)

    def constant(self, value):
        """WorkerTiles (n_tiles, 64) of one number in all rows."""
        futures = self.cluster.submit(_constant, (self,), (value,))
        return WorkerTiles(self.cluster, futures, self.n, (len(self), TILE), np.float64)

    def column(self, values):
        """WorkerTiles (n_tiles, ..., 64) of an array of the rows, (n,) or (n, K).

        An array that was read with the rows is not sent: each worker has its part. One that was
        sent is remembered while it lives.
        """
        if not any(values.strides):
            return self.constant(float(values.flat[0]))
        self._sent = [(here, there) for here, there in self._sent if here() is not None]
        known = [*self.beside.values(), *((here(), there) for here, there in self._sent)]
        for here, there in known:
            if here is values:
                return there
        each = [values[g.lo * PART : g.lo * PART + g.n_rows] for g in self.groups]
        futures = self.cluster.submit(_column, (self,), (Each(each),))
        shape = (len(self), *values.shape[1:], TILE)
        there = WorkerTiles(self.cluster, futures, self.n, shape, np.float64)
        self._sent.append((ref(values), there))
        return there

    def varies(self):
        """Which columns are not zero throughout, (p,)."""
        futures = self.cluster.submit(_varies, (self,))
        return np.any(self.cluster.results(futures), axis=0)

    def gather(self):
        """The tiles of all groups here."""
        out = np.empty(self.shape, self.dtype)
        for group, part in zip(self.groups, self.cluster.results(self.futures), strict=True):
            out[group.tiles] = part
        return out

    @property
    def groups(self):
        """The groups of the rows."""
        return self.cluster.groups

    def _split(self, function, args):
        """What is held on the workers, self first, and what tells `_merge` the rest."""
        at = [i for i, v in enumerate(args) if isinstance(v, WorkerTiles)]
        sent = tuple(None if i in at else v for i, v in enumerate(args))
        return (self, *(args[i] for i in at)), (function, at, sent)


def read_parts(client, make, n, p, dtype):
    """Tiles of rows that the workers read: WorkerTiles with their columns `beside`.

    Parameters
    ----------
    client : distributed.Client
    make : callable(k)
        The rows [k PART, (k + 1) PART): a picklable function of k alone, whose result has X
        (n_tiles, p, 64), and y, weights, offset (n_k,) or (n_k, K), or None, as a Batch has. Where
        Dask asks again it must give the same bits.
    n, p, dtype
        Number of rows and columns, and dtype of X.
    """
    cluster = Cluster(client, n)
    cluster.check_room(p * np.dtype(dtype).itemsize)
    read = cluster.submit(_read, (), (make,))
    rows = [WorkerTiles(cluster, read, n, (tiles.count(n),), dtype)]
    widths = cluster.results(cluster.submit(_widths, rows))[0]
    X = _field(rows, n, "X", (p,), dtype)
    for name, width in widths.items():
        held = _field(rows, n, name, width)
        X.beside[name] = tiles.by_row(held.gather(), n), held
    return X


COLUMNS = ("y", "weights", "offset")


def _field(rows, n, name, width, dtype=np.float64):
    cluster = rows[0].cluster
    futures = cluster.submit(_one, rows, (name,), name=f"rows-{name}")
    return WorkerTiles(cluster, futures, n, (tiles.count(n), *width, TILE), dtype)


def _read(group, make):
    """The rows of a group: a dict of tiles X and of the columns that there are."""
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
    """A column (n,) or (n, K) as tiles (n_tiles, 64) or (n_tiles, K, 64)."""
    if v.ndim == 2:
        return tiles.pack(v)
    return tiles.pad(v, tiles.count(len(v)))


def _widths(group, rows):
    """Axes of the columns between tiles and rows, by name."""
    return {name: rows[name].shape[1:-1] for name in COLUMNS if name in rows}


def _one(group, rows, name):
    return rows[name]


def _name(kernel):
    """Where a compiled kernel is found on a worker: its pickle would be compiled there anew."""
    return kernel.__module__, kernel.__name__


def _find(name):
    module, function = name
    return getattr(import_module(module), function)


def _merge(arrays, at, sent):
    """The arguments of a function: what is held at the places `at`, and what was sent."""
    args = list(sent)
    for i, array in zip(at, arrays, strict=True):
        args[i] = array
    return args


def _map(group, X, *rest):
    *held, function, at, sent = rest
    return function(X, *_merge(held, at, sent))


def _fill(group, X, *rest):
    *held, name, at, sent, shape = rest
    args = _merge(held, at, sent)
    onto = at and at[-1] == len(args) - 1  # else zeros
    *args, out = (*args[:-1], args[-1].copy()) if onto else (*args, np.zeros((len(X), *shape)))
    for_blocks(_find(name), count_blocks(X), X, *args, out, threads=available_threads())
    return out


def _span_sums(group, X, *rest):
    """Sums of the spans' partials, (n_spans, *shape)."""
    *held, name, at, sent, shape = rest
    n_blocks = count_blocks(X)
    partials = np.empty((n_blocks, *shape))
    for_blocks(
        _find(name), n_blocks, partials, X, *_merge(held, at, sent), threads=available_threads()
    )
    spans = [partials[lo : lo + SPAN] for lo in range(0, n_blocks, SPAN)]
    return np.array([part.sum(axis=0) for part in spans])


def _by_span(group, X, *rest):
    *held, function, at, sent = rest
    out = []
    for first in range(0, len(X), PART_TILES):
        part, start = slice(first, first + PART_TILES), group.lo * PART
        lo, hi = first * TILE, min(first * TILE + PART, group.n_rows)
        rows = slice(start + lo, start + hi)
        out.append(function(rows, X[part], *_merge([v[part] for v in held], at, sent)))
    return out


def _rowwise(rows, X, *rest):
    """work(X, *rows) with columns as arrays of the rows of a span."""
    *columns, work, given = rest
    flat = (tiles.by_row(v, rows.stop - rows.start) for v in columns)
    return work(X, *(next(flat) if there else None for there in given))


def _take(group, X, i):
    return X[i // TILE, ..., i % TILE]


def _cast(X, dtype):
    return X.astype(dtype)


def _constant(group, X, value):
    return _as_tiles(np.full(group.n_rows, value))


def _column(group, X, values):
    return _as_tiles(values)


def _varies(group, X):
    return tiles.varies(X)
