"""Estimators for scikit-learn: the models of lodim in pipelines, searches and calibration.

Parameters are the arguments of the model functions; `fit_` is the fit of lodim.

>>> from sklearn.datasets import load_diabetes
>>> from lodim.sklearn import GbmapRegressor
>>> X, y = load_diabetes(return_X_y=True, as_frame=True)
>>> model = GbmapRegressor(m=2, lambda_=0.1).fit(X, y)
>>> model.transform(X).shape
(442, 2)"""

import inspect
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

import lodim
from lodim import family as families
from lodim.design.columns import refusal
from lodim.design.frame import in_pandas, read_frame, with_column
from lodim.errors import ArgumentError, DataError, MissingExtraError
from lodim.sources.schemas import check_names
from lodim.text import counted, unused_name

try:
    from sklearn import base
    from sklearn.feature_selection import SelectorMixin
    from sklearn.model_selection import check_cv
    from sklearn.utils import check_array, check_consistent_length, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    needs = "lodim.sklearn needs scikit-learn, 1.6 or newer"
    raise MissingExtraError(f"{needs}: pip install 'lodim[sklearn]'") from error

__all__ = [
    "CostnetClassifier",
    "CostnetRegressor",
    "GbmapClassifier",
    "GbmapRegressor",
    "GlmClassifier",
    "GlmRegressor",
    "MelmClassifier",
    "ProsetClassifier",
    "ProsetRegressor",
    "RiprClassifier",
    "RiprClusterer",
    "RiprRegressor",
]

# Arguments that belong to fit(), that scikit-learn handles in its own way, and the family, which
# follows from the class.
ROW_ARGUMENTS = {
    *("weights", "offset", "groups", "order", "clusters", "constraints", "progress", "family"),
    *("sample", "client"),
}
PARAMETERS = {name for name, *_ in families.PARAMETERS.values()}  # of families of numbers
ESTIMATOR_DEFAULTS = {"formula": None, "new_levels": "error"}  # parameters of all estimators
GAUSSIAN, OPEN = {"family": "gaussian"}, {"family": None}  # defaults of `family`
STAGES = "lambda_ (and m, if open)"  # what cv= chooses
VIEWS = "lambda_, or the model's own choice of views,"
RANK_DEFICIENT = {"rank_deficient": "zero"}  # glm predicts all rows, as scikit-learn requires
HELP = """

Parameters
----------
formula : str, optional
    Right side of a formula, such as "bs(age, df=4) + ."; X must be a frame. By default all columns
    of X.
new_levels : {{"error", "missing"}}
    Levels of categories that did not occur in training: an error, or treated as missing.
"""
HELP_OF_CV = """cv : int, splitter or list of (train, test), optional
    Folds to choose {chooses} by `lodim.cv`. By default `lodim.{model}` chooses settings.
"""
HELP_OF_MODEL = """{names}
    See `lodim.{model}`.

Attributes
----------
fit_ : lodim.{fit}
    The fit, with summary(), plot(), tidy() and other methods.
"""
CV = """cv_ : lodim.CV
    Only if `cv` is given.
"""
CLASSES = """classes_ : array (K,)
"""
UNFITTED = "This %(name)s is not fitted yet: call fit(X, y) first."


def _one_each(name, values, data):
    values, n = np.asarray(values), len(data)
    if values.shape != (n,):
        raise ArgumentError(f"{name} must have one value for each of {n} rows, not {values.shape}")
    return values


def _folds_of(splitter, X, y, groups):
    """Return each row's test fold (n,) by a scikit-learn splitter; raise unless each has one."""
    fold, n_times = np.zeros(len(y), int), np.zeros(len(y), int)
    try:
        for k, (_, test) in enumerate(splitter.split(X, y, groups)):
            fold[test] = k
            n_times[test] += 1
    except (TypeError, ValueError, IndexError) as error:
        raise ArgumentError(f"cv does not split these {len(y)} rows: {error}") from error
    if (n_times != 1).any():
        raise ArgumentError("cv must hold out each row once, as KFold and GroupKFold do")
    return fold


