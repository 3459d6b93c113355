"""lodim: R-style statistical modelling of explainable, low-dimensional supervised models."""

from importlib import import_module


def _modules_by_name():
    """Return a dict public name -> module that defines it, as listed in `__init__.pyi`."""
    stub = __spec__.loader.get_data(f"{__file__}i").decode()
    imports = [line.split() for line in stub.splitlines() if line.startswith("from ")]
    return {name: module for _, module, _, name, *_ in imports}


_MODULES = _modules_by_name()
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
