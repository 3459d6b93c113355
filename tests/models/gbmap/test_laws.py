"""gbmap: what its maths promises, on fitted models through the public interface."""

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge

import lodim as ld

TIGHT = {"tol": 1e-10, "ftol": 1e-16, "max_iter": 5000}
P = 4
X_NAMES = [f"x{k + 1}" for k in range(P)]


def make(n=150, seed=0, p=P):
    """A frame with a curved gaussian response y, a binary one c and a three-class one k."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.geomspace(0.5, 20, p) + np.linspace(-3, 50, p)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    f = np.abs(Z[:, 0]) + Z[:, 1] - 0.5 * np.maximum(Z[:, 2 % p], 0)
    df = pd.DataFrame(X, columns=[f"x{k + 1}" for k in range(p)])
    df["y"] = 30 + 7 * f + 2 * rng.normal(size=n)
    df["c"] = np.where(rng.random(n) < expit(2 * (f - 1)), "yes", "no")
    df["k"] = np.array(["u", "v", "w"])[(f > 0.3).astype(int) + (f > 1.3)]
    return df


DF = make()
FORMULA = " + ".join(X_NAMES)


def fit(response="y", data=None, formula=FORMULA, **arguments):
    arguments = {"m": 3, "lambda_": 0.01, "beta": 3.0, "control": TIGHT} | arguments
    return ld.gbmap(f"{response} ~ {formula}", DF if data is None else data, **arguments)


def settled(response="y", data=None, **arguments):
    """A fit whose optimizer ran to the end of floating point: it may say so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        return fit(response, data, **arguments)


@pytest.fixture(scope="module")
def fits():
    return {response: settled(response) for response in "yck"}


def standardized(df=DF):
    X = df[X_NAMES].to_numpy()
    return (X - X.mean(axis=0)) / X.std(axis=0)


# Identity activation: ridge and logistic regression -------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("lambda_", [0.0, 1e-3, 0.1, 10.0])
def test_identity_is_ridge(lambda_):
    one = settled(activation="identity", m=1, lambda_=lambda_)
    Z, y, n = standardized(), DF["y"].to_numpy(), len(DF)
    # n^-1 |y - Zw|^2 + lambda |w|^2 / p is ridge with the penalty n lambda / p.
    w = np.linalg.solve(Z.T @ Z + n * lambda_ / P * np.eye(P), Z.T @ (y - y.mean()))
    np.testing.assert_allclose(one.predict(DF), y.mean() + Z @ w, atol=1e-6)
    np.testing.assert_allclose(one.coef(), w / DF[X_NAMES].std(ddof=0), atol=1e-6)
    peer = Ridge(alpha=n * lambda_ / P).fit(Z, y)
    np.testing.assert_allclose(one.tidy()["std_estimate"], peer.coef_, atol=1e-6)


@pytest.mark.long
def test_identity_ridge_unstandardized():
    one = settled(activation="identity", m=1, lambda_=0.05, standardize=False)
    X, y = DF[X_NAMES].to_numpy(), DF["y"].to_numpy()
    peer = Ridge(alpha=len(DF) * 0.05 / P).fit(X, y)
    np.testing.assert_allclose(one.predict(DF), peer.predict(X), atol=1e-5)


@pytest.mark.parametrize("lambda_", [1e-3, 0.1])
def test_identity_is_logistic_ridge(lambda_):
    one = settled("c", activation="identity", m=1, lambda_=lambda_)
    Z, y = standardized(), DF["c"] == "yes"
    peer = LogisticRegression(C=P / (2 * len(DF) * lambda_), tol=1e-12, max_iter=10**4).fit(Z, y)
    np.testing.assert_allclose(one.tidy()["std_estimate"], peer.coef_[0], atol=1e-5)
    np.testing.assert_allclose(one.predict(DF), peer.predict_proba(Z)[:, 1], atol=1e-6)


