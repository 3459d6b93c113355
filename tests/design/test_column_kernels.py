"""Kernels over one column: missing and infinite values, and columns of float32."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.design.column_kernels import BLOCK
from lodim.design.columns import Column
from lodim.design.design import Design
from lodim.design.rows import _flag
from lodim.engine.blocks import SPAN_ROWS

pytestmark = pytest.mark.long


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_missing_numbers_and_the_first_infinite_row_are_found(dtype):
    rng = np.random.default_rng(1)
    x = (1e38 * rng.uniform(-3, 3, SPAN_ROWS)).astype(dtype)  # whose sums are beyond float32
    missing = np.sort(rng.choice(SPAN_ROWS, 50, replace=False))
    x[missing] = np.nan
    bad = np.zeros(SPAN_ROWS, bool)
    assert _flag(Column("x", "number", x), bad, range(SPAN_ROWS)) == 50
    assert (np.flatnonzero(bad) == missing).all()
    for row, sign in ((SPAN_ROWS - 1, -1.0), (3 * BLOCK, 1.0)):
        x[row] = sign * np.inf
        with pytest.raises(ld.DataError, match=f"infinite in row {row}:"):
            _flag(Column("x", "number", x), bad, range(SPAN_ROWS))


def test_design_of_many_float32_numbers_is_that_of_their_float64():
    rng = np.random.default_rng(2)
    n = SPAN_ROWS + 5 * BLOCK + 3
    X = rng.standard_normal((n, 3)).astype(np.float32) * [1, 1e-4, 1e4] + [0, 1, 1e5]
    narrow = pd.DataFrame(X.astype(np.float32), columns=["a", "b", "c"]).assign(y=np.arange(n) % 7)
    narrow.loc[5, "c"] = np.nan
    wide = narrow.astype(dict.fromkeys("abc", "float64"))
    (design, batch), (other, other_batch) = (Design.learn("y ~ .", df) for df in (narrow, wide))
    assert (design.mean == other.mean).all() and (design.scale == other.scale).all()
    assert batch.n == n - 1 and (batch.X == other_batch.X).all()
