"""What plots say about their kinds and about what they leave out."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.plot import axes, biplot, legend, lines

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def test_a_kind_that_takes_no_data_names_those_that_do():
    def weights(fit, ax, *, top=3):
        return axes.ensure_axes(ax)

    def points(fit, ax, *, data=None):
        return axes.ensure_axes(ax)

    kinds = {"weights": weights, "points": points}
    with pytest.raises(
        ld.ArgumentError, match="'weights' has no argument data; these kinds have it: points"
    ):
        axes.draw(kinds, "weights", None, None, {"data": 1})
    with pytest.raises(ld.ArgumentError, match=r"plot of kind 'weights': .*colour"):
        axes.draw(kinds, None, None, None, {"colour": 1})
    assert axes.draw(kinds, "points", None, None, {"data": 1})


def test_the_kind_is_by_default_the_first_that_takes_the_arguments():
    def named(name):
        def plot(fit, ax, *, data=None):
            out = axes.ensure_axes(ax)
            out.set_title(name)
            return out

        return plot

    def weights(fit, ax, *, top=3):
        return axes.ensure_axes(ax)

    kinds = {"weights": weights, "map": named("map"), "scatter": named("scatter")}
    assert axes.draw(kinds, None, None, None, {"data": 1}).get_title() == "map"
    assert axes.draw(kinds, None, None, None, {"top": 1}).get_title() == ""
    assert axes.draw(kinds, None, None, None, {}).get_title() == ""


def test_a_plot_of_the_largest_says_of_how_many():
    data = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 4)), columns=list("abcd"))
    fit = ld.glm("d ~ a + b + c", data)
    assert fit.plot(top=2).get_xlabel().endswith("\n(the 2 largest of 3)")
    assert "largest" not in fit.plot().get_xlabel()


@pytest.mark.parametrize(
    "df, axis", [("33333", False), ("3" * 50 + "2" + "3" * 49, False), ("32221", True)]
)
def test_degrees_of_freedom_that_do_not_vary_have_no_axis(df, axis):
    lambdas = np.logspace(-2, 0, len(df))
    wide = pd.DataFrame({"x": np.linspace(1.0, 0.0, len(df))}, index=lambdas)
    ax = lines.against_log(wide, "lambda", "estimate", ("Df", lambdas, list(df)))
    assert any(child.get_xlabel() == "Df" for child in ax.child_axes) == axis


@pytest.mark.long
@pytest.mark.parametrize("length, named", [(1, True), (12, False)])
def test_classes_whose_names_would_hide_the_view_are_in_the_legend_alone(length, named):
    K, rng = 19, np.random.default_rng(0)
    labels = tuple(chr(97 + k) * length for k in range(K))
    centre = rng.normal(size=(K, 2))
    rows = biplot.Rows(np.repeat(centre, 5, axis=0), np.repeat(np.arange(K), 5).astype(float))
    x = np.linspace(-3.0, 3.0, 30)
    places = np.stack(np.meshgrid(x, x), axis=-1)
    density = np.exp(-5.0 * ((places[:, :, None] - centre) ** 2).sum(axis=-1))
    ground = biplot.Ground(x, x, density, np.full((K, 2), 0.5), None, 0.0)
    ends = np.array([[-3.0, -3.0], [3.0, 3.0]])
    ax = biplot.plane(rows, legend.Legend("y", labels), ("x1", "x2"), ends=ends, ground=ground)
    entries = [t.get_text() for t in ax.get_legend().get_texts()]
    assert all(any(text.endswith(label) for text in entries) for label in labels)
    assert (len(ax.texts) >= K) == named
