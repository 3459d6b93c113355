"""GbmapFit: shapes, prints, tidiers, drift and neighbours, update, save and plots."""

import re
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import lodim as ld
from lodim import forms
from lodim.fitting import storage

M = 4


def fit_to(data, response, **arguments):
    arguments = {"m": M, "lambda_": 0.01, "beta": 4.0, "missing": "drop"} | arguments
    return ld.gbmap(f"{response} ~ x + z + g", data, **arguments)


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    n = 160
    df = pd.DataFrame(
        {"x": rng.normal(10, 4, n), "z": rng.gamma(2, 1, n), "g": rng.choice(list("abc"), n)},
        index=[f"r{i}" for i in range(n)],
    )
    f = np.abs(df["x"] - 10) / 4 - df["z"] + (df["g"] == "b")
    df["y"] = 5 * f + rng.normal(size=n)
    df["c"] = np.where(rng.random(n) < expit(2 * f), "yes", "no")
    df["k"] = np.array(["low", "mid", "high"])[(f > -1).astype(int) + (f > 0)]
    df.loc["r7", "x"] = np.nan
    return df


@pytest.fixture(scope="module")
def fits(df):
    return {response: fit_to(df, response) for response in "yck"}


@pytest.fixture(scope="module")
def chosen():
    return ld.gbmap("mpg ~ .", ld.data("autompg"))


def complete(df):
    return df.drop(index="r7")


# Predictions -----------------------------------------------------------------------------------

LEVELS = ["g[a]", "g[b]", "g[c]"]  # a penalized factor has an indicator for every level

COLUMNS = {
    ("y", "response"): "y", ("y", "link"): "y", ("c", "response"): "c", ("c", "link"): "c",
    ("c", "class"): "c", ("k", "class"): "k",
    ("c", "prob"): ["no", "yes"], ("k", "prob"): ["high", "low", "mid"],
    ("k", "response"): ["high", "low", "mid"], ("k", "link"): ["high", "low", "mid"],
    ("y", "embedding"): ["f1", "f2", "f3", "f4"], ("c", "embedding"): ["f1", "f2", "f3", "f4"],
    ("y", "local"): ["x", "z", *LEVELS], ("c", "local"): ["x", "z", *LEVELS],
}  # fmt: skip


@pytest.mark.parametrize("response, type", COLUMNS)
def test_types_names_index_and_missing_rows(fits, df, response, type):
    names, got = COLUMNS[response, type], fits[response].predict(df, type)
    assert got.index.equals(df.index)
    if isinstance(names, str):
        assert isinstance(got, pd.Series) and got.name == names
        missing = got.isna()
    else:
        assert isinstance(got, pd.DataFrame)
        assert list(got) == names
        assert (got.isna().all(axis=1) == got.isna().any(axis=1)).all()
        missing = got.isna().any(axis=1)
    assert list(df.index[missing]) == ["r7"]


def test_multinomial_embedding_and_local(fits, df):
    embedding, local = (fits["k"].predict(df, type) for type in ("embedding", "local"))
    assert list(embedding) == [f"f{j}[{k}]" for j in range(1, 5) for k in ("high", "low", "mid")]
    assert local.shape == (160, 15) and local.columns.nlevels == 2


def test_relations_of_types(fits, df):
    link, prob = fits["c"].predict(df, "link"), fits["c"].predict(df, "prob")
    np.testing.assert_allclose(prob["yes"], expit(link))
    np.testing.assert_allclose(fits["c"].predict(df), prob["yes"])
    known = complete(df)
    expected = np.where(fits["c"].predict(known, "link") > 0, "yes", "no")
    assert (fits["c"].predict(known, "class") == expected).all()
    np.testing.assert_array_equal(fits["y"].predict(df), fits["y"].predict(df, "link"))


def test_predict_needs_the_right_side_alone(fits, df):
    new = df[["g", "z", "x"]].iloc[::-1]
    pd.testing.assert_series_equal(fits["y"].predict(new), fits["y"].predict(df).iloc[::-1])
    as_dict = {name: new[name].to_numpy() for name in new}
    np.testing.assert_array_equal(fits["y"].predict(as_dict), fits["y"].predict(new))


@pytest.mark.parametrize("type", ["class", "prob"])
def test_numbers_have_no_classes(fits, df, type):
    with pytest.raises(ld.ArgumentError, match="numeric"):
        fits["y"].predict(df, type)
    with pytest.raises(ld.ArgumentError, match="response, link"):
        fits["y"].predict(df, "terms")


# Print and summary -----------------------------------------------------------------------------


