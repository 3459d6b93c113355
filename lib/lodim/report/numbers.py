"""Numbers as text: significant digits for one number, common decimals for a column."""

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import pandas as pd

_NOISE = 1e-13  # rounding error of a long sum, relative to the largest number of a column


def significant(x: Any, digits: int = 4, noise: float = 1e-15) -> str:
    """Return a value as text; floats with `digits` significant digits, without trailing zeros.

    Floats of size below `noise` become 0. From 0.0001 to 10 million there is no exponent."""
    if is_missing(x):
        return "NaN"
    if isinstance(x, bool | Integral) or not isinstance(x, Real):
        return str(x)
    x = float(x)
    if math.isinf(x):
        return str(x)
    if abs(x) < noise or x == 0:
        return "0"
    mantissa, exponent = f"{x:.{digits - 1}e}".split("e")
    if -4 <= int(exponent) < 7:
        return _trim(f"{x:.{max(digits - 1 - int(exponent), 0)}f}")
    return f"{_trim(mantissa)}e{exponent}"


def blank_if_missing(x: Any) -> str:
    return "" if is_missing(x) else significant(x)


def aligned(values: Iterable[Any]) -> list[str]:
    """Return a column of numbers as texts with equally many decimals.

    Numbers below the largest one's rounding error become 0; small ones get 2 significant digits."""
    values = list(values)
    sizes = [abs(float(v)) for v in values if _is_float(v) and math.isfinite(v) and v]
    top = math.floor(math.log10(max(sizes))) if sizes else 0
    noise = _NOISE * max(sizes, default=0.0)
    if not -5 < top < 7:
        return [significant(v, noise=noise) for v in values]
    most = 3 - top if top < 0 else 4 if top < 3 else 2
    shown = (significant(s).partition(".")[2] for s in sizes if s > noise)
    decimals = min(max(map(len, shown), default=0), most)
    texts = []
    for v in values:
        if not _is_float(v) or not math.isfinite(v) or abs(v) <= noise:
            texts.append(significant(v, noise=noise))
        elif abs(v) < 0.5 * 10.0**-decimals:
            texts.append(significant(v, 2, noise))
        else:
            texts.append(f"{float(v):z.{decimals}f}")
    return texts


def _trim(number):
    return number.rstrip("0").rstrip(".") if "." in number else number


def is_missing(x: Any) -> bool:
    return bool(pd.api.types.is_scalar(x) and pd.isna(x))


def is_number(x: Any) -> bool:
    return isinstance(x, Real) and not isinstance(x, bool) and not is_missing(x)


def _is_float(x):
    return is_number(x) and not isinstance(x, Integral)
