"""gbmap on many columns: its settings are chosen by rough fits, and it is fitted exactly."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.fitting.fit_model import model_of, prepare
from lodim.models.gbmap.hinges import place_hinges
from lodim.models.gbmap.newton import rounded
from lodim.models.gbmap.objective import penalize, stage_objective
from lodim.models.gbmap.settings import Settings
from lodim.models.gbmap.starts import krylov, start_in_subspace
from lodim.models.gbmap.training import BoostState
from lodim.solve.lbfgs import lbfgs

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 70))
    df = pd.DataFrame(X, columns=[f"x{k}" for k in range(70)])
    return df.assign(y=3 * X[:, 0] + 2 * np.abs(X[:, 1]) + 0.5 * rng.normal(size=120))


def test_rough_fits_choose_and_an_exact_one_answers(wide):
    control = {"max_stages": 6, "reference_rows": 0}
    fit = ld.gbmap("y ~ .", wide, lambda_=3.0, control=control, refit="none")
    assert (fit.settings.tol, fit.settings.ftol, fit.settings.n_starts) == (None, None, 2)
    again = ld.gbmap("y ~ .", wide, lambda_=3.0, m=fit.settings.m, control=control)
    np.testing.assert_array_equal(again.predict(wide), fit.predict(wide))
    assert fit.log["grad_norm"].max() < 1e-5


def test_what_is_given_holds_in_rough_fits_too():
    one = Settings(None, None, 10.0, 0.0, "softplus", 2, 0, None)
    for few in one.for_comparison(500, 63), one.for_comparison(40, 5000):
        assert few == replace(one, n_starts=1)
    lines = replace(one, activation="identity")
    assert lines.for_comparison(500, 64) is lines
    rough = one.for_comparison(100, 64)
    assert (rough.tol, rough.ftol, rough.n_starts) == (1e-5, 1e-6, 1)
    given = Settings(None, None, 10.0, 0.0, "softplus", 2, 0, None, tol=1e-3, ftol=1e-9)
    assert (given.for_comparison(100, 64).tol, given.for_comparison(100, 64).ftol) == (1e-3, 1e-9)


@pytest.fixture(scope="module")
def hundred():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 100))
    f = 6.0 * (np.abs(X[:, 0]) - np.abs(X[:, 1])) + 4.0 * X[:, 2:6] @ [1.0, -1.0, 0.7, 0.5]
    df = pd.DataFrame(X, columns=[f"x{k}" for k in range(100)])
    two = np.where(rng.random(900) < 1 / (1 + np.exp(-f)), "b", "a")
    return df.assign(y=f + rng.normal(size=900), two=two)


EXACT = 0.1, {}
ROUGH = 1.0, {"tol": 1e-5, "ftol": 1e-6}  # as of the folds that choose settings


@pytest.mark.parametrize("lambda_, control", [EXACT, ROUGH])
@pytest.mark.parametrize("formula", ["y ~ . - two", "two ~ . - y"])
def test_boosts_of_noisy_features_are_the_same(hundred, formula, lambda_, control):
    """L-BFGS ended anywhere within half of the digits, from where later boosts went elsewhere."""
    rng = np.random.default_rng(0)
    noisy = hundred.copy()
    noisy.iloc[:, :100] *= 1 + 1e-12 * rng.normal(size=(900, 100))
    turned = hundred.iloc[rng.permutation(900)][list(rng.permutation(list(hundred)))]
    how = {"m": 6, "lambda_": lambda_, "n_starts": 1, "refit": "none"}
    control = {"reference_rows": 0} | control
    one, *others = (
        ld.gbmap(formula, df, control=control, **how).predict(hundred, "link")
        for df in (hundred, noisy, turned)
    )
    for other in others:
        np.testing.assert_allclose(other, one, atol=1e-8)


def test_starts_are_rounded_in_units_of_the_columns():
    rng = np.random.default_rng(0)
    theta, unit = rng.normal(size=(3, 6)), np.r_[1.0, 1.0, 4.0 ** np.array([-20, 0, 5, 20])]
    theta[2, 2:] = 0.0
    few = rounded(theta * unit, unit)
    assert 0.0 < np.abs(few / unit - theta).max() < 2.0**-12 * np.abs(theta).max()
    np.testing.assert_array_equal(few[2], (theta * unit)[2])  # it has no weights
    np.testing.assert_array_equal(rounded(few * (1 + 1e-12), unit)[:2], few[:2])
    np.testing.assert_array_equal(rounded(-few, unit), -few)
    tiny = rounded(np.r_[1.0, 0.5, 1e-320, 0.0][None], np.ones(4))
    np.testing.assert_array_equal(tiny, [[1.0, 0.5, 0.0, 0.0]])


def test_a_choice_at_the_edge_goes_further_and_says_so():
    x = np.linspace(-2, 2, 60)
    control = {"max_stages": 4, "reference_rows": 0}
    for y, n_tried in ((np.logaddexp(0.0, 10 * x) / 10, 13), (np.abs(x), 9)):
        df = pd.DataFrame({"x": x, "y": y})
        fit = ld.gbmap("y ~ .", df, control=control, n_starts=1, refit="none")
        steps = np.diff(np.log(fit.selection["lambda_"]))
        np.testing.assert_allclose(steps, steps[0], rtol=1e-6)
        # A hinge without noise is best without a penalty; two of them want many boosts.
        assert len(fit.selection) == n_tried
        words = " ".join(str(fit.summary()).split())
        at_end = fit.selection["weight"].idxmax() == n_tried - 1
        assert ("smallest lambda_ tried" in words) == at_end
        many = "m is near 4, the largest number of boosts that was tried: more may be better"
        assert (many in words) == (n_tried == 9)


def test_more_features_than_rows_gets_a_hint():
    df = pd.DataFrame(np.random.default_rng(0).normal(size=(8, 10))).rename(columns=str)
    few = ld.gbmap("Q('0') ~ .", df, m=1, lambda_=1.0)
    assert "l1_ratio=0.5" in " ".join(str(few.summary()).split())
    assert "l1_ratio=" not in str(ld.gbmap("Q('0') ~ Q('1')", df, m=1, lambda_=1.0).summary())


# Many rows and columns -----------------------------------------------------------------------

N, P = 4096, 64


@pytest.fixture(scope="module")
def tall():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, P))
    f = 1.5 * (np.cos(X[:, 0]) - np.cos(X[:, 1])) + 0.5 * X[:, 2]
    df = pd.DataFrame(X, columns=[f"x{k}" for k in range(P)])
    classes = np.array(["a", "b", "c"])[np.digitize(f + rng.normal(size=N), [-0.5, 0.5])]
    return df.assign(
        y=f + rng.normal(size=N),
        two=np.where(rng.random(N) < 1 / (1 + np.exp(-2 * f)), "yes", "no"),
        three=classes,
    )


@pytest.fixture
def many(monkeypatch):
    """Few rows taken as many."""
    monkeypatch.setattr("lodim.models.gbmap.training.SAMPLE", 512)


def grown(response, df, **arguments):
    features = " + ".join(f"x{k}" for k in range(P))
    control = {"reference_rows": 0} | arguments.pop("control", {})
    defaults = {"m": 2, "lambda_": 0.01, "beta": 1.0}
    return ld.gbmap(f"{response} ~ {features}", df, control=control, **defaults | arguments)


@pytest.mark.parametrize("response", ["y", "two"])
def test_the_end_of_many_rows_is_near_a_tight_one(many, tall, response):
    fit = grown(response, tall, m=1)
    tight = grown(response, tall, m=1, control={"tol": 1e-9, "ftol": 1e-12})
    assert fit.converged and "resolution" not in tight.log
    gap = fit.log["objective"][0] - tight.log["objective"][0]
    assert -1e-12 <= gap <= 2.0 * fit.log["resolution"][0]
    assert fit.log["n_eval"][0] < tight.log["n_eval"][0]


def test_the_resolution_is_a_quarter_of_a_standard_error(many, tall):
    fit = grown("two", tall, m=1)
    score = fit.predict(tall, "link").to_numpy()
    loss = np.logaddexp(0.0, score) - (tall["two"] == "yes") * score
    quarter = 0.25 * loss.std() / np.sqrt(N)  # of the sample's spread, before the last steps
    assert fit.log["resolution"][0] == pytest.approx(quarter, rel=0.15)
    words = " ".join(str(fit.summary()).split())
    assert "ten further steps would lower the objective by at most" in words
    assert "ten further steps" not in str(ld.gbmap("y ~ x0", tall[:50], m=1, lambda_=1.0).summary())


def test_a_response_without_a_linear_part_is_not_left_at_the_saddle(many, tall):
    """Where w = 0 the loss has no slope, and curves both ways: the paper's cosines are so."""
    odd = pd.concat([tall, -tall[[f"x{k}" for k in range(P)]].assign(y=tall["y"])])
    odd["y"] = np.cos(odd["x0"]) - np.cos(odd["x1"])
    fit = grown("y", odd, m=4, lambda_=1e-4)
    assert fit.dev_ratio > 0.5


