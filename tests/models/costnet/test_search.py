"""The frontier of costnet: refits, rules and budgets against naive references."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st

from lodim.design.batch import Batch
from lodim.engine import tiles
from lodim.family import Binomial, Gaussian, Huber, Multinomial, Quantile, losses
from lodim.models.costnet.estimate import fit_stages
from lodim.models.costnet.penalty.problem import PenaltyPath
from lodim.models.costnet.search import rows, rules, sweep
from lodim.models.costnet.search.candidates import (
    CRITERIA,
    Criterion,
    SearchSpace,
    affordable,
    with_free_columns,
)
from lodim.models.costnet.search.frontier import MIN_IMPROVEMENT, CostFrontier, select_frontier
from lodim.models.costnet.search.moves import Search, local_search
from lodim.models.costnet.search.refit import Quadratic, Refits
from lodim.models.costnet.search.rows import SearchData
from lodim.models.costnet.settings import RULES
from lodim.prices.network import unfold
from models.costnet.exhaustive import exhaustive
from models.costnet.members import members_of


def batch_of(X, y, weights=None, offset=None):
    n = len(y)
    return Batch(
        tiles.pack(np.asarray(X, float)), np.asarray(y, float), weights, offset,
        pd.RangeIndex(n), np.arange(n),
    )  # fmt: skip


def standard(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def plain(p, cost=None, parents=None):
    """A network of a node a column."""
    return unfold(
        [f"x{j}" for j in range(p)], np.ones(p) if cost is None else cost,
        parents or [()] * p, [(j,) for j in range(p)],
    )  # fmt: skip


def chains(seed, n=300, p=12, family="gaussian", cost=None):
    """Chains of three, correlated columns: batch, network."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    for j in range(p):
        if j % 3:
            X[:, j] += 0.8 * X[:, j - 1]
    X = standard(X)
    score = X[:, [1, 5, min(9, p - 2)]] @ [1.0, -0.8, 0.5] + 0.4 * X[:, 0]
    if family == "gaussian":
        y = score + rng.normal(size=n)
    else:
        y = (rng.random(n) < 1.0 / (1.0 + np.exp(-score))).astype(float)
    parents = [(j - 1,) if j % 3 else () for j in range(p)]
    return batch_of(X, y), plain(p, cost, parents)


def matrix(batch):
    return tiles.unpack(batch.X, batch.n)


def naive_price(network, used):
    """By walking the parents."""
    paid, todo = set(), [int(v) for v in np.flatnonzero(used)]
    while todo:
        v = todo.pop()
        paid.add(v)
        todo += network.parents[v]
    return sum(network.cost[b] for b in {int(network.base[v]) for v in paid})


def every_subset(m):
    return (np.arange(2**m)[:, None] >> np.arange(m)) & 1 > 0


def greedy_frontier(search):
    return select_frontier(search, rules.forward_selection(search))


# Refits ---------------------------------------------------------------------------------------


def test_gaussian_refits_are_weighted_least_squares():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 6)), rng.normal(size=200)
    weights, offset = rng.uniform(0.0, 3.0, 200), rng.normal(size=200)
    refits = Refits(SearchData.from_batch(batch_of(X, y, weights, offset), Gaussian()))
    for on in ([0], [1, 4], [0, 2, 3, 5]):
        fit = refits(np.array(on))
        A = np.column_stack([np.ones(200), X[:, on]]) * np.sqrt(weights)[:, None]
        expected = np.linalg.lstsq(A, (y - offset) * np.sqrt(weights), rcond=None)[0]
        np.testing.assert_allclose(np.append(fit.intercept, fit.coef), expected, atol=1e-7)
        rest = y - offset - expected[0] - X[:, on] @ expected[1:]
        assert fit.deviance == pytest.approx(weights @ rest**2 / weights.sum(), rel=1e-9)


