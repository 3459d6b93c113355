"""The CSV files behind `lodim.data("name")`; README.md states their sources and licences.

Importing this package binds it to the name `lodim.data`, where the function belongs. So the
module is callable and hands the call on: `lodim.data("autompg")` works either way.
"""

import sys
from types import ModuleType


class _Data(ModuleType):
    def __call__(self, name=None):
        from lodim.datasets.files import data

        return data(name)


sys.modules[__name__].__class__ = _Data
