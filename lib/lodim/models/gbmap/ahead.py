"""Kernels of gbmap's default call that are best compiled by a second process, largest first."""

from numba.core.types import boolean

from lodim.engine.compile_ahead import FLOATS, INTS
from lodim.models.gbmap.kernels.cpu import forward
from lodim.models.gbmap.kernels.newton import newton

_F, _V, _M, _T = FLOATS[:4]
_I = INTS[0]

KERNELS = {
    "all": (
        (newton, (_T, _M, _M, _M, _V, _F, _I, _V, _F, _I, _F, _F, boolean,
                  _M, _M, _T, _M, _V, _M, _V, _V, _T)),
        (forward, (_I, _I, _T, _M, _V, _F, _I, boolean, INTS[1], _T)),
    )
}  # fmt: skip
