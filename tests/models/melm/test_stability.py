"""What a reader sees in melm's view: rounding, order and names do not move it."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.engine import row_keys as keys
from lodim.models.melm import density
from lodim.models.melm.rule import (
    INVERSE_TEMPERATURES,
    Rows,
    losses_by_temperature,
    sample_rows,
    select_inverse_temperature,
)
from lodim.models.melm.view import orient, upright

pytestmark = pytest.mark.long

SONAR = ld.data("sonar")[["echo", *(f"band_{j:02d}" for j in range(1, 41, 2))]]
QUICK = {"gamma": 0.7, "n_starts": 7, "control": {"calibrate": False}}


def shaken(df, seed):
    """The frame with noise of 1e-12, rows and columns in another order."""
    rng = np.random.default_rng(seed)
    numbers = df.select_dtypes("number").columns
    noise = 1.0 + 1e-12 * rng.normal(size=(len(df), len(numbers)))
    df = df.assign(**(df[numbers] * noise))[list(rng.permutation(df.columns))]
    return df.iloc[rng.permutation(len(df))]


def angle(fit, other, df):
    """The largest angle between two planes, in degrees, rows having unit covariance within each."""
    bases = []
    for each in (fit, other):
        Z = each.predict(df, "projection").to_numpy()
        bases.append(np.linalg.qr(Z - Z.mean(axis=0))[0])
    least = np.linalg.svd(bases[0].T @ bases[1], compute_uv=False).min()
    return np.degrees(np.arccos(min(1.0, least)))


def same(fit, other, df):
    """Whether two fits show the same plane and say the same."""
    np.testing.assert_allclose(other.divergence, fit.divergence, rtol=1e-6)
    assert angle(fit, other, df) < 0.1
    gap = other.predict(df, "prob")[list(fit.levels)] - fit.predict(df, "prob")
    assert np.sqrt((gap**2).to_numpy().mean()) < 1e-3


@pytest.fixture(scope="module")
def sonar():
    return ld.melm("echo ~ .", SONAR, **QUICK)


@pytest.mark.parametrize("seed", range(3))
def test_noise_and_order_do_not_turn_the_plane(sonar, seed):
    other = ld.melm("echo ~ .", shaken(SONAR, seed), **QUICK)
    same(sonar, other, SONAR)
    columns = [f"x{j + 1}" for j in range(2)]
    np.testing.assert_allclose(
        other.predict(SONAR, "projection")[columns], sonar.predict(SONAR, "projection"), atol=1e-3
    )


def test_names_of_classes_do_not_turn_the_plane(sonar):
    new = {"rock": "a", "mine": "b"}
    other = ld.melm("echo ~ .", shaken(SONAR.replace(new), 4), **QUICK)
    assert other.levels == tuple(new[name] for name in sonar.levels[::-1])
    old = {b: a for a, b in new.items()}
    np.testing.assert_allclose(other.divergence, sonar.divergence, rtol=1e-6)
    assert angle(sonar, other, SONAR) < 0.1
    gap = other.predict(SONAR, "prob").rename(columns=old)[list(sonar.levels)]
    np.testing.assert_allclose(gap, sonar.predict(SONAR, "prob"), atol=1e-3)


def test_folds_choose_the_same_under_noise_and_other_columns():
    df = SONAR.iloc[:, :12]
    call = {"n_starts": 5}
    fit, other = (ld.melm("echo ~ .", each, **call) for each in (df, shaken(df, 5).sort_index()))
    assert fit.settings.gamma == other.settings.gamma
    same(fit, other, df)
    held, again = (each.measures["held_deviance"] for each in (fit, other))
    np.testing.assert_allclose(again, held, rtol=1e-4)


def many(n=2600):
    """More rows than a search looks at, of three classes."""
    rng = np.random.default_rng(6)
    code = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    frame["a"] += np.abs(code - 1.0) * frame["b"]
    return frame.assign(y=np.array(["p", "q", "r"])[code])


def test_rows_are_drawn_by_what_they_hold():
    """All starts are searched on 2,048 rows, and the log says where they ended."""
    df, call = many(), QUICK | {"n_starts": 4}
    fit = ld.melm("y ~ .", df, **call)
    renamed = df.replace({"y": {"p": "z", "q": "y", "r": "x"}})
    for other in (shaken(df, 7), shaken(renamed, 8)):
        ends = ld.melm("y ~ .", other, **call).starts()
        np.testing.assert_allclose(ends["divergence"], fit.starts()["divergence"], rtol=1e-5)


def test_kept_rows_do_not_depend_on_their_place_or_on_class_codes():
    rng = np.random.default_rng(9)
    Z, code = rng.normal(size=(5000, 2)), rng.choice(3, 5000, p=[0.7, 0.299, 0.001])
    one, kept = np.ones(5000), sample_rows(Z, code, np.ones(5000), 600, 0)
    assert abs(len(kept) - 600) < 10 and (np.diff(kept) > 0).all()
    assert (code[kept] == 2).sum() == (code == 2).sum()
    order = rng.permutation(5000)
    turned = -Z[order, ::-1]
    again = sample_rows(turned, 2 - code[order], one, 600, 0)
    np.testing.assert_array_equal(np.sort(order[again]), kept)


def test_keys_tell_rows_apart_and_nothing_else():
    rng = np.random.default_rng(10)
    X = np.column_stack([rng.normal(size=(300, 3)), rng.integers(0, 2, (300, 2))])
    key = keys.keys(X, np.ones(300))
    assert len(np.unique(np.round(key, 9))) == 300
    np.testing.assert_allclose(keys.keys(5.0 - 2.0 * X[:, ::-1], np.ones(300)), key, atol=1e-10)
    # A square of points has nothing that tells its corners apart: not even rounding does.
    corners = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    corners *= 1.0 + 1e-13 * rng.normal(size=(4, 2))
    np.testing.assert_array_equal(keys.keys(corners, np.ones(4)), 0.0)


def test_signs_hold_where_loadings_tie():
    """A feature and its mirror image have loadings of one size and both signs."""
    rng = np.random.default_rng(11)
    x = rng.gamma(2.0, size=200)
    X = np.column_stack([x, -x, 0.1 * rng.normal(size=200)])
    share = np.full(200, 1.0 / 200)
    for wobble in (-1e-12, 1e-12):
        V = np.array([[1.0 + wobble], [-1.0], [0.3]])
        assert (upright(V, X @ V, share), upright(-V, -X @ V, share)) == (1.0, -1.0)
    y = np.repeat([0, 1], 100)
    X = np.column_stack([X[:, :2] * np.where(y, 3.0, 1.0)[:, None], X[:, 2] + y])
    spans = [np.array([[1.0, 0.0], [-1.0 + w, 0.0], [0.0, 1.0]]) for w in (-1e-12, 1e-12)]
    views = [orient(V, X, y, np.ones(200)) for V in spans]
    np.testing.assert_allclose(*views, atol=1e-9)


def test_a_class_amid_the_others_does_not_choose_the_side():
    """The last class has its mean where all rows have theirs: rounding would choose its side."""
    rng = np.random.default_rng(13)
    x = rng.normal(size=(60, 2)) ** 3
    apart = np.array([2.0, 0.0])
    X = np.vstack([x - apart, x + apart, x])
    y = np.repeat([0, 1, 2], 60)
    views = [orient(np.eye(2), X + w * (y == 2)[:, None], y, np.ones(180)) for w in (-1e-12, 1e-12)]
    np.testing.assert_allclose(*views, atol=1e-9)


class Flat:
    """A family whose deviance is one but for rounding."""

    @staticmethod
    def deviance(y, score):
        return 1.0 + 1e-13 * np.sin(1e3 * np.abs(score[:, 0]))


def test_of_equal_widths_and_factors_the_smoothest_is_chosen(monkeypatch):
    y, weight = np.zeros(4), np.full(4, 0.25)
    losses = losses_by_temperature(Flat, y, weight, np.ones((4, 1)))
    assert select_inverse_temperature(losses) == INVERSE_TEMPERATURES[0]
    rows = Rows(
        np.arange(4.0)[:, None] ** 2, np.array([0, 0, 1, 1]), np.ones(4), np.array([2.0, 2.0])
    )
    score = np.log([[0.7, 0.3]] * 4)
    monkeypatch.setattr(
        density,
        "leave_one_out_scores",
        lambda rows, _, width, *rest: score * (1.0 + 1e-13 * np.sin(1e3 * width)),
    )
    assert density.select_width(rows, None, density.DensityOptions(), 1) == density.WIDTHS[0]
