"""Explanations of proset by law: they add up to the prediction, and follow Ruf's algorithms."""

import itertools
import math
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lodim as ld
from lodim.models.proset.explain import reference, shapley
from lodim.models.proset.explain.explanation import dominant_set
from lodim.models.proset.plots import BatchMap


def people(n=260, seed=0):
    """Numbers, levels and a name in the way (weight), with two answers and a number."""
    rng = np.random.default_rng(seed)
    df = pd.DataFrame({"age": rng.normal(50, 9, n), "weight": rng.normal(70, 12, n)})
    df["arm"], df["noise"] = rng.choice(list("ABC"), n), rng.normal(size=n)
    f = (df["age"] - 50) / 9 + 1.5 * (df["arm"] == "B") + 0.08 * (df["weight"] - 70)
    f += 0.3 * rng.normal(size=n)
    df["ill"] = np.where(f > 0.5, "yes", "no")
    df["grade"] = np.array(["high", "low", "mid"])[(f > -0.5).astype(int) + (f > 0.9)]
    return df.assign(dose=20 + 5 * f).set_axis([f"p{i}" for i in range(n)])


FORMULAS = {k: f"{k} ~ age + weight + arm + noise" for k in ("ill", "grade", "dose")}
LAMBDA_V = {"ill": 3e-2, "grade": 1e-1, "dose": 1e-2}  # with which the noise is left out
_fits = {}


def fit_of(kind):
    if kind not in _fits:
        _fits[kind] = ld.proset(
            FORMULAS[kind],
            people(),
            n_batches=2,
            lambda_v=LAMBDA_V[kind],
            threads=1,
            missing="drop",
        )
    return _fits[kind]


kinds = pytest.mark.parametrize("kind", FORMULAS)


def predicted(fit, data):
    """Probabilities of all classes, or means, (n, K)."""
    out = fit.predict(data) if fit.levels is None else fit.predict(data, "prob")
    return out.to_numpy().reshape(len(data), -1)


# Explanation -------------------------------------------------------------------------------------


@pytest.mark.long
@kinds
def test_nearest_training_rows(kind):
    """By distances in the active features alone, from the table of feature weights."""
    fit, df = fit_of(kind), people()
    e = fit.explain(df.iloc[[7]], train=df)
    term = fit.tidy().set_index("term")["estimate"]
    names = [name for name in ("age", "weight", "noise") if term[name] > 0]
    d2 = sum((term[name] * (df[name] - df[name].iloc[7])) ** 2 for name in names)
    for level in "ABC":
        d2 += (
            term[f"arm[{level}]"] * ((df["arm"] == level) * 1.0 - (df["arm"].iloc[7] == level))
        ) ** 2
    nearest = np.sqrt(d2).drop("p7").nsmallest(5)
    assert e.nearest["row"].tolist() == nearest.index.tolist()  # without the row itself
    np.testing.assert_allclose(e.nearest["distance"], nearest, rtol=1e-9)
    target = df.loc[nearest.index, kind]
    if kind == "dose":
        np.testing.assert_allclose(e.nearest["target"].astype(float), target)
    else:
        assert e.nearest["target"].tolist() == target.tolist()
    assert "Nearest training rows" in str(e) and f"row {nearest.index[0]}" in str(e)
    assert fit.explain(df.iloc[[7]]).nearest is None


@pytest.mark.long
def test_nearest_rows_of_a_feature_of_that_name():
    df = people().rename(columns={"age": "distance"})
    fit = ld.proset("dose ~ distance + weight", df, lambda_v=0.01, threads=1)
    e = fit.explain(df.iloc[[0]], train=df[1:40])
    near = df.loc[e.nearest["row"]]
    assert len(near) == 5 and e.nearest.columns.is_unique
    shown = e.nearest[[c for c in e.nearest if c not in ("row", "target", "distance", "weight")]]
    np.testing.assert_allclose(shown.iloc[:, 0], near["distance"])


def test_without_a_training_row_near_there_is_none():
    df = people()
    e = fit_of("ill").explain(df.iloc[[3]], train=df.iloc[[3]])
    assert e.nearest.empty and "Nearest training rows" in str(e)


