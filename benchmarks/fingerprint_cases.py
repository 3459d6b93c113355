"""Seeded calls whose results must not change: the cases of fingerprints.py.

CASES has a function without arguments for each name. The name of a fit begins with its model. A
callable argument is called with the frame. SAME_ANSWERS maps the name of a case whose rows come
from files, or from another kind of frame, to that of the case whose rows come from pandas.
"""

from functools import partial
from tempfile import gettempdir

import numpy as np
from fingerprint_frames import frame_of
from fingerprint_results import Result, fitted
from sklearn.linear_model import LogisticRegression

import lodim as ld

CASES = {}
SAME_ANSWERS = {}
NUMBERS = "y ~ x1 + x2 + x3 + x4 + arm"
CLASSES = "sick ~ x1 + x2 + x3 + x4 + arm"
KINDS = "kind ~ x1 + x2 + x3 + x4 + arm"
TERMS = "y ~ bs(x1, df=4) * arm + np.exp(x2) + I(x3**2) + flag + C(age > 50) + scale(np.log(age))"
DATES = "y ~ days(day) + year(day) + month(day) + weekday(day) + size + cr(x1, df=3)"
TYPES = "y ~ whole + bit + exact + number + days(date) + days(written) + year(zone) + code + bool"
FUNCTIONS = (
    "y ~ te(cr(x1, df=3), cr(x2, df=3)) + cc(age, df=3) + center(x3) + standardize(x4) + "
    "np.clip(x2, -1, 1) + np.where((x1 > 0) & ~(x2 < 0) | (arm == 'a'), 1, -x2) + "
    "I(-1 < x1 < 1) + np.round(x3, 1) + "
    "(x1 + x2 + x3)**2 + days(day, origin='2020-01-01')"
)
TALL = "y ~ x1 + x2 + x3 + arm"
VIEWS = "y ~ x1 + x2 + x3 + x4"
WIDE = "c ~ . - y"


def case(name, formula, frame, show=False, **arguments):
    """Add a fit; with its plots and page if `show`."""
    CASES[name] = partial(fitted, name.split()[0], formula, frame, arguments, show)


def places(name, formula, frame, *others, **arguments):
    """Add a fit to a pandas frame, and fits to the same rows from other places."""
    case(name, formula, frame, **arguments)
    for place in others:
        CASES[f"{name}, {place}"] = partial(CASES[name], place=place)
        SAME_ANSWERS[f"{name}, {place}"] = name


def offset(df):
    """Return an offset for each of three classes."""
    return np.column_stack([np.zeros(len(df)), df["o"], -df["o"]])


def weights(df):
    """Return weights that are no column."""
    return df["w"] + 1.0


def groups(df):
    """Return groups of rows that are no column."""
    return df["id"].to_numpy()


def scratch(df):
    """Return a control that puts the features into a file."""
    return {"scratch": gettempdir()}


# gbmap -----------------------------------------------------------------------------------------

GBMAP = {"m": 2, "lambda_": 0.1}
case("gbmap numbers", "mpg ~ .", "autompg", show=True, m=6, lambda_=0.05)
case("gbmap chosen", "disease ~ .", "heart", show=True, control={"max_stages": 8})
case("gbmap classes", "species ~ .", "iris", show=True, m=3, lambda_=0.01)
case("gbmap spline", "mpg ~ bs(weight, df=4) * origin", "autompg", m=3, lambda_=1)
case("gbmap lasso", "progression ~ .", "diabetes", m=3, lambda_=1, l1_ratio=0.5)
case("gbmap weights, offset", NUMBERS, "mixed", weights="w", offset="o", **GBMAP)
case("gbmap classes, offset", KINDS, "mixed", offset=offset, **GBMAP)
case("gbmap gaps, balanced", KINDS, "gaps", weights="balanced", **GBMAP)
case("gbmap drop", CLASSES, "gaps", missing="drop", m=3, lambda_=0.1)
case("gbmap identity", TERMS, "mixed", activation="identity", m=1, lambda_=0.1)
case("gbmap joint", NUMBERS, "mixed", refit="joint", m=3, lambda_=0.01)
case("gbmap joint, classes", KINDS, "mixed", refit="joint", m=2, lambda_=0.01)
case("gbmap joint, chosen", "y ~ x1 + x2", "mixed", groups="id", control={"max_stages": 3})
case("gbmap wide", WIDE, "wide", m=2, lambda_=0.5)
case("gbmap tall", TALL, "tall", control={"reference_rows": 500}, m=2, lambda_=0.01)
case("gbmap single precision", DATES, "mixed", dtype="float32", standardize=False, **GBMAP)
case("gbmap thousands", NUMBERS, "thousands", n_starts=4, **GBMAP)
case("gbmap constant", NUMBERS, "mixed", control={"penalize_intercept": True}, **GBMAP)
case("gbmap broad", "y ~ .", "broad", m=1, lambda_=0.01)
case("gbmap arrays", "np.sqrt(amount) ~ x1 + arm", "mixed", weights=weights, **GBMAP)
case("gbmap types", TYPES, "columns", **GBMAP)
places("gbmap scratch", NUMBERS, "gaps", "parquet", control=scratch, **GBMAP)
places("gbmap places", CLASSES, "gaps", "csv", "parquet", "arrow", weights="w", **GBMAP)