@pytest.mark.long
def test_gaussian_refits_of_many_tiles():
    """More rows than a block, float32 tiles: the Gram matrix is summed in float64."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(9000, 3)).astype(np.float32)
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=9000)
    batch = replace(batch_of(X, y), X=tiles.pack(X, np.float32))
    fit = Refits(SearchData.from_batch(batch, Gaussian()))(np.array([0, 2]))
    A = np.column_stack([np.ones(9000), X[:, [0, 2]].astype(float)])
    expected = np.linalg.lstsq(A, y, rcond=None)[0]
    np.testing.assert_allclose(np.append(fit.intercept, fit.coef), expected, atol=1e-8)


def test_collinear_columns_share_their_coefficient():
    rng = np.random.default_rng(2)
    x = rng.normal(size=100)
    X = np.column_stack([x, x, np.zeros(100)])
    refits = Refits(SearchData.from_batch(batch_of(X, 3.0 * x), Gaussian()))
    fit = refits(np.arange(3))
    np.testing.assert_allclose(fit.coef[:, 0], [1.5, 1.5, 0.0], atol=1e-4)
    assert fit.deviance < 1e-8


def test_binomial_refits_agree_with_statsmodels():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 5))
    weights, offset = rng.integers(0, 4, 300).astype(float), 0.5 * rng.normal(size=300)
    y = (rng.random(300) < 1.0 / (1.0 + np.exp(-X[:, 0] + X[:, 3] - offset))).astype(float)
    refits = Refits(SearchData.from_batch(batch_of(X, y, weights, offset), Binomial()))
    on = np.array([0, 2, 3])
    peer = sm.GLM(
        y, sm.add_constant(X[:, on]), family=sm.families.Binomial(), offset=offset,
        freq_weights=weights,
    ).fit(tol=1e-12)  # fmt: skip
    fit = refits(on)
    np.testing.assert_allclose(np.append(fit.intercept, fit.coef), peer.params, atol=2e-5)
    assert fit.deviance == pytest.approx(peer.deviance / weights.sum(), rel=1e-8)


@pytest.mark.parametrize("scale", [1.0, 1e5])
@pytest.mark.parametrize("family", [Quantile(0.99), Huber(1e-3)])
def test_refits_end_at_the_minimum_where_few_rows_are_curved(family, scale):
    rng = np.random.default_rng(68)
    X = rng.normal(size=(60, 8))
    y = scale * np.exp(2.0 * np.tanh(X[:, 0]) + X[:, 1] + rng.normal(size=60))
    family = family.per(1.0 / scale)
    refits = Refits(SearchData.from_batch(batch_of(X, y), family))
    loss = family.kernel_loss(y, np.full(60, 1.0 / 60))
    for on in (np.arange(3), np.arange(8)):
        fit = refits(on)
        score = fit.intercept + X[:, on] @ fit.coef[:, 0]
        _, slope, _ = losses.rows(loss, y, score, np.full(60, 1.0 / 60))
        gradient = np.column_stack([np.ones(60), X[:, on]]).T @ slope
        assert np.abs(gradient).max() < 1e-5 * np.abs(slope).sum()


def test_refits_that_start_close_to_their_end_go_there():
    rng = np.random.default_rng(7)
    X = np.exp(1.5 * rng.normal(size=(400, 40)))  # rows of high leverage: slopes bend fast
    y = (rng.random(400) < 1.0 / (1.0 + np.exp(1.0 - 0.4 * X[:, 0]))).astype(float)
    data = SearchData.from_batch(batch_of(X, y), Binomial())
    refits = Refits(data)
    refits(np.arange(4))
    for j in range(4, 40):  # columns of noise move the others a little
        on = np.array([0, 1, 2, 3, j])
        fit, alone = refits(on), Refits(data)(on)
        np.testing.assert_allclose(fit.coef, alone.coef, rtol=0.0, atol=1e-8)


def test_multinomial_refits_agree_with_statsmodels():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 4))
    score = np.column_stack([X[:, 0], X[:, 1], -X[:, 0] + 0.3])
    y = (score + rng.gumbel(size=score.shape)).argmax(axis=1).astype(float)
    refits = Refits(SearchData.from_batch(batch_of(X, y), Multinomial(3)))
    on = np.array([0, 1, 3])
    fit = refits(on)
    peer = sm.MNLogit(y, sm.add_constant(X[:, on])).fit(disp=0, method="newton", tol=1e-10)
    mine = np.vstack([fit.intercept, fit.coef])
    np.testing.assert_allclose(mine[:, 1:] - mine[:, :1], peer.params, atol=1e-4)
    np.testing.assert_allclose(mine[1:].sum(axis=1), 0.0, atol=1e-8)
    assert fit.deviance == pytest.approx(-2.0 * peer.llf / 400, rel=1e-8)


@pytest.mark.parametrize("classes", [2, 3])
def test_separated_classes_end_finite(classes):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 3))
    y = np.digitize(X[:, 0], [-0.4, 0.4][: classes - 1]).astype(float)
    family = Binomial() if classes == 2 else Multinomial(classes)
    fit = Refits(SearchData.from_batch(batch_of(X, y), family))(np.arange(3))
    assert np.isfinite(fit.coef).all() and np.abs(fit.coef).max() < 1e4
    assert 0.0 < fit.deviance < 0.02


@pytest.mark.parametrize("family", [Gaussian(), Binomial(), Multinomial(3)])
def test_the_quadratic_at_a_refit_has_its_minimum_there(family):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(200, 5))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(float) + (X[:, 1] > 1.0)
    y = y if family.name == "multinomial" else np.minimum(y, 1.0)
    refits = Refits(SearchData.from_batch(batch_of(X, y), family))
    on = np.array([0, 1, 4])
    at = refits.quadratic(on)
    best = np.linalg.solve(at.gram[np.ix_(on, on)], at.target[on])
    np.testing.assert_allclose(best, refits(on).coef, atol=1e-5)


# Exchanges ------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [Binomial(), Multinomial(3)])
def test_a_sample_is_where_refits_of_all_rows_start(family, monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((2560, 4))
    y = rng.binomial(max(1, family.n_scores - 1), 1.0 / (1.0 + np.exp(-X @ [1.0, -1.0, 0.5, 0.0])))
    monkeypatch.setattr("lodim.models.costnet.search.rows.MOST_ROWS", 1280)
    data = SearchData.from_batch(batch_of(X, y), family)
    own = Refits(data)
    near = Refits(data, warm_start=Refits(data.sample()))
    assert near.warm_start.data.X.shape[0] == 20 < data.X.shape[0]
    steps, work = [], SearchData.at_model

    def counted(self, theta, on, curvatures=0, least=None):
        steps.append((curvatures > 0, len(self.X)))
        return work(self, theta, on, curvatures, least)

    monkeypatch.setattr(SearchData, "at_model", counted)
    on = np.array([0, 1, 3])
    first = own(on)
    alone = steps.count((True, len(data.X)))
    second = near(on)
    assert 0 < steps.count((True, len(data.X))) - alone < alone
    coef, intercept = second.coef - first.coef, second.intercept - first.intercept
    shift = (
        np.ptp(intercept) if len(intercept) > 1 else abs(intercept[0])
    )  # of classes a common one
    assert np.abs(coef).max() < 1e-5 and shift < 1e-5
    direct = data.deviance(second.intercept, on, second.coef)
    assert second.deviance == pytest.approx(direct, rel=1e-12)


def lists(sets):
    start = np.cumsum([0, *map(len, sets)])
    return sweep.ColumnSets(start, np.array([k for found in sets for k in found], np.int64))


@pytest.mark.long
@given(seed=st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_gains_of_exchanges_are_those_of_least_squares(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 8))
    X[:, 7] = X[:, 0] - X[:, 1]  # determined by others: brings nothing beside them
    Y = rng.normal(size=(60, 2))

    def rss(on):
        on = sorted(on)
        return ((Y - X[:, on] @ np.linalg.lstsq(X[:, on], Y, rcond=None)[0]) ** 2).sum()

    on = set(rng.choice(7, 3, replace=False).tolist())
    gram, target, variance = X.T @ X, X.T @ Y, (X**2).sum(axis=0)
    before = gram.copy()
    inside = sweep.enter(gram, target, variance, np.array(sorted(on)))
    rest = sorted(set(range(8)) - on)
    going = [[], [min(on)], sorted(on)[:2]]
    coming = [[], [rest[0]], rest[:2], rest[-2:], rest]
    model = sweep.SweptModel(gram, target, variance, inside)
    allowed, sign = np.ones((3, 5), bool), np.zeros(8, np.int64)
    gain, rank = sweep.gains(model, lists(going), lists(coming), allowed, sign)
    for (a, out), (b, new) in product(enumerate(going), enumerate(coming)):
        after = on - set(out) | set(new)
        assert gain[a, b] == pytest.approx(rss(on) - rss(after), abs=1e-8)
        size = np.linalg.matrix_rank(X[:, sorted(after)]) if after else 0
        assert rank[a, b] == size - len(on)
    for k in sorted(on):
        sweep.sweep(gram, target, k)
    np.testing.assert_allclose(gram, before, atol=1e-9)


def with_series():
    """bp by two sources at 3 and 1, two dependants of bp (one of the other), and a free column."""
    return unfold(
        ["inv", "cuff", "mean", "slope", "hr", "sum"], [3.0, 1.0, 0.5, 0.5, 1.0, 0.0],
        [(), (), (), (2,), (), (4, 2)], [(j,) for j in range(6)],
        sources=((0, 1),), uses=((), (), (0,), (), (), ()),
    )  # fmt: skip


@pytest.mark.parametrize("network", [plain(6, np.arange(6.0), [(), (0,), (1,), (0,), (2, 3), ()]),
                                     with_series()])  # fmt: skip
def test_a_market_has_the_networks_prices(network):
    """A parent is paid once, through chains and by two ways."""
    market, rng = SearchSpace(network), np.random.default_rng(0)
    used = rng.random((40, len(market))) < 0.3
    for row, with_each in zip(used, market.prices_with(used), strict=True):
        assert market.price(row) == pytest.approx(naive_price(network, market.nodes(row)))
        for g, price in enumerate(with_each):
            more = row | (np.arange(len(market)) == g)
            assert price == pytest.approx(naive_price(network, market.nodes(more)))


def test_a_chain_is_paid_once():
    market = SearchSpace(plain(3, [1.0, 10.0, 100.0], [(), (0,), (1,)]))
    assert market.price(np.array([False, False, True])) == 111.0
    assert market.price(np.array([True, True, True])) == 111.0


def test_a_market_holds_what_the_budget_pays_for_by_itself():
    market = SearchSpace(plain(3, [1.0, 1.0, 1.0], [(), (0,), (1,)]), budget=2.0)
    assert market.candidates.tolist() == [0, 1]


def test_columns_of_no_node_are_free():
    network = with_free_columns(plain(2), 4)
    assert network.columns[2:] == ((2,), (3,)) and network.cost[2:].tolist() == [0.0, 0.0]
    assert SearchSpace(network).price(np.array([True, False, True, True])) == 1.0


def test_polish_improves_within_the_price():
    batch, network = chains(0)
    search = Search(batch, Gaussian(), network, np.inf, "bic")
    start = search.state(np.arange(12) % 4 == 3)
    steps = local_search(search, start, start.price)
    values = [start.value, *(s.value for s in steps)]
    assert len(steps) and (np.diff(values) < 0).all()
    assert all(affordable(s.price, start.price) for s in steps)


# The frontier -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_a_frontier_is_what_it_says(family):
    batch, network = chains(1, family=family)
    made = {"gaussian": Gaussian(), "binomial": Binomial()}[family]
    search = Search(batch, made, network, np.inf, "bic")
    rungs = greedy_frontier(search)
    found = CostFrontier.from_candidates(search, network, rungs)
    assert len(found) > 4 and found.cost[0] == 0.0 and found.rule[0] == "null"
    assert (np.diff(found.cost) > 0).all()
    assert (np.diff(found.criterion) < -MIN_IMPROVEMENT).all()
    X = matrix(batch)
    for k in range(len(found)):
        score = found.intercept[k] + X @ found.coef[k]
        assert found.deviance[k] == pytest.approx(batch.weight @ made.deviance(batch.y, score))
        on = found.coef[k].any(axis=1)
        assert found.df[k] == on.sum() and found.bought[k][on].all()
        assert found.cost[k] == pytest.approx(naive_price(network, found.bought[k]))
        charge = np.log(300) * on.sum()
        fit = found.deviance[k] if family == "binomial" else np.log(found.deviance[k])
        assert found.criterion[k] == pytest.approx(300 * fit + charge)
    assert found.index_within(-1.0) == 0 and found.index_within(np.inf) == len(found) - 1
    assert found.index_within(found.cost[3]) == 3 and found.index_within(found.cost[3] - 0.01) == 2


def test_criteria():
    batch, _ = chains(2)
    data = SearchData.from_batch(batch, Gaussian())
    charges = [Criterion(name, data, 1.0, 40).charge for name in CRITERIA[1:]]
    hq, bic, ebic = 2.0 * np.log(np.log(300)), np.log(300), 2.0 * np.log(40)
    np.testing.assert_allclose(charges, [0.0, 2.0, hq, bic, ebic])
    narrow = Criterion("ebic", data, 1.0, 12)
    assert narrow.charge == np.log(300)


def test_free_riders_are_left_out():
    """What costs nothing more is used where it pays, not because it is free."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 12))
    X[:, 1] += X[:, 0]
    X = standard(X)
    y = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=400)
    network = plain(12, [1.0] + [0.0] * 11, [()] + [(0,)] * 11)
    batch = batch_of(X, y)
    used = [
        set(np.flatnonzero(greedy_frontier(search)[-1].state.used))
        for search in (
            Search(batch, Gaussian(), network, np.inf, name) for name in ("ebic", "deviance")
        )
    ]  # fmt: skip
    assert used == [{0, 1}, set(range(12))]


