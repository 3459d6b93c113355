"""Kernels of melm's default call that are best compiled by a second process, as they are needed."""

from numba.core.types import boolean
from numba.core.types.containers import Tuple

from lodim.engine.compile_ahead import FLOATS, INTS
from lodim.models.melm.kernels.cpu import finish
from lodim.models.melm.kernels.kde import log_sums
from lodim.solve.lbfgs import advance

_F, _V, _M, _T, _4, _5 = FLOATS
_I, _J, _K = INTS[:3]

KERNELS = {
    "all": (
        (finish, (_I, _I, _J, _I, Tuple((_M, _T, _J, _V, _V, _M)), Tuple((_4, _5, _T, _T, _T, _4)),
                  _T, _T)),
        (advance, (_J, _V, _M, _V, _F, boolean, _F, _F, _F, _M, _V, _M, _M, _M, _M, _T, _T, _V, _K,
                   _V, _V, _V, _J, _M, _V, _J, _J)),
        (log_sums, (_I, _I, _I, _M, _T, _T, _M, _M, _M, _J, _J, _J, _M)),
    )
}  # fmt: skip
