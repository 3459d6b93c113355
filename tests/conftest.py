"""What the tests share: examples that are drawn alike everywhere, and plots without a screen."""

import gc
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pandas as pd
import pytest

os.environ["MPLBACKEND"] = "Agg"
if "PYTEST_XDIST_WORKER" in os.environ:  # several processes share the cores: waiting threads spin
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

# `pip install --no-compile` leaves it to the first import to compile a module, once for all.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
gc.set_threshold(50_000, 20, 50)  # compilations of kernels fill the memory with small objects

# The same examples in every run, so that no check fails by chance; nothing is kept between runs.
# Other ones are drawn by hand, with the profile "campaign": see campaign/README.md.
# How long one takes says what else the machine is doing.
timeless = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("same", derandomize=True, database=None, **timeless)
hypothesis.settings.register_profile("campaign", database=None, print_blob=True, **timeless)
hypothesis.settings.load_profile("same")

KERNELS = pytest.StashKey[int]()  # compiled kernels before the run
PACKAGE = Path(find_spec("lodim").origin).parent
PIMA = Path(__file__).resolve().parents[2] / "shared/data/pima_diabetes.csv"


@pytest.fixture(scope="session")
def pima():
    """The diabetes of the Pima, the one data set of the tests that does not come with lodim."""
    if not PIMA.is_file():
        pytest.skip(f"its licence is not known, so lodim does not ship it, and there is no {PIMA}")
    return pd.read_csv(PIMA)


@pytest.fixture
def axes():
    """Fresh matplotlib Axes; all figures are closed afterwards."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pyplot.subplots()[1]
    pyplot.close("all")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Let two workers compile different kernels: one begins at the start, one in the middle."""

    def after(item):
        parts = {*item.path.parts}
        return 0 if parts & {"acquisition", "contract", "costnet"} else 1 + ("models" not in parts)

    items.sort(key=after)
    first = sum(after(item) == 0 for item in items)
    rest = len(items) - max(0, len(items) // 2 - first)
    items[:] = items[:first] + items[rest:] + items[first:rest]


def compiled_kernels():
    """Number of compiled kernels in Numba's cache, one for each kernel and types of arguments."""
    folders = (os.environ.get("NUMBA_CACHE_DIR"), PACKAGE)
    return sum(1 for folder in folders if folder for _ in Path(folder).rglob("*.nbc"))


def pytest_sessionstart(session):
    session.config.stash[KERNELS] = compiled_kernels()


def pytest_terminal_summary(terminalreporter, config):
    n_new = compiled_kernels() - config.stash[KERNELS]
    terminalreporter.write_line(f"kernels compiled in this run: {n_new}")