@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_print(fits, response):
    one = fits[response]
    text = str(one)
    call = f'gbmap("{response} ~ x + z + g", data=df, m=4, lambda_=0.01, beta=4, missing='
    assert call in " ".join(text.split())
    for word in (one.family.name, "Rows: 159 (1 dropped", "features: 5", "Boosts: 4", "Df", "%Dev"):
        assert word in text
    table = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit()]
    assert [row[0] for row in table] == ["1", "2", "3", "4"]
    assert int(table[-1][1]) == one.df
    assert float(table[-1][2]) == pytest.approx(100 * one.dev_ratio, abs=0.006)


def test_print_names_the_modelled_class(fits):
    assert "probability of c = yes" in str(fits["c"]) and "3 classes" in str(fits["k"])


@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_summary(fits, response):
    one = fits[response]
    report = one.summary()
    text = str(report)
    for word in ("Gradient Boosting Mapping", "No. observations", "159", "Rows dropped (NA)",
                 "Weak learners", "Effects of features", "converged", "x", "z",
                 f"{one.dev_ratio:.4f}"):  # fmt: skip
        assert word in text, word
    html, latex = report.as_html(), report.as_latex()
    assert html.count("<table") >= 2 and "Effects of features" in html
    assert "tabular" in latex and latex.count("\\begin") == latex.count("\\end")
    assert one._repr_html_() == html


def test_summary_names_learners_without_a_bend_once_with_their_class():
    """A softplus of a large penalty is on one side of its bend in all rows."""
    flowers = ld.data("iris")
    fit = ld.gbmap("species ~ .", flowers, m=4, lambda_=50.0, threads=1)
    learners = fit.learners()
    assert (learners["active"] > 1.0 - 1e-9).all()  # the case at hand
    text = " ".join(str(fit.summary()).split())
    levels = "; ".join(f"1 to 4 ({level})" for level in fit.levels)
    assert f"(linear or constant on the data): boosts {levels}." in text
    cars = ld.gbmap("mpg ~ weight", ld.data("autompg"), m=1, lambda_=0.1)
    assert "in units of mpg;" in " ".join(str(cars.summary()).split())


@pytest.mark.long
def test_summary_says_what_was_chosen(chosen):
    text = str(chosen.summary())
    for label in ("Lambda", "Boosts (m)", "Joint fit"):  # each chosen by cross-validation
        assert re.search(rf"{re.escape(label)}: +\S+ \(by CV\)", text)
    assert "cross-validation" in text
    assert "chosen by cross-validation" in str(chosen)


def test_fit_is_silent(df, capsys):
    fit_to(df, "y")
    assert capsys.readouterr() == ("", "")


# Tidiers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_tidy_and_coef(fits, df, response):
    one = fits[response]
    tidy, local = one.tidy(), one.predict(df, "local")
    keys = ["level", "term"] if response == "k" else ["term"]
    assert list(tidy)[: len(keys)] == keys
    pd.testing.assert_series_equal(one.coef(), tidy.set_index(keys)["estimate"])
    np.testing.assert_allclose(tidy["estimate"], local.mean().to_numpy(), atol=1e-12)
    np.testing.assert_allclose(tidy["estimate_abs"], local.abs().mean().to_numpy(), atol=1e-12)
    scale = np.tile(one.design.scale, 3 if response == "k" else 1)
    np.testing.assert_allclose(tidy["std_estimate"], tidy["estimate"] * scale)
    x = complete(df)["x"]
    assert one.design.scale[0] == pytest.approx(x.std(ddof=0))


@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_glance(fits, response):
    one = fits[response]
    glance = one.glance()
    assert len(glance) == 1
    row = glance.iloc[0]
    assert (row["n"], row["n_dropped"], row["p"], row["m"]) == (159, 1, 5, M)
    assert row["lambda_"] == 0.01 and row["beta"] == 4.0 and row["converged"]
    assert row["dev_ratio"] == pytest.approx(1 - row["deviance"] / row["null_deviance"])
    assert row["df"] == np.count_nonzero(one.projections().iloc[:, 1:])


@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_deviance_is_that_of_the_training_rows(fits, df, response):
    one, row = fits[response], fits[response].evaluate(df).iloc[0]
    assert row["n"] == 159
    assert row["deviance"] == pytest.approx(one.glance()["deviance"][0], rel=1e-10)
    assert row["dev_ratio"] == pytest.approx(one.dev_ratio, rel=1e-9)
    known = complete(df)
    if response == "y":
        r2 = (
            1
            - ((known["y"] - one.predict(known)) ** 2).sum()
            / ((known["y"] - known["y"].mean()) ** 2).sum()
        )
        assert row["dev_ratio"] == pytest.approx(r2)
    else:
        hit = one.predict(known, "class") == known[response]
        assert row["accuracy"] == pytest.approx(hit.mean())
        p = one.predict(known, "prob")
        own = [p.loc[i, known.loc[i, response]] for i in known.index]
        assert row["log_loss"] == pytest.approx(-np.log(own).mean())