def test_a_row_of_weight_zero_is_explained():
    df = people(80).assign(w=1.0)
    fit = ld.proset("dose ~ age + weight", df, lambda_v=0.01, weights="w", threads=1)
    for row in (df.iloc[[0]].assign(w=0.0), df.iloc[[0]].drop(columns="w")):
        assert fit.explain(row).frame["target"].iloc[0] == df["dose"].iloc[0]


@kinds
@pytest.mark.parametrize("least", [0.0, 1e-3, 1.0])
def test_what_rows_add_is_the_prediction(kind, least):
    fit, new = fit_of(kind), people(3, seed=1)
    for i in range(3):
        frame = fit.explain(new.iloc[[i]], least=least).frame
        parts = [c for c in frame if c.startswith("p[") or c == "contribution"]
        expected = predicted(fit, new.iloc[[i]])[0]
        np.testing.assert_allclose(frame[parts].iloc[0].to_numpy(float), expected, rtol=1e-12)
        total = frame[parts].iloc[1:].sum().to_numpy(float)
        np.testing.assert_allclose(total, expected, rtol=1e-10)
        end = expected[0] if fit.levels is None else 1.0
        assert frame["cumulative"].iloc[-1] == pytest.approx(end)


@kinds
def test_rows_of_an_explanation(kind):
    fit, new = fit_of(kind), people(3, seed=1)
    e = fit.explain(new.iloc[[1]], least=0.0)
    frame = e.frame.set_index("role")
    assert e.label == "p1" and frame["row"].iloc[0] == "p1"
    assert frame["target"].iloc[0] == new[kind].iloc[1]
    assert list(frame.loc["prototype", "impact"]) == sorted(frame.loc["prototype", "impact"])[::-1]
    assert e.familiarity == pytest.approx(fit.familiarity(new).iloc[1])
    assert e.quantile == fit.familiarity(new, quantile=True).iloc[1]
    table = fit.export().set_index(["batch", "row"])["prototype_weight"]
    train = people()
    for _, one in frame.loc["prototype"].head(10).iterrows():
        assert one["target"] == pytest.approx(train.loc[one["row"], kind])
        assert one["prototype_weight"] == pytest.approx(table[one["batch"], one["row"]])
        assert one["impact"] == pytest.approx(one["prototype_weight"] * one["similarity"])
        assert one["age"] == pytest.approx(train.loc[one["row"], "age"])
    assert frame["weight (feature)" if "weight (feature)" in frame else "weight"].iloc[0] == (
        pytest.approx(new["weight"].iloc[1])
    )
    assert set(frame.loc["prototype", "arm[B]"]) <= {0.0, 1.0}


def test_features_may_be_called_as_columns_of_tables():
    """Those of an explanation, and those that such features are called there."""
    names = {"age": "impact", "weight": "impact (feature)", "noise": "Target", "arm": "Distance"}
    df = people(90)
    df["arm"], df["dose"] = (df["arm"] == "B") * 1.0, df["dose"] + 5 * df["noise"]
    hostile = df.rename(columns=names).drop(columns=["ill", "grade"])
    fit = ld.proset("dose ~ .", hostile, lambda_v=1e-3, threads=1)
    found, table = fit.explain(hostile[:1], train=hostile), fit.export()
    assert len(found.features) == 4
    for frame in (found.frame, found.nearest, table, *(t.frame for t in found.report().tables)):
        assert frame.columns.is_unique
    row = found.frame.iloc[0][found.features].to_list()
    assert sorted(row) == pytest.approx(sorted(hostile.drop(columns="dose").iloc[0]))


@kinds
def test_explanations_print(kind):
    e = fit_of(kind).explain(people(2, seed=1).iloc[0])
    text = str(e)
    assert text == repr(e) and max(map(len, text.splitlines())) <= 78
    for word in ("Explanation of row p0", "Familiarity", "null model", "prototype p", kind):
        assert word in text
    assert "<table>" in e._repr_html_()


@pytest.mark.long
def test_printed_rows_add_up_too():
    fit = fit_of("dose")
    e = fit.explain(people(1, seed=2), least=0.0)
    from lodim.models.proset.explain.explanation import _printed_rows

    few = _printed_rows(e)
    assert len(few) < len(e.frame) and few["role"].iloc[-1] == "others"
    assert few["contribution"].iloc[1:].sum() == pytest.approx(e.prediction)
    assert few["impact"].iloc[2:].sum() == pytest.approx(e.familiarity)


