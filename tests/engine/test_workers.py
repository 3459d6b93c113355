"""Tiles on the workers of a Dask cluster: the bits of a fit in memory, and what fails in words."""

import gc
import logging
import os
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim import family as families
from lodim.design.batch import Batch
from lodim.engine import dask_cluster, row_keys, tiles, workers
from lodim.engine.blocks import sum_blocks
from lodim.errors import ArgumentError, DataError, DataWarning, DeviceError, MissingExtraError
from lodim.family.binomial import LOGISTIC
from lodim.models.costnet.penalty.groups import Groups
from lodim.models.costnet.penalty.problem import PathProblem
from lodim.models.costnet.penalty.solvers import penalty_path
from lodim.models.gbmap.cpu_kernels import SOFTPLUS, Form, loss_gradient
from lodim.prices.network import unfold

distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")

N = 140_000  # rows: two parts and a bit


@pytest.fixture(scope="module")
def cluster():
    """Two processes of one thread; what Dask logs of those that are killed is not shown."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    loggers = [
        logging.getLogger(f"distributed.{name}") for name in ("nanny", "scheduler", "client")
    ]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    with distributed.LocalCluster(processes=True, **options) as cluster:
        yield cluster
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder of four files with gaps, levels, weights and an offset; one level is in the last."""
    folder = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "c"])
    hinge = np.maximum(frame["a"] + frame["b"], 0.0)
    frame["y"] = np.where(rng.random(N) < 1.0 / (1.0 + np.exp(-hinge)), "yes", "no")
    frame["z"] = hinge + rng.normal(size=N)
    frame["level"] = rng.choice(["u", "v"], N)
    frame.loc[N - 500 :, "level"] = "w"
    frame.loc[rng.random(N) < 0.01, "b"] = np.nan
    frame["weight"], frame["known"] = rng.integers(0, 3, N).astype(float), rng.normal(size=N)
    for k, lo in enumerate(range(0, N, 40_000)):
        frame[lo : lo + 40_000].to_parquet(folder / f"part-{k}.parquet", index=False)
    return folder


def saved(fit, path):
    fit.save(path)
    return path.read_bytes()


def boosts(data, **more):
    given = {"weights": "weight", "m": 2, "lambda_": 0.01, "control": {"reference_rows": 50}}
    return ld.gbmap("y ~ a + b + c + level", data, **given | more)


def read_columns(batch):
    """What makes part k of a batch: it is pickled with all rows, as no source would be."""
    arrays = batch.X, batch.y, batch.weights

    def make(k):
        X, y, weights = arrays
        rows = slice(k * workers.ROWS_PER_CHUNK, min(len(y), (k + 1) * workers.ROWS_PER_CHUNK))
        part = X[tiles.of_rows(rows)], y[rows], weights[rows]
        return Batch(*part, None, pd.RangeIndex(rows.start, rows.stop), np.arange(len(part[1])))

    return make


@pytest.fixture(scope="module")
def problem():
    """A batch of random rows, weights of zero among them."""
    rng = np.random.default_rng(1)
    X = tiles.pack(rng.normal(size=(N, 3)))
    y, weights = rng.integers(0, 2, N).astype(float), rng.integers(0, 3, N).astype(float)
    return Batch(X, y, weights, None, pd.RangeIndex(N), np.arange(N))


@pytest.fixture(scope="module")
def held(client, problem):
    """Its tiles on the workers."""
    return workers.read_parts(client, read_columns(problem), N, 3, np.float64)


def there(held, problem):
    """The batch whose X is `held`."""
    beside = {name: held.beside[name][0] for name in ("y", "weights")}
    return replace(problem, X=held, **beside)


def plain_network(p):
    """A Network of p columns of price one each."""
    return unfold([f"x{j}" for j in range(p)], np.ones(p), [()] * p, [(j,) for j in range(p)])


@pytest.mark.long
@pytest.mark.parametrize("model", ["boosts", "offset", "ordinal", "glm", "huber"])
def test_a_fit_on_workers_has_the_bytes_of_one_in_memory(client, files, tmp_path, model):
    def fit(data, **more):
        if model == "glm":
            return ld.glm("y ~ a + b + level", data, weights="weight", covariance="HC1", **more)
        if model == "ordinal":
            given = {"m": 2, "lambda_": 0.01, "offset": "known", "refit": "joint"}
            return ld.gbmap("weight ~ a + c", data, family="ordinal", **given, **more)
        if model == "huber":
            return ld.glm("z ~ a + b + level", data, family="huber", **more)
        rest = {"offset": "known", "dtype": "float32"} if model == "offset" else {}
        return boosts(data, **rest, **more)

    frame = pd.read_parquet(files)
    at_once = saved(fit(frame), tmp_path / "a.lodim")
    assert saved(fit(str(files / "*.parquet"), client=client), tmp_path / "b.lodim") == at_once


