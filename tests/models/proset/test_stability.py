"""proset's answers hold still: rounding, order, names; and it has converged where it says so."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import nnls

import lodim as ld
from lodim.engine import row_keys
from lodim.models.proset import estimate

pytestmark = pytest.mark.long


def heart():
    return ld.data("heart").dropna().reset_index(drop=True)


def shaken(df, seed=0):
    """Numbers times (1 + 1e-12 noise)."""
    rng = np.random.default_rng(seed)
    numbers = df.select_dtypes("number").columns
    return df.assign(**{c: df[c] * (1 + 1e-12 * rng.normal(size=len(df))) for c in numbers})


def shuffled(df, seed=0):
    """Rows in another order, each with its label."""
    return df.iloc[np.random.default_rng(seed).permutation(len(df))]


def turned(df, seed=0):
    return df[list(np.random.default_rng(seed).permutation(list(df)))]


CHANGES = pytest.mark.parametrize("change", [shaken, shuffled, turned])


@CHANGES
@pytest.mark.parametrize(
    "name, response, lambda_v",
    [("breast_cancer", "diagnosis", 0.03), ("heart", "disease", 1e-3), ("wine", "cultivar", 0.03)],
)
def test_classes_hold_still(name, response, lambda_v, change):
    df = ld.data(name).dropna().reset_index(drop=True)
    one = ld.proset(f"{response} ~ .", df, lambda_v=lambda_v)
    two = ld.proset(f"{response} ~ .", change(df), lambda_v=lambda_v)
    assert abs(len(two.estimates) - len(one.estimates)) <= 0.2 * len(one.estimates)
    moved = (two.predict(df, "prob") - one.predict(df, "prob")).to_numpy()
    assert np.sqrt(np.mean(moved**2)) < 0.02
    strongest = one.tidy().nlargest(5, "std_estimate").query("std_estimate > 0")["term"]
    assert set(strongest) <= set(two.tidy().query("std_estimate > 0")["term"])


@CHANGES
def test_numbers_hold_still(change):
    df = ld.data("autompg").dropna().reset_index(drop=True)
    one, two = (ld.proset("mpg ~ .", d, lambda_v=0.03) for d in (df, change(df)))
    sd = np.std(df["mpg"] - one.predict(df))
    assert np.std(two.predict(df) - one.predict(df)) < 0.05 * sd
    assert abs(len(two.estimates) - len(one.estimates)) <= 0.2 * len(one.estimates)


def test_names_of_classes_play_no_part():
    df = heart()
    other = df.assign(disease=df["disease"].map({"absent": "z", "present": "a"}))
    one, two = (ld.proset("disease ~ .", d) for d in (df, other))
    p, q = one.predict(df, "prob")["present"], two.predict(other, "prob")["a"]
    assert np.sqrt(np.mean((p - q) ** 2)) < 0.02


def test_a_feature_is_not_lost_to_a_long_first_step(monkeypatch):
    """Descent over v alone ends higher, where it has cut off features for good."""
    solve, ends, data = estimate.bounded, {}, ld.data("ionosphere")

    def at_once(function, theta, lower, **stop):  # no step of the first descent, which is over v^2
        return solve(function, theta, lower, **stop | ({"max_iter": 0} if lower[0] > 0 else {}))

    for way in (solve, at_once):
        monkeypatch.setattr(estimate, "bounded", way)
        drawn = {"lambda_v": 1e-3, "control": {"max_fraction": 0.5}}  # by each seed others
        fits = [ld.proset("quality ~ .", data, seed=seed, **drawn) for seed in range(4)]
        ends[way] = np.mean([(fit.log["objective"][0], fit.df) for fit in fits], axis=0)
    (lower, more), (higher, fewer) = ends.values()
    assert lower < 0.985 * higher
    assert more > fewer + 1


@pytest.mark.parametrize("name, response", [("heart", "disease"), ("autompg", "mpg")])
@pytest.mark.parametrize("lambda_v", [None, 0.03])
def test_converged_means_the_criterion_holds(name, response, lambda_v, monkeypatch):
    """No projected gradient above tol, or the last five steps flat: watched at the solver."""
    ends, values, solve = [], [], estimate.bounded

    def watched(function, theta, lower, **stop):
        values.append([stop["start"][0]])

        def told(t):
            value, gradient = function(t)
            values[-1].append(value)
            return value, gradient

        end = solve(told, theta, lower, **stop)
        gradient = function(end.theta[0])[1]
        slope = np.where((end.theta[0] > lower) | (gradient < 0), gradient, 0.0)
        if stop["tol"] == 1e-6:  # not the rough fits, by which a penalty or an error is known
            ends.append((end, np.abs(slope).max(), stop, values[-1]))
        return end

    monkeypatch.setattr(estimate, "bounded", watched)
    penalty = {} if lambda_v is None else {"lambda_v": lambda_v}
    fit = ld.proset(f"{response} ~ .", ld.data(name), **penalty)
    end, slope, stop, last = ends[-1]
    assert fit.converged and end.grad_norm[0] == pytest.approx(slope, rel=1e-6, abs=1e-12)
    assert slope <= stop["tol"] or flat_at_the_end(last, stop)
    text = " ".join(str(fit.summary()).split())
    assert "Converged: no projected gradient above 1e-06, or 5 steps in a row" in text


def flat_at_the_end(values, stop):
    """Whether the lowest values so far fell by ftol at most in the last five steps each."""
    low = np.minimum.accumulate(values)
    return low[-6] - low[-1] <= 5 * stop["ftol"] * abs(low[-1])


def test_few_evaluations_are_no_convergence():
    with pytest.warns(ld.ConvergenceWarning):
        fit = ld.proset("disease ~ .", heart(), control={"max_iter": 20})
    assert not fit.converged and "NOT converged" in str(fit.summary())


# Draws -----------------------------------------------------------------------------------------


def rows(seed=0, n=400):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 3, n), rng.gamma(1.0, 1.0, n)])
    X[n // 2 :] = X[: n - n // 2]
    return X - X.mean(axis=0)


def test_rows_are_drawn_by_what_they_hold():
    X = rows()
    order = np.random.default_rng(1).permutation(len(X))
    noise = 1 + 1e-12 * np.random.default_rng(2).normal(size=X.shape)
    chosen = []
    for Z in (X, X[order], X[:, ::-1], X * noise):
        i = row_keys.shuffled(row_keys.keys(Z, np.ones(len(Z))), [0, 1])
        assert np.array_equal(np.sort(i), np.arange(len(Z)))
        Z = Z[:, ::-1] if Z is not X and np.array_equal(Z, X[:, ::-1]) else Z
        chosen.append(np.round(Z[i], 6))
    for other in chosen[1:]:
        np.testing.assert_allclose(other, chosen[0], atol=1e-5)


def test_draws_are_even():
    """Equal rows are drawn apart, and each seed draws others."""
    content = row_keys.keys(rows(), np.ones(400))
    assert len(np.unique(np.round(content, 9))) == 200
    first = np.array([row_keys.shuffled(content, [s, 1])[:200] for s in range(200)])
    share = np.bincount(first.ravel(), minlength=400) / 200
    assert abs(share.mean() - 0.5) < 1e-12 and share.min() > 0.3 and share.max() < 0.7
    both = np.mean([np.isin(np.arange(200), f) & np.isin(np.arange(200, 400), f) for f in first])
    assert both == pytest.approx(0.25, abs=0.02)


def test_frames_of_no_rows_draw_nothing():
    assert row_keys.shuffled(np.empty(0), [0]).size == 0


def test_pandas_order_does_not_matter_for_prototypes():
    df = heart()
    one, two = ld.proset("disease ~ .", df), ld.proset("disease ~ .", shuffled(df))
    assert pd.Index(one.labels).symmetric_difference(two.labels).size <= 0.2 * len(one.labels)


# Candidates that are left out for a while --------------------------------------------------------


@pytest.mark.parametrize("D", [1, 12])
@pytest.mark.parametrize("rounds", [(), (4, 4), (6,)])
def test_what_is_left_out_comes_back(rounds, D, monkeypatch):
    """Whatever is left out on the way, the end is that of SciPy's least squares with theta >= 0."""
    rng = np.random.default_rng(4)
    A = rng.normal(size=(30, 42))
    y = A[:, 1:-1] @ np.where(rng.random(40) < 0.3, rng.random(40), 0.0) + rng.normal(size=30)
    asked = []

    def function(t, kept):
        kept = np.ones(42, bool) if kept is None else kept
        asked.append(kept)
        assert not t[~kept].any()
        r = A @ t - y
        gradient = A.T @ r + 1e-3 * t
        gradient *= kept  # what is left out has no part of the loss's gradient
        return 0.5 * r @ r + 5e-4 * t @ t, gradient

    monkeypatch.setattr(estimate, "ROUNDS", rounds)
    stop = {"tol": 1e-9, "ftol": 0.0, "patience": 5, "precision": 0.0, "spacing": 0.0}
    end = estimate._descend(function, np.ones(42), np.zeros(42), D, 3000, stop)
    ridge = np.vstack([A, np.sqrt(1e-3) * np.eye(42)])
    expected, _ = nnls(ridge, np.append(y, np.zeros(42)))
    assert end.converged[0]
    np.testing.assert_allclose(end.theta[0], expected, atol=1e-6)
    left_out = ~np.array(asked)
    assert left_out[:, D:].any() == bool(rounds)  # candidates
    assert left_out[:, :D].any() == (len(rounds) > 1)  # features
    assert not left_out[:, -1].any()


def test_rounding_errors_do_not_choose_the_minimum():
    """This loss has several minima; a long search for one of them forgets where it began."""
    path = Path(__file__).resolve().parents[4] / "shared/data/abalone.csv"
    if not path.is_file():
        pytest.skip(f"lodim does not ship these data, and there is no {path}")
    data, rng = pd.read_csv(path), np.random.default_rng(0)
    numbers = data.select_dtypes("float").columns
    fits = []
    for size in (0.0, 1e-12, 1e-12):
        noise = 1.0 + size * rng.normal(size=(len(data), len(numbers)))
        moved = data.assign(**(data[numbers] * noise))
        fits.append(ld.proset(f"{data.columns[-1]} ~ .", moved, threads=1))
    first, *others = (fit.predict(data) for fit in fits)
    for other in others:
        np.testing.assert_allclose(other, first, atol=1e-6 * first.std())