def test_which_features_are_shown():
    fit, row = fit_of("ill"), people(1, seed=1)
    every = fit.explain(row).features
    order = fit.tidy().sort_values("std_estimate", ascending=False, kind="stable")
    assert every == list(order["term"][: fit.df])
    assert fit.explain(row, features=2).features == every[:2]
    assert fit.explain(row, features=["age"]).features == ["age"]
    assert fit.explain(row, features=0).features == []
    with pytest.raises(ld.ArgumentError, match=r"active features .*age.*, not 'nonsense'"):
        fit.explain(row, features=["nonsense"])


def test_refused_rows():
    fit, new = fit_of("ill"), people(3, seed=1)
    with pytest.raises(ld.ArgumentError, match="must be one row, not 3"):
        fit.explain(new)
    with pytest.raises(ld.DataError, match="'age' is missing"):
        fit.explain(new.iloc[[0]].assign(age=np.nan))
    with pytest.raises(ld.ArgumentError, match="least must be between 0 and 1"):
        fit.explain(new.iloc[[0]], least=2)
    one = new.iloc[0]
    whole = fit.explain(new.iloc[[0]]).frame
    pd.testing.assert_frame_equal(fit.explain(one).frame, whole)
    from_dict = fit.explain({k: one[k] for k in ("age", "weight", "arm", "noise")}).frame
    assert pd.isna(from_dict["target"].iloc[0])
    np.testing.assert_array_equal(from_dict["impact"], whole["impact"])


# Algorithm 4.1 -----------------------------------------------------------------------------------


def naive_dominant(impact, code, prior):
    """Algorithm 4.1 as it is printed."""
    total = 1.0 + impact.sum()
    for r in sorted(set(impact), reverse=True):
        p = prior / total
        for w, k in zip(impact, code, strict=True):
            p[k] += (w >= r) * w / total
        t = impact[impact < r].sum() / total
        second, first = np.sort(p)[-2:]
        if first - second > t:
            return impact >= r
    return np.zeros(len(impact), bool)


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(2, 4))
@settings(max_examples=200, deadline=None)
def test_algorithm_4_1(seed, M, K):
    rng = np.random.default_rng(seed)
    impact = rng.integers(1, 6, M) * rng.choice([0.37, 1.3])  # ties
    code, prior = rng.integers(0, K, M), rng.dirichlet(np.ones(K))
    dominant = dominant_set(impact, code, prior)
    np.testing.assert_array_equal(dominant, naive_dominant(impact, code, prior))
    if dominant.any():  # whatever the classes of the others, the leading class stays
        q = prior + np.bincount(code, impact, K)
        for k in range(K):
            other = prior + np.bincount(np.where(dominant, code, k), impact, K)
            assert other.argmax() == q.argmax()


@given(st.integers(0, 10**6), st.integers(1, 7))
@settings(max_examples=200, deadline=None)
def test_dominant_set_of_numbers(seed, M):
    rng = np.random.default_rng(seed)
    impact, y = rng.gamma(1.0, 1.0, M), rng.normal(size=M)
    dominant = dominant_set(impact, y)
    side = np.sign(impact @ y)
    ends = np.array([min(y.min(), 0.0), max(y.max(), 0.0)])

    def stays(fixed):
        free = impact[~fixed].sum()
        return all(np.sign(impact[fixed] @ y[fixed] + free * end) == side for end in ends)

    assert stays(dominant)
    smaller = dominant.copy()
    smaller[np.argmin(np.where(dominant, impact, np.inf))] = False
    assert not smaller.any() or not stays(smaller)


# Familiarity, export, shrink ---------------------------------------------------------------------


def test_familiarity_against_rows_held_out():
    fit, new, held = fit_of("ill"), people(40, seed=1), people(200, seed=2)
    known, values = fit.familiarity(held).to_numpy(), fit.familiarity(new).to_numpy()
    share = (known <= values[:, None]).mean(axis=1)
    out = fit.familiarity(new, quantile=True, held_out=held)
    np.testing.assert_allclose(out, share)
    # Training rows without their own prototypes are as familiar as rows that are held out.
    own = fit.familiarity(held, quantile=True)
    for q in (0.1, 0.5, 0.9):
        assert abs((own <= q).mean() - q) < 0.12
    with pytest.raises(ld.ArgumentError, match="quantile=True"):
        fit.familiarity(new, held_out=held)
    with pytest.raises(ld.DataError, match="held_out must have a row"):
        fit.familiarity(new, quantile=True, held_out=held.assign(age=np.nan))