@pytest.mark.long
@pytest.mark.parametrize("name, mean, worst", [("deviance", 0.999, 0.995), ("ebic", 0.998, 0.98)])
def test_the_frontier_is_near_the_exhaustive_optimum(name, mean, worst):
    ratios = []
    for seed in range(6):
        cost = np.ones(14) if seed % 2 else np.random.default_rng(seed).uniform(0.3, 3.0, 14)
        batch, network = chains(seed, n=812, p=14, cost=cost)
        for share in (0.25, 0.5):
            budget = share * cost.sum()
            search = Search(batch, Gaussian(), network, budget, name)
            null, best = search.refits.null.deviance, exhaustive(search, budget)
            rungs = greedy_frontier(search)
            assert all(affordable(c.state.price, budget) for c in rungs)
            ratios.append((null - rungs[-1].state.deviance) / (null - best.deviance))
    assert np.mean(ratios) >= mean and min(ratios) >= worst and max(ratios) <= 1.0 + 1e-9


def test_a_group_of_columns_is_bought_together():
    """The levels of a category: one node, one price, all columns or none."""
    rng = np.random.default_rng(7)
    level = rng.integers(0, 4, 300)
    X = np.column_stack([level[:, None] == [1, 2, 3], rng.normal(size=(300, 2))])
    y = np.array([0.0, 1.0, -1.0, 0.5])[level] + 0.3 * rng.normal(size=300)
    network = unfold(["c", "u", "v"], [1.0, 1.0, 1.0], [(), (), ()], [(0, 1, 2), (3,), (4,)])
    rungs = greedy_frontier(Search(batch_of(standard(X), y), Gaussian(), network, np.inf, "bic"))
    assert [c.state.price for c in rungs] == [0.0, 1.0]
    assert rungs[1].state.df == 3