@pytest.mark.parametrize("rows", [slice(0, 1), "one class"])
@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_evaluate_on_data_of_one_kind(fits, df, response, rows):
    """New data may be a single row or class: the loss is known even where its ratio is not."""
    part = df[rows] if isinstance(rows, slice) else complete(df)
    if not isinstance(rows, slice):
        part = part[part[response] == part[response].iloc[0]]
    row = fits[response].evaluate(part).iloc[0]
    assert np.isfinite(row["deviance"]) and row["n"] == len(part)
    assert not row["dev_ratio"] > 1


@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_augment(fits, df, response):
    one = fits[response]
    out = one.augment(df)
    pd.testing.assert_frame_equal(out[df.columns], df)
    assert out.index.equals(df.index)
    known = complete(out)
    assert known[".loss"].mean() == pytest.approx(one.glance()["deviance"][0])
    assert out.loc["r7", [".resid", ".loss"]].isna().all()
    if response == "k":
        assert {".fitted[high]", ".fitted[low]", ".fitted[mid]", ".class"} <= set(out)
        return
    np.testing.assert_allclose(out[".fitted"], one.predict(df))
    answer = known["y"] if response == "y" else (known["c"] == "yes").astype(float)
    np.testing.assert_allclose(known[".resid"], answer - known[".fitted"], atol=1e-12)
    assert (".class" in out) == (response == "c")