@kinds
def test_export(kind):
    fit, train = fit_of(kind), people()
    frame = fit.export()
    assert len(frame) == len(fit.estimates) and not frame.columns.duplicated().any()
    assert list(frame["batch"]) == sorted(frame["batch"])
    weights = frame.groupby("batch")["prototype_weight"]
    assert (weights.diff().dropna() <= 0).all()
    for _, one in frame.iterrows():
        assert one["target"] == pytest.approx(train.loc[one["row"], kind])
        assert one["weight"] == pytest.approx(train.loc[one["row"], "weight"])
        assert one["arm[B]"] == (train.loc[one["row"], "arm"] == "B")
    whole = fit.export(train)
    assert list(whole["arm"]) == list(train.loc[whole["row"], "arm"]) and kind not in whole
    with pytest.raises(ld.DataError, match="row labels"):
        fit.export(train[::-1])
    with pytest.raises(ld.DataError, match="the model was fitted to"):
        fit.export(train[:2])


def test_export_beside_data_with_gaps():
    """What was missing has been filled in: the data of the fit are taken for what they are."""
    df = ld.data("heart")
    fit = ld.proset("disease ~ .", df, lambda_v=0.02, threads=1)
    gaps = fit.estimates.row[df["vessels"].isna().to_numpy()[fit.estimates.row]]
    assert "vessels" in fit.export() and len(gaps)  # an active feature, missing in prototypes
    whole = fit.export(df)
    assert list(whole["thal"].isna()) == list(df.loc[whole["row"], "thal"].isna())
    assert fit.export(df.astype({"vessels": "Int64"}))["vessels"].equals(whole["vessels"])
    with pytest.raises(ld.DataError, match="'vessels' has other values"):
        fit.export(df.assign(vessels=df["vessels"] + 1.0))
    numbers = whole.select_dtypes(float).to_numpy()
    assert not np.signbit(numbers[numbers == 0.0]).any()  # no -0.0 from the mean taken off


@kinds
def test_shrink_keeps_predictions(kind, tmp_path):
    fit, new = fit_of(kind), people(90, seed=3)
    small = fit.shrink()
    features = small.design.features
    assert "noise" not in features and set(features) == {"age", "weight", "arm"}
    few = new[["age", "weight", "arm"]]
    for type_ in ("response", "link", "familiarity"):
        assert small.predict(few, type_).equals(fit.predict(new, type_))
    assert small.predict(new.assign(noise=np.nan)).equals(fit.predict(new))
    small.save(tmp_path / "small")
    back = ld.load(tmp_path / "small")
    assert back.predict(few).equals(fit.predict(new)) and str(back) == str(small)
    assert small.shrink() is small
    assert list(small.coef().index) == [k for k in fit.coef().index if k != "noise"]
    whole = fit.explain(new.iloc[[0]].drop(columns=kind)).frame
    pd.testing.assert_frame_equal(whole, small.explain(few.iloc[[0]]).frame)


def test_shrink_of_code_and_odd_names():
    df = people().rename(columns={"age": "age in years"})
    text = "ill ~ Q('age in years') + np.log(weight) + arm:weight + noise + bs(noise, df=4)"
    fit = ld.proset(text, df, lambda_v=1e-2, threads=1)
    small = fit.shrink()
    assert len(small.design.names) < len(fit.design.names)
    assert small.predict(df).equals(fit.predict(df))
    again = small.update(df)  # its formula is one
    assert again.design.names == small.design.names


def test_shrink_to_nothing(tmp_path):
    fit = ld.proset("ill ~ age + noise", people(), lambda_v=1e3, lambda_w=1e4, threads=1)
    small = fit.shrink()
    assert small.design.features == []
    assert small.predict(people(5)).equals(fit.predict(people(5)))
    e = small.explain(people(1))
    assert e.n_dominant == 0 and e.familiarity == 0.0
    assert e.prediction["yes"] == pytest.approx(fit.predict(people(1)).iloc[0])
    assert len(small.export()) == 0


