"""cite(): BibTeX entries for the package and a model."""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from lodim.errors import ArgumentError
from lodim.fitting.registry import MODELS, model_module

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


def cite(model: Any = None) -> str:
    """Return BibTeX entries for lodim and, optionally, for the source of a model.

    Parameters
    ----------
    model : str, model function or fit, optional
        For example "gbmap", `lodim.gbmap` or its fit. Default: only the entry for lodim.

    Returns
    -------
    str

    Raises
    ------
    ArgumentError
        If there is no such model.

    See Also
    --------
    gbmap, proset, melm, ripr, costnet

    Examples
    --------
    >>> import lodim as ld
    >>> print(ld.cite("proset").splitlines()[-5])
    @techreport{ruf2022proset,
    """
    try:
        entries = [PACKAGE.format(version=version("lodim"))]
    except PackageNotFoundError:
        entries = [PACKAGE.format(version="from source")]
    if model is not None:
        name = model if isinstance(model, str) else getattr(model, "name", None)
        name = name or getattr(model, "__name__", model)
        if not isinstance(name, str) or name not in MODELS:
            raise ArgumentError(f"model must be one of {', '.join(MODELS)}, not {model!r:.80}")
        entries.append(model_module(name).MODEL.reference)
    return "\n\n".join(entries)
