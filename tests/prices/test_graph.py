"""What a user says of prices and dependencies, and the network that comes of it."""

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.design.design import Design
from lodim.models.costnet.settings import Settings
from lodim.prices import parse
from lodim.prices.build import (
    Graph,
    _in_order,
    derived_names,
    make_network,
    unused_prices,
)

COSTS = {"hr": 1, "slope": 0.5, "bp_inv": 5, "bp_cuff": 2, "trend": 0.25, "arm": 0}
DEPENDS = {"slope": "hr", "trend": ["slope", "bp"]}
SERIES = {"bp": ["bp_inv", "bp_cuff"]}


def data(n=30):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 5)), columns=list(COSTS)[:5])
    return frame.assign(arm=rng.choice(list("abc"), n), y=rng.normal(size=n))


def asked(**changes):
    arguments = {
        "costs": None, "depends_on": None, "alternatives": None, "budget": None, "lambda_": None,
        "lambdas": None, "n_lambda": 100, "lambda_min_ratio": None, "l1_ratio": 1.0, "relax": 1.0,
        "rules": ("group",), "dependents": "all", "solver": "auto", "seed": 0, "threads": None,
    }  # fmt: skip
    return Settings(**arguments | changes)


def made(formula="y ~ .", **changes):
    design, batch = Design.learn(formula, data())
    return design, make_network(design, asked(**changes), batch.columns)


def said(net):
    """Each node as (name, price, names of parents, columns)."""
    return [
        (net.names[v], net.cost[v], tuple(net.names[u] for u in net.parents[v]), net.columns[v])
        for v in range(len(net))
    ]


# The formula -------------------------------------------------------------------------------------


def test_columns_cost_one_and_categories_are_one_node():
    design, net = made()
    assert design.names[5:] == ("arm[a]", "arm[b]", "arm[c]")
    assert said(net)[5] == ("arm", 1.0, (), (5, 6, 7))
    assert net.names == tuple(COSTS) and (net.cost == 1).all()
    assert net.price(np.ones(6, bool)) == 6.0


def test_terms_depend_on_their_columns_and_cost_nothing_more():
    formula = "y ~ hr + I(hr**2) + bs(trend, df=4) + hr:arm + np.log(bp_inv + 9):arm"
    design, net = made(formula)
    nodes = {name: rest for name, *rest in said(net)}
    assert nodes["I(hr ** 2)"] == [0.0, ("hr",), (1,)]
    assert nodes["bs(trend, df=4)"] == [0.0, ("trend",), (2, 3, 4, 5)]
    assert nodes["hr:arm"][:2] == [0.0, ("hr", "arm")]
    assert nodes["np.log(bp_inv + 9):arm"][:2] == [0.0, ("bp_inv", "arm")]
    assert nodes["trend"] == [1.0, (), ()]  # bought for its spline, not itself in the model
    assert derived_names(design) == {
        "I(hr ** 2)", "bs(trend, df=4)", "hr:arm", "np.log(bp_inv + 9):arm", "np.log(bp_inv + 9)"
    }  # fmt: skip
    owned = sorted(j for columns in net.columns for j in columns)
    assert owned == list(range(len(design.names)))


def test_a_term_with_a_price_is_bought_for_those_that_are_made_of_it():
    costs = {"bp_inv": 5, "arm": 0, "np.log(bp_inv+9)": 0.5}
    _, net = made("y ~ np.log(bp_inv + 9):arm", costs=costs)
    nodes = {name: rest for name, *rest in said(net)}
    assert nodes["np.log(bp_inv + 9)"] == [0.5, ("bp_inv",), ()]
    assert nodes["np.log(bp_inv + 9):arm"][1] == ("np.log(bp_inv + 9)", "arm")
    assert net.price(np.array([n.endswith(":arm") for n in net.names])) == 5.5


# What the user gives -----------------------------------------------------------------------------


def test_prices_in_any_form_are_the_same():
    table = pd.DataFrame({"what": list(COSTS), "price": list(COSTS.values())})
    forms = [COSTS, pd.Series(COSTS), table, table[["price", "what"]], list(COSTS.items())]
    assert {parse.costs(form) for form in forms} == {tuple((k, float(v)) for k, v in COSTS.items())}
    assert parse.costs(parse.costs(COSTS)) == parse.costs(COSTS)


@pytest.mark.long
def test_dependencies_in_any_form_are_the_same():
    networkx = pytest.importorskip("networkx")
    edges = [("hr", "slope"), ("slope", "trend"), ("bp_cuff", "trend")]
    table = pd.DataFrame(edges, columns=["parent", "child"])
    forms = [
        {"slope": "hr", "trend": ["slope", "bp_cuff"]}, table,
        table.set_axis(["from", "to"], axis=1), networkx.DiGraph(edges),
        [("slope", ("hr",)), ("trend", ("slope", "bp_cuff"))],
    ]  # fmt: skip
    expected = {"slope": {"hr"}, "trend": {"slope", "bp_cuff"}}
    for form in forms:
        assert {child: set(p) for child, p in parse.depends_on(form)} == expected
    assert parse.depends_on(None) == () == parse.alternatives(None)


