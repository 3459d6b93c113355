"""Plots of melm: what is drawn where, found on the Axes."""

import re
from inspect import signature

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.models.melm import plots
from lodim.models.melm.fit import MelmFit
from lodim.plot import biplot
from lodim.plot.axes import class_style
from lodim.plot.legend import HELD

pyplot = pytest.importorskip("matplotlib.pyplot")
Bbox = pytest.importorskip("matplotlib.transforms").Bbox
QUICK = {"gamma": 1.0, "n_starts": 3, "threads": 1, "control": {"calibrate": False}}


@pytest.fixture(scope="module")
def wine():
    return ld.data("wine")


@pytest.fixture(scope="module")
def fits(wine):
    return {k: ld.melm("cultivar ~ .", wine, k=k, **QUICK) for k in (1, 2, 3)}


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def points(ax):
    """The scattered points that are drawn, a collection each."""
    kind = pytest.importorskip("matplotlib.collections").PathCollection
    return [c for c in ax.collections if type(c) is kind and len(c.get_offsets())]


def offsets(ax):
    """Places of all points."""
    return np.concatenate([c.get_offsets() for c in points(ax)])


def texts(ax):
    return [t.get_text() for t in ax.texts]


def legend(ax):
    return [t.get_text() for t in ax.get_legend().get_texts()]


def in_order(xy):
    return np.asarray(xy)[np.lexsort(np.asarray(xy).T)]


def test_view_draws_every_row_where_it_is(fits, wine):
    ax = fits[2].plot()
    Z = fits[2].predict(wine, "projection").to_numpy()
    drawn = offsets(ax)
    assert len(drawn) == len(wine)
    np.testing.assert_allclose(in_order(drawn), in_order(Z))
    assert legend(ax)[:3] == [f"cultivar = {level}" for level in fits[2].levels]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x1", "x2")
    box = np.array([ax.get_xlim(), ax.get_ylim()]).T
    outside = int((~((box[0] <= Z) & (box[1] >= Z)).all(axis=1)).sum())
    assert (f"{outside} row{'s' * (outside > 1)} outside the plot" in texts(ax)) == (outside > 0)


@pytest.mark.long
def test_arrows_are_the_largest_loadings_in_their_directions(fits):
    fit = fits[2]
    V = fit.tidy()["std_estimate"].to_numpy().reshape(2, -1).T
    largest = np.argsort(-np.linalg.norm(V, axis=1))[:4]
    ax = fit.plot(top=4)
    arrows = [t for t in ax.texts if t.arrow_patch is not None]
    tips = np.array([t.xy for t in arrows])
    factor = np.linalg.norm(tips, axis=1) / np.linalg.norm(V[largest], axis=1)
    np.testing.assert_allclose(tips, factor[0] * V[largest], rtol=1e-9)
    assert {fit.design.names[j] for j in largest} <= set(texts(ax))
    box = np.array([ax.get_xlim(), ax.get_ylim()]).T
    assert ((tips > box[0]) & (tips < box[1])).all() and factor[0] > 0
    assert "4 largest of 13" in " ".join(legend(ax))
    none = fit.plot(arrows=None)
    assert not [t for t in none.texts if t.arrow_patch is not None]
    r = fit.plot(arrows="correlations", top=13)
    assert len([t for t in r.texts if t.arrow_patch is not None]) == 13


@pytest.mark.long
def test_names_do_not_overlap(fits):
    ax = fits[2].plot(top=13)
    ax.figure.canvas.draw()
    boxes = [t.get_window_extent() for t in ax.texts if t.get_text() in fits[2].design.names]
    assert len(boxes) == 13
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            wide = min(a.x1, b.x1) - max(a.x0, b.x0)
            high = min(a.y1, b.y1) - max(a.y0, b.y0)
            assert wide < 6.0 or high < 4.0  # estimated widths are a little off


def test_contours_hold_their_share_of_the_rows(fits, wine):
    """The levels drawn are those that half, and nine tenths, of a class's rows are above."""
    rule = fits[2].estimates.rule
    own = np.exp(rule.log_density(rule.rows.Z))
    levels = plots._contour_levels(own, rule.rows)
    for c in range(3):
        f = own[rule.rows.code == c, c]
        for level, share in zip(levels[c], HELD, strict=True):
            assert abs((f >= level).mean() - share) < 1.5 / len(f)


