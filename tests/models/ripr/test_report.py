"""ripr: a printed figure is what its label says, and arguments that change nothing are refused."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.fitting.fit_model import model_of, prepare
from lodim.models.ripr.assignment.constrained import Constraints

TWO = ld.informative_views(2, 60, seed=3, M=6)
NUMBERS = ld.informative_views_r(150, 2, seed=1, M=5)
_fits = {}


def fit_of(name):
    """Fits that several tests look at."""
    if name not in _fits:
        _fits[name] = {
            "forward": lambda: ld.ripr("diagnosis ~ .", cells(), threads=1, method="assignment"),
            "given": lambda: ld.ripr("y ~ .", TWO, lambda_=1.0, threads=1),
            "numbers": lambda: ld.ripr("y ~ .", NUMBERS, threads=1, method="assignment"),
            "clusters": lambda: ld.ripr("~ .", blobs(), threads=1),
        }[name]()
    return _fits[name]


def cells():
    """Tumours in some of the features: forward selection finds their views."""
    names = ["worst_perimeter", "worst_smoothness", "worst_symmetry", "mean_concavity"]
    names += ["worst_concavity", "worst_radius", "worst_area", "diagnosis"]
    return ld.data("breast_cancer")[names]


def blobs(n=120):
    """Three clusters in (a, b), and a third feature without any."""
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 3
    X = np.array([[0.2, 0.2], [0.8, 0.2], [0.5, 0.8]])[truth] + 0.03 * rng.normal(size=(n, 2))
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": rng.uniform(size=n)})


def words(report):
    """A print on one line."""
    return " ".join(str(report).split())


# How the views were found ----------------------------------------------------------------------


@pytest.mark.long
def test_forward_selection_is_named_and_no_lambda_is_claimed(tmp_path):
    fit = fit_of("forward")
    assert fit.settings.lambda_ is None and np.isnan(fit.glance()["lambda_"][0])
    assert "by forward selection on leave-one-out errors" in words(fit)
    assert "lambda" not in words(fit).lower()
    assert "Lambda / (1 - alpha)^2: none: forward sel." in words(fit.summary())
    assert "Views by forward selection; their assignment:" in words(fit.summary())
    fit.save(tmp_path / "fit")
    assert str(ld.load(tmp_path / "fit").summary()) == str(fit.summary())
    again = fit.update(cells())
    assert again.view_names == fit.view_names


@pytest.mark.long
def test_a_penalty_that_is_printed_gives_the_fit_again():
    """k and lambda of any print that names them, put into the call, make the same views."""
    for data, formula in ((NUMBERS, "y ~ ."), (TWO, "y ~ .")):
        fit = ld.ripr(formula, data, threads=1, method="assignment")
        if fit.settings.lambda_ is None:
            assert "forward selection" in str(fit)
            continue
        assert "(chosen by the method)" in str(fit) and "(by itself)" in str(fit.summary())
        s = fit.settings
        again = ld.ripr(formula, data, lambda_=s.lambda_, k=s.k, threads=1)
        assert again.view_names == fit.view_names
        assert again.settings.lambda_ == s.lambda_
    assert "lambda: 2 (default)" in str(fit_of("clusters"))
    assert ld.ripr("y ~ .", TWO, lambda_=3, threads=1).settings.lambda_ == 3


def test_forward_selection_gives_way_to_an_order():
    """The views are then those of a penalty, which is printed."""
    fit = ld.ripr("diagnosis ~ .", cells(), order=np.arange(569), threads=1)
    assert fit.settings.lambda_ is not None and "lambda: " in str(fit)


@pytest.mark.long
def test_cv_compares_what_the_method_does_by_itself():
    fold = np.arange(569) % 3
    how = {"threads": 1, "method": "assignment"}
    cv = ld.cv(ld.ripr, "diagnosis ~ .", cells(), folds=fold, n_lambda=2, **how)
    assert len(cv.frame) == 3 and cv.frame["lambda_"].isna().tolist() == [False, False, True]
    by_hand = np.average(
        [ld.ripr("diagnosis ~ .", cells()[fold != k], **how)
         .evaluate(cells()[fold == k])["deviance"][0] for k in range(3)],
        weights=np.bincount(fold),
    )  # fmt: skip
    assert cv.frame["mean"][2] == pytest.approx(by_hand, rel=1e-6)
    alone = ld.cv(ld.ripr, "diagnosis ~ .", cells(), folds=2, grid={"lambda_": [None]}, **how)
    assert np.isnan(alone.lambda_min) and "None" in str(alone) and alone.index_1se == 0
    assert alone.best.view_names == fit_of("forward").view_names
    assert "forward selection" in str(alone.best)
    assert ld.cv(ld.ripr, "y ~ .", TWO, folds=2, lambda_=1.0, threads=1).lambda_min == 1.0
    grid = {"lambda_": [None, 0.5, 2.0]}
    frame = ld.cv(ld.ripr, "y ~ .", TWO, folds=2, grid=grid, threads=1).frame
    assert frame["lambda_"].tolist()[:2] == [2.0, 0.5] and np.isnan(frame["lambda_"][2])


def test_plot_of_a_cv_with_the_own_choice():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    cv = ld.cv(ld.ripr, "y ~ .", TWO, folds=2, n_lambda=2, threads=1)
    ax = cv.plot()
    assert ax.get_xlabel() == "log(lambda)"
    flat = [line for line in ax.lines if len(set(line.get_ydata())) == 1 and len(line.get_ydata())]
    assert any(line.get_ydata()[0] == cv.frame["mean"][2] for line in flat)
    styles = [line.get_linestyle() for line in ax.lines]
    assert "--" in styles  # the least loss, be it upright or level
    assert ax.get_legend().get_texts()[0].get_text() == "lambda left to the model"
    ax.figure.canvas.draw()
    pyplot.close("all")


# What errors are worth -------------------------------------------------------------------------


@pytest.mark.long
def test_errors_of_views_chosen_on_the_same_rows_say_so():
    for name in ("forward", "given", "numbers"):
        label = "MSE" if name == "numbers" else "Error"
        assert f"{label}: leave-one-out, in views chosen on these rows" in words(fit_of(name))
        assert "errors and Dev. ratio are for the rows that determined" in words(
            fit_of(name).summary()
        )
    assert "determined the views" in words(fit_of("given").summary())
    assert "determined the views and their number" in words(fit_of("forward").summary())
    both = ld.ripr("y + x1 ~ .", TWO, threads=1)
    for report in (both, both.summary()):
        assert "Errors: leave-one-out, in views chosen on these rows" in words(report)
    assert "(by itself)" in words(both) and "(by itself)" in words(both.summary())
    assert "leave-one-out" not in words(fit_of("clusters").summary())
    assert "Distortion (training rows)" in words(fit_of("clusters").summary())


def test_rows_without_a_view_count_where_the_print_says():
    df = TWO.copy()
    X = df.columns.drop("y")
    df[X] = df[X].mask(np.random.default_rng(0).random((len(df), len(X))) < 0.4)
    fit = ld.ripr("y ~ .", df, lambda_=1.0, n_views=2, threads=1)
    own = fit.estimates.query()
    blind = int((own.view < 0).sum())
    assert blind > 20
    shares = np.array([(own.view == j).mean() for j in range(len(fit.estimates))])
    np.testing.assert_allclose(fit.tidy()["estimate"], shares)
    np.testing.assert_allclose(shares.sum(), 1.0 - blind / len(df))
    assert f"{100 * shares[0]:.1f}" in str(fit)
    seen = own.view >= 0
    said = own.value[np.flatnonzero(seen), own.view[seen]]
    glance = fit.glance()
    assert glance["error"][0] == pytest.approx((said != df["y"][seen]).mean())
    p = np.where(seen, 1 / (1 + np.exp(-np.nan_to_num(own.score[:, 0]))), df["y"].mean())
    deviance = -2 * np.log(np.where(df["y"] == 1, p, 1 - p)).mean()
    assert glance["deviance"][0] == pytest.approx(deviance)
    text = words(fit.summary())
    assert f"In {blind} rows, every view has a missing feature: the prediction is missing" in text
    assert "as the null model's prediction in Dev. ratio, not in Error" in text


# What was compared -----------------------------------------------------------------------------


@pytest.mark.long
def test_screening_is_said():
    every = fit_of("given")
    assert "compared" not in str(every) and "Views compared: 15" in words(every.summary())
    fit = ld.ripr("y ~ .", TWO, lambda_=1.0, max_views=8, threads=1)
    assert "Views compared: 8 of 15" in str(fit)
    assert "8 of 15 views were compared" in words(fit.summary())
    assert fit.glance()[["n_compared", "n_possible"]].to_numpy().tolist() == [[8, 15]]
    deep = ld.ripr("y ~ .", TWO, lambda_=1.0, max_dim=3, max_views=18, threads=1)
    assert "18 of 35" in str(deep)
    both = ld.ripr("y + x1 ~ .", TWO, lambda_=1.0, max_views=7, threads=1)
    assert "Views compared: 7 of 10" in words(both.summary())


def test_screening_by_the_default_bound_is_said(monkeypatch):
    monkeypatch.setattr("lodim.models.ripr.assignment.view_search.most_views", lambda n: 3)
    fit = ld.ripr("y ~ .", TWO, lambda_=1.0, threads=1)
    assert "Views compared: 6 of 15" in str(fit)


# Numbers ---------------------------------------------------------------------------------------


def test_the_unit_of_lambda_is_that_of_the_losses():
    text = words(fit_of("numbers").summary())
    assert "Lambda / var(L)" in text and "(1 - alpha)^2" not in text and "Order alpha" not in text
    assert "Lambda / (1 - alpha)^2" in words(fit_of("given").summary())
    assert "Order alpha: 0.99" in words(fit_of("given").summary())
    both = ld.ripr("y + x1 ~ .", TWO, lambda_=1.0, threads=1)
    text = words(both.summary())
    assert "Lambda / unit: 1" in text and "units of (1 - alpha)^2 for the losses of classes" in text
    numbers = ld.ripr("y + x1 ~ .", NUMBERS, lambda_=1.0, threads=1)
    assert "Lambda / var(L): 1" in words(numbers.summary())


# Arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "arguments", "match"),
    [
        ("y ~ .", {"alpha": 0.9}, "alpha needs classes or clusters, not a numeric"),
        ("y ~ .", {"balanced": True}, "balanced needs a response with classes"),
        ("y + x1 ~ .", {"alpha": 0.9}, "alpha needs classes"),
        ("~ . - y", {"balanced": True}, "balanced needs a response with classes"),
        ("y ~ .", {"control": {"smooth": 3.0}}, "smooth needs order="),
        ("y ~ .", {"max_views": 4}, "max_views must be at least the number of features, 5"),
        ("y ~ .", {"n_clusters": 3}, "n_clusters needs a formula without a response"),
    ],
)  # fmt: skip
def test_arguments_that_change_nothing_are_refused(formula, arguments, match):
    with pytest.raises(ld.ArgumentError, match=match):
        ld.ripr(formula, NUMBERS, threads=1, **arguments)


def test_arguments_that_change_something_are_not():
    assert (
        len(ld.ripr("y + x1 ~ .", TWO, alpha=0.9, balanced=True, lambda_=1.0, threads=1).fits) == 2
    )
    assert ld.ripr("y ~ .", TWO, alpha=0, lambda_=0.1, threads=1).settings.alpha == 0
    with pytest.raises(ld.ArgumentError, match="a must be at least 0 and below 1, not 1"):
        ld.ripr("y ~ .", TWO, alpha=1)


# Constraints -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("further", "match"),
    [
        (lambda B, views: 3, "must return a list of CVXPY constraints, not 3"),
        (lambda B, views: None, "must return a list of CVXPY constraints, not None"),
        (lambda B, views: [True], "not True"),
        (lambda B: [], "a function of two arguments"),
        (3, "a function of two arguments"),
    ],
)
def test_constraints_of_ones_own_are_checked(further, match):
    with pytest.raises(ld.ArgumentError, match=match):
        ld.ripr("y ~ .", TWO.iloc[::3], lambda_=1.0, constraints={"further": further}, threads=1)


def test_a_category_is_paid_once_by_the_name_of_its_column():
    rng = np.random.default_rng(0)
    df = TWO.iloc[::2].assign(g=rng.choice(list("uvw"), 60))
    formula = "y ~ x1 + np.log(1 + x2) + g"

    def constraints(prices):
        design = prepare(model_of(ld.ripr), formula, df, {}).design
        request = Constraints.from_dict({"prices": prices, "budget": 5.0}, design, 60)
        at = {name: k for k, name in enumerate(design.names)}
        views = np.array([
            [at["g[u]"], at["g[v]"]], [at["x1"], at["g[w]"]], [at["np.log(1 + x2)"], -1],
            [at["x1"], -1],
        ])  # fmt: skip
        return request.on_views(views, np.arange(60)).cost.tolist()

    assert constraints({"g": 2.0, "x2": 3.0, "x1": 0.5}) == [2.0, 2.5, 3.0, 0.5]
    assert constraints({"g[u]": 2.0, "g[v]": 4.0}) == [6.0, 0.0, 0.0, 0.0]
    with pytest.raises(ld.ArgumentError, match=r"x1, .*g\[u\].*, x2.*, not 'h'"):
        constraints({"h": 1.0})
    priced = {"prices": {"g": 1.0}, "budget": 0.0}
    fit = ld.ripr("y ~ x1 + x2 + g", df, lambda_=1.0, constraints=priced, threads=1)
    assert fit.view_names == ["x1, x2"]


# Frames and several responses ------------------------------------------------------------------


def test_one_row_of_any_frame_is_explained_and_drawn():
    polars = pytest.importorskip("polars")
    pytest.importorskip("narwhals")
    fit = fit_of("given")
    row = polars.DataFrame(TWO.iloc[[3]].to_dict("list"))
    x = fit.explain(row)
    assert x.prediction == fit.explain(TWO.iloc[[3]]).prediction
    assert fit.explain(TWO.iloc[[3]].to_dict("list")).prediction == x.prediction
    pyplot = pytest.importorskip("matplotlib.pyplot")
    assert len(x.plot()) == len(fit.estimates)
    pyplot.close("all")
    with pytest.raises(ld.ArgumentError, match="one row"):
        fit.explain(polars.DataFrame(TWO.to_dict("list")))


def test_cv_and_path_take_one_response():
    for call in (ld.cv, ld.path):
        with pytest.raises(ld.FormulaError, match="only one response can be used here"):
            call(ld.ripr, "y + x1 ~ .", TWO)


def test_fits_of_several_responses_augment_explain_and_update():
    df = TWO.assign(z=np.where(TWO["x1"] > 0.5, "yes", "no"))
    fits = ld.ripr("y + z ~ .", df, lambda_=1.0, threads=1)
    out = fits.augment(df)
    pd.testing.assert_frame_equal(out[df.columns], df)
    for name in ("y", "z"):
        own = fits[name].augment(df)
        for column in (".fitted", ".loss", ".class", ".view"):
            pd.testing.assert_series_equal(out[f"{column}[{name}]"], own[column], check_names=False)
    again = fits.augment(out)
    assert again.columns.is_unique and len(again.columns) == len(out.columns)
    assert len(fits.augment(df.to_dict("list"))) == len(df)
    other = fits.update(df.iloc[::2], k=5)
    assert list(other.fits) == ["y", "z"] and other["y"].settings.k == 5


def test_new_columns_replace_those_of_other_fits():
    """The columns of a fit to one response have the names of those that augment() adds below."""
    df = TWO.assign(z=np.where(TWO["x1"] > 0.5, "yes", "no"))
    fits = ld.ripr("y + z ~ .", df, lambda_=1.0, threads=1)
    out = fits.augment(fits["y"].augment(df))
    expected = fits.augment(df)
    pd.testing.assert_frame_equal(out[expected.columns], expected)


def test_features_may_be_called_as_columns_of_tables():
    """Of clusters, and of neighbours in an explanation, whose print calls the distance Distance."""
    centres = fit_of("clusters").clusters()[["n", "a", "b"]]
    fit = ld.ripr("~ .", blobs().rename(columns={"a": "n", "b": "Rows"}), threads=1)
    pd.testing.assert_frame_equal(
        fit.clusters()[["n", "n (feature)", "Rows"]].set_axis(["n", "a", "b"], axis=1), centres
    )
    assert list(fit.summary().tables[-1].frame)[2:] == ["n (feature)", "Rows (feature)"]
    df = blobs().assign(c=lambda d: d["a"] * d["b"])
    plain, *renamed = (
        ld.ripr("c ~ .", d, k=5, n_views=1, threads=1).explain(d[:1])
        for d in (
            df,
            df.rename(columns={"a": "distance", "b": "Distance"}),
            df.rename(columns={"a": "self"}),  # an argument of pandas' methods
        )
    )
    columns = plain.neighbours.columns
    for one in renamed:
        pd.testing.assert_frame_equal(one.neighbours.set_axis(columns, axis=1), plain.neighbours)
        assert one.report().tables[-1].frame.columns.is_unique


def test_more_neighbours_than_rows_are_refused():
    weights = np.r_[np.zeros(10), np.ones(len(TWO) - 10)]
    few = TWO.assign(y=TWO["y"].where(np.arange(len(TWO)) % 3 > 0))
    known = int(few["y"].notna().to_numpy()[10:].sum())
    with pytest.raises(ld.ArgumentError, match=f"k must be at most {known - 1}, .* not {known}"):
        ld.ripr("y ~ .", few, weights=weights, k=known, threads=1)
    fit = ld.ripr("y ~ .", few, weights=weights, k=known - 1, method="assignment", threads=1)
    assert fit.settings.k == known - 1
    most = [len(TWO) - 2, len(TWO) - 1]
    cv = ld.cv(ld.ripr, "y ~ .", TWO, grid={"k": most}, folds=3, threads=1)
    assert cv.frame["mean"][0] == cv.frame["mean"][1]  # folds have fewer rows than either
    with pytest.raises(ld.ArgumentError, match=f"k must be at most {most[-1]}, .* not 10000"):
        ld.cv(ld.ripr, "y ~ .", TWO, grid={"k": [5, 10**4]}, folds=3, threads=1)


def test_features_used_are_counted_as_the_views_have_them():
    """A factor of three levels is three columns, and one feature of a view."""
    cars = ld.data("autompg")
    fit = ld.ripr("mpg ~ weight + model_year + origin", cars, k=20, threads=1)
    assert len(fit.design.names) == 5 and fit.df == 3
    assert "Rows: 398, features: 5, used: 3 of 3 (a factor is one)" in str(fit)
    text = str(fit.summary())
    assert "Features used:                  3 of 3" in text and "is one feature" in text
    plain = ld.ripr("mpg ~ weight + model_year", cars, k=20, threads=1)
    assert "features: 2, used: 2\n" in str(plain) and "factor" not in str(plain.summary())


def test_methods_of_the_other_kind_of_response_are_refused():
    with pytest.raises(ld.ArgumentError, match=r"votes\(\) needs a response"):
        ld.ripr("~ . - y", NUMBERS, n_clusters=2, n_views=1, threads=1).votes(NUMBERS)
    with pytest.raises(ld.ArgumentError, match=r"clusters\(\) needs a formula without a response"):
        ld.ripr("y ~ .", NUMBERS, lambda_=1.0, threads=1).clusters()
