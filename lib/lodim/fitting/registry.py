"""The names of all models. A new model needs a line here and a folder in `models`."""

from importlib import import_module

MODELS = {
    "gbmap": "gradient boosting mapping: a sum of boosted bends",
    "proset": "prototype sets: a few weighted training rows explain every estimate",
    "costnet": "cost-sensitive feature selection: the best model at every price",
    "melm": "maximum entropy linear manifold: the linear view in which classes overlap least",
    "ripr": "informative projections: a few low-dimensional views, each for some of the rows",
    "glm": "generalized linear model: unpenalized, with standard errors and p-values",
}
HOMES = {name: f"lodim.models.{name}.model" for name in MODELS}  # modules of the model functions


def model_module(name):
    """Return the module of the named model, which has its function and its Model."""
    return import_module(HOMES[name])


def model_function(name):
    """Return the public function of the named model, such as `lodim.gbmap`."""
    return getattr(model_module(name), name)