class _Estimator(base.BaseEstimator):
    """Base class of the estimators for scikit-learn: parameters, conversion of X, and fitting.

    Keywords of a subclass, as in `class GlmRegressor(..., model="glm", own=GAUSSIAN)`:
    model : name of the model function
    own : dict name -> default of arguments to add
    without : names of arguments to leave out
    chooses : what the argument cv chooses, for the help; None to have no cv"""

    _model: str
    _of_predict: ClassVar[dict] = {}  # arguments of the fit's predict()

    def __init_subclass__(cls, model, without=(), own=None, chooses=None, **arguments):
        super().__init_subclass__(**arguments)
        own = ESTIMATOR_DEFAULTS | ({"cv": None} if chooses else {}) | (own or {})
        cls._model = model
        known = inspect.signature(getattr(lodim, model)).parameters.values()
        left_out, empty = ROW_ARGUMENTS | set(without), inspect.Parameter.empty
        kept = [p for p in known if p.kind is p.KEYWORD_ONLY and p.name not in left_out]
        kept = [p.replace(annotation=empty) for p in kept]
        me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        keyword = inspect.Parameter.KEYWORD_ONLY
        added = [inspect.Parameter(name, keyword, default=value) for name, value in own.items()]
        signature = inspect.Signature([me, *added, *kept])

        def __init__(self, **values):
            given = signature.bind(self, **values)
            given.apply_defaults()
            for name, value in list(given.arguments.items())[1:]:
                setattr(self, name, value)

        __init__.__signature__ = signature
        cls.__init__ = __init__
        parts = {"names": ", ".join(p.name for p in kept), "model": model, "chooses": chooses}
        parts["fit"] = f"{model.capitalize()}Fit"
        text = HELP + (HELP_OF_CV + HELP_OF_MODEL + CV if chooses else HELP_OF_MODEL)
        text += CLASSES * issubclass(cls, base.ClassifierMixin)
        cls.__doc__ = inspect.cleandoc(cls.__doc__) + text.format(**parts)

    def _learn(self, X, y, family, sample_weight, groups):
        """Fit the model to X (array or frame) and y (or None), with row weights `sample_weight`."""
        response = None
        data = self._frame(X, reset=True)
        if y is not None:
            check_consistent_length(range(len(data)), y)
            response = unused_name("y", set(self._names))
            data = with_column(data, response, y)
        arguments = self.get_params(deep=False)
        folds = arguments.pop("cv", None)
        del arguments["new_levels"]
        formula = self._formula(response, arguments.pop("formula"))
        if family is not None:
            arguments["family"] = family
        if sample_weight is not None:
            arguments["weights"] = _one_each("sample_weight", sample_weight, data)
        if groups is not None:
            groups = _one_each("groups", groups, data)
        if folds is not None and not isinstance(folds, int):
            folds, groups = _folds_of(check_cv(folds), X, y, groups), None
        self.fit_ = self._fitted(formula, data, arguments, folds, groups)
        if self.fit_.design.n_dropped:
            what = f"a feature or weight is missing in {counted(self.fit_.design.n_dropped, 'row')}"
            raise DataError(f"{what}: give missing='indicator', or leave such rows out of X and y")
        return self

    def _fitted(self, formula, data, arguments, folds, groups):
        """Return a fit of the model to `data`; with `folds`, cross-validation chooses the settings.

        arguments : dict of the model's arguments
        folds : number of folds, or number of each row's fold (n,); None for no cross-validation"""
        model = getattr(lodim, self._model)
        arguments["progress"] = False  # since a grid search makes many fits
        if folds is None:
            if groups is not None:
                if "groups" not in inspect.signature(model).parameters:
                    why = "which uses no folds otherwise"
                    raise ArgumentError(f"groups= needs cv= for {self._model}, {why}")
                arguments["groups"] = groups
            return model(formula, data, **arguments)
        if arguments.pop("loss", "squared") != "squared":  # cv() itself has an argument `loss`
            auto = {k: None for k in ("lambda_v",) if arguments[k] == "auto"}
            arguments |= auto | {"grid": {"loss": [self.loss]}}
        if arguments.get("budget") is not None:  # cv() would try all budgets
            arguments["grid"] = {"budget": [arguments.pop("budget")]}
        self.cv_ = lodim.cv(model, formula, data, folds=folds, groups=groups, **arguments)
        return self.cv_.best

    def _formula(self, response, right):
        left = "" if response is None else response
        if right is None:
            return f"{left} ~ .".strip()
        if not isinstance(right, str) or "~" in right:
            words = "the right side only, such as 'bs(age, df=4) + .'"
            raise ArgumentError(f"formula must be {words}, not {right!r}")
        if not hasattr(self, "feature_names_in_"):
            raise ArgumentError("formula= needs an X with column names: give a data frame")
        return f"{left} ~ {right}".strip()

    def _frame(self, X, reset=False):
        """Return X, an array or frame, as a frame; columns without names become x0, x1, ...

        reset : True stores the columns, as in fit; False compares X with the stored ones"""
        if hasattr(X, "columns") and hasattr(X, "shape"):
            check_names("X", list(read_frame(X).names))
            validate_data(self, X, reset=reset, skip_check_array=True)
            if hasattr(self, "feature_names_in_"):
                return X
        finite = "allow-nan" if self.__sklearn_tags__().input_tags.allow_nan else True
        checks = {"ensure_all_finite": finite, "ensure_min_samples": 2 if reset else 1}
        X = validate_data(self, X, reset=reset, dtype=(np.float64, np.float32), **checks)
        return pd.DataFrame(X, columns=self._names, copy=False)

    @property
    def _names(self):
        if hasattr(self, "feature_names_in_"):
            return list(self.feature_names_in_)
        return [f"x{j}" for j in range(self.n_features_in_)]

    def _predicted(self, X, type):
        """Return predictions of a `type` of predict() for X; rows without one have NaN."""
        check_is_fitted(self, "fit_", msg=UNFITTED)
        frame, how = self._frame(X), {"new_levels": self.new_levels} | self._of_predict
        return in_pandas(self.fit_.predict)(frame, type, **how)

    def _answers(self, X, type):
        """Return predictions of a `type` of predict() for X; DataError if a row has none."""
        values = self._predicted(X, type)
        missing = pd.DataFrame(values).isna().to_numpy().any(axis=1)
        if missing.any():
            what = f"no prediction for {counted(missing.sum(), 'row')}"
            what += f", the first of them row {missing.argmax()}: a feature is missing"
            raise DataError(f"{what}, or the model cannot predict the row (see its predict())")
        return values

    def __sklearn_is_fitted__(self):
        return hasattr(self, "fit_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = getattr(self, "missing", None) != "drop"
        return tags


class _Supervised:
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array (n, p) or frame
            A frame (pandas, polars) may hold categories and missing values.
        y : array (n,)
            Numbers; for classifiers classes: text, integers, or True and False.
        sample_weight : array (n,), optional
            Row weights. Weight 0 ignores a row, weight 2 equals two rows.
        groups : array (n,), optional
            Rows with equal values are held out together.

        Returns
        -------
        self
        """
        return self._learn(X, *self._response(y), sample_weight, groups)


class _Regressor(_Supervised, base.RegressorMixin):
    def _response(self, y):
        y = column_or_1d(y, warn=True)
        if y.dtype.kind in "mM":  # NumPy would count their microseconds
            raise DataError(refusal("y", str(y.dtype)))
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        family = getattr(self, "family", None) or "gaussian"
        if family in ("multinomial", "ordinal"):
            what = f"{type(self).__name__} predicts numbers, not the classes of family {family!r}"
            raise ArgumentError(f"{what}: use {self._model.capitalize()}Classifier")
        return y, family

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted response, (n,): its mean, or its quantile."""
        return self._answers(X, "response").to_numpy(dtype=float)


class _Classifier(_Supervised, base.ClassifierMixin):
    def _response(self, y):
        family = getattr(self, "family", None)
        if family in families.NUMERIC:
            what = f"{type(self).__name__} predicts classes, not the numbers of family {family!r}"
            raise ArgumentError(f"{what}: use {self._model.capitalize()}Regressor")
        dtype = getattr(y, "dtype", None)
        in_order = isinstance(dtype, pd.CategoricalDtype) and dtype.ordered
        order = dtype.categories if in_order else None
        y = column_or_1d(y, warn=True)
        if (missing := pd.isna(y)).any():
            what = f"Input y contains NaN in {missing.sum()} of {len(y)} rows"
            first = f"the first of them row {missing.argmax()}"
            raise DataError(f"{what}, {first}: leave these rows out of X and y")
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        check_classification_targets(y)
        self.classes_, code = np.unique(y, return_inverse=True)
        if family == "ordinal" and order is not None:
            self.classes_ = order[order.isin(self.classes_)].to_numpy()
            code = pd.Index(self.classes_).get_indexer(y)
        family = family or ("binomial" if len(self.classes_) <= 2 else "multinomial")
        in_order = family == "ordinal" and (order is not None or self.classes_.dtype.kind in "iuf")
        labels = pd.Categorical.from_codes(code, self.classes_.tolist(), ordered=in_order)
        return labels, family

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row, (n,)."""
        labels = self._answers(X, "class")
        return self.classes_[pd.Index(self.fit_.levels).get_indexer(labels)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, K), in the order of `classes_`."""
        return self._answers(X, "prob").to_numpy(dtype=float)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the log-odds of the second class, (n,), or K classes' linear predictors (n, K)."""
        return self._answers(X, "link").to_numpy(dtype=float)


class _Transformer(base.TransformerMixin):
    """Mixin for estimators whose transform() returns coordinates in an embedding or a view."""

    _coordinates: str

    def transform(self, X: Any) -> np.ndarray:
        """Return the rows' coordinates: in the embedding for gbmap, in the view for melm.

        The result is an array, or a frame if requested by `set_output`."""
        return self._answers(X, self._coordinates).to_numpy(dtype=float)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the coordinates; `input_features` is ignored."""
        check_is_fitted(self, "fit_", msg=UNFITTED)
        return np.array(self._coordinate_names(), dtype=object)


class _Embedding(_Transformer):
    _coordinates = "embedding"

    def _coordinate_names(self):
        return list(self.fit_.projections().index)


class _Selector(SelectorMixin):
    """Mixin for estimators whose transform() keeps the columns that the model needs."""

    def _get_support_mask(self):
        check_is_fitted(self, "fit_", msg=UNFITTED)
        return np.isin(self._names, self.fit_.inputs)


class GbmapRegressor(
    _Regressor, _Embedding, _Estimator, model="gbmap", chooses=STAGES, own=GAUSSIAN
):
    """Gradient boosting mapping for a numeric response; see `lodim.gbmap`.

    It predicts by a sum of learners: softplus functions of linear combinations of features.
    `family` is "gaussian", "poisson" (counts), "gamma" (positive amounts), "tweedie" (amounts,
    some zero, with `power`), "quantile" (with `quantile`) or "huber" (outliers). transform()
    returns the learners' outputs, whose L1 distance ignores features irrelevant to y."""


class GbmapClassifier(
    _Classifier, _Embedding, _Estimator, model="gbmap", without=PARAMETERS, chooses=STAGES, own=OPEN
):
    """Gradient boosting mapping for classes; see `lodim.gbmap`.

    It predicts by sums of learners: softplus functions of linear combinations of features. Each of
    m stages adds up to K learners for K classes, or one with family="ordinal" for ordered classes
    (numbers or ordered pandas categories). transform() returns the learners' outputs, whose L1
    distance ignores features irrelevant to y."""


class ProsetRegressor(_Regressor, _Estimator, model="proset", chooses="lambda_v"):
    """Prototype sets for a numeric response; see `lodim.proset`.

    Predictions compare a row with prototypes (weighted training rows) on a few features."""


class ProsetClassifier(
    _Classifier, _Estimator, model="proset", without=["loss"], chooses="lambda_v"
):
    """Prototype sets for classes; see `lodim.proset`.

    Predictions compare a row with prototypes (weighted training rows) on a few features."""


class CostnetRegressor(
    _Regressor, _Selector, _Estimator, model="costnet", chooses="the budget", own=GAUSSIAN
):
    """The best linear model at every price (cost of its columns); see `lodim.costnet`.

    `family` is "gaussian", "poisson" (counts), "gamma" (positive amounts) or "tweedie" (amounts,
    some zero, with `power`). transform() keeps the columns that the model needs. `costs`
    and similar arguments use the column names of X, or x0, x1, ... for arrays."""


class CostnetClassifier(
    _Classifier, _Selector, _Estimator, model="costnet", without=PARAMETERS, chooses="the budget"
):
    """The best logistic model at every price (cost of its columns); see `lodim.costnet`.

    transform() keeps the columns that the model needs. `costs` and similar arguments use the column
    names of X, or x0, x1, ... for arrays."""


class MelmClassifier(
    _Classifier, _Transformer, _Estimator, model="melm", without=["entropy"], chooses="gamma"
):
    """The linear view in which classes overlap least; see `lodim.melm`.

    A view is a set of k linear combinations of features, the coordinates that transform() gives."""

    _coordinates = "projection"

    def _coordinate_names(self):
        return self.fit_.axes


class RiprRegressor(
    _Regressor, _Estimator, model="ripr", without=["n_clusters", "balanced", "alpha"], chooses=VIEWS
):
    """A few low-dimensional views, for a numeric response; see `lodim.ripr`.

    Views are small sets of features, in which a row is compared with its nearest training rows."""


class RiprClassifier(_Classifier, _Estimator, model="ripr", without=["n_clusters"], chooses=VIEWS):
    """A few low-dimensional views, for classes; see `lodim.ripr`.

    Views are small sets of features, in which a row is compared with its nearest training rows."""


class RiprClusterer(base.ClusterMixin, _Estimator, model="ripr", without=["method", "balanced"]):
    """Clusters in a few low-dimensional views (small sets of features); see `lodim.ripr`.

    `labels_` has the position of each training row's cluster in `fit_.clusters()`; -1 for none."""

    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array (n, p) or frame
            A frame (pandas, polars) may hold categories and missing values.
        y : None
            Ignored.
        sample_weight : array (n,), optional
            Row weights.

        Returns
        -------
        self
        """
        self._learn(X, None, None, sample_weight, None)
        self.labels_ = self.predict(X)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster of each row, (n,), as a position in `fit_.clusters()`; -1 for none."""
        values = self._predicted(X, "cluster")
        return pd.Index(self.fit_.clusters()["cluster"]).get_indexer(values)


class GlmRegressor(_Regressor, _Estimator, model="glm", own=GAUSSIAN):
    """Regression without a penalty for a numeric response; see `lodim.glm`.

    `family` is "gaussian", "poisson", "negative_binomial", "gamma", "tweedie" (with `power`),
    "quantile" (with `quantile`) or "huber". Missing values raise an error unless
    missing="indicator" is given."""

    _of_predict: ClassVar[dict] = RANK_DEFICIENT


class GlmClassifier(_Classifier, _Estimator, model="glm", without=PARAMETERS, own=OPEN):
    """Logistic, multinomial or ordinal regression without a penalty; see `lodim.glm`.

    family="ordinal" is for ordered classes, numbers or an ordered pandas category, whose order
    `classes_` has. Missing values raise an error unless missing="indicator" is given."""

    _of_predict: ClassVar[dict] = RANK_DEFICIENT