@pytest.mark.parametrize("response", ["y", "three"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_many_rows_on_one_and_two_threads(many, tall, response, dtype):
    one, two = (grown(response, tall, dtype=dtype, threads=t) for t in (1, 2))
    np.testing.assert_array_equal(one.estimates.theta, two.estimates.theta)
    assert one.converged and one.dev_ratio > 0.1


def test_the_order_of_many_rows_and_columns_makes_no_difference(many, tall):
    rng = np.random.default_rng(0)
    features = rng.permutation([f"x{k}" for k in range(P)])
    moved = tall.iloc[rng.permutation(N)][[*features, "two"]]
    one = grown("two", tall)
    two = ld.gbmap("two ~ .", moved, m=2, lambda_=0.01, beta=1.0, control={"reference_rows": 0})
    np.testing.assert_allclose(one.predict(tall, "link"), two.predict(tall, "link"), atol=1e-5)


def test_rows_of_weight_zero_are_not_asked(many, tall):
    weight = np.r_[np.ones(N), np.zeros(300)]
    offset = np.r_[0.1 * tall["x3"], np.full(300, 5.0)]
    more = pd.concat([tall, tall[:300].assign(y=100.0)], ignore_index=True)
    more = more.assign(weight=weight, offset=offset)
    one = grown("y", more[:N], offset="offset", standardize=False)
    two = grown("y", more, weights="weight", offset="offset", standardize=False)
    np.testing.assert_allclose(
        one.predict(more[:N], "link"), two.predict(more[:N], "link"), atol=1e-5
    )


def test_a_path_follows_its_neighbours(many, tall):
    features = " + ".join(f"x{k}" for k in range(P))
    path = ld.path(ld.gbmap, f"y ~ {features}", tall, lambdas=[0.1, 0.01], m=1, beta=1.0)
    alone = grown("y", tall, m=1)
    deviance = np.mean((tall["y"] - path.predict(tall, 0.01)) ** 2)
    assert deviance == pytest.approx(alone.log["deviance"][0], rel=0.01)


def test_directions_of_lanczos():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(40, 40))
    H = A + A.T + np.diag(np.r_[25.0, -25.0, np.zeros(38)])
    V, T = krylov(lambda v: H @ v, rng.normal(size=40))
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-12)
    np.testing.assert_allclose(T, V.T @ H @ V, atol=1e-10)
    np.testing.assert_allclose(
        np.linalg.eigvalsh(T)[[0, -1]], np.linalg.eigvalsh(H)[[0, -1]], rtol=0.02
    )
    few = krylov(lambda v: np.diag([1.0, 2.0, 0.0]) @ v, np.array([1.0, 1.0, 0.0]))[0]
    assert few.shape == (3, 2)


