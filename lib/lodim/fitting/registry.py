"""Names and citations of all models. A new model needs a line here and a folder in `models`."""

from importlib import import_module
from typing import Any

import lodim
from lodim.errors import ArgumentError

MODELS = {
    "gbmap": "gradient boosting mapping: a sum of boosted bends",
    "proset": "prototype sets: a few weighted training rows explain every estimate",
    "costnet": "cost-sensitive feature selection: the best model at every price",
    "melm": "maximum entropy linear manifold: the linear view in which classes overlap least",
    "ripr": "informative projections: a few low-dimensional views, each for some of the rows",
    "glm": "generalized linear model: unpenalized, with standard errors and p-values",
}
PACKAGE = """\
@software{{lodim,
  title   = {{lodim: {{R}}-style statistical modelling of explainable, low-dimensional models}},
  author  = {{{{The lodim developers}}}},
  version = {{{version}}},
  year    = {{2026}}
}}"""

FITERAU = """\
@phdthesis{fiterau2014discovering,
  title  = {Discovering Compact and Informative Structures through Data Partitioning},
  author = {Fiterau, Madalina},
  school = {Carnegie Mellon University},
  year   = {2014}
}"""  # source of two models


def model_module(name):
    return import_module(f"lodim.models.{name}.model")


def model_function(name):
    """Return the public function of the named model, such as `lodim.gbmap`."""
    return getattr(model_module(name), name)


def cite(model: Any = None) -> str:
    """Return BibTeX entries for lodim and, optionally, for the source of a model.

    Parameters
    ----------
    model : str, model function or fit, optional
        For example "gbmap", `lodim.gbmap` or its fit; an ArgumentError if there is no such model.
        Default: only the entry for lodim.

    Returns
    -------
    str

    See Also
    --------
    gbmap, proset, melm, ripr, costnet

    Examples
    --------
    >>> import lodim as ld
    >>> print(ld.cite("proset").splitlines()[-5])
    @techreport{ruf2022proset,
    """
    entries = [PACKAGE.format(version=lodim.__version__)]
    if model is not None:
        name = model if isinstance(model, str) else getattr(model, "name", None)
        name = name or getattr(model, "__name__", model)
        if not isinstance(name, str) or name not in MODELS:
            raise ArgumentError(f"model must be one of {', '.join(MODELS)}, not {model!r:.80}")
        entries.append(model_module(name).MODEL.reference)
    return "\n\n".join(entries)
