"""Active learning: which rows are asked for, what teaching changes, curves and their tests."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import lodim as ld
from lodim.active_learning import scores
from lodim.active_learning.labels import declare_levels
from lodim.active_learning.learner import cohen_kappa

CHEAP = {
    ld.gbmap: {"m": 2, "lambda_": 0.1, "threads": 1},
    ld.proset: {"threads": 1},
    ld.ripr: {"threads": 1, "lambda_": 1.0},
}
models = pytest.mark.parametrize("model", list(CHEAP), ids=lambda m: m.__name__)


def rows(n, seed=0, start=0):
    """Two classes that a and b tell apart; d says nothing."""
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abd"))
    df.index = [f"r{i}" for i in range(start, start + n)]
    df["y"] = np.where(df["a"] + df["b"] > 0, "yes", "no")
    return df


LABELLED, POOL, TEST = rows(24, 1), rows(60, 2, 100), rows(80, 3, 1000)


def learner(model=ld.ripr, **arguments):
    more = {"score": "uncertainty"} | CHEAP[model] | arguments
    return ld.active(model, "y ~ .", LABELLED, POOL, **more)


# Which rows ----------------------------------------------------------------------------------


@pytest.mark.long
@models
def test_uncertainty_is_the_entropy_of_the_classes(model):
    one = learner(model)
    asked = one.query(5)
    p = model("y ~ .", LABELLED, **CHEAP[model]).predict(POOL)  # what is known of the labels: none
    entropy = -(p * np.log(p) + (1 - p) * np.log1p(-p)).fillna(0.0)
    np.testing.assert_allclose(asked[".score"], entropy.sort_values().iloc[::-1][:5], rtol=1e-12)
    assert set(asked.index) <= set(POOL.index) and "y" not in asked
    np.testing.assert_allclose(
        one.query(4, "entropy")[".score"], -entropy.sort_values()[:4], rtol=1e-12
    )


def test_fits_for_scores_do_not_repeat_the_warnings_of_the_fit():
    with pytest.warns(ld.ConvergenceWarning, match="separated") as said:
        ld.active(ld.glm, "y ~ a + b", LABELLED[:8], POOL, committee=3).query(2, "committee")
    assert len(said) == 1


def test_what_a_query_shows():
    one = learner()
    asked = one.query(3)
    assert list(asked.columns[:3]) == [".score", ".class", ".view"]
    assert asked[".view"].isin(one.fit.view_names).all()
    assert asked[".class"].equals(one.fit.predict(POOL, "class").loc[asked.index].rename(".class"))
    assert ".view" not in learner(ld.gbmap).query(3)
    assert len(one.query(1000)) == len(POOL)
    again = ld.active(ld.ripr, "y ~ a + b + d", LABELLED, one.query(1000), **CHEAP[ld.ripr])
    assert again.query(3).columns.is_unique


@pytest.mark.long
def test_a_committee_of_views_and_one_of_bootstraps():
    df = views()
    one = ld.active(ld.ripr, "y ~ .", df[:60], df[60:], threads=1)
    votes = one.fit.votes(df[60:])
    assert set(votes) == set(one.fit.view_names) and votes.notna().sum(axis=1).min() > 1
    by_hand = [stats.entropy(row.dropna().value_counts()) for _, row in votes.iterrows()]
    np.testing.assert_allclose(np.sort(by_hand)[::-1][:6], one.query(6, "committee")[".score"],
                               atol=1e-12)  # fmt: skip
    other = learner(ld.gbmap, committee=4)
    asked = other.query(5, "committee")
    possible = [stats.entropy([k, 4 - k]) for k in range(3)]
    assert all(np.isclose(s, possible).any() for s in asked[".score"])
    # Where members disagree, the row is nearer to the border than others are.
    far = (POOL["a"] + POOL["b"]).abs()
    assert far[asked.index].mean() < 0.5 * far.mean()


def views():
    """Rows of two informative views."""
    df = ld.informative_views(2, 120, seed=3).sample(frac=1.0, random_state=0)
    return df.assign(y=df["y"].astype(str))


@pytest.mark.long
def test_without_a_committee_doubt_is_the_entropy_of_the_classes(monkeypatch):
    """A single view has nobody to disagree with; and a row that one view alone can vote on."""
    one = learner()
    assert len(one.fit.estimates) == 1
    entropy = pd.Series(scores.entropies(one.fit, POOL), POOL.index).sort_values()[::-1]
    for score in ("committee", "diverse"):
        asked = one.query(6, score)[".score"]
        np.testing.assert_allclose(asked, entropy[asked.index], rtol=1e-12)
    np.testing.assert_allclose(one.query(6, "committee")[".score"], entropy[:6], rtol=1e-12)
    votes = pd.DataFrame({"a": ["yes"] * 60, "b": [None] * 30 + ["no"] * 30}, POOL.index)
    monkeypatch.setattr(type(one.fit), "votes", lambda fit, data: votes)
    asked = one.query(60, "committee")[".score"]
    np.testing.assert_allclose(asked[POOL.index[:30]], entropy[POOL.index[:30]], rtol=1e-12)
    np.testing.assert_allclose(asked[POOL.index[30:]], np.log(2), rtol=1e-12)


def test_members_that_cannot_be_fitted_do_not_vote(monkeypatch):
    one = learner(ld.gbmap, committee=3)
    entropy = scores.entropies(one.fit, POOL)

    def fails(labelled):
        raise ld.DataError("too few rows")

    monkeypatch.setattr(one, "_fitted", fails)
    np.testing.assert_allclose(scores.committee(one, np.random.default_rng(0)), entropy, rtol=1e-12)


def test_margin_is_the_lead_of_the_first_class():
    iris = ld.data("iris").sample(frac=1, random_state=0)
    arguments = {"m": 3, "lambda_": 0.1, "threads": 1}
    one = ld.active(ld.gbmap, "species ~ .", iris[:20], iris[20:], score="margin", **arguments)
    p = one.fit.predict(iris[20:], "prob")
    first = p.max(axis=1)
    second = p.apply(lambda row: row.nlargest(2).iloc[1], axis=1)
    asked = one.query(130)[".score"]
    np.testing.assert_allclose(asked, (1 - first + second)[asked.index], rtol=1e-12)
    assert asked.is_monotonic_decreasing
    by_entropy = one.query(130, "uncertainty").index
    assert list(by_entropy) != list(asked.index)  # of three classes they differ


def test_a_score_of_ones_own():
    def brightest(fit, rows):
        assert list(fit.levels) == ["no", "yes"] and "y" not in rows
        return rows["d"]

    one = learner(score=brightest, test=TEST)
    asked = one.query(7)
    assert list(asked.index) == list(POOL["d"].nlargest(7).index)
    one.replay(POOL["y"], 20, rounds=2)
    assert list(one.curve["asked"]) == ["", "brightest", "brightest"]
    assert "score: brightest" in str(one) and one._name() == "brightest"
    for wrong in (lambda fit, rows: [1.0], lambda fit, rows: ["much"] * len(rows)):
        with pytest.raises(ld.ArgumentError, match="must return a number for each"):
            one.query(3, wrong)


@pytest.mark.long
def test_a_cold_start_asks_at_random_until_a_model_can_be_fitted():
    pool = POOL.sort_values("y")
    one = ld.active(ld.proset, "y ~ .", None, pool, test=TEST, threads=1, lambda_v=0.01, seed=3)
    assert one.fit is None and one.labelled.empty and one.stop is None
    assert one.curve["accuracy"][0] == 0.0 and not one.hits[0].any()
    assert "No fit yet" in str(one)
    asked = one.query(5, "margin")
    assert list(asked.index) != list(pool.index[:5]) and asked[".class"].isna().all()
    one.teach(
        dict.fromkeys(pool.index[:4], "no")
    )  # a class that nobody has named is no misspelling
    assert one.fit is None and one.curve["asked"].tolist() == ["", "random"]
    one.teach(pool["y"][-2:])  # too few of a class for proset, which says so once it is fitted
    assert one.fit is None
    one.teach(pool["y"][-6:-2])
    by_hand = ld.proset("y ~ .", one.labelled, threads=1, lambda_v=0.01, seed=3)
    assert one.fit.predict(TEST).equals(by_hand.predict(TEST))
    assert one.curve["accuracy"].iloc[-1] > 0.5 and "No fit yet" not in str(one)
    with pytest.raises(ld.DataError, match="new=True"):
        one.teach({pool.index[10]: "perhaps"})
    curves = ld.learning_curves({"cold": one})
    assert curves.n_labelled.tolist() == [0, 4, 6, 10]
    assert "Area" in str(curves) and "Diff." not in str(curves)  # one run has no difference


def test_a_cold_start_of_numbers_for_classes():
    """Labels that are numbers stay numbers: the first ones are no text."""
    pool = POOL.assign(y=(POOL["y"] == "yes").astype(int))
    arguments = {"family": "binomial", "m": 2, "lambda_": 0.1, "threads": 1}
    cold = ld.active(ld.gbmap, "y ~ .", pool[:0], pool, **arguments)
    cold.teach(pool["y"][:20])
    warm = ld.active(ld.gbmap, "y ~ .", pool[:20], pool[20:], **arguments)
    assert cold.fit.predict(pool).equals(warm.fit.predict(pool))


@pytest.mark.parametrize("missing", [False, True])
def test_rows_that_are_labelled_are_no_pool(missing):
    pool = pd.concat([POOL, LABELLED[5:8]])
    if missing:
        pool["b"] = pool["b"].where(pool.index != "r6")
    labelled = LABELLED
    if missing:
        labelled = labelled.assign(b=labelled["b"].where(labelled.index != "r6"))
    with pytest.raises(ld.DataError, match=r"row 'r5' is both labelled and in the pool \(3 such"):
        ld.active(ld.ripr, "y ~ .", labelled, pool)
    # Labels may begin anew in each frame: the rows are others.
    one = ld.active(
        ld.gbmap, "y ~ .", LABELLED.reset_index(drop=True), POOL.reset_index(drop=True),
        **CHEAP[ld.gbmap],
    )  # fmt: skip
    assert len(one.pool) == 60


@pytest.mark.long
def test_diverse_rows_are_the_committees_and_far_apart():
    """Drawn from those on which views disagree, of which `top` would take any."""
    df = views()
    one = ld.active(ld.ripr, "y ~ .", df[:60], df[60:], threads=1, method="assignment")
    assert len(one.fit.estimates) > 1
    votes = pd.Series(scores.vote_entropy(one.fit.votes(df[60:]).to_numpy()), df.index[60:])
    asked, plain = one.query(15), one.query(15, "committee")
    assert asked[".score"].equals(votes[asked.index].rename(".score"))
    assert (asked[".score"] > 0).mean() > 0.8 > (votes > 0).mean()
    x = df.drop(columns="y")

    def apart(rows):
        far = ((x.loc[rows].to_numpy()[:, None] - x.loc[rows].to_numpy()) ** 2).sum(axis=2)
        return far[~np.eye(len(rows), dtype=bool)].mean()

    assert apart(asked.index) > apart(plain.index)
    assert one.query(15).index.equals(asked.index)


@pytest.mark.long
@models
def test_diverse_rows_of_any_classifier(model):
    pool = POOL.copy()
    pool.loc["r100", ["a", "b", "d"]] = np.nan
    settings = CHEAP[model] | ({} if model is ld.ripr else {"missing": "drop"})
    one = ld.active(model, "y ~ .", LABELLED, pool, committee=3, **settings)
    asked = one.query(len(pool))
    assert asked.index[-1] == "r100" and asked.index.is_unique and len(asked) == len(pool)
    one.teach(POOL.loc[asked.index[:5], "y"])
    assert one.curve["asked"].iloc[-1] == "diverse"


def test_votes_leave_out_members_without_one():
    votes = np.array([["a", "a", "b", None], [None] * 4, ["a", None, None, "a"]], dtype=object)
    got = scores.vote_entropy(votes)
    np.testing.assert_allclose(got[[0, 2]], [stats.entropy([2, 1]), 0.0], atol=1e-15)
    assert np.isnan(got[1])


def test_information_gain_by_refits():
    """Against the definition, for the first row asked for."""
    one = learner(ld.gbmap)
    asked = one.query(1, "infogain")
    label = asked.index[0]
    p = one.fit.predict(POOL, "prob")

    def total(fit):
        q = fit.predict(POOL, "prob").to_numpy()
        return -(q * np.log(q)).sum()

    after = 0.0
    for c in one.fit.levels:
        taught = pd.concat([LABELLED, POOL.loc[[label]].assign(y=c)])
        after += p.loc[label, c] * total(ld.gbmap("y ~ .", taught, **CHEAP[ld.gbmap], seed=0))
    assert asked[".score"].iloc[0] == pytest.approx(total(one.fit) - after, rel=1e-9)


@pytest.mark.long
def test_random_choice_differs_by_round_and_seed_and_repeats():
    one, same, other = learner(score="random"), learner(score="random"), learner(seed=1)
    first = one.query(8)
    assert first.equals(same.query(8))
    assert set(first.index) != set(other.query(8, "random").index)
    one.teach(POOL.loc[first.index, "y"])
    assert not set(one.query(8).index) & set(first.index)


def test_equal_scores_are_not_asked_in_the_order_of_the_pool(monkeypatch):
    monkeypatch.setattr(scores, "entropy", lambda learner, rng: np.zeros(len(learner.pool)))
    assert list(learner().query(10, "entropy").index) != list(POOL.index[:10])


def test_rows_without_a_score_come_last():
    pool = POOL.copy()
    pool.loc[["r100", "r101"], ["a", "b", "d"]] = np.nan
    one = ld.active(ld.ripr, "y ~ .", LABELLED, pool, **CHEAP[ld.ripr])
    assert set(one.query(len(pool)).index[-2:]) == {"r100", "r101"}


# Teaching ------------------------------------------------------------------------------------


@pytest.mark.long
@models
def test_teaching_is_fitting_to_the_rows_taught(model):
    one = learner(model, test=TEST)
    asked = one.query(7)
    assert one.teach(POOL.loc[asked.index, "y"]) is one
    assert len(one.labelled) == 31 and len(one.pool) == 53
    assert not set(asked.index) & set(one.pool.index)
    by_hand = model("y ~ .", pd.concat([LABELLED, POOL.loc[asked.index]]), **CHEAP[model])
    assert one.fit.predict(TEST).equals(by_hand.predict(TEST))
    curve = one.curve
    assert curve["n_labelled"].tolist() == [24, 31]
    assert curve["asked"].tolist() == ["", "uncertainty"]
    expected = by_hand.evaluate(TEST).iloc[0]
    assert curve["accuracy"][1] == pytest.approx(expected["accuracy"], rel=1e-12)
    assert curve["log_loss"][1] == expected["log_loss"]
    right = by_hand.predict(TEST, "class") == TEST["y"]
    np.testing.assert_array_equal(one.hits[1], right)


@pytest.mark.long
def test_labels_in_any_order_as_mapping_or_frame():
    labels = POOL["y"].iloc[[5, 2, 9]]
    ways = (labels, labels[::-1], labels.to_dict(), POOL.iloc[[9, 5, 2]])
    got = [learner().teach(way).fit.predict(TEST) for way in ways]
    for other in got[1:]:
        pd.testing.assert_series_equal(got[0], other)


@pytest.mark.parametrize(
    "labels, words",
    [
        (pd.Series({"r100": "yes", "nobody": "no"}), "row 'nobody' is not in the pool"),
        (pd.Series({"r0": "yes"}), "row 'r0' is labelled already"),
        (pd.Series(["yes", None], index=["r100", "r101"]), "row 'r101' has no label"),
        (pd.Series(["yes", "no"], index=["r100", "r100"]), "row 'r100' is labelled twice"),
        (pd.Series([], dtype=object), "at least one row"),
        (["yes", "no"], "a Series or a mapping"),
        (pd.DataFrame({"z": [1]}), "must have the column 'y'"),
    ],
)
def test_labels_refused(labels, words):
    one = learner()
    with pytest.raises(ld.DataError, match=words):
        one.teach(labels)
    assert len(one.pool) == len(POOL) and len(one.curve) == 1


def test_a_response_called_as_an_argument_of_pandas():
    asked = []
    for name in ("y", "self"):
        rows, pool = (frame.rename(columns={"y": name}) for frame in (LABELLED, POOL))
        one = ld.active(ld.glm, f"{name} ~ d", rows, pool, score="infogain")
        one.teach(dict.fromkeys(one.query(1).index, "yes"))
        asked.append(one.query(2))
        assert ld.active(ld.glm, f"{name} ~ d", None, pool).fit is None
    pd.testing.assert_frame_equal(*asked)


def test_labels_keep_the_type_and_order_of_the_classes():
    order = pd.CategoricalDtype(["yes", "no"])
    ranked = LABELLED.assign(y=LABELLED["y"].astype(order))
    one = ld.active(ld.glm, "y ~ a", ranked, POOL)
    one.teach(dict(POOL["y"][:2]))
    assert one.fit.levels == ("yes", "no") and one.labelled["y"].dtype == order
    one.teach({POOL.index[2]: "perhaps"}, new=True)
    assert one.fit.levels == ("yes", "no", "perhaps")
    grades = LABELLED.assign(y=pd.Categorical(LABELLED["y"].eq("yes") + 1, categories=[2, 1]))
    grade = ld.active(ld.glm, "y ~ a", grades, POOL).teach({POOL.index[0]: 1})
    assert grade.fit.levels == (2, 1)
    truth = LABELLED.assign(y=LABELLED["y"] == "yes")
    two = ld.active(ld.glm, "y ~ a", truth, POOL)
    assert two.teach({POOL.index[0]: 1, POOL.index[1]: 0.0}).fit.levels == (False, True)


def test_information_gain_of_classes_in_order():
    order = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60)})
    frame["y"] = pd.cut(
        frame["a"] + rng.normal(size=60), [-9, -0.7, 0.7, 9], labels=order.categories
    )
    one = ld.active(ld.glm, "y ~ a", frame[:25], frame[25:], family="ordinal", score="infogain")
    assert one.query(2)[".score"].notna().all()


def test_a_class_that_no_labelled_row_has_is_meant_to_be_new():
    one = learner()
    with pytest.raises(ld.DataError, match="row 'r100' is labelled 'yess', but labelled rows"):
        one.teach({"r100": "yess"})
    assert len(one.pool) == len(POOL)
    one.teach({"r100": "perhaps", "r101": "perhaps"}, new=True)
    assert "perhaps" in one.fit.levels


def test_rows_without_an_answer_count_as_wrong_in_curve_and_hits():
    features = [c for c in TEST if c != "y"]
    blind = TEST.copy()
    blind.loc[blind.index[:5], features] = np.nan
    one = learner(test=blind)
    assert not one.hits[0][:5].any() and one.hits[0][5:].any()
    assert one.curve["accuracy"][0] == one.hits[0].mean()


def test_a_class_of_test_rows_may_be_unknown_at_first():
    rare = TEST.copy()
    rare.loc[rare.index[:7], "y"] = "perhaps"
    one = learner(test=rare)
    assert not one.hits[0][:7].any()
    known = one.fit.evaluate(rare[7:])
    assert one.curve["accuracy"][0] == pytest.approx(known["accuracy"][0] * 73 / 80)
    assert one.curve["log_loss"][0] == known["log_loss"][0]


def test_test_rows_have_labels():
    with pytest.raises(ld.DataError, match="row 'r1000' has none"):
        learner(test=TEST.assign(y=TEST["y"].where(TEST.index != "r1000")))


def test_arguments_that_cannot_grow_are_refused():
    with pytest.raises(ld.ArgumentError, match="weights must be the name of a column"):
        learner(weights=np.ones(len(LABELLED)))


def test_a_failed_fit_leaves_the_learner_as_it_was():
    one = learner()
    with pytest.raises(ld.DataError):
        one.teach({"r100": 7}, new=True)  # a number among texts
    assert len(one.labelled) == 24 and len(one.pool) == 60 and len(one.curve) == 1
    one.teach({"r100": "yes"})
    assert len(one.curve) == 2


@pytest.mark.long
def test_the_frames_of_the_user_are_left_alone():
    before = LABELLED.copy(), POOL.copy()
    learner(test=TEST).replay(POOL["y"], 20)
    pd.testing.assert_frame_equal(LABELLED, before[0])
    pd.testing.assert_frame_equal(POOL, before[1])


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"score": "loudest"}, ld.ArgumentError, "score must be one of diverse"),
        ({"committee": 0}, ld.ArgumentError, "committee"),
        ({"agreement": 2.0}, ld.ArgumentError, "agreement must be between"),
        ({"target": 0.1}, ld.ArgumentError, "give test="),
        ({"pool": POOL.to_dict()}, ld.DataError, "pool must be a pandas DataFrame"),
        ({"pool": pd.concat([POOL, POOL])}, ld.DataError, "'r100' occurs twice"),
        ({"labelled": LABELLED.assign(y=[None, *LABELLED["y"][1:]])}, ld.DataError, "has none"),
        ({"formula": "~ a"}, ld.ArgumentError, "needs a response"),
        ({"formula": "I(a > 0) ~ b"}, ld.ArgumentError, "must be a column"),
        ({"formula": "d ~ a + b"}, ld.ArgumentError, "needs a response with classes"),
        ({"model": print}, ld.ArgumentError, "model function"),
    ],
)
def test_refused(change, error, words):
    given = {"model": ld.ripr, "formula": "y ~ .", "labelled": LABELLED, "pool": POOL}
    with pytest.raises(error, match=words):
        ld.active(**given | change)


def test_a_numeric_response_is_refused_before_the_fit(monkeypatch):
    from lodim.fitting.model import Model

    monkeypatch.setattr(Model, "run", lambda *a, **k: pytest.fail("a fit was made"))
    with pytest.raises(ld.ArgumentError, match="needs a response with classes"):
        ld.active(ld.gbmap, "d ~ a + b", LABELLED, POOL)


def test_queries_refused():
    one = learner()
    with pytest.raises(ld.ArgumentError, match="n must be"):
        one.query(0)
    with pytest.raises(ld.ArgumentError, match="score must be"):
        one.query(3, "best")
    one.teach(POOL["y"])
    with pytest.raises(ld.DataError, match="pool is empty"):
        one.query(1)


# When to stop --------------------------------------------------------------------------------


def test_kappa():
    a = np.array(list("xxxyyyzz"), dtype=object)
    b = np.array(list("xxyyyyzx"), dtype=object)
    table = pd.crosstab(a, b).to_numpy() / len(a)
    chance = table.sum(axis=0) @ table.sum(axis=1)
    assert cohen_kappa(a, b) == pytest.approx((np.trace(table) - chance) / (1 - chance))
    assert cohen_kappa(a, a) == 1.0 and np.isnan(cohen_kappa(a[:0], b[:0]))
    assert cohen_kappa(np.array(["x", None], object), np.array(["x", "y"], object)) == 1.0


def test_stops_when_predictions_are_stable():
    one = learner(agreement=0.8, rounds=2)
    assert one.stop is None
    one.replay(POOL["y"], 5, rounds=1)
    assert one.stop is None  # one comparison is not two
    while one.stop is None:
        one.replay(POOL["y"], 5, rounds=1)
    assert "stable" in one.stop or "empty" in one.stop
    if "stable" in one.stop:
        assert one.curve["agreement"].iloc[-2:].mean() >= 0.8
    assert one.stop in str(one).replace("\n  ", " ")


@pytest.mark.long
def test_stops_at_a_target_and_with_an_empty_pool():
    assert "at most 0.9" in learner(test=TEST, target=0.9).stop
    assert learner(test=TEST, target=0.0, agreement=1.0).stop is None
    assert learner().teach(POOL["y"]).stop == "the pool is empty"


# Curves --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs():
    """Two repetitions of three scores."""
    out = {}
    for score in ("uncertainty", "entropy", "random"):
        out[score] = [
            ld.active(ld.gbmap, "y ~ .", rows(24, 10 + s), rows(60, 20 + s, 100), test=TEST,
                      score=score, seed=s, **CHEAP[ld.gbmap])
            .replay(rows(60, 20 + s, 100)["y"], 12)
            for s in range(3)
        ]  # fmt: skip
    return out


@pytest.mark.long
def test_areas_and_paired_tests(runs):
    curves = ld.learning_curves(runs)
    n = np.array([24, 36, 48, 60, 72, 84])
    np.testing.assert_array_equal(curves.n_labelled, n)
    values = {k: np.array([r.curve["accuracy"] for r in v]) for k, v in runs.items()}
    area = {k: np.trapezoid(v, n, axis=1) / 60 for k, v in values.items()}
    frame = curves.areas()
    for name in ("uncertainty", "entropy"):
        gain = area[name] - area["random"]
        assert frame["area"][name] == pytest.approx(area[name].mean())
        assert frame["difference"][name] == pytest.approx(gain.mean())
        assert frame["p"][name] == pytest.approx(stats.ttest_1samp(gain, 0).pvalue)
    tidy = curves.tidy().query("run == 'entropy'")
    np.testing.assert_allclose(tidy["mean"], values["entropy"].mean(axis=0))
    np.testing.assert_allclose(tidy["se"], stats.sem(values["entropy"], axis=0))
    assert "Repetitions: 3" in str(curves) and "Diff.: area minus that of 'random'" in str(curves)
    wins = curves.wins("entropy")["uncertainty"].to_numpy()
    gain = values["entropy"] - values["uncertainty"]
    at = int(np.flatnonzero(gain.std(axis=0) > 0)[0])
    p = stats.ttest_1samp(gain[:, at], 0).pvalue
    assert wins[at] == pytest.approx(np.sign(gain[:, at].mean()) * -np.log10(p))
    assert wins[0] == 0.0  # the same rows at first


@pytest.mark.long
def test_a_single_run_is_tested_by_its_test_rows(runs):
    one, two = runs["uncertainty"][0], runs["entropy"][0]
    wins = ld.learning_curves({"u": one, "e": two}).wins("u")["e"].to_numpy()
    for at in range(6):
        a, b = (one.hits[at] & ~two.hits[at]).sum(), (two.hits[at] & ~one.hits[at]).sum()
        p = stats.binomtest(int(a), int(a + b)).pvalue if a + b else 1.0
        assert wins[at] == pytest.approx(np.sign(a - b) * -np.log10(p), abs=1e-12)


@pytest.mark.long
def test_log_loss_wins_when_it_is_lower(runs):
    curves = ld.learning_curves(runs, measure="log_loss")
    lower = curves.values["entropy"].mean(axis=0) < curves.values["random"].mean(axis=0)
    partly = slice(1, -1)  # at first and at last both have learnt from the same rows
    assert ((curves.wins("entropy")["random"] > 0) == lower)[partly].all()


def test_runs_refused(runs):
    short = {"a": runs["random"][0], "b": learner(ld.gbmap, test=TEST).replay(POOL["y"], 9)}
    for given, words in (
        ({}, "at least one run"),
        ({"a": runs["random"], "b": runs["entropy"][:1]}, "same number of runs"),
        (short, "same numbers of labelled rows"),
        ({"a": learner()}, "give test="),
    ):
        with pytest.raises(ld.ArgumentError, match=words):
            ld.learning_curves(given)
    with pytest.raises(ld.ArgumentError, match="measure must be"):
        ld.learning_curves(runs, measure="auc")
    cold = ld.active(ld.glm, "y ~ a", None, POOL, test=TEST)
    with pytest.raises(ld.ArgumentError, match="cold start: use measure='accuracy'"):
        ld.learning_curves({"cold": cold}, measure="log_loss")
    with pytest.raises(ld.ArgumentError, match="no run is called 'x'"):
        ld.learning_curves(runs).wins("x")
    with pytest.raises(ld.ArgumentError, match="of= is only for kind='winloss'"):
        ld.learning_curves(runs).plot(of="random")


def test_balanced_weights_are_no_column():
    one = learner(ld.gbmap, weights="balanced")
    assert len(one.query(3)) == 3 and one.fit.arguments["weights"] == "balanced"


def test_plots_are_the_numbers(runs, axes):
    curves = ld.learning_curves(runs)
    assert curves.plot(ax=axes) is axes
    drawn = [line.get_ydata() for line in axes.lines]
    means = dict(list(curves.tidy().groupby("run")["mean"]))
    for name, line in zip(runs, drawn, strict=True):
        np.testing.assert_allclose(line, means[name])
    assert {"uncertainty", "entropy", "random"} <= {t.get_text() for t in axes.texts}


def test_winloss_plot(runs, axes):
    one, others = runs["entropy"][0], {"by chance": runs["random"][0]}
    assert one.plot("winloss", axes, against=others) is axes
    wins = ld.learning_curves({"entropy": one, **others}).wins("entropy")["by chance"]
    assert any(np.array_equal(line.get_ydata(), wins) for line in axes.lines)
    texts = {t.get_text() for t in axes.texts}
    assert {"entropy wins", "entropy loses", "against by chance"} <= texts
    assert learner(test=TEST).plot().get_xlabel() == "labelled rows"
    with pytest.raises(ld.ArgumentError, match="needs another run"):
        one.plot("winloss")
    with pytest.raises(ld.ArgumentError, match="is the name of this run"):
        one.plot(against={"entropy": runs["random"][0]})
    with pytest.raises(ld.ArgumentError, match="kind must be"):
        one.plot("pie")


def test_rows_of_other_categories_and_columns_that_the_pool_lacks():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"x": rng.normal(size=40), "g": rng.choice(list("abc"), 40)})
    df["c"] = np.where(df["x"] > 0, "u", "v")
    known, pool = df[:10].copy(), df[5:].copy()
    known["g"] = pd.Categorical(known["g"], categories=list("abcz"))
    pool["g"] = pd.Categorical(pool["g"], categories=list("abc"))
    with pytest.raises(ld.DataError, match="row 5 is both labelled and in the pool"):
        ld.active(ld.proset, "c ~ x + g", known, pool, lambda_v=0.01)
    with pytest.raises(ld.DataError, match="weights: the pool must have the column 'w'"):
        ld.active(ld.proset, "c ~ x", df[:20].assign(w=1.5), df[20:], weights="w", lambda_v=0.01)
    with pytest.raises(ld.ArgumentError, match="groups must be the name of a column"):
        ld.active(ld.proset, "c ~ x", df[:20], df[20:], groups=np.arange(20), lambda_v=0.01)


# Levels ------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("kind", ["object", "string", "category", "ordered"])
@pytest.mark.parametrize("model", ["gbmap", "ripr"])
def test_levels_that_no_labelled_row_has(model, kind):
    """They are known from the start, as if they had been declared."""
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"x": rng.normal(size=90), "g": rng.choice(list("abcd"), 90)})
    df["y"] = np.where(df["x"] + (df["g"] == "a") > 0, "u", "v")
    every = pd.CategoricalDtype(list("abcd"), kind == "ordered")
    declared = df.assign(g=df["g"].astype(every))
    arguments = {"m": 2, "lambda_": 0.1} if model == "gbmap" else {"k": 5}

    def learner(df):
        few = df[df["g"].isin(["a", "b"])][:12]
        rest = df.drop(index=few.index)
        if kind != "object":
            few = few.assign(g=few["g"].astype(every if kind == "ordered" else kind))
        pool, test = rest[rest["g"] != "d"][:25], rest[-20:]
        out = ld.active(getattr(ld, model), "y ~ .", few, pool, test=test, threads=1, **arguments)
        return out.replay(df["y"], 5, rounds=2)

    one, two = learner(df), learner(declared)
    pd.testing.assert_frame_equal(one.curve, two.curve)
    assert one.curve["accuracy"].notna().all() and set(one.labelled["g"]) > {"a", "b"}


def test_frames_with_all_levels_stay_as_they_are():
    few = pd.DataFrame({"g": ["a", "b", "a", "b"], "y": list("uvuv"), "x": range(4)})
    pool = pd.DataFrame({"g": ["b", "a"], "x": [7, 8]}, index=[10, 11])
    assert declare_levels("y", few, pool, None)[0].dtypes.equals(few.dtypes)
    new = declare_levels("y", few, pool.assign(g=["b", "c"]), None)
    assert [frame["g"].cat.categories.tolist() for frame in new[:2]] == [["a", "b", "c"]] * 2
    assert new[2] is None and few["g"].tolist() == ["a", "b", "a", "b"]
    long = few.assign(g=pd.Categorical(few["g"], ["b", "a"]))
    assert declare_levels("y", long, pool.assign(g=["b", "c"]))[1]["g"].cat.categories.tolist() == [
        "b", "a", "c"
    ]  # fmt: skip