def test_boundary_is_where_the_choice_changes(fits, monkeypatch):
    seen = {}
    draw = biplot._chosen
    monkeypatch.setattr(
        biplot, "_chosen", lambda ax, ground: (seen.update(g=ground), draw(ax, ground))
    )
    ax = fits[2].plot()
    ground = seen["g"]
    places = np.stack(np.meshgrid(ground.x, ground.y), axis=-1).reshape(-1, 2)
    score = fits[2].estimates.rule.scores(places)
    np.testing.assert_array_equal(ground.score.argmax(axis=2).ravel(), score.argmax(axis=1))
    assert "decision boundary" in legend(ax)


@pytest.mark.long
def test_new_rows_and_rows_of_unknown_class(fits, wine):
    new = wine[::7]
    Z = fits[2].predict(new, "projection").to_numpy()
    np.testing.assert_allclose(in_order(offsets(fits[2].plot(data=new))), in_order(Z))
    ax = fits[2].plot(data=new.drop(columns="cultivar"))
    np.testing.assert_allclose(in_order(offsets(ax)), in_order(Z))
    assert len({tuple(c.get_facecolor()[0]) for c in points(ax)}) == 1
    with pytest.raises(ld.DataError, match="no complete row"):
        fits[2].update(wine, missing="drop").plot(data=new.assign(ash=np.nan))


def test_one_dimension(fits, wine):
    ax = fits[1].plot(top=3)
    assert legend(ax)[:3] == [f"cultivar = {level}" for level in fits[1].levels]
    curves = [line for line in ax.get_lines() if len(line.get_xdata()) > 600]
    assert len(curves) == 3
    for line in curves:
        x, y = line.get_data()
        assert 0.9 < np.trapezoid(y, x) < 1.0 + 1e-4
    rug = np.concatenate([line.get_xdata() for line in ax.get_lines() if line.get_marker() == "|"])
    np.testing.assert_allclose(
        np.sort(rug), np.sort(fits[1].predict(wine, "projection")["x1"].to_numpy())
    )
    cuts = [line.get_xdata()[0] for line in ax.get_lines() if line.get_linestyle() == "--"]
    score = fits[1].estimates.rule.scores(np.add.outer(cuts, [-0.03, 0.03]).reshape(-1, 1))
    chosen = score.argmax(axis=1).reshape(-1, 2)
    assert len(cuts) >= 2 and (chosen[:, 0] != chosen[:, 1]).all()


def test_three_dimensions_and_planes_of_them(fits):
    ax = fits[3].plot(top=5)
    assert ax.name == "3d" and ax.get_zlabel() == "x3"
    assert sum(t.get_text() in fits[3].design.names for t in ax.texts) == 5
    plane = fits[3].plot(dimensions=(3, 1))
    assert (plane.get_xlabel(), plane.get_ylabel()) == ("x3", "x1")
    assert fits[3].plot(dimensions=2).get_xlabel() == "x2"
    for wrong in ((1, 1), (0, 1), (1, 4), "x1", (1.5, 2)):
        with pytest.raises(ld.ArgumentError, match="dimensions must be"):
            fits[3].plot(dimensions=wrong)


def test_three_dimensions_need_axes_that_have_them(fits, axes):
    with pytest.raises(ld.ArgumentError, match="projection='3d'"):
        fits[3].plot(ax=axes)
    ax = pyplot.subplots(subplot_kw={"projection": "3d"})[1]
    assert fits[3].plot(ax=ax) is ax
    whole_legend(fits[3].plot())


def whole_legend(ax):
    """The legend lies within the figure, and the Axes keep a good part of it."""
    ax.figure.canvas.draw()
    figure, box = ax.figure.bbox, ax.get_legend().get_window_extent()
    assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.x1 and box.y1 <= figure.y1
    assert ax.get_window_extent().width > 0.35 * figure.width


def test_classes_without_width_beside_their_distance_are_drawn():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"y": ["a", "b"] * 40, "x": rng.normal(size=80) + 1e6 * (np.arange(80) % 2)})
    ax = ld.melm("y ~ .", df, k=1, **QUICK).plot()
    curves = [line for line in ax.get_lines() if len(line.get_xdata()) > 600]
    assert all(line.get_ydata().max() > 0.2 for line in curves) and len(curves) == 2


