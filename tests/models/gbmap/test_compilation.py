"""A default call compiles each kernel once: a second specialization costs a new machine seconds."""

import json
import subprocess
import sys

import pytest

import lodim as ld

pytestmark = pytest.mark.long

KERNELS = {
    "lodim.design.column_kernels": {"moments", "pack"},
    "lodim.family.losses": {"_rows"},
    "lodim.models.gbmap.cpu_kernels": {"forward"},
    "lodim.models.gbmap.small_data": {"prepare_class"},
    "lodim.models.gbmap.newton": {"newton"},
    "lodim.models.gbmap.hinges": {"find_directions", "place_hinges"},
}
JOINT = {  # the default call of these data fits all learners together
    "lodim.models.gbmap.cpu_kernels": {"forward", "joint_gradient"},
    "lodim.solve.lbfgs": {"advance"},
}
PROGRAM = """
import json, sys
import lodim as ld
from numba.core.dispatcher import Dispatcher

ld.gbmap(f"{sys.argv[2]} ~ .", ld.data(sys.argv[1])[::3])
found = {}
for name, module in list(sys.modules.items()):
    if name.split(".")[0] == "lodim":
        for kernel in vars(module).values():
            if isinstance(kernel, Dispatcher) and kernel.nopython_signatures:
                own = kernel.py_func.__module__, kernel.py_func.__name__
                found[".".join(own)] = len(kernel.nopython_signatures)
print(json.dumps(found))
"""


@pytest.mark.parametrize(
    "data, response, more",
    [
        ("autompg", "mpg", JOINT),
        ("heart", "disease", {"lodim.family.binomial": {"_log_loss"}}),
        ("iris", "species", {"lodim.family.multinomial": {"shares_of_rows"}}),
    ],
)
def test_a_default_call_needs_few_kernels_once_each(data, response, more):
    ld.gbmap(f"{response} ~ .", ld.data(data)[::3])  # what is in the cache is not compiled below
    command = [sys.executable, "-c", PROGRAM, data, response]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    modules = (KERNELS | more).items()
    expected = {f"{module}.{name}": 1 for module, names in modules for name in names}
    assert json.loads(run.stdout) == expected
