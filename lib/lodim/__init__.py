"""lodim: R-style statistical modelling of explainable, low-dimensional supervised models."""

from importlib import import_module

from lodim.fitting.registry import HOMES, MODELS

# Public names and where they live; a module is imported when its name is first used. Fits and what
# path(), cv(), active(), conformal() and stability() return are there for annotations.
_FITS = {f"{name.capitalize()}Fit": f"lodim.models.{name}.fit" for name in MODELS}
_PUBLIC = (
    HOMES
    | _FITS
    | {
        "RiprFits": "lodim.models.ripr.multi_fit",
        "Path": "lodim.selection.path",
        "CV": "lodim.selection.cv",
        "Learner": "lodim.active_learning.learner",
        "LearningCurves": "lodim.active_learning.learning_curves",
        "Conformal": "lodim.uncertainty.prediction_sets",
        "Stability": "lodim.uncertainty.stability_selection",
        "Comparison": "lodim.comparison.comparison",
        "compare": "lodim.comparison.comparison",
        "Checks": "lodim.diagnostics.findings",
        "Finding": "lodim.diagnostics.findings",
        "Report": "lodim.report.tables",
        "Bootstrap": "lodim.uncertainty.replicates",
        "Effects": "lodim.interpretation.effects",
        "active": "lodim.active_learning.learner",
        "learning_curves": "lodim.active_learning.learning_curves",
        "drift_split": "lodim.models.gbmap.drift_split",
        "path": "lodim.selection.path",
        "cv": "lodim.selection.cv",
        "effects": "lodim.interpretation.effects",
        "bootstrap": "lodim.uncertainty.bootstrap",
        "conformal": "lodim.uncertainty.conformal",
        "stability": "lodim.uncertainty.stability_selection",
        "estimate": "lodim.fitting.sizing",
        "Estimate": "lodim.fitting.sizing",
        "load": "lodim.fitting.saved",
        "cite": "lodim.fitting.citation",
        "data": "lodim.datasets.files",
        "synth_cos_r": "lodim.datasets.synthetic",
        "synth_cos_c": "lodim.datasets.synthetic",
        "three_clusters": "lodim.datasets.synthetic",
        "checkerboard": "lodim.datasets.synthetic",
        "xor": "lodim.datasets.synthetic",
        "friedman1": "lodim.datasets.synthetic",
        "informative_views": "lodim.datasets.synthetic",
        "informative_views_r": "lodim.datasets.synthetic",
        "monitoring": "lodim.datasets.monitoring",
        "LodimError": "lodim.errors",
        "FormulaError": "lodim.errors",
        "DataError": "lodim.errors",
        "ArgumentError": "lodim.errors",
        "StoreError": "lodim.errors",
        "MissingExtraError": "lodim.errors",
        "DeviceError": "lodim.errors",
        "ConvergenceWarning": "lodim.errors",
        "DataWarning": "lodim.errors",
        "ExtrapolationWarning": "lodim.errors",
    }
)

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name):
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("lodim")
        except PackageNotFoundError:
            return "from source"
    if name not in _PUBLIC:
        raise AttributeError(f"module 'lodim' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)