# Reference and Shapley values --------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 25), st.integers(1, 3))
@settings(max_examples=80, deadline=None)
def test_mean_distances(seed, n, p):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, (n, p)) + rng.choice([0.0, 0.5, 1 / 3])
    naive = np.abs(x[:, None] - x).sum(axis=2).mean(axis=1)
    np.testing.assert_allclose(reference.mean_distances(x), naive, rtol=1e-12, atol=1e-12)


@given(st.integers(0, 10**6), st.integers(1, 12))
@settings(max_examples=80, deadline=None)
def test_algorithm_4_2(seed, n):
    """Borda's rule by counting, ties by entropy, then the first."""
    rng = np.random.default_rng(seed)
    x, p = rng.integers(0, 3, (n, 2)).astype(float), np.eye(2)[rng.integers(0, 2, n)] * 0.5 + 0.25
    points = np.zeros(n)
    for z in (x, p):
        d = np.abs(z[:, None] - z).sum(axis=2).sum(axis=1).round(9)
        points += [(d > one).sum() + 0.5 * ((d == one).sum() - 1) for one in d]
    tie = -(p * np.log(p)).sum(axis=1)
    best = max(range(n), key=lambda i: (points[i], round(tie[i], 9), -i))
    assert reference.reference_point(x, p, tie.round(9)) == best


@kinds
def test_reference_is_a_typical_row(kind, tmp_path):
    fit, train = fit_of(kind), people()
    own = fit.reference()
    pd.testing.assert_frame_equal(own, fit.reference(train))
    label = own.index[0]
    assert own["age"].iloc[0] == pytest.approx(train.loc[label, "age"])
    rank = train["age"].rank(pct=True)[label]
    assert 0.1 < rank < 0.9
    fit.save(tmp_path / "fit")
    pd.testing.assert_frame_equal(ld.load(tmp_path / "fit").reference(), own)
    with pytest.raises(ld.DataError, match="a row without missing values"):
        fit.reference(train.assign(age=np.nan))
    light = ld.path(ld.proset, FORMULAS[kind], train, lambdas=[1e-2]).fits[0]
    with pytest.raises(ld.ArgumentError, match="stores no typical row"):
        light.reference()


@kinds
@pytest.mark.parametrize("n_permutations", [None, 3])
def test_shapley_values_add_up(kind, n_permutations):
    fit, new = fit_of(kind), people(7, seed=4)
    new.loc["p2", "age"] = np.nan
    frame = fit.shapley(new, n_permutations=n_permutations)
    by = ["row", "level"] if kind == "grade" else ["row"]
    total = frame.groupby(by, sort=False)["shapley"].sum(min_count=4)
    np.testing.assert_allclose(total, fit.predict(new).to_numpy().ravel(), rtol=1e-10)
    at = train_reference(fit)
    start = frame[frame["term"] == "(reference)"]["shapley"].dropna().to_numpy()
    start = start.reshape(6, -1)
    np.testing.assert_allclose(start, np.tile(fit.predict(at).to_numpy().ravel(), (6, 1)))
    assert (frame["std_error"].dropna() == 0).all() == (n_permutations is None)
    assert set(frame["term"]) == {"(reference)", "age", "weight", "arm"}


def train_reference(fit):
    return people().loc[fit.reference().index]


def test_shapley_values_by_enumeration_of_orders():
    """Every order of the terms, each prediction made by predict()."""
    fit, one = fit_of("ill"), people(1, seed=5)
    base = train_reference(fit)
    terms = ["age", "weight", "arm"]
    phi = dict.fromkeys(terms, 0.0)
    for order in itertools.permutations(terms):
        at = base.copy()
        for term in order:
            before = fit.predict(at).iloc[0]
            at[term] = one[term].to_numpy()
            phi[term] += (fit.predict(at).iloc[0] - before) / math.factorial(3)
    out = fit.shapley(one, reference=base).set_index("term")["shapley"]
    for term in terms:
        assert out[term] == pytest.approx(phi[term], abs=1e-12)
    same = fit.shapley(one, reference=fit.reference()).set_index("term")["shapley"]
    np.testing.assert_allclose(same, out, atol=1e-12)


def test_dummy_terms_and_the_reference_itself():
    fit = fit_of("dose")
    base = train_reference(fit)
    out = fit.shapley(base).set_index("term")["shapley"]
    assert (out.drop("(reference)") == 0.0).all()
    moved = base.assign(age=base["age"] + 5.0)
    out = fit.shapley(moved).set_index("term")["shapley"]
    assert out["weight"] == out["arm"] == 0.0 != out["age"]