@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_projections_reproduce_the_learners(fits, df, response):
    """f_j(x) = a_j + b_j g(w_j'x~) in the units of the data, by hand."""
    one, known = fits[response], complete(df)
    levels = [known["g"] == level for level in "abc"]
    X = np.column_stack([np.ones(len(known)), known["x"], known["z"], *levels]).astype(float)
    w, learners = one.projections(), one.learners()
    assert list(w.index) == list(one.predict(known, "embedding"))
    scale = known["y"].std(ddof=0) if response == "y" else 1.0
    beta = one.settings.beta / scale
    z = X @ w.to_numpy().T
    f = learners["a"].to_numpy() + learners["b"].to_numpy() * np.logaddexp(0, beta * z) / beta
    np.testing.assert_allclose(f, one.predict(known, "embedding"), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(learners["active"], (z > 0).mean(axis=0))
    norm = np.linalg.norm(w.to_numpy()[:, 1:] * one.design.scale, axis=1)
    np.testing.assert_allclose(learners["norm"], norm)
    assert learners["dev_ratio"].iloc[-1] == pytest.approx(one.dev_ratio)


# Neighbours and drift --------------------------------------------------------------------------


def brute_neighbours(one, train, new, k):
    E, F = (one.predict(d, "embedding").to_numpy() for d in (train, new))
    distance = np.abs(F[:, None] - E[None]).sum(axis=2)
    return np.argsort(distance, axis=1, kind="stable")[:, :k]


@pytest.fixture(scope="module")
def new(df):
    rng = np.random.default_rng(9)
    new = df.sample(30, random_state=1, replace=True).reset_index(drop=True)
    return new.assign(x=new["x"] + 6 * rng.normal(size=30), z=new["z"] + 3 * rng.normal(size=30))


@pytest.mark.filterwarnings("ignore::lodim.errors.ExtrapolationWarning")
@pytest.mark.parametrize("k", [1, 5, 17])
@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_neighbours_and_drift_by_brute_force(fits, df, new, response, k):
    one, train = fits[response], complete(df)
    known = new.dropna()
    near = brute_neighbours(one, train, known, k)
    y, got = train[response].to_numpy(), one.neighbours(new, k).loc[known.index]
    if response == "y":
        np.testing.assert_allclose(got, y[near].mean(axis=1))
        drift = np.abs(one.predict(known) - y[near].mean(axis=1))
    else:
        for level in one.levels:
            np.testing.assert_allclose(got[level], (y[near] == level).mean(axis=1))
        link = (one.predict(d, "link").to_numpy().reshape(len(d), -1) for d in (train, known))
        score, own = link
        drift = np.abs(own - score[near].mean(axis=1)).max(axis=1)
    out = one.drift(new, k)
    assert isinstance(out, pd.Series) and out.index.equals(new.index)
    np.testing.assert_allclose(out.loc[known.index], drift, atol=1e-9)
    assert out.isna().sum() == len(new) - len(known)


def test_drift_grows_away_from_the_data(fits, df):
    far = complete(df).iloc[:1].copy()
    values = [fits["y"].drift(far.assign(x=far["x"] + d))["r0"] for d in (0, 50, 500)]
    assert values[0] < values[1] < values[2]


@pytest.mark.long
def test_drift_threshold(chosen, fits, df):
    cars = ld.data("autompg")
    levels = [chosen.drift_threshold(quantile=q) for q in (0.5, 0.95, 0.99)]
    assert 0 < levels[0] < levels[1] < levels[2]
    # Out of fold, about one row in twenty of the training distribution is above; inside, fewer.
    assert (chosen.drift(cars) > levels[1]).mean() <= 0.12
    own = fits["y"].drift_threshold(df, quantile=0.8)
    assert own == pytest.approx(fits["y"].drift(df).quantile(0.8))
    assert chosen.drift_threshold(cars, k=9) > 0
    for bad in (lambda: fits["y"].drift_threshold(), lambda: chosen.drift_threshold(k=9)):
        with pytest.raises(ld.ArgumentError, match="only for k=5, and only if gbmap chose"):
            bad()
    with pytest.raises(ld.ArgumentError, match="quantile"):
        chosen.drift_threshold(quantile=95)
    with pytest.raises(ld.DataError, match="a row without missing values"):
        fits["y"].drift_threshold(df.loc[["r7"]])


@pytest.mark.parametrize("k", [0, 160, 2.5, "all"])
def test_k_out_of_range(fits, df, k):
    for method in (fits["y"].neighbours, fits["y"].drift):
        with pytest.raises(ld.ArgumentError, match="from 1 to 159"):
            method(df, k)


def test_few_reference_rows(df):
    few = fit_to(df, "y", control={"reference_rows": 20})
    assert len(few.reference.y) == 20
    np.testing.assert_array_equal(few.predict(df), fit_to(df, "y").predict(df))
    none = fit_to(df, "y", control={"reference_rows": 0})
    with pytest.raises(ld.ArgumentError, match="no training rows"):
        none.drift(df)
    # A fit that chooses calibrates its drift with five neighbours, even of fewer rows than that.
    tiny = fit_to(df, "y", m=None, control={"reference_rows": 3, "max_stages": 3})
    assert np.isfinite(tiny.predict(complete(df))).all()


def test_offset_is_left_out_of_distances(df):
    data = complete(df).assign(o=np.arange(159.0))
    for offset in ("o", data["o"].to_numpy()):
        one = fit_to(data, "y", offset=offset)
        drift = one.drift(data)
        assert np.isfinite(drift).all() and len(one.neighbours(data)) == 159
        as_dict = {name: data[name].to_numpy() for name in ("x", "z", "g", "o")}
        np.testing.assert_allclose(one.drift(as_dict), drift)
        np.testing.assert_allclose(one.neighbours(as_dict), one.neighbours(data))
        assert one.regions(as_dict)["n"].sum() == 159


# Update, first, save ---------------------------------------------------------------------------


def test_update(fits, df):
    one = fits["y"].update(df, m=2, formula="y ~ x")
    other = ld.gbmap("y ~ x", df, m=2, lambda_=0.01, beta=4, missing="drop")
    np.testing.assert_array_equal(one.estimates.theta, other.estimates.theta)
    assert one.call == other.call and fits["y"].settings.m == M
    half = fits["c"].update(df.iloc[:80])
    assert half.n == 79 and half.settings == fits["c"].settings
    with pytest.raises((ld.ArgumentError, TypeError), match="gamma"):
        fits["y"].update(df, gamma=1)


def test_update_of_arrays_and_numpy_numbers(df):
    weighted = fit_to(df, "y", weights=np.arange(160.0))
    with pytest.raises(ld.ArgumentError, match="weights was an array"):
        weighted.update(df)
    again = weighted.update(df, weights=np.arange(160.0))
    np.testing.assert_array_equal(again.estimates.theta, weighted.estimates.theta)
    numpy = fit_to(df, "y", m=np.int64(2), seed=np.int32(3), lambda_=np.float32(0.5))
    plain = fit_to(df, "y", m=2, seed=3, lambda_=0.5)
    np.testing.assert_array_equal(numpy.update(df).estimates.theta, plain.estimates.theta)
    assert "m=2" in numpy.call


def test_first(fits, df):
    one = fits["k"].first(2)
    assert one.settings.m == 2 and one.predict(df, "embedding").shape == (160, 6)
    assert len(one.learners()) == 6 and "Boosts: 2" in str(one)
    assert "Weak learners" in str(one.summary())
    assert one.dev_ratio == pytest.approx(fits["k"].learners()["dev_ratio"][5])
    with pytest.raises(ld.ArgumentError, match="no training rows"):
        one.drift(df)
    for bad in (0, M + 1, 1.5, "two", None):
        with pytest.raises(ld.ArgumentError, match="from 1 to 4"):
            fits["k"].first(bad)


def test_staged(fits, df):
    for type in ("response", "link", "class", "prob"):
        staged = fits["c"].staged(df, type)
        assert list(staged) == [1, 2, 3, 4]
        last = fits["c"].predict(df, type)
        assert staged[4].equals(last)
    with pytest.raises(ld.ArgumentError, match="type must be"):
        fits["c"].staged(df, "local")


@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_save_and_load(fits, df, tmp_path, response):
    one = fits[response]
    one.save(tmp_path / "fit.lodim")
    back = ld.load(tmp_path / "fit.lodim")
    assert type(back) is type(one) and str(back) == str(one)
    assert str(back.summary()) == str(one.summary())
    for type_ in one.types:
        if response == "y" and type_ in ("class", "prob"):
            continue
        assert back.predict(df, type_).equals(one.predict(df, type_))
    pd.testing.assert_series_equal(back.drift(df), one.drift(df))
    pd.testing.assert_frame_equal(back.glance(), one.glance())
    pd.testing.assert_frame_equal(back.tidy(), one.tidy())
    np.testing.assert_array_equal(back.update(df).estimates.theta, one.estimates.theta)
    back.save(tmp_path / "again.lodim")
    assert (tmp_path / "again.lodim").read_bytes() == (tmp_path / "fit.lodim").read_bytes()


@pytest.mark.long
def test_saved_file_is_small(chosen, tmp_path):
    chosen.save(tmp_path / "cars")
    assert (tmp_path / "cars").stat().st_size < 200_000
    back = ld.load(tmp_path / "cars")
    pd.testing.assert_frame_equal(back.selection, chosen.selection)
    assert back.drift_threshold() == chosen.drift_threshold()


def test_corrupt_files(fits, tmp_path):
    path = tmp_path / "fit"
    fits["c"].save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for cut in (0, 10, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:cut])
        with pytest.raises(ld.StoreError):
            ld.load(path)
    refused = 0
    for at in rng.integers(0, len(whole), 40):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        path.write_bytes(damaged)
        try:
            ld.load(path)
        except ld.StoreError:
            refused += 1
    assert refused > 30
    with pytest.raises(ld.StoreError, match="no file"):
        ld.load(tmp_path / "none")


