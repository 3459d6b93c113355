"""A program whose lines `mypy --strict` refuses, each by the message behind it. It is not run."""

import numpy as np

import lodim as ld
from lodim.sklearn import GbmapRegressor, GlmRegressor

cars = ld.data("autompg")
new = cars.head()

ld.gbpam("mpg ~ .", cars)  # error: Module has no attribute "gbpam"

# Models
ld.gbmap(1, 2, nonsense=3)  # error: Unexpected keyword argument "nonsense" for "gbmap"
ld.gbmap(cars, "mpg ~ .")  # error: Argument 1 to "gbmap" has incompatible type "DataFrame"
ld.gbmap("mpg ~ .", np.zeros((2, 2)))  # error: Argument 2 to "gbmap" has incompatible type
ld.gbmap("mpg ~ .", cars, activation="relu")  # error: Argument "activation" to "gbmap"
ld.gbmap("mpg ~ .", cars, weights=1)  # error: Argument "weights" to "gbmap" has incompatible type
ld.glm("mpg ~ .", cars, missing="keep")  # error: Argument "missing" to "glm"
ld.costnet("mpg ~ .", cars, rules=["fast"])  # error: List item 0 has incompatible type

# Fits
fit = ld.gbmap("mpg ~ .", cars)
fit.predct(new)  # error: "GbmapFit" has no attribute "predct"; maybe "predict"
fit.predict(new, type="porb")  # error: Argument "type" to "predict" of "GbmapFit"
fit.predict(new, "interval")  # error: Argument 2 to "predict" of "GbmapFit"
fit.predict(new, newlevels="error")  # error: Unexpected keyword argument "newlevels"
fit.distance(new, kind="far")  # error: Argument "kind" has incompatible type
fit.plot("leverage")  # error: Argument 1 to "plot" of "GbmapFit" has incompatible type
fit.covariance()  # error: "GbmapFit" has no attribute "covariance"
fit.df.upper()  # error: "int" has no attribute "upper"
ld.costnet("y ~ .", cars).at(buget=1)  # error: Unexpected keyword argument "buget"
ld.glm("mpg ~ .", cars).tidy(level="high")  # error: Argument "level" to "tidy" of "GlmFit"

# Functions that take a model
ld.cv(ld.gbmap, "y ~ .", cars, flods=3)  # error: Unexpected keyword argument "flods" for "cv"
ld.cv(ld.glm, "y ~ .", cars, m=3)  # error: Unexpected keyword argument "m" for "cv"
ld.cv(ld.gbmap, "y ~ .", cars, refit="all")  # error: Argument "refit" to "cv"
ld.cv(ld.gbmap, "y ~ .", cars, loss="rmse")  # error: Argument "loss" to "cv"
ld.cv(ld.gbmap, "y ~ .", cars).best.anova()  # error: "GbmapFit" has no attribute "anova"
ld.path(ld.gbmap, "y ~ .", cars, nlambda=3)  # error: Unexpected keyword argument "nlambda"
ld.conformal(ld.glm, "y ~ .", cars, method="cv")  # error: Argument "method" to "conformal"
ld.stability(ld.gbmap, "y ~ .", cars, n="many")  # error: Argument "n" to "stability"
ld.active(ld.glm, "y ~ .", cars, new, score="best")  # error: Argument "score" to "active"
ld.estimate(ld.glm, "y ~ .", cars, m=3)  # error: Unexpected keyword argument "m" for "estimate"
ld.effects(cars, fit)  # error: Argument 1 to "effects" has incompatible type "DataFrame"
ld.bootstrap(fit, cars).tidy(kind="t")  # error: Unexpected keyword argument "kind" for "tidy"
ld.compare("y ~ .", cars, fold=3)  # error: Unexpected keyword argument "fold" for "compare"

# Estimators of scikit-learn
GbmapRegressor(weights="w")  # error: Unexpected keyword argument "weights" for "GbmapRegressor"
GlmRegressor(family="binomial")  # error: Argument "family" to "GlmRegressor"
