"""What the base class does for a model that overrides nothing."""

import pytest

import lodim as ld
from lodim.fitting.fit import Fit


@pytest.fixture(scope="module", params=["mpg ~ weight + origin", "origin ~ weight + mpg"])
def fit(request):
    return ld.glm(request.param, ld.data("autompg"))


def test_printed_results(fit):
    lines, table = Fit._listing(fit)
    assert lines[0].startswith("Family: ") and "398" in lines[1]
    assert "weight" in table.frame.index
    text = str(Fit._summary(fit, True))
    assert "Results of glm" in text and "Dev. ratio" in text and "std_error" in text


def test_one_row(fit):
    row = Fit.glance.in_pandas(fit).iloc[0]
    assert row["df"] == fit.df and row["dev_ratio"] == fit.dev_ratio
    assert row["deviance"] == fit._deviance and row["p"] == len(fit.design.names)


def test_page_plots_and_exports(fit):
    (words,) = Fit._in_words(fit)
    assert words.startswith("glm: generalized linear model")
    assert Fit._pictures(fit, None) == [] and Fit._plots(fit) == {}
    assert Fit._complexity(fit) == {"features": fit.df}
    with pytest.raises(ld.ArgumentError, match="cannot be exported"):
        Fit._expressions(fit, [], None)
