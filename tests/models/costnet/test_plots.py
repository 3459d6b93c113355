"""Plots of costnet: what is drawn where, read back from the Axes."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.models.costnet import diagram
from lodim.report.tables import significant
from models.costnet.test_fit import ASKED, COSTS, DEPENDS, KINDS, fit_of, patients

pyplot = pytest.importorskip("matplotlib.pyplot")
kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def texts(ax):
    return [text.get_text() for text in ax.texts]


def boxes(ax):
    """Left, right, bottom, top of every box with its text."""
    found = {}
    for bar, text in zip(ax.patches, ax.texts, strict=True):
        x, y, w, h = bar.get_x(), bar.get_y(), bar.get_width(), bar.get_height()
        assert x < text.get_position()[0] < x + w and y < text.get_position()[1] < y + h
        found[text.get_text()] = (x, x + w, y, y + h, bar)
    return found


@kinds
@pytest.mark.parametrize("plot", ["cost", "path", "graph"])
def test_plots_draw_on_the_axes_they_are_given(kind, plot, axes):
    fit = fit_of(kind)
    assert fit.plot(plot, axes) is axes
    axes.figure.canvas.draw()
    own = fit.plot(plot)
    assert own is not axes and (plot == "graph" or own.get_xlabel())
    own.figure.canvas.draw()


def test_cost_shows_every_model_and_what_is_held_out():
    fit = fit_of("gaussian")
    ax, frame = fit.plot(), fit.prices()
    points = np.concatenate([c.get_offsets() for c in ax.collections if len(c.get_offsets())])
    expected = np.column_stack([frame["cost"], 100 * frame["dev_ratio"]])
    assert all(np.abs(points - one).sum(axis=1).min() < 1e-9 for one in expected)
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert set(frame["rule"]) <= set(words)
    assert "held out, one standard error" in words
    assert f"used by predict(): {significant(fit.cost)}" in words
    steps = ax.lines[0]
    np.testing.assert_array_equal(steps.get_xdata()[:-1], frame["cost"])
    assert steps.get_drawstyle() == "steps-post"
    held = next(c for c in ax.containers if c.get_label().startswith("held out"))
    mean = 1 - fit.selection["mean"] / fit.null_deviance
    np.testing.assert_allclose(held.lines[0].get_ydata(), 100 * mean)
    control = {"criterion": "hq"}  # and a budget: nothing is held out
    alone = ld.costnet("y ~ .", patients(), **ASKED, budget=4, control=control).plot()
    assert "held out, one standard error" not in [
        text.get_text() for text in alone.get_legend().get_texts()
    ]


def test_cost_may_be_logarithmic():
    fit = fit_of("gaussian")
    cost = fit.prices()["cost"].to_numpy()
    ax = fit.plot("cost", log=True)
    ax.figure.canvas.draw()
    assert ax.get_xscale() == "symlog" and fit.plot("cost").get_xscale() == "linear"
    at = ax.transData.transform(np.column_stack([cost, np.zeros(len(cost))]))[:, 0]
    assert (np.diff(at) > 0).all() and at[0] > ax.bbox.x0 and at[-1] < ax.bbox.x1
    paid = cost > 0  # above the lowest price equal ratios have equal room
    room, ratio = np.diff(at[paid]), np.diff(np.log(cost[paid]))
    np.testing.assert_allclose(room / ratio, (room / ratio)[0], rtol=1e-6)
    fit.at(0).plot("cost", log=True).figure.canvas.draw()


@kinds
def test_path_shows_the_penalized_coefficients(kind):
    fit = fit_of(kind)
    ax, frame = fit.plot("path", top=4), fit.path()
    lines = [line for line in ax.lines if len(line.get_xdata()) == len(frame)]
    assert len(lines) == len(fit.design.names) * fit.family.n_scores
    drawn = np.array([line.get_ydata() for line in lines])
    coef = fit.estimates.path.coef[::-1].transpose(2, 1, 0).reshape(len(lines), -1)
    np.testing.assert_allclose(drawn, coef)
    assert len(texts(ax)) == 4
    above = next(c for c in ax.child_axes if c.get_xlabel() == "Df, cost")
    shown = [label.get_text() for label in above.get_xticklabels()]
    known = {
        f"{df}\n{significant(cost, 3)}" for df, cost in zip(frame["df"], frame["cost"], strict=True)
    }
    assert shown and set(shown) <= known
    assert ax.xaxis_inverted()


def test_graph_shows_prices_edges_and_what_is_bought():
    fit = fit_of("gaussian").at(8)
    ax = fit.plot("graph")
    ax.figure.canvas.draw()
    found = boxes(ax)
    expected = {f"{name} · {significant(float(cost))}" for name, cost in COSTS.items()}
    assert set(found) == expected | {"one for bp"}
    bought = set(fit.bought().index)
    for name, cost in COSTS.items():
        bar = found[f"{name} · {significant(float(cost))}"][-1]
        assert (bar.get_linewidth() > 1) == (name in bought), name
    for child, parents in DEPENDS.items():
        for parent in parents:
            text = (
                "one for bp"
                if parent == "bp"
                else f"{parent} · {significant(float(COSTS[parent]))}"
            )
            own = found[f"{child} · {significant(float(COSTS[child]))}"]
            ends = [(line.get_xdata()[[0, -1]], line.get_ydata()[[0, -1]]) for line in ax.lines]
            assert any(
                x[0] == found[text][1] and x[1] == own[0]
                and found[text][2] < y[0] < found[text][3] and own[2] < y[1] < own[3]
                for x, y in ends
            ), (parent, child)  # fmt: skip
    places = list(found.values())
    for k, one in enumerate(places):
        for other in places[:k]:
            apart = (
                one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]
            )
            assert apart


def test_graph_colours_follow_the_frontier():
    fit = fit_of("gaussian")
    ax = fit.plot("graph")
    found, network = boxes(ax), fit.settings.network
    first = {}
    for cost in fit.prices()["cost"][::-1]:
        for name in fit.at(cost).bought().index:
            first[name] = cost
    colours: dict = {}
    for name, cost in first.items():
        colour = found[f"{name} · {significant(float(COSTS[name]))}"][-1].get_facecolor()
        assert colours.setdefault(cost, colour) == colour
    assert len(set(colours.values())) == len(colours)
    never = set(network.names) - set(first)
    greys = {found[f"{n} · {significant(float(COSTS[n]))}"][-1].get_facecolor() for n in never}
    assert len(greys) <= 1 and not greys & set(colours.values())
    bar = next(a for a in ax.figure.axes if a is not ax)
    assert bar.get_ylabel() == "price of the first model with the item"


def many(p=150, n=120):
    """30 signals, with four things computed from each."""
    rng = np.random.default_rng(0)
    depends_on, costs, names = {}, {}, []
    for b in range(p // 5):
        base = f"signal {b} with quite a long name, in mmol/l"
        costs[base] = 1 + b % 5
        names.append(base)
        for d in range(4):
            child = f"{base}, operation {d}"
            names.append(child)
            costs[child] = 1
            depends_on[child] = [base] if d else [base, names[0]] if b else [base]
    df = pd.DataFrame(rng.normal(size=(n, p)), columns=names)
    df["y"] = df[names[0]] + df[names[8]] - df[names[33]] + rng.normal(size=n)
    return df, {"costs": costs, "depends_on": depends_on}


@pytest.mark.long
def test_many_features_and_long_names():
    df, asked = many()
    fit = ld.costnet("y ~ .", df, **asked, budget=30, n_lambda=10,
                     control={"criterion": "deviance"})  # fmt: skip
    ax = fit.plot("graph", most=12)
    ax.figure.canvas.draw()
    assert len(boxes(ax)) == 12 and "138 more items are not" in ax.get_title().replace("\n", " ")
    assert max(map(len, texts(ax))) < 35
    shown = {text.split(" · ")[0] for text in texts(ax)}
    assert len(shown) == 12  # long names stay apart
    in_models = set().union(*(fit.at(cost).bought().index for cost in fit.prices()["cost"]))
    all_bought = fit.plot("graph", most=149)
    assert len(boxes(all_bought)) == len(in_models)
    assert f"{150 - len(in_models)} more items are in no" in all_bought.get_title().replace(
        "\n", " "
    )
    assert len(boxes(fit.plot("graph", most=150))) == 150
    for plot in ("cost", "path"):
        fit.plot(plot).figure.canvas.draw()
    inside = ax.get_window_extent()
    for bar, text in zip(ax.patches, ax.texts, strict=True):
        room, size = bar.get_window_extent(), text.get_window_extent()
        assert size.x0 >= room.x0 and size.x1 <= room.x1, text.get_text()
        assert inside.x0 <= room.x0 and room.x1 <= inside.x1


@pytest.mark.long
def test_one_model_only():
    df = pd.DataFrame({"x": [1.0, 2, 3, 4, 5, 6], "y": [2.0, 1, 3, 1, 2, 2]})
    fit = ld.costnet("y ~ x", df, budget=0)
    for plot in ("cost", "path", "graph"):
        fit.plot(plot).figure.canvas.draw()
    assert texts(fit.plot("graph")) == ["x · 1"]
    low, high = fit.plot("cost").get_ylim()
    assert low < 0 and high > 50  # not a magnified zero


def test_nothing_to_draw():
    none = ld.costnet("y ~ 1", {"y": [1.0, 2.0, 4.0]}, budget=1)
    for plot in ("graph", "path"):
        with pytest.raises(ld.ArgumentError, match=r"no item with a price|no features"):
            none.plot(plot)


@pytest.mark.parametrize("seed", range(20))
def test_no_two_nodes_share_a_place(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    parents = [tuple(u for u in range(v) if rng.random() < 0.08) for v in range(n)]
    layer, height = diagram.places(parents, rng.permutation(n))
    assert all(layer[v] > layer[u] for v in range(n) for u in parents[v])
    for v in range(n):
        for u in range(v):
            assert layer[u] != layer[v] or abs(height[u] - height[v]) >= 1 - 1e-9


@pytest.mark.long
def test_cv_plot_is_over_cost():
    cv = ld.cv(ld.costnet, "y ~ .", patients(n=100), **ASKED, folds=3)
    ax = cv.plot()
    assert ax.get_xlabel() == "budget" and not ax.xaxis_inverted()
    assert ax.get_xlim()[0] <= 0 and ax.get_xlim()[1] >= cv.tidy()["budget"].max()