def test_polars_tables_are_read():
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"name": ["a", "b"], "price": [1.0, 2.5]})
    assert parse.costs(table) == (("a", 1.0), ("b", 2.5))
    assert parse.depends_on(polars.DataFrame({"parent": ["a"], "child": ["b"]})) == (("b", ("a",)),)


def test_numbers_of_other_kinds_are_prices():
    found = parse.costs({"a": Decimal("0.1"), "b": Fraction(1, 4), "c": np.float32(0.5)})
    assert found == (("a", 0.1), ("b", 0.25), ("c", 0.5))
    with pytest.raises(ld.ArgumentError, match="Decimal"):
        parse.costs({"a": Decimal("NaN")})
    _, net = made("y ~ hr + slope", costs=lambda names: Fraction(len(names), 2))
    assert net.price(np.ones(2, bool)) == 1.0


def test_a_series_says_what_needs_what():
    needs = pd.Series({"slope": "hr", "arm": None, "hr": np.nan, "trend": ["slope", "bp_cuff"]})
    assert parse.depends_on(needs) == (("slope", ("hr",)), ("trend", ("slope", "bp_cuff")))
    twice = pd.Series(["slope", "bp_cuff"], ["trend", "trend"])
    assert parse.depends_on(twice) == (("trend", ("slope", "bp_cuff")),)
    table = pd.DataFrame({"parent": ["hr", None], "child": ["slope", "arm"]})
    assert parse.depends_on(table) == (("slope", ("hr",)),)
    with pytest.raises(ld.ArgumentError, match="must have names, not nan"):
        parse.depends_on({"slope": ["hr", np.nan]})


def test_what_the_formula_does_not_use_may_wait():
    """Prices and dependencies of one list serve every formula over its columns."""
    costs = COSTS | {"blood draw": 3, "np.log(hr)": 1}
    depends = DEPENDS | {"arm": "blood draw", "np.log(hr)": "hr"}
    for formula, names in [
        ("y ~ hr", {"hr"}), ("y ~ slope", {"hr", "slope"}), ("y ~ bp_inv", {"bp_inv"}),
        ("y ~ arm", {"arm", "blood draw"}),
        ("y ~ trend", {"hr", "slope", "bp_inv", "bp_cuff", "trend"}),
    ]:  # fmt: skip
        settings = {"costs": costs, "depends_on": depends, "alternatives": SERIES}
        _, net = made(formula, **settings)
        assert set(net.names) == names
        assert set(unused_prices(net, asked(**settings))) == set(costs) - names
        # A source is one of a series only where something needs the series.
        assert (net.series >= 0).any() == ("trend" in names)

    _, by_function = made("y ~ hr", costs=lambda names: float(len(names)), depends_on={"arm": "x"})
    assert by_function.names == ("hr",)


def test_what_is_bought_beside_the_columns():
    costs = COSTS | {"blood draw": 3}
    _, net = made(costs=costs, depends_on={"trend": "blood draw", "slope": "blood draw"})
    on = np.isin(net.names, ["trend", "slope"])
    assert net.price(on) == 3 + 0.25 + 0.5  # the draw once


def test_a_parent_is_paid_once_through_chains():
    _, net = made(costs=COSTS, depends_on={"slope": "hr", "trend": "slope", "bp_cuff": "slope"})
    on = np.isin(net.names, ["trend", "bp_cuff"])
    assert net.price(on) == 0.25 + 2 + 0.5 + 1
    assert net.price(np.isin(net.names, ["trend"])) == 0.25 + 0.5 + 1


def test_alternatives_make_copies():
    _, net = made(costs=COSTS, depends_on=DEPENDS, alternatives=SERIES)
    copies = [v for v, name in enumerate(net.names) if name == "trend"]
    assert len(copies) == 2 and len({net.base[v] for v in copies}) == 1
    assert [net.columns[v] for v in copies] == [(4,), (4,)]
    prices = [net.price(np.arange(len(net)) == v) for v in copies]
    assert sorted(prices) == [0.25 + 0.5 + 1 + 2, 0.25 + 0.5 + 1 + 5]
    assert net.price(np.isin(net.names, ["trend"])) == 0.25 + 0.5 + 1 + 2 + 5
    assert {net.names[v] for v in np.flatnonzero(net.series >= 0)} == set(SERIES["bp"])