@pytest.mark.parametrize("family", [Gaussian(), Multinomial(3)])
def test_criteria_charge_the_rank(family):
    """Four indicators of four levels say what three do; a copy of a column says nothing."""
    rng = np.random.default_rng(7)
    level, x = rng.integers(0, 4, 300), rng.normal(size=300)
    X = standard(np.column_stack([level[:, None] == np.arange(4), x, x]))
    y = (rng.random(300) < 0.3 + 0.1 * level) + (x > 1.0)
    network = unfold(["c", "u", "v"], [1.0, 1.0, 1.0], [(), (), ()], [(0, 1, 2, 3), (4,), (5,)])
    search = Search(batch_of(X, y.astype(float)), family, network, np.inf, "bic")
    scores = 2 if family.name == "multinomial" else 1
    for used in every_subset(3):
        state = search.state(used)
        assert state.df == scores * (3 * used[0] + (used[1] | used[2]))
        deviance = np.log(state.deviance) if family.name == "gaussian" else state.deviance
        assert state.value == pytest.approx(300 * deviance + np.log(300) * state.df)
    narrow = Search(batch_of(X[:, :3], y.astype(float)), family, plain(3), np.inf, "bic")
    three = narrow.state(np.ones(3, bool))
    four = search.state(np.array([True, False, False]))
    assert four.value == pytest.approx(three.value, abs=1e-4)


