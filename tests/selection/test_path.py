"""paths: lambda_max, warm starts, and what a Path shows."""

import warnings

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.fitting.model import Model

TIGHT = {"tol": 1e-9, "ftol": 1e-14, "max_iter": 3000}


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(120, 4)) * [1, 10, 0.1, 1], columns=list("abde"))
    f = df["a"] + 0.2 * df["b"] + np.abs(df["e"])
    df["y"] = 4 * f + rng.normal(size=120)
    df["c"] = f + rng.normal(size=120) > 1
    df["k"] = np.array(list("uvw"))[(f > 0).astype(int) + (f > 1.5)]
    df["w"], df["o"] = rng.integers(1, 5, 120), rng.normal(size=120)
    return df


FORMULA = "a + b + d + e"


@pytest.fixture(scope="module")
def path(df):
    return ld.path(ld.gbmap, f"y ~ {FORMULA}", df, m=2, l1_ratio=0.8, n_lambda=12,
                   lambda_min_ratio=1e-4)  # fmt: skip


def weights_at(df, response, lambda_, **arguments):
    """Number of weights of the first boost, fitted tightly."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        one = ld.gbmap(f"{response} ~ {FORMULA}", df, m=1, lambda_=lambda_, control=TIGHT,
                       **arguments)  # fmt: skip
    return one.df


EXTRAS = [{}, {"weights": "w"}, {"offset": "o"}, {"weights": "w", "offset": "o"}]


@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("response", ["y", "c"])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.3])
def test_lambda_max_of_a_linear_model_is_sharp(df, response, extra, l1_ratio):
    shared = {"l1_ratio": l1_ratio, "activation": "identity", **extra}
    top = ld.path(ld.gbmap, f"{response} ~ {FORMULA}", df, m=1, n_lambda=2, **shared).lambda_max
    assert weights_at(df, response, 1.001 * top, **shared) == 0
    assert weights_at(df, response, 0.98 * top, **shared) == 1


@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_lambda_max_of_the_softplus(df, response):
    """Every projection is zero from lambda_max up, as the docstring promises."""
    top = ld.path(ld.gbmap, f"{response} ~ {FORMULA}", df, m=1, n_lambda=2, l1_ratio=1.0).lambda_max
    assert weights_at(df, response, 1.001 * top, l1_ratio=1.0) == 0
    assert weights_at(df, response, 0.1 * top, l1_ratio=1.0) > 0


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_lambda_max_where_the_effect_is_even(l1_ratio):
    """|x| has no slope at w = 0; a path still begins at (nearly) the null model."""
    df = ld.synth_cos_r(1500, 4, seed=0)
    one = ld.path(ld.gbmap, "y ~ .", df, m=2, n_lambda=2, l1_ratio=l1_ratio)
    assert one.glance()["dev_ratio"][0] < 0.1


def test_path_of_a_ridge_begins_near_the_null_model(df):
    for response in "yck":
        one = ld.path(ld.gbmap, f"{response} ~ {FORMULA}", df, m=1, n_lambda=3)
        share = one.glance()["dev_ratio"]
        assert -1e-6 < share[0] < 0.1 < share.iloc[-1]


def test_lambdas(path):
    lambdas = path.lambdas
    assert len(lambdas) == 12 == len(path.fits) and (np.diff(lambdas) < 0).all()
    assert lambdas[0] == path.lambda_max
    np.testing.assert_allclose(lambdas / lambdas[0], np.geomspace(1, 1e-4, 12))
    glance = path.glance()
    assert list(glance) == ["df", "dev_ratio", "lambda_"]
    assert glance["dev_ratio"].iloc[-1] > glance["dev_ratio"].iloc[0]


@pytest.mark.parametrize("l1_ratio", [0.0, 0.8])
@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_warm_starts_lose_nothing(df, response, l1_ratio):
    shared = {"m": 1, "l1_ratio": l1_ratio, "n_starts": 3}
    one = ld.path(ld.gbmap, f"{response} ~ {FORMULA}", df, n_lambda=8, lambda_min_ratio=1e-4,
                  **shared)  # fmt: skip
    for fit in one.fits:
        cold = ld.gbmap(f"{response} ~ {FORMULA}", df, lambda_=fit.settings.lambda_, **shared)
        # Given the earlier scores a class's objective is its own; compare the first learner.
        assert fit.log["objective"][0] <= 1.01 * cold.log["objective"][0]


def test_each_fit_meets_its_penalty(df, path):
    for fit in path.fits[::4]:
        own = ld.gbmap(f"y ~ {FORMULA}", df, m=2, l1_ratio=0.8, lambda_=fit.settings.lambda_)
        assert fit.n == own.n and fit.converged
        assert fit.dev_ratio == pytest.approx(own.dev_ratio, abs=0.1)


def test_given_lambdas_are_sorted(df):
    one = ld.path(ld.gbmap, f"y ~ {FORMULA}", df, m=1, lambdas=[0.01, 1.0, 0.1])
    np.testing.assert_array_equal(one.lambdas, [1.0, 0.1, 0.01])


def test_a_penalty_that_is_given_twice_is_fitted_once(df, monkeypatch):
    lambdas, fitted = [0.1, 1.0, 0.1, np.float64(1.0)], []
    run = Model.run
    monkeypatch.setattr(
        Model, "run", lambda self, *a, **k: fitted.append(self.name) or run(self, *a, **k)
    )
    for name, more in (("gbmap", {"m": 1}), ("costnet", {}), ("ripr", {"max_dim": 1})):
        fitted.clear()
        assert ld.path(getattr(ld, name), "y ~ a", df, lambdas=lambdas, **more).lambdas.size == 2
        assert fitted == [name] * 2
    cv = ld.cv(ld.gbmap, "y ~ a", df, grid={"lambda_": lambdas, "m": [1, 2, 1]}, folds=3)
    assert len(cv.frame) == 4


def test_stages_by_default(df):
    one = ld.path(ld.gbmap, "y ~ a", df, n_lambda=2, control={"path_stages": 3})
    assert [fit.settings.m for fit in one.fits] == [3, 3]


def test_at_predict_coef_tidy(df, path):
    third = path.lambdas[3]
    for value in (third, 1.05 * third, 0.96 * third):
        assert path.at(value) is path.fits[3]
    assert path.at(1e9) is path.fits[0] and path.at(1e-30) is path.fits[-1]
    np.testing.assert_array_equal(path.predict(df, third), path.fits[3].predict(df))
    assert path.predict(df, third, type="embedding").shape == (120, 2)
    coef = path.coef()
    assert coef.shape == (12, 4) and list(coef.columns) == list("abde")
    np.testing.assert_array_equal(coef.index, path.lambdas)
    np.testing.assert_array_equal(coef.iloc[3], path.coef(third))
    tidy = path.tidy()
    assert len(tidy) == 48 and {"lambda_", "term", "estimate"} <= set(tidy)
    np.testing.assert_array_equal(tidy["estimate"], coef.to_numpy().ravel())


def test_a_penalty_of_zero(df):
    one = ld.path(ld.gbmap, "y ~ a", df, m=1, lambdas=[0.1, 0.0])
    assert one.at(0.1) is one.fits[0]
    assert "Lambda" in str(one)


def test_print(path):
    text = str(path)
    assert 'gbmap("y ~ a + b + d + e", data=df, m=2, l1_ratio=0.8)' in text
    head, *table = [line.split() for line in text.splitlines() if line][1:]
    assert head[-3:] == ["Df", "%Dev", "Lambda"] and len(table) == 12
    for row, fit in zip(table, path.fits, strict=True):
        assert int(row[-3]) == fit.df
        assert float(row[-2]) == pytest.approx(100 * fit.dev_ratio, abs=0.006)
        assert float(row[-1]) == pytest.approx(fit.settings.lambda_, rel=1e-3)


@pytest.mark.parametrize("response", ["y", "k"])
def test_plot(df, axes, response):
    one = ld.path(ld.gbmap, f"{response} ~ {FORMULA}", df, m=2, n_lambda=4)
    assert one.plot(ax=axes, top=3) is axes
    assert axes.get_xlabel() == "log(lambda)" and axes.get_ylabel()
    assert len(axes.lines) >= 4 and len(axes.texts) == 3
    axes.figure.canvas.draw()


def test_fits_of_a_path_are_light(df, path, tmp_path):
    with pytest.raises(ld.ArgumentError, match="no training rows"):
        path.fits[0].drift(df)
    path.fits[5].save(tmp_path / "one")
    np.testing.assert_array_equal(ld.load(tmp_path / "one").predict(df), path.fits[5].predict(df))


@pytest.mark.parametrize(
    "arguments, word",
    [
        ({"n_lambda": 1}, "n_lambda"), ({"n_lambda": 2.5}, "n_lambda"),
        ({"lambda_min_ratio": 0.0}, "lambda_min_ratio"), ({"lambda_min_ratio": 2}, "between"),
        ({"lambdas": [0.1, -1.0]}, "lambdas"), ({"lambdas": [np.nan]}, "lambdas"),
        ({"lambdas": []}, "lambdas"), ({"lambdas": ["a"]}, "lambdas"),
        ({"lambda_": 0.1}, "lambda_"), ({"gamma": 1}, "gamma"),
        ({"lambdas": [0.1], "n_lambda": 3}, "have no effect with lambdas="),
    ],
)  # fmt: skip
def test_refusals(df, arguments, word):
    with pytest.raises(ld.ArgumentError, match=word):
        ld.path(ld.gbmap, "y ~ a + b", df, m=1, **arguments)


@pytest.mark.parametrize(
    "lambdas, value",
    [
        ([0.1, -1.0, 3.0], "-1.0"), ([np.inf, 0.1], "inf"), ([0.1, np.nan], "nan"),
        ([0.1, "0.2"], "'0.2'"), ([1.0, None], "None"), ([True, 0.1], "True"),
    ],
)  # fmt: skip
def test_a_value_that_is_no_penalty_is_named(df, lambdas, value):
    with pytest.raises(ld.ArgumentError) as refused:
        ld.path(ld.gbmap, "y ~ a + b", df, m=1, lambdas=lambdas)
    assert str(refused.value).endswith(f"each 0 or more (up to 1e+100), not {value}")


def test_each_value_is_refused_before_the_first_fit(df, monkeypatch):
    """A width of melm's kernels has bounds of its own, which the least value may cross."""
    from lodim.fitting.model import Model

    monkeypatch.setattr(Model, "run", lambda *a, **k: pytest.fail("a fit was made"))
    words = "lambdas are values of gamma: gamma must be a positive number, from .* to .*, not 1e-09"
    with pytest.raises(ld.ArgumentError, match=words):
        ld.path(ld.melm, "k ~ a + b + d", df, lambdas=[1.0, 1e-9])


def test_what_a_penalty_leaves_without_effect_is_refused_in_words_of_the_path(df):
    with pytest.raises(ld.ArgumentError, match=r"a path sets lambda_: .* leave out relax="):
        ld.path(ld.costnet, "y ~ a + b", df, relax=0.5)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_at_refuses(path, value):
    with pytest.raises(ld.ArgumentError, match="positive"):
        path.at(value)


@pytest.mark.parametrize("of", [ld.path, ld.cv])
@pytest.mark.parametrize("n_lambda", [0, 1, 2.5])
def test_a_wrong_number_of_penalties_is_refused_before_the_data_are_read(of, n_lambda):
    with pytest.raises(ld.ArgumentError, match="n_lambda must be"):
        of(ld.gbmap, "y ~ a", "no_such_file.csv", n_lambda=n_lambda)


def test_paths_that_cannot_be_drawn(df):
    path = ld.path(ld.gbmap, "y ~ a", df, m=1, lambdas=[0.0, 1.0])
    with pytest.raises(ld.ArgumentError, match="a penalty of 0 cannot be drawn on a log axis"):
        path.plot()
    with pytest.raises(ld.ArgumentError, match="the path has no features to draw"):
        ld.path(ld.costnet, "y ~ 1", df).plot()
