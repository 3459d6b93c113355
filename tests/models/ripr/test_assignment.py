"""ripr's assignment: the hull against CVXPY, majorization, recovery, time order."""

from itertools import product

import numpy as np
import pytest

from lodim.datasets.synthetic import informative_views, informative_views_r
from lodim.errors import ArgumentError, DataError
from lodim.models.ripr import losses
from lodim.models.ripr.assignment.lambda_path import assignment_path
from lodim.models.ripr.assignment.recover import (
    candidates,
    clearly_better,
    forward_selection,
    single_errors,
)
from lodim.models.ripr.assignment.solve import (
    assign,
    assign_in_order,
    cheapest_chain,
    eligible_views,
    solve_rows,
)
from lodim.models.ripr.views import enumerate_views
from models.ripr.searches import view_search

LAMBDA = 1e-4


def matrix(n=80, A=9, seed=0, blocked=0.1):
    rng = np.random.default_rng(seed)
    L = np.exp(0.02 * rng.standard_normal((n, A)))
    L[rng.random((n, A)) < blocked] = np.inf
    return L, rng.random(A)


def step_value(L, delta, B, lambda_, weight=1.0):
    known = np.where(np.isfinite(L), L, 0.0)
    return float((weight * (((known * B).sum(1) - L.min(1)) ** 2 + lambda_ * B @ delta)).sum())


def as_matrix(first, second, share, A):
    B, rows = np.zeros((len(first), A)), np.arange(len(first))
    B[rows, first] += 1 - share
    B[rows, second] += share
    return B


@pytest.mark.parametrize("lambda_", [1e-6, 1e-4, 1e-2])
def test_hull_is_the_convex_optimum(lambda_):
    constrained = pytest.importorskip("lodim.models.ripr.assignment.constrained")
    pytest.importorskip("cvxpy")
    L, delta = matrix()
    B, value = constrained.solve(
        L, delta, lambda_, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-11
    )
    ours = as_matrix(*solve_rows(L, delta, lambda_), L.shape[1])
    assert not ours[np.isinf(L)].any()
    assert step_value(L, delta, ours, lambda_) == pytest.approx(value, rel=1e-7, abs=1e-9)
    np.testing.assert_allclose(B.sum(axis=1), 1.0, atol=1e-9)


def test_no_point_of_an_edge_is_lower():
    """Two views share a row at most: every pair at every share is no better."""
    L, delta = matrix(12, 5)
    ours = as_matrix(*solve_rows(L, delta, LAMBDA), 5)
    assert ((ours > 0).sum(axis=1) <= 2).all() and ((ours > 0).sum(axis=1) == 2).any()
    for i in range(12):
        own = step_value(L[i : i + 1], delta, ours[i : i + 1], LAMBDA)
        for a, b in product(np.flatnonzero(np.isfinite(L[i])), repeat=2):
            for t in np.linspace(0, 1, 41):
                B = np.zeros((1, 5))
                B[0, a] += 1 - t
                B[0, b] += t
                assert own <= step_value(L[i : i + 1], delta, B, LAMBDA) + 1e-15


@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
def test_objective_never_rises_and_is_what_it_says(factor):
    L, _ = matrix(300, 20)
    weight = np.random.default_rng(1).random(300)
    found = assign(L, factor * LAMBDA, weight=weight)
    assert found.converged and len(found.objective) > 1
    assert (np.diff(found.objective) <= 1e-15).all()
    B = found.matrix()
    np.testing.assert_allclose(B.sum(axis=1), 1.0)
    c, W = weight @ B, weight.sum()
    np.testing.assert_allclose(c / W, found.mass)
    known = np.where(np.isfinite(L), L, 0.0)[:, found.views]
    gap = weight @ ((known * B).sum(axis=1) - L.min(axis=1)) ** 2
    assert found.objective[-1] == pytest.approx(
        gap + factor * LAMBDA * (W - (c * c).sum() / (2 * W)), rel=1e-9
    )


def test_weights_repeat_rows():
    L, _ = matrix(60, 8, blocked=0)
    times = np.random.default_rng(0).integers(1, 4, 60)
    heavy, long = assign(L, LAMBDA, weight=times), assign(np.repeat(L, times, axis=0), LAMBDA)
    np.testing.assert_allclose(heavy.mass, long.mass, atol=1e-7)
    assert heavy.objective[-1] == pytest.approx(long.objective[-1], rel=1e-9)