# proset ----------------------------------------------------------------------------------------

HALF = {"n_batches": 2, "control": {"max_fraction": 0.5}}
OPEN = {"n_batches": None, "lambda_v": None, "control": {"max_iter": 40, "max_stages": 2}}
DRAWN = {"n_candidates": 150, "control": {"precision": "float32", "max_rows": 800}}
case("proset classes", "cultivar ~ .", "wine", show=True)
case("proset batches", "diagnosis ~ .", "breast_cancer", n_batches=2)
case("proset density", "mpg ~ .", "autompg", show=True, loss="density")
case("proset numbers", NUMBERS, "mixed", show=True, lambda_v=0.05)
case("proset weights, offset", NUMBERS, "mixed", weights="w", offset="o", lambda_v=0.05)
case("proset density, weights", NUMBERS, "mixed", loss="density", weights="w", lambda_v=0.05)
case("proset classes, offset", KINDS, "mixed", offset=offset, lambda_v=0.05)
case("proset gaps, balanced", CLASSES, "gaps", weights="balanced", lambda_v=0.05)
case("proset drop", CLASSES, "gaps", missing="drop", lambda_v=0.05)
case("proset fraction", CLASSES, "mixed", lambda_v=0.03, **HALF)
case("proset chosen", CLASSES, "mixed", **OPEN)
case("proset drawn", NUMBERS, "thousands", dtype="float32", lambda_v=0.03, **DRAWN)
case("proset wide", WIDE, "wide", lambda_v=0.1)
places("proset places", CLASSES, "gaps", "parquet", lambda_v=0.05)

# melm ------------------------------------------------------------------------------------------

FAST = {"gamma": 1.0, "n_starts": 3}
PLAIN = {"prior": "equal", "calibrate": False}
case("melm two", "disease ~ .", "heart", show=True, gamma=1.0)
case("melm chosen", "species ~ .", "iris", show=True)
case("melm none", "~ .", "iris", show=True)
case("melm smallest", "~ x1 + x2 + x3 + arm", "gaps", entropy="min", weights="w")
case("melm weights", KINDS, "mixed", weights="w", **FAST)
case("melm gaps, balanced", CLASSES, "gaps", weights="balanced", **FAST)
case("melm line", CLASSES, "gaps", show=True, k=1, missing="drop", **FAST)
case("melm unshrunk", KINDS, "mixed", divergence="mean", control={"shrinkage_factor": 0.0}, **FAST)
case("melm three", KINDS, "mixed", show=True, k=3, **FAST)
case("melm ledoit-wolf", CLASSES, "mixed", covariance="ledoit-wolf", control=PLAIN, **FAST)
case("melm estimator", KINDS, "mixed", show=True, classifier=LogisticRegression(), **FAST)
case("melm thousands", KINDS, "thousands", gamma=1.0, n_starts=2)
case("melm tall", "c ~ x1 + x2", "tall", k=1, gamma=1.0, n_starts=2)
case("melm wide", WIDE, "wide", gamma=1.0, n_starts=2)
places("melm places", KINDS, "mixed", "csv", **FAST)

# ripr ------------------------------------------------------------------------------------------


def short_views(B, views):
    """Return a CVXPY constraint: the first ten rows use no view of x1."""
    return [B[:10, [j for j, view in enumerate(views) if "x1" in view]] == 0]


def budget(df):
    """Return constraints by prices of features and by groups of rows."""
    return {"prices": {"x1": 1.0}, "budget": 0.6, "groups": df["day"].to_numpy()}


