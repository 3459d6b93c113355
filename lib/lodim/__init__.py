"""lodim: R-style statistical modelling of explainable, low-dimensional supervised models."""

from importlib import import_module

_STUB = __spec__.loader.get_data(f"{__file__}i").decode()
_IMPORTS = [line.split() for line in _STUB.splitlines() if line.startswith("from ")]
_MODULES = {name: module for _, module, _, name, *_ in _IMPORTS}  # by public name
__all__ = ["__version__", *_MODULES]


def __getattr__(name):
    """Return the object with a public name; its module is imported when first used."""
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("lodim")
        except PackageNotFoundError:
            return "from source"
    if name not in _MODULES:
        raise AttributeError(f"module 'lodim' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)