FEW = {"rules": "lasso", "n_lambda": 3, "relax": 1.0}  # of costnet: a short search


@pytest.mark.long
@pytest.mark.parametrize("family", ["gaussian", "binomial", "multinomial", "poisson"])
def test_a_price_list_on_workers_has_the_bytes_of_one_in_memory(client, files, tmp_path, family):
    formula, given = {
        "gaussian": (
            "z ~ a + b + c + level",
            {"weights": "weight", "costs": {"a": 1, "b": 1, "c": 0, "level": 2}},
        ),
        "binomial": ("y ~ a + b", {"offset": "known", "dtype": "float32", **FEW}),
        "multinomial": ("level ~ a", {"weights": "weight", **FEW}),
        "poisson": ("weight ~ a + b", {"family": "poisson", "offset": "known", **FEW}),
    }[family]
    at_once = saved(ld.costnet(formula, pd.read_parquet(files), **given), tmp_path / "a.lodim")
    fit = ld.costnet(formula, str(files / "*.parquet"), client=client, **given)
    assert saved(fit, tmp_path / "b.lodim") == at_once


@pytest.mark.long
def test_a_penalized_path_on_workers_has_the_bits_of_one_in_memory(held, problem):
    family, groups = families.make("multinomial", 2), Groups.from_network(plain_network(3), p=3)
    one, two = (
        penalty_path(batch, family, groups, n_lambda=2, lambda_min_ratio=0.5, max_iter=3)
        for batch in (problem, there(held, problem))
    )
    assert one.coef.any()
    for name in ("coef", "intercept", "deviance", "gap", "n_iter"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name


@pytest.mark.long
def test_cv_of_costnet_on_workers_is_that_in_memory(client, files):
    call = ld.costnet, "z ~ a + b", str(files / "*.parquet")
    one, two = (ld.cv(*call, folds=2, lambda_=0.01, **m) for m in ({}, {"client": client}))
    assert str(one) == str(two)


def test_one_worker_gives_the_bytes_of_memory(files, tmp_path):
    source = str(files / "*.parquet")
    options = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(processes=False, **options) as one,
        distributed.Client(one, set_as_default=False) as client,
    ):
        fits = [fit(source, client=client) for fit in (_boosted, _priced)]
    frame = pd.read_parquet(files)
    for there, here in zip(fits, (_boosted(frame), _priced(frame)), strict=True):
        assert saved(there, tmp_path / "a.lodim") == saved(here, tmp_path / "b.lodim")


def _boosted(data, **more):
    return ld.gbmap("z ~ a + level", data, m=2, lambda_=0.01, **more)


def _priced(data, **more):
    return ld.costnet("y ~ a + level", data, lambda_=0.01, **more)


@pytest.mark.long
def test_a_dask_frame_goes_to_the_client_of_the_process(client, files, tmp_path, monkeypatch):
    dask = pytest.importorskip("dask.dataframe")
    frame = pd.read_parquet(files)
    called = []
    read = workers.read_parts
    monkeypatch.setattr(workers, "read_parts", lambda *a: called.append(1) or read(*a))
    with client.as_current():
        there = ld.gbmap("z ~ a + level", dask.from_pandas(frame, npartitions=3), m=1, lambda_=0.1)
    here = ld.gbmap("z ~ a + level", frame, m=1, lambda_=0.1)
    there, here = (fit.estimates.theta for fit in (there, here))
    assert called and np.array_equal(there, here)


@pytest.mark.long
def test_a_killed_worker_changes_no_bit(client, files, tmp_path):
    source = str(files / "*.parquet")
    before = saved(boosts(source, client=client), tmp_path / "a.lodim")
    started = threading.Event()

    def kill():
        started.wait()
        os.kill(client.run(os.getpid).popitem()[1], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    evaluations = 0
    results = dask_cluster._results

    def counted(client, futures):
        nonlocal evaluations
        evaluations += 1
        if evaluations == 20:  # in the middle of the first boost
            started.set()
            killer.join()
        return results(client, futures)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_cluster, "_results", counted)
        after = saved(boosts(source, client=client), tmp_path / "b.lodim")
    assert evaluations > 20
    assert after == before


