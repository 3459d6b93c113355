"""melm as its user sees it: estimates against naive NumPy, and what a fit can be asked."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import lodim as ld
from lodim import forms
from lodim.family import Binomial
from lodim.fitting import storage
from lodim.models.melm import estimate, search
from lodim.models.melm.model import FINE
from lodim.models.melm.rule import calibrated_deviance
from lodim.selection import tuning

QUICK = {"gamma": 1.0, "n_starts": 4, "threads": 1}
LEDOIT_WOLF = {"covariance": "ledoit-wolf"}
PLAIN = QUICK | {"control": {"calibrate": False}}
UNSHRUNK = QUICK | {"control": {"calibrate": False, "shrinkage_factor": 0.0}}


@pytest.fixture(scope="module")
def wine():
    return ld.data("wine")


@pytest.fixture(scope="module")
def two(wine):
    """Two classes, five features."""
    keep = wine["cultivar"] != "Barolo"
    columns = ["cultivar", "alcohol", "malic_acid", "flavanoids", "color_intensity", "hue"]
    return wine.loc[keep, columns].reset_index(drop=True)


@pytest.fixture(scope="module")
def fit(two):
    return ld.melm("cultivar ~ .", two, **QUICK, **LEDOIT_WOLF)


@pytest.fixture(scope="module")
def three(wine):
    return ld.melm("cultivar ~ .", wine, **QUICK)


def silverman(n, k, gamma=1.0):
    """Bandwidth of Section 4."""
    return gamma * (4.0 / (k + 2.0)) ** (1.0 / (k + 4.0)) * n ** (-1.0 / (k + 4.0))


def potential(A, B):
    """log int f_A f_B by all pairs, of (coordinates, covariance of the kernels)."""
    (Z, S), (other, T) = A, B
    pairs = (Z[:, None] - other[None]).reshape(-1, Z.shape[1])
    return np.log(multivariate_normal(np.zeros(len(S)), S + T).pdf(pairs).mean())


def by_class(fit, df, response="cultivar", gamma=1.0):
    """Coordinates of each class and the covariance of its kernels, with that of Ledoit and Wolf."""
    ledoit_wolf = pytest.importorskip("sklearn.covariance").ledoit_wolf
    X, Z = df.drop(columns=response), fit.predict(df, "projection").to_numpy()
    X, k, classes = (X / X.std(ddof=0)).to_numpy(), Z.shape[1], []
    V = fit.tidy()["std_estimate"].to_numpy().reshape(k, -1).T
    for level in fit.levels:
        rows = (df[response] == level).to_numpy()
        S = V.T @ ledoit_wolf(X[rows])[0] @ V
        classes.append((Z[rows], silverman(rows.sum(), k, gamma) ** 2 * S))
    return classes


# Estimates ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_divergence_and_its_terms_are_those_of_the_coordinates(fit, two):
    A, B = by_class(fit, two)
    fitting, regularizing = -2.0 * potential(A, B), -potential(A, A) - potential(B, B)
    row = fit.glance().iloc[0]
    np.testing.assert_allclose(row["fitting"], fitting, rtol=1e-9)
    np.testing.assert_allclose(row["regularizing"], regularizing, rtol=1e-9)
    np.testing.assert_allclose(row["divergence"], fitting - regularizing, rtol=1e-9)
    np.testing.assert_allclose(fit.starts()["divergence"].max(), row["divergence"], rtol=1e-9)


@pytest.mark.parametrize("divergence", ["sum", "mean"])
def test_divergence_of_several_classes(wine, divergence):
    fit = ld.melm("cultivar ~ .", wine, divergence=divergence, **PLAIN, **LEDOIT_WOLF)
    groups, pairs = by_class(fit, wine), fit.pairs()
    expected, weight = [], []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        A, B = groups[a], groups[b]
        expected.append(potential(A, A) + potential(B, B) - 2.0 * potential(A, B))
        weight.append(len(A[0]) * len(B[0]))
    np.testing.assert_allclose(pairs["divergence"], expected, rtol=1e-8)
    total = sum(expected) if divergence == "sum" else np.average(expected, weights=weight)
    np.testing.assert_allclose(fit.divergence, total, rtol=1e-8)
    assert pairs["first"].tolist() == ["Barbera", "Barbera", "Barolo"]
    assert pairs["second"].tolist() == ["Barolo", "Grignolino", "Grignolino"]


def test_covariances_of_classes_are_shrunk_within_whitened_classes(two):
    """By scikit-learn, in features that are white within classes."""
    ledoit_wolf = pytest.importorskip("sklearn.covariance").ledoit_wolf
    fit = ld.melm("cultivar ~ .", two, **UNSHRUNK)
    X, code = two.drop(columns="cultivar").to_numpy(), two["cultivar"] == fit.levels[1]
    groups = [X[~code], X[code]]
    W = sum(len(G) * np.cov(G.T, bias=True) for G in groups) / len(X)
    L, V = np.linalg.cholesky(W), fit.tidy()["estimate"].to_numpy().reshape(2, -1).T
    shrunk = [L @ ledoit_wolf(G @ np.linalg.inv(L).T)[0] @ L.T for G in groups]
    h = [len(G) ** (-1.0 / 6.0) for G in groups]
    S = [V.T @ (c * b**2) @ V for c, b in zip(shrunk, h, strict=True)]
    ip = {}
    for a, b in ((0, 0), (1, 1), (0, 1)):
        pairs = ((groups[a][:, None] - groups[b][None]) @ V).reshape(-1, 2)
        ip[a, b] = np.log(multivariate_normal(np.zeros(2), S[a] + S[b]).pdf(pairs).mean())
    np.testing.assert_allclose(fit.divergence, ip[0, 0] + ip[1, 1] - 2.0 * ip[0, 1], rtol=1e-9)


@pytest.mark.long
def test_bound_of_theorem_3_holds(fit, two):
    """The overlap of the two densities over the whole plane, by quadrature."""
    row = fit.pairs().iloc[0]
    overlap = overlap_of(*by_class(fit, two))
    assert 0.0 < overlap < row["overlap"] < min(1.0, 4.0 * overlap)
    np.testing.assert_allclose(row["balanced_accuracy"], 1.0 - row["overlap"] / 2.0)


def overlap_of(*classes):
    """int min(f_A, f_B) by quadrature, as far out as there is any of either."""
    places, whole, k = [], np.concatenate([Z for Z, _ in classes]), len(classes[0][1])
    for j in range(k):
        reach, z = 6.0 * np.sqrt(max(S[j, j] for _, S in classes)), whole[:, j]
        places.append(np.linspace(z.min() - reach, z.max() + reach, 3000 if k == 1 else 90))
    at = np.stack(np.meshgrid(*places), axis=-1)
    f = [sum(multivariate_normal(z, S).pdf(at) for z in Z) / len(Z) for Z, S in classes]
    return np.minimum(*f).sum() * np.prod([x[1] - x[0] for x in places])


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("gamma", [0.5, 4.0, 8.0])
@pytest.mark.parametrize("apart", [0.0, 6.0])
def test_overlap_is_bounded_whatever_the_kernels_are(k, gamma, apart):
    """Wide kernels reach far beyond the rows: a box about these alone is no bound."""
    x = np.random.default_rng(1).normal(size=(60, 2))
    df = pd.DataFrame({"y": ["a", "b"] * 30, "u": x[:, 0], "v": x[:, 1]})
    df.loc[df["y"] == "b", "u"] += apart
    fit = ld.melm("y ~ .", df, k=k, **PLAIN | LEDOIT_WOLF | {"gamma": gamma, "n_starts": 2})
    overlap = overlap_of(*by_class(fit, df, "y", gamma))
    most = fit.pairs()["overlap"][0]
    assert overlap <= most <= min(1.0, 3.5 * overlap + 0.2)


@pytest.mark.long
def test_coordinates_are_standard_within_classes_and_ordered(three, wine):
    groups = [Z for Z, _ in by_class(three, wine)]
    share = np.array([len(Z) for Z in groups]) / len(wine)
    pooled = sum(s * np.cov(Z.T, bias=True) for s, Z in zip(share, groups, strict=True))
    np.testing.assert_allclose(pooled, np.eye(2), atol=1e-9)
    means = np.stack([Z.mean(axis=0) for Z in groups])
    between = (means.T * share) @ means
    assert abs(between[0, 1]) < 1e-9 and between[0, 0] > between[1, 1]
    assert (means[-1] > 0.0).all()


@pytest.mark.long
def test_loadings_give_the_coordinates_in_original_units(three, wine):
    X = wine.drop(columns="cultivar")
    loadings = three.coef().unstack("dimension").loc[X.columns]
    Z = (X - X.mean()) @ loadings
    np.testing.assert_allclose(three.predict(wine, "projection"), Z, atol=1e-9)
    tidy = three.tidy()
    sd = X.std(ddof=0)[tidy["term"]].to_numpy()
    np.testing.assert_allclose(tidy["std_estimate"], tidy["estimate"] * sd)
    r = [
        np.corrcoef(X[t], Z[d])[0, 1] for t, d in zip(tidy["term"], tidy["dimension"], strict=True)
    ]
    np.testing.assert_allclose(tidy["correlation"], r, atol=1e-9)


def test_view_does_not_depend_on_affine_maps_of_the_features(two):
    """Observation 1; and on standardization neither."""
    fit = ld.melm("cultivar ~ .", two, **UNSHRUNK)
    X = two.drop(columns="cultivar")
    M = np.random.default_rng(0).normal(size=(5, 5))
    moved = pd.DataFrame(X.to_numpy() @ M + 3.0, columns=list("abcde")).assign(
        cultivar=two["cultivar"]
    )
    other = ld.melm("cultivar ~ .", moved, **UNSHRUNK | {"n_starts": 12})
    raw = ld.melm("cultivar ~ .", two, standardize=False, **UNSHRUNK)
    Z = fit.predict(two, "projection")
    for one, data in ((other, moved), (raw, two)):
        np.testing.assert_allclose(one.divergence, fit.divergence, rtol=1e-7)
        np.testing.assert_allclose(
            one.predict(data, "projection").abs(), Z.abs(), atol=2e-3 * Z.abs().max().max()
        )
    np.testing.assert_allclose(
        raw.tidy()["std_estimate"].abs(), fit.tidy()["std_estimate"].abs(), atol=5e-3
    )


def test_a_weight_of_two_is_two_rows(two):
    weight = np.random.default_rng(1).integers(0, 3, len(two))
    weighted = ld.melm("cultivar ~ .", two, weights=weight, **PLAIN)
    repeated = ld.melm("cultivar ~ .", two.loc[two.index.repeat(weight)], **PLAIN)
    np.testing.assert_allclose(weighted.divergence, repeated.divergence, rtol=1e-8)
    for type in ("projection", "link", "density"):
        np.testing.assert_allclose(
            weighted.predict(two, type), repeated.predict(two, type), rtol=1e-4, atol=1e-4
        )


# Without a response ------------------------------------------------------------------------------


@pytest.mark.parametrize("entropy, part", [("max", slice(0, 2)), ("min", slice(-1, -3, -1))])
@pytest.mark.parametrize("standardize", [True, False])
def test_without_a_response_it_is_pca(two, entropy, part, standardize):
    """Theorems 1 and 2."""
    fit = ld.melm("~ . - cultivar", two, entropy=entropy, standardize=standardize)
    X = two.drop(columns="cultivar")
    X = (X - X.mean()) / (X.std(ddof=0) if standardize else 1.0)
    _, s, axes = np.linalg.svd(X, full_matrices=False)
    V = fit.tidy()["estimate"].to_numpy().reshape(2, -1).T
    V = V * (two.drop(columns="cultivar").std(ddof=0).to_numpy()[:, None] if standardize else 1.0)
    np.testing.assert_allclose(V @ V.T, axes[part].T @ axes[part], atol=1e-6)
    variance = np.sort((s**2 / len(X))[part])[::-1]
    Z = fit.predict(two, "projection")
    np.testing.assert_allclose(Z.var(ddof=0), variance, rtol=1e-6)
    H = np.log(4.0 * np.pi) + 0.5 * np.log(variance).sum()
    row = fit.glance().iloc[0]
    np.testing.assert_allclose(row["entropy"], H, rtol=1e-6)
    np.testing.assert_allclose(row["dev_ratio"], variance.sum() / (s**2 / len(X)).sum(), rtol=1e-6)


def test_what_a_view_without_classes_can_do(two, tmp_path):
    fit = ld.melm("~ . - cultivar", two)
    assert fit.levels is None and fit.types == ("projection", "density")
    assert list(fit.predict(two)) == ["x1", "x2"]
    assert list(fit.augment(two).columns[-2:]) == [".x1", ".x2"]
    assert "principal components" in str(fit) and "Principal Components" in str(fit.summary())
    fit.save(tmp_path / "fit")
    back = ld.load(tmp_path / "fit")
    assert str(back.summary()) == str(fit.summary())
    pd.testing.assert_frame_equal(back.predict(two), fit.predict(two))
    for refused in (lambda: fit.evaluate(two), fit.pairs, lambda: fit.predict(two, "class")):
        with pytest.raises(ld.ArgumentError):
            refused()
    with pytest.raises(ld.ArgumentError, match="needs a response"):
        ld.cv(ld.melm, "~ . - cultivar", two)
    for how in ({}, {"lambdas": [1.0]}):
        with pytest.raises(ld.ArgumentError, match="gamma needs classes"):
            ld.path(ld.melm, "~ . - cultivar", two, **how)


# Classification ----------------------------------------------------------------------------------


def test_densities_integrate_to_one(fit, two):
    Z = fit.predict(two, "projection")
    x, y = (np.linspace(Z[c].min() - 4.0, Z[c].max() + 4.0, 200) for c in Z)
    places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    f = np.exp(fit.estimates.rule.log_density(places))
    np.testing.assert_allclose(f.sum(axis=0) * (x[1] - x[0]) * (y[1] - y[0]), 1.0, rtol=1e-4)


@pytest.mark.long
def test_calibration_pays_on_new_rows():
    """The densities of a view that was made for 104 rows in 60 features are too sure."""
    df = ld.data("sonar")
    train, test = df[::2], df[1::2]
    sure = ld.melm("echo ~ .", train, **PLAIN)
    calibrated = ld.melm("echo ~ .", train, **QUICK)
    assert calibrated.evaluate(test)["log_loss"][0] < 0.75 * sure.evaluate(test)["log_loss"][0]
    assert "held_deviance" in calibrated.glance() and "held_deviance" not in sure.glance()
    assert "calibrated" in str(sure.summary()) and "held out" not in str(sure)
    held = calibrated.glance()["held_balanced_accuracy"][0]
    # What is held out foretells what is new, within the error of 104 rows; training rows do not.
    new = calibrated.evaluate(test)["balanced_accuracy"][0]
    assert abs(held - new) < 0.15 < calibrated.glance()["balanced_accuracy"][0] - new


@pytest.mark.long
def test_held_out_figures_flatter_no_noise(monkeypatch):
    """Sharpness is chosen on other folds than those it is judged on, and gamma too."""
    monkeypatch.setattr(estimate, "MOST_DRAWS", 2)
    rng, held, new = np.random.default_rng(7), [], []
    for _ in range(12):
        df = pd.DataFrame(rng.normal(size=(460, 4))).add_prefix("v")
        df["y"] = np.where(np.arange(460) % 2 == 0, "a", "b")
        fit = ld.melm("y ~ .", df[:60], k=1, n_starts=1, threads=1, covariance="shrunk")
        held.append([fit.measures["held_deviance"], fit.measures["held_balanced_accuracy"]])
        new.append(fit.evaluate(df[60:])[["deviance", "balanced_accuracy"]].to_numpy()[0])
    assert np.mean(held, axis=0)[0] > 2.0 * np.log(2.0)  # noise has no worse model than none
    error = np.std(held, axis=0) / np.sqrt(12)
    assert (np.abs(np.mean(held, axis=0) - np.mean(new, axis=0)) < 3.0 * error).all()


@pytest.mark.long
def test_what_the_held_out_figures_are_is_said(two):
    text = " ".join(str(ld.melm("cultivar ~ .", two, **QUICK).summary()).split())
    assert "classified by a view fitted to other rows" in text and "gamma was chosen" not in text
    chosen = " ".join(str(ld.melm("cultivar ~ .", two, n_starts=2, threads=1).summary()).split())
    assert "gamma was chosen on the same rows" in chosen


def test_far_from_all_rows_the_nearer_class_is_likely_not_sure(fit, two):
    near = two.iloc[[0]]
    far = near.assign(flavanoids=near["flavanoids"] + 40.0)
    score = fit.predict(pd.concat([near, far]), "link").abs()
    assert np.isfinite(score).all() and score.iloc[1] < 60.0


@pytest.mark.long
def test_equal_priors_serve_the_rare_class():
    rng = np.random.default_rng(0)
    n = 600
    rare = rng.random(n) < 0.08
    df = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    df["a"] += 1.6 * rare
    df["class"] = np.where(rare, "rare", "usual")
    shares, equal = (
        ld.melm("Q('class') ~ .", df, **QUICK | {"control": {"prior": prior}}).glance()
        for prior in ("shares", "equal")
    )
    assert equal["held_balanced_accuracy"][0] > shares["held_balanced_accuracy"][0] + 0.1


def test_an_estimator_that_cannot_be_fitted_is_named(two):
    linear = pytest.importorskip("sklearn.linear_model").LogisticRegression()
    piped = pytest.importorskip("sklearn.pipeline").make_pipeline(linear)
    weight = np.arange(len(two)) + 1.0
    with pytest.raises(ld.ArgumentError, match="Pipeline takes no weights"):
        ld.melm("cultivar ~ .", two, classifier=piped, weights=weight, **PLAIN)
    calibrated = pytest.importorskip("sklearn.calibration").CalibratedClassifierCV(linear, cv=60)
    with pytest.raises(ld.ArgumentError, match="CalibratedClassifierCV cannot be fitted to 119"):
        ld.melm("cultivar ~ .", two, classifier=calibrated, **PLAIN)


@pytest.mark.long
def test_an_estimator_of_the_user(two, tmp_path):
    linear = pytest.importorskip("sklearn.linear_model").LogisticRegression()
    fit = ld.melm("cultivar ~ .", two, classifier=linear, **QUICK)
    Z, y = fit.predict(two, "projection"), (two["cultivar"] == fit.levels[1]).astype(int)
    own = linear.__class__().fit(Z.to_numpy(), y)
    np.testing.assert_allclose(fit.predict(two), own.predict_proba(Z.to_numpy())[:, 1], rtol=1e-6)
    assert not hasattr(linear, "coef_")  # a copy was fitted
    assert "LogisticRegression" in str(fit.summary())
    weighted = ld.melm("cultivar ~ .", two, classifier=linear, weights=1.0 + y, **PLAIN)
    assert weighted.predict(two).mean() > fit.predict(two).mean()
    with pytest.raises(
        ld.StoreError, match="with the classifier LogisticRegression cannot be saved"
    ):
        fit.save(tmp_path / "fit")
    assert not (tmp_path / "fit").exists()
    again = fit.update(two, classifier="kde")
    again.save(tmp_path / "fit")
    with pytest.raises(ld.ArgumentError, match="classifier was"):
        fit.update(two)


# Choice of settings ------------------------------------------------------------------------------


@pytest.mark.long
def test_gamma_is_chosen_where_it_is_not_given(two, tmp_path):
    fit = ld.melm("cultivar ~ .", two, n_starts=3, threads=1)
    assert list(fit.chosen) == ["gamma"] and len(fit.selection) == 3
    tried = fit.selection
    grid, weight = {"gamma": tried["gamma"]}, tried["weight"].to_numpy()
    at, between = tuning.centre(grid, weight, ("gamma",), FINE)
    assert fit.settings.gamma == between.get("gamma", tried["gamma"][at])
    assert "chosen by cross-validation" in str(fit) and "(by CV)" in str(fit.summary())
    # The starts are those of gamma 4, from where the view was followed.
    assert (fit.starts()["gamma"] == 4.0).all() and "the best view was followed" in str(
        fit.summary()
    )
    assert "gamma" not in fit.update(two, gamma=4.0).starts()
    fit.save(tmp_path / "fit")
    assert ld.load(tmp_path / "fit").starts().equals(fit.starts())
    again = fit.update(two)
    assert again.settings == fit.settings and again.predict(two).equals(fit.predict(two))


@pytest.mark.long
def test_cv_and_path(two, axes):
    cv = ld.cv(ld.melm, "cultivar ~ .", two, n_lambda=3, folds=3, n_starts=3, threads=1)
    np.testing.assert_allclose(cv.frame["gamma"], [16.0, 2.0**0.5, 0.125])
    assert cv.best.settings.gamma == cv.lambda_min
    grid = {"k": [1, 2], "gamma": [1.0]}
    by_k = ld.cv(ld.melm, "cultivar ~ .", two, grid=grid, folds=3, n_starts=3, loss="class")
    assert by_k.best.estimates.k == by_k.frame["k"][by_k.index_min]
    path = ld.path(ld.melm, "cultivar ~ .", two, n_lambda=4, n_starts=3, threads=1)
    np.testing.assert_allclose(path.lambdas, 0.125 * 2.0 ** (7.0 * np.arange(4)[::-1] / 3.0))
    assert "Gamma" in str(path) and "Lambda" not in str(path)
    assert path.coef().shape == (4, 10) and "held_deviance" not in path.fits[0].glance()
    ax = path.plot(axes)
    lines = [line for line in ax.get_lines() if len(line.get_xdata()) == 4]
    drawn = sorted(tuple(np.round(np.sort(line.get_ydata()), 9)) for line in lines)
    wide = pd.concat([f.tidy()["std_estimate"] for f in path.fits], axis=1)
    assert drawn == sorted(tuple(np.round(np.sort(row), 9)) for row in wide.to_numpy())


@pytest.mark.long
def test_two_classes_as_multinomial(two, fit, tmp_path):
    how = QUICK | LEDOIT_WOLF
    binary, other = (ld.melm("cultivar ~ .", two, family=f, **how) for f in (None, "multinomial"))
    assert other.predict(two, "link").shape == (len(two), 2)
    assert other.predict(two, "class").equals(binary.predict(two, "class"))
    np.testing.assert_allclose(other.predict(two).iloc[:, 1], binary.predict(two), atol=1e-12)
    numbers = two.assign(cultivar=(two["cultivar"] == fit.levels[1]) + 1)
    assert ld.melm("cultivar ~ .", numbers, family="multinomial", **PLAIN).levels == (1, 2)
    other.save(tmp_path / "fit")
    assert ld.load(tmp_path / "fit").predict(two).equals(other.predict(two))


@pytest.mark.long
def test_gamma_is_chosen_by_rows_as_they_weigh(two):
    """Rows of the wrong class and no weight would make all scores seem far too sure."""
    levels = two["cultivar"].unique()
    wrong = two.assign(cultivar=two["cultivar"].map(dict(zip(levels, levels[::-1], strict=True))))
    both = pd.concat([two, wrong], ignore_index=True)
    weight = (np.arange(len(both)) < len(two)).astype(float)
    fit = ld.melm("cultivar ~ .", both, weights=weight, n_starts=2, threads=1)
    assert fit.selection["mean"].max() < 0.4


def test_calibrated_deviance_takes_weights():
    family, rng = Binomial(), np.random.default_rng(0)
    y, score = rng.integers(0, 2, 80).astype(float), 4.0 * rng.normal(size=(80, 1))
    weight = np.repeat([0.0, 1.0], 40)
    score[:40] = 40.0 * (0.5 - y[:40, None])  # all wrong, and of no weight
    of_all = calibrated_deviance(family, y, weight, score)
    own = calibrated_deviance(family, y[40:], weight[40:], score[40:])
    np.testing.assert_allclose(of_all[40:], own, rtol=1e-9)


def test_numbers_as_classes():
    df = ld.data("wine_red")[::4]
    df = df[df["quality"].between(5, 7)]
    fit = ld.melm("quality ~ .", df, family="multinomial", **PLAIN)
    assert fit.levels == (5, 6, 7) and set(fit.predict(df, "class")) <= {5, 6, 7}


# Limits ------------------------------------------------------------------------------------------


def test_more_features_than_rows_says_so():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(24, 40))).add_prefix("v")
    df = X.assign(y=np.repeat(["a", "b"], 12))
    control = {"shrinkage_factor": 0.0}
    fit = ld.melm("y ~ .", df, **QUICK, control=control)
    assert fit.estimates.rank == 22 and fit.estimates.separates
    assert "leaves these directions out" in str(fit.summary())
    assert fit.glance()["held_balanced_accuracy"][0] < 0.85  # noise alone
    assert "leaves these" not in str(ld.melm("y ~ v0 + v1 + v2", df, **PLAIN).summary())


def test_rows_that_are_kept_are_limited(tmp_path):
    rng = np.random.default_rng(0)
    n = 3000
    df = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    df["y"] = np.where(df["a"] + rng.normal(size=n) > 1.0, "yes", "no")
    control = {"reference_rows": 200, "calibrate": False}
    few = ld.melm("y ~ .", df, gamma=1.0, n_starts=3, control=control)
    rows = few.estimates.rule.rows
    assert len(rows.Z) == 200
    share = (df["y"] == "yes").mean()
    assert abs(rows.code.mean() - share) <= 1.0 / 200
    few.save(tmp_path / "fit")
    assert (tmp_path / "fit").stat().st_size < 150_000


def many(n=4000, rare=3):
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("uvw"))
    df["y"] = np.where(np.arange(n) % 2 == 0, "a", "p")
    df.loc[: rare - 1, "y"] = "m"
    return df


@pytest.mark.long
def test_a_rare_class_stays_among_the_rows_that_are_kept(axes):
    df = many()
    call = QUICK | {"n_starts": 1, "control": {"calibrate": False, "reference_rows": 200}}
    fit = ld.melm("y ~ .", df, **call)
    rows = fit.estimates.rule.rows
    assert np.bincount(rows.code).tolist() == [100, 3, 100]
    np.testing.assert_allclose(np.bincount(rows.code, rows.share), rows.size)
    assert np.isfinite(list(fit.measures.values())).all() and fit.plot(ax=axes) is axes
    # A class counts as often as it is there, not as often as it is kept.
    assert fit.predict(df)["m"].mean() < 0.02


@pytest.mark.long
def test_rows_that_are_kept_do_not_change_the_densities():
    df = many(800, 0)
    few, all_ = (
        ld.melm("y ~ .", df, **PLAIN | {"control": {"reference_rows": most}}) for most in (10, 800)
    )
    assert len(few.estimates.rule.rows.Z) < 100
    pd.testing.assert_frame_equal(few.predict(df, "density"), all_.predict(df, "density"))
    assert few.measures == all_.measures


@pytest.mark.long
def test_starts_and_a_search_cut_short(two):
    with pytest.warns(ld.ConvergenceWarning, match="max_iter"):
        cut = ld.melm("cultivar ~ .", two, **QUICK | {"control": {"max_iter": 2}})
    assert not cut.converged and "did not converge" in str(cut)
    starts = ld.melm("cultivar ~ .", two, **PLAIN | {"n_starts": 6}).starts()
    assert starts["divergence"].is_monotonic_decreasing
    assert sorted(starts["start"]) == ["covariances", "lda", "pca", "random", "random", "random"]


@pytest.mark.parametrize(
    "where, value",
    [
        (("estimates", "V"), np.zeros((3, 2))),
        (("estimates", "rule", "densities", "start"), np.array([0, 5, 9])),
        (("estimates", "rule", "rows", "code"), np.array([7])),
        (("estimates", "rule", "background", "root"), np.eye(5)),
        (("estimates", "rule", "present"), np.array([0])),
        (("estimates", "rule", "n_scores"), 2),
        (("estimates", "rule", "rows", "size"), np.ones(3)),
        (("estimates", "overlap"), np.zeros((1, 1))),
    ],
)
def test_a_file_that_was_changed_is_refused(fit, tmp_path, where, value):
    state = forms.write(fit)
    part = state
    for name in where[:-1]:
        part[name] = dict(part[name])
        part = part[name]
    part[where[-1]] = value
    storage.write(tmp_path / "fit", "melm", state)
    with pytest.raises(ld.StoreError, match="valid melm fit"):
        ld.load(tmp_path / "fit")


def test_long_names_stay_different_in_print(two):
    names = [f"patients with at least one complication of kind {c}" for c in "ab"]
    levels = two["cultivar"].unique()
    df = two.assign(cultivar=two["cultivar"].map(dict(zip(levels, names, strict=True))))
    hues = [f"the hue of the wine in the glass, {letter}" for letter in "AB"]
    df = df.rename(columns=dict(zip(("hue", "alcohol"), hues, strict=True)))
    fit = ld.melm("cultivar ~ .", df, **PLAIN)
    assert "patients w...a | patients w...b" in str(fit.summary())
    for text in (str(fit), str(fit.summary())):
        assert "the hue of the wine in the g...A" in text
        assert "the hue of the wine in the g...B" in text


@pytest.mark.long
def test_augment_replaces_what_it_has_put_there(three, wine):
    for fit in (three, ld.melm("~ . - cultivar", wine)):
        once = fit.augment(wine)
        pd.testing.assert_frame_equal(fit.augment(once), once)


@pytest.mark.long
def test_evaluate_has_the_balanced_accuracy(three, wine):
    row = three.evaluate(wine).iloc[0]
    hit = three.predict(wine, "class") == wine["cultivar"]
    np.testing.assert_allclose(
        row["balanced_accuracy"], hit.groupby(wine["cultivar"]).mean().mean()
    )
    one = three.evaluate(wine[wine["cultivar"] == "Barolo"]).iloc[0]
    np.testing.assert_allclose(one["balanced_accuracy"], one["accuracy"])


def test_a_class_that_is_flat_is_named():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    df["y"] = np.where(df["a"] + rng.normal(size=200) > 0.0, "flat", "round")
    df["c"] = df["c"].where(df["y"] == "round", 1e-3 * df["c"])
    fit = ld.melm("y ~ .", df, **UNSHRUNK)
    assert "direction of the view: flat." in str(fit.summary())
    assert "direction of the view" not in str(ld.melm("y ~ a + b", df, **PLAIN).summary())


def test_a_sample_of_many_rows_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(search, "FINE", 2100)
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(2200, 5))).add_prefix("v")
    df["y"] = np.where(df["v0"] + rng.normal(size=2200) > 0.5, "yes", "no")
    fit = ld.melm("y ~ .", df, **PLAIN | {"n_starts": 2, "gamma": 2.0})
    assert fit.estimates.drawn == 2100 and "sample of 2100 rows" in str(fit.summary())
    fit.save(tmp_path / "fit")
    assert str(ld.load(tmp_path / "fit").summary()) == str(fit.summary())


@pytest.mark.long
@pytest.mark.parametrize("gamma", [0.5, 1.0])
def test_a_column_constant_in_one_class_is_not_the_view(gamma):
    """a01 of the ionosphere is one in all good echoes, and in most of the bad ones."""
    df = ld.data("ionosphere")
    fit = ld.melm("quality ~ .", df, gamma=gamma, n_starts=9, threads=1)
    assert fit.glance()["held_balanced_accuracy"][0] > 0.8
    assert abs(fit.tidy().set_index(["dimension", "term"])["correlation"]["x1", "a01"]) < 0.9


def test_a_class_of_too_few_rows_is_named():
    df = ld.data("ionosphere")
    few = df.drop(df.index[df["quality"] == "bad"][1:])
    with pytest.raises(
        ld.DataError,
        match="class 'bad' must have at least 3 rows with a positive weight for k=2, not 1",
    ):
        ld.melm("quality ~ .", few, gamma=1.0)


def test_a_row_far_away_has_probabilities(two):
    fit = ld.melm("cultivar ~ .", two, **PLAIN)
    p = fit.predict(two.head(2).assign(hue=1e90), "prob")
    assert np.isfinite(p).all(axis=None)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


@pytest.mark.parametrize("gamma", [1e-200, 1e-4, 1e4, 1e200])
def test_gamma_has_limits(two, gamma):
    with pytest.raises(
        ld.ArgumentError, match=r"gamma must be a positive number, from 0\.001 to 1000"
    ):
        ld.melm("cultivar ~ .", two, **QUICK | {"gamma": gamma})
    with pytest.raises(ld.ArgumentError, match="gamma must be a number"):
        ld.melm("cultivar ~ .", two, **QUICK | {"gamma": (1.0, 2.0)})


@pytest.mark.long
@pytest.mark.parametrize("small, held, note", [(1e-6, 1.0, False), (1e-9, 0.6, True)])
def test_classes_that_part_where_hardly_a_row_varies(small, held, note):
    """A feature that all but depends on others counts; if it is rounding, summary() says so."""
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(200, 3))).add_prefix("v")
    bad = np.arange(200) % 2
    df["w"] = df["v0"] + small * (rng.normal(size=200) + 5.0 * bad)
    df["y"] = np.where(bad, "bad", "good")
    fit = ld.melm("y ~ .", df, **QUICK, control={"shrinkage_factor": 0.0})
    assert abs(fit.measures["held_balanced_accuracy"] - held) < 0.1
    assert ("Class means differ in directions" in str(fit.summary())) == note


def wide_frame(seed=0, n=60, p=120):
    """Two classes whose means differ, fewer rows than features; and new rows."""
    rng = np.random.default_rng(seed)
    mix, shift = rng.normal(size=(8, p)), 0.25 * rng.normal(size=p)
    y = np.arange(n + 500) % 2
    X = rng.normal(size=(n + 500, 8)) @ mix + rng.normal(size=(n + 500, p)) + y[:, None] * shift
    df = pd.DataFrame(X).add_prefix("v").assign(y=np.where(y, "b", "a"))
    return df[:n], df[n:]


@pytest.mark.long
def test_the_default_is_no_worse_than_shrunk_discriminant_analysis_where_rows_are_few():
    """Beside it, whitening that is not shrunk: what the default was made for."""
    analysis = pytest.importorskip("sklearn.discriminant_analysis")
    train, new = wide_frame()
    peer = analysis.LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")
    peer = peer.fit(train.drop(columns="y"), train["y"])
    of_peer = peer.score(new.drop(columns="y"), new["y"])
    shrunk, unshrunk = (
        ld.melm("y ~ .", train, **call | {"gamma": 4.0}).evaluate(new)["accuracy"][0]
        for call in (PLAIN, UNSHRUNK)
    )
    assert shrunk > of_peer - 0.03 and shrunk > unshrunk + 0.1


@pytest.mark.parametrize("seed", range(2))
def test_classes_of_three_rows_are_told_apart_as_well_as_by_discriminant_analysis(seed):
    """Twenty classes: a covariance of three rows by itself would tell less than none."""
    analysis = pytest.importorskip("sklearn.discriminant_analysis")
    neighbours = pytest.importorskip("sklearn.neighbors")
    rng = np.random.default_rng(seed)
    y = np.arange(2060) % 20
    X = rng.normal(size=(2060, 10)) + 1.5 * rng.normal(size=(20, 10))[y]
    df = pd.DataFrame(X).add_prefix("v").assign(y=y.astype(str))
    train, new = df[:60], df[60:]
    peer = analysis.LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto", n_components=2)
    Z, T = (peer.fit(X[:60], y[:60]).transform(rows) for rows in (X[:60], X[60:]))
    of_peer = neighbours.KNeighborsClassifier(5).fit(Z, y[:60]).score(T, y[60:])
    call = {"gamma": 4.0, "n_starts": 3, "threads": 1, "control": {"calibrate": False}}
    found = ld.melm("y ~ .", train, **call).evaluate(new)["accuracy"][0]
    assert found > of_peer - np.sqrt(of_peer * (1.0 - of_peer) / 2000.0)


@pytest.mark.long
def test_shrinkage_factor_is_of_shrunk_covariances():
    df = wide_frame()[0]
    for more, word in (
        (
            LEDOIT_WOLF | {"control": {"shrinkage_factor": 2.0}},
            "needs covariance='shrunk'",
        ),
        ({"control": {"shrinkage_factor": -1.0}}, "shrinkage_factor must be a number from 0 to 1e"),
        ({"control": {"shrinkage_factor": "strong"}}, "shrinkage_factor must be a number"),
    ):
        with pytest.raises(ld.ArgumentError, match=word):
            ld.melm("y ~ .", df, gamma=4.0, **more)
    for name, value in (
        ("shrinkage_factor", 2.0), ("prior", "equal"), ("calibrate", False),
        ("max_iter", 3), ("tol", 0.1),
    ):  # fmt: skip
        with pytest.raises(ld.ArgumentError, match=f"{name} needs classes"):
            ld.melm("~ . - y", df, control={name: value})


@pytest.mark.long
def test_few_rows_are_calibrated_one_by_one_so_that_no_seed_moves_them():
    rng, bad = np.random.default_rng(0), np.arange(40) % 2
    df = pd.DataFrame(rng.normal(size=(40, 3))).add_prefix("v")
    df["w"] = df["v1"] + 1e-6 * (rng.normal(size=40) + 5.0 * bad)
    df["y"] = np.where(bad, "bad", "good")
    call = {"gamma": 4.0, "n_starts": 3, "threads": 1}
    one, other = (ld.melm("y ~ .", df, seed=seed, **call) for seed in (0, 5))
    np.testing.assert_allclose(
        other.estimates.rule.inverse_temperature, one.estimates.rule.inverse_temperature, rtol=1e-6
    )
    for name, value in one.measures.items():
        np.testing.assert_allclose(other.measures[name], value, rtol=1e-5)


def test_a_rare_class_is_told_of_the_prior_that_serves_it():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(400, 3))).add_prefix("v")
    df["y"] = np.where(np.arange(400) < 12, "rare", "usual")
    df.loc[:11, "v0"] += 1.5
    call = {"gamma": 4.0, "n_starts": 2, "threads": 1}
    plain = ld.melm("y ~ .", df, control={"calibrate": False}, **call)
    equal = ld.melm("y ~ .", df, control={"calibrate": False, "prior": "equal"}, **call)
    said = "control={'prior': 'equal'} improves balanced accuracy"
    assert said in str(plain) and said in " ".join(str(plain.summary()).split())
    assert "improves balanced accuracy" not in str(equal)
    gain = equal.measures["balanced_accuracy"] - plain.measures["balanced_accuracy"]
    assert gain > 0.1


def test_open_dimensions_follow_the_rows():
    """A plane, or a line where rows vary within classes in one direction only."""
    quick = {"gamma": 1.0, "n_starts": 2, "threads": 1, "control": {"calibrate": False}}
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = np.where(x[:, 0] + 0.5 * rng.normal(size=60) > 0, "a", "b")
    plane = ld.melm("y ~ .", {"u": x[:, 0], "v": x[:, 1], "y": y}, **quick)
    assert plane.settings.k == 2 and plane.axes == ["x1", "x2"]
    one = ld.melm("y ~ .", {"u": x[:, 0], "y": y}, **quick)
    along = ld.melm("y ~ .", {"u": x[:, 0], "v": 3 * x[:, 0] + 1, "y": y}, **quick)
    assert one.settings.k == along.settings.k == 1 and one.axes == ["x1"]
    assert ld.melm("~ .", {"u": x[:, 0]}, threads=1).settings.k == 1
    with pytest.raises(ld.DataError, match="give k=1"):
        ld.melm("y ~ .", {"u": x[:, 0], "y": y}, k=2, **quick)


def test_of_many_rows_in_few_groups_no_single_group_calibrates(monkeypatch):
    """One group of a hundred, of the fold that alone is held out, would say next to nothing."""
    rng, n = np.random.default_rng(3), 4200
    df = pd.DataFrame(rng.normal(size=(n, 2)), columns=["v0", "v1"])
    df["y"] = np.where(df["v0"] + rng.normal(size=n) > 0.0, "a", "b")
    df["g"] = np.arange(n) % 100
    held = []
    splits = estimate.quick_splits

    def seen(*args):
        held.append(splits(*args))
        return held[-1]

    monkeypatch.setattr(estimate, "quick_splits", seen)
    ld.melm("y ~ v0 + v1", df, k=1, gamma=1.0, n_starts=1, groups="g", threads=1)
    assert [test.n for _, test in held[-1]] == [840]  # a fifth of the groups


@pytest.mark.long
@pytest.mark.parametrize("scale", [1e-20, 1.0 / 150.0, 0.3])
def test_weights_that_are_shares_stand_for_as_many_rows(scale):
    flowers, weight = ld.data("iris"), np.random.default_rng(0).uniform(0.5, 1.5, 150)
    given = {"k": 1, "gamma": 1.0, "n_starts": 4}
    of_mean_one = ld.melm("species ~ .", flowers, weights=weight / weight.mean(), **given)
    fit = ld.melm("species ~ .", flowers, weights=scale * weight, **given)
    assert fit.converged
    np.testing.assert_allclose(fit.divergence, of_mean_one.divergence, rtol=1e-9)
    np.testing.assert_allclose(fit.predict(flowers), of_mean_one.predict(flowers), atol=1e-6)


def test_views_without_spread_within_classes():
    """A fold in which the rows of a class are at one place has the null model; a fit is refused."""
    y, call = ["a", "b", "b", "b", "a"], {"seed": 1, "k": 1, "gamma": 0.2, "n_starts": 3}
    few = {"x": ["a", "a", "b", "c", "a"], "y": y}
    assert np.isfinite(ld.melm("y ~ x", few, **call).predict(few, "prob").to_numpy()).all()
    with pytest.raises(ld.DataError, match="rows of each class are identical"):
        ld.melm("y ~ x", {"x": ["a", "b", "c", None, "a"], "y": y}, **call)


@pytest.mark.long
def test_folds_may_lack_classes(wine):
    cv = ld.cv(ld.melm, "cultivar ~ alcohol + hue", wine, groups="cultivar", folds=3,
               grid={"gamma": [1.0]})  # fmt: skip
    assert np.isfinite(cv.tidy()["mean"]).all()