def test_identity_without_penalty_is_logit():
    one = settled("c", activation="identity", m=1, lambda_=0.0)
    peer = sm.Logit((DF["c"] == "yes") * 1.0, sm.add_constant(standardized())).fit(
        disp=0, method="newton", maxiter=100
    )
    np.testing.assert_allclose(one.tidy()["std_estimate"], peer.params[1:], atol=1e-6)
    assert one.glance()["deviance"][0] * len(DF) == pytest.approx(-2 * peer.llf)
    assert one.null_deviance * len(DF) == pytest.approx(-2 * peer.llnull)


def test_identity_with_l1_is_the_lasso():
    one = settled(activation="identity", m=1, lambda_=0.8, l1_ratio=1.0)
    y = DF["y"].to_numpy()
    scale = y.std()
    # n^-1 |y - Zw|^2 + lambda |w|_1 / p: the lasso's alpha is lambda / (2 p).
    peer = Lasso(alpha=0.8 / (2 * P), tol=1e-12, max_iter=10**6).fit(standardized(), y / scale)
    np.testing.assert_allclose(one.tidy()["std_estimate"], scale * peer.coef_, atol=1e-5)
    assert one.df == np.count_nonzero(peer.coef_) < P


def test_identity_of_more_columns_than_rows_converges_by_default():
    few = make(n=40, p=90)
    one = ld.gbmap("y ~ . - c - k", few, activation="identity", l1_ratio=0.5, lambda_=1.0, m=1)
    y, X = few["y"].to_numpy(), few.drop(columns=["y", "c", "k"]).to_numpy()
    Z, alpha = (
        (X - X.mean(axis=0)) / X.std(axis=0),
        0.75 / 90,
    )  # as above; the ridge's is lambda / p
    peer = ElasticNet(alpha=alpha, l1_ratio=1 / 3, tol=1e-14, max_iter=10**6).fit(Z, y / y.std())
    assert one.converged and one.df == np.count_nonzero(peer.coef_) < 90
    np.testing.assert_allclose(one.tidy()["std_estimate"] / y.std(), peer.coef_, atol=2e-5)


@pytest.mark.parametrize("response", ["y", "c"])
def test_lemma_1_later_stages_vanish(response):
    lambdas = np.geomspace(1e-3, 1e-2, 4)
    norms = np.array(
        [
            np.linalg.norm(
                settled(response, activation="identity", m=3, lambda_=v).estimates.theta[:, 2:],
                axis=1,
            )
            for v in lambdas
        ]
    )
    for j in (0, 1, 2):
        slope = np.polyfit(np.log(lambdas), np.log(norms[:, j]), 1)[0]
        assert slope == pytest.approx(j, abs=0.15), j


def test_lemma_1_without_penalty():
    theta = settled(activation="identity", m=3, lambda_=0.0).estimates.theta
    assert np.abs(theta[1:, 2:]).max() < 1e-8 < np.abs(theta[0, 2:]).min()


# Distances: Eqs. 5-8 ---------------------------------------------------------------------------


@given(seed=st.integers(0, 10**5), beta=st.floats(0.5, 40), m=st.integers(1, 6),
       response=st.sampled_from("yck"))  # fmt: skip
@settings(max_examples=15, deadline=None)
@pytest.mark.filterwarnings("ignore::lodim.errors.ExtrapolationWarning")
def test_eq_8(seed, beta, m, response):
    one = fit(response, seed=seed, beta=beta, m=m, control=None)
    rng = np.random.default_rng(seed)
    new = DF.iloc[rng.permutation(len(DF))[:6]].copy()
    new[X_NAMES] += 3 * rng.normal(size=(6, P)) * DF[X_NAMES].std().to_numpy()
    f = one.predict(new, "link").to_numpy().reshape(6, -1)
    gap = np.abs(f[:, None] - f[None]).sum(axis=2)
    path = one.distance(new, kind="path", tolerance=1e-5).to_numpy()
    embedded = one.distance(new).to_numpy()
    slack = 1e-5 + 1e-9 * embedded.max()
    assert (gap <= path + slack).all() and (path <= embedded + slack).all()
    np.testing.assert_allclose(path, path.T, atol=2e-5)
    np.testing.assert_allclose(np.diag(embedded), 0.0, atol=1e-12)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5])