def test_multinomial_frontiers():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(300, 6))
    score = 1.5 * np.column_stack([X[:, 0], X[:, 1], np.zeros(300)])
    y = (score + rng.gumbel(size=score.shape)).argmax(axis=1).astype(float)
    network = plain(6, parents=[(), (), (), (0,), (), ()])
    search = Search(batch_of(X, y), Multinomial(3), network, np.inf, "bic")
    rungs = greedy_frontier(search)
    assert set(np.flatnonzero(rungs[-1].state.used)) == {0, 1}
    assert [c.state.df for c in rungs] == [0, 2, 4]  # K - 1 coefficients a column


def test_rows_of_weight_zero_do_not_count():
    batch, network = chains(4)
    rng = np.random.default_rng(0)
    more = batch_of(
        np.vstack([matrix(batch), rng.normal(size=(50, 12))]),
        np.append(batch.y, 100.0 * rng.normal(size=50)), np.append(np.ones(300), np.zeros(50)),
    )  # fmt: skip
    a, b = (
        [(c.state.price, c.state.value, c.state.used.tolist()) for c in greedy_frontier(search)]
        for search in (Search(x, Gaussian(), network, np.inf, "bic") for x in (batch, more))
    )
    assert [r[::2] for r in a] == [r[::2] for r in b]
    np.testing.assert_allclose([r[1] for r in a], [r[1] for r in b], rtol=1e-9)


def test_many_rows_of_classes_are_searched_by_a_sample(monkeypatch):
    batch, network = chains(5, n=2000, family="binomial")
    whole = greedy_frontier(Search(batch, Binomial(), network, np.inf, "bic"))
    monkeypatch.setattr(rows, "MOST_ROWS", 1024)
    search = Search(batch, Binomial(), network, np.inf, "bic")
    assert search.refits.data.n_positive == 1024 and search.final.data.n_positive == 2000
    found = CostFrontier.from_candidates(search, network, greedy_frontier(search), np.zeros_like)
    last = found.coef[-1].any(axis=1)
    assert (last <= whole[-1].state.used).all() and last.sum() >= 3
    peer = sm.GLM(
        batch.y, sm.add_constant(matrix(batch)[:, last]), family=sm.families.Binomial()
    ).fit()
    np.testing.assert_allclose(found.coef[-1][last, 0], peer.params[1:], atol=1e-4)


def test_of_too_many_columns_the_promising_are_looked_at(monkeypatch):
    batch, network = chains(6, p=30)
    monkeypatch.setattr(rows, "MOST_COLUMNS", 6)
    coef = np.zeros((3, 30))
    coef[1:, 5] = 1.0  # which alone says little, but came in along the path
    search = Search(batch, Gaussian(), network, np.inf, "bic", trace_of(coef))
    kept = search.space.candidates
    assert len(kept) <= 12 and {1, 5, 9} <= set(kept)
    closed = network.needs[kept].any(axis=0)
    assert set(np.flatnonzero(closed)) == set(kept)  # with all that they need


# Alternatives ---------------------------------------------------------------------------------


def monitored(error, seed=0, n=400):
    """A truth that needs blood pressure and what is derived from it; the cuff errs."""
    rng = np.random.default_rng(seed)
    truth, hr = rng.normal(size=(2, n))
    inv, cuff = truth + 0.02 * rng.normal(size=n), truth + error * rng.normal(size=n)
    derived, other = truth**2, truth**2 + rng.normal(size=n)
    X = standard(np.column_stack([inv, cuff, derived, other, hr, rng.normal(size=n)]))
    y = truth + 0.5 * derived + 0.7 * hr + 0.3 * rng.normal(size=n)
    return batch_of(X, y)