def game(seed, P=4):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(2**P, 2))
    return lambda S: table[S @ (1 << np.arange(P))]


def test_symmetry():
    """Players that do the same get the same."""
    value = game(0, 3)

    def shared(S):
        return value(np.column_stack([S[:, 0] & S[:, 1], S[:, 2], S[:, 3]]))

    phi = shapley.exact_values(shared, 4)
    np.testing.assert_allclose(phi[0], phi[1], rtol=1e-12)
    assert not np.allclose(phi[0], phi[2])


def test_sampled_values_are_near_the_exact_ones():
    value, P = game(1, 5), 5
    exact = shapley.exact_values(value, P)
    mean, error = shapley.sampled_values(value, P, 400, np.random.default_rng(0))
    assert (np.abs(mean - exact) < 4.5 * error).all() and (error < 0.1).all()
    whole = value(np.ones((1, P), bool)) - value(np.zeros((1, P), bool))
    np.testing.assert_allclose(mean.sum(axis=0), whole[0], rtol=1e-12)


def test_sampled_values_do_not_depend_on_other_rows():
    fit, new = fit_of("ill"), people(3, seed=1)
    together = fit.shapley(new, n_permutations=5)
    alone = pd.concat([fit.shapley(new.iloc[[i]], n_permutations=5) for i in (0, 1, 2)])
    pd.testing.assert_frame_equal(together, alone.reset_index(drop=True))


def test_shapley_refusals():
    fit, new = fit_of("ill"), people(3, seed=1)
    several = new.assign(age=1.0)[["age", "weight", "arm", "noise"]]
    with pytest.raises(ld.ArgumentError, match="reference must be one row, not 3"):
        fit.shapley(new, reference=several)
    with pytest.raises(ld.ArgumentError, match="n_permutations must be an integer from 2"):
        fit.shapley(new, n_permutations=1)
    for seed in (-1, 0.5, None, True):
        with pytest.raises(ld.ArgumentError, match="seed must be an integer from 0"):
            fit.shapley(new, seed=seed)


# The map, Eqs. 4.1-4.4 ---------------------------------------------------------------------------


def test_map_is_weighted_pca():
    rng = np.random.default_rng(0)
    x, w, v = rng.normal(size=(30, 4)), rng.gamma(1.0, 1.0, 30), np.array([2.0, 0.5, 0.0, 1.0])
    to_plane = BatchMap(x, w, v)
    Z = x * v
    Z = Z - np.average(Z, axis=0, weights=w)
    values, U = np.linalg.eigh(Z.T @ np.diag(w) @ Z)
    expected = Z @ U[:, ::-1][:, :2]
    got = to_plane(x)
    signs = np.sign((got * expected).sum(axis=0))
    np.testing.assert_allclose(got, expected * signs, atol=1e-10)
    np.testing.assert_allclose(to_plane.share, values[::-1][:3] / values.sum(), atol=1e-12)
    assert to_plane.axes.shape == (4, 3)  # the feature without weight is not in it
    flat = BatchMap(x[:, :1], w, v[:1])(x[:, :1])
    assert (flat[:, 1] == 0).all() and np.ptp(flat[:, 0]) > 0


# Excel -------------------------------------------------------------------------------------------


def test_explanation_in_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    fit, row = fit_of("grade"), people(1, seed=1)
    fit.to_excel(tmp_path / "e.xlsx", row, features=2)
    frame = fit.explain(row, features=2).frame
    book = openpyxl.load_workbook(tmp_path / "e.xlsx")
    page = book["explanation"]
    names = [c.value for c in page[1]]
    assert names == [c.replace("_", " ") if c == "prototype_weight" else c for c in frame]
    assert page.max_row == 1 + len(frame) and page.freeze_panes == "D2"
    for k, name in enumerate(frame, start=1):
        cells = [page.cell(i, k).value for i in range(2, page.max_row + 1)]
        for cell, value in zip(cells, frame[name], strict=True):
            assert (cell is None) == bool(pd.isna(value))
            assert cell is None or cell == (pytest.approx(value) if name != "row" else value)
    assert page.cell(3, names.index("impact") + 1).number_format == "0.00"
    assert page.cell(3, names.index("p[low]") + 1).number_format == "0.000"
    assert page["A1"].fill.fgColor.rgb != page["A2"].fill.fgColor.rgb and page["A1"].font.bold
    letter = page.cell(1, names.index("impact") + 1).column_letter
    (scaled,) = [str(r.sqref) for r in page.conditional_formatting]
    assert scaled == f"{letter}2:{letter}{page.max_row}"
    assert page.column_dimensions["D"].width >= 9
    said = {r[0].value: r[1].value for r in book["about"].iter_rows(min_row=2)}
    assert said["Response"] == "grade" and said["Explanation of row"] == "p0"


