"""The models of lodim, by name. A new one has its line here and its folder in `models`."""

from importlib import import_module

MODELS = {  # the module of each model's function, which has its name, and of from_state
    "gbmap": "lodim.models.gbmap.model",
    "proset": "lodim.models.proset.model",
    "costnet": "lodim.models.costnet.model",
    "melm": "lodim.models.melm.model",
    "ripr": "lodim.models.ripr.model",
    "glm": "lodim.models.glm.model",
}

RESULTS = {  # what else a file may hold, and the module of its from_state
    "conformal": "lodim.uncertainty.conformal_state",
}


def model_function(kind):
    """The function that fits a kind of model."""
    return getattr(import_module(MODELS[kind]), kind)