def test_path_distance_against_fine_integration(fits, tolerance):
    one, ends = fits["y"], DF.iloc[:5]
    got = one.distance(ends, kind="path", tolerance=tolerance).to_numpy()
    t = np.linspace(0, 1, 20001)[:, None]
    for i, j in ((0, 1), (2, 3), (0, 4)):
        x, z = (ends[X_NAMES].to_numpy()[[k]] for k in (i, j))
        line = one.predict(pd.DataFrame((1 - t) * x + t * z, columns=X_NAMES), "link")
        assert got[i, j] == pytest.approx(np.abs(np.diff(line)).sum(), abs=tolerance + 1e-5)


@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_embedding_sums_to_the_link(fits, response):
    one = fits[response]
    E, link = one.predict(DF, "embedding"), one.predict(DF, "link")
    if response == "k":
        E.columns = [name[name.index("[") + 1 : -1] for name in E]
        E = E.T.groupby(level=0).sum().T[list(link)]
        np.testing.assert_allclose(E, link, atol=1e-10)
    else:
        np.testing.assert_allclose(E.sum(axis=1), link, atol=1e-10)
    embedded = one.predict(DF, "embedding").to_numpy()
    expected = np.abs(embedded[:9, None] - embedded[None]).sum(axis=2)
    np.testing.assert_allclose(one.distance(DF[:9], DF), expected, atol=1e-10)


# Invariances -----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_same_bits_again_and_on_any_threads(response):
    data = pd.concat([DF] * 60, ignore_index=True)  # 9,000 rows: three blocks
    data[X_NAMES] += np.random.default_rng(0).normal(size=(len(data), P))
    runs = [fit(response, data, threads=t, control=None) for t in (1, 2, 2)]
    for other in runs[1:]:
        np.testing.assert_array_equal(runs[0].estimates.theta, other.estimates.theta)
        pd.testing.assert_frame_equal(
            runs[0].predict(data, "link").to_frame() if response != "k" else
            runs[0].predict(data, "link"),
            other.predict(data, "link").to_frame() if response != "k" else
            other.predict(data, "link"), check_exact=True,
        )  # fmt: skip
    other = fit(response, data, seed=1, control=None)  # starts belong to the data
    np.testing.assert_array_equal(runs[0].estimates.theta, other.estimates.theta)


@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_units_of_the_features_do_not_matter(fits, response):
    # Positive factors: a mirrored feature would be met by other random starts.
    moved = DF.copy()
    moved[X_NAMES] = moved[X_NAMES] * [1e-3, 7.0, 1e4, 1.0] + [5.0, -1e3, 0.0, 12.0]
    other = settled(response, moved)
    np.testing.assert_allclose(
        other.predict(moved, "link"), fits[response].predict(DF, "link"), atol=1e-5, rtol=1e-6
    )


