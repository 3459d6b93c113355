"""Fits in tables of maketables, compared with those of statsmodels."""

import numpy as np
import pytest

import lodim as ld
from contract.cases import quick
from lodim.fitting.registry import MODELS

HEART = ld.data("heart")[["disease", "age", "chest_pain"]]


@pytest.mark.parametrize("name", MODELS)
def test_every_fit_answers(name):
    model = getattr(ld, name)
    fit = model("disease ~ age + chest_pain", HEART, **quick(model))
    table = fit.__maketables_coef_table__
    assert table.index.name == "Coefficient" and {"b", "se", "p"} <= set(table)
    if name == "glm":
        frame = fit.tidy().set_axis(table.index)
        for theirs, ours in (("b", "estimate"), ("se", "std_error"), ("p", "p_value")):
            np.testing.assert_array_equal(table[theirs], frame[ours])
    else:
        assert table["se"].isna().all() and np.isfinite(table["b"]).any()
    assert fit.__maketables_depvar__ == "disease"
    assert fit.__maketables_default_stat_keys__ == ["N", "pseudo_r2"]
    assert fit.__maketables_stat__("N") == fit.n
    assert fit.__maketables_stat__("pseudo_r2") == fit.dev_ratio
    assert fit.__maketables_stat__("r2") is None and fit.__maketables_stat__("nonsense") is None


@pytest.mark.parametrize("family, name", [("gaussian", "r2"), ("poisson", "pseudo_r2")])
def test_only_squared_error_has_an_r2(family, name):
    fit = ld.glm("age ~ chest_pain", HEART, family=family)
    assert fit.__maketables_default_stat_keys__ == ["N", name]
    assert fit.__maketables_stat__(name) == fit.dev_ratio


@pytest.mark.long
def test_costnet_shows_the_model_that_predicts():
    fit = ld.costnet("disease ~ age + chest_pain", HEART, threads=1)
    table = fit.__maketables_coef_table__
    np.testing.assert_array_equal(table["b"], fit.coef())


def test_classes_have_rows_of_their_own():
    fit = ld.glm("cultivar ~ hue", ld.data("wine"))
    names = fit.__maketables_coef_table__.index.tolist()
    assert names == [
        "Barolo | Intercept", "Barolo | hue", "Grignolino | Intercept", "Grignolino | hue",
    ]  # fmt: skip


@pytest.mark.long
def test_a_table_beside_statsmodels():
    maketables = pytest.importorskip("maketables")
    from statsmodels.formula.api import ols

    cars = ld.data("autompg").dropna()
    fits = [
        ld.glm("mpg ~ weight + origin", cars),
        ld.glm("mpg ~ weight", cars, covariance="HC3"),
        ols("mpg ~ weight + origin", cars).fit(),
        ld.gbmap("mpg ~ weight", cars, m=1, lambda_=0.1, threads=1),
    ]
    table = maketables.ETable(fits, model_stats=["N", "r2", "aic", "se_type"]).df
    ours, robust, theirs, bare = (table.iloc[:, j] for j in range(4))
    rows = ["weight", "origin=Japan", "origin=USA", "Intercept"]
    labels = [label[-1] for label in table.index]
    for row in rows:
        assert labels.count(row) == 1  # the same row as statsmodels'
        assert ours.iloc[labels.index(row)] == theirs.iloc[labels.index(row)]
    assert ours.iloc[labels.index("Observations")] == "392"
    assert robust.iloc[labels.index("S.E. type")] == "HC3"
    assert "(-)" in bare.iloc[labels.index("weight")]
    assert "weight" in maketables.ETable(fits[:2]).make(type="tex")