@pytest.mark.long
def test_long_names_leave_room_for_the_view():
    rng = np.random.default_rng(0)
    names = [f"a feature of a name as long as questionnaires have them, {j}" for j in range(12)]
    df = pd.DataFrame(rng.normal(size=(60, 12)), columns=names)
    df["the answer to the last question"] = [
        f"patients with at least one complication of kind {k}" for k in np.arange(60) % 3
    ]
    fit = ld.melm("Q('the answer to the last question') ~ .", df, **QUICK)
    ax = fit.plot(top=12)
    whole_legend(ax)
    said = [t for t in texts(ax) if "feature" in t]
    assert len(set(said)) == 12 and max(map(len, said)) <= 24
    assert len(set(legend(ax)[:3])) == 3
    ax.figure.canvas.draw()
    for text in (t for t in ax.texts if "feature" in t.get_text()):
        box = text.get_window_extent()
        assert box.x1 < ax.get_legend().get_window_extent().x0 + 8.0
    shown = [t.get_text() for t in fit.plot("loadings", top=12).get_yticklabels()]
    assert len(set(shown)) == 12 and max(map(len, shown)) <= 36


@pytest.mark.long
@pytest.mark.parametrize("n_classes, side", [(30, 5.0), (45, 3.5)])
def test_many_classes_in_a_legend_that_fits(n_classes, side):
    rng = np.random.default_rng(0)
    code = np.arange(4 * n_classes) % n_classes
    centre = 3.0 * rng.normal(size=(n_classes, 3))
    df = pd.DataFrame(centre[code] + rng.normal(size=(len(code), 3))).add_prefix("v")
    df["y"] = [f"class number {c}" for c in code]
    fit = ld.melm("y ~ .", df, **QUICK | {"n_starts": 1})
    ax = fit.plot(ax=pyplot.subplots(figsize=(1.5 * side, side), layout="constrained")[1])
    whole_legend(ax)
    named = [text for text in legend(ax) if text.startswith("class")]
    assert len(set(named)) == len(named) and (len(named) == 30) == (n_classes == 30)
    if n_classes > 30:
        assert f"first {len(named)} of 45" in ax.get_legend().get_title().get_text()


def test_given_axes_are_drawn_on(fits, axes):
    for kind in ("view", "loadings", "starts"):
        assert fits[2].plot(kind, ax=axes) is axes


def test_starts_and_loadings(fits):
    ax = fits[2].plot("starts")
    np.testing.assert_allclose(np.sort(offsets(ax)[:, 1]), np.sort(fits[2].starts()["divergence"]))
    assert set(legend(ax)) == set(fits[2].starts()["start"])
    assert ax.get_ylabel() == "divergence reached"
    ax = ld.melm("~ .", ld.data("iris"), threads=1).plot("starts")
    assert ax.get_ylabel() == "entropy reached" and "entropy" in ax.get_xlabel()
    assert all(float(t) == int(t) for t in ax.get_xticks())
    ax = fits[2].plot("loadings", top=5)
    V = fits[2].tidy()["std_estimate"].to_numpy().reshape(2, -1).T
    largest = np.argsort(-np.linalg.norm(V, axis=1))[:5]
    assert [t.get_text() for t in ax.get_yticklabels()] == [
        fits[2].design.names[j] for j in largest
    ]
    np.testing.assert_allclose(np.sort(offsets(ax)[:, 0]), np.sort(V[largest].ravel()))
    r = fits[2].plot("loadings", of="correlations")
    assert np.abs(offsets(r)[:, 0]).max() <= 1.0


def test_refusals(fits):
    for arguments, words in (
        ({"kind": "map"}, "kind must be one of view, loadings, starts"),
        ({"arrows": "weights"}, "loadings, correlations or None"),
        ({"top": 0}, "top must be an integer"),
        ({"colour": "red"}, "plot of kind None|plot of kind 'view'"),
    ):
        with pytest.raises(ld.ArgumentError, match=words):
            fits[2].plot(**arguments)


def test_all_arguments_are_documented():
    for kind in (plots.view, plots.loadings):
        for name in list(signature(kind).parameters)[2:]:
            assert re.search(rf"\b{name}=", MelmFit.plot.__doc__), name