@pytest.mark.parametrize("shift, factor", [(1000.0, 1.0), (0.0, 1e-4), (-3.0, 1e5)])
def test_units_of_a_numeric_response_do_not_matter(fits, shift, factor):
    moved = DF.assign(y=factor * DF["y"] + shift)
    expected = factor * fits["y"].predict(DF) + shift
    got = settled("y", moved)
    np.testing.assert_allclose(got.predict(DF), expected, atol=1e-5 * factor, rtol=1e-7)
    np.testing.assert_allclose(got.coef(), factor * fits["y"].coef(), rtol=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("shift", [2.0**27, 2.0**37])
@pytest.mark.parametrize(
    "arguments",
    [{"refit": "joint"}, {"activation": "identity"}, {"dtype": "float32"}, {"weights": "x1"}],
    ids=lambda arguments: next(iter(arguments)),
)
def test_how_far_a_response_is_from_zero_does_not_matter(arguments, shift):
    # In units of 2^-12 the shift costs y nothing.
    near = DF.assign(y=np.round(DF["y"] * 4096.0) / 4096.0, x1=DF["x1"].abs())
    far = near.assign(y=near["y"] + shift, o=shift)
    formula = f"y ~ {FORMULA}"
    one, other = (ld.gbmap(formula, d, m=3, lambda_=0.01, **arguments) for d in (near, far))
    beside = ld.gbmap(formula, far, m=3, lambda_=0.01, offset="o", **arguments)
    for fit in (other, beside):
        assert fit.converged and fit.dev_ratio == pytest.approx(one.dev_ratio, abs=1e-6)
        np.testing.assert_allclose(fit.predict(far) - shift, one.predict(near), atol=0.01)


@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_order_of_rows_does_not_matter(fits, response):
    mixed = DF.sample(frac=1.0, random_state=3)
    got = settled(response, mixed).predict(DF, "link")
    np.testing.assert_allclose(got, fits[response].predict(DF, "link"), atol=1e-5)


@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_weights_are_repeated_rows(response):
    times = np.random.default_rng(1).integers(1, 4, len(DF))
    weighted = settled(response, DF.assign(t=times), weights="t")
    repeated = settled(response, DF.loc[DF.index.repeat(times)])
    np.testing.assert_allclose(
        weighted.predict(DF, "link"), repeated.predict(DF, "link"), atol=1e-5
    )
    assert weighted.null_deviance == pytest.approx(repeated.null_deviance)
    assert weighted.dev_ratio == pytest.approx(repeated.dev_ratio)
    np.testing.assert_allclose(weighted.coef(), repeated.coef(), atol=1e-6)
    scaled = settled(response, DF, weights=7.5 * times)
    np.testing.assert_allclose(scaled.predict(DF, "link"), weighted.predict(DF, "link"), atol=1e-5)


@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_weight_zero_is_a_row_left_out(response):
    weights = (np.arange(len(DF)) % 5 > 0).astype(float)
    zero, without = settled(response, weights=weights), settled(response, DF[weights > 0])
    np.testing.assert_allclose(zero.predict(DF, "link"), without.predict(DF, "link"), atol=1e-5)


def test_weight_zero_makes_no_neighbour():
    """A row that did not count cannot make a place familiar."""
    weights = (np.arange(len(DF)) % 5 > 0).astype(float)
    zero, without = settled(weights=weights), settled(data=DF[weights > 0])
    np.testing.assert_allclose(zero.drift(DF), without.drift(DF), atol=1e-4)
    np.testing.assert_allclose(zero.neighbours(DF, 3), without.neighbours(DF, 3), atol=1e-4)


def test_offset_is_a_fit_of_the_residual():
    offset = 0.1 * DF["x3"] + np.sin(DF["x1"])
    beside = settled("y", DF.assign(o=offset), offset="o")
    residual = settled("y", DF.assign(y=DF["y"] - offset))
    np.testing.assert_allclose(
        beside.predict(DF.assign(o=offset)), residual.predict(DF) + offset, atol=1e-6
    )
    np.testing.assert_allclose(beside.coef(), residual.coef(), atol=1e-8)
    assert beside.dev_ratio == pytest.approx(residual.dev_ratio)
    np.testing.assert_allclose(beside.drift(DF.assign(o=0)), residual.drift(DF), atol=1e-8)


def test_constant_offset_of_a_logit_only_moves_the_intercept(fits):
    got = settled("c", offset=np.full(len(DF), 0.7))
    np.testing.assert_allclose(
        got.predict(DF, "link", offset=np.full(len(DF), 0.7)),
        fits["c"].predict(DF, "link"), atol=1e-5,
    )  # fmt: skip


def test_first_stages_of_a_longer_fit(fits):
    for response in "yck":
        long, short = settled(response, m=6), fits[response]
        np.testing.assert_array_equal(long.first(3).estimates.theta, short.estimates.theta)
        np.testing.assert_array_equal(long.first(3).predict(DF, "link"), short.predict(DF, "link"))
        staged = long.staged(DF, "link")
        assert list(staged) == [1, 2, 3, 4, 5, 6]
        np.testing.assert_array_equal(staged[3], short.predict(DF, "link"))
        deviance = long.learners()["deviance"].to_numpy()
        assert (np.diff(deviance) <= 1e-9 * deviance[0]).all() or response == "k"


def test_multinomial_of_two_classes_is_about_binomial():
    data = make(400, seed=2)
    two, many = (
        fit("c", data, m=8, lambda_=1e-3, control=None, family=f)
        for f in ("binomial", "multinomial")
    )
    a, b = (one.predict(data, "prob") for one in (two, many))
    assert list(a) == list(b) == ["no", "yes"]
    assert np.abs(a - b).to_numpy().mean() < 0.04
    assert two.dev_ratio == pytest.approx(many.dev_ratio, abs=0.06)
    np.testing.assert_allclose(many.evaluate(data)["deviance"], many.log["deviance"][-1])


@pytest.mark.parametrize("response", ["c", "k"])
def test_probabilities_sum_to_one(fits, response):
    prob = fits[response].predict(DF, "prob")
    np.testing.assert_allclose(prob.sum(axis=1), 1.0)
    assert ((prob >= 0) & (prob <= 1)).all().all()
    best = prob.to_numpy().argmax(axis=1)
    assert (fits[response].predict(DF, "class") == prob.columns.to_numpy()[best]).all()


# Explanations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_local_explanation_is_the_gradient(fits, response):
    one, new = fits[response], DF.iloc[:20]
    local = one.predict(new, "local")
    for name in X_NAMES:
        h = 1e-5 * DF[name].std()
        up, down = (one.predict(new.assign(**{name: new[name] + s * h}), "link") for s in (1, -1))
        numeric = ((up - down) / (2 * h)).to_numpy()
        got = local[name] if response != "k" else local.xs(name, axis=1, level=1)
        np.testing.assert_allclose(got, numeric, rtol=1e-4, atol=1e-4 * np.abs(numeric).max())
    averages = one.tidy()
    if response != "k":
        everywhere = one.predict(DF, "local")
        np.testing.assert_allclose(averages["estimate"], everywhere.mean(), atol=1e-10)
        np.testing.assert_allclose(averages["estimate_abs"], everywhere.abs().mean(), atol=1e-10)


def test_regions_have_features_called_as_their_own_columns():
    df = pd.DataFrame({"n": np.linspace(-1, 1, 40), "share": np.arange(40) % 3})
    regions = ld.gbmap("y ~ .", df.assign(y=df["n"] ** 2), m=2, lambda_=0.1).regions(df)
    assert list(regions) == ["active", "n", "share", "n (feature)", "share (feature)"]


@pytest.mark.parametrize("response", ["y", "k"])
def test_regions_are_the_limit_of_local_gradients(response):
    one = fit(response, beta=5000.0, control=None)
    regions = one.regions(DF)
    assert regions["n"].sum() == len(DF) and regions["share"].sum() == pytest.approx(1)
    assert (np.diff(regions["n"]) <= 0).all()
    local = one.predict(DF, "local").to_numpy()
    table = regions.drop(columns=["active", "n", "share"]).to_numpy()
    gaps = np.abs(local[:, None] - table[None]).max(axis=2)
    near = gaps.min(axis=1) < 1e-3 * np.abs(table).max()
    assert near.mean() > 0.85  # all rows but those on an edge
    own = np.bincount(gaps[near].argmin(axis=1), minlength=len(table))
    assert np.abs(own - regions["n"]).sum() <= 0.2 * len(DF)


def test_difference_of_two_models():
    """Sect. 5.1: with one model as offset, the embedding shows where another differs."""
    rng = np.random.default_rng(4)
    df = pd.DataFrame(rng.normal(size=(600, 3)), columns=["a", "b", "d"])
    first = df["a"] + df["b"]
    second = first + 4 * np.maximum(df["d"] - 0.5, 0)
    both = df.assign(h=first, y=second)
    one = ld.gbmap("y ~ a + b + d", both, offset="h", m=1, lambda_=1e-4, beta=30.0)
    assert one.dev_ratio > 0.95
    effect = one.tidy().set_index("term")["std_estimate_abs"]
    assert effect["d"] > 20 * max(effect["a"], effect["b"])
    E = one.predict(both, "embedding")["f1"]
    agree = df["d"] < 0
    assert np.ptp(E[agree]) < 0.1 * np.ptp(E)
    same = ld.gbmap("y ~ a + b + d", both.assign(y=first + rng.normal(size=600)), offset="h",
                    m=1, lambda_=0.5)  # fmt: skip
    assert same.dev_ratio < 0.05


@pytest.mark.parametrize("seed", range(2))
def test_three_clusters(seed):
    """Appendix F: PCA shows three clusters, the embedding merges b1 and b2."""
    df = ld.three_clusters(900, seed=seed)
    one = ld.gbmap("y ~ .", df, m=20, lambda_=1e-3, beta=5.0)
    a, b1, b2 = (slice(*df.attrs["clusters"][name]) for name in ("a", "b1", "b2"))
    for space, merged in ((df.drop(columns="y"), False), (one.predict(df, "embedding"), True)):
        Z = space.to_numpy() - space.to_numpy().mean(axis=0)
        pc = (Z @ np.linalg.svd(Z, full_matrices=False)[2].T)[:, :2]
        centre = [pc[c].mean(axis=0) for c in (a, b1, b2)]
        apart = np.linalg.norm(centre[1] - centre[2]) / np.linalg.norm(centre[0] - centre[1])
        assert apart < 0.2 if merged else apart > 0.5, (merged, apart)


# Awkward data ----------------------------------------------------------------------------------


def test_constant_column_and_one_level_factor(fits):
    data = DF.assign(one=3.0, level="only")
    got = settled("y", data, formula=FORMULA + " + one + level")
    assert (got.predict(data.assign(one=99.0)) == got.predict(data)).all()
    assert got.dev_ratio == pytest.approx(fits["y"].dev_ratio, abs=0.1)


@pytest.mark.parametrize("lambda_", [0.0, 0.01])
def test_a_constant_column_has_no_effect(lambda_):
    """Nothing can be learnt of it: its weight is zero, not what the random start was."""
    got = fit(data=DF.assign(one=3.0), formula=FORMULA + " + one", lambda_=lambda_, control=None)
    assert got.coef()["one"] == 0
    assert (got.projections()["one"] == 0).all() and got.df == 3 * P


def test_perfect_separation_is_finite_under_a_penalty():
    data = DF.assign(c=np.where(DF["x1"] > DF["x1"].median(), "yes", "no"))
    for activation in ("softplus", "identity"):
        one = ld.gbmap(f"c ~ {FORMULA}", data, m=3, lambda_=0.01, activation=activation)
        assert one.converged and np.isfinite(one.predict(data, "link")).all()
        assert one.evaluate(data)["accuracy"][0] > 0.97
        assert one.predict(data, "link").abs().max() < 50


def test_one_row_and_no_rows():
    one = fit(control=None)
    every = one.predict(DF)
    for i in (0, 77):
        assert one.predict(DF.iloc[[i]]).iloc[0] == pytest.approx(every.iloc[i], rel=1e-14)
    assert one.predict(DF[:0]).shape == (0,)
    assert one.predict(DF[:0], "embedding").shape == (0, 3)
    assert one.distance(DF[:0], DF[:2]).shape == (0, 2)


def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(30, 120)), columns=[f"v{k}" for k in range(120)])
    wide["y"] = wide["v3"] + 0.1 * rng.normal(size=30)
    one = ld.gbmap("y ~ .", wide, m=2, lambda_=1.0, l1_ratio=0.9)
    assert one.dev_ratio > 0.5
    assert one.tidy().set_index("term")["std_estimate_abs"].idxmax() == "v3"


