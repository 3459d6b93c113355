"""The queries in a PostgreSQL server, where the package pgserver brings one."""

import shutil
import tempfile

import numpy as np
import pytest

import lodim as ld
from export.targets import expected, gap, in_postgres
from export.test_formulas import RIGHT_SIDES, frame

pytestmark = pytest.mark.filterwarnings("ignore")  # of folders, by what pgserver needs
pgserver = pytest.importorskip("pgserver", reason="pgserver, which brings PostgreSQL, is not there")


@pytest.fixture(scope="module")
def server():
    # Not pytest's own folder: started by root, the server runs as a user who may not enter that.
    folder = tempfile.mkdtemp(prefix="postgres")
    with pgserver.get_server(folder) as running:
        yield running
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("right", RIGHT_SIDES)
def test_formulas(right, server):
    df = frame()
    new = df[::4].reset_index(drop=True)
    new.loc[3, ["x", "g", "b"]] = None
    fit = ld.glm(f"y ~ {right}", data=df, missing="indicator")
    assert gap(in_postgres(server, fit, new), expected(fit, new)) <= 1e-9


@pytest.mark.parametrize("model", ["gbmap", "melm", "proset", "glm", "costnet"])
def test_models(model, server):
    from export.test_models import CASES, DATA, rows_of

    for name, y, families in DATA:
        if model in families:
            df = rows_of(name)
            fit = getattr(ld, model)(f"{y} ~ .", data=df, **CASES[model])
            new = df.astype(object).where(np.random.default_rng(0).random(df.shape) > 0.05, None)
            assert gap(in_postgres(server, fit, new), expected(fit, new)) <= 1e-9
