"""Plots of ripr: what is drawn where, read back from the Axes."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from models.ripr.test_fit import NUMBERS, TWO, blobs, fit_of, three

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


DATA = {"two": TWO, "three": three(), "numbers": NUMBERS, "clusters": blobs()}
names = pytest.mark.parametrize("name", list(DATA))


def points(ax, least=0.0, most=np.inf):
    """Points scattered with alpha in a range, (n, 2)."""
    found = [np.asarray(c.get_offsets()) for c in ax.collections
             if hasattr(c, "get_sizes") and len(c.get_offsets())
             and least <= (1.0 if c.get_alpha() is None else c.get_alpha()) <= most]  # fmt: skip
    return np.concatenate(found) if found else np.zeros((0, 2))


def same_points(a, b):
    """Whether these are the same places, in any order, up to a spread of few-valued features."""
    a, b = (z[np.lexsort(z.T)] for z in (a, b))
    return a.shape == b.shape and np.allclose(a, b)


@pytest.mark.long
@names
def test_rows_that_a_view_serves_are_solid_and_the_others_faint(name):
    fit, df = fit_of(name), DATA[name]
    axes = fit.plot()
    assert len(axes) == min(6, len(fit.estimates))
    view = fit.estimates.assigned_view
    for j, ax in enumerate(axes):
        two = list(fit.view_features[j])
        assert [ax.get_xlabel(), ax.get_ylabel()] == two
        X = df[two].to_numpy()
        known = np.isfinite(X).all(axis=1)
        assert same_points(points(ax, 0.5), X[known & (view == j)])
        assert same_points(points(ax, 0.0, 0.5), X[known & (view != j)])
        share = 100 * (view == j).sum() / (view >= 0).sum()
        assert f": {share:.0f}% of the rows" in ax.get_title()
    axes[0].figure.canvas.draw()


@pytest.mark.long
@names
def test_a_query_is_a_star_in_its_view_with_rings_around_its_neighbours(name):
    fit, df = fit_of(name), DATA[name]
    row = df.iloc[[30]]
    axes = fit.plot(row=row)
    x = fit.explain(row, k=min(fit.settings.k, 10))
    for ax, two, view in zip(axes, fit.view_features, fit.view_names, strict=True):
        stars = [c for c in ax.collections if len(c.get_offsets()) == 1 and c.get_sizes()[0] > 100]
        assert any(np.allclose(c.get_offsets()[0], row[list(two)]) for c in stars)
        bold = ax.title.get_fontweight() == "bold"
        assert bold == (view == x.view)
        rings = [c for c in ax.collections if len(c.get_facecolor()) == 0]
        if bold and name != "clusters":
            expected = x.neighbours[list(two)].to_numpy()[1:]
            assert any(same_points(np.asarray(c.get_offsets()), expected) for c in rings)
    words = {t.get_text() for t in axes[0].figure.legends[0].get_texts()}
    assert "row 30" in words and {"row with most weight in the view", "other row"} <= words
    assert np.array_equal(
        [ax.get_title() for ax in x.plot()], [ax.get_title() for ax in axes]
    )  # the same picture


@pytest.mark.long
def test_legend_and_scale():
    words = {t.get_text() for t in fit_of("three").plot()[0].figure.legends[0].get_texts()}
    assert {"y = a", "y = b", "y = c"} <= words
    assert fit_of("numbers").plot()[0].figure.axes[-1].get_ylabel() == "y"  # the colour scale
    words = {t.get_text() for t in fit_of("clusters").plot()[0].figure.legends[0].get_texts()}
    assert {"cluster = 1.1", "cluster = 2.3"} <= words


def test_losses_by_number_of_views_start_without_a_view():
    fit = ld.ripr("species ~ .", ld.data("iris"), max_dim=1, k=10, threads=1)
    ax = fit.plot("objective")
    (line,) = ax.get_lines()
    assert np.array_equal(line.get_xdata(), np.arange(len(fit.estimates) + 1))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("number of views", "leave-one-out log-loss")
    ax = fit_of("two").plot("objective")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("round", "objective")
    assert ax.get_lines()[0].get_xdata()[0] == 1


def test_a_note_relates_the_views_predictions_to_the_fit():
    cars = ld.data("autompg")
    fit = ld.ripr("mpg ~ weight + model_year", cars, max_dim=2, k=10, threads=1)
    text = " ".join(str(fit.explain(cars[:1])).split())
    assert f"multiplies it by {fit.estimates.factor:.4g}." in text


def test_names_of_axes_in_three_dimensions_do_not_touch_the_legend():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(90, 3)), columns=["age", "b" * 24, "bmi"])
    df["y"] = df.sum(axis=1)
    (ax,) = ld.ripr("y ~ .", df, min_dim=3, n_views=1, threads=1).plot()
    ax.figure.canvas.draw()
    axis_names = [axis.label.get_window_extent() for axis in (ax.xaxis, ax.yaxis, ax.zaxis)]
    words = [text.get_window_extent() for text in ax.figure.legends[0].get_texts()]
    assert not any(name.overlaps(word) for name in axis_names for word in words)


@pytest.mark.long
def test_other_rows():
    fit = fit_of("two")
    new = TWO.iloc[:30].drop(columns="y")
    axes = fit.plot(data=new)
    view = fit.predict(new, "view")
    for ax, two, name in zip(axes, fit.view_features, fit.view_names, strict=True):
        assert same_points(points(ax, 0.5), new.loc[view == name, list(two)].to_numpy())
    assert len(fit.plot(data=TWO.iloc[:9], top=1)) == 1


@pytest.mark.long
def test_views_of_one_and_of_three_features():
    one = ld.ripr("y ~ .", TWO, min_dim=1, max_dim=1, lambda_=0.05, threads=1)
    axes = one.plot(row=TWO.iloc[[4]])
    assert [t.get_text() for t in axes[0].get_yticklabels()] == ["0", "1"]
    X = TWO[one.view_features[0][0]].to_numpy()
    assert np.allclose(
        np.sort(points(axes[0], 0.5, 0.9)[:, 0]), np.sort(X[one.estimates.assigned_view == 0])
    )
    number = ld.ripr("y ~ x1 + x2", NUMBERS, min_dim=1, max_dim=1, lambda_=0.01, threads=1)
    ax = number.plot(row=NUMBERS.iloc[[4]])[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == (number.view_features[0][0], "y")
    deep = ld.ripr("y ~ .", TWO, min_dim=3, max_dim=3, threads=1)
    axes = deep.plot(row=TWO.iloc[[4]])
    assert [axes[0].get_xlabel(), axes[0].get_ylabel(), axes[0].get_zlabel()] == list(
        deep.view_features[0]
    )
    for drawn in (axes[0], ax):
        drawn.figure.canvas.draw()
    mixed = ld.ripr("y ~ .", three(), min_dim=1, max_dim=3, lambda_=0.02, threads=1)
    mixed.plot(row=TWO.iloc[[4]])[0].figure.canvas.draw()


@names
@pytest.mark.parametrize("kind", ["shares", "objective"])
def test_other_kinds(name, kind, axes):
    fit = fit_of(name)
    assert fit.plot(kind, axes) is axes and axes.get_xlabel()
    if kind == "shares":
        np.testing.assert_allclose([b.get_width() for b in axes.patches], fit.tidy()["estimate"])
        assert [t.get_text() for t in axes.get_yticklabels()] == fit.view_names
    else:
        np.testing.assert_array_equal(axes.lines[0].get_ydata(), fit.log["objective"])


def test_axes_of_ones_own(axes):
    fit = fit_of("two")
    mine = pyplot.subplots(1, 2)[1]
    assert list(fit.plot(ax=mine)) == list(mine)
    assert mine[1].get_legend() is not None
    assert list(fit.plot(ax=axes, top=1)) == [axes]
    with pytest.raises(ld.ArgumentError, match="ax must be 2 Axes"):
        fit.plot(ax=axes)
    deep = ld.ripr("y ~ .", TWO, min_dim=3, max_dim=3, n_views=1, threads=1)
    with pytest.raises(ld.ArgumentError, match="needs Axes of 3 dimensions"):
        deep.plot(ax=axes)


@pytest.mark.long
def test_path_and_cv(axes):
    path = ld.path(ld.ripr, "y ~ .", TWO, n_lambda=4, threads=1)
    assert path.plot(axes).get_ylabel() == "share of the rows"
    cv = ld.cv(ld.ripr, "y ~ .", TWO, grid={"lambda_": [0.1, 1.0]}, folds=3, threads=1)
    assert cv.plot().get_xlabel() == "log(lambda)"


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"kind": "pie"}, "kind must be one of view, shares, objective"),
        ({"top": 7}, "top must be an integer from 1 to 6"),
        ({"row": TWO}, "one row"),
        ({"colour": 1}, "colour"),
    ],
)
def test_refused(arguments, words):
    with pytest.raises(ld.ArgumentError, match=words):
        fit_of("two").plot(**arguments)


def test_names_and_numbers_of_three_dimensions_have_room():
    """No panel hides the name of an axis of the one before it, nor does the scale beside them."""
    data = ld.informative_views_r(150, 2, seed=1, M=5)
    axes = ld.ripr("y ~ .", data, min_dim=3, max_dim=3, n_views=2, threads=1).plot()
    figure = axes[0].figure
    figure.canvas.draw()
    scale = next(ax for ax in figure.axes if ax not in list(axes))
    for ax in axes:
        assert not ax.patch.get_visible()
        assert all(len(axis.get_major_locator()()) <= 7 for axis in (ax.xaxis, ax.yaxis, ax.zaxis))
    name = axes[-1].zaxis.label.get_window_extent()
    assert name.x1 <= scale.get_window_extent().x0


def test_features_with_few_values_are_spread_independently():
    rng = np.random.default_rng(6)
    data = pd.DataFrame({"a": rng.integers(0, 2, 200), "b": rng.integers(0, 2, 200)})
    data["y"] = np.where(data["a"] ^ data["b"], "u", "v")
    (ax,) = ld.ripr("y ~ a + b", data, n_views=1, min_dim=2, max_dim=2, threads=1).plot()
    spread = points(ax, 0.5) - np.round(points(ax, 0.5))
    assert abs(np.corrcoef(spread.T)[0, 1]) < 0.2 and 0.0 < np.abs(spread).max() < 0.2


@pytest.mark.long
def test_a_view_of_three_categories_is_a_plane_of_cells():
    rng = np.random.default_rng(1)
    data = pd.DataFrame({name: rng.choice(list("pqrs"[:k]), 120) for name, k in
                         (("a", 3), ("b", 4), ("c", 3))})  # fmt: skip
    data["y"] = np.where((data["a"] == "p") ^ (data["b"] == "q") ^ (data["c"] == "p"), "u", "v")
    fit = ld.ripr("y ~ .", data, n_views=1, min_dim=3, max_dim=3, threads=1)
    (ax,) = fit.plot(row=data.iloc[[7]])
    assert not hasattr(ax, "get_zlim") and ax.get_xlabel() == "c, in blocks by a"
    assert [t.get_text() for t in ax.get_xticklabels()] == ["p", "q", "r"] * 3
    codes = data[["a", "b", "c"]].map("pqrs".index)
    expected = np.column_stack([4 * codes["a"] + codes["c"], codes["b"]])
    assert same_points(points(ax, 0.5, 0.9).round(), expected)
    ax.figure.canvas.draw()


def test_the_view_of_the_query_is_among_few_views():
    fit = fit_of("two")
    served = fit._answers(fit.design.apply(TWO)).view
    assert served.max() > 0
    (ax,) = fit.plot(row=TWO.iloc[[served.argmax()]], top=1)
    assert f"view {served.max() + 1}" in ax.get_title()


def test_numbers_with_few_values_are_blocks_like_levels():
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.integers(0, 3, (200, 2)), columns=["a", "b"]).astype(float)
    data["c"] = rng.normal(size=200)
    data["k"] = np.where((data["a"] == data["b"]) & (data["c"] > 0), "p", "q")
    one = ld.ripr("k ~ .", data, min_dim=3, max_dim=3, k=5, lambda_=0.1, threads=1)
    (ax,) = one.plot()
    assert ax.get_xlabel() == "b, in blocks by a"
    line = ld.ripr("k ~ .", data, max_dim=1, k=5, lambda_=0.1, threads=1)
    drawn = [len(ax.lines) for ax in line.plot(row=data[:1])]
    missing = [len(ax.lines) for ax in line.plot(row=data[:1].assign(c=np.nan))]
    assert sum(missing) == sum(drawn) - 1