def test_a_cost_function_sees_columns_and_things_alone():
    asked_for = set()

    def costs(names):
        asked_for.update(names)
        return 2.0 + len(names) ** 0.5 if names else 0.0

    _, net = made("y ~ hr + I(hr**2) + slope", costs=costs, depends_on={"slope": "monitor"})
    assert asked_for == {"hr", "slope", "monitor"}
    assert net.price(np.ones(len(net), bool)) == 2.0 + 3**0.5
    assert net.price(np.isin(net.names, ["I(hr ** 2)"])) == 3.0
    np.testing.assert_array_equal(net.cost[np.isin(net.names, ["I(hr ** 2)"])], 0.0)


@pytest.mark.parametrize("seed", range(60))
def test_order_and_circles(seed):
    """Against networkx: an order where there is one, else a circle that is really there."""
    networkx = pytest.importorskip("networkx")
    rng = np.random.default_rng(seed)
    G = networkx.gnp_random_graph(rng.integers(1, 9), rng.uniform(0, 0.5), seed, directed=True)
    graph = Graph()
    for v in G:
        graph.add(str(v), needs=[str(u) for u in G.predecessors(v)])
    if networkx.is_directed_acyclic_graph(G):
        order = _in_order(graph)
        assert sorted(order) == sorted(map(str, G))
        assert all(order.index(str(u)) < order.index(str(v)) for u, v in G.edges)
        return
    with pytest.raises(ld.ArgumentError, match="circle") as caught:
        _in_order(graph)
    way = str(caught.value).split(": ")[1].split(" -> ")
    assert way[0] == way[-1] and all(G.has_edge(int(b), int(a)) for a, b in pairwise(way))


# Refusals ----------------------------------------------------------------------------------------


def falling(names):
    return 0.0 if len(names) > 1 else float(len(names))


