"""What the tests share: real data, and a matplotlib without a screen."""

import os
from pathlib import Path

import pytest

os.environ["MPLBACKEND"] = "Agg"

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data():
    """Folder of the real data sets beside the repository; skips where it is not."""
    if not SHARED.is_dir():
        pytest.skip(f"no data sets at {SHARED}")
    return SHARED


@pytest.fixture
def axes():
    """Fresh matplotlib Axes; all figures are closed afterwards."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pyplot.subplots()[1]
    pyplot.close("all")