@contextmanager
def traffic():
    """A list of the bytes that the workers send, one number an evaluation."""
    sizes = []
    results = dask_cluster._results

    def measured(client, futures):
        found = results(client, futures)
        sizes.append(sum(np.asarray(part).nbytes for part in found))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_cluster, "_results", measured)
        yield sizes


@pytest.mark.long
def test_traffic_of_an_evaluation_is_the_sums_of_its_spans(held, problem):
    columns = held.column(held.beside["y"][0]), held.constant(0.0), held.constant(1.0 / N)
    theta, sign = np.random.default_rng(2).normal(size=(2, 5)), np.array([1.0, -1.0])
    args = theta, np.arange(2), sign, Form(10.0, SOFTPLUS, LOGISTIC)
    with traffic() as sizes:
        there = sum_blocks(loss_gradient, held, (2, 6), *columns, *args)
    here = (problem.y, np.zeros(N), np.full(N, 1.0 / N))
    here = (tiles.pad(v, len(problem.X)) for v in here)
    assert np.array_equal(there, sum_blocks(loss_gradient, problem.X, (2, 6), *here, *args))
    assert sizes == [3 * 2 * 6 * 8]  # spans of 65,536 rows, learners, numbers, bytes


@pytest.mark.long
def test_traffic_of_a_penalized_path_is_the_sums_of_its_spans(held, problem):
    groups = Groups.from_network(plain_network(3), p=3)
    rows = PathProblem.from_batch(there(held, problem), families.make("binomial", 2), groups)
    with traffic() as sizes:
        f = rows.scores_after(rows.offset, np.array([-1, 0]), np.array([[0.1, 0.2]]))
        rows.at_scores(f)
        rows.moments_at(f, np.array([0, 1]))
    # Of 3 spans the loss, its bend and 1 + 3 slopes; then 2 slopes and 2 x 2 moments; 8 bytes each.
    # Scores stay.
    assert sizes == [3 * 6 * 8, 3 * 8 * 8]


@pytest.mark.long
def test_rows_and_columns_come_back_as_they_were(held, problem):
    i = np.random.default_rng(0).choice(N, 1000)
    assert np.array_equal(tiles.rows(held, i), tiles.rows(problem.X, i))
    assert np.array_equal(held.gather(), problem.X)
    assert np.array_equal(held.beside["weights"][0], problem.weights)
    assert tiles.varies(held).tolist() == [True] * 3
    assert np.array_equal(row_keys.lengths(held, N), row_keys.lengths(problem.X, N))
    other = np.arange(float(N))
    assert held.column(other) is held.column(other)  # sent once
    assert np.array_equal(tiles.by_row(held.column(other).gather(), N), other)


@pytest.mark.long
def test_workers_that_are_all_gone_are_an_error_in_words(monkeypatch, problem):
    monkeypatch.setattr(dask_cluster, "WORKER_TIMEOUT", 0.2)
    monkeypatch.setattr(dask_cluster, "PATIENCE", 0.05)
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(processes=False, **options) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        X = workers.read_parts(client, read_columns(problem), N, 3, np.float64)
        cluster.scale(0)
        while client.nthreads():
            time.sleep(0.01)
        with pytest.raises(DeviceError, match="all workers of the Dask cluster are gone"):
            X.varies()
        with pytest.raises(DeviceError, match="has no worker"):
            workers.read_parts(client, read_columns(problem), N, 3, np.float64)
    with pytest.raises(DeviceError, match="no scheduler"):
        dask_cluster.checked_client(client)


@pytest.mark.long
def test_an_error_of_a_task_is_that_error(client):
    def make(k):
        raise DataError(f"part-{k}.parquet: it is truncated")

    with pytest.raises(DataError, match=r"part-.\.parquet: it is truncated"):
        workers.read_parts(client, make, N, 3, np.float64)


@pytest.mark.long
def test_failed_tasks_are_forgotten_with_their_error(client, held):
    def divided(rows, X):  # within: the workers cannot import what the tests define
        return 1 // (rows.start * 0)

    def failed():
        gc.collect()  # the error and the frames that it went through hold each other
        return [name for name, state in client.futures.items() if state.status == "error"]

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            held.spans(divided)
    patience = time.monotonic() + 5.0  # for the last message of the scheduler
    while failed() and time.monotonic() < patience:
        time.sleep(0.05)
    assert not failed()


