"""cite(): what to cite for the package and for a model, as BibTeX."""

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
    """References to the package, and to the source of a model, as BibTeX.

    Parameters
    ----------
    model : str, model function or fit, optional
        Such as "gbmap", `lodim.gbmap` or what it returned. None: the package alone.

    Returns
    -------
    str
        Entries of BibTeX, one after the other.

    Raises
    ------
    ArgumentError
        There is no such model.

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
            raise ArgumentError(f"model is one of {', '.join(MODELS)}, not {model!r:.80}")
        entries.append(model_module(name).MODEL.reference)
    return "\n\n".join(entries)
