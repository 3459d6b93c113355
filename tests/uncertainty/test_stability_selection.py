"""Stability selection, against fits to halves made one by one, and its bounds beside others."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

import lodim as ld
from lodim.fitting.fit_model import model_of, prepare
from lodim.selection.folds import assign_draws
from lodim.uncertainty.stability_selection import largest_tail, r_concave, unimodal, worst_case

N = 80
CHEAP = {
    ld.costnet: {"lambda_": 0.1},
    ld.proset: {"lambda_v": 0.02},
    ld.ripr: {"max_dim": 2},
    ld.gbmap: {"m": 1, "lambda_": 0.3, "l1_ratio": 1.0},
}


def frame(n=N, p=6):
    rng = np.random.default_rng(3)
    df = pd.DataFrame(rng.normal(size=(n, p)), columns=list("abcdef"[:p]))
    df["g"] = rng.choice(["r", "s", "t"], n)
    df["y"] = 2 * df["a"] - df["b"] + (df["g"] == "s") + rng.normal(size=n)
    df["k"] = np.where(df["y"] > 0, "yes", "no")
    df["u"] = np.arange(n) // 4
    return df


def test_what_to_do_where_nothing_is_selected_is_said():
    found = ld.stability(ld.costnet, "y ~ a + b", frame(), n=2, lambda_=50.0, threads=1)
    assert found.stable == [] and found.n_selected == 0.0
    for text in (str(found), str(found.summary())):
        text = " ".join(text.split())
        assert "No fit to a half selects any of 2 terms" in text and "smaller penalty" in text
    df = frame().assign(y=lambda d: np.random.default_rng(1).normal(size=len(d)))
    found = ld.stability(ld.costnet, "y ~ a + b", df, n=10, lambda_=0.1, threads=1)
    assert found.stable == [] and found.n_selected > 0.0
    assert "No term is stable: the largest share is" in " ".join(str(found).split())


@pytest.mark.parametrize("model", CHEAP, ids=lambda m: m.__name__)
def test_shares_are_of_fits_to_halves(model):
    df, n = frame(), 3
    formula, how = "k ~ a + b + c + d + g", CHEAP[model] | {"threads": 1}
    found = ld.stability(model, formula, df, n=n, **how)
    how |= {"k": found.fit.settings.k} if model is ld.ripr else {}  # which is held
    problem = prepare(model_of(model), formula, df, how | {"seed": 0})
    halves = assign_draws(problem.batch, 2, problem.design.levels, 0, n)
    counts = dict.fromkeys(problem.design.term_names, 0)
    for half in (half == k for half in halves for k in (0, 1)):
        assert abs(half.sum() - N / 2) <= 1
        fit = model(formula, df[half], **how, seed=0)
        terms = {fit.design.term_names[fit.design.term_of[j]] for j in fit._selected_features()}
        for term in terms:
            counts[term] += 1
    shares = found.tidy().set_index("term")["share"]
    assert (shares * 2 * n).round(9).to_dict() == counts
    assert shares.is_monotonic_decreasing and 0 < found.n_selected < 5
    assert found.stable == shares.index[shares >= 0.9].tolist()


def test_a_bound_above_the_number_of_terms_is_not_printed():
    found = ld.stability(ld.costnet, "y ~ a + b", frame(), n=4, lambda_=1e-3)
    assert found.bounds["worst case"] >= 2.0 and found.n_selected == 2.0
    text = " ".join(str(found).split())
    assert "So many terms say nothing" in text and "at most" not in text


def test_what_models_say_that_they_selected():
    df = frame()
    fits = {model: model("y ~ a + b + c + d + g", df, **how) for model, how in CHEAP.items()}
    names = {m: {fit.design.names[j] for j in fit._selected_features()} for m, fit in fits.items()}
    frames = {m: fit.tidy() for m, fit in fits.items()}
    assert names[ld.costnet] == set(frames[ld.costnet].query("estimate != 0")["term"]) - {
        "(Intercept)"
    }
    assert names[ld.proset] == set(frames[ld.proset].query("estimate > 0")["term"])
    weighed = fits[ld.gbmap].estimates.theta[:, 2:].any(axis=0)
    assert names[ld.gbmap] == {
        n for n, on in zip(fits[ld.gbmap].design.names, weighed, strict=True) if on
    }
    views = {name for view in fits[ld.ripr].view_names for name in view.split(", ")}
    assert {n.split("[")[0] for n in names[ld.ripr]} == {v.split("[")[0] for v in views}


def test_views_are_counted():
    found = ld.stability(ld.ripr, "species ~ .", ld.data("iris"), n=2, threads=1)
    assert found.views["share"].max() >= 0.5 and "petal_length, petal_width" in str(found.summary())
    assert ld.stability(ld.proset, "k ~ a", frame(), n=1, lambda_v=0.02).views is None


def test_order_of_rows_and_columns():
    df = frame()
    how = {"n": 3, "lambda_": 0.2}
    found = ld.stability(ld.costnet, "y ~ a + b + c + d + g", df, **how)
    mixed = df.sample(frac=1.0, random_state=0)[df.columns[::-1]]
    other = ld.stability(ld.costnet, "y ~ g + d + c + b + a", mixed, **how)
    by_term = [each.tidy().set_index("term")["share"].sort_index() for each in (found, other)]
    pd.testing.assert_series_equal(*by_term)


def test_groups_are_in_one_half():
    df = frame()
    problem = prepare(model_of(ld.costnet), "y ~ a + b", df, {"lambda_": 0.1}, groups="u")
    for half in assign_draws(problem.batch, 2, None, 0, 2):
        assert (pd.Series(half).groupby(df["u"].to_numpy()).nunique() == 1).all()
    assert ld.stability(ld.costnet, "y ~ a + b", df, groups="u", n=2, lambda_=0.1).stable
    with pytest.raises(ld.DataError, match="at least two rows"):
        ld.stability(ld.costnet, "y ~ a", df.assign(u=1), groups="u", lambda_=0.1)


def test_noise_is_seldom_stable():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(100, 40)), columns=[f"x{j}" for j in range(40)])
    df["y"] = df["x0"] + df["x1"] + rng.normal(size=100)
    found = ld.stability(ld.costnet, "y ~ .", df, n=10, lambda_=0.25)
    assert {"x0", "x1"} <= set(found.stable) and len(found.stable) - 2 <= found.bounds["worst case"]


# Bounds -------------------------------------------------------------------------------------------


def test_worst_case_by_hand():
    assert worst_case(50, 1000, 0.9) == pytest.approx(50**2 / (1000 * 0.8))


@pytest.mark.parametrize(
    "B, cutoff, theta", [(50, 0.6, 0.05), (20, 0.7, 0.2), (50, 0.9, 0.3), (25, 1.0, 0.1)]
)
def test_no_unimodal_distribution_exceeds_its_bound(B, cutoff, theta):
    """Largest tail of unimodal distributions on 0..B of a mean, by linear programming."""
    t, worst = int(np.ceil(round((2 * cutoff - 1) * B, 9))), 0.0
    k = np.arange(B + 1)
    for mode in range(B + 1):
        rises = np.zeros((B, B + 1))
        rises[k[:-1], k[:-1]], rises[k[:-1], k[1:]] = 1.0, -1.0  # p_k - p_(k + 1)
        sign = np.where(k[:-1] < mode, 1.0, -1.0)[:, None]
        found = linprog(
            -(k >= t).astype(float), sign * rises, np.zeros(B),
            np.array([np.ones(B + 1), k / B]), [1.0, theta**2],
        )  # fmt: skip
        worst = max(worst, -found.fun if found.success else 0.0)
    bound = unimodal(theta * 1000, 1000, cutoff, B) / 1000
    assert worst <= bound * (1 + 1e-9)
    assert bound < worst_case(theta, 1.0, cutoff)


@pytest.mark.parametrize(
    "r, B, t, mean", [(0.5, 20, 12, 0.04), (0.25, 40, 36, 0.2), (0.5, 50, 40, 0.01)]
)
def test_no_concave_distribution_exceeds_its_bound(r, B, t, mean):
    """Of probabilities f such that f^(-r) is convex, at the same mean; and the bound is near."""
    rng, k, largest = np.random.default_rng(0), np.arange(B + 1), 0.0
    for _ in range(3000):
        slopes = np.sort(
            rng.choice([0.0, 0.1, 1.0, 10.0]) * rng.normal(size=B) ** rng.integers(1, 4)
        )
        root = np.append(0.0, np.cumsum(slopes)) - np.cumsum(slopes).min(initial=0.0)
        end = rng.integers(1, B + 2)
        f = np.where(k < end, (root + np.exp(3 * rng.normal())) ** (-1.0 / r), 0.0)
        f /= f.sum()
        if f @ k / B <= mean:
            largest = max(largest, f[t:].sum())
    for a in np.geomspace(1e-3, 1e3, 4000):  # the family that the theorem speaks of
        f = (a + k) ** (-1.0 / r)
        f /= f.sum()
        if f @ k / B <= mean:
            largest = max(largest, f[t:].sum())
    bound = largest_tail(mean, t, B, r)
    assert 0.8 * bound <= largest <= bound


def test_bounds_are_ordered_and_end_where_theorems_do():
    for cutoff in (0.6, 0.75, 0.9, 1.0):
        assert (
            r_concave(50, 1000, cutoff, 50) < unimodal(50, 1000, cutoff, 50)
            < worst_case(50, 1000, cutoff)
        )  # fmt: skip
    assert np.isnan(unimodal(700, 1000, 0.9, 50)) and np.isnan(unimodal(50, 1000, 0.5, 50))
    assert np.isnan(r_concave(750, 1000, 0.9, 50)) and r_concave(0, 1000, 0.9, 50) == 0.0


# What is refused, and drawn -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "model, how, words",
    [
        (ld.glm, {}, "not glm, which uses all"),
        (ld.gbmap, {"m": 1, "lambda_": 1.0}, "gbmap with l1_ratio above 0"),
        (ld.melm, {"gamma": 1.0}, "not melm, which uses all"),
        (ld.costnet, {"cutoff": 0.5}, "cutoff must be above 0.5"),
        (ld.costnet, {"cutoff": "0.9"}, "cutoff must be above 0.5"),
        (ld.costnet, {"n": 0}, "n must be an integer from 1"),
        (ld.costnet, {"seed": -1}, "seed must be"),
    ],
)
def test_what_is_refused(model, how, words):
    with pytest.raises(ld.ArgumentError, match=words):
        ld.stability(model, "k ~ a + b", frame(), **how)


def test_print_and_plot(axes):
    found = ld.stability(ld.costnet, "y ~ a + b + g", frame(), n=2, lambda_=0.2)
    text = " ".join(str(found).split())
    assert "2 complementary pairs of halves" in text and "of 3 terms on average" in text
    ax = found.plot(top=2)
    assert [t.get_text() for t in ax.get_yticklabels()] == found.tidy()["term"][:2].tolist()
    with pytest.raises(ld.ArgumentError, match="top"):
        found.plot(top=0)