@pytest.mark.parametrize("change", [
    lambda s: s.pop("estimates"),
    lambda s: s["settings"].update(beta=-1),
    lambda s: s["settings"].update(colour="red"),
    lambda s: s["estimates"].update(theta=np.zeros((2, 99))),
    lambda s: s.update(design={}),
    lambda s: s["design"].pop("terms"),
])  # fmt: skip
def test_a_state_that_is_no_fit(fits, df, tmp_path, change):
    """A well-formed file with the wrong things in it is a StoreError too, at load or never."""
    state = deepcopy(forms.write(fits["y"]))
    change(state)
    storage.write(tmp_path / "odd", "gbmap", state)
    with pytest.raises(ld.StoreError):
        ld.load(tmp_path / "odd")
    storage.write(tmp_path / "kind", "nonsense", state)
    with pytest.raises(ld.StoreError, match="nonsense"):
        ld.load(tmp_path / "kind")


def test_a_fit_does_not_keep_the_data(df, tmp_path):
    big = pd.concat([complete(df)] * 200, ignore_index=True)
    fit_to(big, "y", control={"reference_rows": 100}).save(tmp_path / "big")
    assert (tmp_path / "big").stat().st_size < 20_000


# Warnings --------------------------------------------------------------------------------------


def test_convergence_warning(df):
    with pytest.warns(ld.ConvergenceWarning, match="max_iter") as caught:
        one = fit_to(df, "y", control={"max_iter": 1})
    assert len(caught) == 1 and caught[0].filename == __file__
    assert not one.converged and not one.glance()["converged"][0]
    assert "did not converge" in str(one) and "NOT converged" in str(one.summary())


# Plots -----------------------------------------------------------------------------------------


def kinds(df):
    yield "loss", {}, ("boost", "mean")
    yield "effects", {"top": 2}, ("effect on", None)
    yield "local", {"data": df, "row": 3}, ("local effect", None)
    yield "embedding", {}, ("PC 1", "PC 2")
    yield "embedding", {"data": df}, ("PC 1", "PC 2")
    yield "drift", {"data": df, "threshold": 1.0}, ("drift indicator", "loss")


@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_plots(fits, df, axes, response):
    for kind, arguments, (x, y) in kinds(df):
        axes.figure.clear()
        ax = axes.figure.subplots()
        got = fits[response].plot(kind, ax=ax, **arguments)
        assert got is ax and x in ax.get_xlabel(), kind
        assert y is None or y in ax.get_ylabel(), kind
        ax.figure.canvas.draw()
        if kind == "local":
            assert "row r3" in ax.get_title()
        if kind == "effects":
            assert len(ax.get_yticklabels()) == 2