@pytest.mark.long
def test_two_thousand_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2000))
    wide = pd.DataFrame(X, columns=[f"v{k}" for k in range(2000)])
    wide["y"] = X[:, 0] + X[:, 1] > 0
    one = ld.gbmap("y ~ .", wide, m=2, lambda_=1.0)
    assert one.evaluate(wide)["accuracy"][0] > 0.9
    assert one.predict(wide, "local").shape == (200, 2000)


@pytest.mark.long
def test_float32_is_close(fits):
    for response in "yc":
        single = fit(response, dtype="float32", control=None)
        double = fit(response, control=None)
        np.testing.assert_allclose(
            single.predict(DF), double.predict(DF), atol=0.02 * np.std(double.predict(DF))
        )


def test_constant_columns_do_not_dilute_the_penalty():
    """lambda is a mean over the weights that there are: a column of ones is none."""
    more = DF.assign(one=1.0, two=2.0)
    plain = settled(activation="identity", m=1, lambda_=0.5)
    padded = settled(data=more, formula=FORMULA + " + one + two", activation="identity", m=1,
                     lambda_=0.5)  # fmt: skip
    np.testing.assert_allclose(padded.coef()[X_NAMES], plain.coef(), atol=1e-6)


# What a boost may never do -----------------------------------------------------------------------