REFUSED = {
    "misspelt in costs": (
        {"costs": {n: c for n, c in COSTS.items() if n != "trend"} | {"trend_": 1}},
        "'trend_' is neither .*did you mean 'trend'",
    ),
    "missing costs": (
        {"costs": {"hr": 1, "slope": 1}},
        "costs lack 'bp_inv', 'bp_cuff', 'trend', 'arm'",
    ),
    "negative cost": (
        {"costs": COSTS | {"hr": -1}},
        "cost of 'hr' must be a number, 0 to 1e.70, not -1",
    ),
    "cost nan": ({"costs": COSTS | {"hr": np.nan}}, "'hr'.*not nan"),
    "cost inf": ({"costs": COSTS | {"hr": np.inf}}, "'hr'.*not inf"),
    "cost text": ({"costs": COSTS | {"hr": "1"}}, "'hr'.*not '1'"),
    "cost none": ({"costs": COSTS | {"hr": None}}, "'hr'.*not None"),
    "cost true": ({"costs": COSTS | {"hr": True}}, "'hr'.*not True"),
    "costs of one number": ({"costs": 3}, "costs must be a dict.*not 3"),
    "costs text": ({"costs": "hr"}, "costs must be a dict.*not 'hr'"),
    "three columns": ({"costs": pd.DataFrame({"a": [1], "b": [1], "c": [1]})}, "two columns"),
    "twice": ({"costs": pd.Series([1, 2], ["hr", "hr"])}, "'hr' occurs twice"),
    "circle": (
        {"depends_on": {"hr": "slope", "slope": "trend", "trend": "hr"}},
        "circle.*: hr -> slope -> trend -> hr",
    ),
    "itself": ({"depends_on": {"hr": ["hr"]}}, "'hr' cannot depend on itself"),
    "unknown parent": ({"depends_on": {"slope": "h"}}, "'h', which 'slope' depends on, is neither"),
    "unknown child": ({"depends_on": {"slop": "hr"}}, "'slop' is neither.*did you mean 'slope'"),
    "price of no term": (
        {"formula": "y ~ . + np.exp(hr)", "costs": COSTS | {"np.exp(h)": 1}},
        r"'np.exp\(h\)' is neither a column.*did you mean 'np.exp\(hr\)'",
    ),
    "thing without a price": (
        {"costs": COSTS, "depends_on": {"slope": "monitor"}},
        "'monitor'.*needs a price",
    ),
    "names once": (
        {"costs": COSTS, "depends_on": {"q": "hr"}},
        "the names are 'hr', 'slope', 'bp_inv', 'bp_cuff', 'trend', 'arm' ",
    ),
    "dependencies text": ({"depends_on": "hr"}, "depends_on must be"),
    "dependencies number": ({"depends_on": {"slope": 3.5}}, "must have names, not 3.5"),
    "table without ends": (
        {"depends_on": pd.DataFrame({"a": [1], "b": [2]})},
        "parent and child.*'a', 'b'",
    ),
    "two series": (
        {"alternatives": {"bp": ["bp_inv", "hr"], "q": ["hr"]}},
        "'hr' must be a source of one series only, not of 'bp' and of 'q'",
    ),
    "series of series": (
        {"alternatives": {"bp": ["q"], "q": ["hr"]}},
        "'q' is a series, and a source of 'bp'",
    ),
    "series is a column": (
        {"alternatives": {"hr": ["bp_inv", "bp_cuff"]}},
        "'hr' is also a column",
    ),
    "series with a price": (
        {"costs": COSTS | {"bp": 1}, "alternatives": SERIES},
        "'bp' is a series.*prices to its sources",
    ),
    "series with parents": (
        {"depends_on": {"bp": "hr"}, "alternatives": SERIES},
        "'bp' is a series.*each source",
    ),
    "idle series": ({"alternatives": SERIES}, "no item depends on 'bp': name it in depends_on"),
    "empty series": ({"alternatives": {"bp": []}}, "'bp' has no source"),
    "unknown source": ({"alternatives": {"bp": ["bp_in"]}}, "'bp_in'.*did you mean 'bp_inv'"),
    "circle through a series": (
        {"depends_on": {"trend": "bp", "bp_inv": "trend"}, "alternatives": SERIES},
        "circle",
    ),
    "parents of no kind": (
        {"depends_on": {"bp": object()}},
        r"depends_on\['bp'\] must be a name or a list of names",
    ),
    "alternatives text": ({"alternatives": "bp"}, "alternatives must be a dict"),
    "function raises": (
        {"costs": lambda s: {}[min(s)] if s else 0},
        r"costs\({'hr'}\) raised KeyError",
    ),
    "function negative": ({"costs": lambda s: -len(s)}, "0 to 1e.70, not -1"),
    "function of nothing": ({"costs": lambda s: 1}, "must be 0, not 1"),
    "function falls": ({"costs": falling}, "costs must not fall"),
    "function falls off the order of the formula": (
        {"costs": lambda s: len(s) - 1.5 * ({"bp_inv", "arm"} <= s < set(COSTS))},
        "as 'arm' is added to {.*'bp_inv'.*}|as 'bp_inv' is added to {.*'arm'.*}",
    ),
    "function gives text": ({"costs": lambda s: str(len(s))}, "a number, 0 to 1e.70, not '0'"),
    "rules of nothing": ({"rules": None}, "rules must be some of.*not None"),
    "rules of a number": ({"rules": 5}, "rules must be some of.*not 5"),
    "rules of what is no text": ({"rules": [["group"]]}, "rules must be some of"),
    "budgets": ({"budget": (1.0, 2.0)}, r"budget must be 0 or more .*, not \(1.0, 2.0\)"),
    "budget": ({"budget": -1}, "budget must be 0 or more"),
    "rules": ({"rules": "best"}, "rules must be some of group, lasso, greedy"),
    "no rules": ({"rules": ()}, "at least one"),
    "lambdas": ({"lambdas": [1, -1]}, "lambdas.*0 or more.*not -1"),
    "lambdas text": ({"lambdas": [0.1, "a"]}, "lambdas must be at least one number.*not 'a'"),
    "n_lambda": ({"n_lambda": 1}, "n_lambda"),
    "ratio": ({"lambda_min_ratio": 1.0}, "lambda_min_ratio must be above 0"),
    "dependents": ({"dependents": "some"}, "dependents must be one of all, direct"),
    "solver": ({"solver": "magic"}, "solver must be one of auto, cvxpy"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    changes, words = REFUSED[case]
    with pytest.raises(ld.ArgumentError, match=words):
        made(**changes)


def test_too_many_copies_are_refused():
    names = [f"x{k}" for k in range(32)]
    design, _ = Design.learn("y ~ .", {name: [1.0, 2.0, 4.0] for name in [*names, "z", "y"]})
    series = {f"s{k}": names[2 * k : 2 * k + 2] for k in range(16)}
    with pytest.raises(ld.ArgumentError, match="65,568 copies"):
        make_network(design, asked(depends_on={"z": list(series)}, alternatives=series), ())


def test_a_graph_without_directions_is_refused():
    networkx = pytest.importorskip("networkx")
    with pytest.raises(ld.ArgumentError, match="directed edges"):
        parse.depends_on(networkx.Graph([("a", "b")]))


def test_names_are_those_of_the_formula_whatever_their_blanks():
    changes = {"costs": dict.fromkeys(COSTS, 1.0) | {"I(arm)": 1.0, "np.exp( hr )": 2.0}}
    _, net = made("y ~ . + np.exp(hr)", **changes, depends_on={"np.exp( hr )": "slope"})
    assert ("np.exp(hr)", 2.0) in [one[:2] for one in said(net)]