def test_plots_name_classes_and_what_a_slope_changes():
    """A class follows its feature in brackets; labels of axes say which class a slope is for."""
    tumours = ld.data("breast_cancer")
    two = ld.gbmap("diagnosis ~ mean_radius", tumours, m=1, lambda_=0.1, threads=1)
    scale = "the logit of P(diagnosis = malignant)"
    assert two.plot("effects").get_xlabel() == f"effect on {scale}\nper SD of the feature"
    assert f"in units of {scale};" in " ".join(str(two.summary()).split())
    assert ld.effects(two, tumours, type="link").plot().get_ylabel() == f"effect on {scale}"
    cars = ld.data("autompg")
    counts = ld.glm("cylinders ~ weight", cars, family="poisson")
    ax = ld.effects(counts, cars, type="link").plot()
    assert ax.get_ylabel() == "effect on the log of the mean of cylinders"
    flowers = ld.data("iris")
    flowers["code"] = pd.factorize(flowers["species"])[0] + 10115
    given = {"family": "multinomial", "m": 1, "lambda_": 0.1, "threads": 1}
    three = ld.gbmap("code ~ petal_width", flowers, **given)
    ax = three.plot("local", data=flowers)
    assert ax.get_title() == "row 0: predicted code = 10115"
    assert ax.get_xlabel().startswith("local effect on the score of the class")
    named = {f"petal_width ({code})" for code in (10115, 10116, 10117)}
    assert {t.get_text() for t in ax.get_yticklabels()} == named
    ax = two.plot("loss")  # one boost: no tick at a fraction of a boost
    assert all(float(t) == int(t) for t in ax.get_xticks())


@pytest.mark.parametrize("model", [ld.gbmap, ld.proset, ld.costnet])
def test_unstandardized_features_are_named_in_the_summary(model):
    given = {"m": 1, "lambda_": 0.1} if model is ld.gbmap else {}
    given = {"lambda_v": 0.1} if model is ld.proset else given
    for standardize in (True, False):
        fit = model("mpg ~ weight", ld.data("autompg"), standardize=standardize, **given)
        note = "std_estimate in tidy() is per unit"
        assert (note in " ".join(str(fit.summary()).split())) is not standardize


def test_plot_makes_its_own_axes(fits, axes):
    from matplotlib.axes import Axes

    assert isinstance(fits["y"].plot(), Axes)
    with pytest.raises(ld.ArgumentError, match="loss, effects, embedding, local"):
        fits["y"].plot("pie")
    with pytest.raises(ld.ArgumentError, match="missing"):
        fits["y"].plot("local", data=pd.DataFrame({"x": [np.nan], "z": 1.0, "g": "a"}))


def test_plots_of_a_fit_with_an_array_offset(df, axes):
    data = complete(df)
    one = fit_to(data, "y", offset=np.arange(159.0))
    assert one.plot("local", ax=axes, data=data) is axes
    axes.clear()
    assert one.plot("embedding", ax=axes, data=data) is axes


def test_the_call_makes_the_same_fit_again(df):
    """What cross-validation or a path chose is in the call, and `update` repeats it."""
    data = df.dropna()
    grid = {"beta": [1.0, 3.0], "m": [1, 2]}
    best = ld.cv(ld.gbmap, "y ~ x + z", data, grid=grid, lambda_=0.01, folds=3).best
    again = best.update(data)
    assert again.settings == best.settings
    np.testing.assert_array_equal(again.predict(data), best.predict(data))
    one = ld.path(ld.gbmap, "y ~ x + z", data, m=2, n_lambda=3).fits[1]
    assert f"m=2, lambda_={one.settings.lambda_:.6g}" in one.call
    assert one.update(data).settings == one.settings
    chosen = ld.gbmap("y ~ x + z", data, refit="none", control={"max_stages": 3})
    assert list(chosen.chosen) == ["lambda_", "m"] and "chosen by cross-validation" in str(chosen)
    assert chosen.update(data).settings == chosen.settings


def test_classes_keep_their_kind():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"x": rng.normal(size=60)})
    for labels, kind in (([0, 1], "i"), ([False, True], "b")):
        data = df.assign(y=np.array(labels)[(df["x"] > 0).astype(int)])
        predicted = ld.gbmap("y ~ x", data, m=1, lambda_=0.1).predict(data, "class")
        assert predicted.dtype.kind == kind
        data.loc[0, "x"] = np.nan
        fit = ld.gbmap("y ~ x", data, m=1, lambda_=0.1, missing="drop")
        assert fit.predict(data, "class").isna().sum() == 1