def test_a_boost_may_begin_with_what_the_other_sign_came_to(many, tall):
    arguments = {"m": 2, "beta": 1.0, "lambda_": 0.01}
    problem = prepare(model_of(ld.gbmap), "two ~ . - y - three", tall, arguments)
    state = BoostState.from_batch(problem.batch, problem.family, problem.settings)
    penalty = penalize(state.settings, state.X.shape[1], state.p)
    objective = stage_objective(state, state.rows(0), penalty)
    none = np.zeros((0, 2 + P)), np.zeros(0)
    lead = start_in_subspace(objective, penalty, state, 0, *none, None)
    stop = {"max_iter": 100, "tol": 1e-6, "ftol": 1e-9}
    end = lbfgs(objective(lead.sign), lead.theta, **stop)
    for q, sign in enumerate(lead.sign):
        loser = end.theta[[q]], lead.sign[[q]]
        again = start_in_subspace(objective, penalty, state, 0, *none, loser)
        assert again.value[again.sign == sign] <= end.value[q] + 1e-9 < lead.value[q] - 1e-4
        assert again.value[again.sign != sign] == pytest.approx(lead.value[1 - q], abs=1e-3)


def test_starts_in_a_subspace_compile_no_second_kernel(many, tall):
    grown("y", tall, m=1)
    signatures = place_hinges.nopython_signatures
    assert {signature.args[0].layout for signature in signatures} == {"C"}