def test_permutations_permute():
    L, _ = matrix(200, 12)
    rng = np.random.default_rng(3)
    rows, columns = rng.permutation(200), rng.permutation(12)
    a, b = assign(L, LAMBDA), assign(L[np.ix_(rows, columns)], LAMBDA)
    whole = np.zeros((2, 200, 12))
    whole[0][:, a.views] = a.matrix()
    whole[1][np.ix_(np.arange(200), b.views)] = b.matrix()
    np.testing.assert_allclose(whole[1], whole[0][np.ix_(rows, columns)], atol=1e-7)


def test_a_copy_never_serves_with_its_original():
    L, _ = matrix(200, 6)
    found = assign(np.concatenate([L, L], axis=1), LAMBDA)
    assert len(np.unique(found.views % 6)) == len(found.views)
    assert found.objective[-1] == assign(L, LAMBDA).objective[-1]


def test_views_that_are_nobodys_best_change_nothing():
    L, _ = matrix(100, 10)
    keep = eligible_views(L, LAMBDA)
    more = np.concatenate([L, L.max(axis=1, where=np.isfinite(L), initial=0)[:, None] + 0.1], 1)
    a, b = assign(L, LAMBDA), assign(more, LAMBDA)
    assert (a.views == b.views).all() and set(a.views) <= set(keep)
    assert (a.objective == b.objective).all()


def test_rows_without_any_view():
    L, _ = matrix(50, 4)
    L[7] = np.inf
    found = assign(L, LAMBDA)
    assert found.first[7] == -1 and not found.matrix()[7].any()
    assert found.mass.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0, 1e3])
def test_a_path_of_penalties_reaches_to_where_they_bite(size):
    """However the losses are scaled: at its ends one view is left, or nothing changes any more."""
    L, _ = matrix(120, 12, blocked=0)
    grid, path = assignment_path(size * L, 1e-4, 0.05)
    n_views = [len(a.selected(0.05)) for a in path]
    assert len(grid) == len(path) and n_views[0] >= 8 and n_views[-1] == 1
    np.testing.assert_allclose(np.diff(np.log10(grid)), 0.125)
    alone = assign(size * L, 1e-4 * grid[3])
    assert path[3].objective[-1] == pytest.approx(alone.objective[-1])
    smaller = assign(size * L, 1e-4 * grid[0] / 10.0**0.125)
    assert len(smaller.selected(0.05)) == n_views[0]


# Limits of one's own ------------------------------------------------------------------------------


def test_convex_alternation_and_constraints():
    pytest.importorskip("cvxpy")
    from lodim.models.ripr.assignment import constrained

    L, _ = matrix(40, 6, blocked=0)
    free, ours = constrained.assign(L, LAMBDA), assign(L, LAMBDA)
    assert free.objective[-1] == pytest.approx(ours.objective[-1], rel=1e-6)
    assert (np.diff(free.objective) <= 1e-9).all()
    cost, groups = np.arange(6.0), np.arange(40) // 2
    bound = constrained.assign(
        L, LAMBDA, constrained.ViewConstraints(cost=cost, budget=2.5, groups=groups)
    )
    assert (bound.B @ cost <= 2.5 + 1e-6).all() and (free.B @ cost > 2.6).any()
    np.testing.assert_allclose(bound.B[::2], bound.B[1::2], atol=1e-6)
    assert bound.objective[-1] > free.objective[-1]
    further = constrained.ViewConstraints(extra=lambda B: [B[:, 0] == 0])
    assert constrained.assign(L, LAMBDA, further).mass[0] == pytest.approx(0, abs=1e-7)
    with pytest.raises(ArgumentError, match="constraints"):
        constrained.solve(
            L, np.ones(6), LAMBDA, constrained.ViewConstraints(cost=cost + 1, budget=0.5)
        )