case("ripr classes", "disease ~ .", "heart", show=True)
case("ripr numbers", "mpg ~ .", "autompg", show=True, max_dim=3)
case("ripr clusters", "~ sepal_length + petal_length", "iris", show=True, n_clusters=3)
case("ripr several", "mpg + horsepower ~ weight + displacement", "autompg")
case("ripr several kinds", "y + kind ~ x1 + x2 + x3", "few", lambda_=1.0)
case("ripr ratio", "y ~ x1 + x2 + x3 + x4", "views", show=True, method="assignment")
case("ripr ratio numbers", NUMBERS, "mixed", show=True, method="assignment", weights="w")
case("ripr penalty", KINDS, "mixed", lambda_=0.5, balanced=True, alpha=0.9, n_views=2)
case("ripr gaps", KINDS, "gaps")
case("ripr ratio gaps", CLASSES, "gaps", lambda_=0.5)
case("ripr indicator", CLASSES, "gaps", missing="indicator", weights="balanced")
case("ripr drop", NUMBERS, "gaps", missing="drop", max_views=8)
case("ripr found clusters", "~ x1 + x2 + x3 + arm", "gaps", show=True)
case("ripr order", VIEWS, "views", order="time")
case("ripr order, numbers", NUMBERS, "mixed", order="age", lambda_=0.5)
case("ripr constraints", VIEWS, "views", lambda_=1.0, constraints=budget)
case(
    "ripr hard constraints",
    "y ~ x1 + x2 + x3",
    "few",
    max_dim=1,
    lambda_=1.0,
    constraints=lambda df: {"hard": True, "further": short_views},
)
case("ripr thousands", "sick ~ x1 + x2 + arm", "thousands", max_dim=2)
case("ripr wide", WIDE, "wide", max_dim=2, max_views=300)
places("ripr places", NUMBERS, "gaps", "parquet", lambda_=0.5)

# glm -------------------------------------------------------------------------------------------

case("glm numbers", "mpg ~ weight * origin", "autompg", show=True, covariance="HC3")
case("glm classes", "cultivar ~ alcohol + hue", "wine", show=True)
case("glm terms", TERMS, "mixed", show=True, weights="w", offset="o")
case("glm two", CLASSES, "mixed", show=True, covariance="HC1", weights="w")
case("glm classes, offset", KINDS, "mixed", offset=offset, covariance="HC0", weights="w")
case("glm counts", "count ~ x1 + x2 + arm", "mixed", family="poisson")
case("glm gamma", "amount ~ x1 + arm", "mixed", family="gamma")
case("glm quantile", "amount ~ x1 + arm", "mixed", family="quantile", quantile=0.7)
case("glm huber", "amount ~ x1 + arm", "mixed", family="huber", weights="w")
case("glm proportions", "share ~ x1 + arm", "mixed", family="binomial", weights="trials")
case("glm clusters", NUMBERS, "mixed", clusters="id")
case("glm gaps", CLASSES, "gaps")
case("glm indicator", NUMBERS, "gaps", missing="indicator", covariance="HC2")
case("glm aliased", "y ~ x1 + x5 + x2 + x3 + x6 + arm", "twins")
case("glm separated", "sick ~ x1 + arm", "separated")
case("glm dates", DATES, "mixed", sample=200)
case("glm tall", "y ~ x1 * arm + x2 + x3", "tall", clusters="id", weights="w")
case("glm tall, two", "c ~ x1 + x2 + arm", "tall", covariance="HC1")
case("glm tall, classes", "kind ~ x1 + x2 + arm", "tall")
case("glm tall, counts", "count ~ x1 + x2 + arm", "tall", family="poisson", covariance="HC3")
case("glm arrays", "I(age > 50) ~ x1 + arm", "mixed", weights=weights, clusters=groups)
case("glm types", TYPES + " + month(month)", "columns", missing="indicator")
case("glm functions", FUNCTIONS, "mixed")
case("glm log", "np.log(amount) ~ C(arm, Treatment('b')) + C(size, Sum) + bs(x1, df=5)", "mixed")
places("glm gaps places", NUMBERS, "gaps", "csv", "polars", "arrow", "lazy", "dask", "dict")
places("glm places", TERMS, "mixed", "csv", "parquet", "polars", "lazy", "dask")
places("glm tall places", TALL, "tall", "parquet", clusters="id")

# costnet ---------------------------------------------------------------------------------------

LIST = {"n_lambda": 15}


def discount(df):
    """Return a function of prices that fall with the number of things that are bought."""
    return lambda names: 2.0 * len(names) ** 0.8


def prices(column):
    """Return an argument of costnet that reads a column of the heart data's price list."""
    return lambda df: ld.data("heart_costs").set_index("name")[column]