def test_prototypes_in_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    fit = fit_of("dose")
    fit.to_excel(tmp_path / "p.xlsx")
    page = openpyxl.load_workbook(tmp_path / "p.xlsx")["prototypes"]
    back = pd.DataFrame(page.iter_rows(min_row=2, values_only=True))
    np.testing.assert_allclose(back[4].astype(float), fit.export()["prototype_weight"])


LIVE = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "#N/A", "a\0b", "\ud800", "x" * 40_000]


def cells(file):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(file)
    return [c for page in book for row in page.iter_rows() for c in row if c.value is not None]


def test_heads_and_cells_are_no_formulas(tmp_path):
    from lodim.report import excel

    heads = pd.Index(LIVE, dtype=object)
    frame = pd.DataFrame(
        [LIVE, [np.inf, True, 7, -0.5, None, *[np.nan] * 5]], columns=heads, dtype=object
    )
    title = "=a/b:[c]?*" + "x" * 40
    excel.write(tmp_path / "f.xlsx", [excel.Sheet(title, frame, rows={0: "FFFFFF"})])
    found = cells(tmp_path / "f.xlsx")
    assert {c.data_type for c in found[:20]} == {"s"} and found[0].value == found[
        10
    ].value == "=1+1"
    assert [c.quotePrefix for c in found[:10]] == [True] * 6 + [False] * 4
    assert [c.value for c in found[20:]] == ["inf", True, 7, -0.5]


@pytest.mark.long
def test_names_and_labels_of_data_are_no_formulas(tmp_path):
    df = people().rename(columns={"age": "=1+1", "arm": "@arm"})
    df.index = [f"={k}" for k in range(len(df))]
    df["=k"] = np.where(df["=1+1"] > df["=1+1"].median(), "=yes", "+no")
    fit = ld.proset("Q('=k') ~ Q('=1+1') + Q('@arm')", df, threads=1)
    for row in (None, df.iloc[[0]]):
        fit.to_excel(tmp_path / "p.xlsx", row)
        found = cells(tmp_path / "p.xlsx")
        assert "=1+1" in {c.value for c in found} and "f" not in {c.data_type for c in found}


@pytest.mark.parametrize("path", [None, 3, "", "no/such/place.xlsx", "a\0b", []], ids=repr)
def test_where_no_workbook_can_be_written(path):
    pytest.importorskip("openpyxl")
    with pytest.raises(ld.StoreError, match="cannot be written"):
        fit_of("ill").to_excel(path)


def test_what_no_sheet_holds(tmp_path):
    pytest.importorskip("openpyxl")
    from lodim.report import excel

    wide = pd.DataFrame(np.zeros((1, 16_385)))
    with pytest.raises(ld.DataError, match="too many for a sheet"):
        excel.write(tmp_path / "w.xlsx", [excel.Sheet("s", wide)])


def test_excel_is_an_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ld.MissingExtraError, match=r"lodim\[excel\]"):
        fit_of("ill").to_excel(tmp_path / "p.xlsx")


@pytest.mark.long
def test_offsets_are_in_explanations_and_shapley_values():
    df = people().assign(o=np.linspace(-1, 1, 260))
    fit = ld.proset("dose ~ age + arm", df, offset="o", threads=1)
    new = df.iloc[[7]]
    expected = fit.predict(new).iloc[0]
    e = fit.explain(new)
    assert e.frame["contribution"].iloc[1:].sum() == pytest.approx(expected)
    assert fit.shapley(new)["shapley"].sum() == pytest.approx(expected)


@pytest.mark.long
def test_float32_features_are_put_back():
    fit = ld.proset("ill ~ arm + age", people(), dtype="float32", threads=1)
    assert set(fit.export()["arm[B]"]) <= {0.0, 1.0}
