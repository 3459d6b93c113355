"""A design with the terms of some features alone: new data need only their columns."""

from dataclasses import replace

import numpy as np

from lodim.design import factors
from lodim.formula.formula import quote


def restrict(design, features):
    """The design without the terms that have none of some features.

    A term of several columns (levels, a spline) stays whole where one of them is asked for.

    Parameters
    ----------
    design : Design
    features : (A,) int
        Positions in `design.names`.

    Returns
    -------
    Design, kept
        `kept` (q,) int, increasing: the features of the old design that the new one has.
    """
    wanted = np.unique(design.term_of[features])
    kept = np.flatnonzero(np.isin(design.term_of, wanted))
    names = tuple(design.names[k] for k in kept)
    terms = tuple(design.terms[t] for t in wanted)
    restricted = replace(
        design, formula=_formula(design.response, terms), terms=terms, names=names,
        term_names=tuple(design.term_names[t] for t in wanted),
        term_of=np.searchsorted(wanted, design.term_of[kept]),
        mean=design.mean[kept], scale=design.scale[kept],
        constant=tuple(name for name in design.constant if name in names),
    )  # fmt: skip
    return restricted, kept


def _formula(response, terms):
    """The formula whose terms these are."""
    left = "" if response is None else _text(response)
    right = " + ".join(":".join(map(_text, term)) for term in terms) or "1"
    return f"{left} ~ {right}".strip()


def _text(part):
    """A response or a factor as it is written: code as it is, a column's name quoted if need be."""
    code = isinstance(part, factors.Expression) or getattr(part, "called", False)
    return part.name if code else quote(part.name)
