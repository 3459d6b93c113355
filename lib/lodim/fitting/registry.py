"""The models of lodim, by name. A new one has its line here and its folder in `models`."""

from importlib import import_module

MODELS = {
    "gbmap": "gradient boosting mapping: boosted one-layer perceptrons",
    "proset": "prototype sets: a few weighted training rows explain every estimate",
    "costnet": "cost-sensitive feature selection: the best model at every price",
    "melm": "maximum entropy linear manifold: the linear view in which classes overlap least",
    "ripr": "informative projections: a few views, each for its part of the rows",
    "glm": "generalized linear model: unpenalized, with standard errors and p-values",
}
HOMES = {name: f"lodim.models.{name}.model" for name in MODELS}  # modules of their functions


def model_module(name):
    """The module of a model, with its function and `MODEL`."""
    return import_module(HOMES[name])


def model_function(name):
    """The function that fits a model."""
    return getattr(model_module(name), name)
