"""Kernels of costnet's default call that are best compiled by a second process."""

from numba.core.types import Array, boolean, none
from numba.core.types.containers import Tuple

from lodim.engine.compile_ahead import FLOATS, INTS
from lodim.models.costnet.penalty.block_descent import gaussian_path, minimize
from lodim.models.costnet.penalty.curvature import update_curvature
from lodim.models.costnet.search.sweep import gains

_F, _V, _M, _, _4 = FLOATS[:5]
_I, _J = INTS[:2]
_GROUPS = Tuple((_J, _J, none, _J, _J, _V, _J))

_SCORES = (
    (minimize, (_GROUPS, _4, _M, _M, _M, _F, _V, _F, _F, _I, none)),
    (update_curvature, (_4, _V, _M, _M, _F, _J)),
)


KERNELS = {
    "all": ((gains, (_M, _M, _V, Array(boolean, 1, "C"), _J, _J, _J, _J, Array(boolean, 2, "C"))),),
    "gaussian": ((gaussian_path, (_GROUPS, _4, _M, _M, _M, _V, _V, _F, _F, _I, boolean)),),
    "binomial": _SCORES,
    "multinomial": _SCORES,
}