@pytest.mark.long
@pytest.mark.parametrize("switch", [0.0, 3e-4])
def test_time_order_is_the_integer_optimum(switch):
    cp = pytest.importorskip("cvxpy")
    L, delta = matrix(30, 5)
    price = (L - L.min(1)[:, None]) ** 2 + LAMBDA * delta
    chain = cheapest_chain(price, switch)
    B, absent = cp.Variable(L.shape, boolean=True), ~np.isfinite(price)
    value = cp.sum(cp.multiply(np.where(absent, 0.0, price), B))
    value += 0.5 * switch * cp.sum(cp.abs(cp.diff(B, axis=0)))
    rules = [cp.sum(B, axis=1) == 1, cp.multiply(absent.astype(float), B) == 0]
    problem = cp.Problem(cp.Minimize(value), rules)
    problem.solve(solver=cp.SCIPY)
    own = step_value(L, delta, np.eye(5)[chain], LAMBDA) + switch * (np.diff(chain) != 0).sum()
    assert own == pytest.approx(problem.value, rel=1e-7)
    switches = np.abs(np.diff(np.rint(B.value), axis=0)).sum() / 2
    value = step_value(L, delta, np.rint(B.value), LAMBDA) + switch * switches
    assert own == pytest.approx(value, rel=1e-7)


@pytest.mark.long
def test_time_order_switches_less_for_more():
    L, _ = matrix(200, 6)
    L[11] = np.inf
    found = [assign_in_order(L, LAMBDA, s) for s in (0.0, 1e-4, 1e-3, 1.0)]
    chains = [np.delete(a.first, 11) for a in found]
    switches = [int((np.diff(c) != 0).sum()) for c in chains]
    assert switches[0] > switches[1] > switches[2] > switches[3]
    assert all(a.converged and (np.diff(a.objective) <= 1e-15).all() for a in found)
    assert all(a.first[11] == -1 for a in found)


# Recovery -----------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("P", [2, 5])
def test_recovery_of_classes(P):
    df = informative_views(P, 300, 0, seed=0)
    X, y = df.drop(columns="y").to_numpy(), df["y"].to_numpy()
    true = {tuple(int(n[1:]) - 1 for n in v) for v in df.attrs["views"]}
    found = view_search(X, y, (2, 2)).recover(None)
    assert {tuple(v) for v in found.views.tolist()} == true
    assert (np.diff(found.assignment.mass) <= 1e-6).all() and not found.forward
    B = found.assignment.matrix()
    np.testing.assert_allclose(B.sum(axis=1), 1.0)
    for a, view in enumerate(found.views.tolist()):
        rows = slice(*df.attrs["rows"][[sorted(v) for v in df.attrs["views"]].index(
            [f"x{j + 1}" for j in view])])  # fmt: skip
        assert B[rows, a].mean() > 1.3 / P


def test_recovery_of_numbers():
    df = informative_views_r(600, 2, seed=0, M=8)
    X, y = df.drop(columns="y").to_numpy(), df["y"].to_numpy()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    found = view_search(X, y, (3, 3), "gaussian").recover(None)
    true = {(0, *(int(n[1:]) - 1 for n in v)) for v in df.attrs["views"]}
    assert {tuple(v) for v in found.views.tolist()} == true


def test_recovery_of_clusters_and_refusals():
    rng = np.random.default_rng(0)
    X = rng.random((300, 6))
    X[:, [1, 4]] = rng.choice([0.2, 0.5, 0.8], (300, 1)) + 0.02 * rng.standard_normal((300, 2))
    found = view_search(X, None, (2, 2), "none").recover(None)
    assert found.views[0].tolist() == [1, 4] and found.lambda_ == 2.0
    with pytest.raises(DataError, match="predict any row"):
        X, y = np.full((9, 3), np.nan), np.arange(9) % 2
        view_search(X, y, (1, 3)).recover(1.0)


@pytest.mark.long
def test_at_most_so_many_views():
    df = informative_views(4, 150, 0, seed=0)
    X, y = df.drop(columns="y").to_numpy(), df["y"].to_numpy()
    for most in (1, 2):
        found = view_search(X, y, (2, 2), n_views=most).recover(None)
        assert len(found.views) <= most


@pytest.mark.long
def test_permuted_features_are_recovered_permuted():
    df = informative_views(3, 200, 0, seed=1)
    X, y = df.drop(columns="y").to_numpy(), df["y"].to_numpy()
    order = np.random.default_rng(0).permutation(10)
    a = view_search(X, y, (2, 2)).recover(None)
    b = view_search(X[:, order], y, (2, 2)).recover(None)
    assert np.sort(order[b.views], axis=1).tolist() == a.views.tolist()