HEART = {"costs": prices("cost"), "depends_on": prices("needs")}
NAMES = ("costs", "depends_on", "alternatives")
SOURCES = {name: lambda df, name=name: df.attrs[name] for name in NAMES}
case("costnet numbers", "mpg ~ .", "autompg", show=True)
case("costnet classes", "species ~ .", "iris", show=True)
case("costnet priced", "disease ~ .", "heart", show=True, lambda_=0.05)
case("costnet heart", "disease ~ .", "heart", show=True, **HEART, **LIST)
case("costnet alternatives", "y ~ .", "monitoring", show=True, **SOURCES, **LIST)
case("costnet discount", NUMBERS, "mixed", show=True, costs=discount, **LIST)
case("costnet discount, budget", NUMBERS, "mixed", costs=discount, budget=6.0, **LIST)
case("costnet broad classes", "c ~ . - y", "wide", rules=("group", "greedy"), **LIST)
case("costnet twins", "sick ~ x1 + x5 + x2 + x3 + x6", "twins", **LIST)
case(
    "costnet wide, classes",
    WIDE,
    "wide kinds",
    rules="group",
    n_lambda=4,
    control={"criterion": "hq"},
)
case("costnet hundreds", "c ~ .", "hundreds", rules=("group", "greedy"), n_lambda=6)
case("costnet weights, offset", TERMS, "mixed", weights="w", offset="o", groups="id", **LIST)
case("costnet budget", TERMS, "mixed", budget=4.0, **LIST)
case("costnet classes, offset", KINDS, "mixed", offset=offset, relax=0.5, n_lambda=10)
case("costnet gaps", CLASSES, "gaps", weights="balanced", dependents="direct", **LIST)
case("costnet drop", NUMBERS, "gaps", missing="drop", l1_ratio=0.5, rules=("group", "lasso"))
case("costnet bic", NUMBERS, "mixed", lambdas=[0.3, 0.1, 0.02], control={"criterion": "bic"})
case("costnet cvxpy", NUMBERS, "few", solver="cvxpy", lambdas=[0.3, 0.1], rules="group")
case("costnet cvxpy, classes", KINDS, "few", solver="cvxpy", lambda_=0.05, standardize=False)
case("costnet wide", "y ~ . - c", "wide", control={"criterion": "hq"}, **LIST)
case("costnet tall", TALL, "tall", rules=("group", "greedy"), n_lambda=8)
places("costnet places", CLASSES, "gaps", "csv", "parquet", lambda_=0.02, weights="w")

# Calls that return no fit ----------------------------------------------------------------------


def call(function, name, *arguments, **named):
    """Add a call of a function; the second word of its name is the model."""
    model = name.split()[1]
    one = {} if model == "glm" else {"threads": 1}
    CASES[name] = partial(function, getattr(ld, model), *arguments, **named, **one)


