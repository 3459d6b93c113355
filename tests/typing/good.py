"""A program of a user: `mypy --strict` accepts every line. It is not run."""

from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pandas as pd

import lodim as ld
from lodim.sklearn import CostnetClassifier, GbmapRegressor, RiprClusterer

cars = ld.data("autompg")
assert_type(cars, pd.DataFrame)

# Models: tables, columns, arrays, choices
fit = ld.gbmap("mpg ~ .", cars)
assert_type(fit, ld.GbmapFit)
ld.gbmap("mpg ~ .", {"mpg": [1.0, 2.0], "x": np.arange(2)}, weights=[1, 2], seed=1)
ld.gbmap("mpg ~ .", "cars.parquet", weights="w", offset=0.5, engine="auto", refit="joint")
ld.gbmap("mpg ~ .", [Path("a.csv"), Path("b.csv")], weights=cars["weight"], dtype=np.float32)
assert_type(ld.glm("mpg ~ .", cars, family="poisson", covariance="HC3"), ld.GlmFit)
assert_type(ld.proset("mpg ~ .", cars, lambda_v="auto", lambda_w=0.1), ld.ProsetFit)
assert_type(ld.melm("origin ~ .", cars, gamma=1.0, classifier="kde"), ld.MelmFit)
assert_type(ld.ripr("mpg ~ .", cars, missing="keep"), ld.RiprFit | ld.RiprFits)
assert_type(
    ld.costnet("mpg ~ .", cars, costs={"weight": 1}, rules="greedy", lambdas=[1.0, 0.1]),
    ld.CostnetFit,
)

# Fits
assert_type(fit.predict(cars), "pd.Series[Any] | pd.DataFrame")
fit.predict(cars.head(), "embedding", new_levels="missing", output=Path("out.parquet"))
fit.predict(cars.iloc[0])
ld.glm("mpg ~ .", cars).predict(cars, "interval", level=0.9, rank_deficient="zero")
assert_type(fit.update(cars, m=3), ld.GbmapFit)
assert_type(fit.augment(cars, offset="w", output="out.csv"), pd.DataFrame)
assert_type(fit.evaluate(cars), pd.DataFrame)
assert_type(fit.coef(), "pd.Series[Any]")
assert_type(fit.selection, pd.DataFrame | None)
assert_type(fit.levels, tuple[Any, ...] | None)
assert_type(fit.first(2).dev_ratio, float)
assert_type(fit.df, int)
assert_type(fit.summary(full=True).as_text(), str)
assert_type(fit.neighbours(cars, k=2), "pd.Series[Any] | pd.DataFrame")
assert_type(fit.drift(cars, kind="distance"), "pd.Series[Any]")
assert_type(fit.check(cars, ignore=("leak",)).codes, tuple[str, ...])
assert_type(ld.costnet("mpg ~ .", cars).at(budget=2.0), ld.CostnetFit)
assert_type(ld.proset("mpg ~ .", cars).explain(cars.iloc[0]).report(), ld.Report)
fit.plot("effects", top=5)
fit.save(Path("cars.lodim"))
loaded: ld.GbmapFit = ld.load("cars.lodim")

# Functions that take a model know its arguments and its fit
cv = ld.cv(ld.gbmap, "mpg ~ .", cars, grid={"m": [1, 2]}, folds=3, lambda_=0.1, progress=True)
assert_type(cv.best, ld.GbmapFit)
assert_type(cv.lambda_min, float)
path = ld.path(ld.costnet, "mpg ~ .", cars, n_lambda=5, l1_ratio=0.5)
assert_type(path.at(0.1), ld.CostnetFit)
assert_type(path.predict(cars, 0.1), "pd.Series[Any] | pd.DataFrame")
intervals = ld.conformal(ld.glm, "mpg ~ .", cars, method="split", score="absolute", family="gamma")
assert_type(intervals.fit, ld.GlmFit)
assert_type(intervals.predict(cars, 0.8), pd.DataFrame)
assert_type(ld.stability(ld.gbmap, "mpg ~ .", cars, n=5, l1_ratio=1.0).stable, list[str])
learner = ld.active(ld.proset, "origin ~ .", cars[:9], cars[9:], score="margin", n_batches=2)
assert_type(learner.teach({3: "USA"}).fit, ld.ProsetFit | None)
ld.learning_curves({"margin": learner}, measure="log_loss").plot("winloss", of="margin")
assert_type(ld.estimate(ld.gbmap, "mpg ~ .", cars, m=3, sample=100), ld.Estimate)
boot = ld.bootstrap(fit, cars, n=20, statistic=lambda one: one.df)
assert_type(boot.fit, ld.GbmapFit)
assert_type(boot.tidy(level=0.9), pd.DataFrame)
assert_type(ld.effects(fit, cars, [("weight", "mpg")], interval=boot).ranges(), pd.DataFrame)
table = ld.compare("mpg ~ .", cars, {"two": (ld.gbmap, {"m": 2}), "linear": "glm"}, folds=3)
assert_type(table.failed, dict[str, str])
ld.compare("mpg ~ .", cars, [ld.gbmap, "costnet"], folds=np.arange(398) % 5)
assert_type(ld.cite(ld.gbmap), str)
assert_type(ld.monitoring(n=50, graph="stars"), pd.DataFrame)
try:
    ld.drift_split("mpg ~ .", cars, m=2)
except ld.LodimError as error:
    print(error)

# Estimators of scikit-learn
regressor = GbmapRegressor(formula="bs(weight) + .", m=2, activation="identity", cv=3)
assert_type(regressor.fit(cars, cars["mpg"]).fit_, ld.GbmapFit)
assert_type(CostnetClassifier(dependents="direct").fit_.df, int)
assert_type(RiprClusterer(n_clusters=2).fit_, ld.RiprFit)