def test_what_needs_no_offset(df):
    """Distances, embedding and local coefficients do not depend on the offset."""
    data = df.dropna()
    one = ld.gbmap("y ~ x + z", data, m=2, lambda_=0.1, offset=np.ones(len(data)))
    assert one.distance(data).shape == (len(data), len(data))
    assert one.predict(data, "embedding").shape == (len(data), 2)
    assert one.predict(data, "local").shape == (len(data), 2)
    with pytest.raises(ld.DataError, match="offset"):
        one.predict(data)


def test_an_offset_that_says_nothing_of_classes(df):
    with pytest.raises(ld.DataError, match="each of the 3 classes"):
        ld.gbmap("k ~ x + z", df, m=1, lambda_=0.1, offset=np.ones(len(df)))


@pytest.mark.parametrize("change", [
    {"target": np.array([0, 2**33])}, {"sign": np.array([1.0, 3.0])}, {"scale": -1.0},
    {"theta": np.zeros((2, 4), complex)}, {"activation": 7}, {"n_scores": 2},
    {"stage": np.array([1])},
])  # fmt: skip
def test_a_forged_file_is_refused(df, tmp_path, change):
    """Kernels index by the fields of a file unchecked: they are checked when it is read."""
    one = ld.gbmap("y ~ x + z", df.dropna(), m=2, lambda_=0.1)
    state = forms.write(one)
    state["estimates"] = dict(state["estimates"]) | change
    storage.write(tmp_path / "forged", "gbmap", state)
    with pytest.raises(ld.StoreError):
        ld.load(tmp_path / "forged")


def test_augmenting_twice_changes_nothing(df):
    one = ld.gbmap("y ~ x + z", df.dropna(), m=1, lambda_=0.1)
    once = one.augment(df)
    pd.testing.assert_frame_equal(one.augment(once), once)


@pytest.mark.parametrize("tolerance", [0, -1.0, np.nan, "a"])
def test_tolerance_of_path_distance(df, tolerance):
    one = ld.gbmap("y ~ x + z", df.dropna(), m=1, lambda_=0.1)
    with pytest.raises(ld.ArgumentError, match="tolerance"):
        one.distance(df, kind="path", tolerance=tolerance)


def test_ratios_do_not_depend_on_units(df):
    data = df.dropna()
    ratios = [
        ld.gbmap("y ~ x + z", data.assign(y=s * data["y"]), m=2, lambda_=0.1)
        .evaluate(data.assign(y=s * data["y"]))["dev_ratio"].iloc[0]
        for s in (1.0, 1e-7)
    ]  # fmt: skip
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-6)


def test_learners_that_add_nothing_are_left_out():
    """A line is learnt by its first boosts; under a large penalty the first is all there is."""
    df = pd.DataFrame({"x": np.linspace(-1, 1, 80)})
    df["y"] = 2.0 * df["x"]
    one = ld.gbmap("y ~ x", df, m=30, lambda_=1e-3)
    stage, w = one.estimates.stage, one.estimates.theta[:, 2:]
    assert one.settings.m == 30 > len(stage) >= 1 and stage[0] == 1 and w.any(axis=1).all()
    assert f"add nothing: {30 - len(stage)}" in " ".join(str(one.summary()).split())
    assert one.predict(df, "embedding").shape == (80, len(stage)) and one.dev_ratio > 0.999
    null = ld.gbmap("y ~ x", df, m=5, lambda_=1e12)
    assert len(null.estimates.sign) == 1 and np.ptp(null.predict(df)) < 1e-6
    np.testing.assert_array_equal(list(one.staged(df).values())[-1], one.predict(df))


# Extrapolation ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def aged():
    """A fit to the younger seven tenths of concrete, and all rows."""
    df = ld.data("concrete").dropna().rename(columns={"strength": "y"}).astype(float)
    young = df[df["age"] <= df["age"].quantile(0.7)]
    return ld.gbmap("y ~ .", young, m=20, lambda_=0.01), young, df[df["age"] > young["age"].max()]


def test_far_predictions_are_warned_of_once(aged):
    fit, young, old = aged
    low, high = young["y"].min(), young["y"].max()
    with pytest.warns(ld.ExtrapolationWarning) as seen:
        f = fit.predict(old)
    beyond = np.maximum(low - f, f - high)
    far = beyond > 0.25 * (high - low)
    assert far.sum() > 5 and len(seen) == 1
    words = str(seen[0].message)
    assert words.startswith(f"{far.sum()} of {len(old)} rows") and "clip=True" in words
    assert f"the farthest is {f[beyond.idxmax()]:.6g} in row {int(beyond.idxmax())}" in words