@pytest.mark.parametrize("lambda_", [1e-3, 1.0, 1e3, 1e5, 1e8])
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_no_boost_raises_the_loss(lambda_, n_classes):
    """A learner with w = 0 adds nothing: no boost may end above it, whatever the penalty."""
    rng = np.random.default_rng(1)
    df = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc"))
    df["y"] = df["a"] + rng.normal(size=120)
    if n_classes:
        df["y"] = np.array(list("uvw"))[np.where(rng.random(120) < 0.15, 1 + n_classes // 3, 0)]
        df.loc[:3, "y"] = list("uvwu")[:4] if n_classes == 3 else list("uvuv")
    one = ld.gbmap("y ~ a + b + c", df, m=5, lambda_=lambda_)
    loss = np.r_[one.null_deviance, one.log["deviance"]]
    assert (np.diff(loss) <= 1e-9 * loss[0]).all()


@pytest.mark.parametrize("control", [{}, {"penalize_intercept": True}])
@pytest.mark.parametrize("response", ["y", "k"])
def test_at_lambda_max_the_lasso_is_the_null_model(response, control):
    rng = np.random.default_rng(2)
    df = pd.DataFrame(rng.normal(size=(90, 2)), columns=["a", "b"])
    df["y"] = df["a"] + rng.normal(size=90)
    df["k"] = np.array(list("uvw"))[rng.choice(3, 90, p=[0.7, 0.2, 0.1])]
    top = ld.path(
        ld.gbmap, f"{response} ~ a + b", df, m=1, l1_ratio=1.0, n_lambda=2, activation="identity",
        control=control,
    ).fits[0]  # fmt: skip
    assert top.df == 0 and top.dev_ratio == pytest.approx(0.0, abs=1e-7)


def test_identity_with_default_tolerances_is_ordinary_least_squares():
    df = ld.data("autompg").dropna().drop(columns="origin")
    one = ld.gbmap("mpg ~ .", df, m=1, lambda_=0, activation="identity")
    X = np.column_stack([np.ones(len(df)), df.drop(columns="mpg")])
    expected = np.linalg.lstsq(X, df["mpg"], rcond=None)[0][1:]
    np.testing.assert_allclose(one.coef(), expected, rtol=1e-4)


@pytest.mark.long
def test_threshold_of_drift_heeds_weights():
    """Rows of weight zero, far away, do not decide what is usual."""
    rng = np.random.default_rng(3)
    df = pd.DataFrame(rng.normal(size=(160, 2)), columns=["a", "b"])
    df["y"] = np.sin(2 * df["a"]) + df["b"] + 0.1 * rng.normal(size=160)
    far = df.assign(a=50 * df["a"], b=50 * df["b"], w=0.0)
    both = pd.concat([df.assign(w=1.0), far], ignore_index=True)
    control = {"max_stages": 10}
    alone = ld.gbmap("y ~ a + b", df, control=control).drift_threshold()
    weighted = ld.gbmap("y ~ a + b", both, weights="w", control=control).drift_threshold()
    assert weighted < 3 * alone


def test_few_rows_that_count():
    rng = np.random.default_rng(4)
    df = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "y"])
    one = ld.gbmap(
        "y ~ a + b", df, weights=np.r_[np.ones(5), np.zeros(35)], control={"max_stages": 2}
    )
    with pytest.raises(ld.ArgumentError, match="data"):
        one.drift_threshold()
