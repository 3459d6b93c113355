"""ripr under constraints, as a user sets them."""

import numpy as np
import pytest

import lodim as ld

pytestmark = pytest.mark.long

TWO = ld.informative_views(2, 60, seed=3, M=6)


def fit(constraints=None, **more):
    return ld.ripr("y ~ .", TWO, lambda_=1.0, constraints=constraints, threads=1, **more)


def test_without_constraints_cvxpy_agrees_with_the_exact_solver():
    ours, theirs = fit(), fit({})
    assert ours.view_names == theirs.view_names and len(ours.estimates) > 1
    np.testing.assert_allclose(ours.assignment(), theirs.assignment(), atol=1e-3)
    assert theirs.log["objective"][-1] == pytest.approx(ours.log["objective"][-1], rel=1e-6)


def test_rows_keep_to_their_budgets():
    names = fit().view_features
    dear = {name: 1.0 for name in names[0]}  # a view of two of these costs 2
    budget = np.where(np.arange(len(TWO)) < 40, 0.6, 2.0)
    bound = fit({"prices": dear, "budget": budget})
    costs = [sum(dear.get(name, 0.0) for name in view) for view in bound.view_features]
    spent = bound.assignment().to_numpy() @ np.array(costs)
    assert max(costs) > 0.6 and (spent <= budget + 1e-6).all()
    free = fit().assignment().to_numpy() @ np.array(
        [sum(dear.get(name, 0.0) for name in view) for view in names]
    )
    assert (free > budget + 0.1).any()
    none = fit({"prices": dear, "budget": 0.0})
    assert not set(sum(none.view_features, ())) & set(dear)


def test_solvers_print_nothing(capfd):
    assert len(ld.ripr("y ~ .", TWO[:40], constraints={"hard": True}, max_dim=1).estimates)
    assert capfd.readouterr().out == ""


def test_rows_of_a_group_share_one_view():
    groups = [f"g{i // 4}" if i < 60 else None for i in range(len(TWO))]
    B = fit({"groups": groups, "hard": True}).assignment().to_numpy()
    assert np.isin(B, (0, 1)).all() and (B.sum(axis=1) == 1).all()
    together = B[:60].reshape(15, 4, -1)
    assert (together == together[:, :1]).all()
    assert len(np.unique(B[60:], axis=0)) > 1


def test_groups_of_rows_that_are_left_out_or_have_no_view():
    data = TWO.copy()
    data.loc[1, data.columns != "y"] = np.nan
    groups = np.arange(len(TWO)) // 4
    found = ld.ripr("y ~ .", data, lambda_=1.0, constraints={"groups": groups}, threads=1)
    B = found.assignment().to_numpy()
    assert (B[1] == 0).all()
    np.testing.assert_allclose(B[[2, 3]], B[[0, 0]], atol=1e-5)


def test_constraints_of_ones_own_and_files(tmp_path):
    taboo = fit().view_features[0][0]

    def further(B, views):
        return [B[:, [j for j, view in enumerate(views) if taboo in view]] == 0]

    found = fit({"further": further})
    assert taboo not in sum(found.view_features, ())
    assert "constraints=..." in found.call and "under constraints" in str(found.summary())
    found.save(tmp_path / "fit")
    assert ld.load(tmp_path / "fit").predict(TWO).equals(found.predict(TWO))
    with pytest.raises(ld.ArgumentError, match="does not store"):
        found.update(TWO)


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        (3, "must be a dict"),
        (np.zeros(3), "must be a dict"),
        ({"price": {}}, "must only have the entries prices.*, not 'price'"),
        ({"prices": {"x1": 1.0}}, "given together"),
        ({"prices": {"z": 1.0}, "budget": 1.0}, "prices must be for features .*, not 'z'"),
        ({"prices": {"x1": -1.0}, "budget": 1.0}, "at least 0"),
        ({"prices": {"x1": 1.0}, "budget": "much"}, "budget must be numbers"),
        ({"prices": {"x1": 1.0}, "budget": [1.0, 2.0]}, "each of the 120 rows"),
        ({"groups": [1, 2]}, "each of the 120 rows"),
        ({"prices": 3, "budget": 1.0}, "prices must be a dict of column to price, not 3"),
        ({"hard": 1}, "True or False"),
        ({"further": 1}, "a function"),
        ({"prices": {f"x{j}": 1.0 for j in range(1, 7)}, "budget": 0.5}, "no assignment satisfies"),
    ],
)
def test_refused(constraints, words):
    with pytest.raises(ld.ArgumentError, match=words):
        fit(constraints)


def test_limits_are_for_one_response_without_an_order():
    with pytest.raises(ld.ArgumentError, match="cannot be combined"):
        fit({}, order=np.arange(len(TWO)))
    with pytest.raises(ld.ArgumentError, match="needs a single response"):
        ld.ripr("y + x1 ~ .", TWO, constraints={})