def test_clipped_predictions_stay_in_the_range(aged):
    fit, young, old = aged
    clipped = fit.predict(old, clip=True)  # and nothing warns
    with pytest.warns(ld.ExtrapolationWarning):
        f = fit.predict(old)
    pd.testing.assert_series_equal(clipped, f.clip(young["y"].min(), young["y"].max()))
    known = np.linspace(0, 500, len(young))
    beside = ld.gbmap("y ~ .", young.assign(y=young["y"] + known), offset=known, m=20, lambda_=0.01)
    at = np.full(len(old), 1000.0)
    np.testing.assert_allclose(beside.predict(old, offset=at, clip=True), clipped + 1000, rtol=1e-4)


def test_nothing_warns_near_the_training_rows(aged):
    young = aged[1]
    for half in (young[::2], young[1::2]):
        one = ld.gbmap("y ~ .", half, m=20, lambda_=0.01)
        one.predict(young)
        one.predict(young, "link")
        one.first(3).predict(young)


def test_clip_is_for_numbers(aged, fits, df):
    fit, young, _ = aged
    with pytest.raises(ld.ArgumentError, match="clip=True needs a numeric"):
        fits["c"].predict(df, clip=True)
    with pytest.raises(ld.ArgumentError, match="clip=True needs"):
        fit.predict(young, "embedding", clip=True)
    with pytest.raises(ld.ArgumentError, match="needs the range"):
        fit.first(2).predict(young, clip=True)
    with pytest.raises(ld.ArgumentError, match="clip must be True or False"):
        fit.predict(young, clip="yes")


def test_drift_by_distance(fits, df):
    one, k = fits["y"], 4
    known = df.dropna(subset=[c for c in one.design.features]).iloc[:20]
    E, train = (one.predict(d, "embedding").to_numpy() for d in (known, df))
    train = train[~np.isnan(train).any(axis=1)]
    near = np.sort(np.abs(E[:, None] - one.reference.embedding).sum(axis=2), axis=1)[:, :k]
    np.testing.assert_allclose(one.drift(known, k, kind="distance"), near.mean(axis=1), atol=1e-9)
    assert one.drift_threshold(known, k=k, kind="distance") <= near.mean(axis=1).max()
    with pytest.raises(ld.ArgumentError, match="kind must be one of difference, distance"):
        one.drift(df, kind="path")


@pytest.mark.long
def test_a_chosen_fit_knows_both_thresholds(chosen):
    assert set(chosen.calibration) == {"difference", "distance"}
    assert chosen.drift_threshold(kind="distance", quantile=0.5) > 0


def test_more_parameters_than_rows_are_said():
    df = pd.DataFrame({"x": [0.0, 1.0, 2.5, 3.0], "y": [0.0, 2.0, 1.0, 5.0]})
    notes = {m: " ".join(ld.gbmap("y ~ x", df, m=m, lambda_=1e-3).summary().notes) for m in (1, 9)}
    assert "18 parameters for 4 rows" in notes[9] and "parameters for" not in notes[1]


@pytest.mark.long
def test_l1_ratio_beside_the_elastic_net():
    """One linear boost has glmnet's objective with alpha = r / (2 - r), lambda (2 - r) / (2 p)."""
    from sklearn.linear_model import ElasticNet

    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 3))
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    y = 7.0 * (Z @ [1.0, 0.5, 0.0] + rng.normal(size=200))
    df = pd.DataFrame(Z, columns=list("abc")).assign(y=y)
    fit = ld.gbmap("y ~ .", df, m=1, lambda_=3.0, l1_ratio=0.4, activation="identity")
    net = ElasticNet(alpha=3.0 * 1.6 / 6.0, l1_ratio=0.4 / 1.6, tol=1e-12)
    expected = net.fit(Z, y / y.std()).predict(Z) * y.std()
    np.testing.assert_allclose(fit.predict(df), expected, rtol=1e-5, atol=1e-5)


def test_plots_of_joint_fits_and_of_rows_without_a_response(chosen, fits, df, axes):
    joint = ld.gbmap("y ~ x + z", df, lambda_=0.1, refit="joint", m=2)
    labels = joint.plot("loss").get_legend().get_texts()
    assert [text.get_text() for text in labels] == ["joint fit"]
    for kind in ("embedding", "drift"):
        with pytest.raises(ld.ArgumentError, match="no complete row to draw"):
            fits["y"].plot(kind, data=df.assign(y=np.nan))
    assert len(chosen.plot("drift", data=ld.data("autompg")).lines) > 1


@pytest.mark.long
def test_the_number_of_jointly_optimized_learners_follows_the_rows(df):
    few, many = (ld.gbmap("y ~ x", df[:n], lambda_=0.1, refit="joint") for n in (60, 160))
    assert 1 <= few.settings.m < many.settings.m


def test_few_rows_calibrate_no_drift(df):
    fit = ld.gbmap("y ~ z", df[:6])
    assert fit.selection is not None and fit.calibration is None
    with pytest.raises(ld.ArgumentError, match="data"):
        fit.drift_threshold()
