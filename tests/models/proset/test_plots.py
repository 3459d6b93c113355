"""Plots of proset: what is drawn where, read back from the Axes."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.models.proset.explain.query import active_values, select_features
from lodim.models.proset.explain.reference import reference_values
from lodim.models.proset.plots import BatchMap, surface_over
from lodim.plot import bars
from models.proset.test_explain import fit_of, kinds, people

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def places(ax):
    """All points that were scattered, (n, 2)."""
    points = [c.get_offsets() for c in ax.collections if hasattr(c, "get_sizes")]
    return np.concatenate([np.asarray(xy) for xy in points if len(xy)])


def holds(points, xy):
    return all(np.abs(points - one).sum(axis=1).min() < 1e-9 for one in xy)


@kinds
@pytest.mark.parametrize("kind_of_plot", ["weights", "map", "scatter", "surface", "shapley"])
def test_plots_draw_on_the_axes_they_are_given(kind, kind_of_plot, axes):
    more = {"data": people(5)} if kind_of_plot == "shapley" else {}
    assert fit_of(kind).plot(kind_of_plot, axes, **more) is axes
    assert axes.get_xlabel()
    axes.figure.canvas.draw()
    own = fit_of(kind).plot(kind_of_plot, **more)
    assert own is not axes


@kinds
def test_map_shows_prototypes_rows_and_query(kind):
    fit, data = fit_of(kind), people(30, seed=1)
    ax = fit.plot("map", data=data, row=data.iloc[[3]], named=4)
    t = fit.estimates
    of = t.of_batch(1)
    to_plane = BatchMap(t.x[of], t.w[of], t.v[0])
    assert holds(places(ax), to_plane(t.x[of]))
    assert holds(places(ax), to_plane(active_values(fit, fit.design.apply(data))))
    assert len(ax.texts) == 4
    impact = fit._impacts(fit.design.apply(data.iloc[[3]]))[0, of]
    assert {x.get_text() for x in ax.texts} == {fit.labels[of[k]] for k in np.argsort(-impact)[:4]}
    words = [x.get_text() for x in ax.get_legend().get_texts()]
    assert "row p3" in words and "rows of data" in words
    assert any(w.startswith("impact") for w in words)
    if fit.levels is not None:
        assert all(f"{kind} = {level}" in words for level in fit.levels)


def test_scatter_is_in_original_units():
    fit = fit_of("ill")
    ax = fit.plot("scatter", features=["weight", "age"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("weight", "age")
    assert holds(places(ax), fit.export()[["weight", "age"]].to_numpy())


@kinds
def test_surface_is_the_prediction(kind):
    """Some places of it, against predict() with the other features at the reference."""
    fit = fit_of(kind)
    two, r = select_features(fit, ["age", "weight"]), reference_values(fit, None)
    x, y, Z, _ = surface_over(fit, two, r)
    base = people().loc[fit.reference().index]
    for i, j in ((0, 0), (5, 100), (-1, -1)):
        at = base.assign(age=x[j], weight=y[i])
        out = fit.predict(at) if fit.levels is None else fit.predict(at, "prob")
        np.testing.assert_allclose(Z[i, j], out.to_numpy().ravel(), rtol=1e-9)


def test_shapley_bars_are_the_values():
    fit, data = fit_of("grade"), people(5, seed=2)
    ax = fit.plot("shapley", data=data, row=2, level="mid")
    frame = fit.shapley(data.iloc[[2]])
    frame = frame[(frame["level"] == "mid") & (frame["term"] != "(reference)")]
    widths = sorted(bar.get_width() for bar in ax.patches)
    np.testing.assert_allclose(widths, sorted(frame["shapley"]))
    assert "row p2" in ax.get_title() and "grade = mid" in ax.get_xlabel()


def test_weights_are_drawn_by_batch():
    fit = fit_of("dose")
    v = fit.estimates.v
    ax = fit.plot("weights")
    drawn = np.sort(places(ax)[:, 0])
    np.testing.assert_allclose(drawn, np.sort(v[v > 0]))
    order = fit.tidy().sort_values("std_estimate", ascending=False, kind="stable")
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert names == list(order["term"][: fit.df])


@pytest.mark.parametrize(
    "kind_of_plot, arguments, words",
    [
        ("pie", {}, "kind must be one of weights, map"),
        ("map", {"batch": 7}, "batch 7 has no prototypes"),
        ("map", {"colour": 1}, "colour"),
        ("scatter", {"features": ["age"]}, "two different active features"),
        ("scatter", {"features": ["age", "age"]}, "two different active features"),
        ("scatter", {"features": ["age", "height"]}, "not 'height'"),
        ("surface", {"level": "maybe"}, "level must be one of 'no', 'yes'"),
        ("shapley", {"data": people(2), "row": 5}, "a row 5"),
        ("shapley", {"data": people(2).assign(age=np.nan)}, "missing values"),
        ("shapley", {"data": people(2), "level": "no"}, "must be 'yes' for two classes"),
    ],
)
def test_refused(kind_of_plot, arguments, words):
    with pytest.raises(ld.ArgumentError, match=words):
        fit_of("ill").plot(kind_of_plot, **arguments)


@pytest.mark.long
def test_fits_without_features_or_with_one():
    nothing = ld.proset("ill ~ age", people(), lambda_v=1e3, lambda_w=1e4, threads=1)
    refusals = {"weights": "nothing to draw", "map": "no prototypes", "scatter": "this fit has 0"}
    for kind, words in refusals.items():
        with pytest.raises(ld.ArgumentError, match=words):
            nothing.plot(kind)
    one = ld.proset("ill ~ age", people(), threads=1)
    assert "no second direction" in one.plot("map", data=people(9)).get_ylabel()


def test_rows_without_responses_are_grey():
    fit, data = fit_of("dose"), people(8, seed=1).drop(columns="dose")
    assert len(places(fit.plot("map", data=data))) == 8 + len(fit.estimates.of_batch(1))


@pytest.mark.parametrize("kind", ["surface", "shapley"])
def test_numbers_have_no_level(kind):
    arguments = {"data": people(2)} if kind == "shapley" else {}
    with pytest.raises(ld.ArgumentError, match=r"level= needs .* this response is numeric"):
        fit_of("dose").plot(kind, level="yes", **arguments)


def test_conformity_scores_of_classes_and_features_that_are_no_columns():
    data = people(60)
    found = ld.conformal(ld.proset, "ill ~ age", data, lambda_v=0.01, folds=2, threads=1)
    assert found.says.score == "lac"
    fit = ld.proset("ill ~ I(age / 10)", data, lambda_v=1e-3, threads=1)
    labels = [t.get_text() for t in fit.plot("shapley", data=data).get_yticklabels()]
    assert labels == ["I(age / 10)"]
    names = dict(zip(fit.design.names, [np.nan], strict=True))
    with pytest.raises(ld.ArgumentError, match="one row without missing values"):
        fit.shapley(data[:1], reference=pd.DataFrame([names]))


def test_weights_of_several_batches_have_a_legend():
    fit = fit_of("dose")
    v = np.vstack([fit.estimates.v[0], fit.estimates.v[0]])
    ax = bars.weights(fit.estimates.features.astype(str), v, "weight")
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["batch 1", "batch 2"]