@pytest.mark.long
def test_a_recovery_tells_of_its_search():
    df = informative_views(3, 120, 0, seed=1, M=6)
    X, y = df.drop(columns="y").to_numpy(), df["y"].to_numpy()
    search = view_search(X, y, (2, 2), k=9)
    L = losses.class_losses(X, y, search.views, 9, balanced=True)
    assignment, found = assign(L, 2.0 * 0.01**2), search.recover(2.0, L)
    np.testing.assert_allclose(found.assignment.objective, assignment.objective, rtol=1e-9)
    assert found.assignment.converged and len(found.views) < len(assignment.views) + 1


def judged(ratios, y, J, weight):
    """Weighted doubt and errors of views J, row by row: Eq. 2.11."""
    doubt = errors = 0.0
    for i in np.flatnonzero(y >= 0):
        j = min(J, key=lambda j: ratios[i, j].min())
        if np.isfinite(ratios[i, j]).any():
            p = np.exp(-ratios[i, j])
            doubt += weight[i] * (1.0 - p[y[i]] / p.sum())
            errors += weight[i] * (ratios[i, j].argmin() != y[i])
        else:
            doubt, errors = doubt + weight[i], errors + weight[i]
    return doubt, errors


@pytest.mark.parametrize("tolerance", [0.0, 1.0])
def test_forward_selection_is_greedy_and_ends(tolerance):
    rng = np.random.default_rng(0)
    ratios = rng.standard_normal((100, 7, 3))
    y = rng.integers(0, 3, 100)
    ratios[np.arange(0, 60), 4, y[:60]] = -5.0  # each of two views is sure of a part of the rows
    ratios[np.arange(50, 90), 2, y[50:90]] = -5.0
    ratios[rng.random((100, 7)) < 0.1] = np.inf  # a feature is missing
    ratios[:, 6] = np.where(np.arange(100)[:, None] < 3, np.inf, ratios[:, 6])
    y[::9], weight = -1, rng.uniform(0.5, 1.5, 100)
    weight *= np.count_nonzero(y >= 0) / weight[y >= 0].sum()

    chosen, errors = [], np.inf
    while len(chosen) < 7:
        found = [judged(ratios, y, [*chosen, j], weight) for j in range(7)]
        j = int(np.argmin([doubt for doubt, _ in found]))
        if chosen and found[j][1] >= errors - tolerance * np.sqrt(errors):
            break
        chosen, errors = [*chosen, j], found[j][1]
    assert chosen[:2] == [4, 2] and len(chosen) < 7
    assert forward_selection(ratios, y, 7, weight, tolerance=tolerance).tolist() == chosen
    assert forward_selection(ratios, y, 1, weight).tolist() == [4]


def test_forward_selection_prefers_the_surer_of_views_with_equal_errors():
    y, ratios = np.arange(40) % 2, np.empty((40, 3, 2))
    for j, sure in enumerate((0.1, 2.0, 1.0)):
        ratios[np.arange(40), j, y], ratios[np.arange(40), j, 1 - y] = -sure, sure
    assert forward_selection(ratios, y, 3).tolist() == [1]


def test_forward_selection_with_more_views_must_be_more_surely_better():
    def errors(wrong):
        out = np.zeros(100)
        out[:wrong], out[-5:] = 1.0, np.nan
        return out

    def better(n_views, wrong, weight=None):  # m errors less are the root of m standard errors
        return clearly_better(errors(wrong), errors(20), n_views - 2, weight)

    least = {n: max(m for m in range(20) if better(n, m)) for n in (1, 2, 3)}
    assert least == {1: 19, 2: 19, 3: 17}
    assert not better(1, 20)
    weight = np.where(np.arange(100) == 19, 0.0, 1.0)  # of the only row that makes a difference
    assert not better(1, 19, weight)


def test_forward_selection_ends_where_no_row_is_wrong():
    y = np.arange(40) % 2
    ratios = np.zeros((40, 3, 2))
    ratios[np.arange(40), 1, y] = -1.0
    assert forward_selection(ratios, y, 3).tolist() == [1]


@pytest.mark.long
def test_single_errors_are_leave_one_out_errors():
    df = informative_views(2, 100, 0, seed=0)
    X, y = df.drop(columns="y").to_numpy(), df["y"].to_numpy()
    L = losses.class_losses(X, y, enumerate_views(10, 2, 2), 9)
    assert single_errors(L).min() < 0.35
    assert len(candidates(L, most=10)) == 10
