"""Tiles that are laid out of columns have the bits of those in memory."""

import numpy as np
import pytest

from lodim.engine import tiles
from lodim.engine.blocks import on_host, over_rows, sum_blocks
from lodim.engine.column_tiles import ColumnTiles, inverses
from lodim.engine.row_keys import lengths
from lodim.family.binomial import LOGISTIC
from lodim.models.gbmap.kernels.cpu import SOFTPLUS, Form, effects, forward, loss_gradient

pytestmark = pytest.mark.long

N, P = 9_001, 7


def columns_and_tiles(of_columns, of_tiles):
    """(columns, mean, scale, ColumnTiles), the third column constant."""
    rng = np.random.default_rng(0)
    F = (3.0 * rng.standard_normal((P, N)) + [[0], [5], [7], [1e4], [0], [0], [-2]]).astype(
        of_columns
    )
    F[2] = 7.0
    mean, scale = F.mean(axis=1, dtype=float), F.std(axis=1, dtype=float)
    scale[2] = np.inf
    return F, mean, scale, ColumnTiles(list(F), mean, scale, of_tiles)


KINDS = [("float32", "float32"), ("float64", "float64"), ("float32", "float64")]


@pytest.mark.parametrize("of_columns, of_tiles", KINDS)
def test_they_are_centred_and_scaled_columns_with_zeros_beyond_the_last(of_columns, of_tiles):
    F, mean, scale, X = columns_and_tiles(of_columns, of_tiles)
    expected = tiles.pack((F.T - mean) / scale, of_tiles)
    found = np.asarray(X)
    assert found.dtype == X.dtype == of_tiles and found.shape == X.shape == expected.shape
    assert np.allclose(found, expected, rtol=0, atol=1e-6 if of_tiles == "float32" else 0)
    assert on_host(X) and X.nbytes == found.nbytes and X.size == found.size
    assert not found.reshape(-1, P, 64)[-1, :, N % 64 :].any()


@pytest.mark.parametrize("of_columns, of_tiles", KINDS)
def test_slices_rows_and_what_varies_are_those_of_tiles_in_memory(of_columns, of_tiles):
    *_, X = columns_and_tiles(of_columns, of_tiles)
    whole, rows = np.asarray(X), np.arange(0, N, 7)[::-1]
    for part in (slice(3, 9), slice(130, 400), slice(0, 0), slice(None)):
        assert (np.asarray(X[part]) == whole[part]).all() and len(X[part]) == len(whole[part])
    assert (tiles.rows(X, rows) == tiles.rows(whole, rows)).all()
    assert (tiles.unpack(X, N) == tiles.unpack(whole, N)).all()
    assert (tiles.varies(X) == tiles.varies(whole)).all() and not tiles.varies(X)[2]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("of_columns, of_tiles", KINDS)
def test_kernels_give_the_bits_of_tiles_in_memory(of_columns, of_tiles, threads):
    *_, X = columns_and_tiles(of_columns, of_tiles)
    whole, rng = np.asarray(X), np.random.default_rng(1)
    y, f, weight = rng.random((3, len(X), 64)).astype(of_tiles)
    theta, sign, active = rng.standard_normal((2, 2 + P)), np.array([1.0, -1.0]), np.arange(2)
    shape, how = (1.0, SOFTPLUS), {"threads": threads}

    def sums(X):
        rest = y, f, weight, theta, active, sign, Form(*shape, LOGISTIC)
        yield sum_blocks(loss_gradient, X, (2, 3 + P), *rest, **how)
        rest = weight.astype(float), theta, sign, *shape, active
        yield sum_blocks(effects, X, (4 + 2 * P,), *rest, **how)
        out = np.zeros((len(X), 2, 64))
        over_rows(forward, X, theta, sign, *shape, False, active, out, **how)
        yield out
        yield lengths(X, N, threads)

    for found, expected in zip(sums(X), sums(whole), strict=True):
        assert found.any() and (found == expected).all()


def test_of_scales_without_a_finite_inverse_features_are_quotients():
    scale = np.array([2.0, 1e-310, np.inf])
    assert inverses(scale, "float32").tolist() == [0.5, 0.0, 0.0]
    assert not inverses(scale, "float64").any()
    x = np.linspace(-1e-310, 1e-310, 64)
    X = ColumnTiles([x], np.zeros(1), np.array([1e-310]), "float32")
    assert np.allclose(np.asarray(X)[0, 0], np.linspace(-1, 1, 64))