@pytest.mark.parametrize("error, source", [(0.02, "cuff"), (0.6, "inv")])
def test_the_cheapest_source_that_serves(error, source):
    """Near-copies: the cheap one. Where the dear one is much better and the budget allows: it."""
    network = with_series()
    search = Search(monitored(error), Gaussian(), network, np.inf, "ebic")
    rungs = greedy_frontier(search)
    bought = [network.closed(search.space.nodes(c.state.used)) for c in rungs]
    names = [{network.names[v] for v in np.flatnonzero(on)} for on in bought]
    assert all(len(found & {"inv", "cuff"}) <= 1 for found in names)
    assert source in names[-1]
    poor = Search(monitored(error), Gaussian(), network, 2.5, "ebic")
    last = greedy_frontier(poor)[-1].state
    assert last.price <= 2.5 and "inv" not in {
        network.names[v] for v in np.flatnonzero(network.closed(poor.space.nodes(last.used)))
    }


@pytest.mark.long
@given(seed=st.integers(0, 10_000), classes=st.sampled_from([0, 2, 3]))
@settings(max_examples=25, deadline=None)
def test_frontiers_of_any_network(seed, classes):
    """Several parents, several columns, free nodes, two series: prices and sources hold."""
    rng = np.random.default_rng(seed)
    V = 9
    columns = [tuple(range(2 * v, 2 * v + rng.integers(0, 3))) for v in range(V)]
    parents = [tuple(np.flatnonzero(rng.random(max(v - 4, 0)) < 0.4) + 4) for v in range(V)]
    uses = [()] * 4 + [tuple(np.flatnonzero(rng.random(2) < 0.4)) for _ in range(4, V)]
    cost = rng.choice([0.0, 0.5, 1.0, 3.0], V)
    network = unfold([f"v{v}" for v in range(V)], cost, parents, columns, ((0, 1), (2, 3)), uses)
    X = standard(rng.normal(size=(90, 2 * V)) + 0.5 * rng.normal(size=(90, 1)))
    score = X @ (rng.normal(size=2 * V) * (rng.random(2 * V) < 0.3)) + rng.normal(size=90)
    y = (
        np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
        if classes
        else score
    )
    family = [Gaussian(), None, Binomial(), Multinomial(3)][classes]
    budget = rng.choice([2.0, 5.0, 100.0])
    search = Search(batch_of(X, y), family, with_free_columns(network, 2 * V), budget, "aic")
    rungs = greedy_frontier(search)
    found = CostFrontier.from_candidates(search, network, rungs)
    assert (found.cost <= budget).all() and (np.diff(found.cost) > 0).all()
    owner = {j for columns in network.columns for j in columns}
    for k, bought in enumerate(found.bought):
        assert found.cost[k] == pytest.approx(naive_price(network, bought))
        for s in range(2):
            assert (
                len({network.base[v] for v in np.flatnonzero(bought & (network.series == s))}) < 2
            )
        mine = {j for v in np.flatnonzero(bought) for j in network.columns[v]}
        used = set(np.flatnonzero(found.coef[k].any(axis=1)).tolist())
        assert used & owner <= mine


def test_a_support_with_two_sources_is_offered_with_each():
    network = with_series()
    market = SearchSpace(network)
    names = [network.names[v] for v in market.candidates]
    both = np.array([name != "hr" for name in names])
    found = [
        sorted(names[g] for g in np.flatnonzero(both & rules.computable_from(market, choice)))
        for choice in rules.choices_of_sources(market, both)
    ]
    assert found == [["inv", "mean", "slope", "sum"], ["cuff", "mean", "slope", "sum"]]


def test_exhaustive_search_uses_one_source():
    network = with_series()
    search = Search(monitored(0.6), Gaussian(), network, 5.5, "deviance")
    best = exhaustive(search, 5.5)
    sources = {network.names[v] for v in np.flatnonzero(search.space.nodes(best.used))}
    assert "inv" in sources and "cuff" not in sources


# Rules of penalties ---------------------------------------------------------------------------


def trace_of(coef):
    """A PenaltyPath with given coefficients (L, p)."""
    coef = np.asarray(coef, float)[:, :, None]
    L = len(coef)
    zeros = np.zeros(L)
    return PenaltyPath(
        np.geomspace(1.0, 0.1, L), np.ones((L, 1)), coef, coef, zeros, zeros, zeros,
        np.ones(L, np.int64), np.ones(L, bool), 1.0,
    )  # fmt: skip


def test_the_lasso_charges_all_that_a_column_needs():
    network = plain(4, [1.0, 2.0, 4.0, 0.0], [(), (0,), (1, 0), ()])
    found = rules.lasso_groups(network, 5)
    charge = dict(zip(map(tuple, members_of(found)), found.cost, strict=True))
    # A free one as the cheapest; those of no node not at all.
    assert charge == {(0,): 1.0, (1,): 3.0, (2,): 7.0, (3,): 1.0}


