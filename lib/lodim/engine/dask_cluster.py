"""Tasks on the workers of a Dask cluster; no task modifies the result of another one."""

import asyncio
import time
import warnings
from dataclasses import dataclass
from importlib import metadata
from itertools import pairwise
from platform import python_version
from uuid import uuid4

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import SPAN, SPAN_ROWS, at_most, single_blas
from lodim.errors import ArgumentError, DataError, DataWarning, DeviceError, MissingExtraError, warn

ROWS_PER_CHUNK = SPAN_ROWS  # rows of a chunk: one span of the sums
PART_TILES = SPAN * tiles.TILES_PER_BLOCK
PATIENCE = 5.0  # seconds between checks for workers while waiting
WORKER_TIMEOUT = 30.0  # seconds without any worker after which a fit fails
MEMORY_SHARE = 0.6  # share of a worker's memory for tiles; with more, Dask moves them to disk
# bytes per row besides features: response, weight, linear predictors, and their copies
BYTES_PER_ROW = 8 * 8
SAME = ("python", "lodim", "numpy", "numba", "llvmlite", "distributed")  # versions that must agree


def checked_client(client):
    """Return the client; raise an error unless it is a running synchronous Dask client."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError(
            "client= needs Dask's distributed scheduler: pip install 'lodim[dask]'"
        ) from error
    if not isinstance(client, Client):
        raise ArgumentError(f"client must be a dask.distributed.Client, not {client!r:.80}")
    if client.asynchronous:
        raise ArgumentError(
            "client must not be asynchronous, as a fit waits for the workers: use "
            "Client(asynchronous=False)"
        )
    if client.status != "running":
        raise DeviceError(f"the Dask client has no scheduler: its status is {client.status!r}")
    return client


def own_client():
    """Return the synchronous Dask client of this process, or None."""
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
    """Return [work(shared, *args) for args in each], computed by workers; `shared` is sent once."""
    _workers(client)
    there = _submit(client, "shared", [Task(_itself, (shared,))])
    tasks = [Task(work, (None, *args), (0,)) for args in each]
    return _results(client, _submit(client, "pass", tasks, there * len(tasks)))


def _itself(shared):
    return shared


@dataclass(frozen=True)
class Group:
    """Consecutive rows that one Dask worker holds: chunks lo to hi - 1, of up to 65,536 rows."""

    lo: int
    hi: int
    n_rows: int

    @property
    def tiles(self):
        """Slice that selects the group's rows from an array in tiles of 64 rows."""
        first = self.lo * PART_TILES
        return slice(first, first + tiles.count(self.n_rows))