def path(model, formula, frame, **arguments):
    """Return the path of a model over its penalty."""
    df = frame_of(frame)
    found = ld.path(model, formula, df, **arguments)
    middle = found.lambdas[len(found.lambdas) // 2]
    answers = [found.tidy(), found.glance(), found.coef(middle), found.predict(df, middle)]
    return Result(answers, str(found))


def cv(model, formula, frame, **arguments):
    """Return the cross-validation of a model, with the fit that it chose."""
    df = frame_of(frame)
    found = ld.cv(model, formula, df, folds=4, n_jobs=1, **arguments)
    return Result([found.tidy(), found.held_out, found.best.predict(df)], str(found))


def bootstrap(model, formula, frame, **arguments):
    """Return replicates of a fit, and their intervals."""
    df = frame_of(frame)
    found = ld.bootstrap(model(formula, df, **arguments), df, n=12, seed=2)
    return Result([found.tidy(level=0.5), found.replicates], str(found.summary(level=0.5)))


def conformal(model, formula, frame, **arguments):
    """Return conformal predictions and their coverage."""
    df = frame_of(frame)
    found = ld.conformal(model, formula, df, **arguments)
    return Result([found.tidy(), found.predict(df), found.coverage(df)], str(found.summary()))


def stability(model, formula, frame, **arguments):
    """Return how often terms are selected."""
    found = ld.stability(model, formula, frame_of(frame), n=4, **arguments)
    return Result([found.tidy(), found.bounds], str(found.summary()))


def effects(model, formula, frame, **arguments):
    """Return effects of all kinds, and the checks of a fit."""
    df = frame_of(frame)
    fit = model(formula, df, **arguments)
    kinds = ["ale", "pd", "importance"] + ["slope"] * (model is not ld.ripr)
    answers = [ld.effects(fit, df, kind=kind).tidy() for kind in kinds]
    return Result([*answers, fit.check(df).tidy()], str(fit.check(df).summary()))


def compare():
    """Return all models and baselines on the same folds."""
    models = {"glm": ld.glm, "ripr": ld.ripr, "melm": partial(ld.melm, **FAST)}
    models |= {"gbmap": partial(ld.gbmap, **GBMAP), "proset": partial(ld.proset, lambda_v=0.1)}
    models |= {"costnet": partial(ld.costnet, lambda_=0.05)}
    found = ld.compare("species ~ .", frame_of("iris"), models, folds=3, threads=1)
    losses = found.tidy().drop(columns=[c for c in found.tidy() if "time" in c or "second" in c])
    return Result([losses, found.losses])


def update():
    """Return predictions of fits made by update(), and a split of data that makes drift."""
    df, cars = frame_of("mixed"), ld.data("autompg").drop(columns="origin")
    fit = ld.gbmap(NUMBERS, df, threads=1, **GBMAP)
    again = [fit.update(df[:150]).predict(df), fit.update(df, lambda_=0.5).predict(df)]
    nested = ld.glm(NUMBERS, df).anova(ld.glm("y ~ x1 * arm + x2 + x3 + x4", df))
    split = ld.drift_split("mpg ~ .", cars, m=2, lambda_=1.0)
    return Result([again, nested, split.feature, split.shifted, split.loss_shifted])


def active():
    """Return the rows that active learning asks for, and what it learns from their labels."""
    df = frame_of("views")
    learner = ld.active(ld.ripr, VIEWS, df[:60], df[60:], seed=1, threads=1)
    rows = learner.query(5)
    return Result([rows, learner.teach(df.loc[rows.index, "y"]).curve])


call(path, "path gbmap", NUMBERS, "mixed", m=2, n_lambda=6)
call(path, "path proset", KINDS, "mixed", n_lambda=5)
call(path, "path costnet", CLASSES, "gaps", n_lambda=8)
call(path, "path ripr", KINDS, "mixed", n_lambda=5)
call(cv, "cv gbmap", CLASSES, "gaps", n_lambda=4, weights="w", m=2)
call(cv, "cv proset", NUMBERS, "mixed", n_lambda=4, groups="id")
call(cv, "cv melm", CLASSES, "mixed", grid={"gamma": [0.5, 2.0]}, n_starts=2)
call(cv, "cv ripr", KINDS, "mixed", n_lambda=3)
call(cv, "cv ripr votes", NUMBERS, "mixed", grid={"k": [5, 15]})
call(cv, "cv glm", CLASSES, "mixed", clusters="id")
call(cv, "cv costnet", NUMBERS, "gaps", n_lambda=8, rules="group")
call(bootstrap, "bootstrap gbmap", CLASSES, "mixed", **GBMAP)
call(bootstrap, "bootstrap proset", CLASSES, "few", lambda_v=0.05)
call(bootstrap, "bootstrap melm", KINDS, "mixed", **FAST)
call(bootstrap, "bootstrap ripr", CLASSES, "mixed", lambda_=0.5)
call(bootstrap, "bootstrap glm", NUMBERS, "mixed", clusters="id")
call(bootstrap, "bootstrap costnet", NUMBERS, "mixed", lambda_=0.1)
call(conformal, "conformal gbmap", NUMBERS, "mixed", **GBMAP)
call(conformal, "conformal proset", NUMBERS, "mixed", lambda_v=0.1)
call(conformal, "conformal proset density", NUMBERS, "mixed", loss="density", lambda_v=0.1)
call(conformal, "conformal ripr", KINDS, "mixed", method="split", score="aps", lambda_=0.5)
call(conformal, "conformal glm", "count ~ x1 + arm", "mixed", folds=4, family="poisson")
call(stability, "stability gbmap", NUMBERS, "mixed", m=1, lambda_=0.3, l1_ratio=0.9)
call(stability, "stability proset", CLASSES, "mixed", lambda_v=0.1)
call(stability, "stability ripr", CLASSES, "mixed", lambda_=0.5)
call(stability, "stability costnet", NUMBERS, "mixed", lambda_=0.2)
call(effects, "effects gbmap", TERMS, "mixed", **GBMAP)
call(effects, "effects proset", KINDS, "gaps", lambda_v=0.05)
call(effects, "effects melm", CLASSES, "mixed", **FAST)
call(effects, "effects ripr", CLASSES, "gaps")
call(effects, "effects glm", TERMS, "mixed")
call(effects, "effects costnet", CLASSES, "gaps", lambda_=0.02)
CASES |= {"compare": compare, "update": update, "active": active}