def test_supports_of_a_trace_are_refitted_once():
    batch, network = chains(9)
    coef = np.zeros((4, 12))
    coef[1:3, 1], coef[3, [1, 5]] = 0.1, 0.2
    search = Search(batch, Gaussian(), network, 4.0, "bic")
    found = rules.path_supports(search, trace_of(coef), "lasso")
    assert [np.flatnonzero(c.state.used).tolist() for c in found] == [[], [1]]  # {1, 5} costs 5
    # The least penalty that a support has: it shrinks least.
    assert [c.place for c in found] == [0, 2] and found[1].lambda_ == trace_of(coef).lambdas[2]
    X = matrix(batch)[:, [1]]
    slope = np.linalg.lstsq(np.column_stack([np.ones(300), X]), batch.y, rcond=None)[0]
    np.testing.assert_allclose(search.refits(np.array([1])).coef[0, 0], slope[1], atol=1e-8)


def test_relax_blends_refit_and_penalized():
    batch, network = chains(9)
    coef = np.zeros((2, 12))
    coef[1, 1] = 0.1
    search = Search(batch, Gaussian(), network, np.inf, "bic")
    supports = rules.path_supports(search, trace_of(coef), "lasso")
    refit, half = (
        CostFrontier.from_candidates(
            search, network, select_frontier(search, supports, r), np.zeros_like
        )
        for r in (1.0, 0.5)
    )
    assert half.coef[1, 1, 0] == pytest.approx(0.5 * refit.coef[1, 1, 0] + 0.05)
    assert half.intercept[1, 0] == pytest.approx(0.5 * refit.intercept[1, 0] + 0.5)
    rest = batch.y - half.intercept[1, 0] - matrix(batch) @ half.coef[1, :, 0]
    assert half.deviance[1] == pytest.approx(np.mean(rest**2))
    assert half.lambda_[1] == supports[1].lambda_ and half.rule == ("null", "lasso")


def test_exhaustive_search_looks_at_all():
    """Against every subset, not only the largest."""
    batch, network = chains(3, p=8, cost=np.array([1.0, 2, 1, 3, 1, 1, 2, 1]))
    search = Search(batch, Gaussian(), network, 5.0, "deviance")
    m = len(search.space)
    paid = [u for u in every_subset(m) if naive_price(network, search.space.nodes(u)) <= 5.0]
    least = min(search.state(u).deviance for u in paid)
    assert exhaustive(search, 5.0).deviance == pytest.approx(least, rel=1e-9)


# Submodular costs -----------------------------------------------------------------------------


def shared_cost(names):
    """A set-up cost of 2 for each letter that is touched, and a discount on the number."""
    kinds = {name[0] for name in names}
    return 2.0 * len(kinds) + 3.0 * np.sqrt(len(names))


def shared(seed, p=10, n=250):
    rng = np.random.default_rng(seed)
    X = standard(rng.normal(size=(n, p)) + 0.7 * rng.normal(size=(n, 1)))
    y = X @ rng.normal(size=p) * (rng.random(n) > -1) + rng.normal(size=n)
    names = [f"{'abc'[j % 3]}{j}" for j in range(p)]
    network = unfold(
        names, np.ones(p), [() if j < 4 else (j % 4,) for j in range(p)],
        [(j,) for j in range(p)], set_cost=shared_cost,
    )  # fmt: skip
    return batch_of(X, y), network


@given(seed=st.integers(0, 100), budget=st.floats(3.0, 16.0))
@settings(max_examples=8, deadline=None)
def test_a_submodular_budget_is_never_passed(seed, budget):
    batch, network = shared(seed)
    search = Search(batch, Gaussian(), network, budget, "deviance")
    for c in rules.forward_selection(search):
        names = frozenset(
            network.names[v]
            for v in np.flatnonzero(network.closed(search.space.nodes(c.state.used)))
        )
        assert c.state.price == pytest.approx(shared_cost(names) if names else 0.0)
        assert c.state.price <= budget * (1 + 1e-9)


def test_a_submodular_budget_is_well_spent():
    ratios = []
    for seed in range(4):
        batch, network = shared(seed)
        for budget in (8.0, 12.0):
            search = Search(batch, Gaussian(), network, budget, "deviance")
            found = rules.forward_selection(search)
            null, best = search.refits.null.deviance, exhaustive(search, budget)
            ratios.append((null - select_frontier(search, found)[-1].state.deviance)
                          / (null - best.deviance))  # fmt: skip
    assert np.mean(ratios) > 0.99 and min(ratios) > 0.95