class Cluster:
    """The workers of a Dask client, and the groups of rows that the workers hold, one each."""

    def __init__(self, client, n):
        self.client = checked_client(client)
        n_workers = len(_workers(client))
        _compare(_with_advice(client, lambda: client.run(host, on_error="return")))
        n_parts = -(-n // ROWS_PER_CHUNK)
        n_groups = min(n_parts, n_workers)
        bounds = pairwise(n_parts * i // n_groups for i in range(n_groups + 1))
        self.groups = [
            Group(lo, hi, min(n, hi * ROWS_PER_CHUNK) - lo * ROWS_PER_CHUNK) for lo, hi in bounds
        ]

    def check_room(self, row_bytes):
        known = _with_advice(self.client, self.client.scheduler_info)["workers"]
        rows = max(group.n_rows for group in self.groups)
        need = rows * (row_bytes + BYTES_PER_ROW)
        for address, worker in known.items():
            limit = worker["memory_limit"]
            if limit and need > MEMORY_SHARE * limit:
                raise DataError(
                    f"{rows:,} rows on a Dask worker need {need / 1e9:.1f} GB, but "
                    f"lodim uses at most {MEMORY_SHARE * limit / 1e9:.1f} of the "
                    f"{limit / 1e9:.1f} GB of {address}: start more workers, or give "
                    "dtype='float32' or sample="
                )

    def submit(self, work, *args, each=None, name=None):
        """Start work(group, *args) on Dask workers for each Group of rows; return the futures.

        args : arguments of all calls; an OnWorkers (values on workers) is cut to the Group
        each : list of one last argument per call, or None
        name : title in Dask's displays, None for the name of `work`"""
        # No task names its worker: it would wait forever if all workers were replaced.
        held = {k: v.futures for k, v in enumerate(args, 1) if isinstance(v, OnWorkers)}
        sent = [None if isinstance(v, OnWorkers) else v for v in args]
        tasks = []
        for i, group in enumerate(self.groups):
            own = () if each is None else (each[i],)
            tasks.append(Task(work, (group, *sent, *own), tuple(held)))
        return _submit(self.client, name or work.__name__, tasks, *held.values())

    def results(self, futures):
        return _results(self.client, futures)


class OnWorkers:
    """Base class of values that the workers hold: `futures`, one per group of rows."""

    futures: list


@dataclass(frozen=True)
class Task:
    """Call of work(*args) on a Dask worker; at : positions in `args` of values that it holds."""

    work: object
    args: tuple
    at: tuple = ()

    def __reduce__(self):
        import cloudpickle  # which distributed needs

        # Dask could send separate arrays misaligned, which SciPy refuses.
        return _task, (cloudpickle.dumps((self.work, self.args, self.at), protocol=4),)

    def __call__(self, *held):
        from distributed import get_worker

        args = list(self.args)
        for k, value in zip(self.at, held, strict=True):
            args[k] = value
        with at_most(get_worker().state.nthreads), single_blas():
            return self.work(*map(_aligned, args))


def _task(pickled):
    import cloudpickle

    return Task(*cloudpickle.loads(pickled))


def _aligned(v):
    return np.require(v, requirements="AW") if isinstance(v, np.ndarray) else v


def _submit(client, name, tasks, *held):
    """Send Tasks, with `name` in their keys, to Dask workers; return a list of futures, one each.

    held : lists with a future per task; each result becomes an argument of its task"""
    # Unique keys, so that no earlier result is used again
    keys = [f"lodim-{name.strip('_')}-{uuid4().hex}" for _ in tasks]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")  # it cannot be smaller
        return client.map(_call, tasks, *held, key=keys, pure=False)


def _call(task, *held):
    return task(*held)


def _results(client, futures):
    """Wait for Dask futures, and return their results in order; raise LodimError if they fail."""
    job = asyncio.run_coroutine_threadsafe(_gathered(client, futures), client.loop.asyncio_loop)
    alone_since = None
    try:
        while True:
            try:
                return _with_advice(client, lambda: job.result(PATIENCE))
            except TimeoutError:
                if job.done():
                    raise
            now = time.monotonic()
            if _with_advice(client, client.nthreads):
                alone_since = None
            elif alone_since is None:
                alone_since = now
            elif now - alone_since > WORKER_TIMEOUT - PATIENCE:
                raise DeviceError(
                    "all workers of the Dask cluster are gone, and no new worker came within "
                    f"{WORKER_TIMEOUT:.0f} seconds: the data on the workers are lost; start "
                    "workers and fit again"
                )
    except BaseException:
        job.cancel()
        for future in futures:  # Dask would keep them
            if future.status != "finished":
                future.release()
        raise


async def _gathered(client, futures):
    return await client.gather(futures, asynchronous=True)


def _workers(client):
    try:
        _with_advice(client, lambda: client.wait_for_workers(1, timeout=WORKER_TIMEOUT))
    except TimeoutError as error:
        raise DeviceError(
            f"the Dask cluster has no worker, and none came within {WORKER_TIMEOUT:.0f} seconds: "
            "start a worker, or leave out client="
        ) from error
    return _with_advice(client, client.nthreads)


def _with_advice(client, call):
    """Return call(), which uses Dask; raise a DeviceError with advice if the cluster fails."""
    from concurrent.futures import CancelledError

    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    lost = CommClosedError, CancelledError, asyncio.CancelledError
    try:
        return call()
    except KilledWorker as error:
        raise DeviceError(
            "workers of the Dask cluster died repeatedly on the same rows, probably for lack of "
            f"memory; the last was {error.last_worker.address}: start more workers, or give them "
            "more memory"
        ) from error
    except (OSError, *lost) as error:
        # If the scheduler runs, this is an error of the task or a timeout.
        if client.status == "running" and not isinstance(error, lost):
            raise
        raise DeviceError(
            f"the connection to the Dask scheduler is lost ({error}): connect again and repeat "
            "the fit"
        ) from error


def host():
    """Return the package versions and the processor of this process, as a dict."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    versions = {name: metadata.version(name) for name in SAME[1:]}
    cpu = f"{llvm.get_host_cpu_name()} {features.flatten()}"
    return {"python": python_version(), **versions, "cpu": cpu}


def _compare(hosts):
    """Raise DeviceError if workers have other package versions; hosts : address -> `host()`."""
    here = host()
    # A worker that has died is handled like one that dies later.
    hosts = {at: there for at, there in hosts.items() if not isinstance(there, OSError)}
    for address, there in hosts.items():
        if isinstance(there, Exception):
            raise DeviceError(f"the Dask worker {address} cannot run lodim: {there}") from there
        for name in SAME:
            if there[name] != here[name]:
                raise DeviceError(
                    f"the Dask worker {address} has {name} {there[name]}, this process has "
                    f"{here[name]}: install the same version everywhere"
                )
    first = {}
    for address in sorted(hosts):
        first.setdefault(hosts[address]["cpu"], address)
    if len(first) > 1:
        names = ", ".join(f"{cpu.split()[0]} ({at})" for cpu, at in first.items())
        warn(
            f"the Dask workers have different processors, {names}: the last bits of a fit may "
            "differ between runs",
            DataWarning,
        )
