"""Laws of the frontier, whatever found its models."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld


def binary_frame(n=4000):
    rng = np.random.default_rng(0)
    df = pd.DataFrame({name: rng.integers(0, 2, n) for name in "abc"})
    p = 1.0 / (1.0 + np.exp(0.5 - 0.5 * df["a"] - 0.3 * df["b"]))
    return df.assign(y=(rng.random(n) < p).astype(int))


def test_counts_as_weights_make_the_same_frontier():
    """Rows told once with their number are as good as rows, by a criterion without folds."""
    df = binary_frame()
    counted = df.groupby(list("abcy")).size().rename("w").reset_index()
    rows, counts = (
        ld.costnet("y ~ a + b + c", data, budget=9, weights=w, control={"criterion": "hq"})
        for data, w in ((df, None), (counted, "w"))
    )
    assert len(counted) <= 16 and len(rows.prices()) == 3
    pd.testing.assert_frame_equal(rows.prices(), counts.prices(), rtol=1e-6)
    np.testing.assert_allclose(counts.coef(), rows.coef(), rtol=1e-5)


@pytest.mark.long
def test_weights_below_one_are_ratios_alone():
    df = binary_frame(400).assign(w=1e-3)
    plain, light = (ld.costnet("y ~ a + b + c", df, budget=9, weights=w) for w in (None, "w"))
    pd.testing.assert_frame_equal(plain.prices(), light.prices())


@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_no_refit_has_near_as_many_coefficients_as_rows(n):
    df = pd.DataFrame(np.random.default_rng(n).normal(size=(n, 9)), columns=list("abcdefghy"))
    df["y"] += df["a"]
    assert (
        ld.costnet("y ~ .", df, budget=99, relax=1.0).prices()["df"] <= max(0, min(n // 2, n - 2))
    ).all()


@pytest.mark.long
def test_a_name_of_the_rows_explains_nothing():
    rng = np.random.default_rng(5)
    df = pd.DataFrame({"x": rng.normal(size=60), "id": [f"i{j}" for j in range(60)]})
    df["y"] = 2 * df["x"] + 0.5 * rng.normal(size=60)
    with pytest.warns(ld.DataWarning, match="'id' seems to be row names"):
        assert set(ld.costnet("y ~ .", df, budget=1.0).inputs) == {"x"}
    assert set(ld.costnet("y ~ x + C(id)", df, budget=1.0).inputs) == {"x"}
    spline = ld.costnet("y ~ x + bs(t, df=29)", df.assign(t=rng.normal(size=60))[:30], budget=2.0)
    assert spline.prices()["df"].max() <= 15


@pytest.mark.long
@pytest.mark.parametrize("shift", [2.0**27, 2.0**37])
@pytest.mark.parametrize("arguments", [{"lambda_": 0.1}, {"budget": 3.0}, {}], ids=str)
def test_how_far_a_response_is_from_zero_does_not_matter(arguments, shift):
    df = source_frame()
    near = df.assign(y=np.round(df["y"] * 4096.0) / 4096.0)  # the shift costs it nothing
    far = near.assign(y=near["y"] + shift, o=shift)
    formula = "y ~ invasive + hr + cuff"
    one, other = (ld.costnet(formula, data, **arguments) for data in (near, far))
    beside = ld.costnet(formula, far, offset="o", **arguments)
    for fit in (other, beside):
        assert fit.converged and fit.dev_ratio == pytest.approx(one.dev_ratio, abs=1e-9)
        np.testing.assert_allclose(fit.predict(far) - shift, one.predict(near), atol=1e-4)


def source_frame():
    rng = np.random.default_rng(5)
    z = rng.normal(size=(200, 3))
    df = pd.DataFrame({"invasive": z[:, 0] + 0.2 * rng.normal(size=200), "hr": z[:, 1]})
    df["cuff"] = z[:, 0] + 0.5 * rng.normal(size=200)
    df["gap"] = df["invasive"] - df["cuff"]
    df["y"] = 3 * df["gap"] + df["hr"] + 0.5 * rng.normal(size=200)
    return df


def test_two_sources_of_one_series_are_refused_by_name():
    words = "'gap' must not need two sources that are alternatives"
    for formula, needs in (("y ~ .", {"gap": ["invasive", "cuff"], "hr": ["bp"]}),):
        with pytest.raises(ld.ArgumentError, match=words):
            ld.costnet(formula, source_frame(), depends_on=needs,
                       alternatives={"bp": ["invasive", "cuff"]})  # fmt: skip
    with pytest.raises(ld.ArgumentError, match="'invasive:cuff' must not need two sources"):
        ld.costnet("y ~ invasive * cuff + hr", source_frame(), depends_on={"hr": ["bp"]},
                   alternatives={"bp": ["invasive", "cuff"]})  # fmt: skip


@pytest.mark.long
def test_a_source_that_is_needed_by_name_serves_the_series_as_well():
    """Of what needs 'bp' and the invasive sensor there is one copy, with that sensor."""
    fit = ld.costnet(
        "y ~ .", source_frame(), costs={"invasive": 4, "cuff": 1, "hr": 1, "gap": 0.1},
        depends_on={"gap": ["invasive", "bp"]}, alternatives={"bp": ["invasive", "cuff"]},
        budget=99,
    )  # fmt: skip
    with_gap = [c for c in fit.prices()["cost"] if "gap" in fit.at(c).inputs]
    assert with_gap and min(with_gap) == pytest.approx(4.1)
    for cost in with_gap:
        assert "cuff" not in fit.at(cost).bought().index


@pytest.mark.parametrize("relax", [0.0, 0.5, 1.0])
def test_the_criterion_falls_as_the_price_grows(relax):
    df = ld.monitoring(n=300, p=40, seed=1)
    truth = df.attrs
    fit = ld.costnet("y ~ .", df, costs=truth["costs"], depends_on=truth["depends_on"],
                     relax=relax, budget=20.0, control={"criterion": "hq"})  # fmt: skip
    frontier = fit.estimates.frontier
    assert len(frontier) > 5
    assert (np.diff(frontier.cost) > 0).all() and (np.diff(frontier.criterion) < 0).all()
    assert (np.diff(frontier.deviance) < 0).all()


def test_blends_are_with_the_least_penalty_of_a_support():
    """Of all penalized models with the columns of a rung, the one blended explains most."""
    df = ld.monitoring(n=300, p=40, seed=1)
    truth = df.attrs
    fit = ld.costnet("y ~ .", df, costs=truth["costs"], depends_on=truth["depends_on"],
                     relax=0.0, rules="group", budget=20.0,
                     control={"criterion": "hq"})  # fmt: skip
    trace, frontier = fit.estimates.path, fit.estimates.frontier
    on = (trace.coef != 0).any(axis=2)
    checked = 0
    for k in range(1, len(frontier)):
        same = (on == frontier.coef[k].any(axis=1)).all(axis=1)
        if same.any():
            assert frontier.deviance[k] == pytest.approx(trace.deviance[same].min(), rel=1e-9)
            checked += 1
    assert checked > 3
