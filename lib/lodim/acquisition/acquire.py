"""acquire(): from a formula, data and prices to a policy (which feature to measure next)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pandas as pd

from lodim.acquisition import mixture
from lodim.acquisition.items import check_single_terms, column_items, resource_use
from lodim.acquisition.play import choose_contamination
from lodim.acquisition.policy import Policy
from lodim.checks import as_seed, number, one_of
from lodim.design.design import Design
from lodim.design.rows import RowInputs
from lodim.engine import tiles
from lodim.errors import ArgumentError, DataError
from lodim.family import family_of, has_classes
from lodim.fitting.argument_names import with_known_arguments
from lodim.fitting.model import call_text
from lodim.prices import parse
from lodim.prices.build import make_network
from lodim.selection.folds import assign, count_units
from lodim.typing import Data, HasColumns, RowValues


@with_known_arguments
def acquire(
    formula: str,
    data: Data,
    *,
    costs: Mapping[str, float] | pd.Series | HasColumns | Callable[..., Any] | None = None,
    depends_on: Any = None,
    alternatives: Mapping[str, Sequence[str]] | None = None,
    resources: Mapping[str, Mapping[str, float]] | None = None,
    trade_off: float | None = None,
    family: Literal["gaussian", "binomial", "multinomial"] | None = None,
    weights: RowValues | None = None,
    groups: RowValues | None = None,
    seed: int = 0,
) -> Policy:
    """Learn which feature to measure next for each row, given its known features and the prices.

    This is active feature acquisition. Training rows that are similar in the known features stand
    for the unknown values of a row. The policy finds the set of features that minimizes expected
    loss + `trade_off` times price, buys one feature of this set, and repeats.

    Parameters
    ----------
    formula : str
        Such as "disease ~ .". Each term must be made of one column.
    data : frame, path or other source
        Training rows; features may be missing. Rows without response or weight are dropped.
    costs, depends_on, alternatives
        As in `costnet`: price of every column and other purchase, such as `{"thal": 102.9}`
        (without `costs` all cost 1); what a purchase needs, such as `{"thal": ["thal_visit"]}`;
        purchases of which one is enough, such as `{"bp": ["bp_cuff", "bp_line"]}`. Prices that the
        formula does not need are ignored. A column of price 0 that uses no resource is known once
        all that it needs is paid.
    resources : dict of dicts, optional
        Use of other resources by purchase, such as `{"minutes": {"thal": 30}}`; 0 if not listed.
        `Policy.run` limits them. Of alternatives, the cheapest is bought, whatever it uses.
    trade_off : float, optional
        Loss (log-loss or squared error) that one unit of price must save; see `Policy.curve`. By
        default half of the training loss that all features together save, divided by their price.
    family : {"gaussian", "binomial", "multinomial"}, optional
        By default inferred from the response.
    weights : column name or array (n,), optional
        Row weights.
    groups : column name or array (n,), optional
        Rows with equal values are held out together when the predictor is chosen.
    seed : int, default=0
        Seed of folds, candidate sets and ties.

    Returns
    -------
    Policy

    Raises
    ------
    FormulaError, DataError
    ArgumentError
        If a price is missing, a name unknown, `family` invalid, or a term has several columns.

    See Also
    --------
    Policy, costnet

    Notes
    -----
    The policy is an acquisition-conditioned oracle (Valancius et al. 2024). Its predictor is a
    Gaussian mixture of the features for each class, or of features and numeric response; see the
    page "The next measurement". The policy contains the training rows, also in a saved file.

    References
    ----------
    Fiterau, M. (2014). Discovering compact and informative structures through data partitioning,
    ch. 6. Valancius, M., Lennon, M. & Oliva, J. (2024). Acquisition conditioned oracle for
    nongreedy active feature acquisition. ICML.

    Examples
    --------
    >>> import lodim as ld
    >>> heart = ld.data("heart")
    >>> prices = ld.data("heart_costs").set_index("name")
    >>> policy = ld.acquire(
    ...     "disease ~ .", heart[::2], costs=prices["cost"], depends_on=prices["needs"]
    ... )
    >>> sorted(policy.run(heart[1::2][:3], budget=20).columns)[:3]
    ['.bought', '.price', 'absent']
    """
    given = {"costs": costs, "depends_on": depends_on, "alternatives": alternatives}
    given |= {"resources": resources, "trade_off": trade_off, "family": family}
    given |= {"weights": weights, "groups": groups, "seed": seed}
    seed = as_seed(seed)
    trade_off = None if trade_off is None else number("trade_off", trade_off, 0.0)
    if family is not None:
        one_of("family", family, ("gaussian", "binomial", "multinomial"))
    prices = SimpleNamespace(
        costs=parse.costs(costs),
        depends_on=parse.depends_on(depends_on),
        alternatives=parse.alternatives(alternatives),
    )
    inputs = RowInputs(weights=weights, groups=groups)
    design, batch = Design.learn(formula, data, inputs, family=family, missing="keep")
    if design.response is None:
        raise ArgumentError(
            f"acquire needs a response on the left of '~'; the formula is {formula!r}"
        )
    if design.family == "binomial" and not has_classes(family_of(design)):
        raise ArgumentError("the response must be classes or numbers for acquire, not proportions")
    check_single_terms(design)
    resources = {} if resources is None else resources
    tables = resources.values() if isinstance(resources, Mapping) else [None]
    if not all(isinstance(table, Mapping) for table in tables):
        raise ArgumentError(f"resources must be a dict of dicts, not {resources!r:.80}")
    network, item = make_network(design, prices, batch.columns), column_items(design)
    used = np.flatnonzero(~np.isnan(batch.y) & (batch.row_weights > 0.0))
    if len(used) < 10:
        raise DataError(f"acquire needs at least 10 rows with a response, not {len(used)}")
    X, y = tiles.unpack(batch.X, batch.n)[used], batch.y[used]
    weight, K = batch.row_weights[used], len(design.levels or ())
    centre, scale = (0.0, 1.0) if K else (float(y.mean()), float(y.std()) or 1.0)
    n_folds = min(5, max(2, count_units(batch)))
    y, fold = (y - centre) / scale, assign(batch, n_folds, design.levels, seed)[used]
    predictor, settings = mixture.choose(X, y, weight, fold, K, item, seed)
    policy = Policy(
        call=call_text(acquire, design.formula, given),
        design=design,
        network=network,
        mixture=predictor,
        X=X,
        y=y,
        weight=weight,
        centre=centre,
        scale=scale,
        trade_off=0.0,
        resources=tuple(resources),
        use=resource_use(network, resources),
        settings=settings,
        seed=seed,
        pending=0,
        recent=np.empty(0),
    )
    alpha = policy._with_trade_off(None)._alpha(None)
    contamination = choose_contamination(policy._oracle, fold, settings, alpha)
    policy = replace(policy, mixture=replace(predictor, contamination=contamination))
    return policy._with_trade_off(trade_off)