@pytest.mark.long
def test_rows_that_the_workers_cannot_hold_are_refused(client, problem, monkeypatch):
    monkeypatch.setattr(dask_cluster, "MEMORY_SHARE", 1e-9)
    with pytest.raises(
        DataError, match=r"rows on a Dask worker need .* GB, but .* tcp.* start more"
    ):
        workers.read_parts(client, read_columns(problem), N, 3, np.float64)


@pytest.mark.long
def test_versions_must_agree_and_processors_are_compared():
    here = dask_cluster.host()
    dask_cluster._compare({"tcp://a": here, "tcp://b": here})
    with pytest.raises(DeviceError, match=r"tcp://b has numba 0\.1, this process has"):
        dask_cluster._compare({"tcp://a": here, "tcp://b": here | {"numba": "0.1"}})
    with pytest.warns(DataWarning, match=r"different processors, .*tcp://a.*, other \(tcp://b\)"):
        dask_cluster._compare({"tcp://a": here, "tcp://b": here | {"cpu": "other -x"}})
    dask_cluster._compare({"tcp://a": here, "tcp://b": OSError("gone")})
    with pytest.raises(DeviceError, match="tcp://b cannot run lodim: No module named 'lodim'"):
        dask_cluster._compare({"tcp://b": ModuleNotFoundError("No module named 'lodim'")})


@pytest.mark.long
def test_what_client_cannot_be_for_is_refused(client, files, monkeypatch):
    source = str(files / "*.parquet")
    with pytest.raises(ArgumentError, match="client= needs files or a Dask frame"):
        ld.gbmap("y ~ a", pd.read_parquet(files), m=1, lambda_=0.1, client=client)
    with pytest.raises(ArgumentError, match=r"client must be a dask\.distributed\.Client, not 3"):
        ld.gbmap("y ~ a", source, m=1, lambda_=0.1, client=3)
    with pytest.raises(ArgumentError, match="sample= and client= cannot be combined"):
        ld.gbmap("y ~ a", source, m=1, lambda_=0.1, client=client, sample=1000)
    with pytest.raises(ArgumentError, match=r"control={\"scratch\": ...} and client= cannot be"):
        how = {"client": client, "control": {"scratch": "/tmp"}}
        ld.gbmap("y ~ a", source, m=1, lambda_=0.1, **how)
    with pytest.raises(ArgumentError, match="solver='cvxpy' needs all rows in this process"):
        ld.costnet("y ~ a", source, lambda_=0.1, client=client, solver="cvxpy")
    with pytest.raises(DeviceError, match="engine='cuda' needs the rows in this process"):
        ld.gbmap("y ~ a", source, m=1, lambda_=0.1, client=client, engine="cuda")
    with pytest.raises(ArgumentError, match=r"melm does not run on the workers .* gbmap, .*glm"):
        ld.melm("y ~ a + b", source, client=client)
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lodim\[dask\]'"):
        dask_cluster.checked_client(3)


@pytest.mark.long
@pytest.mark.parametrize("model", [ld.gbmap, ld.glm])
def test_cross_validation_on_workers_is_that_of_files(client, files, model):
    more = {"m": 2, "grid": {"lambda_": [0.01, 1.0]}} if model is ld.gbmap else {}
    given = {"data": files, "weights": "weight", "folds": 3, "seed": 1} | more
    here = ld.cv(model, "y ~ a + b + level", **given)
    there = ld.cv(model, "y ~ a + b + level", client=client, **given)
    pd.testing.assert_frame_equal(here.tidy(), there.tidy(), check_exact=True)


def test_memory_of_each_worker_is_estimated(client, files):
    found = ld.estimate(ld.gbmap, "y ~ a + b", str(files / "*.parquet"), m=2, client=client)
    assert found.workers == 2 and 0 < found.worker_bytes < 10 * found.tile_bytes
    assert "Memory of each" in str(found) and "The workers keep the features" in str(found)


def test_a_model_without_features_on_workers(client, files):
    source = str(files / "*.parquet")
    alone, there = (ld.glm("z ~ 1", source, client=given) for given in (None, client))
    assert alone.coef().equals(there.coef()) and alone.n == there.n
