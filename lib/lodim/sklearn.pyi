"""The estimators' signatures: `sklearn.py` makes their constructors of the model functions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClusterMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.feature_selection import SelectorMixin

from lodim.models.costnet.fit import CostnetFit
from lodim.models.costnet.model import Rule
from lodim.models.gbmap.fit import GbmapFit
from lodim.models.glm.fit import GlmFit
from lodim.models.melm.fit import MelmFit
from lodim.models.proset.fit import ProsetFit
from lodim.models.ripr.fit import RiprFit
from lodim.selection.cv import CV
from lodim.typing import DType, Engine, HasColumns, Missing, NewLevels, NumberFamily, Values

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

class _Regressor(RegressorMixin):
    def fit(
        self,
        X: Any,
        y: Values,
        sample_weight: Values | None = None,
        groups: Values | None = None,
    ) -> Self: ...
    def predict(self, X: Any) -> np.ndarray: ...

class _Classifier(ClassifierMixin):
    classes_: np.ndarray
    def fit(
        self,
        X: Any,
        y: Values,
        sample_weight: Values | None = None,
        groups: Values | None = None,
    ) -> Self: ...
    def predict(self, X: Any) -> np.ndarray: ...
    def predict_proba(self, X: Any) -> np.ndarray: ...
    def decision_function(self, X: Any) -> np.ndarray: ...

class _Transformer(TransformerMixin):
    def transform(self, X: Any) -> np.ndarray: ...
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray: ...

class GbmapRegressor(_Regressor, _Transformer, BaseEstimator):
    fit_: GbmapFit
    cv_: CV[GbmapFit]
    def __init__(
        self,
        *,
        formula: str | None = None,
        new_levels: NewLevels = "error",
        cv: Any = None,
        m: int | None = None,
        lambda_: float | None = None,
        beta: float = 10.0,
        l1_ratio: float = 0.0,
        activation: Literal["softplus", "identity"] = "softplus",
        n_starts: int = 2,
        refit: Literal["none", "joint"] | None = None,
        monotone: dict[str, Literal["increasing", "decreasing"]] | None = None,
        family: Literal["gaussian"] | NumberFamily = "gaussian",
        power: float | None = None,
        quantile: float | None = None,
        missing: Missing = "indicator",
        standardize: bool = True,
        dtype: DType = "float64",
        seed: int = 0,
        threads: int | None = None,
        engine: Engine = "cpu",
        control: dict[str, Any] | None = None,
    ) -> None: ...

class GbmapClassifier(_Classifier, _Transformer, BaseEstimator):
    fit_: GbmapFit
    cv_: CV[GbmapFit]
    def __init__(
        self,
        *,
        family: Literal["ordinal"] | None = None,
        formula: str | None = None,
        new_levels: NewLevels = "error",
        cv: Any = None,
        m: int | None = None,
        lambda_: float | None = None,
        beta: float = 10.0,
        l1_ratio: float = 0.0,
        activation: Literal["softplus", "identity"] = "softplus",
        n_starts: int = 2,
        refit: Literal["none", "joint"] | None = None,
        monotone: dict[str, Literal["increasing", "decreasing"]] | None = None,
        missing: Missing = "indicator",
        standardize: bool = True,
        dtype: DType = "float64",
        seed: int = 0,
        threads: int | None = None,
        engine: Engine = "cpu",
        control: dict[str, Any] | None = None,
    ) -> None: ...

class ProsetRegressor(_Regressor, BaseEstimator):
    fit_: ProsetFit
    cv_: CV[ProsetFit]
    def __init__(
        self,
        *,
        formula: str | None = None,
        new_levels: NewLevels = "error",
        cv: Any = None,
        n_batches: int | None = 1,
        n_candidates: int = 1000,
        lambda_v: float | Literal["auto"] | None = "auto",
        lambda_w: float | Literal["auto"] | None = "auto",
        l1_ratio_v: float = 0.05,
        l1_ratio_w: float = 0.05,
        loss: Literal["squared", "density"] = "squared",
        missing: Missing = "indicator",
        standardize: bool = True,
        dtype: DType = "float64",
        seed: int = 0,
        threads: int | None = None,
        engine: Engine = "cpu",
        control: dict[str, Any] | None = None,
    ) -> None: ...

class ProsetClassifier(_Classifier, BaseEstimator):
    fit_: ProsetFit
    cv_: CV[ProsetFit]
    def __init__(
        self,
        *,
        formula: str | None = None,
        new_levels: NewLevels = "error",
        cv: Any = None,
        n_batches: int | None = 1,
        n_candidates: int = 1000,
        lambda_v: float | Literal["auto"] | None = "auto",
        lambda_w: float | Literal["auto"] | None = "auto",
        l1_ratio_v: float = 0.05,
        l1_ratio_w: float = 0.05,
        missing: Missing = "indicator",
        standardize: bool = True,
        dtype: DType = "float64",
        seed: int = 0,
        threads: int | None = None,
        engine: Engine = "cpu",
        control: dict[str, Any] | None = None,
    ) -> None: ...

class CostnetRegressor(_Regressor, SelectorMixin, BaseEstimator):
    fit_: CostnetFit
    cv_: CV[CostnetFit]
    def __init__(
        self,
        *,
        formula: str | None = None,
        new_levels: NewLevels = "error",
        cv: Any = None,
        costs: Mapping[str, float] | pd.Series | HasColumns | Callable[..., Any] | None = None,
        depends_on: Any = None,
        alternatives: Mapping[str, Sequence[str]] | None = None,
        budget: float | None = None,
        monotone: dict[str, Literal["increasing", "decreasing"]] | None = None,
        lambda_: float | None = None,
        lambdas: float | Values | None = None,
        n_lambda: int = 100,
        lambda_min_ratio: float | None = None,
        l1_ratio: float = 1.0,
        relax: float | None = None,
        rules: Rule | Sequence[Rule] = ("group", "lasso", "greedy"),
        dependents: Literal["all", "direct"] = "all",
        solver: Literal["auto", "cvxpy"] = "auto",
        power: float | None = None,
        quantile: float | None = None,
        family: Literal[
            "gaussian", "poisson", "gamma", "tweedie", "quantile", "huber"
        ] = "gaussian",
        missing: Missing = "indicator",
        standardize: bool = True,
        dtype: DType = "float64",
        seed: int = 0,
        threads: int | None = None,
        control: dict[str, Any] | None = None,
    ) -> None: ...
    def _get_support_mask(self) -> np.ndarray: ...

class CostnetClassifier(_Classifier, SelectorMixin, BaseEstimator):
    fit_: CostnetFit
    cv_: CV[CostnetFit]
    def __init__(
        self,
        *,
        formula: str | None = None,
        new_levels: NewLevels = "error",
        cv: Any = None,
        costs: Mapping[str, float] | pd.Series | HasColumns | Callable[..., Any] | None = None,
        depends_on: Any = None,
        alternatives: Mapping[str, Sequence[str]] | None = None,
        budget: float | None = None,
        monotone: dict[str, Literal["increasing", "decreasing"]] | None = None,
        lambda_: float | None = None,
        lambdas: float | Values | None = None,
        n_lambda: int = 100,
        lambda_min_ratio: float | None = None,
        l1_ratio: float = 1.0,
        relax: float | None = None,
        rules: Rule | Sequence[Rule] = ("group", "lasso", "greedy"),
        dependents: Literal["all", "direct"] = "all",
        solver: Literal["auto", "cvxpy"] = "auto",
        missing: Missing = "indicator",
        standardize: bool = True,
        dtype: DType = "float64",
        seed: int = 0,
        threads: int | None = None,
        control: dict[str, Any] | None = None,
    ) -> None: ...
    def _get_support_mask(self) -> np.ndarray: ...

class MelmClassifier(_Classifier, _Transformer, BaseEstimator):
    fit_: MelmFit
    cv_: CV[MelmFit]
    def __init__(
        self,
        *,
        formula: str | None = None,
        new_levels: NewLevels = "error",
        cv: Any = None,
        k: int | None = None,
        gamma: float | None = None,
        covariance: Literal["shrunk", "ledoit-wolf"] | None = None,
        divergence: Literal["sum", "mean"] = "sum",
        n_starts: int = 17,
        classifier: Any = "kde",
        missing: Missing = "indicator",
        standardize: bool = True,
        dtype: DType = "float64",
        seed: int = 0,
        threads: int | None = None,
        engine: Engine = "cpu",
        control: dict[str, Any] | None = None,
    ) -> None: ...

class RiprRegressor(_Regressor, BaseEstimator):
    fit_: RiprFit
    cv_: CV[RiprFit]
    def __init__(
        self,
        *,
        formula: str | None = None,
        new_levels: NewLevels = "error",
        cv: Any = None,
        max_dim: int | None = None,
        min_dim: int | None = None,
        k: int | None = None,
        method: Literal["vote", "assignment"] | None = None,
        lambda_: float | None = None,
        n_views: int | None = None,
        max_views: int | None = None,
        missing: Missing | Literal["keep"] = "keep",
        standardize: bool = True,
        seed: int = 0,
        threads: int | None = None,
        control: dict[str, Any] | None = None,
    ) -> None: ...

class RiprClassifier(_Classifier, BaseEstimator):
    fit_: RiprFit
    cv_: CV[RiprFit]
    def __init__(
        self,
        *,
        formula: str | None = None,
        new_levels: NewLevels = "error",
        cv: Any = None,
        max_dim: int | None = None,
        min_dim: int | None = None,
        k: int | None = None,
        method: Literal["vote", "assignment"] | None = None,
        lambda_: float | None = None,
        alpha: float = 0.99,
        balanced: bool = False,
        n_views: int | None = None,
        max_views: int | None = None,
        missing: Missing | Literal["keep"] = "keep",
        standardize: bool = True,
        seed: int = 0,
        threads: int | None = None,
        control: dict[str, Any] | None = None,
    ) -> None: ...

class RiprClusterer(ClusterMixin, BaseEstimator):
    fit_: RiprFit
    labels_: np.ndarray
    def __init__(
        self,
        *,
        formula: str | None = None,
        new_levels: NewLevels = "error",
        max_dim: int | None = None,
        min_dim: int | None = None,
        k: int | None = None,
        lambda_: float | None = None,
        alpha: float = 0.99,
        n_clusters: int | None = None,
        n_views: int | None = None,
        max_views: int | None = None,
        missing: Missing | Literal["keep"] = "keep",
        standardize: bool = True,
        seed: int = 0,
        threads: int | None = None,
        control: dict[str, Any] | None = None,
    ) -> None: ...
    def fit(self, X: Any, y: None = None, sample_weight: Values | None = None) -> Self: ...
    def predict(self, X: Any) -> np.ndarray: ...

class GlmRegressor(_Regressor, BaseEstimator):
    fit_: GlmFit
    def __init__(
        self,
        *,
        formula: str | None = None,
        new_levels: NewLevels = "error",
        family: Literal[
            "gaussian", "poisson", "negative_binomial", "gamma", "tweedie", "quantile", "huber"
        ] = "gaussian",
        power: float | None = None,
        quantile: float | None = None,
        missing: Missing = "drop",
        covariance: Literal["nonrobust", "HC0", "HC1", "HC2", "HC3", "cluster"] | None = None,
        control: dict[str, Any] | None = None,
    ) -> None: ...

class GlmClassifier(_Classifier, BaseEstimator):
    fit_: GlmFit
    def __init__(
        self,
        *,
        family: Literal["ordinal"] | None = None,
        formula: str | None = None,
        new_levels: NewLevels = "error",
        missing: Missing = "drop",
        covariance: Literal["nonrobust", "HC0", "HC1", "HC2", "HC3", "cluster"] | None = None,
        control: dict[str, Any] | None = None,
    ) -> None: ...