def test_principal_components(wine):
    fit = ld.melm("~ . - cultivar", wine)
    ax = fit.plot()
    assert "36.2% of the variance" in ax.get_xlabel() and len(offsets(ax)) == len(wine)
    assert legend(ax)[0] == "rows" and "decision boundary" not in legend(ax)
    assert fit.plot("loadings") is not None and fit.plot("starts") is not None


@pytest.mark.long
def test_other_classifiers_have_a_boundary_in_their_own_dimensions(wine):
    classifier = pytest.importorskip("sklearn.linear_model").LogisticRegression()
    fit = ld.melm("cultivar ~ .", wine, classifier=classifier, **QUICK)
    assert "decision boundary" in legend(fit.plot())
    assert fit.plot(dimensions=(2, 1)).get_xlabel() == "x2"


@pytest.mark.long
def test_many_classes_many_features_and_many_rows():
    rng = np.random.default_rng(0)
    n, classes = 6000, [f"class {j}" for j in range(10)]
    centre = 0.5 * rng.normal(size=(10, 60))
    code = rng.integers(0, 10, n)
    df = pd.DataFrame(centre[code] + rng.normal(size=(n, 60))).add_prefix("feature_")
    df["kind"] = np.array(classes)[code]
    fit = ld.melm("kind ~ .", df[:500], **QUICK)
    ax = fit.plot(data=df)
    assert len(offsets(ax)) == 5000
    assert set(classes) <= set(texts(ax))  # named where they are densest
    marks = {(m.get_label()) for m in ax.get_legend().legend_handles}
    assert {f"kind = {c}" for c in classes} <= marks


def test_frame_leaves_outlying_rows_beyond():
    rng = np.random.default_rng(0)
    xy = np.vstack([rng.normal(size=(500, 2)), [[40.0, 0.0]]])
    ends = biplot.frame(xy)
    assert ends[1, 0] < 8.0 and ends[0, 0] < xy[:500, 0].min() < xy[:500, 0].max() < ends[1, 0] + 1
    wide = biplot.frame(xy, 2.0)
    np.testing.assert_allclose((wide[1] - wide[0])[0], 2.0 * (wide[1] - wide[0])[1])
    assert np.isfinite(biplot.frame(np.zeros((3, 2)))).all()


def test_boxes_are_moved_apart():
    rng = np.random.default_rng(0)
    place, half = rng.normal(size=(12, 2)) * 20.0, np.tile([22.0, 6.0], (12, 1))
    moved = biplot.apart(place, half)
    for i in range(12):
        for j in range(i):
            assert (np.abs(moved[i] - moved[j]) >= half[i] + half[j] - 1e-6).any()


@pytest.mark.long
def test_names_of_many_classes_and_of_arrows_do_not_overlap():
    rng = np.random.default_rng(0)
    code = np.repeat(np.arange(12), 6)
    centre = rng.normal(size=(12, 8))
    df = pd.DataFrame(centre[code] + rng.normal(size=(72, 8)))
    df = df.add_prefix("a measurement of length ").assign(y=[f"class {k}" for k in code])
    call = {"gamma": 4.0, "n_starts": 2, "threads": 1, "control": {"calibrate": False}}
    ax = ld.melm("y ~ .", df, **call).plot()
    ax.figure.canvas.draw()
    names = [t for t in ax.texts if t.get_text().startswith(("class", "a meas"))]
    assert len(names) == 20
    boxes = [t.get_window_extent() for t in names]
    # Half a letter is left: sizes are guessed by the number of letters.
    shared = [Bbox.intersection(a, b) for i, a in enumerate(boxes) for b in boxes[:i]]
    assert max((b.width * b.height for b in shared if b is not None), default=0.0) < 30.0


def test_of_more_classes_than_colours_none_looks_like_another():
    looks = [class_style(k) for k in range(40)]
    assert len({(look["color"], look["marker"]) for look in looks}) == 40


def test_rows_far_outside_are_counted(fits, wine):
    far = wine.assign(alcohol=wine["alcohol"].where(wine.index > 0, 500.0))
    ax = fits[2].plot(data=far)
    assert any("outside the plot" in text for text in texts(ax))