def test_quadratics_and_greedy_have_no_row_left():
    """A model may take half of the rows for coefficients, not more."""
    rng = np.random.default_rng(0)
    X = standard(rng.normal(size=(20, 40)))
    search = Search(batch_of(X, rng.normal(size=20)), Gaussian(), plain(40), np.inf, "deviance")
    assert 9 <= max(c.state.df for c in rules.forward_selection(search)) <= 11
    at = Quadratic(search.refits.data, np.zeros(1), np.arange(0), np.zeros((0, 1)))
    assert at.gram.shape == (40, 40)


# Growing --------------------------------------------------------------------------------------


def asked(network, **given):
    """Settings of a fit."""
    defaults = {
        "network": network, "dependents": "all", "solver": "auto", "l1_ratio": 1.0, "n_lambda": 30,
        "lambda_min_ratio": None, "tol": 1e-7, "max_iter": 200, "threads": 1, "lambda_": None,
        "lambdas": None, "budget": None, "criterion": "ebic", "relax": 1.0, "rules": RULES,
        "seed": 0, "costs": None, "monotone": None,
    }  # fmt: skip
    return SimpleNamespace(**(defaults | given))


@pytest.mark.long
@pytest.mark.parametrize("family", [Gaussian(), Binomial()])
def test_a_fit_has_the_path_and_the_frontier(family):
    batch, network = chains(0, family=family.name)
    estimates = next(fit_stages(batch, family, asked(network)))[0]
    found = estimates.frontier
    lasso = next(fit_stages(batch, family, asked(network, rules=("lasso",))))[0].frontier
    assert estimates.path.converged.all()
    assert set(found.rule) <= {"null", *RULES} and set(lasso.rule) == {"null", "lasso"}
    # At each of its prices the lasso is no better than what the list sells there.
    for price, value in zip(lasso.cost, lasso.criterion, strict=True):
        assert found.criterion[found.index_within(price)] <= value + MIN_IMPROVEMENT


@pytest.mark.long
def test_the_rules_of_penalties_find_their_models():
    batch, network = chains(0)
    for rule in RULES:
        estimates = next(fit_stages(batch, Gaussian(), asked(network, rules=(rule,))))[0]
        assert set(estimates.frontier.rule) == {"null", rule}
        on = estimates.frontier.coef[-1].any(axis=1)
        assert on[[1, 5]].all()


def test_one_search_serves_all_budgets():
    batch, network = chains(0)
    eval_batch, _ = chains(50)
    budgets = (1.0, 2.0, 4.0)
    parts = list(fit_stages(batch, Gaussian(), asked(network, budget=budgets), eval_batch))
    assert len(parts) == 3
    X = matrix(eval_batch)
    for budget, (estimates, _, scores) in zip(budgets, parts, strict=True):
        k = estimates.frontier.index_within(budget)
        assert estimates.frontier.cost.max() <= 4.0 and estimates.frontier.cost[k] <= budget
        expected = estimates.frontier.intercept[k] + X @ estimates.frontier.coef[k]
        np.testing.assert_allclose(scores, expected, atol=1e-12)
    alone = next(fit_stages(batch, Gaussian(), asked(network, budget=2.0), eval_batch))
    np.testing.assert_allclose(alone[2], parts[1][2], atol=1e-12)


def test_a_lambda_is_the_penalized_model_alone():
    batch, network = chains(0)
    eval_batch, _ = chains(50)
    whole = next(fit_stages(batch, Gaussian(), asked(network)))[0].path
    parts = list(
        fit_stages(batch, Gaussian(), asked(network, lambda_=whole.lambdas[10]), eval_batch)
    )
    estimates, _, scores = parts[0]
    assert len(parts) == 1 and estimates.frontier is None and len(estimates.path.gap) == 1
    np.testing.assert_allclose(estimates.path.coef[0], whole.coef[10], atol=2e-3)
    expected = estimates.path.intercept[0] + matrix(eval_batch) @ estimates.path.coef[0]
    np.testing.assert_allclose(scores, expected, atol=1e-12)


def test_a_users_cost_and_budget():
    batch, network = shared(1)
    found = next(fit_stages(batch, Gaussian(), asked(network, budget=9.0)))[0].frontier
    assert (found.cost <= 9.0).all() and len(found) > 1
    for cost, bought in zip(found.cost, found.bought, strict=True):
        names = frozenset(network.names[v] for v in np.flatnonzero(bought))
        assert cost == pytest.approx(shared_cost(names) if names else 0.0)


@pytest.mark.long
def test_by_cvxpy_the_list_is_the_same():
    batch, network = chains(0)
    few = {"n_lambda": 8, "rules": ("group", "lasso"), "lambda_min_ratio": 0.01}
    own, peer = (
        next(fit_stages(batch, Gaussian(), asked(network, solver=solver, **few)))[0].frontier
        for solver in ("auto", "cvxpy")
    )
    np.testing.assert_array_equal(own.bought, peer.bought)
    np.testing.assert_allclose(own.lambda_, peer.lambda_, rtol=1e-9)
    np.testing.assert_allclose(own.coef, peer.coef, atol=1e-9)
